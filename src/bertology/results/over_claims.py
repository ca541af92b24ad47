"""Many claims on one page: how many would hold by chance, and verdicts that all hold together.

A 95 % interval lies wholly above the truth in at most 2.5 % of all cases, and wholly below it in as
many. A claim "above 0" asks for one side only. So if what it claims is not there, it is said to
hold, or to be there with an open size, in at most 2.5 %; the same is true of several tasks that
were corrected together (`over_tasks`). "Outside a and b" asks for both sides: at most 5 %. Over all
claims of a page these chances add up, however the claims depend on each other.

`together` with `across_claims` holds the error over the page by Benjamini and Yekutieli's method
(2001), under any dependence: of the claims that get a verdict, 5 % on average have a false one. The
p-value of a claim is the smallest chance of an error at which it still has a verdict on some of its
tasks. If r of m claims have one at the error r * 5 % / (m * (1 + 1/2 + … + 1/m)), for the largest
such r, then all claims are judged at that error. So what their verdicts say of a size is as sure as
what they say of a side (Benjamini and Yekutieli 2005, on intervals after a choice).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from bertology.results.over_tasks import at_error, corrected, has_interval
from bertology.results.rules import UNDECIDED, Relation
from bertology.results.verdicts import Verdict, Verdicts

_ERROR = 0.05  # of the verdicts of a page
_LEAST = 1e-12  # a p-value that is smaller counts as this one
_HALVINGS = 16  # of the logarithm: leave less than a thousandth of a p-value


def together(verdicts: Iterable[Verdict], *, across_claims: bool = False) -> Verdicts:
    """The verdicts of a page, in the same order, as they are when they hold together.

    Verdicts on one claim are corrected for the number of its tasks; `across_claims`: and for the
    number of claims.
    """
    given = list(verdicts)
    error = _error_of_each(_by_claim(given)) if across_claims else 1.0
    found = {id: iter(corrected(each, error)) for id, each in _by_claim(given).items()}
    return Verdicts(next(found[verdict.claim.id]) for verdict in given)


def false_holds(verdicts: Iterable[Verdict]) -> float:
    """How many claims at most, on average, would be said to hold (or be there) if none were."""
    return sum(
        max(map(_chance_to_hold, each))
        for each in _by_claim(filter(has_interval, verdicts)).values()
    )


def page_text(verdicts: Iterable[Verdict], *, across_claims: bool = False) -> str:
    """How many claims of a page were judged, and how often that errs; empty where none was."""
    every = [verdict for verdict in verdicts if has_interval(verdict)]
    if not every:
        return ""
    claims, sure = len(_by_claim(every)), sum(v.outcome not in UNDECIDED for v in every)
    told = (
        f"Judged here: {_counted(claims, 'claim')}, with {_counted(len(every), 'verdict')}, "
        f"{sure} of them sure."
    )
    if across_claims:
        return (
            f"{told} The error is held over all claims: of those with a sure verdict, "
            f"{100 * _ERROR:.0f} % at most, on average, have a false one (Benjamini and Yekutieli)."
        )
    return (
        f"{told} If none of the claims were true, about {false_holds(every):.2g} at most would "
        "still be said to hold, or to be there with an open size: an interval at 95 % lies wholly "
        "on the claimed side of the truth in 2.5 % of all cases. --across-claims holds the error "
        "over all claims together."
    )


def _counted(n: int, of: str) -> str:
    return f"{n:,} {of}{'' if n == 1 else 's'}"


def _by_claim(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    found: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.claim.id, []).append(verdict)
    return found


def _chance_to_hold(verdict: Verdict) -> float:
    """The chance at most that a claim that is not true is said to hold, or to be there."""
    error = 0.0 if verdict.estimate is None else 1 - verdict.estimate.level
    return error if verdict.claim.rule.relation is Relation.OUTSIDE else error / 2


def _error_of_each(claims: dict[str, list[Verdict]]) -> float:
    """The chance of a false verdict that each claim may have."""
    from scipy.stats import false_discovery_control  # here, because it is slow to import

    p = np.array([_p_value(each) for each in claims.values() if any(map(has_interval, each))])
    if not p.size:
        return 1.0
    decided = int((false_discovery_control(p, method="by") <= _ERROR).sum())
    return float(_ERROR * max(1, decided) / (p.size * (1 / np.arange(1, p.size + 1)).sum()))


def _p_value(verdicts: Sequence[Verdict]) -> float:
    """The smallest chance of an error at which a claim has a verdict on some task; 1: at none.

    As `corrected` has it: of k tasks, the j-th smallest p-value must lie below error / (k - j + 1).
    """
    p = np.sort([_p_values(v) for v in verdicts if has_interval(v)], axis=0)
    times = np.arange(len(p), 0, -1)[:, None]
    return min(1.0, float((times * p).min()))


def _p_values(verdict: Verdict) -> list[float]:
    """The same for each question to one estimate: is it there, and is it as large as matters."""

    def is_open(question: int, log: float) -> bool:
        e = at_error(verdict, math.exp(log))
        return e is None or verdict.claim.rule.leaves_open(e)[question]

    found = []
    for question in range(2):
        low, high = math.log(_LEAST), 0.0
        if is_open(question, high):
            found.append(1.0)
            continue
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if is_open(question, middle) else (low, middle)
        found.append(math.exp(high))
    return found
