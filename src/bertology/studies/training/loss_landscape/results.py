"""What is concluded of loss landscapes: means by start, ratios by seed, surfaces, and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.arrays import Floats
from bertology.metrics import find_metric
from bertology.report.figures import (
    Dots,
    LossLine,
    LossLines,
    Mark,
    Surface,
    interval_dots,
    loss_lines,
    loss_surfaces,
)
from bertology.results.answers import NOTHING_SURE, plain
from bertology.results.drawing import Drawing
from bertology.results.number_text import number_text
from bertology.results.result import Result
from bertology.stats import Estimate, paired_p, repeated
from bertology.train.landscape.places import around_places, share_places, way_places

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure


AROUND, PATH = "around", "path"
_WHERE = {"run", "between", "way"}


def line_table(parts: Mapping[Any, xr.Dataset], reach: float) -> pd.DataFrame:
    """Every loss along a line: around the end, on the way there, and to the end of another."""
    import pandas as pd

    frames = []

    def add(start: str, line: str, seed: int, direction: int, at: Floats, losses: Floats) -> None:
        told = {"start": start, "line": line, "seed": seed, "direction": direction}
        frames.append(pd.DataFrame({**told, "place": np.round(at, 9), "loss": losses}))

    for part, found in parts.items():
        if part.kind == "run":
            seed = part.numbers[0]
            around = found["around_losses"].to_numpy()
            for number, losses in enumerate(around):
                at = around_places(reach, len(losses))
                add(part.start, AROUND, seed, number, at, losses)
            way = found["way_losses"].to_numpy()
            add(part.start, "way", seed, 0, way_places(len(way)), way)
        elif part.kind == "between":
            losses = found["losses"].to_numpy()
            add(part.start, "between", part.numbers[0], 0, share_places(len(losses)), losses)
    return pd.concat(frames, ignore_index=True)


def surface_table(parts: Mapping[Any, xr.Dataset], grid: int, reach: float) -> pd.DataFrame:
    """Every point of the surfaces."""
    import pandas as pd

    frames = []
    for part, found in parts.items():
        if part.kind in _WHERE:
            continue
        at = way_places(grid) if part.kind == PATH else around_places(reach, grid)
        y = np.round(at[part.numbers[0]], 9)
        losses = found["losses"].to_numpy()
        row = {"start": part.start, "plane": part.kind, "x": np.round(at, 9), "y": y}
        frames.append(pd.DataFrame({**row, "loss": losses}))
    found_rows = pd.concat(frames, ignore_index=True)
    return found_rows.sort_values(["start", "plane", "y", "x"], ignore_index=True)


def path_table(parts: Mapping[Any, xr.Dataset]) -> pd.DataFrame:
    """Where runs and their twins pass through the plane."""
    import pandas as pd

    frames = []
    for part, found in parts.items():
        if part.kind != "way":
            continue
        epochs = found.sizes["stop"] - 2
        stops = ["start", *(f"epoch {n}" for n in range(1, epochs + 1)), "twin's end"]
        columns = {name: found[name].to_numpy() for name in ("x", "y", "inside", "loss")}
        frames.append(pd.DataFrame({"start": part.start, "stop": stops, **columns}))
    return pd.concat(frames, ignore_index=True)


STARTS = ("pretrained", "random")
TITLES = {"pretrained": "pre-trained start", "random": "random start"}
TRAINED_BELOW = 0.5
"""A run has trained if its loss is below this share of a constant answer's."""
# Measures that are compared as ratios: their logarithms are what seeds make vary evenly.
_OWN = ("width", "eigenvalue_1", "trace")
_RATIOS = (*_OWN, *(f"matched_{name}" for name in _OWN))
_PLAIN = ("loss", "validation_loss", "moved")
# Quantities: which start is over the other, so that more is wider or flatter after pre-training.
_GAINS = {
    "width_gain": ("width", 1),
    "flatness_gain": ("eigenvalue_1", -1),
    "trace_gain": ("trace", -1),
    "matched_width_gain": ("matched_width", 1),
    "matched_flatness_gain": ("matched_eigenvalue_1", -1),
    "matched_trace_gain": ("matched_trace", -1),
}
_NOT_TRAINED = (
    "not judged: {} of {} runs did not train (loss not below half of a constant answer's), and a "
    "plateau is no optimum; at least half of the seeds, and three, must train from both starts"
)
_ERROR = 0.1  # of the largest eigenvalue: the margin of claims is a factor of 1.1
_NOT_EXACT = (
    "not judged: some largest eigenvalue is not known to a tenth; more --iterations find it"
)
_NO_CLASSES = "not judged: losses can be made alike where answers are classes only"
_TOO_FAR = "not judged: the loss of some run did not rise enough within five times the reach"
_NOT_ABOVE = "not judged: some run has no curvature above zero"
_ANYWHERE = (-math.inf, math.inf)


