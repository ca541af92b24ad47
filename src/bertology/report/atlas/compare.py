"""Two models side by side: measures that both have, their differences, changed verdicts."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from bertology.report.atlas.claims import Judged, judged_on
from bertology.report.atlas.gathering import Subject
from bertology.report.atlas.grid import Numbers, numbers
from bertology.report.atlas.naming import Entry, portable_name
from bertology.report.web import Html, chip, element, joined, preformatted, table
from bertology.results.measures import Measure
from bertology.results.rules import Outcome
from bertology.results.verdicts import Verdict

_NOTHING = Html("")
_OVER = "--corpus grammar --limit 300"  # what `bertology report --measure` reads
_HOW = (
    "A difference is the second minus the first. Its interval runs from the smallest to the "
    "largest difference that the two intervals allow: from the second's low end minus the first's "
    "high end to the second's high end minus the first's low end. That is wide enough whether or "
    "not the two results depend on each other, and wider than it need be where they do not. "
    "Outlined heads are those where it excludes 0; this is not corrected for the number of heads "
    "unless the intervals are."
)


class Values(TypedDict):
    """The numbers of one side or of the difference, for the page's scripts."""

    values: Numbers
    low: NotRequired[Numbers]
    high: NotRequired[Numbers]
    level: NotRequired[float]
    sure: NotRequired[list[int]]


class PairRecord(TypedDict):
    """A measure that both sides have, for the page's scripts."""

    id: str
    study: str
    title: str
    unit: str
    reading: str
    kinds: list[str]
    middle: float | None
    same: bool
    labels: list[str]
    shape: list[int]
    sides: list[Values]
    difference: NotRequired[Values]


@dataclass(frozen=True)
class Side:
    """One of the two: what it is called, and its results.

    `by_task`: results of a task are compared with those of the same task; else all results are
    compared, as before and after fine-tuning.
    """

    name: str
    entries: tuple[Entry, ...]
    by_task: bool = False
    model: Mapping[str, Any] | None = None
    """Its description, for a side that other results tell of and that has none of its own."""

    def has_model(self, other: Mapping[str, Any]) -> bool:
        """Whether a model that a result was compared with is of this side.

        The same weights have a fingerprint for each head; so the name decides where no result of
        this side is of the same head.
        """
        known: list[Mapping[str, Any]] = [e.result.provenance.model for e in self.entries]
        known += [] if self.model is None else [self.model]
        if other.get("fingerprint") in {m.get("fingerprint") for m in known}:
            return True
        named = [m for m in known if m.get("name") == other.get("name")]
        return bool(named) and other.get("head") not in {m.get("head") for m in named}


def two_models(first: Subject, second: Subject) -> tuple[Side, Side]:
    """Two models, each itself and as fine-tuned on the tasks that both have learnt."""
    tasks = {e.task for e in first.entries} & {e.task for e in second.entries} | {""}
    made = [
        Side(s.name, tuple(e for e in s.entries if e.task in tasks), by_task=True, model=s.model)
        for s in (first, second)
    ]
    return made[0], made[1]


@dataclass(frozen=True)
class Shared:
    """A measure that both sides have."""

    first: tuple[Entry, Measure]
    second: tuple[Entry, Measure]

    @property
    def same_data(self) -> bool:
        """Whether both were measured over the very same examples."""
        corpora = [e.result.provenance.corpus or {} for e in (self.first[0], self.second[0])]
        return corpora[0].get("fingerprint") == corpora[1].get("fingerprint")


def shared_measures(first: Side, second: Side) -> list[Shared]:
    """For each measure of heads, the pair of results over the same data; else the first ones.

    Only results with the same settings: else the settings might cause the difference.
    """
    ours, theirs = _by_measure(first), _by_measure(second)
    found = []
    for key, mine in ours.items():
        pairs = [Shared(a, b) for a in mine for b in theirs.get(key, ())]
        fitting = [p for p in pairs if p.first[1].values.shape == p.second[1].values.shape]
        same = [p for p in fitting if p.same_data]
        found += same or fitting[:1]
    return found


def _by_measure(side: Side) -> dict[tuple[object, ...], list[tuple[Entry, Measure]]]:
    found: dict[tuple[object, ...], list[tuple[Entry, Measure]]] = {}
    for entry in side.entries:
        for m in entry.result.measures():
            if m.of_heads:
                task = entry.task if side.by_task else ""
                key = (entry.study, m.name, m.unit, m.kinds, asked_of(entry), task)
                found.setdefault(key, []).append((entry, m))
    return found


def asked_of(entry: Entry) -> str:
    """The settings, without other models: each side has its own."""
    p = entry.result.provenance
    return json.dumps({k: v for k, v in p.parameters.items() if k not in p.others}, sort_keys=True)


def difference_bounds(
    first: Measure, second: Measure
) -> tuple[NDArray[np.floating], NDArray[np.floating]] | None:
    """The smallest and the largest difference that both intervals allow; None without both."""
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return None
    return second.low - first.high, second.high - first.low


