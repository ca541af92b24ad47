"""What a method of compression works with: models, data, and the one way to train."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import is_plain
from bertology.train.compress.settings import CompressSettings
from bertology.train.distil.teacher import Teacher
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.history import History
from bertology.train.memory import Memory
from bertology.train.movement import Movement
from bertology.train.recorded import gains_by_recording
from bertology.train.stage_watch import Line, StageWatch
from bertology.train.starts import default_rate, find_start
from bertology.train.ways import Way

_MOST_CHOOSING = 2000  # training examples that rank parts and choose
_SHARE_CHOOSING = 5  # one of so many training examples, at most
_SHOWN = 500  # whose score is shown after each epoch


@dataclass(frozen=True)
class CompressWatch(StageWatch):
    """Who is told what, while a model is compressed."""

    tell: Callable[[str], None] = lambda text: None
    command: str | None = None  # which makes the model again


Held = Callable[[Any], AbstractContextManager[object]]


@dataclass
class Work:
    """The model as it is now, the original, data and settings, for one method.

    `train` and `choosing` hold no text of the data that score the finished model.
    """

    encoder: Encoder
    """The model as it is now: a copy, which a method may change."""
    teacher: Encoder
    """The original model, fine-tuned on the task. No method changes it."""
    train: Corpus
    """What may be learnt from; labels are numbered as the models' outputs are."""
    data: Corpus | None = None
    """The same with labels as the data number them, which scores of one label want."""
    settings: CompressSettings = field(default_factory=CompressSettings)
    base: Encoder | None = None
    """The model before it was fine-tuned; None where it is not known."""
    folder: Path | None = None
    """Where trainings keep their state; None keeps nothing."""
    identity: str = ""
    """A hash of everything that decides what the method gives."""
    watch: CompressWatch = field(default_factory=CompressWatch)
    number: str = ""  # of the method among all, for the progress line
    notes: list[str] = field(default_factory=list)
    """What was done, in words, for the card."""
    found: dict[str, Any] = field(default_factory=dict)
    """And in numbers, for the record."""
    batch_tokens: int = 4096
    """Tokens in one batch where nothing is learnt, which changes no number."""
    answers: Teacher | None = None
    """The original as a teacher, with the answers that are kept of it; made when it is needed."""
    epochs: int = 0  # that were trained in all, stages before included
    trainings: int = 0  # in how many trainings
    examples: int = 0  # that the last training learnt from

    @property
    def seed(self) -> int:
        """Of all that is drawn."""
        return self.settings.seed

    @property
    def choosing(self) -> Corpus:
        """Training examples that rank parts, and choose: at most a fifth of them, and 2,000."""
        size = min(_MOST_CHOOSING, max(2, len(self.train) // _SHARE_CHOOSING))
        return self.train.take(size, seed=self.seed)

    @property
    def looked_at(self) -> Corpus:
        """Some of them, whose score is shown after each epoch."""
        return self.choosing[:_SHOWN]

    def asked(self, tokenizer: Any = None) -> Teacher:
        """The original as a teacher of students who read with this tokenizer, or its own."""
        own = self.teacher.tokenizer
        if tokenizer is not None and tokenizer.get_vocab() != own.get_vocab():
            return Teacher(self.teacher.model, own)
        if self.answers is None:
            self.answers = Teacher(self.teacher.model)
        return self.answers

    def say(self, text: str) -> None:
        """Something that was done, for whoever waits and for the card."""
        self.notes.append(text)
        self.watch.tell(text)

    def copy(self, encoder: Encoder | None = None) -> Encoder:
        """A copy of a model, of the one as it is now if none is given."""
        given = encoder or self.encoder
        model = copy.deepcopy(given.model)
        model.requires_grad_(True)  # that of a teacher learns nothing
        return self.around(model, given.tokenizer)

    def around(self, model: Any, tokenizer: Any = None) -> Encoder:
        """An encoder of another model, under the name of the original."""
        tokens = self.encoder.tokenizer if tokenizer is None else tokenizer
        return Encoder(model, tokens, head="classification", name=self.teacher.name)

    def train_on(
        self,
        encoder: Encoder,
        *,
        name: str = "",
        ways: Iterable[Way] = (),
        epochs: int | None = None,
        rate: float | None = None,
        on: Corpus | None = None,
        movement: Movement | None = None,
        held: Held = lambda model: nullcontext(),
        recordable: bool = True,
    ) -> History | None:
        """Train a model in place by the one trainer; None where no epoch is asked for.

        The last epoch is kept: nothing is chosen by the scores that are shown. With a folder,
        every finished epoch is kept there under `name`, and a stopped training goes on. `held` is
        given the model, and holds what must not change meanwhile. Steps that are not `recordable`
        are not recorded on a GPU.
        """
        many = self.settings.epochs if epochs is None else epochs
        if many == 0:
            return None
        corpus = self.train if on is None else on
        recipe = self.recipe(encoder, ways, epochs=many, rate=rate)
        if movement is not None or not recordable:
            recipe = replace(recipe, recorded=False)  # scores learn outside of a recording
        memory = self.memory(name or "training")
        if memory is not None and (done := memory.found()):
            self.watch.tell(f"continuing the training after epoch {done} of {many}")
        self.examples = len(corpus)
        with self.shown(name, many) as line, held(encoder.model), _names_kept(encoder.config):
            history = finetune(
                encoder.model,
                encoder.tokenizer,
                corpus,
                self.looked_at,
                settings=recipe,
                memory=memory,
                progress=line.step,
                movement=movement,
                stages=self.stages,
            )
        encoder.model.requires_grad_(True)
        self.trained(many)
        if history.epochs_before:
            self.trained(history.epochs_before)
        return history

    def trained(self, epochs: int) -> None:
        """Count a training, for the card and for tables."""
        self.epochs += epochs
        self.trainings += 1

    def recipe(
        self,
        encoder: Encoder,
        ways: Iterable[Way] = (),
        *,
        epochs: int | None = None,
        rate: float | None = None,
    ) -> FinetuneSettings:
        """The settings of a training of this model."""
        asked, chosen = self.settings, tuple(ways)
        usual = default_rate(find_start("pretrained"), int(encoder.config.hidden_size), chosen)
        # Not part of what decides: the weights are the same up to rounding. Other parts than those
        # of its family have hooks of their own, which were not compared with recorded ones.
        quick = gains_by_recording(encoder.model) and is_plain(encoder.config)
        quick = quick and all(way.recordable for way in chosen)
        return FinetuneSettings(
            epochs=asked.epochs if epochs is None else epochs,
            batch_size=asked.batch_size,
            learning_rate=rate or asked.rate or usual,
            seed=asked.seed,
            max_length=asked.max_length,
            precision=asked.precision,
            recorded=quick,
            ways=chosen,
        )

    def memory(self, name: str) -> Memory | None:
        """Where a training keeps its epochs, if anything is kept."""
        return None if self.folder is None else Memory(self.folder / name, self.identity)

    @property
    def stages(self) -> StageWatch:
        """Shows what is done, under the name of the method."""
        return StageWatch(self._line, self.watch.counting)

    def shown(self, name: str, epochs: int) -> AbstractContextManager[Line]:
        """A line that shows a training."""
        return self.stages.shown(name, epochs)

    def _line(self, name: str, epochs: int) -> Line:
        return self.watch.training(" ".join(filter(None, (self.number, name))), epochs)


@contextmanager
def _names_kept(config: Any) -> Iterator[None]:
    """Outputs keep their names, whatever those of the data are."""
    kept = {n: getattr(config, n, None) for n in ("id2label", "label2id", "problem_type")}
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(config, name, value)
