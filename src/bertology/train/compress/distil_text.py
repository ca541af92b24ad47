"""DistilBERT: a student first learns to predict hidden words from the model before fine-tuning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bertology.errors import StoreError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.checkpoint import SCHEMA, check_folder, read_record, save_checkpoint
from bertology.train.compress.method import READ, WRITTEN
from bertology.train.compress.text_first import TextFirst
from bertology.train.compress.work import Work
from bertology.train.distil.soft_labels import Distilled, SoftLabels
from bertology.train.distil.teacher import Teacher
from bertology.train.distil.text import TextFollowing
from bertology.train.ways import Way


@dataclass(frozen=True)
class DistilText(TextFirst):
    """A masked LM teaches a smaller one on text; the task is then learnt from the original.

    The text is a file with a text in each line, or else the texts of the task. The smaller masked
    LM knows no task: with `masked_lm=FOLDER` it is kept, and can be compared with its teacher.
    """

    summary: ClassVar[str] = "a student learns to predict words from a masked LM, then the task"
    source: ClassVar[str] = "Sanh et al. 2019"

    file: str | None = parameter(
        None, "A file of text; the texts of the task if not given.", place=READ
    )
    text_epochs: int = parameter(3, "Epochs on the text.", minimum=1)
    text_rate: float = parameter(1e-4, "Their highest learning rate.", minimum=1e-9)
    cosine: float = parameter(
        1.0, "Factor of how states differ in direction; 0 for narrower students.", minimum=0
    )
    temperature: float = parameter(2.0, "Softens both answers.", minimum=0.01)
    hard: float = parameter(0.5, "Share of the labels in the task's loss.", minimum=0, maximum=1)
    masked_lm: str | None = parameter(
        None,
        "A folder for the student as it is before the task, with its head for hidden words.",
        place=WRITTEN,
    )

    @property
    def on_text(self) -> bool:
        """On a file's, or on the task's."""
        return True

    def check_fit(self, encoder: Encoder) -> None:
        """The masked LM must find its place."""
        super().check_fit(encoder)
        if self.masked_lm is not None:
            check_folder(self.masked_lm)

    def text_way(self, teacher: Any) -> Distilled:
        """Soft answers, the words, and states."""
        asked = Teacher(teacher)
        return TextFollowing(asked, temperature=self.temperature, cosine=self.cosine)

    def after_text(self, work: Work, masked: Any) -> None:
        """Keep the masked LM, where that is asked for; no other model is replaced by it."""
        if self.masked_lm is None:
            return
        place = check_folder(self.masked_lm)
        identity = f"{work.identity}-masked-lm"
        if (there := read_record(place)) is None:
            record = {"schema": SCHEMA, "method": "distil-text", "identity": identity}
            save_checkpoint(place, masked, work.encoder.tokenizer, record=record)
        elif there.get("identity") != identity:
            raise StoreError(
                f"{place} holds a model of other methods, settings, data or another original.",
                hint="Choose another folder (masked_lm=…), or move that one away.",
            )
        work.say(f"the student before the task, with its head for hidden words, is in {place}")

    def way(self, work: Work, teacher: Teacher) -> Way:
        """Soft labels."""
        return SoftLabels(teacher, self.temperature, self.hard)
