"""The loss of a model as a function of its weights, on examples that are read once.

    terrain = Terrain.over(model, encoded, task, batch_tokens=32768)
    terrain.losses(weights, [direction, other], steps)      # one loss for each row of steps

Weights are changed in place and put back, so that no point costs more than its passes. On a GPU,
few tokens leave it idle: several points then go through it together (`points_together`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from bertology.data.corpus import Task
from bertology.train.protocols import Classifier
from bertology.train.recorded import Recorded, gains_by_recording, quick_products
from bertology.train.token_rows import Encoded

Weights = dict[str, Tensor]
"""Weights by their names; of a direction, those it leaves alone may be missing."""
Batch = tuple[dict[str, Tensor], Tensor]

_FULL = 32768  # tokens that keep a GPU busy
_MOST = 8  # points that are held in memory together


@dataclass(frozen=True)
class Terrain:
    """A model without dropout, and examples on its device."""

    model: nn.Module
    batches: Sequence[Batch]
    kind: str  # of the task: classification or regression
    recorded: bool = False  # whether the passes are recorded once and replayed for each point
    softened: float = 1.0
    """What logits are divided by: above 1, answers are less sure and the loss is higher."""

    @classmethod
    def over(cls, model: Classifier, encoded: Encoded, task: Task, *, batch_tokens: int) -> Terrain:
        """All examples, in batches of similar length."""
        assert isinstance(model, nn.Module)
        model.eval()
        recorded = gains_by_recording(model)
        chosen = encoded.in_order_of_length(batch_tokens)
        batches = [encoded.batch(rows, model.device) for rows in chosen]
        return cls(model, batches, task.kind, recorded=recorded)

    @cached_property
    def size(self) -> int:
        """How many examples there are."""
        return sum(len(targets) for _, targets in self.batches)

    @cached_property
    def tokens(self) -> int:
        """How many tokens one pass over all examples reads, with their padding."""
        return sum(next(iter(inputs.values())).numel() for inputs, _ in self.batches)

    @cached_property
    def _total(self) -> Recorded[Tensor]:
        """The loss summed over all examples, where the model stands.

        Points change the weights in their place, so that a recording of the passes serves them all.
        """

        def passes() -> Tensor:
            return torch.stack([self._summed(*batch) for batch in self.batches]).sum()

        return Recorded(passes, record=self.recorded)

    def loss(self, at: Weights | None = None) -> float:
        """The mean loss of the model as it is, or with other weights."""
        with standing_at(self.model, at or {}), torch.no_grad():
            total = torch.stack([self._summed(*batch) for batch in self.batches]).double().sum()
        return float(total) / self.size

    def softened_to(self, loss: float, at: Weights) -> Terrain | None:
        """The same examples with answers so much less sure that the loss at `at` is this one.

        Two models whose answers are right, but not as sure, differ in their loss, and with it in
        how far it bends. None where there are no classes, or the loss is not below that.
        """
        if self.kind == "regression":
            return None
        with standing_at(self.model, at), torch.no_grad():
            said = [(self.model(**inputs).logits.double(), y) for inputs, y in self.batches]

        def loss_by(times: float) -> float:
            total = sum(float(summed_loss(logits / times, y, self.kind)) for logits, y in said)
            return total / self.size

        low, high = 1.0, 2.0
        if not loss_by(low) < loss < math.log(said[0][0].shape[-1]):
            return None
        while loss_by(high) < loss:
            low, high = high, 2 * high
        for _ in range(40):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if loss_by(middle) < loss else (low, middle)
        return replace(self, softened=high)

    def losses(
        self,
        at: Weights,
        directions: Sequence[Mapping[str, Tensor]],
        steps: ArrayLike,
        *,
        together: int | None = None,
    ) -> NDArray[np.float64]:
        """(P,) the mean loss at `at` + Σ steps[p, k] · directions[k]; `steps` are (P, K).

        `together`: points in one pass; chosen by the device and the number of tokens if not given.
        On a GPU their products are rounded: a surface is drawn to a hundredth, and a width ends
        where the loss has risen by a quarter of a constant answer's.
        """
        wanted = np.asarray(steps, dtype=np.float64).reshape(-1, len(directions))
        count = points_together(self) if together is None else together
        device = next(self.model.parameters()).device
        with standing_at(self.model, at) as live, torch.no_grad(), quick_products(device):
            if count == 1:
                found = torch.stack([self._moved(live, at, directions, row) for row in wanted])
                return np.asarray(found.double().cpu().numpy() / self.size)
            parts = [
                self._side_by_side(at, directions, wanted[i : i + count])
                for i in range(0, len(wanted), count)
            ]
        return np.concatenate(parts) / self.size

    def _moved(
        self,
        live: Weights,
        at: Weights,
        directions: Sequence[Mapping[str, Tensor]],
        row: NDArray[np.float64],
    ) -> Tensor:
        """The summed loss at one point, which the model then stands at."""
        # From `at` anew for each point: small steps that are added up would drift.
        torch._foreach_copy_(list(live.values()), [at[name] for name in live])
        for step, direction in zip(row, directions, strict=True):
            moved = [live[name] for name in direction]
            torch._foreach_add_(moved, list(direction.values()), alpha=float(step))
        return self._total().clone()  # a recording fills the same number again

    def _side_by_side(
        self,
        at: Weights,
        directions: Sequence[Mapping[str, Tensor]],
        rows: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """(P,) summed losses of several points, which go through the model in one pass."""
        names = list(dict.fromkeys(name for direction in directions for name in direction))
        moved: Weights = {}
        for name in names:
            base = at[name]
            step = torch.as_tensor(rows, dtype=base.dtype, device=base.device)  # (P, K)
            added = [
                step[:, k].reshape(-1, *[1] * base.dim()) * direction[name]
                for k, direction in enumerate(directions)
                if name in direction
            ]
            moved[name] = base + sum(added[1:], added[0])  # (P, …)

        def one(weights: Weights, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
            logits = functional_call(self.model, weights, kwargs=inputs).logits
            return summed_loss(logits / self.softened, targets, self.kind)

        passed = vmap(one, in_dims=(0, None, None))
        # torch cannot map its fused attention for CPUs over points; where texts are few or short,
        # as here, the plain one costs little.
        with sdpa_kernel(SDPBackend.MATH):
            total = torch.stack([passed(moved, *batch) for batch in self.batches]).double().sum(0)
        return np.asarray(total.cpu().numpy())

    def _summed(self, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        return summed_loss(self.model(**inputs).logits / self.softened, targets, self.kind)


def summed_loss(logits: Tensor, targets: Tensor, kind: str) -> Tensor:
    """The loss that fine-tuning lowers, as a sum over examples."""
    if kind == "regression":
        return functional.mse_loss(logits[:, 0], targets, reduction="sum")
    return functional.cross_entropy(logits, targets, reduction="sum")


def points_together(terrain: Terrain) -> int:
    """How many points share a pass: on a GPU as many as fill it, elsewhere one."""
    device = next(terrain.model.parameters()).device
    if device.type != "cuda":
        return 1
    return max(1, min(_MOST, _FULL // max(1, terrain.tokens)))


def copied(model: nn.Module) -> Weights:
    """The weights of a model, which it may then change."""
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


@contextmanager
def standing_at(model: nn.Module, weights: Weights) -> Iterator[Weights]:
    """The model with other weights; gives those that it has meanwhile, to be changed in place."""
    live = {name: weight.data for name, weight in model.named_parameters()}
    before = copied(model)
    try:
        for name, value in weights.items():
            live[name].copy_(value)
        yield live
    finally:
        for name, value in before.items():
            live[name].copy_(value)
