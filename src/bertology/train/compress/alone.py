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
from bertology.train.finetune import name_labels
from bertology.train.starts import STARTS, begin

__all__ = ["Alone"]


@dataclass(frozen=True)
class Alone(Teaching):
    """Layers, or parts of them, of the model before fine-tuning; or random weights.

    Nothing of the fine-tuned original is in it, neither weights nor answers: what a student of the
    same shape has more, it has from its teacher.
    """

    summary: ClassVar[str] = "a baseline: the same shape is fine-tuned without the original"
    source: ClassVar[str] = "Sajjad et al. 2020; Turc et al. 2019"
    begins: ClassVar[bool] = True
    uses_base: ClassVar[bool] = True

    @property
    def kind(self) -> str:
        """A smaller model."""
        return SHAPE

    def apply(self, work: Work) -> Encoder:
        """Make the small model of the pre-trained one, and fine-tune it."""
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
        found = work.around(model)
        work.say(f"the model ({found.shape}) has no teacher; it begins with {start}")
        work.train_on(found, epochs=self.epochs, rate=self.rate)
        return found
