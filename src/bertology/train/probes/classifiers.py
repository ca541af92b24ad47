"""Linear and one-hidden-layer classifiers of states, for all layers and many questions at once.

All probes of a layer see the same states, so their weights stand side by side and one product
serves them all: L layers × P probes, each with its own labels, the examples that it may see, its
penalty on large weights and its seed. Nothing is shared between probes: the sum of their losses has
the same slopes as each loss alone, and each has its own rate, which falls when it gets no better on
held-out examples, until the probe stops and its best weights are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Examples", "Probe", "Probes", "trained"]

_BETAS, _TINY = (0.9, 0.999), 1e-8
_HALVINGS = 4  # of its rate, before a probe stops
_NUMBERS = 2**23  # logits of a batch: 32 MiB
_NEVER = -1e9


class Examples(NamedTuple):
    """Some examples: states (L, n, D), and the label of each for each probe (n, P), -1 for none."""

    states: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Probe:
    """What is asked of all layers: how many classes there are, and how the probe is trained."""

    classes: int
    decay: float = 0.0
    seed: int = 0


Pass = Callable[[], Iterable[Examples]]


class Probes:
    """The weights of P probes for each of L layers; `hidden` units between, or none.

    Classes that a probe does not have get a bias far below all others, and stay there.
    """

    def __init__(
        self,
        layers: int,
        width: int,
        probes: Sequence[Probe],
        *,
        hidden: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        self.probes, self._hidden = tuple(probes), hidden
        most = max(probe.classes for probe in probes)
        count, inner = len(probes), hidden or width
        # (L, P, D, h) and (L, P, h) where there are hidden units; (L, P, inner, K) and (L, P, K)
        shapes = [(layers, count, inner, most), (layers, count, most)]
        if hidden:
            shapes = [(layers, count, width, hidden), (layers, count, hidden), *shapes]
        weights = [torch.zeros(shape) for shape in shapes]
        for number, probe in enumerate(probes):
            generator = torch.Generator().manual_seed(probe.seed)
            for weight in weights[::2]:
                drawn = torch.randn(weight[:, number].shape, generator=generator)
                # Linear ones have one best place and may start anywhere.
                size = math.sqrt(weight.shape[2]) if hidden else 100.0
                weight[:, number] = drawn / size
            weights[-1][:, number, probe.classes :] = _NEVER
        self.weights = [weight.to(device) for weight in weights]

    def batch_size(self) -> int:
        """How many examples a batch may have, so that its logits take little memory."""
        layers, probes, most = self.weights[-1].shape
        return max(32, min(1024, _NUMBERS // (layers * probes * (most + self._hidden))))

    def logits(self, states: Tensor) -> Tensor:
        """(L, n, P, K) of states (L, n, D)."""
        return self._last(self._inner(states))

    def losses(self, examples: Examples) -> tuple[Tensor, Tensor]:
        """(L, P) sums of -log p of the right class in nats, over the (P,) examples that count."""
        losses, _, counts = _errors(self.logits(examples.states), examples.labels)
        return losses, counts

    def slopes(self, examples: Examples) -> list[Tensor]:
        """Of each probe's mean loss, by all its weights; written out, which is quicker by far."""
        inner = self._inner(examples.states)
        _, errors, counts = _errors(self._last(inner), examples.labels)
        errors /= counts.clamp_min(1)[:, None]  # (L, n, P, K)
        last = [_product(inner, errors), errors.sum(1)]
        if not self._hidden:
            return last
        back = torch.einsum("lnpk,lphk->lnph", errors, self.weights[2])
        back = back.masked_fill_(inner <= 0, 0.0)
        return [_product(examples.states, back), back.sum(1), *last]

    def _inner(self, states: Tensor) -> Tensor:
        """What the last weights get: the states, or hidden units (L, n, P, h)."""
        if not self._hidden:
            return states
        first, bias = self.weights[:2]
        return torch.relu_(_side_by_side(states, first) + bias[:, None])

    def _last(self, inner: Tensor) -> Tensor:
        last, bias = self.weights[-2:]
        if self._hidden:
            return torch.einsum("lnph,lphk->lnpk", inner, last) + bias[:, None]
        return _side_by_side(inner, last) + bias[:, None]


