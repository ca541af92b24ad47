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
from collections.abc import Sequence
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
    SIZE_OPEN = "size-open"  # surely there; whether it is as large as what matters is open
    FAILS = "fails"
    NEGLIGIBLE = "negligible"
    INCONCLUSIVE = "inconclusive"
    NOT_APPLICABLE = "not-applicable"

    @property
    def in_words(self) -> str:
        """As readers see it; files keep the value."""
        return look_of(self).words

    @property
    def is_there(self) -> bool:
        """Whether what is claimed is surely there, however large."""
        return self in (Outcome.HOLDS, Outcome.SIZE_OPEN)


UNDECIDED = (Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE)


@dataclass(frozen=True)
class OutcomeStyle:
    """An outcome as readers see it."""

    words: str
    sign: str
    colour: str  # on a white page
    style: str  # in the terminal


LOOKS = {
    "holds": OutcomeStyle("holds", "✓", "#00664f", "green"),
    "size-open": OutcomeStyle("size open", "◐", "#0a5a80", "bright_blue"),
    "fails": OutcomeStyle("fails", "✗", "#a8430a", "red"),
    "negligible": OutcomeStyle("negligible", "≈", "#4a4a9c", "cyan"),
    "inconclusive": OutcomeStyle("inconclusive", "?", "#6b6b6b", "yellow"),
    "not-applicable": OutcomeStyle("not judged", "–", "#6b6b6b", "dim"),
    MIXED: OutcomeStyle(MIXED, "±", "#7a5c00", "magenta"),
    NOT_RUN: OutcomeStyle(NOT_RUN, "○", "#6b6b6b", "dim"),
}
"""By the value of the outcome; `mixed` and `not run` are no outcomes of one verdict."""
OUTCOMES = (
    "holds", "size open", "fails", "negligible", MIXED, "inconclusive", "not judged", NOT_RUN,
)  # fmt: skip
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

    def judge(self, estimate: Estimate | None, of_size: Estimate | None = None) -> Outcome:
        """Holds if the whole interval satisfies the rule, fails if the whole interval violates it.

        With a margin it holds only if the whole interval satisfies it by the margin or more. What
        is surely there, but perhaps by less, has an open size. Negligible is what is surely less
        than the margin: of "above 0", if the upper bound is below it. Nothing is asked of the other
        side, of which the claim says nothing: the best of many heads surely gains less than what
        matters, however far down its lower bound lies. Inconclusive in between, or where there is
        no interval; not applicable without evidence. What is there, but not surely beyond its
        controls (`Estimate.with_controls`), is not applicable either; a control makes nothing fail.

        So a narrower interval within a wider one only says more: what holds or fails stays so, an
        open size may turn out either way, and what is negligible may turn out not to be there.

        `of_size`: the same at the level at which sizes are judged, if that is another one.
        """
        if estimate is None or estimate.n == 0:
            return Outcome.NOT_APPLICABLE
        low, high = estimate.low, estimate.high
        if math.isnan(low) or math.isnan(high):
            return Outcome.INCONCLUSIVE
        of_number = self._of_range(low, high) if self.value is None else self._of(estimate, of_size)
        return Outcome.NOT_APPLICABLE if of_number.is_there and estimate.missed else of_number

    def _of(self, estimate: Estimate, of_size: Estimate | None) -> Outcome:
        """The outcome of a rule with one value, whatever the controls."""
        least, most = self._claimed(estimate)
        if most <= 0:
            return Outcome.FAILS
        if self.margin is None:
            return Outcome.HOLDS if least > 0 else Outcome.INCONCLUSIVE
        least_size, most_size = self._claimed(of_size or estimate)
        if most_size < self.margin:
            return Outcome.NEGLIGIBLE
        if least_size >= self.margin:
            return Outcome.HOLDS
        return Outcome.SIZE_OPEN if least > 0 else Outcome.INCONCLUSIVE

    def _claimed(self, estimate: Estimate) -> tuple[float, float]:
        """At least and at most how much there is of what is claimed, seen from the value."""
        value = self.value or 0.0
        if self.relation is Relation.BELOW:
            return value - estimate.high, value - estimate.low
        return estimate.low - value, estimate.high - value

    def leaves_open(self, estimate: Estimate) -> tuple[bool, bool]:
        """Whether it is open that what is claimed is there; and that it is as large as matters."""
        if self.value is None or self.margin is None:
            is_open = self.judge(estimate) in UNDECIDED
            return is_open, is_open
        least, most = self._claimed(estimate)
        beyond = not estimate.missed  # what its controls may make is not settled by being there
        # NaN is neither
        there, size = beyond and least > 0, beyond and least >= self.margin
        return not (there or most <= 0), not (size or most < self.margin)

    def _of_range(self, low: float, high: float) -> Outcome:
        """The outcome of a rule with two values."""
        first, last = self.values or (-math.inf, math.inf)
        within = first <= low and high <= last
        without = high < first or low > last
        if self.relation is Relation.OUTSIDE:
            within, without = without, within
        if within:
            return Outcome.HOLDS
        return Outcome.FAILS if without else Outcome.INCONCLUSIVE

    @property
    def limits(self) -> tuple[float, ...]:
        """The values between which its outcomes change."""
        if self.value is None:
            return self.values or ()
        if self.margin is None:
            return (self.value,)
        side = -1 if self.relation is Relation.BELOW else 1
        return (self.value, self.value + side * self.margin)

    @property
    def bound(self) -> str:
        """What the quantity must be, such as "above 0 by 1 point or more"."""
        more = "" if self.margin is None else f" by {self._shown(self.margin)} or more"
        return f"{self._asked}{more}"

    @property
    def _asked(self) -> str:
        values = (self.values or ()) if self.value is None else (self.value,)
        return f"{self.relation} {' and '.join(map(self._shown, values))}"

    def _shown(self, value: float) -> str:
        return in_unit(value, self.unit, ".4g")

    def __str__(self) -> str:
        small = "" if self.margin is None else self._shown(self.margin)
        return f"{self.quantity} {self._asked}{small and f' (less than {small} does not matter)'}"


