"""Agreement: models whose rule is known, models that know nothing, and a plain loop."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import made_agreement
import planted_agreement as planted
from bertology.data.corpus import Corpus
from bertology.data.words.nonsense import NonsenseWords
from bertology.errors import BertologyError, DataError
from bertology.model.encoder import Encoder
from bertology.results.known_claims import judge
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats.balanced import balanced_means, balanced_rows, balancing_weights
from bertology.stats.partial_means import partial_means
from bertology.studies.cloze.agreement import Agreement, is_plural
from bertology.studies.designs.clozes import pair_blank, question_of
from bertology.studies.study import Context
from result_conformance import ResultConformance, told


def ask(encoder: Encoder, corpus: Corpus, **options: Any) -> Result:
    study = Agreement(resamples=200, **options)
    parts = {
        part: study.measure(encoder, corpus, part, Context())
        for part in study.parts(encoder.shape, corpus)
    }
    provenance = Provenance(
        "agreement", 1, {}, {"name": "m", "fingerprint": "f"}, {"name": "c", "fingerprint": "c"}
    )
    return study.conclude(parts, provenance)


@pytest.fixture(autouse=True)
def own_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted corpus has its own parts of speech; the bundled tagger is not asked."""
    from bertology.annotated import tagged_batches

    monkeypatch.setattr(tagged_batches, "annotated", lambda corpus, how: (corpus, "corpus"))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return planted.corpus()


class TestResult(ResultConformance):
    measures: ClassVar[set[str]] = {f"agreement-{n}" for n in ("accuracy", "nonsense", "probe")}

    @staticmethod
    def make() -> Result:
        with pytest.MonkeyPatch.context() as patch:
            from bertology.annotated import tagged_batches

            patch.setattr(tagged_batches, "annotated", lambda corpus, how: (corpus, "corpus"))
            return ask(planted.encoder(planted.model()), planted.corpus(120))


def outcomes(result: Result) -> dict[str, str]:
    found = judge("agreement", result.evidence(), reasons=result.reasons())
    return {v.claim.id.partition(".")[2]: str(told(v)) for v in found}


def test_agreement_with_the_subject_is_told_at_the_last_layer_alone(corpus: Corpus) -> None:
    result = ask(planted.encoder(planted.model("first")), corpus)
    groups = result.tables["groups"].set_index("group")["accuracy"]
    assert groups.to_dict() == pytest.approx(dict.fromkeys(groups.index, 1.0))
    assert {"all", "nonsense", "0 attractors", "1 attractor", "2 attractors"} == set(groups.index)
    layers = result.tables["layers"]
    for column in ("accuracy", "nonsense"):
        assert layers[column][0] == pytest.approx(0.5, abs=0.1), "only rounding decides"
        assert layers[column][1] == pytest.approx(1)
    said = outcomes(result)
    assert said.pop("agreement-is-best-in-the-middle") == "not-applicable", "two layers: no middle"
    assert set(said.values()) == {"holds"}
    assert layers["probe"][0] < 0.75, "the first layer cannot see the noun"
    assert layers["probe"][1] == pytest.approx(1)


def test_agreement_with_the_nearest_noun_fails_with_attractors(corpus: Corpus) -> None:
    result = ask(planted.encoder(planted.model("nearest")), corpus, lens="none")
    groups = result.tables["groups"].set_index("group")["accuracy"]
    assert groups["0 attractors"] == 1
    assert groups["1 attractor"] == groups["2 attractors"] == 0
    assert outcomes(result)["verbs-agree-across-attractors"] == "fails"


def test_models_that_know_nothing_bear_out_no_claim(corpus: Corpus) -> None:
    held = 0
    for seed in range(6):
        made = planted.encoder(planted.random_model(seed))
        found = outcomes(ask(made, corpus[:120], lens="none"))
        held += "holds" in found.values()
    assert held <= 1


@pytest.mark.parametrize(
    ("signal", "said"),
    [
        ((0, 0, 0, 0, 1.5, 1.5, 1.5, 1.5, 0, 0), {"holds"}),
        ((0, 0, 0, 0, 1.5, 1.5), {"fails"}),
        ((1, 1, 1, 1, 1, 1), {"inconclusive", "negligible"}),
    ],
)
def test_the_best_layers_are_found_by_probes_alike_for_all(
    signal: tuple[float, ...], said: set[str]
) -> None:
    """What the head prefers is noise here: only states tell where the number is known."""
    found = outcomes(made_agreement.layered(signal, 1))
    assert found["agreement-is-best-in-the-middle"] in said
    assert found["verbs-agree"] in {"inconclusive", "negligible"}


