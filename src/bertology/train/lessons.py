"""A fine-tuned model is taught something new, with and without care for what it knew before.

Each lesson starts from the same model. It sees the new examples alone, or mixed with old ones;
after some of its epochs both tasks are asked on data that only decide. "Inoculation" (Liu et al.
2019; Richardson et al. 2020) keeps the model whose mean of both scores is best; without it, the
last one that saw new examples only is kept.

    found = teach(Lesson(model, tokenizer, new, old, settings), exam, mixtures=(1,))
    found.plain.new, found.chosen.old      # answers on data that decided nothing
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor

from bertology.arrays import Floats
from bertology.data.corpus import Corpus, Task
from bertology.stats.balanced import balanced_accuracy
from bertology.train.evaluate import predict
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.history import Step
from bertology.train.protocols import Classifier, Tokenizer
from bertology.train.recorded import gains_by_recording
from bertology.train.token_rows import Encoded

CHECKS = 5  # epochs of one lesson after which both tasks are asked

Tell = Callable[[float], None]


@dataclass(frozen=True)
class Lesson:
    """Who is taught, and what; `old` is what may be mixed in, in the order in which it is taken."""

    model: Classifier  # stays as it is
    tokenizer: Tokenizer
    new: Corpus
    old: Corpus
    settings: FinetuneSettings
    updates: int = 0  # a lesson has at least so many: few examples are seen more often


@dataclass(frozen=True)
class Exam:
    """Both tasks as a model reads them: data that decide, and data that report."""

    task: Task
    deciding_new: Encoded
    deciding_old: Encoded
    new: Encoded
    old: Encoded

    def decided(self, model: Classifier) -> tuple[float, float]:
        """The scores of the new and of the old task on the data that decide."""
        scores = [
            balanced_accuracy(predict(model, data, self.task), data.targets)
            for data in (self.deciding_new, self.deciding_old)
        ]
        return scores[0], scores[1]

    def answered(self, model: Classifier) -> Answered:
        """What a model says of the data that report."""
        return Answered(predict(model, self.new, self.task), predict(model, self.old, self.task))


@dataclass(frozen=True)
class Answered:
    """Answers on the data that report."""

    new: Floats
    old: Floats


@dataclass(frozen=True)
class Candidate:
    """One model that could be kept: how much old was mixed in, and how long it learnt."""

    mixture: int  # old examples for each new one
    epoch: int
    new: float  # scores on the data that decide
    old: float

    @property
    def score(self) -> float:
        """What the choice is made by."""
        return (self.new + self.old) / 2


@dataclass(frozen=True)
class Lessons:
    """What a model says after it was taught, and how the careful one was chosen."""

    plain: Answered
    chosen: Answered
    candidates: tuple[Candidate, ...]
    best: int  # of the candidates


def teach(
    lesson: Lesson, exam: Exam, *, mixtures: Sequence[int] = (1,), tell: Tell = lambda done: None
) -> Lessons:
    """Teach copies of the model: one sees the new examples alone, others mixed with old ones.

    `mixtures` says how many old ones for each new one; `tell` gets the share that is done.
    """
    rounds, course = list(dict.fromkeys((0, *mixtures))), _Course(exam)
    plain: Answered | None = None
    for at, mixture in enumerate(rounds):
        model = copy.deepcopy(lesson.model)

        def told(done: float, at: int = at) -> None:
            tell((at + done) / len(rounds))

        course.follow(model, lesson, mixture, told)
        plain = plain or exam.answered(model)
    assert plain is not None
    model.load_state_dict(course.weights)
    return Lessons(plain, exam.answered(model), tuple(course.candidates), course.best)


@dataclass
class _Course:
    """All candidates so far, and the weights of the best of them; of equal ones, the first."""

    exam: Exam
    candidates: list[Candidate] = field(default_factory=list)
    best: int = -1
    weights: dict[str, Tensor] = field(default_factory=dict)

    def follow(self, model: Classifier, lesson: Lesson, mixture: int, tell: Tell) -> None:
        """Train a model in place, and ask it after some of its epochs."""
        settings, train = lesson.settings, _mixed(lesson, mixture)
        least = math.ceil(lesson.updates / math.ceil(len(train) / settings.batch_size))
        epochs = max(settings.epochs, least)
        asked = {math.ceil(epochs * (i + 1) / CHECKS) for i in range(CHECKS)}
        recorded = settings.recorded or gains_by_recording(model)

        def on_step(step: Step) -> None:
            if step.epoch is not None and step.epoch.number in asked:
                self._ask(model, mixture, step.epoch.number)
            tell(step.done / step.total)

        finetune(
            model,
            lesson.tokenizer,
            train,
            train[:1],  # what it would be asked after each epoch is asked here, of both tasks
            settings=replace(settings, epochs=epochs, recorded=recorded),
            progress=on_step,
        )

    def _ask(self, model: Classifier, mixture: int, epoch: int) -> None:
        found = Candidate(mixture, epoch, *self.exam.decided(model))
        self.candidates.append(found)
        if self.best < 0 or found.score > self.candidates[self.best].score:
            self.best = len(self.candidates) - 1
            self.weights = {n: w.detach().cpu().clone() for n, w in model.state_dict().items()}


def _mixed(lesson: Lesson, mixture: int) -> Corpus:
    """The new examples, and the first so many old ones."""
    taken = list(lesson.old.examples[: mixture * len(lesson.new)])
    fields = lesson.new.fields & lesson.old.fields if taken else lesson.new.fields
    return replace(lesson.new, examples=[*lesson.new.examples, *taken], fields=fields)
