"""Attention parser: planted combinations are found, single heads are not taken for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import bertology as bt
import planted_links
import planted_trees as planted
from bertology.annotated.trees import arc_sentences
from bertology.annotated.trees.arc_models import ArcModel, _loss, _scale, fit_arcs
from bertology.annotated.trees.arc_sentences import Sentences, read_sentences
from bertology.annotated.trees.gold import RELATIONS
from bertology.data.words.alignment import pool
from bertology.errors import DataError
from bertology.results.result import Result
from bertology.studies.attention.attention_parser import (
    ATTENTION,
    BEST_HEAD,
    PARSERS,
    TOLD,
    AttentionParser,
    AttentionParserResult,
)
from result_conformance import ResultConformance, claims_of, told

NSUBJ, OBJ = RELATIONS.index("nsubj"), RELATIONS.index("obj")


def look(encoder: Any, corpus: Any, **how: Any) -> AttentionParserResult:
    study = AttentionParser(**{"resamples": 200, "vector_size": 4, **how})
    found = planted_links.ask(study, encoder, corpus)
    assert isinstance(found, AttentionParserResult)
    return found


def made(*, heads: int = 4, split: bool, signal: bool = True, seed: int = 0) -> Sentences:
    """40 sentences of eight words: heads 0 and 1 attend to the syntactic head, 0 for all words.

    `split`: head 0 does so for some words, at random, head 1 for the others.
    """
    rng, found = np.random.default_rng(seed), Sentences(heads)
    for example in range(40):
        gold = np.array([(j + rng.integers(1, 8)) % 8 for j in range(8)])
        gold[0] = -1
        maps = rng.uniform(0, 0.5, (heads, 8, 8))
        for j in range(1, 8):
            if signal:
                maps[rng.integers(2) if split else 0, j, gold[j]] = 0.9
        relations = np.where(gold >= 0, np.where(np.arange(8) % 2, NSUBJ, OBJ), -1)
        found.append(example, maps, gold, relations, rng.normal(size=(8, 6)))
    return found


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Results of given attention, whose shuffled copy has no signal."""

    def ask(**how: Any) -> AttentionParserResult:
        given = iter([made(**how), made(split=False, signal=False, seed=9)] * 2)
        monkeypatch.setattr(arc_sentences, "read_sentences", lambda *_, **__: next(given))
        return look(planted.encoder(planted.model()), planted.corpus(8))

    # The model has 3 × 4 heads; the made attention too.
    return lambda **how: ask(heads=12, **how)


class TestResult(ResultConformance):
    measures = frozenset({"to-head-weight", "to-dependent-weight"})

    @staticmethod
    def make() -> Result:
        return look(planted.encoder(planted.model()), planted.corpus(24))

    def test_a_head_that_has_the_tree_needs_no_others(self, result: Result) -> None:
        found = result.table("parsers").set_index("parser")["uas"]
        assert found[BEST_HEAD] == found[ATTENTION] == 1
        assert result.answer.startswith("No")
        assert set(result.table("relations")["picked"]) == {"1.2"}
        weights = np.abs(result.measure("to-head-weight").values)
        assert np.unravel_index(weights.argmax(), weights.shape) == planted.TREE
        assert claims_of(result)["primer-attention.relations-are-in-several-heads"] != "holds"


def test_a_relation_that_two_heads_share_is_found_by_both_together(simulated: Any) -> None:
    result = simulated(split=True)
    found = result.table("parsers").set_index("parser")["uas"]
    assert found[BEST_HEAD + TOLD] < 0.75
    assert found[ATTENTION + TOLD] > 0.9
    assert (result.table("relations")["gain_low"] > 0).all()
    assert result.answer.startswith("Yes")
    for claim in ("relations-are-in-several-heads", "objects-are-in-several-heads"):
        assert claims_of(result)[f"primer-attention.{claim}"] == "holds"


def test_one_head_alone_is_no_combination(simulated: Any) -> None:
    result = simulated(split=False)
    assert result.evidence()["told_mix_over_single"].low <= 0
    assert result.answer.startswith("No")


