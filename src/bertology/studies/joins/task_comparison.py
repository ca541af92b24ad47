"""Task comparison: what do results of one study over several tasks have in common?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

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
# What is said of two tasks by each study.
_LABELS = {
    ABLATION: "rank correlation of what tasks lose\nwithout each head, within layers",
    TYPES: "agreement (Cohen's κ) on the\ncommonest map type of each head",
    CLASSES: "weight of [SEP] beyond even\nattention, one text less pairs",
}
_CAPTIONS = {
    ABLATION: "What tasks lose without each head: 1 if both rank the heads of a layer alike, 0 if "
    "one says nothing of the other.",
    TYPES: "The commonest map type of each head: 1 if it is the same in both, 0 if no more often "
    "so than by chance.",
    CLASSES: "The weight of [SEP] beyond even attention: above 0 if it gets more in the task of "
    "single texts than in the task of pairs.",
}
# The quantity of each study, and whether it is of the best pair of tasks or of the worst.
_QUANTITIES = {
    ABLATION: ("shared_heads", "max"),
    TYPES: ("same_types", "min"),
    CLASSES: ("single_text_sep_lead", "min"),
}
_COLUMNS = ["study", "first", "second", "value", "low", "high", "n"]
_WHY_NOT = "not judged: it needs two tasks that are learnt, or one of single texts and a pair's"


class TaskComparisonResult(Result):
    """Table `pairs`: a row for each study and each two tasks, with how far they agree.

    Intervals of one study's rows hold for all its pairs of tasks together. They are over heads
    (head-ablation, map-types) or over examples (token-classes), never over trainings.
    """

    def headline(self) -> str:
        """How many tasks were compared."""
        return f"{self.facts['tasks']} tasks compared, two at a time"

    def drawings(self) -> Sequence[Drawing]:
        """Every two tasks, by each study."""
        if not len(self.tables["pairs"]):
            return []
        about = " ".join(_CAPTIONS[s] for s in dict.fromkeys(self.tables["pairs"]["study"]))
        caption = (
            f"One row for every two tasks, and a panel for each study. {about} Bars are "
            "intervals, wide enough for all pairs of tasks of a panel together."
        )
        return [Drawing("pairs", self._draw, caption)]

    def _draw(self) -> Figure:
        table = self.tables["pairs"]
        named = table.assign(pair=table["first"] + ", " + table["second"])
        pairs = list(dict.fromkeys(named["pair"]))
        panels = []
        for study in dict.fromkeys(named["study"]):
            rows = named[named["study"] == study].set_index("pair").reindex(pairs)
            values = (rows[c].to_numpy() for c in ("value", "low", "high"))
            panels.append(Dots(_LABELS[str(study)], *values))
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

    Method: of `head-ablation`, the rank correlation of the heads' effects, each less its layer's
    mean, between tasks that were learnt; of `map-types`, Cohen's kappa of the commonest type of
    each head; of `token-classes`, the weight of [SEP] beyond even attention in a task of single
    texts less that in a task of pairs. Intervals are corrected (Bonferroni) for a study's pairs of
    tasks.

    Limits: intervals are over heads, or over examples (`token-classes`), never over trainings:
    models fine-tuned once more may agree more or less. Heads are taken as a sample, though
    neighbours depend on each other.
    """

    version: ClassVar[int] = 2  # quantities for claims are kept with the result
    result_type: ClassVar[type[Result]] = TaskComparisonResult
    sources: ClassVar[tuple[str, ...]] = tuple(_LABELS)
    over: ClassVar[str] = "all tasks"
    lacking: ClassVar[str] = "it takes two tasks or more"

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """Every two tasks that can be compared, study by study."""
        import pandas as pd

        by_study = _by_study(results, name)
        makers: dict[str, Callable[[Result, Result, float], Estimate | None]] = {
            ABLATION: self._shared_heads, TYPES: self._same_types, CLASSES: _sep_lead,
        }  # fmt: skip
        rows: list[list[object]] = []
        for study, make in makers.items():
            pairs = list(_pairs(study, by_study.get(study, {})))
            for one, other in pairs:
                found = make(one, other, 1 - (1 - self.level) / len(pairs))  # Bonferroni
                if found is not None:
                    bounds = [found.value, found.low, found.high, found.n]
                    rows.append([study, _task(one), _task(other), *bounds])
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
        for study, (quantity, pick) in _QUANTITIES.items():
            rows = table[table["study"] == study]
            if len(rows):
                value, low, high = (float(rows[c].agg(pick)) for c in ("value", "low", "high"))
                yield quantity, Estimate(value, low, high, int(rows["n"].min()), self.level)

    def _shared_heads(self, one: Result, other: Result, strict: float) -> Estimate:
        sides = [_within_layers(r) for r in (one, other)]
        return rank_correlation(*sides, resamples=self.resamples, level=strict, seed=self.seed)

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


def _pairs(study: str, by_task: Mapping[str, Result]) -> Iterator[tuple[Result, Result]]:
    """Every two tasks that can be compared; of classes, single texts first and pairs second."""
    if study == CLASSES:
        about = {task: (r.provenance.corpus or {}).get("pair") for task, r in by_task.items()}
        single, paired = ([t for t in by_task if about[t] is kind] for kind in (False, True))
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


def _sep_lead(single: Result, paired: Result, strict: float) -> Estimate | None:
    """The weight of [SEP] beyond even attention, with one text less with two.

    Single texts are shorter, and in a short text every token gets more.
    """
    found = [result.evidence().get("sep_weight_beyond_even") for result in (single, paired)]
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
