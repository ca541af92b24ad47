"""The honest baseline of a student: the same shape, fine-tuned without any teacher."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.errors import CapabilityError
from bertology.model.encoder import Encoder
from bertology.train.compress.method import SHAPE
from bertology.train.compress.students import Teaching
from bertology.train.compress.work import Work
from bertology.train.distil.students import make_student
from bertology.train.encoded import learnable
from bertology.train.fit import name_labels
from bertology.train.starts import STARTS, begin


@dataclass(frozen=True)
class Alone(Teaching):
    """Layers, or parts of them, of the model before fine-tuning; or random weights.

    Or a small pre-trained model that `start` names, as the baseline of students that begin with
    it. Nothing of the fine-tuned original is in it, neither weights nor answers: what a student of
    the same shape has more, it has from its teacher.
    """

    summary: ClassVar[str] = "a baseline: the same shape is fine-tuned without the original"
    source: ClassVar[str] = "Sajjad et al. 2020; Turc et al. 2019"
    other_tokens: ClassVar[bool] = True

    @property
    def begins(self) -> bool:
        """With the original, whatever came before."""
        return True

    @property
    def uses_base(self) -> bool:
        """It is made of the weights before fine-tuning, unless it begins with other ones."""
        return not self._given

    @property
    def kind(self) -> str:
        """A smaller model."""
        return SHAPE

    def apply(self, work: Work) -> Encoder:
        """Make the small model of the pre-trained one, or take the given one, and fine-tune it."""
        found = self.begun_as_given(work) if self._given else self._cut(work)
        begun = self.start if self._given else self.shaped()[1]
        work.say(f"the model ({found.shape}) has no teacher; it begins with {begun}")
        work.train_on(found, epochs=self.epochs, rate=self.rate)
        return found

    def _cut(self, work: Work) -> Encoder:
        if work.base is None:
            raise CapabilityError(
                f"The model that {work.teacher.name!r} was fine-tuned from is not known, or not "
                "here, so that no model without a teacher can be made of it.",
                hint="Give the pre-trained model itself, which is then fine-tuned first.",
            )
        task = learnable(work.train)
        whole = begin(work.base, task, STARTS["pretrained"], seed=work.seed)
        shape, start = self.shaped()
        model = make_student(whole, shape, start=start, which=self.which, seed=work.seed)
        name_labels(model, task)
        return work.around(model)
