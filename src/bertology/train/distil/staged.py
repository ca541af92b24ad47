"""Two stages: a student first follows the inside of its teacher, then its answers."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import ClassVar

from torch import Tensor

from bertology.model.loading.pruning import is_plain
from bertology.parameters import parameter
from bertology.train.distil.soft_labels import SoftLabels
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.memory import Memory
from bertology.train.recorded import gains_by_recording
from bertology.train.stage_watch import losses_only
from bertology.train.ways.way import Lesson, Way, after_stage


@dataclass(frozen=True)
class Staged(SoftLabels):
    """First `epochs` by the way `first`, on the same data; then soft labels."""

    order: ClassVar[int] = 1
    stage: ClassVar[bool] = True

    epochs: int = parameter(3, "Passes over the data in the first stage.", minimum=1)
    rate: float = parameter(0.0, "Highest rate of the first stage; 0: as of the second.", minimum=0)

    def first(self) -> Way:
        """What the first stage is trained by."""
        raise NotImplementedError

    def prepare(self, lesson: Lesson) -> None:
        """Do the first stage, or take what it made."""
        after_stage(
            lesson,
            self,
            lambda: learn_first(lesson, self, self.first(), epochs=self.epochs, rate=self.rate),
            epochs=self.epochs,
        )
        super().prepare(lesson)


def learn_first(
    lesson: Lesson, way: Way, by: Way, *, epochs: int, rate: float
) -> Mapping[str, Tensor]:
    """The body of a copy of the lesson's model, trained by another way on the same data.

    Its epochs are kept where the lesson says, so that a stopped stage goes on.
    """
    model = copy.deepcopy(lesson.model)
    # Other parts than those of its family were not compared with recorded ones.
    quick = by.recordable and gains_by_recording(model) and is_plain(model.config)
    settings = FinetuneSettings(
        epochs=epochs,
        batch_size=lesson.batch_size,
        learning_rate=rate or lesson.rate,
        seed=lesson.seed,
        max_length=lesson.max_length,
        precision=lesson.precision,
        recorded=quick,
        ways=(by,),
    )
    named = [way.text, by.text, *by.ingredients(lesson.train).values(), lesson.train.fingerprint]
    # Recorded or not, on a GPU or not, it is the same stage, which may go on on another machine.
    decides = replace(settings, recorded=False).as_record()
    identity = sha256(f"{named} {lesson.seed} {decides}".encode()).hexdigest()[:16]
    memory = None if lesson.folder is None else Memory(lesson.folder / way.name, identity)
    # The task is not what is learnt here: one example stands for the data that would score it.
    with lesson.watch.shown("first stage", epochs) as line:
        finetune(
            model,
            lesson.tokenizer,
            lesson.train,
            lesson.train[:1],
            settings=settings,
            memory=memory,
            progress=losses_only(line.step),
            stages=lesson.watch,
        )
    found: Mapping[str, Tensor] = model.base_model.state_dict()
    return found
