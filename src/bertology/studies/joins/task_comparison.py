"""Task comparison: what do results of one study over several tasks have in common?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from bertology.arrays import Floats
from bertology.errors import DataError, ParameterError
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, plain, points
from bertology.results.comparison import extreme
from bertology.results.drawing import Drawing
from bertology.results.hundredths import rows_in_hundredths
from bertology.results.result import Result
from bertology.stats import Estimate, rank_correlation
from bertology.stats.agreement import cohens_kappa
from bertology.stats.intervals import ONE_SIDE
from bertology.studies.join import ResampledJoin

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ABLATION, TYPES, CLASSES = "head-ablation", "map-types", "token-classes"
_COLUMNS = ["comparison", "first", "second", "value", "low", "high", "n", "head"]
_LOW_HIGH = ("simultaneous_low", "simultaneous_high")
_WHY_NOT = "not judged: it needs two tasks that are learnt, or one of single texts and a pair's"
_NOT_IN_THE_PAPER = ("cola",)  # of GLUE's tasks of single texts the paper has SST-2 only


class Comparison(NamedTuple):
    """One thing that is said of two tasks."""

    study: str
    quantity: str
    pick: str
    """Whether claims are about the best pair of tasks (max) or the worst (min)."""
    label: str
    caption: str
    unit: str
    """What its intervals are over."""


_LOSS = "shared loss"
_COMPARISONS = {
    _LOSS: Comparison(
        ABLATION,
        "largest_shared_loss",
        "max",
        "score that both tasks lose\nwithout the same head, in points",
        "What both tasks lose of their score without the same head: the smaller one of the two "
        "losses, of the head for which it is largest. Above 0 if some head is missed in both.",
        "examples",
    ),
    "ranking of heads": Comparison(
        ABLATION,
        "shared_ranking",
        "max",
        "rank correlation of what tasks lose\nwithout each head, within layers",
        "What tasks lose without each head: 1 if both rank the heads of a layer alike, 0 if one "
        "says nothing of the other.",
        "heads",
    ),
    "map types": Comparison(
        TYPES,
        "same_types",
        "min",
        "agreement (Cohen's κ) on the\ncommonest map type of each head",
        "The commonest map type of each head: 1 if it is the same in both, 0 if no more often so "
        "than by chance.",
        "heads",
    ),
    "weight of [SEP]": Comparison(
        CLASSES,
        "single_text_sep_lead",
        "min",
        "weight of [SEP],\none text less pairs",
        "The weight of [SEP]: above 0 if it gets more in the task of single texts than in the task "
        "of pairs.",
        "examples",
    ),
    "weight of [SEP] beyond even": Comparison(
        CLASSES,
        "single_text_sep_lead_beyond_even",
        "min",
        "weight of [SEP] beyond even\nattention, one text less pairs",
        "The same beyond even attention, since single texts are shorter, and in a short text every "
        "token gets more.",
        "examples",
    ),
}
_FIGURES = {  # by study: name and title
    ABLATION: ("losses", "Do tasks miss the same heads?"),
    TYPES: ("types", "Have heads the same map types in all tasks?"),
    CLASSES: ("sep", "[SEP] in tasks of single texts and of pairs"),
}
# What each comparison of [SEP] reads of token-classes.
_SEP_WEIGHTS = {
    "weight of [SEP]": "sep_weight",
    "weight of [SEP] beyond even": "sep_weight_beyond_even",
}


class TaskComparisonResult(Result):
    """Table `pairs`: a row for each comparison and each two tasks, with how far they agree.

    Intervals of one comparison's rows hold for all its pairs of tasks together. They are over heads
    (ranking, map types) or over examples (shared loss, [SEP]), never over trainings. `head` is the
    head that a shared loss is of.
    """

    def in_units(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """A loss of score is in points, as in the figure."""
        lost = table["comparison"] == _LOSS
        names = table["comparison"].where(~lost, f"{_LOSS} (points)")
        return rows_in_hundredths(table, lost, ["value"]).assign(comparison=names)

    @property
    def answer(self) -> str:
        """Whether two tasks miss the same head, and how alike the types of heads are."""
        found, told = self.evidence(), []
        if (loss := found.get("largest_shared_loss")) is not None:
            sure = "Surely some" if loss.low > 0 else "No"
            told.append(
                f"{sure} head is{'' if loss.low > 0 else ' surely'} missed by two tasks: both lose "
                f"{points(loss)} at most without the same one."
            )
        if (same := found.get("same_types")) is not None:
            told.append(
                f"Map types of heads agree by κ = {plain(same)} in the tasks that differ most."
            )
        if told:
            return " ".join(told)
        return f"{NOTHING_SURE}: {self.reasons().get('', 'no two tasks could be compared')}."

    def headline(self) -> str:
        """How many tasks were compared."""
        return f"{self.facts['tasks']} tasks compared, two at a time"

    def drawings(self) -> Sequence[Drawing]:
        """Every two tasks, a figure for each study: they compare other pairs of tasks."""
        found = []
        for study in dict.fromkeys(_COMPARISONS[name].study for name in self._known):
            names = [name for name in self._known if _COMPARISONS[name].study == study]
            about = " ".join(_COMPARISONS[name].caption for name in names)
            caption = (
                f"One row for every two tasks, and a panel for each comparison. {about} Bars are "
                "intervals, wide enough for all pairs of tasks of a panel together; the dashed "
                "line is 0."
            )
            figure, title = _FIGURES[study]
            found.append(Drawing(figure, partial(self._draw, names, title), caption))
        return found

    @property
    def _known(self) -> list[str]:
        """The comparisons of its table; a stored result may have some that are made no more."""
        return [n for n in dict.fromkeys(self.tables["pairs"]["comparison"]) if n in _COMPARISONS]

    def _draw(self, names: Sequence[str], title: str) -> Figure:
        table = self.tables["pairs"]
        table = table[table["comparison"].isin(names)]
        named = table.assign(pair=table["first"] + ", " + table["second"])
        pairs = list(dict.fromkeys(named["pair"]))
        panels = []
        for name in names:
            rows = named[named["comparison"] == name].set_index("pair").reindex(pairs)
            label, times = _COMPARISONS[name].label, 100.0 if name == _LOSS else 1.0
            panels.append(Dots.of_columns(label, rows, "value", scale=times, level=0))
        return interval_dots(
            panels,
            pairs,
            title=title,
            note="Intervals hold for all pairs of tasks of a panel together.",
        )


@dataclass(frozen=True)
class TaskComparison(ResampledJoin):
    """What do results of one study over several tasks have in common, two tasks at a time?

    They may be of different models of one build: a pre-trained one, fine-tuned for each task.

    Method: of `head-ablation`, the largest loss that two tasks that were learnt share: the smaller
    of both losses without one head, of the head for which it is largest (an intersection–union test
    over the two tasks); and the rank correlation of the heads' effects, each less its layer's mean;
    of `map-types`, Cohen's
    kappa of the commonest type of each head; of `token-classes`, the weight of [SEP] in a task of
    single texts less that in a task of pairs, as it is (the paper's) and beyond even attention
    (ours). The paper has no CoLA, so it takes no part in the paper's comparison. Intervals are
    corrected (Bonferroni) for all pairs of tasks of a comparison; that of the shared loss, for all
    heads and all tasks.

    Limits: intervals are over heads (ranking, map types) or over examples, never over trainings:
    models fine-tuned once more may agree more or less. Where heads are taken as a sample,
    neighbours depend on each other.
    """

    version: ClassVar[int] = 4  # the largest shared loss, one number with bounds of its own
    result_type: ClassVar[type[Result]] = TaskComparisonResult
    sources: ClassVar[tuple[str, ...]] = (ABLATION, TYPES, CLASSES)
    over: ClassVar[str] = "all tasks"
    lacking: ClassVar[str] = "it takes two tasks or more"

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """Every two tasks that can be compared, study by study."""
        import pandas as pd

        by_study, rows = _by_study(results, name), list[list[object]]()
        evidence = dict[str, Estimate]()
        for comparison, about in _COMPARISONS.items():
            pairs = list(_pairs(comparison, by_study.get(about.study, {})))
            tasks = len({_task(side) for pair in pairs for side in pair})
            known = list[Estimate]()
            for one, other in pairs:
                head, found = "", None
                if comparison == _LOSS:
                    found, head = self._shared_loss(one, other, tasks)
                else:  # Bonferroni
                    strict = 1 - (1 - self.level) / len(pairs)
                    found = self._compare(comparison, one, other, strict)
                if found is not None:
                    bounds = [found.value, found.low, found.high, found.n]
                    rows.append([comparison, _task(one), _task(other), *bounds, head])
                    known.append(found)
            if known:
                picked = _picked(known, about.pick)
                evidence[about.quantity] = replace(picked, level=self.level, unit=about.unit)
        table = pd.DataFrame(rows, columns=_COLUMNS)
        identities = {s: {t: r.identity for t, r in tasks.items()} for s, tasks in by_study.items()}
        return self.result(
            self.provenance(name, results[0], identities),
            {"pairs": table},
            evidence=evidence,
            reasons={"": _WHY_NOT},
            facts={"tasks": len({task for tasks in by_study.values() for task in tasks})},
        )

    def _compare(
        self, comparison: str, one: Result, other: Result, strict: float
    ) -> Estimate | None:
        """All but the shared loss; `strict` is the level of one pair."""
        if comparison == "ranking of heads":
            sides = [_within_layers(r) for r in (one, other)]
            return rank_correlation(*sides, resamples=self.resamples, level=strict, seed=self.seed)
        if comparison == "map types":
            here, there = ([str(t) for t in _heads(r)["type"]] for r in (one, other))
            kinds = sorted({*here, *there})
            return cohens_kappa(
                here, there, kinds, level=strict, resamples=self.resamples, seed=self.seed
            ).kappa
        return _sep_lead(one, other, _SEP_WEIGHTS[comparison], strict)

    def _shared_loss(self, one: Result, other: Result, tasks: int) -> tuple[Estimate, str]:
        """The largest loss that both have without the same head, and the head.

        Without a head both lose at least the smaller of two losses. It is surely above 0 where both
        are (an intersection–union test), so tests and lower bounds are corrected for heads, which
        head-ablation did, and for tasks; value and lower bound are of one head. For the upper bound
        it is enough that the bound of the truly largest holds, in either task.
        """
        import pandas as pd

        sides = [_losses(_heads(result), 1 - self.level, tasks) for result in (one, other)]
        value, low, high = (np.minimum(*pair) for pair in zip(*sides, strict=True))
        names = dict(zip(("difference", *_LOW_HIGH), (value, low, high), strict=True))
        tests = [_heads(result)["p_adjusted"].to_numpy(dtype=float) for result in (one, other)]
        names["p_adjusted"] = np.minimum(np.maximum(*tests) * tasks, 1.0)
        n = min(int(result.facts["examples"]) for result in (one, other))
        found = extreme(pd.DataFrame(names), n=n, level=self.level)
        at = _heads(one).iloc[int(np.flatnonzero((value == found.value) & (low == found.low))[0])]
        return found, f"{int(at['layer'])}.{int(at['head'])}"


def _picked(known: Sequence[Estimate], pick: str) -> Estimate:
    """The best pair of tasks (among sure ones, if any is) or the worst, with bounds good for all.

    Value and near bound are of one pair; another may truly be the best, so the far bound is the
    farthest. If a test decided for the best, the smallest of all p-values does so at other levels.
    """
    if pick == "min":
        worst = min(known, key=lambda e: e.value)
        return replace(worst, low=min(e.low for e in known))
    best = max(known, key=lambda e: (e.low > 0, e.value))
    tests = [e.tested for e in known if e.tested is not None]
    tested = min(tests, key=lambda test: test[1]) if best.tested is not None else None
    return replace(best, high=max(e.high for e in known), tested=tested)


def _by_study(results: Sequence[Result], name: str) -> dict[str, dict[str, Result]]:
    found: dict[str, dict[str, Result]] = {}
    for result in results:
        tasks = found.setdefault(result.provenance.study, {})
        if _task(result) in tasks:
            must = "hold one result of a study and task"
            raise ParameterError("results", name, must, _task(result))
        tasks[_task(result)] = result
    shapes = {len(_heads(r)) for study in (ABLATION, TYPES) for r in found.get(study, {}).values()}
    if len(shapes) > 1:
        raise DataError(
            f"The results are of models with different numbers of heads: {sorted(shapes)}.",
            hint="Compare models of one build.",
        )
    if len({task for tasks in found.values() for task in tasks}) < 2:
        raise DataError("A comparison of tasks needs results of two tasks or more.")
    return found


def _task(result: Result) -> str:
    return result.provenance.corpus_name


def _pairs(comparison: str, by_task: Mapping[str, Result]) -> Iterator[tuple[Result, Result]]:
    """Every two tasks that can be compared; of classes, single texts first and pairs second."""
    study = _COMPARISONS[comparison].study
    if study == CLASSES:
        about = {task: (r.provenance.corpus or {}).get("pair") for task, r in by_task.items()}
        single, paired = ([t for t in by_task if about[t] is kind] for kind in (False, True))
        if comparison == "weight of [SEP]":  # the paper's own, so of its tasks only
            single = [task for task in single if task not in _NOT_IN_THE_PAPER]
        yield from ((by_task[a], by_task[b]) for a in single for b in paired)
        return
    # What heads do for a task that was not learnt is noise.
    learnt = [r for r in by_task.values() if study != ABLATION or r.facts.get("informed")]
    yield from combinations(learnt, 2)


def _heads(result: Result) -> pd.DataFrame:
    if "heads" not in result.tables:
        raise DataError(
            f"The result {result.identity} of {result.provenance.study!r} has no table of heads.",
            hint="Run the study again with its heads.",
        )
    return result.tables["heads"].sort_values(["layer", "head"], ignore_index=True)


def _within_layers(result: Result) -> pd.Series[float]:
    """The effect of each head less its layer's mean: two tasks may miss the same layers anyway."""
    heads = _heads(result)
    return heads["difference"] - heads.groupby("layer")["difference"].transform("mean")


def _losses(heads: pd.DataFrame, error: float, tasks: int) -> tuple[Floats, Floats, Floats]:
    """What is lost without each head, and bounds; lower ones are made good for several tasks.

    They move out as normal bounds would. Where the exact test of a head says more or less than its
    bound, the test decides on which side of 0 the bound is.
    """
    from scipy.special import ndtri

    columns = ("difference", "simultaneous_high", "p_adjusted")
    change, above, p = (heads[c].to_numpy(dtype=float) for c in columns)
    below = heads["alone_low" if "alone_low" in heads else "simultaneous_low"]
    usual, strict = (float(ndtri(1 - error / (2 * len(heads) * times))) for times in (1, tasks))
    low = -change - (above - change) * (strict / usual)
    sure = (change < 0) & (p < error / tasks)
    low = np.where(sure, np.maximum(low, ONE_SIDE), np.minimum(low, 0.0))
    return -change, low, -below.to_numpy(dtype=float)


def _sep_lead(single: Result, paired: Result, quantity: str, strict: float) -> Estimate | None:
    """A weight of [SEP] with one text less with two."""
    found = [result.evidence().get(quantity) for result in (single, paired)]
    one, two = found
    if one is None or two is None:
        return None
    value = one.value - two.value
    half = float(np.hypot(_half(one, strict), _half(two, strict)))  # over different examples
    return Estimate(value, value - half, value + half, min(one.n, two.n), strict)


def _half(found: Estimate, strict: float) -> float:
    """Half of Student's interval, at a stricter level."""
    from scipy.special import stdtrit

    wide, usual = (float(stdtrit(found.n - 1, (1 + p) / 2)) for p in (strict, found.level))
    return (found.high - found.low) / 2 * wide / usual
