"""Attention trees: the planted head is found, exactly it; random models are not beyond chains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bertology as bt
import planted_links
import planted_trees as planted
from bertology.annotated.trees.extraction import spanning_trees
from bertology.annotated.trees.gold import OFFSETS, RELATIONS, GoldTrees
from bertology.annotated.words import word_batches
from bertology.data.corpus import Corpus, Example
from bertology.data.words.alignment import pool
from bertology.errors import CapabilityError, DataError, UnknownNameError
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import prune_heads
from bertology.results.known_claims import load_claims
from bertology.results.result import Result
from bertology.results.rules import Outcome
from bertology.stats import Estimate
from bertology.studies.attention.attention_trees import AttentionTrees, AttentionTreesResult
from bertology.studies.designs.shares import per_item
from result_conformance import ResultConformance, claims_of, told


def look(encoder: Encoder, corpus: Corpus, **how: Any) -> AttentionTreesResult:
    found = planted_links.ask(AttentionTrees(**{"resamples": 200, **how}), encoder, corpus)
    assert isinstance(found, AttentionTreesResult)
    return found


class TestResult(ResultConformance):
    measures = frozenset({"undirected-gain", "to-head-score", "layer-to-head-rooted-score"})

    @staticmethod
    def make() -> Result:
        return look(planted.encoder(planted.model()), planted.corpus(40), keep=2)

    def test_exactly_the_planted_head_is_sure(self, result: Result) -> None:
        for tree in ("undirected", "to-head", "to-head-rooted"):
            measure = result.measure(f"{tree}-gain")
            assert measure.sure is not None
            assert list(map(tuple, np.argwhere(measure.sure))) == [planted.TREE]
        assert f"head {planted.TREE[0]}.{planted.TREE[1]}, has 100 %" in result.answer

    def test_it_has_every_arc(self, result: Result) -> None:
        trees = result.table("trees").set_index("tree")
        for tree in ("undirected", "to-head", "to-head-rooted"):
            assert tuple(trees.loc[tree, ["layer", "head"]]) == planted.TREE
            assert trees.loc[tree, "score"] == pytest.approx(1)
        relations = result.table("relations").set_index(["relation", "tree"])
        assert relations.loc[("nsubj", "to-head"), "score"] == pytest.approx(1)
        assert relations.loc[("advmod", "to-head"), "gain_low"] > 0

    def test_a_kept_sentence_is_drawn_for_any_head_and_tree(self, result: Result) -> None:
        assert isinstance(result, AttentionTreesResult)
        assert {"sentence-0", "sentence-1"} <= set(result.figures())
        figure = result.arcs(1, tree="to-head", candidate=0)
        assert "head 0.0" in {text.get_text() for text in figure.axes[0].texts}
        assert result.candidate_name(planted.LAYERS * planted.HEADS) == "the mean of layer 0"
        with pytest.raises(UnknownNameError, match="kept sentence"):
            result.arcs(2)
        with pytest.raises(UnknownNameError, match="tree"):
            result.arcs(tree="projective")

    def test_that_no_head_parses_fails(self, result: Result) -> None:
        found = claims_of(result)
        assert found["primer-attention.no-head-parses-better-than-a-chain"] == "fails"
        assert found["primer-attention.heads-find-single-relations"] == "holds"


def test_a_head_that_is_eight_points_better_than_a_chain_is_better() -> None:
    """The border was ten points: the head of Clark and others, 8.2 points better, held."""
    (claim,) = (c for c in load_claims() if c.id.endswith("no-head-parses-better-than-a-chain"))
    finds = Estimate(0.3, 0.2, 0.4, 400)
    positive = {"a model in which no head finds a relation": finds}

    def judged(value: float, control: Mapping[str, Estimate | None] = positive) -> Outcome:
        found = Estimate(value, value - 0.02, value + 0.02, 400).with_controls(control)
        return claim.rule.judge(found)

    assert judged(0.08) is Outcome.FAILS
    assert judged(-0.05) is Outcome.HOLDS
    assert judged(0.0) is Outcome.INCONCLUSIVE
    # Of a model that finds nothing at all, it says nothing that its heads hold no tree.
    for control in (None, replace(finds, low=-0.1), replace(finds, value=-0.1, low=-0.2)):
        assert judged(-0.05, dict.fromkeys(positive, control)) is Outcome.NOT_APPLICABLE
        assert judged(0.08, dict.fromkeys(positive, control)) is Outcome.FAILS


@pytest.mark.parametrize(("spread", "seed"), [(0.1, 0), (0.3, 1), (0.6, 2)])
def test_no_head_of_a_random_model_is_beyond_the_baselines(spread: float, seed: int) -> None:
    reader = planted.encoder(planted.random_model(spread=spread, seed=seed))
    result = look(reader, planted.corpus(60, seed=seed))
    assert not result.sure_heads().any()
    assert result.evidence()["best_head_gain"].low <= 0
    # Nor that no head holds the tree.
    assert not any(told(v).is_there for v in result.verdicts())
    assert result.answer.startswith("Nothing is sure")


def test_a_plain_loop_gives_the_same_trees() -> None:
    """Of the bundled model, whose words have several pieces, sentence by sentence."""
    encoder = bt.load(device="cpu")
    corpus = bt.load_corpus("grammar", limit=10)
    table = look(encoder, corpus, resamples=100).table("heads")
    hits, arcs = 0.0, 0
    for example in corpus:
        (read,) = word_batches(encoder, [example])
        rows, gold = GoldTrees.of(read)
        assert rows == [0]
        assert gold is not None
        maps = encoder.run(example.text, record="layer.*.head.*.pattern")
        pieces = maps["layer.*.head.*.pattern"][:, 0].float().numpy()
        words = pool(pieces, read.examples[0].alignment)[..., gold.words[0], :]
        words = words[..., gold.words[0]].reshape(1, -1, gold.sizes[0], gold.sizes[0])
        parents = spanning_trees(words, gold.sizes, gold.roots, ["to-head"])["to-head"][0]
        counted = gold.heads[0] >= 0
        hits = hits + (parents == gold.heads[0])[:, counted].sum(axis=1)
        arcs += counted.sum()
    assert np.allclose(table[table["tree"] == "to-head"]["score"], hits / arcs)


def test_punctuation_and_cut_words_are_left_out() -> None:
    (read,) = word_batches(planted.encoder(planted.model()), planted.corpus(1))
    example = read.examples[0].example
    _, gold = GoldTrees.of(read)
    assert gold is not None
    assert len(gold.words[0]) == len(example.get("words")) - 1
    assert gold.arcs.sum() == len(gold.words[0]) - 1
    assert gold.arcs[0, RELATIONS.index("det")] == 2
    root = example.get("relations").index("root")
    assert gold.roots[0] == root
    assert gold.from_root.sum() == gold.arcs.sum() - 2  # all but determiners hang from the verb
    offsets = gold.by_offset()[0].sum(axis=1)
    assert offsets[OFFSETS.index(1)] >= 2  # the determiners


def test_the_random_tree_is_expected_not_drawn() -> None:
    """All trees over four words, by Prüfer's sequences: how often is each arc in one?"""
    result = look(planted.encoder(planted.model()), planted.corpus(30))
    table = result.table("baselines").set_index(["tree", "baseline"])["score"]
    sizes = [len(e.get("words")) - 1 for e in planted.corpus(30)]
    expected = sum(2 * (n - 1) / n for n in sizes) / sum(n - 1 for n in sizes)
    assert table["undirected", "random tree"] == pytest.approx(expected)
    assert table["to-head", "random tree"] == pytest.approx(expected / 2)
    assert table["to-head", "random tree"] < table["to-head-rooted", "random tree"] < expected


def test_shares_are_of_all_arcs_and_empty_sentences_do_not_count() -> None:
    hits, arcs = np.array([[1, 0, 4, 0]]), np.array([2, 2, 8, 0])
    values = per_item(hits, arcs)
    assert np.isnan(values[0, 3])
    assert np.nanmean(values) == pytest.approx(5 / 12)


def test_sentences_without_a_tree_are_refused_only_if_all_are() -> None:
    encoder, corpus = planted.encoder(planted.model()), planted.corpus(6)
    short = Example("s", "dog sees", annotations={
        "words": ["dog", "sees"], "pos": ["NOUN", "VERB"],
        "heads": [1, -1], "relations": ["nsubj", "root"],
    })  # fmt: skip
    some = replace(corpus, examples=[short, *corpus.examples])
    assert look(encoder, some).facts["examples"] == 6
    with pytest.raises(DataError, match="three words or more"):
        look(encoder, replace(corpus, examples=[short, short]))


def test_pruned_models_are_refused() -> None:
    model = prune_heads(planted.model(), [(0, 0)])
    with pytest.raises(CapabilityError, match="pruned"):
        look(planted.encoder(model), planted.corpus(4))
