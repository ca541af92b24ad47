"""What the literature states, and whether a result bears it out.

A claim is data: one entry of a YAML file under `bertology/claims/`, or brought by another package
through the entry-point group `bertology.claims` (its value names a package that holds `*.yaml`).

    - id: dark-secrets.disabling-some-heads-hurts   # lower case, digits, dots and dashes
      aliases: [dark-secrets.some-heads-hurt]       # optional: ids it had before
      source: {paper: …, section: "4.6"}    # optional: page, figure, quote
      statement: …                          # one sentence, in our own words
      published: {text: …, values: {MRPC: 0.012}}
      study: head-ablation
      rule: {quantity: best_head_gain, relation: above, value: 0}   # above, below
      #     {quantity: …, relation: between, values: [0, 0.1]}      # between, outside
      #     margin: 0.005                   # of above and below: less than this does not matter;
      #                                     # never more than the source counts as an effect
      #     unit: points                    # or "%": readers see it times a hundred; fractions here
      explanation: …                        # one paragraph: what is tested, and what it means
      ours: true                            # optional: the paper does not say it; our question
      tasks: {only: [MRPC, RTE]}            # optional: the tasks it is said of; or {except: [QQP]}

Claims that differ in some words and numbers are one entry: `each` is a list of mappings, and names
in braces stand for their values in all other fields.

    - each: [{row: pkd, least: 1.3}, {row: tiny, least: 6}]
      id: primer-compression.{row}-smaller
      rule: {quantity: "{row}_fewer", relation: above, value: "{least}"}
      …

A verdict rests on an interval, never on a bare point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from bertology.errors import ParameterError
from bertology.results.settling import Settling, settling
from bertology.results.verdict_view import UNITS, brief, in_unit, look_of, measured, statement_text

if TYPE_CHECKING:
    from bertology.stats import Estimate


class Outcome(StrEnum):
    """What can be said about a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    NEGLIGIBLE = "negligible"
    INCONCLUSIVE = "inconclusive"
    NOT_APPLICABLE = "not-applicable"

    @property
    def in_words(self) -> str:
        """As readers see it; files keep the value."""
        return look_of(self).words


class Relation(StrEnum):
    """How a quantity is said to stand to one value (above, below) or two (between, outside)."""

    ABOVE = "above"
    BELOW = "below"
    BETWEEN = "between"
    OUTSIDE = "outside"


@dataclass(frozen=True)
class Rule:
    """`quantity relation value`, for instance: best_head_gain above 0.

    `margin`: the smallest difference from `value` that matters.
    """

    quantity: str
    relation: Relation
    value: float | None = None
    values: tuple[float, float] | None = None
    margin: float | None = None
    unit: str = ""
    """`%` or `points`: readers see the quantity times a hundred, as figures and tables have it."""

    def __post_init__(self) -> None:
        of = f"the rule on {self.quantity!r}"
        if self.unit not in UNITS:
            raise ParameterError("unit", of, 'be "%" or points, or not be given', self.unit)
        if self.relation not in list(Relation):
            raise ParameterError("relation", of, f"be one of {', '.join(Relation)}", self.relation)
        if self.relation in (Relation.ABOVE, Relation.BELOW):
            if self.value is None or self.values is not None or not math.isfinite(self.value):
                raise ParameterError(
                    "value", of, f"be one finite number ({self.relation} value)", self._given()
                )
        elif (
            self.values is None
            or self.value is not None
            or len(self.values) != 2
            or not -math.inf < self.values[0] <= self.values[1] < math.inf
        ):
            raise ParameterError(
                "values", of, f"be two rising numbers ({self.relation} a and b)", self._given()
            )
        if self.margin is not None and (self.value is None or not 0 < self.margin < math.inf):
            must = "be a number above 0, of a rule with one value (above, below)"
            raise ParameterError("margin", of, must, self.margin)

    def _given(self) -> object:
        return self.value if self.values is None else self.values

    def judge(self, estimate: Estimate | None) -> Outcome:
        """Holds if the whole interval satisfies the rule, fails if the whole interval violates it.

        Negligible, before both, if what is claimed is surely smaller than the margin: of "above 0",
        if the upper bound is below the margin. Nothing is asked of the other side, of which the
        claim says nothing: the best of many heads surely gains less than what matters, however far
        down its lower bound lies. Only what is surely on that other side, and not surely near,
        fails. Inconclusive in between, or where there is no interval; not applicable without
        evidence.
        """
        if estimate is None or estimate.n == 0:
            return Outcome.NOT_APPLICABLE
        low, high = estimate.low, estimate.high
        if math.isnan(low) or math.isnan(high):
            return Outcome.INCONCLUSIVE
        satisfied, violated = self._whole(low, high)
        if self._too_small(low, high, violated=violated):
            return Outcome.NEGLIGIBLE
        if satisfied:
            return Outcome.HOLDS
        return Outcome.FAILS if violated else Outcome.INCONCLUSIVE

    def _whole(self, low: float, high: float) -> tuple[bool, bool]:
        """Whether all of [low, high] satisfies the rule, and whether all of it violates it."""
        if self.value is not None:
            if self.relation is Relation.ABOVE:
                return low > self.value, high <= self.value
            return high < self.value, low >= self.value
        first, last = self.values or (-math.inf, math.inf)
        within = first <= low and high <= last
        without = high < first or low > last
        return (within, without) if self.relation is Relation.BETWEEN else (without, within)

    def _too_small(self, low: float, high: float, *, violated: bool) -> bool:
        """Whether what is claimed is surely less than the margin; see `judge`."""
        if self.value is None or self.margin is None:
            return False
        claimed, other = high - self.value, self.value - low
        if self.relation is Relation.BELOW:
            claimed, other = other, claimed
        return claimed < self.margin and (other < self.margin or not violated)

    @property
    def limits(self) -> tuple[float, ...]:
        """The values between which its outcomes change, but for the margin."""
        return (self.values or ()) if self.value is None else (self.value,)

    @property
    def bound(self) -> str:
        """What the quantity must be, such as "above 1 point"."""
        return f"{self.relation} {' and '.join(self._shown(x) for x in self.limits)}"

    def _shown(self, value: float) -> str:
        return in_unit(value, self.unit, ".4g")

    def __str__(self) -> str:
        small = "" if self.margin is None else self._shown(self.margin)
        return f"{self.quantity} {self.bound}{small and f' (less than {small} does not matter)'}"


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
    """The level it was judged at, where others were judged with it; see `over_tasks`."""

    @property
    def measured(self) -> str:
        """What it rests on: value, interval, n and what would settle it; or why not judged."""
        return measured(self)

    @property
    def settling(self) -> Settling | None:
        """What would settle it, where it is inconclusive and that can be told."""
        e = self.estimate
        if self.outcome is not Outcome.INCONCLUSIVE or e is None:
            return None
        return settling(self.claim.rule, e if self.level is None else e.at_level(self.level))

    @property
    def alone(self) -> Outcome:
        """What it would be if no other were judged with it."""
        return self.outcome if self.estimate is None else self.claim.rule.judge(self.estimate)

    def __repr__(self) -> str:
        return f"<{self.outcome.in_words}: {self.claim.id}, {brief(self)}>"

    def __str__(self) -> str:
        return f"{self.outcome.in_words}: {statement_text(self.claim)} ({self.measured})"