def compare_data(pairs: Sequence[Shared]) -> list[PairRecord]:
    """What the page needs to draw each pair and its difference."""
    return [_pair(i, pair) for i, pair in enumerate(pairs)]


def _pair(index: int, pair: Shared) -> PairRecord:
    (entry, one), (other_entry, other) = pair.first, pair.second
    made: PairRecord = {
        "id": f"{entry.study}/{one.name}/{index}",
        "study": entry.study,
        "title": one.title,
        "unit": one.unit,
        "reading": one.reading,
        "kinds": list(one.kinds),
        "middle": one.middle,
        "same": pair.same_data,
        "labels": [entry.label, other_entry.label],
        "shape": list(one.values.shape),
        "sides": [_values(*pair.first), _values(*pair.second)],
    }
    if one.kinds:
        return made
    difference: Values = {"values": numbers(other.values - one.values)}
    bounds = difference_bounds(one, other)
    if bounds is not None:
        low, high = bounds
        apart = np.nan_to_num(low, nan=-1.0) > 0
        apart |= np.nan_to_num(high, nan=1.0) < 0
        difference["low"], difference["high"] = numbers(low), numbers(high)
        difference["sure"] = [int(v) for v in apart.ravel()]
    made["difference"] = difference
    return made


def _values(entry: Entry, measure: Measure) -> Values:
    """One side's numbers."""
    made: Values = {"values": numbers(measure.values)}
    if measure.low is not None and measure.high is not None:
        made["low"], made["high"] = numbers(measure.low), numbers(measure.high)
        made["level"] = entry.level
    return made


def compare_piece(
    first: Side,
    second: Side,
    pairs: Sequence[Shared],
    of_layers: Html = _NOTHING,
    numbers: Html = _NOTHING,
    lacking: Html = _NOTHING,
    *,
    across_claims: bool = False,
) -> Html:
    """The section; the page's script fills the grids. `of_layers`: where those of layers stand.

    `numbers`: what both models have beside heads and layers; `lacking`: what cannot be compared.
    """
    pieces: list[object] = [element("h2", f"{first.name} and {second.name}"), numbers, of_layers]
    if pairs:
        pieces += [
            element("h3", "Head by head") if of_layers or numbers else "",
            element("div", id="compare-choice", kind="choose"),
            element("div", id="compare-grids"),
            element("p", _HOW, kind="soft"),
        ]
    elif not of_layers and not numbers:
        pieces += [
            element("p", _nothing_shared(first, second)),
            preformatted("\n".join(map(_command, (first, second)))),
        ]
    pieces += [lacking, element("h3", "Verdicts")]
    pieces.append(_verdicts(first, second, across_claims=across_claims))
    return element("section", joined(pieces), id="compare")


def _nothing_shared(first: Side, second: Side) -> str:
    studies = [sorted({e.study for e in side.entries}) for side in (first, second)]
    return (
        "No measure of heads is known of both with the same settings. "
        f"{first.name} has results of {', '.join(studies[0])}; {second.name} of "
        f"{', '.join(studies[1])}. Run the same study, with the same settings and over the same "
        "data, on both, and keep the results in this store. For instance:"
    )


def _command(side: Side) -> str:
    """What gives measures of heads of this side; where it is stored already, nothing is run."""
    bare = sorted(side.entries, key=lambda e: e.task != "")
    names = [str(e.result.provenance.model.get("name")) for e in bare]
    model = portable_name(names[0]) if names else "FOLDER"
    return f"bertology run attention-maps --model {shlex.quote(model)} {_OVER}"


def _verdicts(first: Side, second: Side, *, across_claims: bool) -> Html:
    judged = [judged_on(side.entries, across_claims=across_claims) for side in (first, second)]
    told = list(zip(*judged, strict=True))
    both = [(a, b) for a, b in told if _telling(a) and _telling(b)]
    both.sort(key=lambda pair: _changed(*pair) == "no")
    if not both:
        return element("p", "No claim is judged on both.", kind="soft")
    rows = [(a.claim.statement, _side(a), _side(b), _changed(a, b)) for a, b in both]
    return table(("Claim", first.name, second.name, "Changed"), rows, kind="compared")


def _telling(judged: Judged) -> list[tuple[Entry, Verdict]]:
    """The verdicts that say something."""
    return [(e, v) for e, v in judged.verdicts if v.outcome is not Outcome.NOT_APPLICABLE]


def _changed(first: Judged, second: Judged) -> str:
    return "no" if first.overall == second.overall else "yes"


def _side(judged: Judged) -> Html:
    return joined(
        element(
            "div",
            chip(v.outcome, v.outcome.in_words),
            f" {entry.label}",
            element("div", v.measured, kind="soft"),
        )
        for entry, v in _telling(judged)
    )
