"""BERT-PKD: a student's layers in between follow the original's, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.students import Teaching
from bertology.train.compress.work import Work
from bertology.train.distil import patient
from bertology.train.distil.teacher import Teacher
from bertology.train.ways import Way


@dataclass(frozen=True)
class Patient(Teaching):
    """Soft labels, and the first token's states of layers in between; of the original's width."""

    summary: ClassVar[str] = "soft labels, and states of layers in between follow the original's"
    source: ClassVar[str] = "Sun et al. 2019"
    other_tokens: ClassVar[bool] = True

    against: ClassVar[dict[str, str]] = {
        "factorised": "layers that are one cannot be compared layer by layer",
        "bilstm": "a BiLSTM has no layers to compare",
    }

    temperature: float = parameter(2.0, "Softens both answers.", minimum=0.01)
    hard: float = parameter(0.5, "Share of the labels in the loss.", minimum=0, maximum=1)
    weight: float = parameter(0.5, "Factor of the states' distance.", minimum=0)
    follow: str = parameter("skip", "skip: every second layer or so. last: the last ones.",
                            choices=("skip", "last"))  # fmt: skip

    def check_fit(self, encoder: Encoder) -> None:
        """States of the first token are compared as they are."""
        super().check_fit(encoder)
        if self._given:
            patient.check_widths(self._given_model("cpu").shape, encoder.shape)

    def way(self, work: Work, teacher: Teacher) -> Way:
        """Patient distillation."""
        return patient.Patient(
            teacher,
            temperature=self.temperature,
            hard=self.hard,
            weight=self.weight,
            layers=self.follow,
        )
