"""What methods that teach a student have in common: its shape, its start, and its training."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import CapabilityError, ModelError, ParameterError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.heads_and_mlps import HeadsAndMlps
from bertology.train.compress.method import LEARNING, ONE_EPOCH, READ, SHAPE, Method
from bertology.train.compress.work import Work
from bertology.train.distil.students import StudentShape, check_student, chosen_layers, make_student
from bertology.train.distil.teacher import Teacher
from bertology.train.encoded import learnable
from bertology.train.starts import STARTS, begin
from bertology.train.ways import Way

LAYER_BY_LAYER = {
    "token_elimination": "states of tokens cannot be compared where some are gone",
    "factorised": "layers that are one cannot be compared layer by layer",
    "bilstm": "a BiLSTM has no attention",
}
"""Methods that cannot come before one whose student follows layers of the original, and why."""
_STARTS = ("auto", "layers", "slices", "random")
_SHAPE = ("layers", "heads", "hidden", "intermediate")
_LONGEST = 5  # words of a run


@dataclass(frozen=True)
class Teaching(Method):
    """A student learns from the original.

    Where no shape is given, the student is the model as it is now: so what earlier methods made
    learns from the original. Else it is a smaller model, made of the one as it is now; or a small
    pre-trained model that `start` names (Turc et al. 2019), with a new head.
    """

    other_tokens: ClassVar[bool] = False
    """Whether a student may cut texts into other tokens than the original."""
    takes_models: ClassVar[bool] = True
    """Whether `start` may name a model."""

    layers: int | None = parameter(None, "Layers of the student.", minimum=1)
    heads: int | None = parameter(None, "Heads in each of its layers.", minimum=1)
    hidden: int | None = parameter(None, "Its width.", minimum=1)
    intermediate: int | None = parameter(None, "The width of its MLPs.", minimum=1)
    start: str = parameter(
        "auto",
        "layers: chosen layers. slices: parts of them. random. auto: what fits. Or the folder or "
        "hub id of a small pre-trained model, whose shape the student has.",
        metavar="START|MODEL",
        place=READ,
        words=_STARTS,
    )
    which: str = parameter(
        "even", "Layers that it begins with: even, first, last, or numbers from 1: 1+3+5."
    )
    epochs: int | None = parameter(None, ONE_EPOCH, minimum=1)
    rate: float | None = parameter(None, "The highest learning rate.", minimum=1e-9)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._given:
            self._check_given()
        if not self._shaped and (self.start, self.which) != ("auto", "even"):
            said = {"start": self.start, "which": self.which}
            must = "be left out where the student has no shape of its own (layers=…, hidden=…)"
            name = "start" if self.start != "auto" else "which"
            raise ParameterError(name, self.name, must, said[name])

    def _check_given(self) -> None:
        if not self.takes_models:
            raise ParameterError("start", self.name, f"be one of {', '.join(_STARTS)}", self.start)
        usual = dict.fromkeys(_SHAPE) | {"which": "even"}
        for name, value in usual.items():
            if getattr(self, name) != value:
                must = f"be left out where start names a model ({self.start}), which has its shape"
                raise ParameterError(name, self.name, must, getattr(self, name))

    @property
    def own_model(self) -> str | None:
        """The small pre-trained model that the student begins with, if it does."""
        return None if self.start in _STARTS else self.start

    @property
    def _given(self) -> bool:
        return self.own_model is not None

    @property
    def _shaped(self) -> bool:
        return self._given or any(getattr(self, name) is not None for name in _SHAPE)

    @property
    def begins(self) -> bool:
        """A model of its own has nothing of what came before."""
        return self._given

    def ingredients(self) -> dict[str, str]:
        """The small pre-trained model itself, wherever it lies."""
        if not self._given:
            return {}
        return {f"start of {self.name}": self._given_model("cpu").fingerprint}

    def _given_model(self, device: str, head: str = "base") -> Encoder:
        try:
            return Encoder.load(self.start, device=device, head=head)
        except ModelError as error:
            must = f"be one of {', '.join(_STARTS)}, or a small pre-trained model: {error.problem}"
            raise ParameterError("start", self.name, must, self.start) from error

    @property
    def kind(self) -> str:
        """A smaller model, or the same parts with other weights."""
        return SHAPE if self._shaped else LEARNING

    def unfit_after(self, earlier: Method) -> str | None:
        """A student is made of whole layers."""
        if self._shaped and earlier.name == "heads_and_mlps":
            return "a student begins with layers that are alike"
        return super().unfit_after(earlier)

    def shaped(self) -> tuple[StudentShape, str]:
        """The shape that is asked for, and what the student begins with."""
        wide = {n: getattr(self, n) for n in _SHAPE if n != "layers"}
        start = self.start
        if start == "auto":
            start = "layers" if all(v is None for v in wide.values()) else "slices"
        return StudentShape(layers=self.layers, **wide), start

    def check_fit(self, encoder: Encoder) -> None:
        """A student is made of the model's layers, or its own model can be taught by it."""
        if self._given:
            self._check_tokens(self._given_model("cpu"), encoder)
        elif self._shaped:
            shape, start = self.shaped()
            check_student(encoder, shape, start=start, which=self.which)

    def _check_tokens(self, small: Encoder, encoder: Encoder) -> None:
        small.require_tokenizer()
        own, its = small.tokenizer, encoder.tokenizer
        if own.get_vocab() == its.get_vocab():
            return
        problem = f"{self.start!r} cuts texts into other tokens than {encoder.name!r}"
        hint = "Take soft_labels; or patient, which reads the first token; or alone."
        if not self.other_tokens:
            raise CapabilityError(
                f"{problem}, so that {self.name!r} cannot compare them.", hint=hint
            )
        if getattr(self, "copies", 0) and own.mask_token != its.mask_token:
            raise CapabilityError(
                f"{problem}, and knows no {its.mask_token}.", hint="Take copies=0."
            )

    def student(self, work: Work) -> Encoder:
        """The model that learns."""
        if not self._shaped:
            return work.encoder
        if self._given:
            found = self.begun_as_given(work)
            work.say(f"the student ({found.shape}) begins with the weights of {self.start}")
            return found
        shape, start = self.shaped()
        model = make_student(
            work.encoder.model, shape, start=start, which=self.which, seed=work.seed
        )
        found = work.around(model)
        begun = "begins at random"
        if start != "random":
            of = work.encoder.shape.layers
            layers = ", ".join(map(str, chosen_layers(self.which, found.shape.layers, of)))
            parts = "parts of " if start == "slices" else ""
            begun = f"begins with {parts}layers {layers} of {of} (counted from 1)"
        work.say(f"the student ({found.shape}) {begun}")
        return found

    def begun_as_given(self, work: Work) -> Encoder:
        """The model that `start` names, with a new head for the task."""
        small = self._given_model(str(work.teacher.device))
        model: Any = begin(small, learnable(work.train), STARTS["pretrained"], seed=work.seed)
        for name in ("id2label", "label2id", "problem_type"):
            setattr(model.config, name, getattr(work.teacher.config, name, None))
        return work.around(model, small.tokenizer)

    def way(self, work: Work, teacher: Teacher) -> Way:
        """How it learns."""
        raise NotImplementedError

    def apply(self, work: Work) -> Encoder:
        """Make the student, and teach it."""
        student = self.student(work)
        way = self.way(work, work.asked(student.tokenizer))
        data = self.data(work)
        work.train_on(student, ways=(way,), epochs=self.epochs, rate=self.rate, on=data)
        if self.first_stage:
            work.say(self.first_stage)
        return student

    @property
    def epochs_before(self) -> int:
        """Epochs of all stages before the last."""
        return 0

    @property
    def first_stage(self) -> str:
        """What was done before the last stage, if anything was, for the card."""
        return ""

    def data(self, work: Work) -> Corpus:
        """What it learns from."""
        return work.train


