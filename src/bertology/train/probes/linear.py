"""Linear probes, each brought to its one best place by a few looks at all its examples.

The loss of a linear probe has one lowest point, so there is nothing to be drawn or tuned: steps are
those of L-BFGS, for all layers and probes side by side, each with its own length. What makes them
few is where they start from: states are standardised, and the curvature by classes is that of the
probabilities that the probe gives, as Martens and Grosse (2015) have it for the layers of networks.
Steps that were made are remembered when examples are added or penalties change, since curvature
hardly changes by that.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bertology.train.probes.classifiers import Examples, Pass, Probe, Probes

__all__ = ["LinearProbes", "descended"]

_STEPS, _MEMORY, _RENEWED = 60, 6, 3  # at most; steps remembered; curvature is renewed after
_NEAR = 5e-4  # nats that the next step would gain, where a probe stops
_LOOSE = 0.5  # nats over the examples: where they are few, less is known of the best place
_SHORTEST = 2.0**-10
_USUAL = 2  # of the penalties, before the best one is looked for
_CURVED = 2048  # examples of which the curvature of classes is taken


class LinearProbes(Probes):
    """Weights (L, P, D + 1, K), the last row being the bias."""

    def __init__(
        self,
        probes: Sequence[Probe],
        columns: Sequence[int],
        *,
        shape: tuple[int, int],
        device: torch.device | str = "cpu",
    ) -> None:
        self.probes, self.columns = tuple(probes), list(columns)
        layers, width = shape
        of, each = (layers, len(probes)), (width + 1, probes[0].outputs)
        self.placed = torch.zeros(*of, *each, device=device)
        self.level = torch.full(of, _USUAL, device=device)
        # The last steps (L, P, m, D + 1, K), how the slopes of the loss changed by them, and when
        # they were made (L, P, m), 0 being never.
        self.steps, self.changes = (
            torch.zeros(*of, _MEMORY, *each, device=device) for _ in range(2)
        )
        self.times = torch.zeros(*of, _MEMORY, dtype=torch.long, device=device)

    @property
    def weights(self) -> Sequence[Tensor]:
        """All in one."""
        return [self.placed]

    def taken(self, numbers: Tensor) -> LinearProbes:
        """Some of the probes (p,), with copies of their weights."""
        layers, _, wide, _ = self.placed.shape
        found = LinearProbes(
            [self.probes[i] for i in numbers.tolist()],
            [self.columns[i] for i in numbers.tolist()],
            shape=(layers, wide - 1),
            device=self.placed.device,
        )
        for name in ("placed", "level", "steps", "changes", "times"):
            setattr(found, name, getattr(self, name)[:, numbers])
        return found

    @property
    def numbers_each(self) -> int:
        """Outputs."""
        return self.placed.shape[1] * self.placed.shape[3]

    def outputs(self, examples: Examples) -> Tensor:
        """(L, n, P, K)"""
        return _outputs(examples.states, *_unrolled(self.placed))


def _unrolled(placed: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (L, D, P · K) and biases (L, P, K)."""
    return placed[:, :, :-1].transpose(1, 2).flatten(2), placed[:, :, -1]


def _outputs(states: Tensor, flat: Tensor, bias: Tensor) -> Tensor:
    found = torch.baddbmm(bias.flatten(1)[:, None], states, flat)
    return found.reshape(*found.shape[:2], *bias.shape[1:])


