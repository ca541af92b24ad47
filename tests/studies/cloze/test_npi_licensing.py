"""NPI licensing: a model that knows licensors only, models that know nothing, plain references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
import transformers as hf
import xarray as xr
from sklearn.linear_model import RidgeClassifier

import made_paradigms as made
import planted_links
from bertology.data.corpus import Corpus, Example
from bertology.errors import BertologyError, DataError
from bertology.model.encoder import Encoder
from bertology.results.known_claims import judge
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.cloze.npi_licensing import TASKS, NpiLicensing, folds_of, labels_of
from bertology.studies.cloze.npi_licensing.paradigms import Paradigms, whole_paradigms
from bertology.train.probes.ridge import PENALTY, held_out_leanings
from result_conformance import ResultConformance, told

pytestmark = pytest.mark.usefixtures("few_steps")


def ask(encoder: Encoder, corpus: Corpus, **options: Any) -> Result:
    found: Result = planted_links.ask(NpiLicensing(resamples=100, **options), encoder, corpus)
    return found


def outcomes(result: Result) -> dict[str, str]:
    found = judge("npi-licensing", result.evidence(), reasons=result.reasons())
    return {v.claim.id.partition(".")[2]: str(told(v)) for v in found}


@cache
def knowing() -> Result:
    return ask(made.knows_licensors(), made.corpus())


def shares(result: Result) -> dict[tuple[str, str, str], float]:
    rows = result.tables["methods"].query("environment == 'all'")
    return {(r.method, r.trained, r.contrast): r.share for r in rows.itertuples()}


class TestResult(ResultConformance):
    measures: ClassVar[set[str]] = {
        f"{task}-{way}"
        for task in ("acceptable", "licensor", "scope", "npi-present")
        for way in ("seen", "new")
    }

    @staticmethod
    def make() -> Result:
        return knowing()


# Planted ---------------------------------------------------------------------------------------


def test_licensors_are_told_and_scope_is_not_where_that_was_planted() -> None:
    found = shares(knowing())
    assert found["gradient pairs, likelihood beyond words", "", "licensor"] == 1
    assert found["gradient pairs, likelihood beyond words", "", "scope"] == 0.5
    assert found["gradient pairs, likelihood", "", "scope"] == 0.5
    assert found["cloze of the NPI", "", "licensor"] == 1
    assert found["cloze of the NPI, beyond words", "", "licensor"] == 1
    assert found["cloze of the NPI", "", "scope"] == 0.5
    assert outcomes(knowing())["licensors-are-told-better-than-scope-in-pairs"] == "holds"
    rows = knowing().tables["methods"].query("environment == 'not' and contrast == 'licensor'")
    assert set(rows[rows["method"] == "cloze of the NPI"]["share"]) == {1.0}
    assert set(rows["paradigms"]) == {6}


def simulated(rates: Mapping[str, float], *, seed: int = 0, alike: float = 40) -> Result:
    """What would be said if probes told tasks in new surroundings at these rates, copies none.

    Log-likelihoods are of words that are liked everywhere, and of chance. The larger `alike`, the
    less differ environments and items.
    """
    rng = np.random.default_rng(seed)
    known = Paradigms.of(made.corpus(2, seed=seed))
    n = len(known.label)
    truth = labels_of(known)
    units = [np.unique(names, return_inverse=True)[1] for names in (known.environment, known.npi)]

    def leaning(rates: Mapping[str, float]) -> xr.Dataset:
        values = np.zeros((2 * len(TASKS), 3, n), np.float32)
        for at in range(len(values)):
            unit = units[TASKS[at % 4] == "npi_present"]
            rate = np.clip(rates.get(TASKS[at % 4], 0.5), 0.05, 0.95)
            # What is new is taken for the right thing, or for the wrong one, in most sentences.
            of_unit = rng.beta(alike * rate, alike * (1 - rate), (3, unit.max() + 1))
            right = rng.random((3, n)) < of_unit[:, unit]
            values[at] = np.where(right, 1, -1) * (2 * truth[:, at] - 1)
        return xr.Dataset({"leaning": (("question", "layer", "example"), values)})

    liked = [{word: rng.normal() for word in np.unique(names)}
             for names in (known.environment, known.npi)]  # fmt: skip
    likelihood = rng.normal(size=n) + sum(
        np.array([of[word] for word in names]) * known.factors[:, factor]
        for of, names, factor in zip(liked, (known.environment, known.npi), (0, 2), strict=True)
    )
    parts = {
        f"examples-000000-{n:06d}": xr.Dataset(
            {
                "likelihood": ("example", likelihood),
                "judged": ("example", np.full(n, np.nan)),
                "filled": (("example", "blank", "word"), rng.normal(size=(n, 2, 2))),
                **known.dataset(slice(None)),
            }
        ),
        "states": leaning(rates),
        **{f"states-shuffled-{copy}": leaning({}) for copy in range(NpiLicensing.copies)},
    }
    about = Provenance("npi-licensing", 1, {}, {"name": "m", "fingerprint": "f"},
                       {"name": "c", "fingerprint": "c"})  # fmt: skip
    return NpiLicensing(resamples=100).conclude(parts, about)


def test_probes_that_tell_items_and_licensors_but_no_scope_are_said_to_do_so() -> None:
    found = simulated({"npi_present": 0.95, "licensor": 0.95, "scope": 0.5})
    said = outcomes(found)
    assert said["items-are-told-better-than-scope"] == "holds"
    assert said["licensors-are-told-better-than-scope"] == "holds"
    turned = outcomes(simulated({"npi_present": 0.5, "licensor": 0.5, "scope": 0.95}))
    assert turned["items-are-told-better-than-scope"] == "fails"
    assert turned["licensors-are-told-better-than-scope"] == "fails"


def test_a_classifier_of_its_own_is_asked_and_what_it_cannot_is_left_out() -> None:
    config = made.config()
    config.num_labels, config.id2label = 2, {0: "unacceptable", 1: "acceptable"}
    torch.manual_seed(0)
    reader = made.encoder(hf.BertForSequenceClassification(config).eval(), "classification")
    corpus = made.corpus()
    result = ask(reader, corpus)
    assert set(result.tables["classifier"]["trained"]) == {""}
    assert {method for method, _, _ in shares(result)} == {
        "absolute pairs", "gradient pairs, classifier",
    }  # fmt: skip
    with torch.no_grad():
        logits = [reader.model(**reader.tokenizer(e.text, return_tensors="pt")).logits[0]
                  for e in corpus]  # fmt: skip
    right = [int(x[1] > x[0]) == e.label for x, e in zip(logits, corpus, strict=True)]
    table = result.tables["classifier"].set_index("environment")
    assert table.loc["all", "accuracy"] == pytest.approx(np.mean(right))
    assert "fills no blanks" in result.reasons()["licensor_over_scope_in_pairs"]


# Nothing known ---------------------------------------------------------------------------------


def chance(seed: int) -> Result:
    """Probes tell nothing, words are liked everywhere."""
    return simulated({}, seed=seed, alike=4)


def test_nothing_holds_where_nothing_is_known() -> None:
    said = [outcomes(chance(seed)) for seed in range(5)]
    said.append(outcomes(ask(made.random_model(0), made.corpus())))
    for claim in said[0]:
        assert sum(one[claim] == "holds" for one in said) <= 1, claim


# Plain references ------------------------------------------------------------------------------


def plain_likelihood(encoder: Encoder, text: str) -> float:
    """Every token masked in turn, one pass each; no word of these has two pieces."""
    ids = encoder.tokenizer(text, return_tensors="pt")["input_ids"]
    total = 0.0
    for place in range(1, ids.shape[1] - 1):
        masked = ids.clone()
        masked[0, place] = encoder.tokenizer.mask_token_id
        with torch.no_grad():
            said = torch.log_softmax(encoder.model(input_ids=masked).logits[0, place], -1)
        total += float(said[ids[0, place]])
    return total


def filled(encoder: Encoder, text: str, word: str) -> float:
    """The log-probability of a word where it stands."""
    ids = encoder.tokenizer(text, return_tensors="pt")["input_ids"]
    token = encoder.tokenizer.convert_tokens_to_ids(word)
    place = int((ids[0] == token).nonzero()[0, 0])
    ids[0, place] = encoder.tokenizer.mask_token_id
    with torch.no_grad():
        return float(torch.log_softmax(encoder.model(input_ids=ids).logits[0, place], -1)[token])


def test_likelihoods_and_clozes_are_those_of_a_plain_loop() -> None:
    encoder, corpus = made.random_model(1), made.corpus()[:80]
    result = shares(ask(encoder, corpus))
    eights = [corpus.examples[at : at + 8] for at in range(0, 80, 8)]
    told: dict[str, list[float]] = {
        name: [] for name in ("licensor", "scope", "npi", "beyond", "cloze")
    }
    for eight in eights:
        by = {tuple(v == "yes" for v in e.get("sentence_labels").values()): e for e in eight}
        score = {cell: plain_likelihood(encoder, e.text) for cell, e in by.items()}
        yes, no = True, False
        good, bare = score[yes, yes, yes], score[yes, yes, no]
        told["licensor"].append(good > score[no, yes, yes])
        told["scope"].append(good > score[yes, no, yes])
        bad = [(no, yes), (yes, no), (no, no)]
        told["npi"].append(np.mean([score[*cell, no] > score[*cell, yes] for cell in bad]))
        told["beyond"].append(good - score[no, yes, yes] > bare - score[no, yes, no])
        item = eight[0].annotations["npi"]
        with_it, without = (filled(encoder, by[has, yes, yes].text, item) for has in (yes, no))
        told["cloze"].append(with_it > without)
    mean = {name: pytest.approx(np.mean(values), abs=1e-9) for name, values in told.items()}
    # Ten paradigms of ten cells: means over cells are those over paradigms.
    assert result["gradient pairs, likelihood", "", "licensor"] == mean["licensor"]
    assert result["gradient pairs, likelihood", "", "scope"] == mean["scope"]
    assert result["gradient pairs, likelihood", "", "npi"] == mean["npi"]
    assert result["gradient pairs, likelihood beyond words", "", "licensor"] == mean["beyond"]
    assert result["cloze of the NPI", "", "licensor"] == mean["cloze"]


def test_probes_are_those_of_scikit_learn_and_saw_nothing_of_their_fold() -> None:
    known = Paradigms.of(made.corpus())
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(2, len(known.label), 6)).astype(np.float32)
    vectors[1, :, 0] += known.factors[:, 0]
    labels, folds = labels_of(known), folds_of(known, 0)
    found = held_out_leanings(vectors, labels, folds)
    for question in range(labels.shape[1]):
        for fold in np.unique(folds[:, question]):
            here = folds[:, question] == fold
            shared = set(known.item[here]) & set(known.item[~here])
            assert not shared, "nothing of a paradigm trains and tests"
            states = (vectors[1] - vectors[1].mean(0)) / vectors[1].std(0)
            plain = RidgeClassifier(alpha=PENALTY).fit(states[~here], labels[~here, question])
            said = plain.decision_function(states[here])
            assert found[question, 1, here] == pytest.approx(said, abs=1e-4)
    new = folds[:, 4:]
    assert all(len(set(known.environment[new[:, 0] == f])) == 1 for f in range(6))
    assert all(len(set(known.npi[new[:, 3] == f])) == 1 for f in range(6))


def test_one_environment_alone_has_no_new_ones() -> None:
    corpus = made.corpus(2)
    one = replace(corpus, examples=[e for e in corpus if e.get("group") == "not"])
    result = ask(made.random_model(0), one)
    layers = result.tables["layers"]
    assert set(layers[layers["trained"] == "new"]["task"]) == {"npi_present"}
    assert "fewer than five environments" in result.reasons()["licensor_over_scope"]


# What cannot be asked --------------------------------------------------------------------------


def test_paradigms_are_drawn_whole() -> None:
    drawn = whole_paradigms(made.corpus(), 100, seed=3)
    assert len(drawn) == 96
    sizes = np.unique([e.get("item") for e in drawn], return_counts=True)[1]
    assert set(sizes.tolist()) == {8}


def _with(example: Example, **about: Any) -> Example:
    return replace(example, annotations={**example.annotations, **about})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: replace(e, label=1), "have the same label"),
        (lambda e: replace(e, label=3), "acceptability must be 0 or 1"),
        (lambda e: _with(e, sentence_labels={"licensor": "yes"}), "yes or no to 'scope'"),
        (lambda e: _with(e, item=e.id), "no whole paradigm"),
    ],
)
def test_bad_input_is_refused_in_words(change: Any, message: str) -> None:
    corpus = made.corpus()
    wrong = replace(corpus, examples=[change(e) for e in corpus])
    with pytest.raises(DataError, match=message):
        NpiLicensing().check(made.random_model(0), wrong)


def test_too_few_sentences_are_refused() -> None:
    with pytest.raises(BertologyError, match="needs 40 examples or more"):
        NpiLicensing().check(made.random_model(0), made.corpus()[:8])
