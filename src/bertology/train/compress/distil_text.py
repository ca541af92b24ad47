"""DistilBERT: a student first learns to predict hidden words from the model before fine-tuning."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, DataError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.plain_files import local_path, read_bytes, read_utf8
from bertology.train.compress.method import SHAPE, epochs_text
from bertology.train.compress.students import Teaching
from bertology.train.compress.work import Work
from bertology.train.distil.soft_labels import SoftLabels
from bertology.train.distil.students import make_student
from bertology.train.distil.teacher import Teacher
from bertology.train.distil.text import TextFollowing, distil_text
from bertology.train.ways import Way

__all__ = ["DistilText"]


@dataclass(frozen=True)
class DistilText(Teaching):
    """A masked LM teaches a smaller one on text; the task is then learnt from the original.

    The text is a file with a text in each line, or else the texts of the task.
    """

    summary: ClassVar[str] = "a student learns to predict words from a masked LM, then the task"
    source: ClassVar[str] = "Sanh et al. 2019"
    begins: ClassVar[bool] = True
    uses_base: ClassVar[bool] = True

    file: str | None = parameter(None, "A file of text; the texts of the task if not given.")
    text_epochs: int = parameter(3, "Epochs on the text.", minimum=1)
    text_rate: float = parameter(1e-4, "Their highest learning rate.", minimum=1e-9)
    cosine: float = parameter(
        1.0, "Factor of how states differ in direction; 0 for narrower students.", minimum=0
    )
    temperature: float = parameter(2.0, "Softens both answers.", minimum=0.01)
    hard: float = parameter(0.5, "Share of the labels in the task's loss.", minimum=0, maximum=1)

    @property
    def kind(self) -> str:
        """A smaller model."""
        return SHAPE

    def ingredients(self) -> dict[str, str]:
        """The text itself, wherever it lies."""
        if self.file is None:
            return {}
        return {"text": sha256(read_bytes(local_path(self.file))).hexdigest()[:16]}

    def apply(self, work: Work) -> Encoder:
        """On the text, then on the task."""
        teacher, texts = self._masked_lm(work), self._texts(work)
        shape, start = self.shaped()
        made: dict[str, Any] = {"start": start, "which": self.which, "seed": work.seed}
        masked = make_student(teacher, shape, **made)
        recipe = work.recipe(work.encoder, epochs=self.text_epochs, rate=self.text_rate)
        asked = Teacher(teacher)
        with work.shown("on text", self.text_epochs) as line:
            distil_text(
                asked,
                masked,
                work.encoder.tokenizer,
                texts,
                settings=recipe,
                way=TextFollowing(asked, temperature=self.temperature, cosine=self.cosine),
                memory=work.memory("text"),
                progress=line.step,
            )
        work.trained(self.text_epochs)
        work.say(f"{epochs_text(self.text_epochs)} on {len(texts):,} texts came first")
        student = make_student(work.encoder.model, shape, **made)
        body: dict[str, Any] = masked.base_model.state_dict()
        student.base_model.load_state_dict(body, strict=False)  # it has no pooler
        found = work.around(student)
        way = self.way(work, work.asked())
        work.train_on(found, name="task", ways=(way,), epochs=self.epochs, rate=self.rate)
        return found

    def way(self, work: Work, teacher: Teacher) -> Way:
        """Soft labels."""
        return SoftLabels(teacher, self.temperature, self.hard)

    def _masked_lm(self, work: Work) -> Any:
        """The model before fine-tuning, with its head for hidden words."""
        spec = None if work.base is None else work.base.spec
        if spec is None:
            raise CapabilityError(
                f"The model that {work.teacher.name!r} was fine-tuned from is not known, or not "
                "here, so no masked LM can teach.",
                hint="Give the pre-trained model itself, which is then fine-tuned first.",
            )
        device = str(work.teacher.device)
        return Encoder.load(**{**spec, "head": "mlm", "num_labels": None, "device": device}).model

    def _texts(self, work: Work) -> Corpus:
        if self.file is None:
            return work.train
        lines = read_utf8(local_path(self.file)).splitlines()
        found = [line.strip() for line in lines if line.strip()]
        if not found:
            raise DataError(f"{self.file} has no text.")
        return Corpus.of_texts(found, name=self.file)