@dataclass(frozen=True)
class Settling:
    """What an open question needs."""

    visible: float | None
    """The smallest difference that could be seen: half of the interval's width; None for counts."""
    needed: int | None
    """About how many of the estimate's unit; None: more than can be had, or nobody can tell."""
    fixed: bool = False
    """Whether the model has no more of what was counted."""
    size: int | None = None
    """How many would settle the size too, where `needed` only tell that something is there."""


def settling(rule: Rule, estimate: Estimate, *, of_size: bool = False) -> Settling | None:
    """What would settle a rule on an estimate that leaves it open; None where nobody can tell.

    `of_size`: that something is there is settled already, and its size is not.
    """
    half = (estimate.high - estimate.low) / 2
    if not math.isfinite(half) or not math.isfinite(estimate.value) or estimate.n < 2:
        return None
    visible = None if estimate.counted else half
    if estimate.needed is not None and estimate.needed > estimate.n and not of_size:
        return Settling(visible, _rounded(estimate.needed))  # a study's number is for the value
    if estimate.unit in _GIVEN_BY_MODEL and not estimate.remedy:
        return Settling(visible, None, fixed=True)
    size = _needed(rule, estimate, (Outcome.INCONCLUSIVE, Outcome.SIZE_OPEN))
    if of_size:
        return Settling(visible, size)
    needed = _needed(rule, estimate, (Outcome.INCONCLUSIVE,))
    return Settling(visible, needed, size=None if size == needed else size)


def _needed(rule: Rule, estimate: Estimate, open_yet: Sequence[Outcome]) -> int | None:
    """About how many would leave none of these outcomes."""

    def decides(n: int) -> bool:
        return rule.judge(estimate.expected_at(n)) not in (*open_yet, Outcome.NOT_APPLICABLE)

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
