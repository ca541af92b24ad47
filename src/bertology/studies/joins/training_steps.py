"""Training steps: when, in the course of its training, does a measure of a model emerge?"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.errors import DataError, ParameterError, UnknownNameError
from bertology.parameters import parameter
from bertology.report.figures.over_runs import step_curve, step_layers
from bertology.results.answers import listed
from bertology.results.drawing import Drawing
from bertology.results.measures import Tracked
from bertology.results.number_text import with_interval
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.emergence import FEWEST_STEPS, Emergence, emergence
from bertology.studies.join import ResampledJoin

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from bertology.results.measures import Measure

LARGEST = "max"


class TrainingStepsResult(Result):
    """Table `steps`: one row for each step, with the measure and its interval.

    `beyond_half` is by how much the measure lies beyond half of the way from the first to the last
    step, in the direction of the change; its bounds hold for all steps together. Table `layers`,
    where the study says which measure of layers belongs to it: its values at all steps.
    """

    @property
    def answer(self) -> str:
        """Between which steps the measure emerges, or why that cannot be said."""
        facts, found = self.facts, self.evidence()
        change = found["change"]
        unit = f" {facts['unit']}" if facts["unit"] else ""
        shown = f"{with_interval(change.value, change.low, change.high)}{unit}"
        told = f"Over training, {facts['label']} changes by {shown}"
        if "above" in facts:
            told += f"; it is surely above 0 at {facts['above'] or 'no step'}"
        if "emerges_at" not in found:
            return f"{told}. It does not emerge: {self.reasons()['emerges_at'].rstrip('.')}."
        at, p = found["emerges_at"], float(facts["chance_p"])
        told += f". In this run it emerges between step {at.low:,.0f} and step {at.high:,.0f}"
        if math.isnan(p):
            return f"{told}; fewer than {FEWEST_STEPS} steps cannot tell a change from drift."
        if p >= 1 - float(facts["level"]):
            return f"{told}; a measure that drifts by chance may change as much (p = {p:.2g})."
        return f"{told}, by more than chance drift (p = {p:.2g})."

    def drawings(self) -> Sequence[Drawing]:
        """The measure over the steps, and at all layers where there are such values."""
        caption = (
            "To the right: steps of training, on a logarithmic scale. Upwards: "
            f"{self.facts['label']}, with its interval at each step as a band. The dashed line is "
            "half of the way from the first to the last value; the shaded stretch, if there is "
            "one, lies between the steps where the measure of this run surely crosses it."
        )
        found = [Drawing("steps", self._draw, caption)]
        if "layers" in self.tables:
            found.append(
                Drawing(
                    "layers",
                    self._draw_layers,
                    f"{self.facts['layers_title']}, in {self.facts['layers_unit']}: one row for "
                    "each step of training, the first one at the top; one column for each layer. "
                    "Darker is more. The largest of each step has a frame.",
                )
            )
        return found

    def _draw_layers(self) -> Figure:
        table, facts = self.tables["layers"], self.facts
        grid = table.pivot(index="step", columns="layer", values="value")
        return step_layers(
            grid.index.to_numpy(),
            grid.to_numpy(),
            title=f"{facts['layers_title']}\n{self.about}",
            label=str(facts["layers_unit"]),
        )

    def _draw(self) -> Figure:
        table, at = self.tables["steps"], self.evidence().get("emerges_at")
        label = str(self.facts["label"])
        shaded = "" if at is None else " Shaded: where the measure surely crosses it."
        return step_curve(
            table["step"],
            *(table[c] for c in ("value", "low", "high")),
            title=f"{label[:1].upper()}{label[1:]} over training\n{self.about}",
            label=str(self.facts["unit"]) or label,
            between=None if at is None else (at.low, at.high),
            note=f"By the study {self.facts['study']}, of one training run. Band: its intervals. "
            f"Dashed: half of the way from the first to the last value.{shaded}",
        )


@dataclass(frozen=True)
class TrainingSteps(ResampledJoin):
    """When, in the course of its training, does a measure of a model emerge?

    Combines the results of one study on one corpus, measured at several steps of a training run;
    `bertology steps` runs the study at each of them. The measure is any quantity that the study
    keeps for claims, or any of its measures of heads and layers, at one head (`at` 3.7), one layer
    (5), or the largest of all (max). Some studies say what is to be followed where nobody names a
    measure, and which values of all layers are drawn beside it.

    Method: a measure emerges where it crosses half of the way from its first to its last value and
    stays beyond. The interval begins at the last step at which it is surely short of half of the
    way, and ends at the first step from which on it is surely beyond, by the study's own intervals,
    corrected (Bonferroni) for the steps. That is said of this run, and errs only as the measure
    does. Whether the change is more than chance is told apart from it (`chance_p`): the curve is
    compared with values that wander (drawn alike at all steps) and with values that drift (changes
    drawn alike between all steps), by the largest t of an abrupt change and of a steady one. How
    early it emerges, as a share of all steps, is kept for claims as `STUDY_MEASURE_emerges`; its
    interval is all of the training where the change may be chance.

    Limits: one training run; another seed may differ. The interval says between which of the steps
    that were kept, so it is no finer than they are. Values of different steps are taken as
    independent, which errs on the wide side where they are measured on the same examples. With a
    handful of steps a change that takes two or three of them cannot be told from drift.
    """

    version: ClassVar[int] = 5  # a gain is what is left beyond all controls
    result_type: ClassVar[type[Result]] = TrainingStepsResult
    sources: ClassVar[tuple[str, ...]] = ()
    made_by: ClassVar[str] = "`bertology steps MODEL --study STUDY --measure MEASURE` makes it."

    measure: str = parameter("", "A quantity or a measure of the study.")
    at: str = parameter("", "Of a measure: a head (3.7), a layer (5), or max for the largest.")
    steps: tuple[int, ...] = parameter(
        (), "The step of each result; if not given, as the models' names say (NAME@STEP)."
    )

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """The curve of the measure, and where it emerges."""
        steps = self.steps or tuple(_step_of(result) for result in results)
        if len(steps) != len(results):
            must = f"name {len(results)} steps, one for each result"
            raise ParameterError("steps", name, must, list(steps))
        _check_alike(results, name)
        ordered = sorted(zip(steps, results, strict=True), key=lambda pair: pair[0])
        steps, results = tuple(s for s, _ in ordered), [r for _, r in ordered]
        tracked, values = self._tracked(results[-1]), [self.value(result) for result in results]
        found = emergence(steps, values, level=self.level, resamples=self.resamples, seed=self.seed)
        identities = {str(s): r.identity for s, r in zip(steps, results, strict=True)}
        return self.result(
            self.provenance(name, results[-1], identities),
            {"steps": _table(steps, values, found), **_layers(steps, results, tracked.layers)},
            evidence={
                "change": found.change,
                "emerges_at": found.at,
                _how_early(results[-1].provenance.study, self.measure, self.at): found.early(steps),
            },
            reasons={"emerges_at": found.why_not} if found.why_not else {},
            facts={
                "study": results[-1].provenance.study,
                "label": tracked.label,
                "unit": tracked.unit,
                "chance_p": found.p,
                **(_above(steps, values, self.level) if tracked.gain else {}),
                **_layer_words(results[-1], tracked.layers),
            },
        )

    def value(self, result: Result) -> Estimate:
        """What the measure is in the result of one step; an error where it has no such measure."""
        return _value(result, self._tracked(result))

    def _tracked(self, result: Result) -> Tracked:
        """The measure as the study words it, or as it is named."""
        for one in result.over_training():
            if (one.measure, one.at) == (self.measure, self.at):
                return one
        return Tracked(self.measure, _label(self.measure, self.at), at=self.at)


def _value(result: Result, tracked: Tracked) -> Estimate:
    """A quantity of the evidence, or a measure of heads or layers at one place, with its interval.

    A measure without bounds is taken as exact.
    """
    evidence, measure, at = result.evidence(), tracked.measure, tracked.at
    if measure in evidence and not at:
        found, k = evidence[measure], tracked.scale
        if tracked.gain:  # is there where it is beyond all that it is set against
            found = found.beyond_all()
        low, high = k * found.low, k * found.high
        return replace(found, value=k * found.value, low=low, high=high, foreseen=(), controls=())
    known = {m.name: m for m in result.measures() if not m.kinds}
    if not measure:
        must = f"name what {result.provenance.study} measured: {', '.join([*evidence, *known])}"
        raise ParameterError("measure", "TrainingSteps", must, measure)
    if measure not in known:
        names = [*evidence, *known]
        raise UnknownNameError(f"measure of {result.provenance.study!r}", measure, names)
    return _at(known[measure], at, result)


def _at(measure: Measure, at: str, result: Result) -> Estimate:
    """One value of a grid of heads or a row of layers; or the largest, with the largest bounds.

    Bounds of the largest are first widened until they hold for all places together.
    """
    places = [measure.values, measure.low, measure.high]
    value, low, high = (measure.values if p is None else p for p in places)
    n = int(result.facts.get("examples", (result.provenance.corpus or {}).get("size", 1)))
    level = float(result.facts.get("level", 0.95))
    if at == LARGEST:
        strict = 1 - (1 - level) / value.size
        wider = Estimate(0, -1, 1, n, level).at_level(strict).high
        low, high = value - wider * (value - low), value + wider * (high - value)
        top, bottom, most = (float(np.nanmax(array)) for array in (value, low, high))
        return Estimate(top, bottom, most, n, level)
    try:
        place = tuple(int(piece) for piece in at.split("."))
        here, least, most = (float(array[place]) for array in (value, low, high))
        if len(place) != value.ndim or min(place) < 0:
            raise ValueError
        return Estimate(here, least, most, n, level)
    except (ValueError, IndexError, TypeError):
        one = "a head such as 3.7" if measure.of_heads else "a layer such as 5"
        shape = " × ".join(map(str, value.shape))
        must = f"be {one}, or {LARGEST}; {measure.name} has {shape} values"
        raise ParameterError("at", "TrainingSteps", must, at) from None


def _step_of(result: Result) -> int:
    name = str(result.provenance.model.get("name", ""))
    step = name.rpartition("@")[2]
    if not step.isdecimal():
        raise DataError(
            f"{name!r} does not say which training step it is.",
            hint="Give steps=, one for each result.",
        )
    return int(step)


def _check_alike(results: Sequence[Result], name: str) -> None:
    """All but the model must be the same, or more than the step differs."""
    alike = {
        (
            r.provenance.study,
            r.provenance.study_version,
            str(sorted(r.provenance.parameters.items())),
            str((r.provenance.corpus or {}).get("fingerprint")),
        )
        for r in results
    }
    if len(alike) > 1:
        must = "be of one study, with one set of parameters, on one corpus"
        raise ParameterError("results", name, must, sorted({r.provenance.study for r in results}))


def _table(steps: Sequence[int], values: Sequence[Estimate], found: Emergence) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "step": list(steps),
            "value": [e.value for e in values],
            "low": [e.low for e in values],
            "high": [e.high for e in values],
            "n": [e.n for e in values],
            "beyond_half": found.beyond,
            "beyond_half_low": found.low,
            "beyond_half_high": found.high,
        }
    )


def _above(steps: Sequence[int], values: Sequence[Estimate], level: float) -> dict[str, str]:
    """The steps at which a gain is surely there, corrected (Bonferroni) for their number."""
    strict = 1 - (1 - level) / len(steps)
    sure = [
        f"{step:,}"
        for step, value in zip(steps, values, strict=True)
        if value.at_level(strict).low > 0
    ]
    return {"above": f"step{'s' if len(sure) > 1 else ''} {listed(sure)}" if sure else ""}


def _layers(steps: Sequence[int], results: Sequence[Result], name: str) -> dict[str, pd.DataFrame]:
    """The table of steps × layers; none where no measure of layers is named."""
    import pandas as pd

    if not name:
        return {}
    rows = []
    for step, result in zip(steps, results, strict=True):
        one = result.measure(name)
        low, high = (one.values if side is None else side for side in (one.low, one.high))
        rows += [
            (step, layer, *values)
            for layer, values in enumerate(zip(one.values, low, high, strict=True))
        ]
    return {"layers": pd.DataFrame(rows, columns=["step", "layer", "value", "low", "high"])}


def _layer_words(result: Result, name: str) -> dict[str, str]:
    if not name:
        return {}
    one = result.measure(name)
    return {"layers_title": one.title, "layers_unit": one.unit}


def _how_early(study: str, measure: str, at: str) -> str:
    """The name of what claims are judged on: `token_classes_sep_weight_emerges`."""
    return re.sub(r"[^A-Za-z0-9]+", "_", f"{study} {measure} {at}".strip()) + "_emerges"


def _label(measure: str, at: str) -> str:
    """The measure in words, and where."""
    words = measure.replace("_", " ").replace("-", " ")
    if not at:
        return words
    if at == LARGEST:
        return f"{words}, largest"
    return f"{words} of {'head' if '.' in at else 'layer'} {at}"
