"""Module replacing: successors grow into the teacher's place (BERT-of-Theseus, Xu et al. 2020).

In the first stage each layer of the student stands for a group of the teacher's layers. In every
batch it is drawn for each of them whether the student's layer or the teacher's group computes; the
loss is the task's own. Only the student's layers are trained: all else (embeddings, pooler,
classifier) is the teacher's, since the teacher's layers must be able to read and to be read. The
probability of the student's layer rises in a line and then stays at 1. In the second stage the
student is fine-tuned plainly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from bertology.errors import CapabilityError
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import can_lose_layers
from bertology.model.weight_depths import INPUT as EMBEDDINGS
from bertology.parameters import parameter
from bertology.train.distil.seen import Needs
from bertology.train.distil.soft_labels import Distilled
from bertology.train.distil.staged import learn_first
from bertology.train.ways.way import Lesson, after_stage


@dataclass(frozen=True)
class Replacing(Distilled):
    """Trained: the student's layers, between those of the teacher."""

    recordable: ClassVar[bool] = False  # which layers compute changes from batch to batch

    start: float = parameter(0.3, "First probability of a new layer.", minimum=0, maximum=1)
    risen: float = parameter(0.5, "Share of the steps in which it rises to 1.", minimum=0.01,
                             maximum=1)  # fmt: skip

    def teacher_needs(self, lesson: Lesson) -> Needs:
        """Nothing: its layers are borrowed, it is not asked."""
        return Needs()

    def prepare(self, lesson: Lesson) -> None:
        """Put the groups behind the student's layers; all else is the teacher's, and frozen."""
        _take_surroundings(lesson, self.teacher.model)
        own, its = Encoder(lesson.model), Encoder(self.teacher.model)
        stack = own.family.stacks[own.family.main_stack]
        groups = groups_of(own.shape.layers, its.shape.layers)
        for i, group in enumerate(groups):
            layer = own.module(stack.block, i)
            others = [its.module(stack.block, j) for j in group]
            vars(layer)["forward"] = _Replaced(layer, others, self, lesson)
        outside = _outside(lesson)
        for name, weight in lesson.model.named_parameters():
            weight.requires_grad_(name not in outside)

    def probability(self, lesson: Lesson) -> float:
        """Of a new layer, now."""
        along = lesson.moment.done / (self.risen * lesson.moment.steps)
        return min(1.0, self.start + (1 - self.start) * along)

    def beside(self, lesson: Lesson, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Nothing."""
        return {}

    def loss(self, lesson: Lesson, plain: Any, inputs: Any, targets: Any) -> torch.Tensor:
        """The task's own; a batch in which no new layer computes teaches nothing."""
        found: torch.Tensor = plain(inputs, targets)
        return found if found.requires_grad else found.detach().requires_grad_()

    def finish(self, lesson: Lesson) -> None:
        """Plain layers again."""
        for module in lesson.model.modules():
            if isinstance(vars(module).get("forward"), _Replaced):
                del module.forward


@dataclass(frozen=True)
class Theseus(Distilled):
    """Trained: first the layers, each in the place of some of the teacher's; then everything."""

    summary: ClassVar[str] = "layers take the place of a teacher's, then are fine-tuned alone"
    order: ClassVar[int] = 1
    stage: ClassVar[bool] = True

    epochs: int = parameter(3, "Passes over the data while layers are replaced.", minimum=1)
    rate: float = parameter(0.0, "Highest rate of that stage; 0: as of the second.", minimum=0)
    start: float = parameter(0.3, "First probability of a new layer.", minimum=0, maximum=1)
    risen: float = parameter(0.5, "Share of that stage in which it rises to 1.", minimum=0.01,
                             maximum=1)  # fmt: skip

    def prepare(self, lesson: Lesson) -> None:
        """Replace, or take what was made; the classifier is the teacher's in both cases."""
        _take_surroundings(lesson, self.teacher.model)
        by = Replacing(self.teacher, start=self.start, risen=self.risen)
        after_stage(
            lesson,
            self,
            lambda: learn_first(lesson, self, by, epochs=self.epochs, rate=self.rate),
            epochs=self.epochs,
        )

    def beside(self, lesson: Lesson, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Nothing: the second stage has no teacher."""
        return {}

    def loss(self, lesson: Lesson, plain: Any, inputs: Any, targets: Any) -> torch.Tensor:
        """The task's own."""
        found: torch.Tensor = plain(inputs, targets)
        return found


def groups_of(student: int, teacher: int) -> list[range]:
    """The teacher's layers, from 0, that each layer of the student stands for."""
    if student > teacher:
        raise CapabilityError(f"{student} layers cannot stand for {teacher}, which are fewer.")
    ends = [(i + 1) * teacher // student for i in range(student)]
    return [range(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]


def _outside(lesson: Lesson) -> set[str]:
    """The names of the student's weights that are in none of its layers."""
    layers = lesson.layers
    return {n for n, depth in lesson.depths().items() if not EMBEDDINGS < depth <= layers}


def _take_surroundings(lesson: Lesson, teacher: Any) -> None:
    """Give the student all of the teacher that is outside of the layers, whatever it began with.

    Random embeddings would be frozen, and the teacher's layers could not read them.
    """
    own, its = Encoder(lesson.model), Encoder(teacher)
    if not (can_lose_layers(own) and can_lose_layers(its)) or (
        own.shape.hidden != its.shape.hidden or own.family != its.family
    ):
        raise CapabilityError(
            "Layers can be replaced only between models of one family and one width, whose "
            "layers are modules of their own.",
            hint="Make the student from the teacher's layers.",
        )
    there = dict(teacher.named_parameters())
    weights = dict(lesson.model.named_parameters())
    with torch.no_grad():
        for name in _outside(lesson):
            weight = weights[name]
            if name not in there or there[name].shape != weight.shape:
                raise CapabilityError(
                    f"The student's {name} is not as large as the teacher's, so that the "
                    "teacher's layers cannot compute in its place.",
                    hint="Both need the same vocabulary, positions and labels.",
                )
            weight.copy_(there[name])


class _Replaced:
    """The forward of a layer that a group of the teacher's may compute for."""

    def __init__(
        self, layer: nn.Module, others: Sequence[nn.Module], way: Replacing, lesson: Lesson
    ) -> None:
        self.layer, self.others, self.way, self.lesson = layer, others, way, lesson

    def __call__(self, states: Any, *given: Any, **named: Any) -> Any:
        own = type(self.layer).forward
        new = not self.layer.training
        # Drawn in every batch, also when it is sure, so that draws do not depend on rates.
        if self.layer.training:
            new = float(torch.rand(())) < self.way.probability(self.lesson)
        if new:
            return own(self.layer, states, *given, **named)
        for other in self.others:
            found = other(states, *given, **named)
            states = found[0] if isinstance(found, tuple) else found
        return found
