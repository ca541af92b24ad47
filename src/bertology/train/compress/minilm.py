"""MiniLM: a student first follows how tokens relate in the original's last layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bertology.parameters import parameter
from bertology.train.compress.method import Method
from bertology.train.compress.students import unfit_heads
from bertology.train.compress.text_first import TwoStages
from bertology.train.compress.work import Work
from bertology.train.distil.relations import RelationFollowing, Relations
from bertology.train.distil.soft_labels import Distilled, SoftLabels
from bertology.train.distil.teacher import Teacher
from bertology.train.ways import Way


@dataclass(frozen=True)
class Minilm(TwoStages):
    """Relations of queries with keys and of values, then answers; students of any shape.

    In the paper, relations are learnt on text (`file`), and the task by plain fine-tuning
    (`first_epochs=0,hard=1`).
    """

    summary: ClassVar[str] = (
        "a student follows relations between the original's tokens, then answers"
    )
    source: ClassVar[str] = "Wang et al. 2020"

    follows: ClassVar[str] = "relations between tokens"

    layer: int = parameter(0, "The original's layer, from 1; 0 for the last.", minimum=0)
    parts: int = parameter(
        0, "Parts that vectors are compared in, if heads differ; 0: the heads.", minimum=0
    )
    temperature: float = parameter(2.0, "Softens answers in the second stage.", minimum=0.01)
    hard: float = parameter(0.5, "Share of the labels in it.", minimum=0, maximum=1)

    def unfit_after(self, earlier: Method) -> str | None:
        """Heads are compared one by one, unless it is said in how many parts."""
        return super().unfit_after(earlier) or unfit_heads(self, earlier, self.parts)

    def text_way(self, teacher: Any) -> Distilled:
        """The same on text, of the model before fine-tuning."""
        return RelationFollowing(Teacher(teacher.base_model), layer=self.layer, heads=self.parts)

    def way(self, work: Work, teacher: Teacher) -> Way:
        """Relations, then answers."""
        if not self.first_epochs:
            return SoftLabels(teacher, self.temperature, self.hard)
        return Relations(
            teacher,
            temperature=self.temperature,
            hard=self.hard,
            epochs=self.first_epochs,
            rate=self.first_rate,
            layer=self.layer,
            heads=self.parts,
        )