def test_probes_of_noise_are_not_judged() -> None:
    found = made_agreement.layered((0, 0, 0, 0, 0), 0)
    assert outcomes(found)["agreement-is-best-in-the-middle"] == "not-applicable"
    assert found.tables["layers"]["probe"].tolist() == pytest.approx([0.5] * 5, abs=0.12)


@pytest.mark.parametrize(
    ("forms", "plural"),
    [(("are", "is"), True), (("likes", "like"), False), (("a", "b"), None), (("as", "is"), None)],
)
def test_the_number_of_a_form(forms: tuple[str, str], plural: bool | None) -> None:
    assert is_plural(*forms) is plural


def test_nonsense_counts_by_the_nouns_that_it_has(corpus: Corpus) -> None:
    """Else sentences about one noun would be taken for sentences about several."""
    study = Agreement(lens="none")
    (part,) = study.parts(planted.encoder(planted.model()).shape, corpus)
    found = study.measure(planted.encoder(planted.model()), corpus, part, Context())
    plain, nonsense = (found[name].to_numpy() for name in ("unit", "nonsense_unit"))
    assert set(nonsense) <= set(planted.NOUNS)
    assert (plain != nonsense).mean() > 0.8


def test_what_nonsense_costs_is_tested_over_nouns(corpus: Corpus) -> None:
    """Sentences about one noun flip together: twenty of them are one observation."""
    study = Agreement(lens="none", resamples=100)
    encoder = planted.encoder(planted.model())
    (part,) = study.parts(encoder.shape, corpus)
    found = study.measure(encoder, corpus, part, Context())
    lost = found["unit"].to_numpy() == "key"
    found["nonsense"].values[lost] = -1.0
    made = {"name": "m", "fingerprint": "f"}
    result = study.conclude({part: found}, Provenance("agreement", 2, {}, made, made))
    (row,) = result.tables["paired"].to_dict("records")
    assert row["only_plain"] == lost.sum() > 8
    assert row["p"] == 1


def test_bounds_of_accuracies_are_sharper_than_of_linearised_values_and_cover() -> None:
    rng, missed, wide = np.random.default_rng(0), 0, []
    for _ in range(15):
        units = rng.choice(60, size=200, p=(often := 1 / np.arange(5, 65)) / often.sum())
        right = (rng.random(200) < rng.beta(1.4, 0.6, size=60)[units]).astype(float)
        of = balanced_rows(right[None], np.ones(200), units.astype(str).tolist())
        found = balanced_means(of, resamples=100)
        assert found.value[0] == pytest.approx(right.mean())
        missed += not found.low[0] <= 0.7 <= found.high[0]
        old = partial_means(of.rows, within=(0, 1), support=(1 - of.reach, of.reach), resamples=100)
        wide.append((found.high[0] - found.low[0]) / (old.alone_high[0] - old.alone_low[0]))
    assert missed <= 1
    assert np.mean(wide) < 0.8


def test_a_fixed_preference_is_worth_exactly_one_half(corpus: Corpus) -> None:
    made = planted.model()
    with torch.no_grad():
        for layer in made.bert.encoder.layer:
            layer.attention.output.dense.weight.zero_()
        for word in ("is", "were", "has"):
            made.cls.predictions.bias[5 + planted.WORDS.index(word)] = 3.0
    result = ask(planted.encoder(made), corpus, lens="none")
    assert result.evidence()["agreement_accuracy"].value == pytest.approx(0.5)
    assert "holds" not in outcomes(result).values()


def test_it_equals_a_plain_loop(corpus: Corpus) -> None:
    """transformers alone, sentence by sentence; forms of a verb averaged one after the other."""
    encoder = planted.encoder(planted.random_model(4))
    tokenizer, by_verb, corpus = encoder.tokenizer, defaultdict(list), corpus[:80]
    for example in corpus:
        words, at = list(example.get("words")), example.get("verb")
        good, bad = words[at], example.get("contrast").split()[at]
        words[at] = "[MASK]"
        given = tokenizer(" ".join(words), return_tensors="pt")
        with torch.no_grad():
            logits = encoder.model(**given).logits[0, at + 1]
        one, other = (float(logits[tokenizer.convert_tokens_to_ids(w)]) for w in (good, bad))
        by_verb[tuple(sorted((good, bad))), good].append(one > other)
    total, weight = 0.0, 0
    for kind in {k for k, _ in by_verb}:
        sides = [np.array(v) for (k, _), v in by_verb.items() if k == kind]
        least = min(len(s) for s in sides)
        total += least * sum(s.mean() for s in sides)
        weight += 2 * least
    result = ask(encoder, corpus, lens="none")
    assert result.evidence()["agreement_accuracy"].value == pytest.approx(total / weight)


