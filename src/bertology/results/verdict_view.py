"""How verdicts are shown: one wording for pages, summaries, the terminal, the atlas and notebooks.

`look_of` gives word, sign and colours of an outcome; `measured` and `estimate_text` say what it
rests on, in full and in short; `settling_text` says what would settle an inconclusive one, and
`reason_text` why a claim was not judged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.results.number_text import interval_text, number_text

if TYPE_CHECKING:
    from bertology.results.claims import Claim, Outcome, Verdict
    from bertology.stats import Estimate

UNITS = ("", "%", "points")
"""What quantities are shown in: as they are, or times a hundred."""
NOT_RUN = "not run"
MIXED = "mixed"  # not the same on all data
OURS = "the paper does not say it; the question, or the reading of it, is our own"
OVER_TASKS = (
    "Verdicts on several tasks are judged at levels that hold for all of them together (Hochberg). "
    "Over all tasks a claim has the outcome of at least half of them. Mixed: tasks surely differ."
)
_USUAL = 0.95
EXPLAINED = (
    "A claim holds if the whole interval of what was measured agrees with it, fails if the whole "
    "interval disagrees, and is inconclusive in between. Negligible: what is claimed is surely "
    "smaller than what matters. Not judged: the result cannot tell."
)


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


def measured(verdict: Verdict) -> str:
    """What a verdict rests on, in full; for a claim that was not judged, the reason."""
    e = verdict.estimate
    if e is None:
        return reason_text(verdict)
    rule = verdict.claim.rule
    shown = f"{_quantity(verdict)} = {in_unit(e.value, rule.unit, '.4g')}"
    if _has_no_interval(e):
        return f"{shown} (no interval), {n_text(e)}"
    times = _times(rule.unit)
    limits = [times * x for x in rule.limits]
    ends = interval_text(times * e.low, times * e.high, ".4g", limits=limits)
    interval = f"{_percent(e.level)} interval {ends}"
    return "; ".join([f"{shown}, {interval}, {n_text(e)}", *_notes(verdict)])


def brief(verdict: Verdict) -> str:
    """In one glance: `1.2 points [0.1, 2.3]`; for a claim that was not judged, the reason."""
    e, rule = verdict.estimate, verdict.claim.rule
    if e is None:
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
    """What an inconclusive verdict needs to be settled; empty for all others."""
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
    settle = "settle it" if _is_usual(level) else f"settle it at {_percent(level)}"
    if found.needed is not None:
        would = f"about {_counted(found.needed, estimate.unit)} would {settle}"
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
    reason = verdict.reason or f"{_quantity(verdict)} was not measured"
    return reason.removeprefix("not judged: ")


def with_interval(
    value: float,
    low: float,
    high: float,
    spec: str = ".3g",
    *,
    scale: float = 1.0,
    unit: str = "",
    limits: Sequence[float] = (0.0,),
) -> str:
    """`0.31 [0.28, 0.34]`; the bare value where there is no interval.

    A `unit` (`%`, `points`) goes with the value, which is then shown times a hundred.
    """
    shown = in_unit(scale * value, unit, spec)
    scale = scale * _times(unit)
    if math.isnan(low) or math.isnan(high):
        return shown
    ends = interval_text(scale * low, scale * high, spec, limits=[scale * x for x in limits])
    return f"{shown} {ends}"


def in_unit(value: float, unit: str, spec: str = ".3g") -> str:
    """`0.012` of points as `1.2 points`, of % as `1.2 %`; without a unit as it is."""
    shown = number_text(_times(unit) * value, spec)
    if unit == "points" and shown.lstrip("+-") == "1":
        unit = "point"
    return f"{shown} {unit}" if unit else shown


def _times(unit: str) -> float:
    return 100.0 if unit else 1.0


def _notes(verdict: Verdict) -> list[str]:
    """What more there is to say of a verdict than its numbers."""
    return [*filter(None, [_alone_text(verdict), settling_text(verdict)])]


def _alone_text(verdict: Verdict) -> str:
    """What it would be without the other tasks, where that differs."""
    alone, e, level = verdict.alone, verdict.estimate, verdict.level
    if alone is verdict.outcome or e is None or level is None:
        return ""
    own, strict = _percent(e.level), _percent(level)
    return f"{alone.in_words} at {own}, but not at the {strict} that all tasks need"


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
