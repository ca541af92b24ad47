"""Fine-tuning: train a model on one task, the same way every time.

The recipe is that of the BERT paper: AdamW, a learning rate that rises and then falls in straight
lines, and no weight decay on biases and LayerNorms. Equal seeds give equal models on one machine
with one number of threads; sums of floats are grouped differently by more or fewer threads.

What does not fit is refused before any work. Most ways say so when they prepare a model; where a
stage comes before, which may take hours, all that is no stage is prepared on a copy first.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from bertology.data.corpus import Corpus, Task
from bertology.errors import InterruptedRunError, JobError, ParameterError
from bertology.model.added_parts import READER
from bertology.train.encoded import encode_once, learnable
from bertology.train.evaluate import predict, scores
from bertology.train.fit import check_fit, name_labels, row_limit
from bertology.train.fresh import seeded
from bertology.train.history import Epoch, History, OnStep, Step, Watch
from bertology.train.memory import Course, Memory
from bertology.train.movement import Movement
from bertology.train.optimizers import learning_rate_factor, make_optimizer, set_rate
from bertology.train.protocols import Classifier, Model, Tokenizer
from bertology.train.recorded import Recorded, quick_products
from bertology.train.stage_watch import StageWatch
from bertology.train.token_rows import Encoded
from bertology.train.ways import Lesson, Pass, Way, read_ways
from bertology.train.ways.way import Moment

PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class FinetuneSettings:
    """How a model is fine-tuned."""

    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 2e-5
    warmup: float = 0.1  # share of all steps in which the learning rate rises
    weight_decay: float = 0.01
    clip: float = 1.0  # the largest norm of a gradient; longer ones are scaled down
    seed: int = 0  # of the order of examples and of dropout
    weights_seed: int | None = None  # of new weights; None: they are drawn by `seed` too
    max_length: int | None = None  # tokens; None for as many as the model takes
    # Stop after so many epochs without a better validation score, and keep the best epoch.
    early_stopping: int | None = None
    precision: str = "float32"  # of the passes; bfloat16, on a GPU, leaves weights in float32
    # On a GPU steps may be recorded and replayed: much quicker for small models, with rows padded
    # to a few lengths.
    recorded: bool = False
    # Other ways than to train all weights on the plain loss, in the order of their application.
    ways: tuple[Way, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "ways", read_ways(self.ways))
        limits = {"epochs": 1, "batch_size": 1, "max_length": 3, "early_stopping": 1}
        for name, low in limits.items():
            value = getattr(self, name)
            if value is not None and value < low:
                raise ParameterError(name, "FinetuneSettings", f"be at least {low}", value)
        for name in ("learning_rate", "clip"):
            if not 0 < getattr(self, name) < math.inf:
                raise ParameterError(
                    name, "FinetuneSettings", "be above 0 and finite", getattr(self, name)
                )
        if not 0 <= self.warmup <= 1:
            raise ParameterError("warmup", "FinetuneSettings", "be from 0 to 1", self.warmup)
        if self.weight_decay < 0:
            raise ParameterError(
                "weight_decay", "FinetuneSettings", "be at least 0", self.weight_decay
            )
        if self.precision not in PRECISIONS:
            must = f"be one of {', '.join(PRECISIONS)}"
            raise ParameterError("precision", "FinetuneSettings", must, self.precision)

    def as_record(self) -> dict[str, Any]:
        """Plain values, as they are saved and hashed.

        Ways are texts, and left out if there are none; so is a second seed.
        """
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "ways"}
        if self.weights_seed is None:
            del plain["weights_seed"]
        return plain | ({"ways": [way.text for way in self.ways]} if self.ways else {})


_UNREAD = 16  # steps on a GPU whose losses are read together
_MULTIPLE = 16  # lengths of rows, where each length is a recording of its own


def finetune(
    model: Classifier,
    tokenizer: Tokenizer,
    train: Corpus,
    validation: Corpus,
    *,
    settings: FinetuneSettings | None = None,
    progress: OnStep = lambda step: None,
    memory: Memory | None = None,
    movement: Movement | None = None,
    head: Collection[str] | None = None,
    source: Mapping[str, Any] | None = None,
    watch: Watch | None = None,
    stages: StageWatch | None = None,
) -> History:
    """Fine-tune `model`, in place and on its device, on the task of `train`.

    Weights that do not require gradients stay as they are; a body that is wholly frozen has no
    dropout either. `head` are the weights that are not pre-trained, if these are not simply those
    outside of the body: ways that freeze weights leave them. `source` loads the pre-trained model
    again (the `spec` of its Encoder), for ways that need its other head. With a `memory`, every
    finished epoch is saved there, and a stopped run continues after the last one: on a CPU with
    the same numbers as without the stop. With a `movement`, weights go during the training, and
    are zero after it. A `watch` looks at the model between steps, which changes no
    number; epochs that a memory brings back are not looked at. `stages` shows what ways do before.

    Raises JobError when the loss is no longer a number, and InterruptedRunError on Ctrl-C; in
    both cases the model keeps the weights it had before; parts that a way added remain.
    """
    chosen = settings or FinetuneSettings()
    task = learnable(train)
    check_fit(model, task, validation)
    _check_recording(chosen, movement)
    _check_device(model.device, chosen)
    limit = row_limit(model, tokenizer, chosen.max_length)
    seen, unseen = (encode_once(data, tokenizer, limit) for data in (train, validation))
    name_labels(model, task)
    steps = chosen.epochs * _batches(seen, chosen)
    lesson = lesson_of(
        model, tokenizer, train, [validation], chosen,
        head=head, source=source, memory=memory, stages=stages,
    )  # fmt: skip
    prepare(lesson, chosen.ways)
    trainer = _Trainer(
        model, task, chosen, steps=steps, lesson=lesson, movement=movement, watch=watch
    )
    course = Course(
        model, trainer.optimizer, chosen.seed, patience=chosen.early_stopping, movement=movement
    )
    with _all_or_nothing(model, trainer, memory), seeded(chosen.seed, model.device):
        if memory is not None:
            memory.recall(course)
            trainer.done = len(course.epochs) * _batches(seen, chosen)
        while len(course.epochs) < chosen.epochs and not course.over:
            number = len(course.epochs) + 1
            course.add(
                trainer.run_epoch(number, seen, unseen, order=course.order, progress=progress)
            )
            if memory is not None:
                memory.keep(course)
        course.take_best()
        if movement is not None:
            movement.thin(1.0)  # for good
        trained = sum(weight.numel() for weight in course.weights.values())
    before = sum(lesson.spent.values()), sum(lesson.passed.values())
    epochs = tuple(course.epochs)
    return History(epochs, seen.truncated, unseen.truncated, course.best, trained, *before)


def _check_recording(settings: FinetuneSettings, movement: Movement | None) -> None:
    """Refuse to record steps of which a recording would be silently wrong."""
    if not settings.recorded:
        return
    found = [repr(way.name) for way in settings.ways if not way.recordable]
    if movement is not None:
        found.append("a movement")
    if found:
        must = f"be False with {' and '.join(found)}, whose steps cannot be recorded"
        raise ParameterError("recorded", "FinetuneSettings", must, True)


def _check_device(device: torch.device, settings: FinetuneSettings) -> None:
    if device.type == "cuda":
        return
    for name, plain in (("recorded", False), ("precision", "float32")):
        value = getattr(settings, name)
        if value != plain:
            raise ParameterError(name, "FinetuneSettings", f"be {plain} but on a GPU", value)


@dataclass
class _Trainer:
    """The model with its optimizer and schedule, during training."""

    model: Classifier
    task: Task
    settings: FinetuneSettings
    steps: int
    lesson: Lesson | None = None
    movement: Movement | None = None
    watch: Watch | None = None
    done: int = 0
    factor: float = 1.0  # of the learning rate, now
    names: tuple[str, ...] = ()  # of the model's inputs
    beside: tuple[str, ...] = ()  # names of what ways put beside them
    optimizer: torch.optim.Optimizer = field(init=False)
    learn: Recorded[Tensor] = field(init=False)
    compute: Pass = field(init=False)

    def __post_init__(self) -> None:
        self.optimizer = make_optimizer(
            "adamw",
            self.model.parameters(),
            rate=self.settings.learning_rate,
            weight_decay=self.settings.weight_decay,
            capturable=self.settings.recorded,
            factors=self._factors(),
        )
        self.compute = self._plain
        for way in self.settings.ways:
            assert self.lesson is not None
            self.compute = partial(way.loss, self.lesson, self.compute)
        self.learn = Recorded(self._learn, record=self.settings.recorded)

    def _factors(self) -> dict[Tensor, float]:
        """What ways multiply the learning rate of single weights with."""
        named, factors = dict(self.model.named_parameters()), dict[Tensor, float]()
        for way in self.settings.ways:
            assert self.lesson is not None
            for name, factor in way.rates(self.lesson).items():
                factors[named[name]] = factors.get(named[name], 1.0) * factor
        return factors

    def run_epoch(
        self,
        number: int,
        seen: Encoded,
        unseen: Encoded,
        *,
        order: torch.Generator,
        progress: OnStep,
    ) -> Epoch:
        """One epoch. Its last step is reported together with the validation scores."""
        started = time.monotonic()
        summed = 0.0
        batches = list(seen.shuffled(self.settings.batch_size, order))
        # Reading a loss waits for the device: on a GPU the losses of some steps are read together.
        together = 1 if self.model.device.type == "cpu" else _UNREAD
        unread: list[Tensor] = []
        multiple = _MULTIPLE if self.settings.recorded else 1
        self._start_training()
        for i, chosen in enumerate(batches, 1):
            batch = seen.batch(chosen, self.model.device, multiple=multiple)
            unread.append(self._step(chosen, *batch))
            self._look(unseen)
            if len(unread) < together and i < len(batches):
                continue
            for b, loss in enumerate(self._read(unread), i - len(unread)):
                summed += loss * len(batches[b])
                if b + 1 < len(batches):
                    step = self.done - i + b + 1
                    progress(Step(step, self.steps, loss))
            unread.clear()
        thinned = self.movement.thinned(self.done / self.steps) if self.movement else nullcontext()
        with thinned:
            found = scores(predict(self.model, unseen, self.task), unseen.targets, self.task)
        epoch = Epoch(number, summed / len(seen), found, time.monotonic() - started)
        progress(Step(self.done, self.steps, loss, epoch))
        return epoch

    def _look(self, unseen: Encoded) -> None:
        """Let the watch see what the model says now, where it wants to."""
        if self.watch is not None and self.watch.wants(self.done, self.steps):
            self.watch.look(self.done, predict(self.model, unseen, self.task))
            self._start_training()

    def _start_training(self) -> None:
        """Dropout for what is trained; a frozen body has none."""
        self.model.train()
        body = self.model.base_model
        own = [p for n, p in body.named_parameters() if f".{READER}." not in f".{n}"]
        if not any(p.requires_grad for p in own):
            body.eval()

    def _step(self, chosen: Sequence[int], inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        rise = round(self.settings.warmup * self.steps)
        self.factor = learning_rate_factor(self.done, rise=rise, total=self.steps)
        set_rate(self.optimizer, self.settings.learning_rate * self.factor)
        more: dict[str, Tensor] = {}
        if self.lesson is not None:
            self.lesson.moment.begin(self.done, self.steps, chosen)
            for way in self.settings.ways:
                more |= way.beside(self.lesson, inputs)
            for way in self.settings.ways:
                inputs = way.inputs(self.lesson, inputs)
        self.names, self.beside = tuple(inputs), tuple(more)
        if self.movement is not None:
            self.movement.thin(self.done / self.steps)
        with quick_products(self.model.device):
            loss = self.learn(targets, *inputs.values(), *more.values())
        self.done += 1
        return loss.clone() if self.settings.recorded else loss

    def _learn(self, targets: Tensor, *given: Tensor) -> Tensor:
        inputs, more = given[: len(self.names)], given[len(self.names) :]
        if self.lesson is not None:
            self.lesson.moment.beside = dict(zip(self.beside, more, strict=True))
        loss = self.compute(dict(zip(self.names, inputs, strict=True)), targets)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.movement is not None:
            self.movement.learn(self.factor / self.steps)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimizer.step()
        return loss.detach()

    def _plain(self, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        low = self.settings.precision == "bfloat16"
        with torch.autocast(self.model.device.type, dtype=torch.bfloat16, enabled=low):
            logits = self.model(**inputs).logits
        return _loss(logits, targets, self.task)

    def _read(self, losses: list[Tensor]) -> list[float]:
        """The losses of the last steps, if they are numbers."""
        values: list[float] = torch.stack(losses).tolist()
        for step, value in enumerate(values, self.done - len(values) + 1):
            if not math.isfinite(value):
                raise JobError(
                    f"Training diverged: the loss is {value} at step {step} of {self.steps}.",
                    hint=f"Try a learning rate below {self.settings.learning_rate:g}, "
                    "or more warm-up.",
                )
        return values


def _loss(logits: Tensor, targets: Tensor, task: Task) -> Tensor:
    if task.kind == "regression":
        return functional.mse_loss(logits[:, 0].float(), targets)
    return functional.cross_entropy(logits.float(), targets)


def _batches(encoded: Encoded, settings: FinetuneSettings) -> int:
    return -(-len(encoded) // settings.batch_size)


@contextmanager
def _all_or_nothing(model: Model, trainer: _Trainer, memory: Memory | None) -> Iterator[None]:
    """Give the model its old weights back when training does not finish."""
    before = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
    try:
        yield
    except BaseException as error:
        model.load_state_dict(before)
        if isinstance(error, KeyboardInterrupt):
            kept = "finished epochs are kept" if memory else "the model is as it was before"
            again = (
                "The same command continues the run."
                if memory
                else "The same command starts it again."
            )
            raise InterruptedRunError(
                f"Training stopped at step {trainer.done} of {trainer.steps}; {kept}.", hint=again
            ) from None
        raise
    finally:
        model.eval()
        model.zero_grad(set_to_none=True)
        trainer.learn.forget()  # runs of a study follow each other in one process
        for way in trainer.settings.ways:
            assert trainer.lesson is not None
            way.finish(trainer.lesson)


def lesson_of(
    model: Classifier,
    tokenizer: Tokenizer,
    train: Corpus,
    scored: Sequence[Corpus],
    settings: FinetuneSettings,
    *,
    head: Collection[str] | None = None,
    source: Mapping[str, Any] | None = None,
    memory: Memory | None = None,
    stages: StageWatch | None = None,
) -> Lesson:
    """What ways may know of a training; without a `head`, it is all that is outside of the body."""
    if head is None:
        body = {id(p) for p in model.base_model.parameters()}
        head = frozenset(n for n, p in model.named_parameters() if id(p) not in body)
    return Lesson(
        model,
        tokenizer,
        train,
        settings.seed,
        settings.learning_rate,
        settings.batch_size,
        settings.max_length,
        head,
        source,
        None if memory is None else memory.stages,
        watch=stages or StageWatch(),
        epochs=settings.epochs,
        precision=settings.precision,
        recorded=settings.recorded,
        scored=scored,
    )


def prepare(lesson: Lesson, ways: Sequence[Way]) -> None:
    """Let all ways prepare the model of a lesson, stages first."""
    try:
        if any(way.stage for way in ways):
            try_ways(lesson, ways)
        else:
            _check(lesson, ways)
        with seeded(lesson.seed, lesson.model.device):
            for way in ways:
                way.prepare(lesson)
    except KeyboardInterrupt:
        raise InterruptedRunError(
            "Training stopped in a stage before it; what was finished is kept.",
            hint="The same command goes on.",
        ) from None
    _check_learning(lesson.model, ways)


def try_ways(lesson: Lesson, ways: Sequence[Way]) -> None:
    """Refuse what does not fit the model or the data, as all ways together would; no stage is done.

    What ways do to a model, they do to a copy of it.
    """
    _check(lesson, ways)
    tried = [way for way in ways if not way.stage]
    if not tried:
        return
    model = copy.deepcopy(lesson.model)
    own = replace(lesson, model=model, spent={}, passed={}, moment=Moment(), kept={})
    try:
        with seeded(lesson.seed, model.device):
            for way in tried:
                way.prepare(own)
            for way in tried:
                way.rates(own)
        _check_learning(model, ways)
    finally:
        for way in tried:
            way.finish(own)


def _check(lesson: Lesson, ways: Sequence[Way]) -> None:
    for way in ways:
        way.check(lesson, ways)


def _check_learning(model: Model, ways: Sequence[Way]) -> None:
    if not any(weight.requires_grad for weight in model.parameters()):
        raise ParameterError("ways", "finetune", "leave something to train", ways)
