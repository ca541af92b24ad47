"""Linear probes, each brought close to its one best place by a few hundred small steps.

The loss of a linear probe has one lowest point, so nothing has to be watched: all probes make the
same number of steps (Adam, in small batches), each shorter than the one before, down to nothing.
Where examples are many that is two or three looks at each of them; a solver that looks at all of
them before each step needs dozens.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bertology.train.probes.classifiers import Examples, Pass, Probe, Probes

_BETAS, _TINY = (0.9, 0.99), 1e-8
_RATE = 0.03  # of the first step
_USUAL = 1  # of the penalties, before the best one is looked for: the one above is tried first


class LinearProbes(Probes):
    """Weights (L, P, D, K) and biases (L, P, K)."""

    def __init__(
        self,
        probes: Sequence[Probe],
        columns: Sequence[int],
        *,
        shape: tuple[int, int],
        device: torch.device | str = "cpu",
    ) -> None:
        self.probes, self.columns = tuple(probes), list(columns)
        (layers, width), outputs = shape, probes[0].outputs
        of = (layers, len(probes))
        self.weight = torch.zeros(*of, width, outputs, device=device)
        self.bias = torch.zeros(*of, outputs, device=device)
        self.level = torch.full(of, _USUAL, device=device)

    @property
    def weights(self) -> Sequence[Tensor]:
        """Weights and biases."""
        return [self.weight, self.bias]

    def taken(self, numbers: Tensor) -> LinearProbes:
        """Some of the probes (p,), with copies of their weights."""
        layers, _, width, _ = self.weight.shape
        found = LinearProbes(
            [self.probes[i] for i in numbers.tolist()],
            [self.columns[i] for i in numbers.tolist()],
            shape=(layers, width),
            device=self.weight.device,
        )
        for name in ("weight", "bias", "level"):
            setattr(found, name, getattr(self, name)[:, numbers])
        return found

    @property
    def numbers_each(self) -> int:
        """Outputs."""
        return self.bias[0].numel()

    def outputs(self, examples: Examples) -> Tensor:
        """(L, n, P, K)"""
        return _outputs(examples.states, self.weight.transpose(1, 2).flatten(2), self.bias)


def _outputs(states: Tensor, flat: Tensor, bias: Tensor) -> Tensor:
    """(L, n, P, K) of weights (L, D, P · K) and biases (L, P, K)."""
    found = torch.baddbmm(bias.flatten(1)[:, None], states, flat)
    return found.reshape(*found.shape[:2], *bias.shape[1:])


def descended(
    probes: Sequence[LinearProbes],
    precisions: Sequence[Tensor],
    going: Sequence[Tensor],
    examples: Pass,
    *,
    steps: int,
    counts: Tensor,
) -> None:
    """Bring those that go (L, P) to where the sum of losses and the penalty (L, P) is least.

    The penalty is half the squares of weights times the `precisions`, 1 / C of scikit-learn.
    `counts` (columns,) are the examples that train each. `examples` are passed until `steps` are
    made, and batches are in another order each time.
    """
    descents = [
        _Descent(*of, counts, steps)
        for of in zip(probes, precisions, going, strict=True)
        if bool(of[2].any())
    ]
    made = 0
    while descents and made < steps:
        for some in examples():
            for one in descents:
                one.move(some)
            made += 1
            if made == steps:
                break
    for one in descents:
        one.close()


class _Descent:
    """The way of some probes; weights stand side by side (L, D, P · K), as products need them."""

    def __init__(
        self,
        probes: LinearProbes,
        precisions: Tensor,
        going: Tensor,
        counts: Tensor,
        steps: int,
    ) -> None:
        self._all, self._which = probes, going.any(0).nonzero()[:, 0]
        self._own = own = probes.taken(self._which)
        self._going, outputs = going[:, self._which], own.bias.shape[2]
        self._flat, self._bias = own.weight.transpose(1, 2).flatten(2), own.bias.clone()
        known = counts[own.columns].to(own.bias.device).clamp_min(1).float()  # (P,)
        self._decays = (precisions[:, self._which] / known).repeat_interleave(outputs, 1)[:, None]
        self._known, self._steps, self._made = known, steps, 0
        self._moments = [[torch.zeros_like(of) for of in (self._flat, self._bias)] for _ in _BETAS]

    def move(self, examples: Examples) -> None:
        """One step of Adam; weights, not biases, are drawn towards 0 by each probe's penalty."""
        own = self._own
        labels = examples.labels[:, own.columns]
        slopes = own.errors(_outputs(examples.states, self._flat, self._bias), labels)
        weight = torch.baddbmm(
            self._decays * self._flat, examples.states.transpose(1, 2), slopes.flatten(2)
        )
        bias = slopes.sum(1)
        if not own.numbers:
            # Beside the examples there is one, in the middle of all states, of which every class is
            # as likely: without it, classes that were never seen would be taken to be impossible.
            bias += (self._bias.softmax(2) - 1 / bias.shape[2]) / self._known[:, None]
        self._made += 1
        rate = _RATE * (1 - (self._made - 1) / self._steps) / (1 - _BETAS[0] ** self._made)
        rest = 1 - _BETAS[1] ** self._made
        for number, (place, slope) in enumerate(((self._flat, weight), (self._bias, bias))):
            first, second = (kept[number] for kept in self._moments)
            first.lerp_(slope, 1 - _BETAS[0])
            second.mul_(_BETAS[1]).addcmul_(slope, slope, value=1 - _BETAS[1])
            place.addcdiv_(first, (second / rest).sqrt_().add_(_TINY), value=-rate)

    def close(self) -> None:
        """Leave the probes that went where they have come to."""
        own, all_of = self._own, self._all
        layers, _, width, outputs = own.weight.shape
        wide = self._flat.reshape(layers, width, -1, outputs).transpose(1, 2)
        for place, found in ((all_of.weight, wide), (all_of.bias, self._bias)):
            going = self._going.reshape(*self._going.shape, *[1] * (found.dim() - 2))
            place[:, self._which] = torch.where(going, found, place[:, self._which])