class LossLandscapeResult(Result):
    """Widths, curvature and barriers by start (table `starts`) and by run (table `runs`).

    `starts` has one row for each start and measure: the mean over seeds (the geometric one for what
    is compared as a ratio) with its interval, and the pre-trained start over the random one, paired
    by seed. Where runs did not train, the same rows stand there for the seeds that `counted`, which
    trained from both starts, and for all. `surfaces`, `lines` and `path` hold every point that was
    computed.
    """

    @property
    def answer(self) -> str:
        """How much wider and flatter, as ratios."""
        found = self.evidence()
        if "width_gain" not in found or "flatness_gain" not in found:
            why = self.reasons().get("width_gain", self.reasons().get("flatness_gain", ""))
            return (
                f"{NOTHING_SURE}: {(why or 'nothing was measured').removeprefix('not judged: ')}."
            )
        wide, flat = (_factor(found[name]) for name in ("width_gain", "flatness_gain"))
        sharp = Estimate(1 / flat.value, 1 / flat.high, 1 / flat.low, flat.n, flat.level)
        sure = "" if found["width_gain"].excludes(0) else f"{NOTHING_SURE}: "
        told = (
            f"after pre-training optima are {plain(wide)} times as wide, and their largest "
            f"curvature is {plain(sharp)} times that after a random start "
            f"(over {self._seeds()})."
        )
        return f"{sure}{told}" if sure else told[0].upper() + told[1:]

    def _seeds(self) -> str:
        """How many seeds count; a run that did not train ends on a plateau, not in an optimum."""
        seeds = int(self.facts["seeds"])
        count = _trained_both(self.tables["runs"])["seed"].nunique()
        return (
            f"{seeds} seeds" if count in (0, seeds) else f"{count} of {seeds} seeds, which trained"
        )

    def headline(self) -> str:
        """What was learnt, and how far the losses came down."""
        facts = self.facts
        means = self.tables["runs"].groupby("start")["loss"].mean()
        losses = ", ".join(f"{TITLES[s]} {number_text(means[s], '.3f')}" for s in STARTS)
        return (
            f"{facts['task']}: {facts['train_size']} training examples, losses of "
            f"{facts['sample']} of them: {losses}; a constant answer "
            f"{number_text(float(facts['constant_loss']), '.3f')}"
        )

    def drawings(self) -> Sequence[Drawing]:
        """Numbers by start, lines, and both surfaces."""
        rise = 100 * float(self.facts["rise"])
        drawn = [
            Drawing(
                "sharpness",
                self._sharpness,
                "One row for each start; dots are means over seeds with their intervals. Width: "
                "how far one can go in random directions, in lengths of filters, until the loss "
                f"has risen by {rise:.0f} % of a constant answer's; right is wider. Curvature: the "
                "largest eigenvalue and the trace of the Hessian, in the same coordinates; left is "
                "flatter. At like loss: answers of every run are made so much less sure that its "
                "loss is half of a constant answer's, since a low loss bends less by itself. The "
                "barrier is the rise of the loss between the ends of two seeds.",
            ),
            Drawing(
                "lines",
                self._lines,
                "The training loss along straight lines: around the end of a run in random "
                "directions (steps in lengths of filters), from its start (0) through its end (1), "
                "and between the ends of two seeds. Thin lines are runs, thick ones their means, "
                "on one scale for both starts. The dotted line is a constant answer. A low and "
                "wide valley is a flat optimum.",
            ),
        ]
        if "surfaces" not in self.tables:
            return drawn
        return [
            Drawing(
                "surfaces",
                partial(self._surfaces, AROUND),
                "The training loss around the end of a run (the cross), in a plane of two random "
                "directions: a step of 0.1 changes every filter by a tenth of its length. Darker "
                "is more loss; lines join points of equal loss. Axes, colours and lines are the "
                "same for both starts, so that the larger light area is the wider optimum.",
            ),
            Drawing(
                "paths",
                partial(self._surfaces, PATH),
                "The training loss in the plane through the start, the end, and the end of a twin "
                "with the same start and another order of examples. The unit is the way from start "
                "to end. Dots are epochs, projected into the plane. Darker is more loss, on one "
                "scale for both starts.",
            ),
            *drawn,
        ]

    def _sharpness(self) -> Figure:
        table, panels, level = self.tables["starts"], [], float(self.facts["level"])
        both = _trained_both(self.tables["runs"])
        if 0 < len(both) < len(self.tables["runs"]):  # barriers are those of all pairs of seeds
            table = _by_start(both, both[:0], [], level)
        labels = {
            "width": "width (lengths of filters)",
            "eigenvalue_1": "largest curvature",
            "trace": "trace of the curvature",
            "matched_width": "width at like loss",
            "matched_eigenvalue_1": "largest curvature at like loss",
            "barrier": "barrier between seeds",
        }
        for measure, label in labels.items():
            rows = table[table["measure"] == measure]
            if len(rows) and np.isfinite(rows["mean"].to_numpy(float)).any():
                panels.append(Dots.of_columns(label, rows, "mean", scale=1.0))
        return interval_dots(
            panels,
            [TITLES[start] for start in STARTS],
            title=f"Width and sharpness of optima\n{self.about}",
            note=f"Means over {self._seeds()}, with {100 * level:.0f} % intervals. Claims rest on "
            "ratios paired by seed.",
        )

    @property
    def _highest(self) -> float:
        """The loss at the end of scales: much more than a constant answer's is not told apart."""
        return 2 * float(self.facts["constant_loss"])

    def _lines(self) -> Figure:
        table, panels = self.tables["lines"], []
        named = {
            AROUND: ("around the end", "step in random directions"),
            "way": ("from start to end", "share of the way"),
            "between": ("between two seeds", "share of the way"),
        }
        for line, (name, xlabel) in named.items():
            rows = table[table["line"] == line]
            drawn = []
            for start in STARTS if len(rows) else ():
                own = rows[rows["start"] == start]
                by_run = own.pivot_table(index="seed", columns="place", values="loss")
                x = by_run.columns.to_numpy(float)
                drawn.append(LossLine(TITLES[start], x, by_run.to_numpy(float)))
            if drawn:
                panels.append(LossLines(name, xlabel, drawn))
        constant = float(self.facts["constant_loss"])
        return loss_lines(
            panels,
            title=f"The loss along straight lines\n{self.about}",
            highest=self._highest,
            constant=constant,
            note="Thin: runs; thick: their mean. Dotted: a constant answer. "
            f"{self.facts['untrained']} of {len(self.tables['runs'])} runs did not train.",
        )

    def _surfaces(self, plane: str) -> Figure:
        table, constant = self.tables["surfaces"], float(self.facts["constant_loss"])
        shown = []
        for start in STARTS:
            rows = table[(table["start"] == start) & (table["plane"] == plane)]
            grid = rows.pivot(index="y", columns="x", values="loss")
            x, y = grid.columns.to_numpy(float), grid.index.to_numpy(float)
            if plane == AROUND:
                marks, path = [Mark("", 0.0, 0.0, "P")], None
            else:
                marks, path = self._way(start)
            shown.append(Surface(self._named(start), x, y, grid.to_numpy(float), path, marks))
        around = plane == AROUND
        return loss_surfaces(
            shown,
            title=f"{'The loss around the end' if around else 'The way of a run'}\n{self.about}",
            labels=("random direction", "another random direction")
            if around
            else ("from start to end", "across, to the twin's end"),
            highest=self._highest,
            levels=[share * constant for share in (0.25, 0.5, 1.0)],
            note="Steps are in lengths of filters. One scale for both starts."
            if around
            else f"The unit is the way from start to end: {self._ways()}. One scale for both.",
        )

    def _named(self, start: str) -> str:
        """The start, and that the run which is drawn lies on a plateau."""
        trained = self.tables["runs"].set_index(["start", "seed"])["trained"]
        title = TITLES[start]
        return title if trained[start, self._drawn] else f"{title} (this run did not train)"

    @property
    def _drawn(self) -> int:
        """The seed whose surfaces are drawn; older results have those of the first."""
        return int(self.facts.get("drawn_seed", 0))

    def _way(self, start: str) -> tuple[list[Mark], Floats]:
        path = self.tables["path"]
        own = path[path["start"] == start].reset_index(drop=True)
        stops = own[["x", "y"]].to_numpy(float)
        named = (("start", 0, "s"), ("end", -2, "P"), ("twin's end", -1, "X"))
        marks = [Mark(name, stops[i, 0], stops[i, 1], shape) for name, i, shape in named]
        return marks, stops[:-1]

    def _ways(self) -> str:
        moved = self.tables["runs"].set_index(["start", "seed"])["moved"]
        return ", ".join(
            f"{100 * float(moved[s, self._drawn]):.0f} % of the weights' length ({TITLES[s]})"
            for s in STARTS
        )


