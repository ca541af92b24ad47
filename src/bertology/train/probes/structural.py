"""Structural probes (Hewitt and Manning 2019) of all layers and ranks, trained together.

A distance probe is a matrix B such that the squared distance of two words, ‖B(h_i − h_j)‖², is the
number of arcs between them; a depth probe has ‖B h_i‖² as the number of arcs to the root. Each kind
and rank has its matrices of all layers in one array, so that a batch is read once and one product
serves every layer; slopes are written out. Nothing is shared between probes: each has its own rate,
which falls when it gets no better on held-out sentences, until the probe stops and its best matrix
is kept. Those that have stopped cost nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bertology.train.probes.tree_streams import TreeBatch

DISTANCE, DEPTH = KINDS = ("distance", "depth")
_BETAS, _TINY = (0.9, 0.999), 1e-8
_START = 0.05  # how large the numbers of a matrix may be at the start, as in the paper
_HALVINGS = 4  # of its rate, before a probe stops

Pass = Callable[[], Iterable[TreeBatch]]
Advance = Callable[[int, int], None]
"""Told how many epochs are done, of how many at most."""


@dataclass(frozen=True)
class Probe:
    """What a matrix tells, and its rank."""

    kind: str
    rank: int

    def losses(self, states: Tensor, matrices: Tensor, batch: TreeBatch) -> Tensor:
        """(L,): what predictions are off, on average over a sentence's pairs, or its words.

        Sums over the sentences of the batch, of states (L, b, n, D) and matrices (L, D, rank).
        """
        points, (words, pairs) = after(states, matrices), _weights(batch)
        if self.kind == DISTANCE:
            error = squared_distances(points).sub_(batch.distances)
            return error.abs_().mul_(pairs).sum((1, 2, 3))
        error = points.square().sum(3).sub_(batch.depths)
        return error.abs_().mul_(words).sum((1, 2))

    def slopes(self, states: Tensor, matrices: Tensor, batch: TreeBatch) -> Tensor:
        """(L, D, rank): of the mean loss over the sentences."""
        points, (words, pairs) = after(states, matrices), _weights(batch)
        if self.kind == DISTANCE:
            # Of a pair, p = ‖t_i − t_j‖², and dp/dt_i = 2 (t_i − t_j); each stands there twice.
            pairs = pairs * (-4 / len(batch.rows))
            pull = squared_distances(points).sub_(batch.distances).sign_().mul_(pairs)
            pull.diagonal(dim1=-2, dim2=-1).sub_(pull.sum(3))
            moved = pull @ points
        else:
            words = words * (2 / len(batch.rows))
            pull = points.square().sum(3).sub_(batch.depths).sign_().mul_(words)
            moved = points.mul_(pull[..., None])
        return states.flatten(1, 2).transpose(1, 2) @ moved.flatten(1, 2)


class StructuralProbes:
    """P probes, of both kinds and all ranks, with matrices (L, D, rank) each."""

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
        self.probes = tuple(Probe(kind, rank) for kind in kinds for rank in ranks)
        generator = torch.Generator().manual_seed(seed)
        sizes = [one.rank for one in self.probes]
        drawn = torch.rand((layers, width, sum(sizes)), generator=generator)
        starts = torch.split((_START * (2 * drawn - 1)).to(device), sizes, dim=2)
        self.matrices = [one.contiguous() for one in starts]


def _weights(batch: TreeBatch) -> tuple[Tensor, Tensor]:
    """What a word (b, n) and a pair of words (b, n, n) weigh: sentences are worth the same."""
    words = batch.there / batch.sizes[:, None]
    return words, words[:, :, None] * words[:, None]


def after(states: Tensor, matrices: Tensor) -> Tensor:
    """(L, b, n, k) of states (L, b, n, D) and matrices (L, D, k)."""
    found: Tensor = states.flatten(1, 2) @ matrices
    return found.reshape(*states.shape[:3], matrices.shape[2])


def squared_distances(points: Tensor) -> Tensor:
    """(…, n, n) between points (…, n, k)."""
    # Laid out anew: with the turned view, products of small matrices are ten times slower on CPUs.
    products = points @ points.transpose(-1, -2).contiguous()
    squares = products.diagonal(dim1=-2, dim2=-1).clone()
    return products.mul_(-2).add_(squares[..., None]).add_(squares[..., None, :])


class _Training:
    """One kind and rank, in the layers where it still gets better."""

    def __init__(self, probe: Probe, matrices: Tensor, rate: float) -> None:
        self.probe, self.best = probe, matrices
        self._now, self._rate = matrices.clone(), rate
        self._mean, self._square = (torch.zeros_like(matrices) for _ in _BETAS)
        self._layers = torch.arange(len(matrices), device=matrices.device)
        self._rates = torch.full((len(matrices),), rate, device=matrices.device)
        self.least = torch.full((len(matrices),), torch.inf, device=matrices.device)
        self._step = 0

    @property
    def going_on(self) -> bool:
        return len(self._layers) > 0

    def _states(self, batch: TreeBatch) -> Tensor:
        return batch.states if len(self._layers) == len(self.best) else batch.states[self._layers]

    def move(self, batch: TreeBatch) -> None:
        """One step of Adam; what is the same for all numbers is taken together."""
        self._step += 1
        slope = self.probe.slopes(self._states(batch), self._now, batch)
        self._mean.lerp_(slope, 1 - _BETAS[0])
        self._square.mul_(_BETAS[1]).addcmul_(slope, slope, value=1 - _BETAS[1])
        first, second = (1 - beta**self._step for beta in _BETAS)
        under = self._square.sqrt().add_(_TINY * second**0.5).div_(-self._rates[:, None, None])
        self._now.addcdiv_(self._mean, under, value=second**0.5 / first)

    def losses(self, batch: TreeBatch) -> Tensor:
        """Sums over the sentences of the batch, by layer that goes on."""
        return self.probe.losses(self._states(batch), self._now, batch)

    def judge(self, found: Tensor) -> None:
        """Keep what is better on held-out sentences; lower the other rates, stop the lowest."""
        better = found < self.least[self._layers]
        at = self._layers[better]
        self.best[at], self.least[at] = self._now[better], found[better]
        self._rates = torch.where(better, self._rates, self._rates / 2)
        stay = self._rates >= self._rate / 2**_HALVINGS
        if not bool(stay.all()):
            self._layers, self._rates = self._layers[stay], self._rates[stay]
            self._now, self._mean, self._square = (
                of[stay] for of in (self._now, self._mean, self._square)
            )


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
    every = [
        _Training(one, matrices, rate)
        for one, matrices in zip(probes.probes, probes.matrices, strict=True)
    ]
    _judge(every, held)
    for epoch in range(epochs):
        going = [one for one in every if one.going_on]
        if not going:
            break
        for batch in train():
            for one in going:
                one.move(batch)
        _judge(going, held)
        advance(epoch + 1, epochs)
    advance(epochs, epochs)
    probes.matrices = [one.best for one in every]
    return torch.stack([one.least for one in every], dim=1)


def _judge(some: Sequence[_Training], held: Pass) -> None:
    sums: list[Tensor | float] = [0.0] * len(some)
    count = 0
    for batch in held():
        count += len(batch.rows)
        sums = [kept + one.losses(batch) for kept, one in zip(sums, some, strict=True)]
    for kept, one in zip(sums, some, strict=True):
        one.judge(torch.as_tensor(kept) / max(count, 1))
