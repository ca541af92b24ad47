"""What a reproduction is: a paper's sections, its tables and figures, and the plan to redo them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.reproduce.plan import Plan, Wishes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bertology.model.shape import Shape
    from bertology.results.result import Result

__all__ = ["Exhibit", "Found", "Numbers", "Reproduction", "Section", "Unjudged"]


@dataclass(frozen=True)
class Numbers:
    """A table for readers: cells are text, ready to be shown."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


Found = Mapping[str, "Result"]
"""Results of one study by the title of the data they are over."""


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of the paper, and the study that makes ours."""

    label: str  # "Figure 2"; "" for what the paper tells in words
    study: str
    caption: str  # what ours shows, with its units
    published: str  # what the paper's shows, in our words
    numbers: Numbers | None = None  # the paper's, where it gives any
    ours: Callable[[Found], Numbers] | None = None  # the evidence of all results if None
    joint: Callable[[Found], Figure | None] | None = None  # one figure of all results, if any
    figures: tuple[str, ...] = ()  # of each result
    more: tuple[str, ...] = ()  # figures that are shown folded


@dataclass(frozen=True)
class Section:
    """A section of the paper's results."""

    number: str
    title: str
    did: str
    found: str
    exhibits: tuple[Exhibit, ...]
    differs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unjudged:
    """A statement of the paper that no study here gives evidence for, and why."""

    statement: str
    section: str
    why: str


@dataclass(frozen=True)
class Reproduction:
    """A paper to be done again. Its claims are those whose ids open with its name."""

    name: str
    title: str
    citation: str
    address: str
    about: str
    tasks: tuple[str, ...]  # without a wish
    sections: tuple[Section, ...]
    plan: Callable[[Wishes, Shape], Plan]
    unjudged: tuple[Unjudged, ...] = ()