def _factor(found: Estimate) -> Estimate:
    """A ratio from its logarithm."""
    value, low, high = (2.0**x for x in (found.value, found.low, found.high))
    return replace(found, value=value, low=low, high=high)


# The conclusion --------------------------------------------------------------------------------


def concluded(
    parts: Mapping[Any, xr.Dataset], *, level: float, grid: int, reach: float, rise: float
) -> tuple[dict[str, pd.DataFrame], dict[str, Estimate], dict[str, str], dict[str, Any]]:
    """Tables, evidence, why the rest is not judged, and facts; keys of `parts` are `Part`s."""
    import pandas as pd

    runs = pd.DataFrame(
        {"start": part.start, "seed": part.numbers[0]}
        | {str(n): float(v) for n, v in found.data_vars.items() if not v.dims}
        for part, found in parts.items()
        if part.kind == "run"
    ).sort_values(["start", "seed"], ignore_index=True)
    runs["trained"] = runs["loss"] < TRAINED_BELOW * runs["constant_loss"]
    barriers = pd.DataFrame(
        [
            {"start": part.start, "seed": part.numbers[0], "barrier": float(found["barrier"])}
            for part, found in parts.items()
            if part.kind == "between"
        ],
        columns=["start", "seed", "barrier"],
    )
    first = next(iter(parts.values())).attrs
    metrics = [name.removeprefix("constant_") for name in first if name.startswith("constant_")]
    tables = {"starts": _starts(runs, barriers, metrics, level), "runs": runs}
    tables["lines"] = line_table(parts, reach)
    if any(part.kind in (AROUND, PATH) for part in parts):
        tables["surfaces"] = surface_table(parts, grid, reach)
        tables["path"] = path_table(parts)
    evidence, reasons = _judged(runs, level)
    if len(barriers) and runs["trained"].all():
        evidence["barrier_difference"] = _barriers_compared(barriers, level)
    facts = {
        **{key: first[key] for key in ("task", "train_size", "sample")},
        "constant_loss": float(runs["constant_loss"].mean()),
        "rise": rise,
        "untrained": int((~runs["trained"]).sum()),
    }
    return tables, evidence, reasons, facts


