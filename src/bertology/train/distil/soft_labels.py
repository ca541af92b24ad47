"""Soft labels: a student learns what a teacher says of each class (Hinton et al. 2015).

At a temperature T, with z the student's logits and y the teacher's, the loss of an example is
T² · KL(softmax(y / T) ‖ softmax(z / T)): the factor keeps gradients as large as those of the
labels. It is that of DistilBERT; of two numbers it is their squared difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from bertology.data.corpus import Corpus
from bertology.errors import ModelError
from bertology.parameters import parameter
from bertology.train.distil.seen import LOGITS, Needs, see
from bertology.train.distil.teacher import Answering, Teacher
from bertology.train.encoded import learnable
from bertology.train.ways.way import Lesson, Pass, Way

MATCHED = ("probabilities", "logits")


@dataclass(frozen=True)
class Distilled(Way):
    """A way whose loss compares with a teacher; the base of all of them."""

    order: ClassVar[int] = 4
    against: ClassVar[dict[str, str]] = {"hex": "each has a loss of its own"}

    teacher: Teacher = field(repr=False, compare=False, metadata={"object": True})

    @property
    def text(self) -> str:
        """As it is written; the teacher is named by `ingredients`."""
        plain = [f for f in fields(self) if not f.metadata.get("object")]
        values = ((f.name, getattr(self, f.name)) for f in plain)
        options = ",".join(f"{n}={v:g}" if isinstance(v, float) else f"{n}={v}" for n, v in values)
        return f"{self.name}:{options}" if options else self.name

    def ingredients(self, train: Corpus) -> dict[str, str]:
        """The teacher."""
        return {f"teacher of {self.name}": self.teacher.fingerprint()}

    def teacher_needs(self, lesson: Lesson) -> Needs:
        """What is asked of the teacher."""
        raise NotImplementedError

    def prepare(self, lesson: Lesson) -> None:
        """Ask the teacher, where its answers are kept."""
        lesson.kept[self.name] = self.teacher.ready(lesson, self.teacher_needs(lesson))

    def beside(self, lesson: Lesson, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """The teacher's answers to this batch."""
        asked: Answering = lesson.kept[self.name]
        found = asked.answers(lesson.moment.chosen, inputs)
        where = lesson.model.device
        return {f"{self.name} {name}": answer.to(where) for name, answer in found.items()}

    def finish(self, lesson: Lesson) -> None:
        """Let go of the answers."""
        lesson.kept.pop(self.name, None)
        lesson.moment.beside = {}

    def answer(self, lesson: Lesson, name: str) -> Tensor:
        """What the teacher says of this batch."""
        return lesson.moment.beside[f"{self.name} {name}"]

    def see(self, lesson: Lesson, inputs: dict[str, Tensor], needs: Needs) -> dict[str, Tensor]:
        """A pass of the student."""
        low = lesson.precision == "bfloat16"
        with torch.autocast(lesson.model.device.type, dtype=torch.bfloat16, enabled=low):
            return see(lesson.model, inputs, needs)


@dataclass(frozen=True)
class SoftLabels(Distilled):
    """Trained: everything, on the teacher's answers and, for a share, on the labels.

    Where logits are matched, the soft part is the mean squared difference of the logits (as of
    Tang et al. 2019), and there is no temperature in it.
    """

    summary: ClassVar[str] = "the loss is of a teacher's soft answers and of the labels"

    temperature: float = parameter(2.0, "Softens both answers.", minimum=0.01)
    hard: float = parameter(0.5, "Share of the labels in the loss.", minimum=0, maximum=1)
    match: str = parameter("probabilities", "What of the answers is compared.", choices=MATCHED)

    def teacher_needs(self, lesson: Lesson) -> Needs:
        """Its logits, if there are as many as the student's."""
        own, its = (int(m.config.num_labels) for m in (lesson.model, self.teacher.model))
        if own != its:
            raise ModelError(
                f"The teacher has {its} outputs, and the student {own}.",
                hint="A teacher is fine-tuned on the same task first.",
            )
        return Needs(logits=True)

    def student_needs(self, lesson: Lesson) -> Needs:
        """What is read of the student."""
        return Needs(logits=True)

    def loss(
        self, lesson: Lesson, plain: Pass, inputs: dict[str, Tensor], targets: Tensor
    ) -> Tensor:
        """One pass of the student, compared with labels and teacher."""
        return self.compared(lesson, self.see(lesson, inputs, self.student_needs(lesson)), targets)

    def compared(self, lesson: Lesson, seen: dict[str, Tensor], targets: Tensor) -> Tensor:
        """The loss of what was seen of the student."""
        logits = seen[LOGITS]
        scalar = learnable(lesson.train).kind == "regression"
        labels = (
            functional.mse_loss(logits[:, 0], targets)
            if scalar
            else functional.cross_entropy(logits, targets)
        )
        soft = soft_loss(
            logits,
            self.answer(lesson, LOGITS),
            self.temperature,
            match="logits" if scalar else self.match,
        )
        return self.hard * labels + (1 - self.hard) * soft


def soft_loss(logits: Tensor, answers: Tensor, temperature: float, *, match: Any) -> Tensor:
    """The mean over (B, classes) of how far a student's logits are from a teacher's."""
    if match == "logits":
        return functional.mse_loss(logits, answers)
    own = (logits / temperature).log_softmax(-1)
    its = (answers / temperature).log_softmax(-1)
    each = functional.kl_div(own, its, reduction="batchmean", log_target=True)
    return temperature**2 * each
