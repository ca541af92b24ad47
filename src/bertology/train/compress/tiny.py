"""TinyBERT: a student first follows attention and states of the original, then its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bertology.data.corpus import Corpus
from bertology.parameters import parameter
from bertology.train.compress.method import Method
from bertology.train.compress.students import check_copies, unfit_heads, with_copies
from bertology.train.compress.text_first import TwoStages
from bertology.train.compress.work import Work
from bertology.train.distil.layers import LayerFollowing, Layers
from bertology.train.distil.soft_labels import Distilled, SoftLabels
from bertology.train.distil.teacher import Teacher
from bertology.train.ways import Way


@dataclass(frozen=True)
class Tiny(TwoStages):
    """Two stages on the task's data; narrower students learn a map of states.

    In the paper, attention and states are learnt on text before (`file`), and the data for the task
    are made more (`copies`).
    """

    summary: ClassVar[str] = "a student follows the original's attention and states, then answers"
    source: ClassVar[str] = "Jiao et al. 2019"

    follows: ClassVar[str] = "attention and states"

    parts: int = parameter(
        0, "Parts that attention is compared in, if heads differ; 0: the heads.", minimum=0
    )
    temperature: float = parameter(1.0, "Softens answers in the second stage.", minimum=0.01)
    hard: float = parameter(0.0, "Share of the labels in it.", minimum=0, maximum=1)

    copies: int = parameter(
        0, "Copies of each text with hidden words, which the original answers.", minimum=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_copies(self, self.copies, self.hard)

    def data(self, work: Work) -> Corpus:
        """The training data, and copies."""
        return with_copies(work, self.copies)

    def unfit_after(self, earlier: Method) -> str | None:
        """Heads are compared one by one, unless it is said in how many parts."""
        return super().unfit_after(earlier) or unfit_heads(self, earlier, self.parts)

    def text_way(self, teacher: Any) -> Distilled:
        """The same on text, of the model before fine-tuning."""
        return LayerFollowing(Teacher(teacher.base_model), heads=self.parts)

    def way(self, work: Work, teacher: Teacher) -> Way:
        """Layers, then answers."""
        if not self.first_epochs:
            return SoftLabels(teacher, self.temperature, self.hard)
        return Layers(
            teacher,
            temperature=self.temperature,
            hard=self.hard,
            epochs=self.first_epochs,
            rate=self.first_rate,
            heads=self.parts,
        )