def _logs(runs: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Seeds × starts: logarithms to the base of 2; NaN where there is none."""
    values = runs.pivot(index="seed", columns="start", values=measure)
    known = values.where((values > 0) & np.isfinite(values))
    return known.transform(np.log2)


def _trained_both(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs of the seeds that trained from both starts: those that claims are judged on."""
    return runs[runs.groupby("seed")["trained"].transform("all")]


def _judged(runs: pd.DataFrame, level: float) -> tuple[dict[str, Estimate], dict[str, str]]:
    """What claims are judged on, paired by seed, and why the rest is not."""
    evidence, reasons = {}, {}
    untrained, seeds = int((~runs["trained"]).sum()), runs["seed"].nunique()
    both = _trained_both(runs)
    pairs = both["seed"].nunique()
    for quantity, (measure, sign) in _GAINS.items():
        logs = _logs(both, measure)
        if untrained and (pairs < 3 or 2 * pairs < seeds):
            reasons[quantity] = _NOT_TRAINED.format(untrained, len(runs))
        elif measure.startswith("matched_") and both[measure].isna().all():
            reasons[quantity] = _NO_CLASSES
        elif logs.isna().to_numpy().any():
            reasons[quantity] = _TOO_FAR if measure.endswith("width") else _NOT_ABOVE
        elif measure.endswith("eigenvalue_1") and _is_rough(both, measure):
            reasons[quantity] = _NOT_EXACT
        else:
            evidence[quantity] = repeated(sign * (logs[STARTS[0]] - logs[STARTS[1]]), level)
    return evidence, reasons


def _is_rough(runs: pd.DataFrame, measure: str) -> bool:
    """Whether Lanczos' method was stopped before it knew the largest eigenvalue of some run."""
    errors = runs[measure.removesuffix("_1") + "_error"]
    return bool((errors > _ERROR * runs[measure]).any())


def _barriers_compared(barriers: pd.DataFrame, level: float) -> Estimate:
    """How much higher barriers between two seeds are after pre-training, paired by pair."""
    values = barriers.pivot(index="seed", columns="start", values="barrier")
    return repeated(values[STARTS[0]] - values[STARTS[1]], level).counting("pairs of seeds")


def _starts(
    runs: pd.DataFrame, barriers: pd.DataFrame, metrics: Sequence[str], level: float
) -> pd.DataFrame:
    """Means of all seeds, after those of the seeds that count where these are not the same."""
    import pandas as pd

    tables, both = {"all seeds": _by_start(runs, barriers, metrics, level)}, _trained_both(runs)
    if 0 < len(both) < len(runs):  # barriers are those of all pairs of seeds
        tables = {"seeds that trained": _by_start(both, barriers[:0], metrics, level)} | tables
    for counted, table in tables.items():
        table.insert(2, "counted", counted)
    return pd.concat(tables.values(), ignore_index=True)


def _by_start(
    runs: pd.DataFrame, barriers: pd.DataFrame, metrics: Sequence[str], level: float
) -> pd.DataFrame:
    """One row for each start and measure."""
    import pandas as pd

    rows = []
    asked = [(m, True, runs) for m in _RATIOS] + [(m, False, runs) for m in (*_PLAIN, *metrics)]
    asked += [("barrier", False, barriers)] if len(barriers) else []
    for measure, ratio, table in asked:
        values = (
            _logs(table, measure)
            if ratio
            else table.pivot(index="seed", columns="start", values=measure)
        )
        within = find_metric(measure).within if measure in metrics else (0.0, math.inf)
        apart = values[STARTS[0]] - values[STARTS[1]]
        over = repeated(apart, level)
        over = _factor(over) if ratio else over
        for start in STARTS:
            mean = repeated(values[start], level, within=_ANYWHERE if ratio else within)
            mean = _factor(mean) if ratio else mean
            row = {"start": start, "measure": measure, "mean": mean.value, "low": mean.low,
                   "high": mean.high, "n": mean.n}  # fmt: skip
            if start == STARTS[0]:
                row |= {"compared": "ratio" if ratio else "difference", "over_random": over.value,
                        "over_random_low": over.low, "over_random_high": over.high,
                        "over_random_p": paired_p(apart)}  # fmt: skip
            rows.append(row)
    return pd.DataFrame(rows)
