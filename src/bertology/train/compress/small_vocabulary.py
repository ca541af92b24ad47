"""A student with fewer pieces: a small vocabulary, which the original learns to read first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.method import SHAPE, epochs_text
from bertology.train.compress.students import Teaching
from bertology.train.compress.work import Work
from bertology.train.distil.small_vocabulary import dual_teacher, small_student, small_tokenizer
from bertology.train.distil.soft_labels import SoftLabels
from bertology.train.distil.teacher import Teacher
from bertology.train.ways import Way


@dataclass(frozen=True)
class SmallVocabulary(Teaching):
    """A copy of the original is trained with words cut by either vocabulary; then it teaches.

    The pieces are made of the training texts. For a small model, most of it is its vocabulary.
    """

    summary: ClassVar[str] = "a student reads a small vocabulary, which its teacher learnt, too"
    source: ClassVar[str] = "Zhao et al. 2019"
    takes_models: ClassVar[bool] = False

    pieces: int = parameter(2000, "Pieces of the small vocabulary, at most.", minimum=50)
    share: float = parameter(
        0.5, "Share of words that its teacher reads in small pieces.", minimum=0, maximum=1
    )
    dual_epochs: int = parameter(2, "Epochs of the teacher with both.", minimum=1)
    temperature: float = parameter(2.0, "Softens both answers.", minimum=0.01)
    hard: float = parameter(0.5, "Share of the labels in the loss.", minimum=0, maximum=1)

    @property
    def begins(self) -> bool:
        """With the original, whatever came before."""
        return True

    @property
    def kind(self) -> str:
        """A smaller model."""
        return SHAPE

    def apply(self, work: Work) -> Encoder:
        """Make pieces, teach the teacher, make the student and teach it."""
        tokens = work.teacher.tokenizer
        small = small_tokenizer(work.train, tokens, pieces=self.pieces)
        recipe = work.recipe(work.encoder, epochs=self.dual_epochs, rate=self.rate)
        with work.shown("dual teacher", self.dual_epochs) as line:
            dual = dual_teacher(
                work.encoder.model,
                tokens,
                small,
                work.train,
                work.looked_at,
                settings=recipe,
                share=self.share,
                memory=work.memory("dual"),
                progress=line.step,
            )
        work.trained(self.dual_epochs)
        work.say(f"its teacher read both vocabularies for {epochs_text(self.dual_epochs)}")
        work.say(f"of {len(tokens):,} pieces, {len(small):,} small ones are left")
        shape, start = self.shaped()
        model = small_student(
            dual, tokens, small, shape, start=start, which=self.which, seed=work.seed
        )
        for name in ("id2label", "label2id", "problem_type"):
            setattr(model.config, name, getattr(work.teacher.config, name, None))
        student = work.around(model, small)
        way = self.way(work, Teacher(dual, tokens))
        work.train_on(student, name="student", ways=(way,), epochs=self.epochs, rate=self.rate)
        return student

    def way(self, work: Work, teacher: Teacher) -> Way:
        """Soft labels."""
        return SoftLabels(teacher, self.temperature, self.hard)
