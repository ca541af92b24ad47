"""What the literature states, what became of it, and the one wording of verdicts.

Pages, summaries, the terminal, the atlas and notebooks show verdicts in the same words:
`Verdict.measured` and `estimate_text` say what one rests on, in full and in short; `settling_text`
says what would settle one that is open, and `reason_text` why a claim was not judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING

from bertology.errors import ParameterError
from bertology.results.number_text import in_unit, interval_text, times_of, with_interval
from bertology.results.rules import Outcome, Relation, Rule, Settling, look_of, settling

if TYPE_CHECKING:
    import pandas as pd

    from bertology.stats import Estimate

OURS = "the paper does not say it; the question, or the reading of it, is our own"
OVER_TASKS = (
    "Verdicts on several tasks are judged at levels that hold for all of them together (Hochberg). "
    "Over all tasks a claim has the outcome of more than half of them. Mixed: what is claimed is "
    "surely there on some tasks, and surely not, or too small, on others."
)
_USUAL = 0.95
_LONG = 70  # characters of a reason; `Verdict.measured` has all of it
EXPLAINED = (
    "A claim holds if the whole interval of what was measured agrees with it, by as much as "
    "matters; it fails if the whole interval disagrees, and is inconclusive in between. Size open: "
    "what is claimed is surely there, but perhaps smaller than what matters. Negligible: it is "
    "surely smaller than what matters. Not judged: the result cannot tell."
)


@dataclass(frozen=True)
class Source:
    """Where a statement was made."""

    paper: str
    section: str
    page: str | None = None
    figure: str | None = None
    quote: str | None = None

    def __str__(self) -> str:
        figure = f", Figure {self.figure}" if self.figure else ""
        page = f", p. {self.page}" if self.page else ""
        return f"{self.paper}, section {self.section}{figure}{page}"


@dataclass(frozen=True)
class Published:
    """What the source reports: in words, and as numbers by name (effects as fractions)."""

    text: str
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Tasks:
    """The tasks that a statement is made of: `only` these, or all but those that are excepted."""

    only: tuple[str, ...] = ()
    excepted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.only) == bool(self.excepted):
            must = "give either 'only' or 'except', a list of tasks"
            raise ParameterError("tasks", "a claim", must, (self.only, self.excepted))

    def why_not(self, data: str) -> str | None:
        """Why the statement is not about a task; None where it is. "": no single task."""
        named = [task.casefold() for task in self.only or self.excepted]
        if not data or (data.casefold() in named) is bool(self.only):
            return None
        return f"the paper says it of {self}"

    def __str__(self) -> str:
        named = self.only or self.excepted
        listed = " and ".join(filter(None, [", ".join(named[:-1]), named[-1]]))
        return f"{listed} only" if self.only else f"all tasks but {listed}"


@dataclass(frozen=True)
class Claim:
    """A statement of the literature that a study's result can bear out or not.

    `ours`: the paper does not say it; the question, or the reading of it, is our own.
    """

    id: str
    source: Source
    statement: str
    published: Published
    study: str
    rule: Rule
    explanation: str
    ours: bool = False
    tasks: Tasks | None = None
    aliases: tuple[str, ...] = ()
    """Ids that it had before; they are understood wherever an id is."""


@dataclass(frozen=True, repr=False)
class Verdict:
    """A claim, what became of it, and the estimate that decided.

    Its `repr` is one line; `str` and `measured` say all that it rests on.
    """

    claim: Claim
    outcome: Outcome
    estimate: Estimate | None
    n: int
    reason: str | None = None  # why it was not judged, where that is known
    level: float | None = None
    """The level it was judged at, where others were judged with it; see `over_tasks`. Of an open
    size it is that of sizes."""

    @property
    def measured(self) -> str:
        """What it rests on: value, interval, n and what would settle it; or why not judged."""
        e = self.estimate
        if e is None:
            return reason_text(self)
        rule = self.claim.rule
        shown = f"{_quantity(self)} = {in_unit(e.value, rule.unit, '.4g')}"
        if _has_no_interval(e):
            return f"{shown} (no interval), {n_text(e)}"
        times = times_of(rule.unit)
        limits = [times * x for x in rule.limits]
        ends = interval_text(times * e.low, times * e.high, ".4g", limits=limits)
        interval = f"{_percent(e.level)} interval {ends}"
        return "; ".join([f"{shown}, {interval}, {n_text(e)}", *_notes(self)])

    @property
    def missed(self) -> str:
        """The controls for which it is not judged, and what is left beyond them; mostly empty."""
        e = self.estimate
        if self.outcome is not Outcome.NOT_APPLICABLE or e is None:
            return ""
        missed = (e if self.level is None else e.at_level(self.level)).missed
        told = " and ".join(self._beyond(name, one) for name, one in missed.items())
        return f"not surely beyond {told}" if told else ""

    def _beyond(self, name: str, control: Estimate) -> str:
        """A control with what is left beyond it, and what would settle whether anything is."""
        rule = Rule(name, Relation.ABOVE, 0.0, unit=self.claim.rule.unit)
        asked = Verdict(replace(self.claim, rule=rule), rule.judge(control), control, control.n)
        return f"{name} ({'; '.join(filter(None, [brief(asked), settling_text(asked)]))})"

    @property
    def settling(self) -> Settling | None:
        """What would settle it, where it or its size is open and that can be told."""
        e = self.estimate
        if self.outcome not in (Outcome.INCONCLUSIVE, Outcome.SIZE_OPEN) or e is None:
            return None
        at = e if self.level is None else e.at_level(self.level)
        return settling(self.claim.rule, at, of_size=self.outcome is Outcome.SIZE_OPEN)

    @property
    def alone(self) -> Outcome:
        """What it would be if no other were judged with it."""
        return self.outcome if self.estimate is None else self.claim.rule.judge(self.estimate)

    def __repr__(self) -> str:
        return f"<{self.outcome.in_words}: {self.claim.id}, {brief(self)}>"

    def __str__(self) -> str:
        return f"{self.outcome.in_words}: {statement_text(self.claim)} ({self.measured})"


class Verdicts(list[Verdict]):
    """Each verdict says all that it rests on as `measured`, or when it is printed."""

    def table(self) -> pd.DataFrame:
        """The verdict on each claim, what was found, the statement, and all that it rests on."""
        import pandas as pd

        rows = [
            (v.claim.id, v.outcome.in_words, brief(v), statement_text(v.claim), v.measured)
            for v in self
        ]
        columns = ["claim", "verdict", "found", "statement", "measured"]
        return pd.DataFrame(rows, columns=columns).set_index("claim")

    def __repr__(self) -> str:
        if not self:
            return "No claim of the literature is about this result."
        rows = [
            (f"{look_of(v.outcome).sign} {v.outcome.in_words}", v.claim.id, _cut(brief(v)))
            for v in self
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows)

    def _repr_html_(self) -> str:
        rows = []
        for v in self:
            look = look_of(v.outcome)
            rows.append(
                f'<tr><td style="color:{look.colour}"><b>{look.sign} {look.words}</b></td>'
                f'<td style="text-align:left" title="{escape(v.measured)}">'
                f"{escape(statement_text(v.claim))}</td><td>{escape(_cut(brief(v)))}</td></tr>"
            )
        return f"<table>{''.join(rows)}</table>" if rows else f"<p>{self!r}</p>"


def brief(verdict: Verdict) -> str:
    """In one glance: `1.2 points [0.1, 2.3]`; for a claim that was not judged, the reason."""
    e, rule = verdict.estimate, verdict.claim.rule
    if e is None or verdict.missed:
        return reason_text(verdict)
    return with_interval(e.value, e.low, e.high, unit=rule.unit, limits=rule.limits)


def estimate_text(
    estimate: Estimate | None, limits: Sequence[float] = (0.0,), unit: str = ""
) -> str:
    """In short, for tables: `0.31 [0.28, 0.34], n = 200 sentences`.

    `limits`: the values of which a reader must see whether they lie in the interval. A level that
    is not the usual one is told. `unit`: that of the claim's rule.
    """
    if estimate is None:
        return "–"
    e = estimate
    shown = with_interval(e.value, e.low, e.high, limits=limits, unit=unit)
    usual = _is_usual(e.level) or _has_no_interval(e)
    return f"{shown}{'' if usual else f' at {_percent(e.level)}'}, {n_text(e)}"


def n_text(estimate: Estimate) -> str:
    """`n = 412 sentences`: how many of what the interval is over."""
    return f"n = {_counted(estimate.n, estimate.unit)}"


def found_text(verdict: Verdict) -> str:
    """In short, with all that is to be said of it; for a claim that was not judged, the reason."""
    if verdict.estimate is None:
        return reason_text(verdict)
    rule = verdict.claim.rule
    return "; ".join([estimate_text(verdict.estimate, rule.limits, rule.unit), *_notes(verdict)])


def settling_text(verdict: Verdict) -> str:
    """What a verdict needs to be settled that is inconclusive or leaves the size open."""
    found, estimate = verdict.settling, verdict.estimate
    if found is None or estimate is None:
        return ""
    seen = ""
    if found.visible is not None:
        visible = in_unit(found.visible, verdict.claim.rule.unit)
        seen = f"differences under {visible} cannot be seen here"
    if found.fixed:
        return f"{seen}, and the model has no more {estimate.unit}" if seen else ""
    level = estimate.level if verdict.level is None else verdict.level
    settle = "settle the size" if verdict.outcome is Outcome.SIZE_OPEN else "settle it"
    settle = settle if _is_usual(level) else f"{settle} at {_percent(level)}"
    if found.needed is not None:
        would = f"about {_counted(found.needed, estimate.unit)} would {settle}"
        would += "" if found.size is None else f", and about {found.size:,} its size too"
    elif estimate.remedy:
        would = estimate.remedy
    elif seen:
        return f"{seen}, and the limit is too near for any affordable number of {estimate.unit}"
    else:
        return f"no affordable number of {estimate.unit} would {settle}"
    return f"{seen}; {would}" if seen else would


def statement_text(claim: Claim) -> str:
    """What a claim says, in one line; marked where it is ours."""
    return f"{' '.join(claim.statement.split())}{' (ours)' if claim.ours else ''}"


def reason_text(verdict: Verdict) -> str:
    """Why a claim was not judged."""
    reason = verdict.reason or verdict.missed or f"{_quantity(verdict)} was not measured"
    return reason.removeprefix("not judged: ")


def _notes(verdict: Verdict) -> list[str]:
    """What more there is to say of a verdict than its numbers."""
    return [*filter(None, [verdict.missed, _alone_text(verdict), settling_text(verdict)])]


def _alone_text(verdict: Verdict) -> str:
    """What it would be without the verdicts that it was judged with, where that differs."""
    alone, e, level = verdict.alone, verdict.estimate, verdict.level
    if alone is verdict.outcome or e is None or level is None or level <= e.level:
        return ""
    own, strict = _percent(e.level), _percent(level)
    return f"{alone.in_words} at {own}, but not at the {strict} that all verdicts together need"


def _is_usual(level: float) -> bool:
    return math.isclose(level, _USUAL)


def _percent(level: float) -> str:
    return f"{100 * level:.4g} %"


def _counted(n: int, unit: str) -> str:
    return f"{n:,} {unit.removesuffix('s') if n == 1 else unit}"


def _quantity(verdict: Verdict) -> str:
    return verdict.claim.rule.quantity.replace("_", " ")


def _has_no_interval(estimate: Estimate) -> bool:
    return math.isnan(estimate.low) or math.isnan(estimate.high)


def _cut(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"
