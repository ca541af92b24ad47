"""One claim on several tasks: verdicts that hold for all of them together, and one over all.

Eight tasks at 95 % each would give a false verdict on some task in every third claim. So the
verdicts on the tasks are corrected by Hochberg's method (1988): if all of k tasks are decided at
their own level, they stay so; else all are judged at 1 - (1 - level) / 2, which must decide all but
one; else at 1 - (1 - level) / 3, which must decide all but two, and so on. The method asks that
tasks do not depend on each other, or only positively; they have different examples. An estimate
has an interval at one level only; at another one it is as wide as Student's interval would be
(`Estimate.at_level`).

Over all tasks a claim is *mixed* only where tasks surely differ: two of them have different
verdicts, and their intervals at these levels do not overlap. Else it has the outcome that at least
half of the judged tasks have, and is inconclusive where there is none. Where a claim fails, what it
claims is surely smaller than what matters too; so tasks on which it fails and tasks on which it is
negligible together make it negligible.
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

_UNDECIDED = (Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE)


def corrected(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts on one claim, one for each task, as they are when all hold together."""
    with_interval = [at for at, verdict in enumerate(verdicts) if _has_interval(verdict)]
    found = list(verdicts)
    for strictness in range(1, len(with_interval) + 1):
        for at in with_interval:
            found[at] = _at_level(verdicts[at], strictness)
        still_open = sum(found[at].outcome in _UNDECIDED for at in with_interval)
        if still_open < strictness:
            break
    return found


def overall(verdicts: Sequence[Verdict]) -> str:
    """The one outcome over all tasks, from corrected verdicts: an outcome's words, or mixed."""
    if all(v.outcome is Outcome.NOT_APPLICABLE for v in verdicts):
        return Outcome.NOT_APPLICABLE.in_words if verdicts else NOT_RUN
    # A task with a control that is not passed was looked at: without it, one of many is "half".
    judged = [v for v in verdicts if v.outcome is not Outcome.NOT_APPLICABLE or v.missed]
    decided = [v for v in judged if v.outcome not in _UNDECIDED]
    if any(_surely_differ(one, other) for one, other in combinations(decided, 2)):
        return MIXED
    counts = Counter(v.outcome for v in decided)
    most = [outcome for outcome, n in counts.items() if 2 * n >= len(judged)]
    if Outcome.HOLDS not in most and len(most) != 1 and counts[Outcome.NEGLIGIBLE]:
        small = counts[Outcome.NEGLIGIBLE] + counts[Outcome.FAILS]
        most = [Outcome.NEGLIGIBLE] if 2 * small >= len(judged) else []
    return (most[0] if len(most) == 1 else Outcome.INCONCLUSIVE).in_words


def _has_interval(verdict: Verdict) -> bool:
    e = verdict.estimate
    return e is not None and e.n > 0 and not math.isnan(e.low) and not math.isnan(e.high)


def _at_level(verdict: Verdict, strictness: int) -> Verdict:
    """Judged with the chance of an error divided by `strictness`."""
    if verdict.estimate is None or strictness == 1:
        return verdict
    level = 1 - (1 - verdict.estimate.level) / strictness
    stretched = verdict.estimate.at_level(level)
    if (
        stretched.low == stretched.high
    ):  # what has no width cannot be stretched, so nothing is known
        stretched = replace(stretched, low=math.nan, high=math.nan)
    outcome = verdict.claim.rule.judge(stretched)
    return replace(verdict, outcome=outcome, level=level)


def _surely_differ(one: Verdict, other: Verdict) -> bool:
    if one.outcome is other.outcome:
        return False
    (a, b) = (_interval(v) for v in (one, other))
    return a is not None and b is not None and (a.high < b.low or b.high < a.low)


def _interval(verdict: Verdict) -> Estimate | None:
    e = verdict.estimate
    return e if e is None or verdict.level is None else e.at_level(verdict.level)
