"""A paper: its sections, its tables and figures, and the plan of what is run to reproduce it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.reproduce.paper_plan import Note, PaperPlan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bertology.results.result import Result
    from bertology.results.verdicts import Claim


@dataclass(frozen=True)
class TextTable:
    """A table for readers: cells are text, ready to be shown."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


ResultsByData = Mapping[str, "Result"]
"""Results of one study by the title of the data that they are over."""


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of the paper, and the study that makes ours."""

    study: str
    caption: str  # what ours shows, with its units
    published: str  # what the paper's shows, in our words
    label: str = ""  # "Figure 2"; empty for what the paper says in its text only
    published_table: TextTable | None = None
    our_table: Callable[[ResultsByData], TextTable] | None = None  # None: the evidence of claims
    joint_figure: Callable[[ResultsByData], Figure | None] | None = None  # of all results together
    figures: tuple[str, ...] = ()  # of each result
    more_figures: tuple[str, ...] = ()  # shown when the reader unfolds them


@dataclass(frozen=True)
class PaperSection:
    """A section of the paper: what was done and found, and how ours differs from it."""

    number: str
    title: str
    did: str
    found: str
    exhibits: tuple[Exhibit, ...]
    differs: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Unjudged:
    """A statement of the paper that no study here gives evidence for, and why."""

    statement: str
    section: str
    why: str


@dataclass(frozen=True)
class Paper:
    """A paper that can be reproduced.

    Its claims are those whose ids open with its name, or with one of `claims` where a part of the
    paper has a file of claims of its own: primer-attention.
    """

    name: str
    title: str
    citation: str
    address: str
    about: str
    sections: tuple[PaperSection, ...]
    plan: PaperPlan
    unjudged: tuple[Unjudged, ...] = ()
    claims: tuple[str, ...] = ()

    def makes(self, claim: Claim) -> bool:
        """Whether the claim is one of this paper's."""
        return claim.id.partition(".")[0] in (self.claims or (self.name,))

    def is_source_of(self, claim: Claim) -> bool:
        """Whether the paper itself is quoted; a survey has claims of others, too."""
        return self.title in claim.source.paper

    def place_of(self, claim: Claim) -> str:
        """The section that says it; or whose statement it is, where a survey tells of others."""
        source = claim.source
        if self.is_source_of(claim):
            return source.section
        return f"{source.paper.partition(',')[0]}, {source.section}"

    def sections_of(self, claim: Claim) -> list[PaperSection]:
        """The sections that its source names; for other sources, those that show its study."""
        if self.is_source_of(claim):
            return [s for s in self.sections if claim.source.section.startswith(s.number)]
        return [s for s in self.sections if claim.study in {e.study for e in s.exhibits}]
