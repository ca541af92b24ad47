"""Adversarial embeddings: the text is moved to where the model errs most (FreeLB, Zhu et al.)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from bertology.parameters import parameter
from bertology.train.ways.way import Lesson, Pass, Way


@dataclass(frozen=True)
class Adversarial(Way):
    """Trained: everything, on the mean loss along a way that raises it, in the embeddings.

    A small shift of all word embeddings of a text is drawn, then moved `steps` - 1 times along the
    gradient of the loss; the loss is the mean over all of these shifts. Sizes are norms over a
    whole text, in units of the mean norm of a word embedding. Passes of one batch have the same
    dropout, as in FreeLB.
    """

    summary: ClassVar[str] = "trained on embeddings moved to where the loss is higher"
    recordable: ClassVar[bool] = False  # a recording cannot draw the same dropout once more

    steps: int = parameter(3, "Passes for each batch.", minimum=1)
    start: float = parameter(0.1, "Size of the first shift.", minimum=0)
    rate: float = parameter(0.1, "How far a step moves.", minimum=0)
    limit: float = parameter(0.5, "The largest shift.", minimum=1e-9)

    def loss(
        self, lesson: Lesson, plain: Pass, inputs: dict[str, Tensor], targets: Tensor
    ) -> Tensor:
        """The mean loss over all shifts."""
        table: nn.Embedding = lesson.model.get_input_embeddings()
        unit = table.weight.detach().norm(dim=1).mean()
        mask = inputs["attention_mask"].flatten(0, -2)  # of multiple choice, a row for each answer
        inside = mask[..., None].to(table.weight.dtype)  # (B, T, 1)
        shape = (*mask.shape, table.weight.shape[1])
        shift = inside * (2 * torch.rand(shape, device=inside.device, dtype=inside.dtype) - 1)
        shift = self.start * unit * shift / _size(shift)
        chance = _Chance(inside.device)
        losses = []
        for k in range(self.steps):
            shift = shift.detach().requires_grad_()
            chance.again()
            with _shifted(table, shift):
                losses.append(plain(inputs, targets))
            if k + 1 < self.steps:
                (slope,) = torch.autograd.grad(losses[-1], shift, retain_graph=True)
                moved = shift.detach() + self.rate * unit * inside * slope / _size(slope)
                shift = moved * (self.limit * unit / _size(moved)).clamp(max=1)
        return torch.stack(losses).mean()


def _size(shift: Tensor) -> Tensor:
    """(B, 1, 1): the norm over a whole text."""
    size: Tensor = shift.flatten(1).norm(dim=1).clamp(min=1e-12)
    return size[:, None, None]


@contextmanager
def _shifted(table: nn.Embedding, shift: Tensor) -> Iterator[None]:
    """Word embeddings that lie elsewhere."""

    def move(module: nn.Module, given: Any, output: Tensor) -> Tensor:
        return output + shift

    handle = table.register_forward_hook(move)
    try:
        yield
    finally:
        handle.remove()


class _Chance:
    """Torch's generator for a device, put back to where it was."""

    def __init__(self, device: torch.device) -> None:
        self._gpu = device if device.type == "cuda" else None
        self._state = (
            torch.get_rng_state() if self._gpu is None else torch.cuda.get_rng_state(device)
        )

    def again(self) -> None:
        """Draw the same once more."""
        if self._gpu is None:
            torch.set_rng_state(self._state)
        else:
            torch.cuda.set_rng_state(self._state, self._gpu)