def _side_by_side(states: Tensor, weights: Tensor) -> Tensor:
    """(L, n, P, K) of states (L, n, D) and weights (L, P, D, K), in one product."""
    layers, count, width, most = weights.shape
    flat = weights.transpose(1, 2).reshape(layers, width, count * most)
    return (states @ flat).reshape(layers, -1, count, most)


def _product(inner: Tensor, errors: Tensor) -> Tensor:
    """The slopes (L, P, D, K) of weights between `inner` and what has these `errors`."""
    if inner.dim() == 4:
        return torch.einsum("lnph,lnpk->lphk", inner, errors)
    layers, _, count, most = errors.shape
    flat = inner.transpose(1, 2) @ errors.flatten(2)
    return flat.reshape(layers, -1, count, most).transpose(1, 2)


def _errors(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(L, P) losses, (L, n, P, K) what logits lack or have too much, and (P,) examples.

    `logits` are overwritten.
    """
    counted = labels >= 0  # (n, P)
    at = labels.clamp_min(0)[None, :, :, None].expand(len(logits), -1, -1, 1)
    top = logits.amax(3, keepdim=True)
    shares = logits.sub_(top)
    right = shares.gather(3, at)
    shares = shares.exp_()
    total = shares.sum(3, keepdim=True)
    losses = ((total.log() - right)[..., 0] * counted).sum(1)
    shares *= counted[..., None] / total
    shares.scatter_add_(3, at, -counted[..., None].to(shares.dtype).expand_as(at))
    return losses, shares, counted.sum(0)


def trained(
    probes: Probes,
    train: Pass,
    held: Pass,
    *,
    rate: float = 0.01,
    epochs: int = 40,
    advance: Callable[[int], None] = lambda epochs: None,
) -> Tensor:
    """Train all probes, each until it gets no better on `held`; its best losses there, (L, P).

    `train` and `held` are asked for their examples anew each epoch.
    """
    device = probes.weights[0].device
    decays = torch.tensor([probe.decay for probe in probes.probes], device=device)
    moments = [[torch.zeros_like(w) for w in probes.weights] for _ in _BETAS]
    best = [weight.clone() for weight in probes.weights]
    least = _mean_losses(probes, held())
    rates = torch.full_like(least, rate)
    step = 0
    for epoch in range(epochs):
        for examples in train():
            step += 1
            _move(probes, examples, moments, rates, decays, step)
        found = _mean_losses(probes, held())
        better = found < least
        for weight, kept in zip(probes.weights, best, strict=True):
            kept[better] = weight[better]
        least = torch.where(better, found, least)
        rates = torch.where(better, rates, rates / 2)
        rates[rates < rate / 2**_HALVINGS] = 0.0
        advance(1)
        if not rates.any():
            advance(epochs - epoch - 1)
            break
    probes.weights = best
    return least


def _move(
    probes: Probes,
    examples: Examples,
    moments: Sequence[Sequence[Tensor]],
    rates: Tensor,
    decays: Tensor,
    step: int,
) -> None:
    """One step of Adam; weights, not biases, are drawn towards 0 by each probe's penalty."""
    for number, slope in enumerate(probes.slopes(examples)):
        weight = probes.weights[number]
        if number % 2 == 0:
            slope = slope + decays[:, None, None] * weight
        for beta, kept, power in zip(_BETAS, moments, (1, 2), strict=True):
            kept[number].mul_(beta).add_(slope**power, alpha=1 - beta)
        mean, square = (
            kept[number] / (1 - beta**step) for beta, kept in zip(_BETAS, moments, strict=True)
        )
        size = rates.reshape(*rates.shape, *[1] * (weight.dim() - 2))
        weight -= size * mean / (square.sqrt_() + _TINY)


def _mean_losses(probes: Probes, examples: Iterable[Examples]) -> Tensor:
    found = [probes.losses(one) for one in examples]
    sums, counts = (torch.stack(of).sum(0) for of in zip(*found, strict=True))
    return sums / counts.clamp_min(1)
