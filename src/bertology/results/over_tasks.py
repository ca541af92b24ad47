"""One claim on several tasks: verdicts that hold for all of them together, and one over all.

Eight tasks at 95 % each would give a false verdict on some task in every third claim. So the
verdicts on the tasks are corrected by Hochberg's method (1988): if all of k tasks are decided at
their own level, they stay so; else all are judged at 1 - (1 - level) / 2, which must decide all but
one; else at 1 - (1 - level) / 3, which must decide all but two, and so on. Where a claim has a
margin, whether something is there and whether it is as large as the margin are two questions, and
each is corrected so. Each can be answered falsely on one side only, with half of the error; so both
together keep it. The method asks that tasks do not depend on each other, or only positively; they
have different examples. An estimate has an interval at one level only; at another one it is as wide
as Student's interval would be (`Estimate.at_level`).

What holds is there as well, and what is not there is too small as well. So over all tasks a claim
has the outcome that more than half of the judged tasks have, or go beyond, and is inconclusive
where there is none: what is true on one of two tasks is not true of both. It is *mixed* only where
tasks surely differ: what is claimed is surely there on one, surely not there or too small on
another, and their intervals at these levels do not overlap.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from bertology.results.rules import MIXED, NOT_RUN, UNDECIDED, Outcome
from bertology.results.verdicts import Verdict
from bertology.stats import Estimate

_THERE = (Outcome.HOLDS, Outcome.SIZE_OPEN)  # each goes beyond what follows
_SMALL = (Outcome.FAILS, Outcome.NEGLIGIBLE)


def corrected(verdicts: Sequence[Verdict], error: float = 1.0) -> list[Verdict]:
    """The verdicts on one claim, one for each task, as they are when all hold together.

    `error`: the chance of a false verdict that the claim may have at most, if it is less than that
    of its estimates.
    """
    known = [verdict for verdict in verdicts if has_interval(verdict)]
    there, size = _strictness(known, error)
    return [_judged(v, error, there, size) if has_interval(v) else v for v in verdicts]


def _strictness(verdicts: Sequence[Verdict], error: float) -> tuple[int, int]:
    """By what errors are divided so that answers hold together: that it is there, that it matters.

    For each question the smallest number that leaves fewer tasks open than it is itself.
    """
    found: list[int | None] = [None, None]
    for strictness in range(1, len(verdicts) + 1):
        stretched = [(v.claim.rule, at_error(v, error, strictness)) for v in verdicts]
        still_open = [rule.leaves_open(e) for rule, e in stretched if e is not None]
        for question in range(2):
            if found[question] is None and sum(o[question] for o in still_open) < strictness:
                found[question] = strictness
        if None not in found:
            break
    there, size = (len(verdicts) if strictness is None else strictness for strictness in found)
    return max(1, there), max(1, size)


def _judged(verdict: Verdict, error: float, there: int, size: int) -> Verdict:
    """Judged with the chance of an error divided by one number for each of the two questions."""
    at_there, at_size = (at_error(verdict, error, times) for times in (there, size))
    outcome = verdict.claim.rule.judge(at_there, at_size)
    if at_there is at_size is verdict.estimate or at_there is None or at_size is None:
        return verdict
    level = at_size.level
    if outcome is Outcome.FAILS:
        level = at_there.level
    elif outcome in UNDECIDED:
        level = max(level, at_there.level)
    return replace(verdict, outcome=outcome, level=level)


def overall(verdicts: Sequence[Verdict]) -> str:
    """The one outcome over all tasks, from corrected verdicts: an outcome's words, or mixed."""
    if all(v.outcome is Outcome.NOT_APPLICABLE for v in verdicts):
        return Outcome.NOT_APPLICABLE.in_words if verdicts else NOT_RUN
    # A task with a control that is not passed was looked at: without it, one of many is "half".
    judged = [v for v in verdicts if v.outcome is not Outcome.NOT_APPLICABLE or v.missed]
    decided = [v for v in judged if v.outcome not in UNDECIDED]
    if any(_surely_differ(one, other) for one, other in combinations(decided, 2)):
        return MIXED
    counts = Counter(v.outcome for v in decided)
    most = [_most(counts, side, len(judged)) for side in (_THERE, _SMALL)]
    return next(filter(None, most), Outcome.INCONCLUSIVE).in_words


def _most(counts: Counter[Outcome], side: Sequence[Outcome], judged: int) -> Outcome | None:
    """What more than half of the tasks have or go beyond."""
    beyond, weaker = side
    if 2 * counts[beyond] > judged:
        return beyond
    return weaker if 2 * (counts[beyond] + counts[weaker]) > judged else None


def has_interval(verdict: Verdict) -> bool:
    """Whether it rests on an interval, so that it can be judged."""
    e = verdict.estimate
    return e is not None and e.n > 0 and not math.isnan(e.low) and not math.isnan(e.high)


def at_error(verdict: Verdict, error: float, strictness: int = 1) -> Estimate | None:
    """Its estimate at a chance of an error, its own or what is allowed, over `strictness`."""
    e = verdict.estimate
    if e is None or (strictness == 1 and error >= 1 - e.level):
        return e
    stretched = e.at_level(1 - min(error, 1 - e.level) / strictness)
    if stretched.low < stretched.high or stretched.tested is not None:
        return stretched
    # What has no width cannot be stretched, so nothing is known
    return replace(stretched, low=math.nan, high=math.nan)


def _surely_differ(one: Verdict, other: Verdict) -> bool:
    if one.outcome.is_there is other.outcome.is_there:
        return False
    (a, b) = (_interval(v) for v in (one, other))
    return a is not None and b is not None and (a.high < b.low or b.high < a.low)


def _interval(verdict: Verdict) -> Estimate | None:
    e = verdict.estimate
    return e if e is None or verdict.level is None else e.at_level(verdict.level)
