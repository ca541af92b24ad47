"""What a method of compression is: options, and how a model becomes a smaller one.

A method is a frozen dataclass in a module of its own, whose file name is the method's name. It is
given `Work`: the model as it is now, the original, and data. What it draws, it draws by the seed
of the work, and what it trains, it trains by `Work.train_on`: so a run that was killed goes on to
the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

from bertology.parameters import check_parameters
from bertology.train.written_options import option_text

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.train.compress.work import Work

ONE_EPOCH = "Epochs of its training; those of the command if not given."
EPOCHS = "Epochs of its training; those of the command if not given, 0 for none."

SHAPE = "shape"  # fewer layers, heads, MLPs, or a smaller student: an ordinary model
FORM = "form"  # parts that models of this family do not have
LEARNING = "learning"  # the same parts, trained
ZEROS = "zeros"  # zeros in the place of single weights
EXITS = "exits"  # heads on lower layers, trained for the model as it is
OTHER = "other"  # another kind of model, no transformer
STORED = "stored"  # other numbers on the disk: whole ones, or of 16 bits

READ, WRITTEN = "read", "written"  # what options that name a place do with what lies there


@dataclass(frozen=True)
class Method:
    """One method of compression."""

    summary: ClassVar[str] = ""
    """What it does, for a table of methods."""
    source: ClassVar[str] = ""
    """Who described it."""
    against: ClassVar[Mapping[str, str]] = {}
    """Methods that cannot come before it, and why."""

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def name(self) -> str:
        """The name of its file."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def text(self) -> str:
        """As it is written: `low_rank:share=0.5`."""
        return option_text(self, self.name)

    @property
    def hashed(self) -> str:
        """The same without places, since moving a file changes no model: see `ingredients`."""
        return option_text(self, self.name, hidden=[*self.places(READ), *self.places(WRITTEN)])

    def places(self, use: str) -> dict[str, str]:
        """Options that say where something lies that is READ, or WRITTEN beside the model.

        The one place that knows them: fields with `place=READ`, unless they hold one of `words`.
        """
        found = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.metadata.get("place") == use and value not in (None, *f.metadata.get("words", ())):
                found[f.name] = value
        return found

    @property
    def kind(self) -> str:
        """What it changes, which decides what may come after it."""
        return SHAPE

    @property
    def uses_base(self) -> bool:
        """Whether it needs the model before it was fine-tuned (`Work.base`)."""
        return False

    @property
    def begins(self) -> bool:
        """Whether it leaves behind what came before, so that it can only be the first."""
        return False

    def unfit_after(self, earlier: Method) -> str | None:
        """Why it cannot come after another method, if it cannot."""
        return self.against.get(earlier.name)

    def check_fit(self, encoder: Encoder) -> None:
        """Refuse options that do not fit the model that it is given, before any work."""

    def ingredients(self) -> dict[str, str]:
        """What else decides the result: fingerprints of files that options name."""
        return {}

    def apply(self, work: Work) -> Encoder:
        """The smaller model; that of the work may be changed, the original not."""
        raise NotImplementedError


def epochs_text(epochs: int) -> str:
    """So many epochs, in words."""
    return f"{epochs} epoch{'' if epochs == 1 else 's'}"
