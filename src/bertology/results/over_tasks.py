"""One claim on several tasks: verdicts that hold for all of them together, and one over all.

Eight tasks at 95 % each would give a false verdict on some task in every third claim. So the
verdicts on the tasks are corrected by Hochberg's method (1988): if all of k tasks are decided at
their own level, they stay so; else all are judged at 1 - (1 - level) / 2, which must decide all but
one; else at 1 - (1 - level) / 3, which must decide all but two, and so on. An open size is not
decided: else eight effects, each just at the margin, would be called too small on some task in
every fifth claim. The method asks that tasks do not depend on each other, or only positively; they
have different examples. An estimate has an interval at one level only; at another one it is as wide
as Student's interval would be (`Estimate.at_level`).

What holds is there as well, and what is not there is too small as well. So over all tasks a claim
has the outcome that at least half of the judged tasks have, or go beyond, and is inconclusive where
there is none. It is *mixed* only where tasks surely differ: what is claimed is surely there on one,
surely not there or too small on another, and their intervals at these levels do not overlap.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from bertology.results.rules import MIXED, NOT_RUN, Outcome
from bertology.results.verdicts import Verdict
from bertology.stats import Estimate

UNDECIDED = (Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE)
_STILL_OPEN = (*UNDECIDED, Outcome.SIZE_OPEN)
_THERE = (Outcome.HOLDS, Outcome.SIZE_OPEN)  # each goes beyond what follows
_SMALL = (Outcome.FAILS, Outcome.NEGLIGIBLE)


def corrected(verdicts: Sequence[Verdict], error: float = 1.0) -> list[Verdict]:
    """The verdicts on one claim, one for each task, as they are when all hold together.

    `error`: the chance of a false verdict that the claim may have at most, if it is less than that
    of its estimates.
    """
    with_interval = [at for at, verdict in enumerate(verdicts) if has_interval(verdict)]
    found = list(verdicts)
    for strictness in range(1, len(with_interval) + 1):
        for at in with_interval:
            found[at] = _at_level(verdicts[at], error, strictness)
        still_open = sum(found[at].outcome in _STILL_OPEN for at in with_interval)
        if still_open < strictness:
            break
    return found


def overall(verdicts: Sequence[Verdict]) -> str:
    """The one outcome over all tasks, from corrected verdicts: an outcome's words, or mixed."""
    judged = [v for v in verdicts if v.outcome is not Outcome.NOT_APPLICABLE]
    if not judged:
        return Outcome.NOT_APPLICABLE.in_words if verdicts else NOT_RUN
    decided = [v for v in judged if v.outcome not in UNDECIDED]
    if any(_surely_differ(one, other) for one, other in combinations(decided, 2)):
        return MIXED
    counts = Counter(v.outcome for v in decided)
    most = [_most(counts, side, len(judged)) for side in (_THERE, _SMALL)]
    (found, *others) = [*filter(None, most), Outcome.INCONCLUSIVE]
    return (found if len(others) < 2 else Outcome.INCONCLUSIVE).in_words


def _most(counts: Counter[Outcome], side: Sequence[Outcome], judged: int) -> Outcome | None:
    """What at least half of the tasks have or go beyond; where both do, what is true of all."""
    beyond, weaker = side
    if 2 * counts[beyond] >= judged and 2 * counts[weaker] < judged:
        return beyond
    return weaker if 2 * (counts[beyond] + counts[weaker]) >= judged else None


def has_interval(verdict: Verdict) -> bool:
    """Whether it rests on an interval, so that it can be judged."""
    e = verdict.estimate
    return e is not None and e.n > 0 and not math.isnan(e.low) and not math.isnan(e.high)


def _at_level(verdict: Verdict, error: float, strictness: int) -> Verdict:
    """Judged with the chance of an error, its own or the one allowed, divided by `strictness`."""
    if verdict.estimate is None:
        return verdict
    own = 1 - verdict.estimate.level
    if strictness == 1 and error >= own:
        return verdict
    level = 1 - min(error, own) / strictness
    stretched = verdict.estimate.at_level(level)
    if (
        stretched.low == stretched.high
    ):  # what has no width cannot be stretched, so nothing is known
        stretched = replace(stretched, low=math.nan, high=math.nan)
    outcome = verdict.claim.rule.judge(stretched)
    return replace(verdict, outcome=outcome, level=level)


def _surely_differ(one: Verdict, other: Verdict) -> bool:
    if (one.outcome in _THERE) is (other.outcome in _THERE):
        return False
    (a, b) = (_interval(v) for v in (one, other))
    return a is not None and b is not None and (a.high < b.low or b.high < a.low)


def _interval(verdict: Verdict) -> Estimate | None:
    e = verdict.estimate
    return e if e is None or verdict.level is None else e.at_level(verdict.level)
