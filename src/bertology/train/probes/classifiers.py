"""Probes of states, for all layers and many questions at once: what is common to all kinds.

All probes of a layer see the same states, so the weights of those with as many outputs stand side
by side and one product serves them all: L layers × P probes, each with its own labels, examples
and penalty on large weights. Nothing is shared between probes: each is trained as if it were alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class Examples(NamedTuple):
    """Some examples: states (L, n, D), and the answer of each for each probe (n, P).

    Answers are numbers of classes, negative for none; or numbers to be told, NaN for none. Where
    probes weigh the words of spans themselves, states are those of T words at most in each of S
    spans (L, n, S, T, D), padded with 0, and `there` (n, S, T) says where there is a word.
    """

    states: Tensor
    labels: Tensor
    there: Tensor | None = None


Pass = Callable[[], Iterable[Examples]]


@dataclass(frozen=True)
class Probe:
    """What is asked of all layers: one of so many classes, or a number (by squared error)."""

    classes: int
    numbers: bool = False
    seed: int = 0

    @property
    def outputs(self) -> int:
        """How many numbers the probe gives."""
        return 1 if self.numbers else self.classes


class Probes(ABC):
    """P probes of one kind with K outputs each, at each of L layers.

    `columns` are those of the examples' labels that they answer; `level` (L, P) says which of the
    penalties each one has.
    """

    columns: Sequence[int]
    probes: Sequence[Probe]
    level: Tensor

    @property
    def numbers(self) -> bool:
        """Whether they tell numbers and not classes."""
        return self.probes[0].numbers

    @property
    @abstractmethod
    def weights(self) -> Sequence[Tensor]:
        """All weights, each (L, P, …)."""

    @property
    @abstractmethod
    def numbers_each(self) -> int:
        """How many numbers an example takes at each layer."""

    @abstractmethod
    def outputs(self, examples: Examples) -> Tensor:
        """(L, n, P, K)"""

    def errors(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Slopes of each probe's mean loss by `outputs` (L, n, P, K), for labels (n, P)."""
        if self.numbers:
            counted = ~labels.isnan()
            found = outputs - labels.nan_to_num()[None, ..., None]
        else:
            counted, at = labels >= 0, labels.clamp_min(0).long()[None, ..., None]
            found, at = outputs.softmax(3), at.expand(len(outputs), -1, -1, 1)
            found.scatter_add_(3, at, found.new_full((1, 1, 1, 1), -1.0).expand_as(at))
        return found.mul_((counted / counted.sum(0).clamp_min(1))[..., None])

    def losses(self, examples: Examples) -> tuple[Tensor, Tensor]:
        """(L, P) sums of losses (nats, or half squared errors) over (P,) examples that count."""
        outputs, labels = self.outputs(examples), examples.labels[:, self.columns]
        if self.numbers:
            counted = ~labels.isnan()
            found = (outputs[..., 0] - labels.nan_to_num()).square_() / 2
        else:
            counted, at = labels >= 0, labels.clamp_min(0).long()[None, ..., None]
            right = outputs.gather(3, at.expand(len(outputs), -1, -1, 1))[..., 0]
            found = outputs.logsumexp(3) - right
        return found.mul_(counted).sum(1).double(), counted.sum(0)

    def scores(self, examples: Examples) -> Tensor:
        """(L, n, P): 1 for a right class, else 0; of numbers 1 less the squared error."""
        outputs, labels = self.outputs(examples), examples.labels[:, self.columns]
        if self.numbers:
            return (1 - (outputs[..., 0] - labels) ** 2).nan_to_num()
        return (outputs.argmax(3) == labels).float()


def mean_losses(probes: Sequence[Probes], examples: Iterable[Examples]) -> list[Tensor]:
    """(L, P) of each."""
    sums: list[list[tuple[Tensor, Tensor]]] = [[] for _ in probes]
    for one in examples:
        for kept, some in zip(sums, probes, strict=True):
            kept.append(some.losses(one))
    found = []
    for kept in sums:
        losses, counts = (torch.stack(of).sum(0) for of in zip(*kept, strict=True))
        found.append(losses / counts.clamp_min(1))
    return found
