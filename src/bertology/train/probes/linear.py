"""Linear probes, each brought to its one best place by a few looks at all its examples.

The loss of a linear probe has one lowest point, so there is nothing to be drawn or tuned: steps are
those of L-BFGS, for all layers and probes side by side, each with its own length. What makes them
few is where they start from: the curvature is taken to be that of the states (in the eigenbasis of
their covariance, which all probes of a layer share) times that of the classes (of the probabilities
that the probe gives), as Martens and Grosse (2015) take it for networks. Steps that were made are
remembered when examples are added or penalties fall, since curvature hardly changes by that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bertology.train.probes.classifiers import Examples, Pass, Probe, Probes

__all__ = ["Basis", "LinearProbes", "basis_of", "descended"]

_STEPS, _MEMORY, _RENEWED = 60, 6, 3  # at most; steps remembered; curvature is renewed after
_NEAR = 5e-4  # nats that the next step would gain, where a probe stops
_LOOSE = 0.05  # over the examples: where they are few, less is known of the best place
_SHORTEST = 2.0**-10
_SAMPLE = 4096  # examples whose covariance is taken
_CURVED = 2048  # examples of which the curvature of classes is taken


@dataclass(frozen=True)
class Basis:
    """Of each layer: eigenvectors (L, D, D) of its states, and eigenvalues (L, D + 1).

    The last value is that of the bias, 1.
    """

    vectors: Tensor
    values: Tensor


def basis_of(examples: Iterable[Examples]) -> Basis:
    """Of some thousand examples, whose states are standardised."""
    sums, count = torch.zeros(()), 0
    for one in examples:
        sums, count = sums + one.states.transpose(1, 2) @ one.states, count + one.states.shape[1]
        if count >= _SAMPLE:
            break
    values, vectors = torch.linalg.eigh((sums / max(count, 1)).double())
    ones = values.new_ones(len(values), 1)
    # Directions in which these examples do not differ may be those of others.
    return Basis(vectors.float(), torch.cat([values.clamp_min(0) + 0.01, ones], 1).float())


class LinearProbes(Probes):
    """Weights (L, P, D + 1, K) in the basis of the states; the last row is the bias."""

    def __init__(self, probes: Sequence[Probe], columns: Sequence[int], basis: Basis) -> None:
        self.probes, self.columns, self.basis = tuple(probes), list(columns), basis
        layers, width = basis.values.shape
        shape = (layers, len(probes), width, probes[0].outputs)
        device = basis.values.device
        self.placed = torch.zeros(shape, device=device)
        self.level = torch.zeros(shape[:2], dtype=torch.long, device=device)
        # The last steps (L, P, m, D + 1, K), and how the slopes of the loss changed by them.
        past = (*shape[:2], _MEMORY, *shape[2:])
        self.steps, self.changes = (torch.zeros(past, device=device) for _ in range(2))

    @property
    def weights(self) -> Sequence[Tensor]:
        """All in one."""
        return [self.placed]

    def taken(self, numbers: Tensor) -> LinearProbes:
        """Some of the probes (p,), with copies of their weights."""
        probes = [self.probes[i] for i in numbers.tolist()]
        found = LinearProbes(probes, [self.columns[i] for i in numbers.tolist()], self.basis)
        found.placed, found.level = self.placed[:, numbers], self.level[:, numbers]
        found.steps, found.changes = self.steps[:, numbers], self.changes[:, numbers]
        return found

    @property
    def numbers_each(self) -> int:
        """Outputs."""
        return self.placed.shape[1] * self.placed.shape[3]

    def outputs(self, states: Tensor) -> Tensor:
        """(L, n, P, K)"""
        return _outputs(states, *_unrolled(self.placed, self.basis))


def _unrolled(placed: Tensor, basis: Basis) -> tuple[Tensor, Tensor]:
    """Weights (L, D, P · K) and biases (L, P, K), of the states as they are."""
    own = basis.vectors[:, None] @ placed[:, :, :-1]
    return own.transpose(1, 2).flatten(2).contiguous(), placed[:, :, -1]


def _outputs(states: Tensor, flat: Tensor, bias: Tensor) -> Tensor:
    found = torch.baddbmm(bias.flatten(1)[:, None], states, flat)
    return found.unflatten(2, bias.shape[1:])


def descended(
    probes: Sequence[LinearProbes],
    decays: Sequence[Tensor],
    going: Sequence[Tensor],
    examples: Pass,
) -> None:
    """Bring those that go (L, P) to where the mean loss and the penalty (L, P) are least.

    All look at the same examples; those that have arrived look no more.
    """
    descents = [
        _Descent(*of) for of in zip(probes, decays, going, strict=True) if bool(of[2].any())
    ]
    for step in range(_STEPS):
        left = [one for one in descents if bool(one.going.any())]
        if not left:
            break
        for one in left:
            one.open(curved=step % _RENEWED == 0)
        for some in examples():
            for one in left:
                one.see(some)
        for one in left:
            one.move()
    for one in descents:
        one.close()


class _Descent:
    """The way of some probes: where they are, where they look next, and by which step."""

    def __init__(self, probes: LinearProbes, decays: Tensor, going: Tensor) -> None:
        self._all, self._which = probes, going.any(0).nonzero()[:, 0]
        self._own = own = probes.taken(self._which)
        self.going = going[:, self._which]
        self._numbers, self._basis = own.numbers, own.basis
        # (L, P, D + 1, 1): large weights cost, biases do not.
        self._decays = decays[:, self._which, None, None].repeat(1, 1, own.placed.shape[2], 1)
        self._decays[:, :, -1] = 0.0
        self._at = self._ahead = own.placed
        self._slope = self._step = torch.zeros_like(own.placed)
        self._length = torch.ones_like(self.going, dtype=torch.float32)
        self._least = torch.full_like(self._length, torch.inf, dtype=torch.float64)
        self._gain = torch.zeros_like(self._length)
        self._sizes = torch.ones_like(own.placed[:, :, -1])  # (L, P, K), of curvature
        self._axes = torch.diag_embed(self._sizes)

    def open(self, *, curved: bool) -> None:
        """Before all examples are seen, from where the next step leads."""
        self._flat, self._bias = _unrolled(self._ahead, self._basis)
        self._slopes, self._bias_slopes = torch.zeros_like(self._flat), torch.zeros_like(self._bias)
        self._losses = self._length.new_zeros(self._length.shape, dtype=torch.float64)
        self._counts = torch.zeros_like(self._losses[0])
        self._wanted = _CURVED if curved else 0
        self._curvature, self._curved = torch.zeros_like(self._axes), 0.0 * self._counts

    def see(self, examples: Examples) -> None:
        """Losses and slopes of some examples."""
        labels = examples.labels[:, self._own.columns]
        outputs = _outputs(examples.states, self._flat, self._bias)
        losses, slopes, counted = self._own.errors(outputs, labels)
        self._losses += losses.sum(1)
        self._counts += counted.sum(0)
        if self._wanted > 0:
            self._see_curvature(slopes, labels, counted)
        self._slopes.baddbmm_(examples.states.transpose(1, 2), slopes.flatten(2))
        self._bias_slopes += slopes.sum(1)

    def _see_curvature(self, slopes: Tensor, labels: Tensor, counted: Tensor) -> None:
        """Of the loss, by outputs: on average, of the first examples."""
        self._wanted -= len(labels)
        self._curved += counted.sum(0)
        if self._numbers:
            self._curvature += counted.sum(0)[None, :, None, None]
            return
        at = labels.clamp_min(0).long()[None, ..., None].expand(len(slopes), -1, -1, 1)
        shares = slopes.scatter_add(3, at, counted[None, ..., None].expand_as(at).to(slopes.dtype))
        self._curvature += torch.diag_embed(shares.sum(1))
        shares = shares.transpose(1, 2)
        self._curvature -= shares.transpose(2, 3) @ shares

    def move(self) -> None:
        """Take the step if it led down, else one of half its length; look for the next one."""
        losses, slopes = self._seen()
        bound = self._least + 1e-4 * self._length * self._gain + 1e-6
        accepted = self.going & (losses <= bound)
        wide = accepted[..., None, None]
        if bool(self._least.isfinite().any()):
            self._remember(self._ahead - self._at, slopes - self._slope, accepted)
        self._at = torch.where(wide, self._ahead, self._at)
        self._slope = torch.where(wide, slopes, self._slope)
        self._least = torch.where(accepted, losses, self._least)
        self._renew(accepted)
        self._length = torch.where(accepted, 1.0, self._length / 2)
        whole = self._slope + self._decays * self._at
        self._step = torch.where(wide, -self._downhill(whole), self._step)
        self._gain = (whole * self._step).sum((2, 3))
        near = _NEAR + _LOOSE / self._counts.clamp_min(1)
        self.going = self.going & (self._gain < -2 * near) & (self._length > _SHORTEST)
        far = (self._length * self.going)[..., None, None]
        self._ahead = self._at + far * self._step

    def close(self) -> None:
        """Leave the probes where they have come to, with their last steps."""
        everyone, own = self._all, self._own
        everyone.placed[:, self._which] = self._at
        everyone.steps[:, self._which] = own.steps
        everyone.changes[:, self._which] = own.changes

    def _seen(self) -> tuple[Tensor, Tensor]:
        """(L, P) mean losses with penalties, and the slopes of the losses alone.

        Beside the examples there is one, in the middle of all states, of which every class is as
        likely: without it, classes that were never seen would be taken to be impossible.
        """
        losses, bias = self._losses, self._bias_slopes
        if not self._numbers:
            shares = self._bias.log_softmax(2)
            losses = losses - shares.mean(2)
            bias = bias + shares.exp() - 1 / shares.shape[2]
        counts = self._counts + (0 if self._numbers else 1)
        counts = counts.clamp_min(1)
        own = self._slopes.unflatten(2, self._bias.shape[1:]).transpose(1, 2)  # (L, P, D, K)
        own = self._basis.vectors.transpose(1, 2)[:, None] @ own
        slopes = torch.cat([own, bias[:, :, None]], 2) / counts.float()[:, None, None]
        penalty = (self._decays * self._ahead**2).sum((2, 3)) / 2
        return losses / counts + penalty, slopes

    def _remember(self, step: Tensor, change: Tensor, accepted: Tensor) -> None:
        kept = (accepted & ((step * change).sum((2, 3)) > 0))[..., None, None, None]
        own = self._own
        for name, new in (("steps", step), ("changes", change)):
            old = getattr(own, name)
            moved = torch.cat([old[:, :, 1:], new[:, :, None]], 2)
            setattr(own, name, torch.where(kept, moved, old))

    def _renew(self, accepted: Tensor) -> None:
        """The curvature of classes, as axes and sizes, where it was seen anew."""
        seen = accepted & (self._curved > 0)
        if not bool(seen.any()):
            return
        found = self._curvature / self._curved.clamp_min(1).float()[:, None, None]
        sizes, axes = torch.linalg.eigh(found)
        sizes = sizes.clamp_min(1e-4 * sizes.mean(2, keepdim=True).clamp_min(0) + 1e-6)
        self._sizes = torch.where(seen[..., None], sizes, self._sizes)
        self._axes = torch.where(seen[..., None, None], axes, self._axes)

    def _by_curvature(self, slopes: Tensor) -> Tensor:
        """Slopes (L, P, m, D + 1, K) over the curvature that is supposed."""
        sizes = self._basis.values[:, None, :, None] * self._sizes[:, :, None] + self._decays
        axes = self._axes[:, :, None]
        return ((slopes @ axes) / sizes[:, :, None]) @ axes.transpose(3, 4)

    def _downhill(self, slopes: Tensor) -> Tensor:
        """Slopes over the curvature that the last steps have shown.

        L-BFGS in the compact form of Byrd, Nocedal and Schnabel (1994): few products, whatever the
        number of steps. Steps that were not made yet are zeros, and change nothing.
        """
        steps = self._own.steps
        changes = self._own.changes + self._decays[:, :, None] * steps
        first = self._by_curvature(torch.cat([changes, slopes[:, :, None]], 2)).flatten(3)
        steps, changes = steps.flatten(3), changes.flatten(3)  # (L, P, m, N)
        by_change, by_slope = first[:, :, :-1], first[:, :, -1:]
        bent = (steps @ changes.transpose(2, 3)).double()
        sizes = (changes @ by_change.transpose(2, 3)).double()
        diagonal = bent.diagonal(dim1=2, dim2=3)
        made = diagonal > 0
        # Of the last step that was made: how much the supposed curvature is too large.
        last = (made * torch.arange(1, _MEMORY + 1, device=made.device)).argmax(2, keepdim=True)
        scale = diagonal.gather(2, last) / sizes.diagonal(dim1=2, dim2=3).gather(2, last)
        scale = torch.where(made.any(2, keepdim=True), scale, 1.0)[..., None]
        upper = bent.triu() + torch.diag_embed((~made).double())
        along = (steps @ slopes.flatten(2)[..., None]).double()  # (L, P, m, 1)
        share = torch.linalg.solve_triangular(upper, along, upper=True)
        rest = diagonal[..., None] * share + scale * (
            sizes @ share - (changes @ by_slope.transpose(2, 3)).double()
        )
        back = torch.linalg.solve_triangular(upper.transpose(2, 3), rest, upper=False)
        scale, share, back = scale.float(), share.float(), back.float()
        found = scale * (by_slope - share.transpose(2, 3) @ by_change)
        return (found + back.transpose(2, 3) @ steps).reshape(slopes.shape)
