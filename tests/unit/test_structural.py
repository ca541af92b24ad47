"""Structural probes that are trained together are those of plain PyTorch, trained alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from bertology.annotated.states import States
from bertology.annotated.trees.distances import TreeSentence, TreeSentences, tree_distances
from bertology.train.probes.structural import DISTANCE, KINDS, StructuralProbes, after, trained
from bertology.train.probes.tree_scores import Fitted, fitted, scored_sentences, spearman
from bertology.train.probes.tree_streams import TreeStream
from plain_structural import plain_probe, plain_scores

LAYERS, WIDTH, RANKS, RATE, EPOCHS = 4, 12, (2, 6), 0.02, 8
CLEAR = (0.0, 0.4, 0.8, 1.0)  # how much of the tree is in a layer


class Made(States):
    """States that were not computed, in two blocks."""

    def __init__(self, values: np.ndarray, counts: np.ndarray) -> None:
        self._values, self.counts = values.astype(np.float16), counts
        self.there, self.folder = np.ones(counts.sum(), bool), Path()
        half = int(counts[: len(counts) // 2].sum())
        self._sizes = [half, int(counts.sum()) - half]

    @property
    def block_sizes(self) -> list[int]:
        return self._sizes

    def block(self, number: int) -> Any:
        start = sum(self._sizes[:number])
        return self._values[:, start : start + self._sizes[number]]


@pytest.fixture(scope="module")
def made() -> tuple[States, TreeSentences]:
    """Noise, and paths from the root, more of them in each layer."""
    rng = np.random.default_rng(0)
    sentences, states, start = [], [], 0
    for number in range(80):
        n = int(rng.integers(4, 11))
        order, heads = rng.permutation(n), np.full(n, -1)
        for at in range(1, n):
            heads[order[at]] = order[rng.integers(at)]
        distances = tree_distances(heads)
        assert distances is not None
        paths = np.zeros((n, WIDTH))
        for word in range(n):
            at = word
            while heads[at] >= 0:
                paths[word, at] = 1
                at = heads[at]
        noise = rng.normal(size=(LAYERS, n, WIDTH))
        clear = np.array(CLEAR)[:, None, None]
        states.append(clear * paths + (1 - clear) * noise)
        counted = np.ones(n, bool)
        counted[n - 1] = heads[n - 1] < 0 or n - 1 in heads  # else a leaf at the end
        sentences.append(
            TreeSentence(
                example=number, part=(0, 0, 2, 0, 0, 1, 0, 2, 0, 0)[number % 10],
                words=np.arange(n), units=start + np.arange(n), distances=distances,
                depths=distances[int(np.flatnonzero(heads < 0)[0])], heads=heads, counted=counted,
            )
        )  # fmt: skip
        start += n
    counts = np.array([len(one) for one in sentences])
    return Made(np.concatenate(states, axis=1), counts), TreeSentences(sentences, 0, 0)


def own_states(stream: TreeStream, trees: TreeSentences) -> list[torch.Tensor]:
    """(L, n, D) of every sentence, as the stream gives them."""
    found: dict[int, torch.Tensor] = {}
    for batch in stream.batches(range(len(trees.sentences))):
        for at, row in enumerate(batch.rows):
            found[row] = batch.states[:, at, : len(trees.sentences[row])].clone()
    return [found[row] for row in range(len(found))]


def test_probes_together_are_those_of_plain_pytorch_alone(made: Any) -> None:
    states, trees = made
    stream, train, held = TreeStream(states, trees.sentences), trees.of_part(0), trees.of_part(1)
    probes = StructuralProbes(LAYERS, WIDTH, RANKS)
    start = [one.clone() for one in probes.matrices]
    mix = torch.Generator().manual_seed(0)
    least = trained(
        probes,
        lambda: stream.batches(train, mix=mix),
        lambda: stream.batches(held),
        rate=RATE,
        epochs=EPOCHS,
    )
    mix = torch.Generator().manual_seed(0)
    orders = [[b.rows for b in stream.batches(train, mix=mix)] for _ in range(EPOCHS)]
    given = own_states(stream, trees)
    tested = trees.of_part(2)
    for layer in range(LAYERS):
        alone = [
            plain_probe(
                [one[layer] for one in given],
                trees.sentences,
                start[at][layer],
                depth=probe.kind != DISTANCE,
                epochs=orders,
                held=[b.rows for b in stream.batches(held)],
                rate=RATE,
            )
            for at, probe in enumerate(probes.probes)
        ]
        assert torch.allclose(least[layer], torch.tensor([p.loss for p in alone]), rtol=0.002)
        scores = plain_scores(
            [given[row][layer] for row in tested],
            [trees.sentences[row] for row in tested],
            alone[1].matrix,
            alone[3].matrix,
        )
        matrices = {
            kind: (probes.matrices[at] / stream.scale[..., None]).numpy()
            for at, kind in zip((1, 3), KINDS, strict=True)
        }
        chosen = Fitted(RANKS, np.zeros((2, 2, LAYERS)), matrices)
        ours = scored_sentences(stream, trees, chosen, tested)
        arcs = sum(int(trees.sentences[row].arcs.sum()) for row in tested)
        longer = [s.distance[layer] for s in ours if len(trees.sentences[s.sentence]) >= 5]
        found = (
            sum(s.hits[layer] for s in ours) / arcs,
            np.mean(longer),
            np.mean([s.root[layer] for s in ours]),
        )
        assert np.allclose(found, scores, atol=0.005)


def test_slopes_are_those_of_autograd(made: Any) -> None:
    states, trees = made
    stream = TreeStream(states, trees.sentences)
    batch = next(iter(stream.batches(trees.of_part(0))))
    probes = StructuralProbes(LAYERS, WIDTH, RANKS, seed=3)
    whole, losses = torch.zeros(()), 0.0
    matrices = [one.clone().requires_grad_() for one in probes.matrices]
    for probe, matrix in zip(probes.probes, matrices, strict=True):
        points = after(batch.states, matrix)
        losses += float(probe.losses(batch.states, matrix.detach(), batch).sum())
        for at, row in enumerate(batch.rows):
            n = len(trees.sentences[row])
            one = points[:, at, :n]
            if probe.kind == DISTANCE:
                found = ((one[:, :, None] - one[:, None]) ** 2).sum(-1)
                whole = whole + (found - batch.distances[at, :n, :n]).abs().sum() / n**2
            else:
                off = ((one**2).sum(-1) - batch.depths[at, :n]).abs()
                whole = whole + off.sum() / n
    (whole / len(batch.rows)).backward()
    for probe, matrix in zip(probes.probes, matrices, strict=True):
        slopes = probe.slopes(batch.states, matrix.detach(), batch)
        assert torch.allclose(slopes, matrix.grad, atol=1e-6)
    assert losses == pytest.approx(whole.item(), rel=1e-5)


def test_each_rank_is_as_if_it_were_alone(made: Any) -> None:
    states, trees = made
    stream = TreeStream(states, trees.sentences)
    both = StructuralProbes(LAYERS, WIDTH, RANKS)
    one = StructuralProbes(LAYERS, WIDTH, RANKS[1:], kinds=KINDS[:1])
    one.matrices = [both.matrices[1].clone()]
    for probes in (both, one):
        trained(
            probes,
            lambda: stream.batches(trees.of_part(0)),
            lambda: stream.batches(trees.of_part(1)),
            rate=RATE,
            epochs=3,
        )
    assert torch.allclose(both.matrices[1], one.matrices[0], atol=1e-5)


def test_the_clear_layer_wins_and_needs_the_higher_rank(made: Any) -> None:
    states, trees = made
    found = fitted(TreeStream(states, trees.sentences), trees, RANKS)
    assert found.chosen[0, 3] == 6
    assert found.losses.min(axis=1)[0].argmin() == 3
    assert found.matrices[DISTANCE].shape == (LAYERS, WIDTH, 6)


def test_batches_are_whole_and_of_about_one_length(made: Any) -> None:
    states, trees = made
    stream, rows = TreeStream(states, trees.sentences), list(range(80))
    mix = torch.Generator().manual_seed(0)
    for some in (None, mix):
        batches = list(stream.batches(rows, mix=some))
        assert sorted(row for batch in batches for row in batch.rows) == rows
        assert all(batch.sizes.max() - batch.sizes.min() <= 6 for batch in batches)


def test_correlations_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    found, known = rng.normal(size=(5, 9)), rng.integers(0, 4, size=(5, 9))
    plain = [spearmanr(a, b).statistic for a, b in zip(found, known, strict=True)]
    assert np.allclose(spearman(found, known), plain)
    assert spearman(np.ones(4), np.arange(4)) == 0
