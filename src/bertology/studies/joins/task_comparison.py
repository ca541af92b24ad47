"""Task comparison: what do results of one study over several tasks have in common?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from bertology.errors import DataError, ParameterError
from bertology.report.figures import Dots, interval_dots
from bertology.results.drawing import Drawing
from bertology.results.result import Result
from bertology.stats import Estimate, rank_correlation
from bertology.stats.agreement import cohens_kappa
from bertology.studies.join import Join

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["TaskComparison", "TaskComparisonResult"]

ABLATION, TYPES, CLASSES = "head-ablation", "map-types", "token-classes"
_COLUMNS = ["comparison", "first", "second", "value", "low", "high", "n"]
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


_MISSED = "missed heads"
_MORE_EXAMPLES = "more examples of both tasks would narrow it"
_COMPARISONS = {
    _MISSED: Comparison(
        ABLATION,
        "heads_missed_in_both",
        "max",
        "heads that both tasks miss",
        "Heads that both tasks miss: the line begins at the number for which that is sure, and "
        "ends at the number for which it is not excluded.",
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
# What each comparison of [SEP] reads of token-classes.
_SEP_WEIGHTS = {
    "weight of [SEP]": "sep_weight",
    "weight of [SEP] beyond even": "sep_weight_beyond_even",
}


class TaskComparisonResult(Result):
    """Table `pairs`: a row for each comparison and each two tasks, with how far they agree.

    Intervals of one comparison's rows hold for all its pairs of tasks together. They are over heads
    (ranking, map types) or over examples (missed heads, [SEP]), never over trainings.
    """

    def headline(self) -> str:
        """How many tasks were compared."""
        return f"{self.facts['tasks']} tasks compared, two at a time"

    def drawings(self) -> Sequence[Drawing]:
        """Every two tasks, by each study."""
        if not len(self.tables["pairs"]):
            return []
        told = dict.fromkeys(self.tables["pairs"]["comparison"])
        about = " ".join(_COMPARISONS[name].caption for name in told)
        caption = (
            f"One row for every two tasks, and a panel for each comparison. {about} Bars are "
            "intervals, wide enough for all pairs of tasks of a panel together."
        )
        return [Drawing("pairs", self._draw, caption)]

    def _draw(self) -> Figure:
        table = self.tables["pairs"]
        named = table.assign(pair=table["first"] + ", " + table["second"])
        pairs = list(dict.fromkeys(named["pair"]))
        panels = []
        for name in dict.fromkeys(named["comparison"]):
            rows = named[named["comparison"] == name].set_index("pair").reindex(pairs)
            values = (rows[c].to_numpy() for c in ("value", "low", "high"))
            panels.append(Dots(_COMPARISONS[str(name)].label, *values))
        return interval_dots(
            panels,
            pairs,
            title="What tasks have in common",
            note="Intervals hold for all pairs of tasks of a panel together.",
        )


@dataclass(frozen=True)
class TaskComparison(Join):
    """What do results of one study over several tasks have in common, two tasks at a time?

    They may be of different models of one build: a pre-trained one, fine-tuned for each task.

    Method: of `head-ablation`, the heads that two tasks that were learnt surely both miss, and the
    rank correlation of the heads' effects, each less its layer's mean; of `map-types`, Cohen's
    kappa of the commonest type of each head; of `token-classes`, the weight of [SEP] in a task of
    single texts less that in a task of pairs, as it is (the paper's) and beyond even attention
    (ours). The paper has no CoLA, so it takes no part in the paper's comparison. Intervals are
    corrected (Bonferroni) for all pairs of tasks of a comparison; heads that are missed, for all
    heads and all tasks.

    Limits: intervals are over heads (ranking, map types) or over examples, never over trainings:
    models fine-tuned once more may agree more or less. Where heads are taken as a sample,
    neighbours depend on each other.
    """

    version: ClassVar[int] = 3  # heads that both miss; [SEP] as in the paper
    result_type: ClassVar[type[Result]] = TaskComparisonResult
    sources: ClassVar[tuple[str, ...]] = (ABLATION, TYPES, CLASSES)
    over: ClassVar[str] = "all tasks"
    lacking: ClassVar[str] = "it takes two tasks or more"

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """Every two tasks that can be compared, study by study."""
        import pandas as pd

        by_study, rows = _by_study(results, name), list[list[object]]()
        for comparison, about in _COMPARISONS.items():
            pairs = list(_pairs(comparison, by_study.get(about.study, {})))
            tasks = len({_task(side) for pair in pairs for side in pair})
            for one, other in pairs:
                if comparison == _MISSED:
                    found: Estimate | None = self._missed_in_both(one, other, tasks)
                else:  # Bonferroni
                    strict = 1 - (1 - self.level) / len(pairs)
                    found = self._compare(comparison, one, other, strict)
                if found is not None:
                    bounds = [found.value, found.low, found.high, found.n]
                    rows.append([comparison, _task(one), _task(other), *bounds])
        table = pd.DataFrame(rows, columns=_COLUMNS)
        identities = {s: {t: r.identity for t, r in tasks.items()} for s, tasks in by_study.items()}
        return self.result(
            self.provenance(name, results[0], identities),
            {"pairs": table},
            evidence=dict(self._evidence(table)),
            reasons={"": _WHY_NOT},
            facts={"tasks": len({task for tasks in by_study.values() for task in tasks})},
        )

    def _evidence(self, table: pd.DataFrame) -> Iterator[tuple[str, Estimate]]:
        """The best pair, or the worst, with bounds good for all pairs."""
        for name, about in _COMPARISONS.items():
            rows = table[table["comparison"] == name]
            if len(rows):
                value, low, high = (
                    float(rows[c].agg(about.pick)) for c in ("value", "low", "high")
                )
                n = int(rows["n"].min())
                found = Estimate(value, low, high, n, self.level, about.unit)
                if name == _MISSED:
                    found = replace(found, counted=True, remedy=_MORE_EXAMPLES)
                yield about.quantity, found

    def _compare(
        self, comparison: str, one: Result, other: Result, strict: float
    ) -> Estimate | None:
        """All but the heads that both miss; `strict` is the level of one pair."""
        if comparison == "ranking of heads":
            sides = [_within_layers(r) for r in (one, other)]
            return rank_correlation(*sides, resamples=self.resamples, level=strict, seed=self.seed)
        if comparison == "map types":
            return self._same_types(one, other, strict)
        return _sep_lead(one, other, _SEP_WEIGHTS[comparison], strict)

    def _missed_in_both(self, one: Result, other: Result, tasks: int) -> Estimate:
        """How many heads both miss: surely (low), and as far as is not excluded (high).

        A head counts where each task surely misses it. For that to be wrong, one of the tasks must
        have been wrong about one of its heads: so tests are corrected for heads, which
        head-ablation did, and for tasks. The same goes for heads that are said not to be missed by
        more than the margin.
        """
        allowed = (1 - self.level) / tasks
        sides = [_heads(result) for result in (one, other)]
        surely = [(h["difference"] < 0) & (h["p_adjusted"] < allowed) for h in sides]
        margins = [float(result.facts["margin"]) for result in (one, other)]
        lost = [h["difference"] < -m for h, m in zip(sides, margins, strict=True)]
        maybe = [_further(h, self.level, tasks) < -m for h, m in zip(sides, margins, strict=True)]
        low, value, high = (int((a & b).sum()) for a, b in (surely, lost, maybe))
        value = max(low, value)
        n = min(int(result.facts["examples"]) for result in (one, other))
        return Estimate(value, low, max(value, high), n, self.level)

    def _same_types(self, one: Result, other: Result, strict: float) -> Estimate | None:
        here, there = ([str(t) for t in _heads(r)["type"]] for r in (one, other))
        kinds = sorted({*here, *there})
        return cohens_kappa(
            here, there, kinds, level=strict, resamples=self.resamples, seed=self.seed
        ).kappa


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


def _further(heads: pd.DataFrame, level: float, tasks: int) -> pd.Series[float]:
    """Lower bounds of the effects, made good for several tasks: farther out as normal ones are."""
    from scipy.special import ndtri

    usual, strict = (
        float(ndtri(1 - (1 - level) / (2 * len(heads) * times))) for times in (1, tasks)
    )
    reach = heads["difference"] - heads["simultaneous_low"]
    return heads["difference"] - reach * (strict / usual)


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
