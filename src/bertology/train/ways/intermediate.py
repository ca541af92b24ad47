"""A stage before: fine-tuning on another task with more data (Phang et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import ClassVar

from torch import Tensor

from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import DataError, ParameterError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.encoded import CHOICE, learnable, task_of
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.memory import Memory
from bertology.train.recorded import gains_by_recording
from bertology.train.starts import STARTS, begin, default_rate
from bertology.train.ways.way import Lesson, Way, after_stage

_SCORED = 500  # examples of the other task that show whether it was learnt


@dataclass(frozen=True)
class Intermediate(Way):
    """Trained first: everything, with a head of its own, on a supervised task of another corpus.

    That head is left behind. The rate is the usual one of plain fine-tuning.
    """

    summary: ClassVar[str] = "first fine-tuned on another task"
    order: ClassVar[int] = 1
    stage: ClassVar[bool] = True

    task: str = parameter("mnli", "The other task: any corpus that a model can be fine-tuned on.")
    split: str = parameter("train", "The split of it to learn from.")
    limit: int = parameter(0, "So many of its examples; 0 for all.", minimum=0)
    epochs: int = parameter(1, "Passes over them.", minimum=1)

    def ingredients(self, train: Corpus) -> dict[str, str]:
        """The data of the other task."""
        return {f"intermediate {self.task}": self._data(train)[0].fingerprint}

    def check(self, lesson: Lesson, ways: Sequence[Way]) -> None:
        """It must be another task, and have none of the texts that are scored afterwards."""
        train, _ = self._data(lesson.train)
        learnable(train)
        if _same_data(train, lesson.train):
            must = "be another task than the one that comes after it"
            raise ParameterError("task", "intermediate", must, self.task)
        learnt = {e.texts for e in train}
        for scored in lesson.scored:
            if both := sum(e.texts in learnt for e in scored):
                raise DataError(
                    f"{both} of the {len(scored)} examples of {scored.name!r} that are scored are "
                    f"also in {self.task!r} ({self.split}), which is learnt first.",
                    hint="Learn another task first, or another split of it (split=train).",
                )

    def prepare(self, lesson: Lesson) -> None:
        """Do the stage, or take what it made."""
        after_stage(lesson, self, lambda: self._learn(lesson), epochs=self.epochs)

    def _learn(self, lesson: Lesson) -> Mapping[str, Tensor]:
        train, scored = self._data(lesson.train)
        start = STARTS["pretrained"]
        encoder = Encoder(lesson.model, lesson.tokenizer, head="classification")
        model = begin(encoder, task_of(train), start, seed=lesson.seed)
        settings = FinetuneSettings(
            epochs=self.epochs,
            batch_size=lesson.batch_size,
            learning_rate=default_rate(start, encoder.shape.hidden),
            seed=lesson.seed,
            max_length=lesson.max_length,
            precision=lesson.precision,
            # By itself: ways that come after it may not be recordable.
            recorded=gains_by_recording(model) and task_of(train).kind != CHOICE,
        )
        named = sha256(f"{self.text} {train.fingerprint} {lesson.seed}".encode()).hexdigest()[:16]
        memory = None if lesson.folder is None else Memory(lesson.folder / self.name, named)
        with lesson.watch.shown(f"first {self.task}", self.epochs) as line:
            finetune(
                model,
                lesson.tokenizer,
                train,
                scored,
                settings=settings,
                memory=memory,
                progress=line.step,
            )
        return model.base_model.state_dict()

    def _data(self, beside: Corpus) -> tuple[Corpus, Corpus]:
        """What is learnt from, and what shows whether it was learnt."""
        root = beside.origin.get("root")
        return _loaded(self.task, self.split, self.limit, None if root is None else str(root))


def _same_data(one: Corpus, other: Corpus) -> bool:
    """Whether both come from the same place, or, where that is not known, have the same name."""
    places = [corpus.origin.get("name_or_path") for corpus in (one, other)]
    return places[0] == places[1] if all(places) else one.name == other.name


@lru_cache(maxsize=2)
def _loaded(task: str, split: str, limit: int, root: str | None) -> tuple[Corpus, Corpus]:
    train = load_corpus(task, split=split, limit=limit or None, root=root)
    return train, load_corpus(task, split="validation", limit=_SCORED, root=root)
