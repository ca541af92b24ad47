"""What would settle a question that is open: what could be seen, and how much more is needed.

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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertology.results.claims import Rule
    from bertology.stats import Estimate

_AFFORDABLE = 1000  # times what there was
_GIVEN_BY_MODEL = ("heads", "layers", "weights")  # nobody can have more of them


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
