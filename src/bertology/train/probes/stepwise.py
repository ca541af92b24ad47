"""Probes that are trained in small batches (Adam), many side by side.

Each probe has its own rate, which falls when it gets no better on held-out examples, until the
probe stops and its best weights are kept; when all of a kind have stopped, they see no more.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from bertology.train.probes.classifiers import Examples, Pass, Probe, Probes, mean_losses

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


class HiddenProbes(StepwiseProbes):
    """Weights (L, P, D, h), (L, P, h), (L, P, h, K), (L, P, K); every second one is a bias."""

    rate = 0.01

    def __init__(
        self,
        probes: Sequence[Probe],
        columns: Sequence[int],
        *,
        shape: tuple[int, int],
        hidden: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self.probes, self.columns = tuple(probes), list(columns)
        (layers, width), count, outputs = shape, len(probes), probes[0].outputs
        shapes = [(width, hidden), (hidden,), (hidden, outputs), (outputs,)]
        made = [torch.zeros(layers, count, *of) for of in shapes]
        for number, probe in enumerate(probes):
            generator = torch.Generator().manual_seed(probe.seed)
            for weight in made[::2]:
                drawn = torch.randn(weight[:, number].shape, generator=generator)
                weight[:, number] = drawn / math.sqrt(weight.shape[2])
        self._weights = [weight.to(device) for weight in made]
        self.level = torch.ones(layers, count, dtype=torch.long, device=device)

    @property
    def weights(self) -> Sequence[Tensor]:
        """First weights and biases, last weights and biases."""
        return self._weights

    @property
    def numbers_each(self) -> int:
        """Hidden units and outputs."""
        return sum(bias[0].numel() for bias in self._weights[1::2])

    def outputs(self, examples: Examples) -> Tensor:
        """(L, n, P, K)"""
        return self._last(self._inner(examples.states))

    def slopes(self, examples: Examples) -> list[Tensor]:
        """Of each probe's mean loss, by all its weights; written out, which is quicker by far."""
        inner = self._inner(examples.states)
        errors = self.errors(self._last(inner), examples.labels[:, self.columns])
        back = torch.einsum("lnpk,lphk->lnph", errors, self._weights[2])
        back = back.masked_fill_(inner <= 0, 0.0)
        flat = examples.states.transpose(1, 2) @ back.flatten(2)
        first = flat.reshape(*flat.shape[:2], *back.shape[2:])
        last = torch.einsum("lnph,lnpk->lphk", inner, errors)
        return [first.transpose(1, 2), back.sum(1), last, errors.sum(1)]

    def _inner(self, states: Tensor) -> Tensor:
        """Hidden units (L, n, P, h)."""
        first, bias = self._weights[:2]
        flat = states @ first.transpose(1, 2).flatten(2)
        return torch.relu_(flat.reshape(*flat.shape[:2], *bias.shape[1:]) + bias[:, None])

    def _last(self, inner: Tensor) -> Tensor:
        last, bias = self._weights[2:]
        return torch.einsum("lnph,lphk->lnpk", inner, last) + bias[:, None]
