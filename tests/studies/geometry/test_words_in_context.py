"""Words in context: planted senses are told at their layer only, chance never."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

import made_senses as made
from bertology.annotated import states
from bertology.annotated.states import word_states
from bertology.data.loading import load_corpus
from bertology.errors import CapabilityError, DataError
from bertology.results.answers import points
from bertology.results.result import Result
from bertology.studies.geometry.words_in_context import WordsInContext, _Pairs, target_texts
from bertology.train.probes.ridge import cosines, probe_answers, threshold_answers
from result_conformance import ResultConformance, claims_of

NEARER = "primer-embeddings.the-same-sense-is-nearer"
PROBE = "primer-embeddings.a-probe-tells-the-same-sense"


class TestResult(ResultConformance):
    measures = frozenset({"same-sense-cosine", "same-sense-probe"})

    @staticmethod
    def make() -> Result:
        return made.ask_pairs(made.encoder(), made.pairs())

    def test_a_random_model_bears_out_no_claim(self, result: Result) -> None:
        assert "holds" not in claims_of(result).values()


def test_planted_senses_are_told_at_their_layer_only(monkeypatch: pytest.MonkeyPatch) -> None:
    result = made.simulated_pairs(monkeypatch, made.pairs(240), apart=3.0)
    rows = result.table("layers").set_index("layer")
    assert rows.loc[made.PLANTED, "cosine"] > 0.9
    assert rows.loc[made.PLANTED, "probe"] > 0.8
    assert (rows.drop(made.PLANTED)[["cosine", "probe"]] < 0.62).all(axis=None)
    assert rows.loc[made.PLANTED, "same_mean"] > 0.7
    assert set(result.table("scores")["layer"]) == {made.PLANTED}
    assert claims_of(result) == {NEARER: "holds", PROBE: "holds"}


@pytest.mark.parametrize("seed", range(2))
def test_gaussian_states_bear_out_nothing(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    result = made.simulated_pairs(monkeypatch, made.pairs(seed=seed), apart=0.0, seed=seed)
    assert "holds" not in claims_of(result).values()


def test_thresholds_are_the_best_on_other_pairs() -> None:
    rng = np.random.default_rng(0)
    near, same = rng.random((2, 60)).round(1), rng.random(60) < 0.5
    parts = [(np.arange(20), np.arange(20, 60)), (np.arange(20, 60), np.arange(20))]
    found = threshold_answers(near, same, parts)
    for asked, taught in parts:
        for layer in range(2):
            tried = [*sorted(set(near[layer, taught])), np.inf]
            right = [((near[layer, taught] >= t) == same[taught]).sum() for t in tried]
            best = tried[int(np.argmax(right))]
            expected = (near[layer, asked] >= best) == same[asked]
            np.testing.assert_array_equal(found[layer, asked], expected)


def test_probes_are_linear_ones_of_difference_and_product() -> None:
    """As scikit-learn's ridge classifier tells pairs that were not learnt from."""
    rng = np.random.default_rng(1)
    u = rng.normal(size=(1, 300, 4))
    v, same = rng.normal(size=(1, 300, 4)), rng.random(300) < 0.5
    v[:, same] = u[:, same] + 0.7 * v[:, same]
    folds = np.arange(300) % 5
    found = probe_answers(u, v, same, folds, np.ones(300, bool))[0]
    a, b = (x[0] / np.linalg.norm(x[0], axis=1, keepdims=True) for x in (u, v))
    features = np.hstack([np.abs(a - b), a * b])
    features = (features - features.mean(0)) / features.std(0)
    other = np.zeros(300, bool)
    for fold in range(5):
        fit = RidgeClassifier(alpha=1.0).fit(features[folds != fold], same[folds != fold])
        other[folds == fold] = fit.predict(features[folds == fold]) == same[folds == fold]
    assert (found == other).mean() > 0.97
    assert cosines(u, u) == pytest.approx(1)


