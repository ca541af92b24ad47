"""Impact constituents: as a plain search over splits; planted phrases are found, no random ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import planted_impact as planted
import planted_links
import tiny
from bertology.annotated.trees.constituents import (
    BASELINES,
    gold_spans,
    random_spans,
    span_f1,
    split_spans,
)
from bertology.annotated.trees.impact import word_impacts
from bertology.annotated.words import word_batches
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import CapabilityError, DataError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.studies.cloze.impact_constituents import ImpactConstituents
from result_conformance import ResultConformance, claims_of, told

CLAIM = "primer-attention.impact-constituents-beat-every-baseline"


def look(encoder: Encoder, corpus: Corpus, **how: Any) -> Result:
    return planted_links.ask(ImpactConstituents(**{"resamples": 200, **how}), encoder, corpus)


def phrases(corpus: Corpus, spans: list[list[object]]) -> Corpus:
    """The same sentences with these phrases in the place of dependencies."""
    examples = [
        replace(e, annotations={"words": e.get("words"), "constituents": spans}) for e in corpus
    ]
    fields = frozenset({Field.TEXT, Field.WORDS, Field.CONSTITUENTS})
    return replace(corpus, examples=examples, fields=fields)


class TestResult(ResultConformance):
    """ "the dog often gladly sees a ball": what hangs on one word is what impact holds together."""

    measures = frozenset({"constituents-f1", "constituents-gain"})

    @staticmethod
    def make() -> Result:
        corpus = planted.corpus(60)
        return look(planted.encoder(planted.model()), phrases(corpus, [[0, 2, "NP"], [5, 7, "NP"]]))

    def test_the_planted_phrases_are_found(self, result: Result) -> None:
        """Two of five spans of a binary tree can be right: all that are annotated."""
        assert result.evidence()["constituents_f1"].value == pytest.approx(4 / 7)
        trees = result.table("trees").set_index("tree")["f1"]
        assert trees["impact, last layer"] > trees.drop("impact, last layer").max()
        assert result.answer.startswith("Some of them: trees of impact have an F1 of 57 %")

    def test_the_claim_holds(self, result: Result) -> None:
        assert claims_of(result)[CLAIM] == "holds"


@pytest.mark.parametrize("seed", range(1, 5))
def test_random_models_are_not_surely_better_at_phrases_that_were_drawn(seed: int) -> None:
    rng, corpus = random.Random(seed), planted.corpus(40, seed=seed)
    drawn = [phrases(corpus[i : i + 1], sorted(map(list, random_spans(7, rng)))) for i in range(40)]
    corpus = replace(drawn[0], examples=[e for one in drawn for e in one])
    result = look(planted.encoder(planted.random_model(seed)), corpus)
    found = {v.claim.id: told(v) for v in result.verdicts()}
    assert not found[CLAIM].is_there
    assert not (result.table("layers")["gain_low"] > 0).any()


def by_search(
    scores: NDArray[np.float64], first: int = 0, end: int = -1
) -> Iterator[tuple[int, int]]:
    """The same split by a plain loop over places and pairs, nothing shared."""
    end = len(scores) if end < 0 else end
    if end - first < 2:
        return
    yield first, end
    best, chosen = -np.inf, first + 1
    for at in range(first + 1, end):
        left, right = range(first, at), range(at, end)
        inside = [scores[a, b] for part in (left, right) for a in part for b in part if a != b]
        between = [scores[a, b] + scores[b, a] for a in left for b in right]
        gap = 2 * np.mean(inside) - np.mean(between) if inside else 0.0
        if gap > best + 1e-9:
            best, chosen = gap, at
    yield from by_search(scores, first, chosen)
    yield from by_search(scores, chosen, end)


def test_splits_are_those_of_a_plain_search() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        scores = rng.random((n := int(rng.integers(2, 12)), n))
        whole = {span for span in by_search(scores) if span != (0, n)}
        assert split_spans(scores) == whole


def test_a_tree_is_got_back_from_how_many_phrases_hold_two_words() -> None:
    for seed in range(100):
        rng = random.Random(seed)
        n = rng.randrange(3, 14)
        tree = random_spans(n, rng)
        scores = np.array(
            [[sum(f <= min(a, b) and max(a, b) < e for f, e in tree) for b in range(n)]
             for a in range(n)], float,
        )  # fmt: skip
        assert split_spans(scores) == tree


def test_numbers_are_those_of_a_loop_over_sentences() -> None:
    encoder, corpus = planted.encoder(planted.random_model(5)), planted.corpus(12)
    result = look(encoder, corpus)
    expected = []
    for read in word_batches(encoder, corpus):
        for one in read.examples:
            words, gold = gold_spans(one)
            (maps,) = word_impacts(encoder, [(one, words)])
            expected.append([span_f1(set(by_search(m)) - {(0, len(words))}, gold) for m in maps])
    assert result.table("layers")["f1"].to_numpy() == pytest.approx(np.mean(expected, axis=0))
    gold = {(0, 2), (5, 7)}
    for name, make in BASELINES.items():
        table = result.table("trees").set_index("tree")
        assert table.loc[name, "f1"] == pytest.approx(span_f1(make(7), gold))


def test_trivial_trees() -> None:
    assert BASELINES["right-branching"](4) == {(1, 4), (2, 4)}
    assert BASELINES["left-branching"](4) == {(0, 3), (0, 2)}
    assert BASELINES["balanced"](4) == {(0, 2), (2, 4)}
    assert span_f1({(0, 2), (2, 4)}, {(0, 2)}) == pytest.approx(2 / 3)


def test_phrases_without_punctuation_and_what_is_torn_apart() -> None:
    words = ["the", ",", "dog", "barks", "loud", "now"]
    encoder = Encoder(planted.model(), tiny.tokenizer(words), head="mlm")
    known = {"words": words, "heads": [2, 2, 3, -1, 5, 2]}  # what hangs on "dog" is torn apart
    (read,) = word_batches(encoder, [Example("0", " ".join(words), annotations=known)])
    assert gold_spans(read.examples[0]) == ([0, 2, 3, 4, 5], {(3, 5)})
    ring = {"words": words, "heads": [1, 0, 3, -1, 3, 3]}
    (read,) = word_batches(encoder, [Example("0", " ".join(words), annotations=ring)])
    assert gold_spans(read.examples[0])[1] == {(1, 5)}  # a ring ends all the same


def test_what_cannot_be_asked_is_refused() -> None:
    encoder, corpus = planted.encoder(planted.model()), planted.corpus(8)
    bare = replace(corpus, fields=frozenset({Field.TEXT, Field.WORDS}))
    with pytest.raises(CapabilityError, match="neither constituents nor dependencies"):
        ImpactConstituents().check(encoder, bare)
    with pytest.raises(DataError, match="sentences of 3 to 5 words"):
        ImpactConstituents(longest=5).parts(encoder.shape, corpus)
    with pytest.raises(DataError, match="beside the whole sentence"):
        look(encoder, phrases(corpus, [[0, 7, "S"]]))
