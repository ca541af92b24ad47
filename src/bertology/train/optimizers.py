"""How weights are updated: AdamW, LAMB, and the learning rate over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT


def parameter_groups(
    parameters: Iterable[Tensor],
    weight_decay: float,
    *,
    exempt: Iterable[Tensor] = (),
    factors: Mapping[Tensor, float] | None = None,
) -> list[dict[str, object]]:
    """Matrices with weight decay; vectors (biases, scales of LayerNorms) and `exempt` without.

    Weights that have `factors` of the learning rate other than 1 are in groups of their own.
    """
    if factors:
        exempt, listed = list(exempt), list(parameters)
        found = []
        for factor in sorted({factors.get(p, 1.0) for p in listed}):
            own = [p for p in listed if factors.get(p, 1.0) == factor]
            apart = parameter_groups(own, weight_decay, exempt=exempt)
            found += [group | {"factor": factor} for group in apart]
        return found
    learning = [p for p in parameters if p.requires_grad]
    spared = {id(p) for p in exempt} | {id(p) for p in learning if p.dim() <= 1}
    groups: list[dict[str, object]] = [
        {"params": [p for p in learning if id(p) not in spared], "weight_decay": weight_decay},
        {"params": [p for p in learning if id(p) in spared], "weight_decay": 0.0},
    ]
    return [g for g in groups if g["params"]]


def make_optimizer(
    name: str,
    parameters: Iterable[Tensor],
    *,
    rate: float,
    weight_decay: float,
    betas: tuple[float, float] = (0.9, 0.999),
    capturable: bool = False,
    exempt: Iterable[Tensor] = (),
    factors: Mapping[Tensor, float] | None = None,
) -> torch.optim.Optimizer:
    """`adamw` or `lamb` over the groups of `parameter_groups`; `exempt` weights do not decay.

    A `capturable` AdamW may be recorded as a CUDA graph; its rate is a tensor in each group.
    """
    learning = [p for p in parameters if p.requires_grad]
    groups = parameter_groups(learning, weight_decay, exempt=exempt, factors=factors)
    if name == "lamb":
        return Lamb(groups, lr=rate, betas=betas)
    # One loop over all weights in place of many small ones: a tenth of a small model's step.
    where = learning[0].device
    fused = where.type in ("cpu", "cuda")
    if capturable:
        groups = [g | {"lr": torch.tensor(rate, device=where)} for g in groups]
    return torch.optim.AdamW(groups, lr=rate, betas=betas, fused=fused, capturable=capturable)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The learning rate of the next step, for all weights; times the factor of their group."""
    for group in optimizer.param_groups:
        own = rate * group.get("factor", 1.0)
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(own)  # in place: a recorded step reads this tensor
        else:
            group["lr"] = own


class Lamb(torch.optim.Optimizer):
    """Adam whose step is scaled, matrix by matrix, to the size of the weights (You et al. 2020).

    Made for batches of tens of thousands of rows. Vectors take Adam's plain step.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update of all weights that have a gradient."""
        for group in self.param_groups:
            live = [p for p in group["params"] if p.grad is not None]
            if live:
                self._update(group, live)

    def _update(self, group: Mapping[str, Any], weights: list[Tensor]) -> None:
        for w in weights:
            if not self.state[w]:
                self.state[w] = {
                    "step": torch.zeros(()),
                    "exp_avg": torch.zeros_like(w),
                    "exp_avg_sq": torch.zeros_like(w),
                }
            self.state[w]["step"] += 1
        first, second = group["betas"]
        times = [float(self.state[w]["step"]) for w in weights]  # some may have been added later
        gradients = [w.grad for w in weights if w.grad is not None]
        mean = [self.state[w]["exp_avg"] for w in weights]
        square = [self.state[w]["exp_avg_sq"] for w in weights]
        torch._foreach_lerp_(mean, gradients, 1 - first)
        torch._foreach_mul_(square, second)
        torch._foreach_addcmul_(square, gradients, gradients, 1 - second)
        below = torch._foreach_div(square, [1 - second**t for t in times])
        torch._foreach_sqrt_(below)
        torch._foreach_add_(below, group["eps"])
        step = torch._foreach_div(mean, [1 - first**t for t in times])
        torch._foreach_div_(step, below)
        if group["weight_decay"]:
            torch._foreach_add_(step, weights, alpha=group["weight_decay"])
        for w, move in zip(weights, step, strict=True):
            move *= -group["lr"] * _trust(w, move)
        torch._foreach_add_(weights, step)


def _trust(weight: Tensor, move: Tensor) -> Tensor | float:
    """The size of the weight over the size of its step; 1 for vectors and where either is 0."""
    if weight.dim() < 2:
        return 1.0
    size, step = weight.norm(), move.norm()
    return torch.where((size > 0) & (step > 0), size / step.clamp(min=1e-30), 1.0)


def learning_rate_factor(step: int, *, rise: int, total: int, schedule: str = "linear") -> float:
    """The share of the full rate for update `step` (from 0): up in a line, then as `schedule`."""
    if step < rise:
        return (step + 1) / (rise + 1)
    left = max(0.0, (total - step) / max(1, total - rise))
    if schedule == "cosine":
        return (1 - math.cos(math.pi * left)) / 2
    return 1.0 if schedule == "constant" else left
