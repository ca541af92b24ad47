"""Probes with one layer of hidden units."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from bertology.train.probes.classifiers import Examples, Probe
from bertology.train.probes.stepwise import StepwiseProbes


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
