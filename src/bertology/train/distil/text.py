"""Distillation on text, for no task: a masked LM learns a masked LM (DistilBERT, Sanh et al. 2019).

The loss has three parts, at the hidden words: the teacher's soft answers, the words themselves;
and at all tokens, one less the cosine of the last states of both. The teacher reads the same hidden
words as the student, which are drawn anew for each batch; so it is asked at each step.

    student = make_student(teacher_lm, StudentShape(layers=6))
    distil_text(Teacher(teacher_lm), student, tokenizer, Corpus.of_texts(lines), epochs=3)
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from bertology.data.corpus import Corpus, Field, Task
from bertology.errors import CapabilityError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.distil.seen import Needs, real_tokens
from bertology.train.distil.soft_labels import Distilled, soft_loss
from bertology.train.distil.students import make_student, shape_of
from bertology.train.distil.teacher import Teacher
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.history import History, OnStep
from bertology.train.memory import Memory
from bertology.train.protocols import Tokenizer
from bertology.train.recorded import quick_products
from bertology.train.stage_watch import StageWatch, losses_only
from bertology.train.ways.masked_lm import hidden_tokens
from bertology.train.ways.way import Lesson, Pass, after_stage

_TASK = Task("text", "classification", ("text",), ("accuracy",))


@dataclass(frozen=True)
class TextFollowing(Distilled):
    """Trained: a masked LM, on hidden words, the teacher's answers there, and its states."""

    recordable: ClassVar[bool] = False  # how many words are hidden changes from batch to batch

    temperature: float = parameter(2.0, "Softens both answers.", minimum=0.01)
    share: float = parameter(0.15, "Share of tokens to predict.", minimum=0.01, maximum=0.9)
    soft: float = parameter(5.0, "Factor of the teacher's answers.", minimum=0)
    hard: float = parameter(2.0, "Factor of the words themselves.", minimum=0)
    cosine: float = parameter(1.0, "Factor of how states differ in direction.", minimum=0)

    def teacher_needs(self, lesson: Lesson) -> Needs:
        """Nothing beforehand: it reads what the student reads."""
        return Needs()

    def prepare(self, lesson: Lesson) -> None:
        """Check that both can be compared."""
        own, its = lesson.model.config, self.teacher.model.config
        if own.vocab_size != its.vocab_size:
            raise CapabilityError(
                f"The student's vocabulary has {own.vocab_size} pieces and the teacher's "
                f"{its.vocab_size}: their predictions cannot be compared."
            )
        if self.cosine and own.hidden_size != its.hidden_size:
            raise CapabilityError(
                f"States of width {own.hidden_size} have no cosine with those of "
                f"{its.hidden_size}.",
                hint="Take cosine=0, or a student as wide as the teacher.",
            )
        self.teacher.check_rows(lesson)

    def beside(self, lesson: Lesson, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Nothing."""
        return {}

    def loss(
        self, lesson: Lesson, plain: Pass, inputs: dict[str, Tensor], targets: Tensor
    ) -> Tensor:
        """The three parts."""
        ids = inputs["input_ids"]
        shown, asked = hidden_tokens(ids, lesson.tokenizer, self.share)
        seen = {**inputs, "input_ids": shown}
        low = lesson.precision == "bfloat16"
        where = lesson.model.device.type
        with torch.autocast(where, dtype=torch.bfloat16, enabled=low):
            logits, states = _at(lesson.model.masked, seen, asked)
            with torch.no_grad(), quick_products(lesson.model.device):
                answers, theirs = _at(self.teacher.model, seen, asked)
        found = self.hard * functional.cross_entropy(logits, ids[asked])
        found = found + self.soft * soft_loss(
            logits, answers, self.temperature, match="probabilities"
        )
        if self.cosine:
            real = real_tokens(inputs)
            alike = functional.cosine_similarity(states[real], theirs[real], dim=-1)
            found = found + self.cosine * (1 - alike).mean()
        return found


@dataclass(frozen=True)
class Text(Distilled):
    """Trained first: everything, as a masked LM, on the task's texts by a masked LM as a teacher.

    The second stage is plain fine-tuning; another way of distillation may stand beside this one.
    The head is the teacher's where it fits, and is left behind.
    """

    summary: ClassVar[str] = "first a masked LM's soft answers on the task's texts are learnt"
    order: ClassVar[int] = 0
    stage: ClassVar[bool] = True

    epochs: int = parameter(1, "Passes over the texts.", minimum=1)
    rate: float = parameter(1e-4, "Highest learning rate of this stage.", minimum=1e-9)
    temperature: float = parameter(2.0, "Softens both answers.", minimum=0.01)
    share: float = parameter(0.15, "Share of tokens to predict.", minimum=0.01, maximum=0.9)
    cosine: float = parameter(1.0, "Factor of how states differ in direction.", minimum=0)

    def prepare(self, lesson: Lesson) -> None:
        """Do the stage, or take what it made."""
        after_stage(lesson, self, lambda: self._learn(lesson), epochs=self.epochs)

    def beside(self, lesson: Lesson, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Nothing: the second stage has no teacher of its own."""
        return {}

    def _learn(self, lesson: Lesson) -> Mapping[str, Tensor]:
        its, shape = self.teacher.model, shape_of(lesson.model)
        had = shape_of(its)
        # The head begins as the teacher's, if states are as wide; the body is the student's own.
        alike = replace(shape, layers=had.layers) == had
        fewer = Encoder(lesson.model).shape.layers <= Encoder(its).shape.layers
        start = "layers" if alike and fewer else "random"
        student = make_student(its, shape, start=start, seed=lesson.seed)
        body = lesson.model.base_model.state_dict()
        there = student.base_model.state_dict()
        student.base_model.load_state_dict({n: w for n, w in body.items() if n in there})
        memory = None
        if lesson.folder is not None:
            made_of = f"{self.text} {self.teacher.fingerprint()} {lesson.train.fingerprint}"
            identity = sha256(f"{made_of} {lesson.seed}".encode()).hexdigest()[:16]
            memory = Memory(lesson.folder / self.name, identity)
        settings = FinetuneSettings(
            epochs=self.epochs,
            batch_size=lesson.batch_size,
            learning_rate=self.rate,
            seed=lesson.seed,
            max_length=lesson.max_length,
            precision=lesson.precision,
        )
        way = TextFollowing(
            self.teacher, temperature=self.temperature, share=self.share, cosine=self.cosine
        )
        with lesson.watch.shown("on text", self.epochs) as line:
            distil_text(
                self.teacher,
                student,
                lesson.tokenizer,
                lesson.train,
                settings=settings,
                way=way,
                memory=memory,
                progress=line.step,
            )
        found: Mapping[str, Tensor] = student.base_model.state_dict()
        return found


def distil_text(
    teacher: Teacher,
    student: Any,
    tokenizer: Tokenizer,
    texts: Corpus,
    *,
    settings: FinetuneSettings | None = None,
    way: Distilled | None = None,
    memory: Memory | None = None,
    progress: OnStep = lambda step: None,
    stages: StageWatch | None = None,
) -> History:
    """Train a masked LM, in place, on texts by another one; labels are not looked at.

    Other ways that look at no label may stand in for the three parts: `RelationFollowing`, which is
    how MiniLM is made, and `LayerFollowing`, the first stage of TinyBERT, with the teacher's body
    (`Teacher(teacher_lm.base_model)`). The scores of epochs say nothing; their losses do.
    """
    by, given = way or TextFollowing(teacher), settings or FinetuneSettings()
    chosen = replace(given, ways=(by,), recorded=given.recorded and by.recordable)
    data = replace(
        texts,
        examples=[replace(example, label=0) for example in texts],
        fields=texts.fields | {Field.LABEL},
        task=_TASK,
    )
    held: Any = _Masked(student)
    return finetune(
        held,
        tokenizer,
        data,
        data[:1],
        settings=chosen,
        memory=memory,
        progress=losses_only(progress),
        stages=stages,
    )


class _Masked(nn.Module):
    """A masked LM where the trainer wants a classifier; its answers are all the same."""

    def __init__(self, masked: Any) -> None:
        super().__init__()
        self.masked = masked
        self.config = copy.deepcopy(masked.config)
        self.config.num_labels = 1

    base_model_prefix = "masked"

    @property
    def base_model(self) -> Any:
        return self.masked.base_model

    @property
    def device(self) -> torch.device:
        found: torch.device = self.masked.device
        return found

    def forward(self, **inputs: Any) -> Any:
        """One class; and the states, where they are asked for."""
        out = self.base_model(**inputs)
        logits = torch.zeros(len(inputs["input_ids"]), 1, device=self.device)
        return SimpleNamespace(logits=logits, hidden_states=out.hidden_states)


def _at(model: Any, inputs: dict[str, Tensor], asked: Tensor) -> tuple[Tensor, Tensor]:
    """Predictions at the places (B, T) that are asked for, and the last states of all tokens."""
    with _narrowed(model, asked) as narrow:
        out = model(**inputs, output_hidden_states=True)
    logits = out.logits if narrow.done else out.logits[asked]
    return logits.float(), out.hidden_states[-1].float()


@contextmanager
def _narrowed(model: Any, asked: Tensor) -> Iterator[_Narrow]:
    """The widest product, to the vocabulary, is computed where it is asked for only."""
    narrow = _Narrow(asked)
    handle = model.get_output_embeddings().register_forward_pre_hook(narrow)
    try:
        yield narrow
    finally:
        handle.remove()


@dataclass
class _Narrow:
    asked: Tensor
    done: bool = field(default=False)

    def __call__(self, module: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if given[0].shape[:-1] != self.asked.shape:
            return None
        self.done = True
        return (given[0][self.asked], *given[1:])
