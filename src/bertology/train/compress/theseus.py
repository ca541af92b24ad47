"""BERT-of-Theseus: new layers take the place of groups of the original's, more and more often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.errors import ParameterError
from bertology.parameters import parameter
from bertology.train.compress.method import epochs_text
from bertology.train.compress.students import Teaching
from bertology.train.compress.work import Work
from bertology.train.distil import theseus
from bertology.train.distil.teacher import Teacher
from bertology.train.ways import Way


@dataclass(frozen=True)
class Theseus(Teaching):
    """The loss is the task's own; then the new layers alone are trained on."""

    summary: ClassVar[str] = "a student's layers take the place of the original's, then train alone"
    source: ClassVar[str] = "Xu et al. 2020"
    takes_models: ClassVar[bool] = False

    first_epochs: int = parameter(3, "Epochs in which layers are replaced.", minimum=1)
    first_rate: float = parameter(0.0, "Their highest rate; 0: as after them.", minimum=0)
    probability: float = parameter(
        0.3, "How often a new layer computes at first.", minimum=0, maximum=1
    )
    risen: float = parameter(
        0.5, "The share of these epochs in which that rises to always.", minimum=0.01, maximum=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layers is None:
            must = "say how many layers take the place of the original's"
            raise ParameterError("layers", self.name, must, None)

    @property
    def epochs_before(self) -> int:
        """Those in which layers are replaced."""
        return self.first_epochs

    @property
    def first_stage(self) -> str:
        """Its epochs."""
        first = f"{epochs_text(self.first_epochs)} with layers of both came first"
        return f"{first}, in which all but the layers was the original's"

    def way(self, work: Work, teacher: Teacher) -> Way:
        """Replacing, then alone."""
        return theseus.Theseus(
            teacher,
            epochs=self.first_epochs,
            rate=self.first_rate,
            start=self.probability,
            risen=self.risen,
        )
