"""A structural probe as Hewitt and Manning write it: one matrix, trained alone by PyTorch.

Differences of all pairs, automatic slopes, `torch.optim.Adam`; scores by scipy's spanning trees and
correlations. It uses none of our code for probes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import spearmanr
from torch.nn.utils.rnn import pad_sequence

from bertology.annotated.trees.distances import TreeSentence

Order = Sequence[Sequence[int]]


class PlainProbe(NamedTuple):
    """A matrix (D, k), and its mean loss on held-out sentences."""

    matrix: torch.Tensor
    loss: float


def plain_probe(
    states: Sequence[torch.Tensor],
    trees: Sequence[TreeSentence],
    start: torch.Tensor,
    *,
    depth: bool,
    epochs: Iterable[Order],
    held: Order,
    rate: float,
    halvings: int = 4,
) -> PlainProbe:
    """Train on the batches of each epoch; the rate is halved where `held` gets no better."""
    labels = [torch.from_numpy((t.depths if depth else t.distances).astype("f4")) for t in trees]
    matrix = torch.nn.Parameter(start.clone())
    optimiser = torch.optim.Adam([matrix], lr=rate)

    def loss_of(rows: Sequence[int]) -> torch.Tensor:
        given = pad_sequence([states[row] for row in rows], batch_first=True)
        sizes = torch.tensor([len(states[row]) for row in rows])
        there = torch.arange(given.shape[1]) < sizes[:, None]
        points = given @ matrix
        if depth:
            known = pad_sequence([labels[row] for row in rows], batch_first=True)
            off = ((points**2).sum(-1) - known).abs() * there
            return (off.sum(1) / sizes).sum()
        n = given.shape[1]
        known = torch.zeros(len(rows), n, n)
        for at, row in enumerate(rows):
            known[at, : sizes[at], : sizes[at]] = labels[row]
        found = ((points[:, :, None] - points[:, None]) ** 2).sum(-1)
        off = (found - known).abs() * (there[:, :, None] & there[:, None])
        return (off.sum((1, 2)) / sizes**2).sum()

    def mean_loss() -> float:
        with torch.no_grad():
            return float(sum(loss_of(rows) for rows in held)) / sum(map(len, held))

    least, best, now = mean_loss(), start.clone(), rate
    for batches in epochs:
        for rows in batches:
            optimiser.zero_grad()
            (loss_of(rows) / len(rows)).backward()
            optimiser.step()
        found = mean_loss()
        if found < least:
            least, best = found, matrix.detach().clone()
        else:
            now /= 2
            optimiser.param_groups[0]["lr"] = now
            if now < rate / 2**halvings:
                break
    return PlainProbe(best, least)


def plain_scores(
    states: Sequence[torch.Tensor],
    trees: Sequence[TreeSentence],
    distance: torch.Tensor,
    depth: torch.Tensor,
) -> tuple[float, float, float]:
    """Share of arcs found, mean correlation of distances over sentences of 5 to 50 words, roots."""
    hits, arcs, correlations, roots = 0, 0, [], []
    for state, tree in zip(states, trees, strict=True):
        points = (state @ distance).double().numpy()
        found = ((points[:, None] - points) ** 2).sum(-1)
        own = np.flatnonzero(tree.counted)
        sparse = minimum_spanning_tree(found[np.ix_(own, own)]).tocoo()
        pairs = {frozenset((int(own[a]), int(own[b]))) for a, b in zip(*sparse.coords, strict=True)}
        known = [frozenset((w, int(tree.heads[w]))) for w in np.flatnonzero(tree.arcs)]
        hits, arcs = hits + sum(pair in pairs for pair in known), arcs + len(known)
        if 5 <= len(tree) <= 50:
            rows = zip(found, tree.distances, strict=True)
            correlations.append(np.mean([spearmanr(a, b).statistic for a, b in rows]))
        norms = ((state @ depth) ** 2).sum(-1).numpy()
        roots.append(own[norms[own].argmin()] == tree.root)
    return hits / arcs, float(np.mean(correlations)), float(np.mean(roots))
