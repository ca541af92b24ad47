"""What is asked of a quantity, what can come out, and what would settle what stays open.

A verdict rests on an interval, never on a bare point.

The width of an interval falls as the root of the number of observations. So the number that is
needed is the one whose interval, around the value that was found, would decide. It is a rough
guide: if the truth is the value that was found, that many decide about every second time. Not all
intervals follow this law. A study may give its own number (`Estimate.needed`), say what more would
give (`foreseen`) or which share of the width no number takes away (`lasting`), that the bounds
count things (`counted`), or what would help instead (`remedy`). All numbers are for the level at
which the estimate was judged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from bertology.errors import ParameterError
from bertology.results.number_text import UNITS, in_unit

if TYPE_CHECKING:
    from bertology.stats import Estimate

NOT_RUN = "not run"
MIXED = "mixed"  # not the same on all data
_AFFORDABLE = 1000  # times what there was
_GIVEN_BY_MODEL = ("heads", "layers", "weights")  # nobody can have more of them


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


@dataclass(frozen=True)
class OutcomeStyle:
    """An outcome as readers see it."""

    words: str
    sign: str
    colour: str  # on a white page
    style: str  # in the terminal


LOOKS = {
    "holds": OutcomeStyle("holds", "✓", "#00664f", "green"),
    "fails": OutcomeStyle("fails", "✗", "#a8430a", "red"),
    "negligible": OutcomeStyle("negligible", "≈", "#4a4a9c", "cyan"),
    "inconclusive": OutcomeStyle("inconclusive", "?", "#6b6b6b", "yellow"),
    "not-applicable": OutcomeStyle("not judged", "–", "#6b6b6b", "dim"),
    MIXED: OutcomeStyle(MIXED, "±", "#7a5c00", "magenta"),
    NOT_RUN: OutcomeStyle(NOT_RUN, "○", "#6b6b6b", "dim"),
}
"""By the value of the outcome; `mixed` and `not run` are no outcomes of one verdict."""
OUTCOMES = ("holds", "fails", "negligible", MIXED, "inconclusive", "not judged", NOT_RUN)
"""All that a claim can be over several tasks, in words, in the order of summaries."""
TERMINAL_STYLES = {look.words: look.style for look in LOOKS.values()}


def look_of(outcome: Outcome | None) -> OutcomeStyle:
    """How an outcome looks; None: its study was not run."""
    return LOOKS[NOT_RUN if outcome is None else outcome.value]


def named_look(words: str) -> OutcomeStyle:
    """How an outcome over several tasks looks, by its words."""
    return next(look for look in LOOKS.values() if look.words == words)


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
        evidence. What would hold, but is not surely there beyond its controls
        (`Estimate.with_controls`), is not applicable either; a control makes nothing fail.
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
            return Outcome.NOT_APPLICABLE if estimate.missed else Outcome.HOLDS
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
class Settling:
    """What an open question needs."""

    visible: float | None
    """The smallest difference that could be seen: half of the interval's width; None for counts."""
    needed: int | None
    """About how many of the estimate's unit; None: more than can be had, or nobody can tell."""
    fixed: bool = False
    """Whether the model has no more of what was counted."""


def settling(rule: Rule, estimate: Estimate) -> Settling | None:
    """What would settle a rule on an estimate that leaves it open; None where nobody can tell."""
    half = (estimate.high - estimate.low) / 2
    if not math.isfinite(half) or not math.isfinite(estimate.value) or estimate.n < 2:
        return None
    visible = None if estimate.counted else half
    if estimate.needed is not None and estimate.needed > estimate.n:
        return Settling(visible, _rounded(estimate.needed))
    if estimate.unit in _GIVEN_BY_MODEL and not estimate.remedy:
        return Settling(visible, None, fixed=True)
    return Settling(visible, _needed(rule, estimate))


def _needed(rule: Rule, estimate: Estimate) -> int | None:
    open_yet = rule.judge(estimate)

    def decides(n: int) -> bool:
        return rule.judge(estimate.expected_at(n)) is not open_yet

    low, high = estimate.n, estimate.n * _AFFORDABLE
    if not decides(high):
        return None
    while high - low > 1:  # an interval that shrinks around its value decides once and for all
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return _rounded(high)


def _rounded(n: int) -> int:
    """Upwards to two digits: more would look exact."""
    step = int(10 ** max(0, len(str(n)) - 2))
    return -(-n // step) * step
