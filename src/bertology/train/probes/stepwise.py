"""Probes that are trained in small batches (Adam), many side by side.

Each probe has its own rate, which falls when it gets no better on held-out examples, until the
probe stops and its best weights are kept; when all of a kind have stopped, they see no more.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from bertology.train.probes.classifiers import Examples, Pass, Probes, mean_losses

_BETAS, _TINY = (0.9, 0.999), 1e-8
_HALVINGS = 3  # of the rate, before a probe stops
_EPOCHS = 40  # at most


class StepwiseProbes(Probes):
    """Weights are (L, P, …, …), biases (L, P, …)."""

    rate: ClassVar[float]
    """How far the first steps go."""

    @abstractmethod
    def slopes(self, examples: Examples) -> list[Tensor]:
        """Of each probe's mean loss, by all its weights."""


def trained(
    probes: Sequence[StepwiseProbes],
    decays: Sequence[Tensor],
    going: Sequence[Tensor],
    train: Pass,
    held: Pass,
) -> None:
    """Train those that go (L, P), with penalties (L, P), until they get no better on `held`.

    `train` and `held` are asked for their examples anew each epoch.
    """
    courses = [_Course(*of) for of in zip(probes, decays, going, strict=True)]
    for course, losses in zip(courses, mean_losses(probes, held()), strict=True):
        course.judge(losses, start=True)
    for _ in range(_EPOCHS):
        left = [course for course in courses if bool(course.rates.any())]
        if not left:
            break
        for examples in train():
            for course in left:
                course.move(examples)
        for course, losses in zip(
            left, mean_losses([course.probes for course in left], held()), strict=True
        ):
            course.judge(losses)
    for course in courses:
        course.close()


class _Course:
    """Probes on their way: moments, rates and best weights."""

    def __init__(self, probes: StepwiseProbes, decays: Tensor, going: Tensor) -> None:
        self.probes, self._decays = probes, decays[..., None, None]
        self.rates = probes.rate * going.float()
        self._moments = [[torch.zeros_like(w) for w in probes.weights] for _ in _BETAS]
        self._best = [weight.clone() for weight in probes.weights]
        self._least, self._step = torch.zeros_like(decays, dtype=torch.float64), 0

    def move(self, examples: Examples) -> None:
        """One step of Adam; weights, not biases, are drawn towards 0 by each probe's penalty."""
        self._step += 1
        for number, slope in enumerate(self.probes.slopes(examples)):
            weight = self.probes.weights[number]
            if weight.dim() > 3:
                slope = slope + self._decays * weight
            first, second = (kept[number] for kept in self._moments)
            first.lerp_(slope, 1 - _BETAS[0])
            second.mul_(_BETAS[1]).addcmul_(slope, slope, value=1 - _BETAS[1])
            sizes = self.rates / (1 - _BETAS[0] ** self._step)
            spread = (second / (1 - _BETAS[1] ** self._step)).sqrt_().add_(_TINY)
            weight -= sizes.reshape(*sizes.shape, *[1] * (weight.dim() - 2)) * first / spread

    def judge(self, losses: Tensor, *, start: bool = False) -> None:
        """Keep what is better than ever; others go on from their best at half the rate, or stop."""
        better = torch.ones_like(losses, dtype=torch.bool) if start else losses < self._least
        for weight, kept in zip(self.probes.weights, self._best, strict=True):
            kept[better] = weight[better]
            weight[~better] = kept[~better]
        self._least = torch.where(better, losses, self._least)
        self.rates = torch.where(better, self.rates, self.rates / 2)
        self.rates[self.rates < self.probes.rate / 2**_HALVINGS] = 0.0

    def close(self) -> None:
        """Take the best weights."""
        for weight, kept in zip(self.probes.weights, self._best, strict=True):
            weight.copy_(kept)