def unfit_heads(method: Method, earlier: Method, parts: int) -> str | None:
    """Why attention cannot be compared with the original's after a method, if it cannot."""
    cut = isinstance(earlier, HeadsAndMlps) and earlier.share_of_heads != 1
    if parts or method.begins or not cut:
        return None
    return (
        "fewer heads than the original's cannot be compared with them one by one; say in how many "
        "parts, which divide the size of a head (parts=…)"
    )


def check_copies(method: Method, copies: int, hard: float) -> None:
    """Copies of texts keep a label that need not be theirs."""
    if copies and hard:
        must = "be 0 where texts are copied: the labels of copies need not be right"
        raise ParameterError("hard", method.name, must, hard)


def with_copies(work: Work, copies: int) -> Corpus:
    """The training data, and copies of its texts with hidden words, for the original to answer."""
    if not copies:
        return work.train
    mask = work.teacher.tokenizer.mask_token
    found = masked_copies(work.train, copies=copies, mask=mask, seed=work.seed)
    work.say(f"{len(found) - len(work.train):,} copies of texts, with hidden words, were added")
    return found


def masked_copies(
    corpus: Corpus,
    *,
    copies: int = 20,
    share: float = 0.1,
    runs: float = 0.25,
    mask: str = "[MASK]",
    seed: int = 0,
) -> Corpus:
    """The examples, and up to `copies` changed ones of each; the same text is there once.

    A small student learns little of a few thousand texts; a teacher may be asked about any text
    (Tang et al. 2019). `share` of the words are hidden behind the mask token; `runs` is the share
    of copies that are then cut to a run of one to five words. Of a pair, copies change the first
    text, the second, or both, in turn. The paper also swaps words for others of their class, which
    needs a tagger, and is not done here. Copies keep the label of their text, which need not be
    theirs: learn from them with `hard=0`.
    """
    limits = {"copies": copies >= 0, "share": 0 <= share <= 1, "runs": 0 <= runs <= 1}
    for name, fits in limits.items():
        if not fits:
            must = "be at least 0" if name == "copies" else "be from 0 to 1"
            raise ParameterError(name, "masked_copies", must, locals()[name])
    chance = random.Random(seed)
    found, there = list(corpus), {example.texts for example in corpus}
    for example in corpus:
        for number in range(copies):
            changed = _changed(example, number, chance, (share, runs, mask))
            if changed.texts not in there:
                there.add(changed.texts)
                found.append(changed)
    kept = corpus.fields & {Field.TEXT, Field.TEXT_B, Field.LABEL}
    return replace(corpus, examples=found, fields=kept, origin={}, drawn_from=None)


def _changed(
    example: Example, number: int, chance: random.Random, how: tuple[float, float, str]
) -> Example:
    texts = list(example.texts)
    # Of a pair: the first, the second, both.
    turn = range(len(texts)) if len(texts) == 1 or number % 3 == 2 else [number % 3]
    for i in turn:
        words = texts[i].split()
        share, runs, mask = how
        shown = [mask if chance.random() < share else word for word in words]
        if shown and chance.random() < runs:
            length = min(len(shown), chance.randint(1, _LONGEST))
            begin = chance.randint(0, len(shown) - length)
            shown = shown[begin : begin + length]
        texts[i] = " ".join(shown)
    second = texts[1] if len(texts) == 2 else None
    return Example(f"{example.id}+{number + 1}", texts[0], second, label=example.label)