def descended(
    probes: Sequence[LinearProbes],
    precisions: Sequence[Tensor],
    going: Sequence[Tensor],
    examples: Pass,
    *,
    near: tuple[float, float] = (_NEAR, _LOOSE),
) -> None:
    """Bring those that go (L, P) to where the sum of losses and the penalty (L, P) is least.

    The penalty is half the squares of weights times the `precisions`, 1 / C of scikit-learn. They
    stop where a step would gain less than `near`: nats of each example, and of all together.

    All look at the same examples; those that have arrived look no more.
    """
    descents = [
        _Descent(*of, near)
        for of in zip(probes, precisions, going, strict=True)
        if bool(of[2].any())
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

    def __init__(
        self, probes: LinearProbes, precisions: Tensor, going: Tensor, near: tuple[float, float]
    ) -> None:
        self._all, self._which = probes, going.any(0).nonzero()[:, 0]
        self._own = own = probes.taken(self._which)
        self.going = going[:, self._which]
        self._numbers, self._near = own.numbers, near
        # (L, P, D + 1, 1): large weights cost, biases do not.
        self._costs = precisions[:, self._which, None, None].repeat(1, 1, own.placed.shape[2], 1)
        self._costs[:, :, -1] = 0.0
        self._decays = self._costs  # over the number of examples, once it is known
        self._at = self._ahead = own.placed
        self._slope = self._step = torch.zeros_like(own.placed)
        self._length = torch.ones_like(self.going, dtype=torch.float32)
        self._least = torch.full_like(self._length, torch.inf, dtype=torch.float64)
        self._gain = torch.zeros_like(self._length)
        self._sizes = torch.ones_like(own.placed[:, :, -1])  # (L, P, K), of curvature
        self._axes = torch.diag_embed(self._sizes)

    def open(self, *, curved: bool) -> None:
        """Before all examples are seen, from where the next step leads."""
        self._flat, self._bias = _unrolled(self._ahead)
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
        near = self._near[0] + self._near[1] / self._counts.clamp_min(1)
        self.going = self.going & (self._gain < -2 * near) & (self._length > _SHORTEST)
        far = (self._length * self.going)[..., None, None]
        self._ahead = self._at + far * self._step

    def close(self) -> None:
        """Leave the probes where they have come to, with their last steps."""
        everyone, own = self._all, self._own
        everyone.placed[:, self._which] = self._at
        for name in ("steps", "changes", "times"):
            getattr(everyone, name)[:, self._which] = getattr(own, name)

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
        self._decays = self._costs / counts.float()[:, None, None]
        own = self._slopes.reshape(*self._slopes.shape[:2], *self._bias.shape[1:]).transpose(1, 2)
        slopes = torch.cat([own, bias[:, :, None]], 2) / counts.float()[:, None, None]
        penalty = (self._decays * self._ahead**2).sum((2, 3)) / 2
        return losses / counts + penalty, slopes

    def _remember(self, step: Tensor, change: Tensor, accepted: Tensor) -> None:
        """In place of the oldest step."""
        own = self._own
        layers, probes = (accepted & ((step * change).sum((2, 3)) > 0)).nonzero(as_tuple=True)
        at = layers, probes, own.times.argmin(2)[layers, probes]
        own.steps[at], own.changes[at] = step[layers, probes], change[layers, probes]
        own.times[at] = own.times.amax(2)[layers, probes] + 1

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
        """Slopes (L, P, D + 1, K) over the curvature that is supposed."""
        turned = (slopes @ self._axes) / (self._sizes[:, :, None] + self._decays)
        return turned @ self._axes.transpose(2, 3)

    def _downhill(self, slopes: Tensor) -> Tensor:
        """Slopes over the curvature that the last steps have shown: the two loops of L-BFGS.

        The numbers of either loop are those of a triangular system, once steps are put in order;
        steps that were not made yet are zeros, and change nothing.
        """
        own = self._own
        steps, changes = own.steps, own.changes + self._decays[:, :, None] * own.steps
        newest = own.times.argmax(2)[..., None, None, None].expand(-1, -1, 1, *slopes.shape[2:])
        last = changes.gather(2, newest)[:, :, 0]
        size = (last * self._by_curvature(last)).sum((2, 3))
        bend = (last * steps.gather(2, newest)[:, :, 0]).sum((2, 3))
        scale = torch.where(bend > 0, bend / size, 1.0)[..., None, None]
        steps, changes = steps.flatten(3), changes.flatten(3)  # (L, P, m, N)
        bent = (steps @ changes.transpose(2, 3)).double()
        diagonal = bent.diagonal(dim1=2, dim2=3)[..., None]
        later = own.times[:, :, :, None] <= own.times[:, :, None]
        made = torch.diag_embed((own.times == 0).double())
        system = torch.where(later, bent, 0.0) + made
        flat = slopes.flatten(2)[:, :, None]  # (L, P, 1, N)
        shares = torch.linalg.solve(system, (steps @ flat.transpose(2, 3)).double())
        rest = flat - shares.float().transpose(2, 3) @ changes
        found = scale * self._by_curvature(rest.reshape(slopes.shape))
        back = diagonal * shares - (changes @ found.flatten(2)[..., None]).double()
        back = torch.linalg.solve(system.transpose(2, 3), back).float()
        whole: Tensor = found + (back.transpose(2, 3) @ steps).reshape(slopes.shape)
        return whole
