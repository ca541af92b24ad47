"""What methods that teach a student have in common: its shape, its start, and its training."""

from __future__ import annotations

from dataclasses import dataclass

from bertology.data.corpus import Corpus
from bertology.errors import ParameterError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.compress.method import LEARNING, ONE_EPOCH, SHAPE, Method
from bertology.train.compress.work import Work
from bertology.train.distil.augment import masked_copies
from bertology.train.distil.students import StudentShape, check_student, chosen_layers, make_student
from bertology.train.distil.teacher import Teacher
from bertology.train.ways import Way

__all__ = ["LAYER_BY_LAYER", "Teaching", "check_copies", "with_copies"]

LAYER_BY_LAYER = {
    "token_elimination": "states of tokens cannot be compared where some are gone",
    "factorised": "layers that are one cannot be compared layer by layer",
    "bilstm": "a BiLSTM has no attention",
}
"""Methods that cannot come before one whose student follows layers of the original, and why."""

_SHAPE = ("layers", "heads", "hidden", "intermediate")


@dataclass(frozen=True)
class Teaching(Method):
    """A student learns from the original.

    Where no shape is given, the student is the model as it is now: so what earlier methods made
    learns from the original. Else it is a smaller model, made of the one as it is now.
    """

    layers: int | None = parameter(None, "Layers of the student.", minimum=1)
    heads: int | None = parameter(None, "Heads in each of its layers.", minimum=1)
    hidden: int | None = parameter(None, "Its width.", minimum=1)
    intermediate: int | None = parameter(None, "The width of its MLPs.", minimum=1)
    start: str = parameter(
        "auto", "layers: chosen layers. slices: parts of them. random. auto: what fits.",
        choices=("auto", "layers", "slices", "random"),
    )  # fmt: skip
    which: str = parameter("even", "Layers that it begins with: even, first, last, or 1+3+5.")
    epochs: int | None = parameter(None, ONE_EPOCH, minimum=1)
    rate: float | None = parameter(None, "The highest learning rate.", minimum=1e-9)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self._shaped and (self.start, self.which) != ("auto", "even"):
            said = {"start": self.start, "which": self.which}
            must = "be left out where the student has no shape of its own (layers=…, hidden=…)"
            name = "start" if self.start != "auto" else "which"
            raise ParameterError(name, self.name, must, said[name])

    @property
    def _shaped(self) -> bool:
        return any(getattr(self, name) is not None for name in _SHAPE)

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
        """A student is made of the model's layers."""
        if self._shaped:
            shape, start = self.shaped()
            check_student(encoder, shape, start=start, which=self.which)

    def student(self, work: Work) -> Encoder:
        """The model that learns."""
        if not self._shaped:
            return work.encoder
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
    def first_stage(self) -> str:
        """What was done before the last stage, if anything was, for the card."""
        return ""

    def data(self, work: Work) -> Corpus:
        """What it learns from."""
        return work.train


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
