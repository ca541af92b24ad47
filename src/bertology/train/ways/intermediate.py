"""A stage before: fine-tuning on another task with more data (Phang et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import ClassVar

from torch import Tensor

from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import ParameterError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.encoded import task_of
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.memory import Memory
from bertology.train.stages import after_stage
from bertology.train.starts import STARTS, begin, default_rate
from bertology.train.ways.way import Lesson, Way

__all__ = ["Intermediate"]

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

    def prepare(self, lesson: Lesson) -> None:
        """Do the stage, or take what it made."""
        after_stage(lesson, self, lambda: self._learn(lesson), epochs=self.epochs)

    def _learn(self, lesson: Lesson) -> Mapping[str, Tensor]:
        train, scored = self._data(lesson.train)
        if train.fingerprint == lesson.train.fingerprint:
            must = "be another task than the one that comes after it"
            raise ParameterError("task", "intermediate", must, self.task)
        start = STARTS["pretrained"]
        encoder = Encoder(lesson.model, lesson.tokenizer, head="classification")
        model = begin(encoder, task_of(train), start, seed=lesson.seed)
        settings = FinetuneSettings(
            epochs=self.epochs,
            batch_size=lesson.batch_size,
            learning_rate=default_rate(start, encoder.shape.hidden),
            seed=lesson.seed,
            max_length=lesson.max_length,
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


@lru_cache(maxsize=2)
def _loaded(task: str, split: str, limit: int, root: str | None) -> tuple[Corpus, Corpus]:
    train = load_corpus(task, split=split, limit=limit or None, root=root)
    return train, load_corpus(task, split="validation", limit=_SCORED, root=root)
