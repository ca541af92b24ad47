"""Mixout: weights are swapped at random for their pre-trained values (Lee et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from bertology.model.added_parts import READER
from bertology.parameters import parameter
from bertology.train.ways.way import Lesson, Way

__all__ = ["Mixout"]

_FROZEN = "weights that are not trained are their pre-trained values already"


@dataclass(frozen=True)
class Mixout(Way):
    """Trained: everything; in training each entry of a matrix may take its pre-trained value.

    It does so with probability `share`, drawn anew for each batch, and what is left is scaled so
    that the expected weights are those that are learnt. It is for the linear maps that were
    pre-trained: those of the layers, and the pooler's, which next-sentence prediction trained in
    BERT; a pooler that the checkpoint did not hold is new. It is not for tables of embeddings, nor
    for what is new: the head, and maps that other ways add. After a stage, the values are those
    that the stage made. Dropout stays on beside it.
    """

    summary: ClassVar[str] = "in training, weights are mixed with their pre-trained values"
    order: ClassVar[int] = 8
    starts: ClassVar[frozenset[str]] = frozenset({"pretrained"})
    against: ClassVar[dict[str, str]] = {
        "adapters": _FROZEN,
        "bias_only": _FROZEN,
        "lora": _FROZEN,
    }

    share: float = parameter(0.5, "Probability of the pre-trained value.", minimum=0, maximum=0.99)

    def prepare(self, lesson: Lesson) -> None:
        """Keep the values, and let maps that are trained mix them in."""
        body = f"{lesson.model.base_model_prefix}."
        for name, module in lesson.model.named_modules():
            known = name.startswith(body) and READER not in name.split(".")
            if not known or f"{name}.weight" in lesson.head:
                continue
            if isinstance(module, nn.Linear) and module.weight.requires_grad:
                vars(module)["forward"] = _Mixed(module, self.share)

    def finish(self, lesson: Lesson) -> None:
        """Plain maps again."""
        for module in lesson.model.modules():
            if isinstance(vars(module).get("forward"), _Mixed):
                del module.forward


class _Mixed:
    """The forward of a linear map under mixout."""

    def __init__(self, linear: nn.Linear, share: float) -> None:
        self.linear, self.share = linear, share
        self.before = linear.weight.detach().clone()

    def __call__(self, states: Tensor) -> Tensor:
        weight = self.linear.weight
        if self.linear.training:
            swapped = torch.rand_like(weight) < self.share
            mixed = torch.where(swapped, self.before, weight)
            weight = (mixed - self.share * self.before) / (1 - self.share)
        return functional.linear(states, weight, self.linear.bias)
