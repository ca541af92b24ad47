"""Losses and accuracies since the last report, as sums that stay on the device."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from bertology.train.pretrain.losses import LossOutcome


@dataclass
class Meter:
    """Sums since the last report. They stay on the device: reading one would make it wait."""

    sums: dict[str, Tensor] = field(default_factory=dict)  # loss, updates, correct, count
    tokens: int = 0
    norm: Tensor | None = None
    began: float = 0.0

    def start(self, device: torch.device) -> None:
        """Set all sums to zero and start the clock."""
        self.sums, self.tokens = {}, 0
        _settle(device)
        self.began = time.perf_counter()

    def add(self, outcomes: Mapping[str, LossOutcome], tokens: int) -> None:
        """Add the losses of one part of a batch."""
        self.tokens += tokens
        for name, o in outcomes.items():
            numbers = torch.stack([o.loss.detach().float(), o.correct.float(), o.count.float()])
            numbers = torch.cat([numbers, torch.ones_like(numbers[:1])])
            self.sums[name] = self.sums[name] + numbers if name in self.sums else numbers

    def read(
        self, device: torch.device
    ) -> tuple[float, float, dict[str, float], dict[str, float], float]:
        """Seconds, tokens per second, losses, accuracies, the last norm of the gradient."""
        _settle(device)
        seconds = time.perf_counter() - self.began
        losses, accuracies = {}, {}
        for name, sums in self.sums.items():
            loss, correct, count, updates = sums.tolist()
            losses[name] = loss / updates
            accuracies[name] = correct / max(count, 1)
        norm = float(self.norm) if self.norm is not None else 0.0
        return seconds, self.tokens / max(seconds, 1e-9), losses, accuracies, norm


def _settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