def test_each_text_is_read_alone_and_another_split_may_teach() -> None:
    texts, spans = target_texts(made.pairs(3))
    assert [e.text_b for e in texts] == [None] * 6
    assert spans[:2] == [(0, 1, 2), (1, 2, 3)]
    corpus = load_corpus("grammar-sense-pairs", split="test", limit=40)
    study = WordsInContext(train_split="train", train_examples=60, examples=40)
    whole, asked = study.looked_at(corpus)
    own = {text for e in whole.examples[:asked] for text in e.texts}
    assert all(not own.intersection(e.texts) for e in whole.examples[asked:])
    assert study.ingredients(corpus) != replace(study, train_examples=50).ingredients(corpus)
    part = study.measure(made.encoder(), corpus, "model", made.planted_links.Context())
    assert int(part["counts"].sum()) == asked


def test_with_states_of_other_words_kept_too_the_numbers_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs, reader, kept = made.pairs(60), made.encoder(), []

    def counted(*given: Any, words: Any, **how: Any) -> Any:
        kept.append(word_states(*given, words=words if not kept else None, **how))
        return kept[-1]

    monkeypatch.setattr(states, "word_states", counted)
    few, every = (
        WordsInContext().measure(reader, pairs, "model", made.planted_links.Context())
        for _ in range(2)
    )
    assert [len(found) for found in kept] == [2 * 60, 2 * 60 * 5]
    assert few.identical(every)


def test_a_word_is_never_learnt_from_nor_one_that_shares_a_text_with_it() -> None:
    corpus = made.pairs(240)
    examples = list(corpus)
    examples[5] = replace(examples[5], text=examples[40].text.upper())  # of two words
    words = [e.annotations["group"] for e in examples]
    for asked in (240, 100):
        pairs = _Pairs.of(replace(corpus, examples=examples), np.arange(240), asked, 5, seed=0)
        assert pairs.units[5] == pairs.units[40]
        assert len(set(pairs.units.tolist())) == len(set(words)) - 1
        answered = []
        for ask, teach in pairs.parts():
            assert not {words[at] for at in ask} & {words[at] for at in teach}
            assert not set(pairs.units[ask]) & set(pairs.units[teach])
            assert len(teach) > 0
            assert asked == 240 or (teach >= asked).all()
            answered += ask.tolist()
        assert sorted(answered) == list(range(asked))
        assert (pairs.taught == (np.arange(240) >= (asked if asked < 240 else 0))).all()


def test_few_words_have_no_interval_or_cannot_be_learnt_from() -> None:
    corpus = made.pairs(240)
    few = [e for i, e in enumerate(corpus) if i % 12 < 4]
    named = [
        replace(e, annotations={**e.annotations, "group": e.annotations["group"].split("-")[0]})
        for e in few
    ]
    result = made.ask_pairs(made.encoder(), replace(corpus, examples=named))
    assert result.evidence() == {}
    assert "5 are needed" in result.reasons()["cosine_gain"]
    assert result.table("layers")["cosine_low"].isna().all()
    assert result.answer.startswith("Nothing is sure")
    two = [e for e in named if e.annotations["group"] in ("word0", "word1")]
    with pytest.raises(DataError, match="of 2 words"):
        made.ask_pairs(made.encoder(), replace(corpus, examples=two))


def test_the_answer_allows_for_two_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """The better way is picked after looking: its bounds are wider than those of one way."""
    result = made.simulated_pairs(monkeypatch, made.pairs(240), apart=3.0)
    scores = result.table("scores")
    row = scores.iloc[int(scores["gain_low"].to_numpy().argmax())]
    wider = result.evidence()[f"{row['kind']}_gain"].at_level(0.975).beyond_all()
    assert wider.low < row["gain_low"]
    assert points(wider, ".0f") in result.answer


def test_what_cannot_be_asked_is_refused() -> None:
    pairs, reader = made.pairs(), made.encoder()
    assert pairs.task is not None
    scored = replace(pairs, task=replace(pairs.task, kind="regression", labels=()))
    with pytest.raises(CapabilityError, match="means the same"):
        WordsInContext().check(reader, scored)
    with pytest.raises(DataError, match="20"):
        WordsInContext().check(reader, pairs[:10])