@pytest.mark.parametrize("spread", [0.1, 0.6])
def test_what_training_finds_in_random_weights_is_not_taken_for_syntax(spread: float) -> None:
    reader = planted.encoder(planted.random_model(spread=spread, seed=3))
    result = look(reader, planted.corpus(40, seed=3))
    assert {str(told(v)) for v in result.verdicts()}.isdisjoint({"holds"})


@pytest.mark.parametrize("told", [0, len(RELATIONS)])
def test_loss_and_slope_are_those_of_a_plain_loop(told: int) -> None:
    sentences = made(split=True)
    vectors = np.random.default_rng(0).normal(size=(320, 3)).astype(np.float32)
    model, some = ArcModel("attention", vectors, told), [0, 3, 7]
    blocks = sentences.blocks(some)
    scale, width = _scale(model, blocks)
    weights = np.random.default_rng(1).normal(size=(2, 4, width)).astype(np.float32)
    value, slope = _loss(model, blocks, scale, weights)

    tried = torch.tensor(weights, dtype=torch.float64, requires_grad=True)
    losses = []
    for s in some:
        maps = torch.tensor(sentences.maps(s).astype(np.float64))
        for j, head in enumerate(sentences.heads[s]):
            if head < 0:
                continue
            logits = []
            for i in range(8):
                parts = [np.ones(1), vectors[8 * s + i], vectors[8 * s + j]]
                parts += [np.eye(told)[sentences.relations[s][j]]] if told else []
                words = torch.tensor(np.concatenate(parts))
                both = torch.stack([maps[j, i], maps[i, j]]) / torch.tensor(scale)
                logits.append((both[..., None] * tried * words).sum())
            logits[j] = torch.tensor(-np.inf, dtype=torch.float64)
            losses.append(-torch.log_softmax(torch.stack(logits), 0)[head])
    loss = torch.stack(losses).mean()
    loss.backward()
    assert tried.grad is not None
    assert value == pytest.approx(float(loss.detach()), rel=1e-5)
    assert np.allclose(slope, tried.grad.numpy(), atol=1e-5)


def test_attended_words_are_those_of_plain_attention() -> None:
    """Of the bundled model, whose words have several pieces, sentence by sentence."""
    encoder, corpus = bt.load(device="cpu"), bt.load_corpus("grammar", limit=8)
    sentences = read_sentences(encoder, corpus, batch_tokens=512, advance=lambda _: None)
    assert len(sentences) == 8
    assert sorted(map(int, np.concatenate(sentences.halves()))) == list(range(8))
    order = np.argsort(sentences._examples)
    for example, at in zip(corpus, order, strict=True):
        (read,) = arc_sentences.word_batches(encoder, [example])
        _, gold = arc_sentences.GoldTrees.of(read)
        assert gold is not None
        maps = encoder.run(example.text, record="layer.*.head.*.pattern")
        pieces = maps["layer.*.head.*.pattern"][:, 0].float().numpy()
        words = pool(pieces, read.examples[0].alignment)[..., gold.words[0], :]
        words = words[..., gold.words[0]].reshape(-1, gold.sizes[0], gold.sizes[0])
        assert np.allclose(words, np.moveaxis(sentences.maps(int(at)), 2, 0), atol=1e-3)
        assert (sentences.heads[at] == gold.heads[0]).all()


def test_distances_learn_the_usual_place_of_the_head() -> None:
    found = Sentences(1)
    for example in range(20):
        gold = np.array([1, 2, 3, -1])
        kinds = np.where(gold >= 0, OBJ, -1)
        found.append(example, np.zeros((1, 4, 4)), gold, kinds, np.zeros((4, 2)))
    fit = fit_arcs(ArcModel("distance"), found, range(10))
    assert [list(h[:3]) for h in fit.heads(found, [15])] == [[1, 2, 3]]
    assert set(PARSERS) >= {ATTENTION, BEST_HEAD}


def test_too_few_trees_are_refused() -> None:
    corpus = planted.corpus(6)
    without = [
        replace(e, annotations={**e.annotations, "relations": ["punct"] * 99}) for e in corpus
    ]
    with pytest.raises(DataError, match="three words or more"):
        look(planted.encoder(planted.model()), replace(corpus, examples=without))
