"""Structural probes (Hewitt and Manning 2019) of all layers and ranks, trained together.

A distance probe is a matrix B such that the squared distance of two words, ‖B(h_i − h_j)‖², is the
number of arcs between them; a depth probe has ‖B h_i‖² as the number of arcs to the root.
The matrices of all ranks and both kinds stand side by side, so that one product per batch serves
them all in every layer, and slopes are written out. Nothing is shared between probes: each has its
own rate, which falls when it gets no better on held-out sentences, until the probe stops and its
best matrix is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bertology.train.probes.tree_streams import TreeBatch

__all__ = ["DEPTH", "DISTANCE", "KINDS", "Advance", "StructuralProbes", "after", "trained"]

DISTANCE, DEPTH = KINDS = ("distance", "depth")
_BETAS, _TINY = (0.9, 0.999), 1e-8
_START = 0.05  # how large the numbers of a matrix may be at the start, as in the paper
_HALVINGS = 4  # of its rate, before a probe stops

Pass = Callable[[], Iterable[TreeBatch]]
Advance = Callable[[int, int], None]
"""Told how many epochs are done, of how many at most."""


@dataclass(frozen=True)
class _Column:
    """One probe: what it tells, its rank, and where its columns begin."""

    kind: str
    rank: int
    start: int

    @property
    def at(self) -> slice:
        return slice(self.start, self.start + self.rank)


class StructuralProbes:
    """Matrices (L, D, C) for L layers: P probes side by side, of both kinds and all ranks."""

    def __init__(
        self,
        layers: int,
        width: int,
        ranks: Sequence[int],
        *,
        kinds: Sequence[str] = KINDS,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        found, start = [], 0
        for kind in kinds:
            for rank in ranks:
                found.append(_Column(kind, rank, start))
                start += rank
        self.probes = tuple(found)
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.rand((layers, width, start), generator=generator)
        self.weights = (_START * (2 * drawn - 1)).to(device)
        self.owner = torch.tensor([p for p, one in enumerate(found) for _ in range(one.rank)])

    def matrix(self, probe: int) -> Tensor:
        """(L, D, rank): that of one probe."""
        return self.weights[:, :, self.probes[probe].at]

    def projected(self, states: Tensor) -> Tensor:
        """(L, b, n, C) of states (L, b, n, D)."""
        return after(states, self.weights)

    def losses(self, batch: TreeBatch) -> Tensor:
        """(L, P): what predictions are off, on average over a sentence's pairs, or its words.

        Sums over the sentences of the batch.
        """
        every, words, pairs = self.projected(batch.states), *_weights(batch)
        found = []
        for probe in self.probes:
            points = every[..., probe.at].contiguous()
            if probe.kind == DISTANCE:
                error = squared_distances(points).sub_(batch.distances)
                found.append(error.abs_().mul_(pairs).sum((1, 2, 3)))
            else:
                error = points.square().sum(3).sub_(batch.depths)
                found.append(error.abs_().mul_(words).sum((1, 2)))
        return torch.stack(found, dim=1)

    def slopes(self, batch: TreeBatch) -> Tensor:
        """(L, D, C): of each probe's mean loss over the sentences."""
        every, words, pairs = self.projected(batch.states), *_weights(batch)
        words, pairs = (of / len(batch.rows) for of in (2 * words, 4 * pairs))
        for probe in self.probes:
            points = every[..., probe.at].contiguous()
            if probe.kind == DISTANCE:
                # Of a pair, p = ‖t_i − t_j‖², and dp/dt_i = 2 (t_i − t_j); each stands there twice.
                pull = squared_distances(points).sub_(batch.distances).sign_().mul_(pairs).neg_()
                pull.diagonal(dim1=-2, dim2=-1).sub_(pull.sum(3))
                every[..., probe.at] = pull @ points
            else:
                pull = points.square().sum(3).sub_(batch.depths).sign_().mul_(words)
                every[..., probe.at] = points.mul_(pull[..., None])
        return batch.states.flatten(1, 2).transpose(1, 2) @ every.flatten(1, 2)


def _weights(batch: TreeBatch) -> tuple[Tensor, Tensor]:
    """What a word (b, n) and a pair of words (b, n, n) weigh: sentences are worth the same."""
    words = batch.there / batch.sizes[:, None]
    return words, words[:, :, None] * words[:, None]


def after(states: Tensor, matrices: Tensor) -> Tensor:
    """(L, b, n, C) of states (L, b, n, D) and matrices (L, D, C)."""
    found: Tensor = states.flatten(1, 2) @ matrices
    return found.reshape(*states.shape[:3], matrices.shape[2])


def squared_distances(points: Tensor) -> Tensor:
    """(…, n, n) between points (…, n, k)."""
    # Laid out anew: with the turned view, products of small matrices are ten times slower on CPUs.
    products = points @ points.transpose(-1, -2).contiguous()
    squares = products.diagonal(dim1=-2, dim2=-1).clone()
    return products.mul_(-2).add_(squares[..., None]).add_(squares[..., None, :])


def trained(
    probes: StructuralProbes,
    train: Pass,
    held: Pass,
    *,
    rate: float,
    epochs: int,
    advance: Advance = lambda done, of: None,
) -> Tensor:
    """Train all probes, each until it gets no better on `held`; its best losses there, (L, P).

    `train` and `held` are asked for their batches anew each epoch.
    """
    mean, square = (torch.zeros_like(probes.weights) for _ in _BETAS)
    best, least = probes.weights.clone(), _mean_losses(probes, held())
    rates = torch.full_like(least, rate)
    owner = probes.owner.to(least.device)
    step = 0
    for epoch in range(epochs):
        sizes = -rates[:, None, owner]
        for batch in train():
            step += 1
            slope = probes.slopes(batch)
            mean.lerp_(slope, 1 - _BETAS[0])
            square.mul_(_BETAS[1]).addcmul_(slope, slope, value=1 - _BETAS[1])
            # Adam's step, what is the same for all numbers being taken together
            first, second = (1 - beta**step for beta in _BETAS)
            under = square.sqrt().add_(_TINY * second**0.5).div_(sizes)
            probes.weights.addcdiv_(mean, under, value=second**0.5 / first)
        found = _mean_losses(probes, held())
        better = found < least
        best = torch.where(better[:, None, owner], probes.weights, best)
        least = torch.where(better, found, least)
        rates = torch.where(better, rates, rates / 2)
        rates[rates < rate / 2**_HALVINGS] = 0.0
        advance(epoch + 1, epochs)
        if not rates.any():
            advance(epochs, epochs)
            break
    probes.weights = best
    return least


def _mean_losses(probes: StructuralProbes, batches: Iterable[TreeBatch]) -> Tensor:
    sums, count = torch.zeros(()), 0
    for batch in batches:
        sums, count = sums + probes.losses(batch), count + len(batch.rows)
    return sums / max(count, 1)
