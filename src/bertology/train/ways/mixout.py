"""Mixout: weights are swapped at random for their pre-trained values (Lee et al. 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from bertology.errors import CapabilityError
from bertology.model.added_parts import READER
from bertology.parameters import parameter
from bertology.train.ways.way import Lesson, Way

_FROZEN = "weights that are not trained are their pre-trained values already"


@dataclass(frozen=True)
class Mixout(Way):
    """Trained: everything; in training each entry of a matrix may take its pre-trained value.

    It does so with probability `share`, drawn anew for each batch, and what is left is scaled so
    that the expected weights are those that are learnt. It is for the linear maps that were
    pre-trained: those of the layers, those that make embeddings as wide as the layers, and the
    pooler's, which next-sentence prediction trained in BERT; a pooler that the checkpoint did not
    hold is new. It is not for tables of embeddings, nor for what is new: the head, and maps that
    other ways add. After a stage, the values are those that the stage made. Dropout stays on beside
    it.
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
        from transformers.pytorch_utils import Conv1D  # what maps are in GPT-2

        for name, module in _trained(lesson):
            turned = isinstance(module, Conv1D)
            if turned or isinstance(module, nn.Linear):
                vars(module)["forward"] = _Mixed(module, self.share, turned=turned)
            elif not isinstance(module, nn.Embedding):
                raise CapabilityError(
                    f"{name!r} ({type(module).__name__}) holds matrices that are no linear map, so "
                    "mixout would leave them out.",
                    hint="BERT, RoBERTa, DistilBERT, GPT-2 and their like have linear maps alone.",
                )

    def finish(self, lesson: Lesson) -> None:
        """Plain maps again."""
        for module in lesson.model.modules():
            if isinstance(vars(module).get("forward"), _Mixed):
                del module.forward


def _trained(lesson: Lesson) -> Iterator[tuple[str, nn.Module]]:
    """What has matrices of its own that are trained and were pre-trained, with their names."""
    body = {id(module) for module in lesson.model.base_model.modules()}
    for name, module in lesson.model.named_modules():
        if id(module) not in body or READER in name.split("."):
            continue
        own = module.named_parameters(name, recurse=False)
        if any(w.requires_grad and w.dim() > 1 and n not in lesson.head for n, w in own):
            yield name, module


class _Mixed:
    """The forward of a linear map under mixout; a `turned` one is (inputs, outputs)."""

    def __init__(self, linear: Any, share: float, *, turned: bool) -> None:
        self.linear, self.share, self.turned = linear, share, turned
        self.before: Tensor = self.linear.weight.detach().clone()

    def __call__(self, states: Tensor) -> Tensor:
        weight: Tensor = self.linear.weight
        if self.linear.training:
            swapped = torch.rand_like(weight) < self.share
            mixed = torch.where(swapped, self.before, weight)
            weight = (mixed - self.share * self.before) / (1 - self.share)
        return functional.linear(states, weight.T if self.turned else weight, self.linear.bias)
