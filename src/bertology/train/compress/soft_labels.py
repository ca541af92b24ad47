"""Distillation by soft labels: a student learns what the original says of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.data.corpus import Corpus
from bertology.parameters import parameter
from bertology.train.compress.students import Teaching, check_copies, with_copies
from bertology.train.compress.work import Work
from bertology.train.distil import soft_labels
from bertology.train.distil.teacher import Teacher
from bertology.train.ways import Way


@dataclass(frozen=True)
class SoftLabels(Teaching):
    """The loss is that of the original's answers at a temperature, and of the labels."""

    summary: ClassVar[str] = "a student learns the original's answers to the training examples"
    source: ClassVar[str] = "Hinton et al. 2015; Sanh et al. 2019"
    other_tokens: ClassVar[bool] = True

    temperature: float = parameter(2.0, "Softens both answers.", minimum=0.01)
    hard: float = parameter(0.5, "Share of the labels in the loss.", minimum=0, maximum=1)

    copies: int = parameter(
        0, "Copies of each text with hidden words, which the original answers.", minimum=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_copies(self, self.copies, self.hard)

    def data(self, work: Work) -> Corpus:
        """The training data, and copies."""
        return with_copies(work, self.copies)

    def way(self, work: Work, teacher: Teacher) -> Way:
        """Soft labels."""
        return soft_labels.SoftLabels(teacher, self.temperature, self.hard)