def test_intervals_are_over_nouns_where_they_are_told(corpus: Corpus) -> None:
    encoder = planted.encoder(planted.random_model(1))
    found = ask(encoder, corpus, lens="none").evidence()["agreement_accuracy"]
    assert (found.n, found.unit) == (len(planted.NOUNS), "nouns")
    without = [
        replace(e, annotations={k: v for k, v in e.annotations.items() if k != "subject"})
        for e in corpus
    ]
    fields = frozenset(f for f in corpus.fields if f != "subject")
    plain = replace(corpus, examples=without, fields=fields)
    other = ask(encoder, plain, lens="none").evidence()["agreement_accuracy"]
    assert other.unit == "sentences"
    assert other.value == pytest.approx(found.value)


def test_nonsense_keeps_number_and_function_words(corpus: Corpus) -> None:
    words = NonsenseWords.of(corpus)
    example = next(e for e in corpus if e.get("attractors") == 2)
    blank = pair_blank(example.text, example.get("contrast"))
    assert blank is not None
    made = words.nonsense(example, (blank.start, blank.end), random.Random(0))
    assert made is not None
    before, after = made.before.split(), made.after.split()
    assert list(made.words[: len(before)]) == before
    given = example.text.split()
    assert after == given[-2:]
    for old, new in zip(given, before, strict=False):
        assert old.endswith("s") == new.endswith("s") or old in planted.OTHERS
        assert (old == new) == (old in planted.OTHERS)
    lonely = NonsenseWords.of([example])  # no noun occurs in both numbers
    assert lonely.nonsense(example, (blank.start, blank.end), random.Random(0)) is None


@pytest.mark.parametrize(
    ("good", "bad", "found"),
    [
        ("the key is here .", "the key are here .", (8, 10, "is", "are")),
        ("The keys are.", "The keys is.", (9, 12, "are", "is")),
        ("is it is", "is it are", (6, 8, "is", "are")),
        ("a b", "a b", None),
        ("a b c", "a d e", None),
        ("a b", "a b c", None),
    ],
)
def test_where_a_pair_differs(good: str, bad: str, found: tuple[int, int, str, str] | None) -> None:
    blank = pair_blank(good, bad)
    assert found == (None if blank is None else (blank.start, blank.end, blank.good, blank.bad))


def test_weights_make_both_forms_equal() -> None:
    kinds = ["be"] * 6 + ["do"] * 2
    weights = balancing_weights(kinds, [1, 1, 1, 1, 0, 0, 1, 1])
    np.testing.assert_allclose(weights, [0.5] * 4 + [1, 1] + [0, 0])
    scores = np.array([[1, 1, 1, 1, 0, 0, 1, 1.0]])
    found = balanced_rows(scores, weights, ["a", "a", "b", "b", "a", "b", "c", "c"])
    assert np.nanmean(found.rows) == pytest.approx(0.5)
    assert np.isnan(found.rows[0, 2])
    assert found.items == 6


def test_questions_of_cloze_corpora() -> None:
    from bertology.data.corpus import Example

    about = {"candidates": ["a", "b"], "answer": ["a"], "entity": "x"}
    found = question_of(Example("0", "x is [MASK].", annotations=about))
    assert (found.candidates, found.answers, found.subject) == (("a", "b"), ("a",), "x")


def test_pairs_that_are_too_long_are_left_out(corpus: Corpus) -> None:
    long = " here" * 30
    first = [
        replace(
            e, text=e.text + long,
            annotations={
                **e.annotations, "contrast": e.get("contrast") + long,
                "words": [*e.get("words"), *long.split()], "pos": [*e.get("pos"), *["ADV"] * 30],
            },
        )
        for e in corpus[:10]
    ]  # fmt: skip
    result = ask(
        planted.encoder(planted.model()),
        replace(corpus, examples=[*first, *corpus[10:]]),
        lens="none",
    )
    assert result.facts["left_out"] >= 10
    assert result.evidence()["agreement_accuracy"].value == 1


def test_what_cannot_be_compared_is_refused(corpus: Corpus) -> None:
    same = [replace(e, annotations={**e.annotations, "contrast": e.text}) for e in corpus]
    with pytest.raises(DataError, match="No pair can be compared"):
        ask(planted.encoder(planted.model()), replace(corpus, examples=same))
    named = [replace(e, annotations={**e.annotations, "group": "simple_npi"}) for e in corpus]
    with pytest.raises(BertologyError, match="no pairs of verbs"):
        ask(planted.encoder(planted.model()), replace(corpus, examples=named))
