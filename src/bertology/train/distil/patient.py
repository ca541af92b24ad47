"""Patient distillation: layers in between follow the teacher too (BERT-PKD, Sun et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn import functional

from bertology.errors import CapabilityError
from bertology.model.encoder import Encoder
from bertology.model.shape import Shape
from bertology.parameters import parameter
from bertology.train.distil.seen import FIRST, Needs
from bertology.train.distil.soft_labels import SoftLabels
from bertology.train.ways.way import Lesson

LAYERS = ("skip", "last")


@dataclass(frozen=True)
class Patient(SoftLabels):
    """Trained: everything, as by soft labels, and on the teacher's states of the first token.

    The states of each layer but the last are scaled to length 1; their squared distance from the
    teacher's, a mean over layers and examples, is added `weight` times. Of a student with m layers
    and a teacher with L, layer i follows the teacher's layer i L / m ("skip"), or L - m + i
    ("last"). The paper's mean is over single entries: its factor is `weight` times the width.
    """

    summary: ClassVar[str] = "soft labels, and layers in between follow the teacher's"

    weight: float = parameter(0.5, "Factor of the states' distance.", minimum=0)
    layers: str = parameter("skip", "Which of the teacher's layers are followed.", choices=LAYERS)

    def teacher_needs(self, lesson: Lesson) -> Needs:
        """Logits, and the first token's states."""
        own, its = Encoder(lesson.model).shape, Encoder(self.teacher.model).shape
        check_widths(own, its)
        followed = followed_layers(self.layers, own.layers, its.layers)
        return Needs(super().teacher_needs(lesson).logits, first=followed)

    def student_needs(self, lesson: Lesson) -> Needs:
        """The same of its own layers."""
        return Needs(logits=True, first=tuple(range(1, lesson.layers)))

    def compared(self, lesson: Lesson, seen: dict[str, Tensor], targets: Tensor) -> Tensor:
        """Soft labels, and the distance of states."""
        loss = super().compared(lesson, seen, targets)
        if FIRST not in seen:  # one layer: there is none in between
            return loss
        own, its = (
            functional.normalize(states, dim=-1)
            for states in (seen[FIRST], self.answer(lesson, FIRST))
        )
        return loss + self.weight * (own - its).square().sum(-1).mean()


def check_widths(own: Shape, its: Shape) -> None:
    """Refuse a student whose states cannot be compared with the teacher's as they are."""
    if own.hidden != its.hidden:
        raise CapabilityError(
            f"Patient distillation needs states of one width: the student's have {own.hidden} "
            f"entries, the teacher's {its.hidden}.",
            hint="Take a student of the teacher's width, or the way 'layers', which learns a "
            "projection.",
        )


def followed_layers(pattern: str, student: int, teacher: int) -> tuple[int, ...]:
    """The teacher's layers, from 1, that layers 1 to `student` - 1 follow."""
    if student > teacher:
        raise CapabilityError(
            f"A student of {student} layers cannot follow a teacher of {teacher} layer by layer."
        )
    if pattern == "last":
        return tuple(teacher - student + i for i in range(1, student))
    return tuple(i * teacher // student for i in range(1, student))
