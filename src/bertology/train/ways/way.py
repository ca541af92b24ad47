"""What a way to fine-tune is: options, and up to seven hooks into the trainer.

A way is a frozen dataclass in a module of its own, whose file name is the way's name. Whatever it
draws while the model is trained, it draws from torch's own generators: the trainer seeds them, and
its checkpoints keep them, so a run that was killed goes on to the same numbers. What it draws
before, it draws from `Lesson.generator`, which depends on the seed alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from bertology.data.corpus import Corpus
from bertology.model.added_parts import READER
from bertology.model.encoder import Encoder
from bertology.model.weight_depths import weight_depths
from bertology.parameters import check_parameters
from bertology.train.protocols import Tokenizer
from bertology.train.stage_watch import StageWatch

Pass = Callable[[dict[str, Tensor], Tensor], Tensor]
"""From inputs and targets of one batch to the loss."""
HELPER = "training_helper"  # a module beside the model's own: trained with them, and not saved


@dataclass
class Moment:
    """Where a training is now."""

    done: int = 0
    """Updates so far."""
    steps: int = 1
    """Updates in all."""
    chosen: Sequence[int] = ()
    """The examples of this batch, by their places in the training data."""
    beside: dict[str, Tensor] = field(default_factory=dict)
    """What ways put beside this batch (`Way.beside`), for their losses."""

    def begin(self, done: int, steps: int, chosen: Sequence[int]) -> None:
        """The next batch."""
        self.done, self.steps, self.chosen = done, steps, chosen


@dataclass(frozen=True)
class Lesson:
    """What a way may know of the training that it is part of."""

    model: Any
    """The classifier; ways change it in place."""
    tokenizer: Tokenizer
    train: Corpus
    seed: int
    rate: float
    """The highest learning rate."""
    batch_size: int
    max_length: int | None
    head: Collection[str]
    """Weights that are not pre-trained: they are trained whatever a way freezes."""
    source: Mapping[str, Any] | None = None
    """What loads the pre-trained model again, with another head; None if it is not known."""
    folder: Path | None = None
    """Where a stage before the training may keep what it made; None keeps nothing."""
    spent: dict[str, float] = field(default_factory=dict)
    """Seconds of each stage before the training."""
    passed: dict[str, int] = field(default_factory=dict)
    """Epochs of each stage before the training, also of one that was done before a stop."""
    watch: StageWatch = field(default_factory=StageWatch)
    """Shows the stages before the training, and what else takes long."""
    epochs: int = 1
    """Passes over the training data."""
    precision: str = "float32"
    """Of the passes."""
    recorded: bool = False
    """Whether steps are recorded on a GPU."""
    scored: Sequence[Corpus] = ()
    """What the model is scored on: nothing may be learnt from it."""
    moment: Moment = field(default_factory=Moment)
    """Where the training is now."""
    kept: dict[str, Any] = field(default_factory=dict)
    """What ways keep from one hook to another, by their names."""

    def seed_of(self, way: Way) -> int:
        """For what a way draws before the training: by the seed, and apart from other ways."""
        return int.from_bytes(sha256(f"{self.seed} {way.name}".encode()).digest()[:7], "big")

    def generator(self, way: Way) -> torch.Generator:
        """The same as a generator."""
        return torch.Generator().manual_seed(self.seed_of(way))

    @property
    def layers(self) -> int:
        """How many layers the model has."""
        return Encoder(self.model).shape.layers

    def depths(self) -> dict[str, int]:
        """How deep each weight lies: 0 the embeddings, 1 to L the layers, L + 1 what follows."""
        return weight_depths(Encoder(self.model))

    def train_only(self, wanted: Callable[[str], bool]) -> None:
        """Freeze all weights but those of these names and of the head; none is unfrozen.

        What reads the layers for the head (a mix, a join) is new too, and belongs to the head; so
        do the helpers of other ways.
        """
        for name, weight in self.model.named_parameters():
            new = name in self.head or f".{READER}." in name or name.startswith(f"{HELPER}.")
            if not new and not wanted(name):
                weight.requires_grad_(False)


@dataclass(frozen=True)
class Way:
    """One way to fine-tune. The hooks here do nothing; a way has those that it needs."""

    summary: ClassVar[str] = ""
    """What it does, for a table of ways."""
    order: ClassVar[int] = 5
    """Which comes first of several: stages 0 and 1, new weights 2, new parts 3, freezing 5."""
    usual_rate: ClassVar[float | None] = None
    """A learning rate that suits it, where that of plain fine-tuning does not."""
    starts: ClassVar[frozenset[str]] = frozenset({"pretrained", "random", "frozen-features"})
    """What it may start from."""
    against: ClassVar[Mapping[str, str]] = {}
    """Ways that it cannot be used with, and why."""
    stage: ClassVar[bool] = False
    """Whether it is a training of its own, before."""
    recordable: ClassVar[bool] = True
    """Whether its steps can be recorded on a GPU and replayed."""

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def name(self) -> str:
        """The name of its file."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def text(self) -> str:
        """As it is written: `adapters:size=16`."""
        options = ",".join(f"{f.name}={_plain(getattr(self, f.name))}" for f in fields(self))
        return f"{self.name}:{options}" if options else self.name

    def ingredients(self, train: Corpus) -> dict[str, str]:
        """What else decides the result: fingerprints of the data that options name.

        They lie where the data that are learnt from do, if those have a place.
        """
        return {}

    def check(self, lesson: Lesson, ways: Sequence[Way]) -> None:
        """Before any work: refuse what does not fit the model or the data, which stay as they are.

        `ways` are all that are applied, this one too: what each allows alone may be nonsense
        together. What `prepare` and `rates` refuse need not be looked for here: where there is a
        stage, they are tried on a copy of the model before it.
        """

    def prepare(self, lesson: Lesson) -> None:
        """Before the training: change the model, or which of its weights are trained."""

    def rates(self, lesson: Lesson) -> Mapping[str, float]:
        """Factors of the learning rate by the names of weights; 1 where there is none."""
        return {}

    def beside(self, lesson: Lesson, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """What else the loss is made of, by names of its own; the model does not see it.

        `inputs` are the texts as they are, before any way changes them. What is given here is an
        argument of a recorded step, and the loss finds it in `lesson.moment.beside`.
        """
        return {}

    def inputs(self, lesson: Lesson, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """What the model sees of a batch in training."""
        return inputs

    def loss(
        self, lesson: Lesson, plain: Pass, inputs: dict[str, Tensor], targets: Tensor
    ) -> Tensor:
        """The loss of a batch, by any number of plain passes."""
        return plain(inputs, targets)

    def finish(self, lesson: Lesson) -> None:
        """After the training, or after its failure: leave a model that can be saved."""


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def after_stage(
    lesson: Lesson, way: Way, make: Callable[[], Mapping[str, Tensor]], *, epochs: int
) -> None:
    """Give the body the weights that a stage made in so many epochs, by their names in it.

    They are kept where the lesson says: what is trained after the stage may be few of them, and a
    run that was stopped goes on without doing the stage again.
    """
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    place = None if lesson.folder is None else lesson.folder / f"{way.name}.safetensors"
    if place is not None and place.is_file():
        made: Mapping[str, Tensor] = load_file(place)
        with safe_open(place, "pt") as file:
            lesson.spent[way.name] = float(file.metadata()["seconds"])
    else:
        started = time.monotonic()
        made = {n: w.detach().cpu().clone().contiguous() for n, w in make().items()}
        lesson.spent[way.name] = time.monotonic() - started
        if place is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            draft = place.with_suffix(".draft")
            save_file(dict(made), draft, {"seconds": str(lesson.spent[way.name])})
            draft.replace(place)
    lesson.passed[way.name] = epochs
    lesson.model.base_model.load_state_dict(made, strict=False)
