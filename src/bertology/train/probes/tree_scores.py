"""Structural probes of all layers and ranks, fitted and scored: trees, distances, roots, depths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from torch import Tensor

from bertology.annotated.trees.distances import TreeSentence, TreeSentences
from bertology.annotated.trees.spanning import undirected_trees
from bertology.arrays import Floats
from bertology.train.probes.structural import (
    DEPTH,
    DISTANCE,
    KINDS,
    Advance,
    StructuralProbes,
    after,
    squared_distances,
    trained,
)
from bertology.train.probes.tree_streams import TreeStream

RATE = 0.01
_EPOCHS = 40  # at most, as in the paper
_STEPS = 1500  # or so many steps, where there are few sentences


@dataclass(frozen=True)
class Fitted:
    """The matrix of each kind and layer whose rank is best on held-out sentences.

    `matrices` are by kind (L, D, K), filled with zeros where the rank is less than K, and stand for
    states as they are. `losses` are (kinds, ranks, L), on held-out sentences.
    """

    ranks: Sequence[int]
    losses: Floats
    matrices: Mapping[str, NDArray[np.float32]]

    @classmethod
    def of(
        cls, probes: StructuralProbes, least: Tensor, ranks: Sequence[int], scale: Tensor
    ) -> Fitted:
        """Of trained probes, their losses (L, P), and how states (L, D) were scaled."""
        layers, width = scale.shape
        kinds = list(dict.fromkeys(one.kind for one in probes.probes))
        losses = least.double().cpu().numpy().T.reshape(len(kinds), len(ranks), layers)
        matrices = {kind: np.zeros((layers, width, 1), np.float32) for kind in KINDS}
        for at, kind in enumerate(kinds):
            found = torch.zeros((layers, width, max(ranks)))
            for layer, best in enumerate(losses[at].argmin(axis=0)):
                own = probes.matrices[at * len(ranks) + int(best)][layer]
                found[layer, :, : ranks[best]] = (own / scale[layer, :, None]).cpu()
            matrices[kind] = found.numpy()
        return cls(ranks, losses, matrices)

    @property
    def chosen(self) -> NDArray[np.int64]:
        """(kinds, L): the rank that was best."""
        found: NDArray[np.int64] = np.array(self.ranks)[self.losses.argmin(axis=1)]
        return found


def fitted(
    stream: TreeStream,
    trees: TreeSentences,
    ranks: Sequence[int],
    *,
    kinds: Sequence[str] = KINDS,
    seed: int = 0,
    advance: Advance = lambda done, of: None,
) -> Fitted:
    """Train probes of all layers and ranks, of both kinds or of one; the other is zero then."""
    layers, width = stream.scale.shape
    probes = StructuralProbes(
        layers, width, ranks, kinds=kinds, seed=seed, device=stream.scale.device
    )
    train, held = trees.of_part(0), trees.of_part(1)
    mix = torch.Generator().manual_seed(seed)
    each = sum(1 for _ in stream.batches(train))
    least = trained(
        probes,
        lambda: stream.batches(train, mix=mix),
        lambda: stream.batches(held),
        rate=RATE,
        epochs=max(_EPOCHS, _STEPS // each),
        advance=advance,
    )
    return Fitted.of(probes, least, ranks, stream.scale)


@dataclass(frozen=True)
class SentenceScores:
    """One sentence of n words, of which m are no punctuation, in each of L layers.

    `distance` is the mean over words of Spearman's correlation of annotated and predicted distances
    to all words (all words, punctuation too, as in the paper); `depth` that of depths over words.
    `root` is whether the word nearest to 0 is the root; NaN if the root has no state. Where L is
    one, the same of a chain: distances in words, depths from the left.
    """

    sentence: int
    heads: NDArray[np.int64]  # (L, m): undirected trees, as in `undirected_trees`
    hits: NDArray[np.int64]  # (L,): annotated arcs in the tree
    distance: Floats
    root: Floats
    depth: Floats
    plane: NDArray[np.float32]  # (L, m, 2): the words' two main directions after the matrix


def scored_sentences(
    stream: TreeStream, trees: TreeSentences, found: Fitted, rows: Sequence[int]
) -> list[SentenceScores]:
    """Scores of some sentences, in their order."""
    device = stream.scale.device
    distance, depth = (
        torch.from_numpy(found.matrices[kind]).to(device) * stream.scale[..., None]
        for kind in (DISTANCE, DEPTH)
    )
    scored: dict[int, SentenceScores] = {}
    for batch in stream.batches(rows):
        points = after(batch.states, distance)
        distances = squared_distances(points).cpu().numpy()
        norms = after(batch.states, depth).square().sum(3).cpu().numpy()
        for at, row in enumerate(batch.rows):
            one = trees.sentences[row]
            n, own = len(one), torch.from_numpy(np.flatnonzero(one.counted))
            scored[row] = _scored(
                row,
                one,
                distances[:, at, :n, :n],
                norms[:, at, :n],
                _plane(points[:, at, own.to(device)]),
            )
    return [scored[row] for row in rows]


def chain_scores(row: int, one: TreeSentence) -> SentenceScores:
    """What each word hanging from the one before it scores: the first word would be the root."""
    places = np.arange(len(one), dtype=np.float64)
    apart = np.abs(places[:, None] - places)
    nowhere = np.zeros((1, int(one.counted.sum()), 2), np.float32)
    return _scored(row, one, apart[None], places[None], nowhere)


def _scored(
    row: int, one: TreeSentence, distances: Floats, norms: Floats, plane: NDArray[np.float32]
) -> SentenceScores:
    own = np.flatnonzero(one.counted)
    heads = undirected_trees(-distances[:, own][:, :, own])
    place = np.full(len(one), -1)
    place[own] = np.arange(len(own))
    words, above = place[one.arcs], place[one.heads[one.arcs]]
    hits = (heads[:, words] == above) | (heads[:, above] == words)
    nearest = own[norms[:, own].argmin(axis=1)]
    root = (nearest == one.root).astype(np.float64)
    return SentenceScores(
        sentence=row,
        heads=heads,
        hits=hits.sum(axis=1),
        distance=spearman(distances, one.distances).mean(axis=1),
        root=root if one.root >= 0 else np.full_like(root, np.nan),
        depth=spearman(norms, one.depths),
        plane=plane,
    )


def spearman(found: NDArray[np.floating], known: NDArray[np.integer]) -> Floats:
    """Spearman's correlation over the last axis; 0 where all numbers are the same."""
    one, other = (rankdata(of, axis=-1) for of in (found, known))
    one, other = (of - of.mean(axis=-1, keepdims=True) for of in (one, other))
    size = np.sqrt((one**2).sum(axis=-1) * (other**2).sum(axis=-1))
    return np.asarray((one * other).sum(axis=-1) / np.where(size > 0, size, 1.0))


def _plane(points: Tensor) -> NDArray[np.float32]:
    """(L, m, 2): coordinates on the two main directions of points (L, m, K)."""
    centred = (points - points.mean(1, keepdim=True)).cpu()
    left, sizes, _ = torch.linalg.svd(centred, full_matrices=False)
    found = np.zeros((*centred.shape[:2], 2), np.float32)
    shown = min(2, sizes.shape[1])
    found[..., :shown] = (left * sizes[:, None])[..., :shown].numpy()
    return found
