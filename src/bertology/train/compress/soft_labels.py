"""Distillation by soft labels: a student learns what the original says of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.parameters import parameter
from bertology.train.compress.students import Teaching
from bertology.train.compress.work import Work
from bertology.train.distil import soft_labels
from bertology.train.distil.teacher import Teacher
from bertology.train.ways import Way

__all__ = ["SoftLabels"]


@dataclass(frozen=True)
class SoftLabels(Teaching):
    """The loss is that of the original's answers at a temperature, and of the labels."""

    summary: ClassVar[str] = "a student learns the original's answers to the training examples"
    source: ClassVar[str] = "Hinton et al. 2015; Sanh et al. 2019"

    temperature: float = parameter(2.0, "Softens both answers.", minimum=0.01)
    hard: float = parameter(0.5, "Share of the labels in the loss.", minimum=0, maximum=1)

    def way(self, work: Work, teacher: Teacher) -> Way:
        """Soft labels."""
        return soft_labels.SoftLabels(teacher, self.temperature, self.hard)
