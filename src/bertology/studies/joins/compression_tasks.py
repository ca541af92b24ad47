"""Compression over tasks: does the best student need its teacher on most of them?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, listed, of_row, points
from bertology.results.drawing import Drawing
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.fixed_means import OfRuns, mean_over_fixed
from bertology.studies.compression.compression_table.rows import TEACHER
from bertology.studies.designs.tables import bounded
from bertology.studies.join import Join
from bertology.studies.joins.shared import refuse_unlike, settings_but

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TABLE, GAIN, KEPT = "compression-table", "best_student_over_alone", "best_small_kept"
QUANTITY = "gain_on_most_tasks"
FEWEST = 4  # tasks; most of them are three
_MOST = 3 / 4
# They are of each task, or have no bearing on the scores of rows that several results have.
_FREE = (
    "methods", "seeds", "examples", "train", "train_split", "times", "rounds", "threads",
)  # fmt: skip
_RANDOM = "random-"  # baselines with random weights, which are the same for a seed on all tasks
_FEW = (
    f"not judged: there are fewer than {FEWEST} tasks, or on too few there was something to learn"
)


class CompressionTasksResult(Result):
    """Table `tasks`: the best student of each task beside the same size without a teacher.

    `learnt` is how many examples there were to learn from; `gain` has the interval of its task
    alone; `student` and `small` are the rows that were picked most often. Table `rows`: what every
    row that all tasks have keeps of the teacher's score in the mean over tasks, as the survey's
    Table 1 has it, with an interval over seeds and examples of these tasks. All intervals are at
    the level that was asked for.
    """

    lead: ClassVar[int] = 3
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "tasks": {"gain": "points", "kept": "%"},
        "rows": {"kept": "%"},
    }

    @property
    def answer(self) -> str:
        """On how many tasks the best student is better."""
        rows = self.tables["tasks"]
        better = [str(task) for task in rows["task"][rows["gain_low"] > 0]]
        found = self.evidence().get(QUANTITY)
        if found is None:
            return f"{NOTHING_SURE}: {_FEW.removeprefix('not judged: ')}."
        sure = "surely better" if found.low > 0 else "not surely better"
        on = f" (each by itself: {listed(better)})" if better else ""
        return (
            f"The best student is {sure} than the same size without a teacher on at least "
            f"{self.facts['most']} of {self.facts['tasks']} tasks, by {points(found)} at "
            f"least{on}."
        )

    def headline(self) -> str:
        """What is compared."""
        return f"{self.facts['tasks']} tasks; {len(self.tables['rows'])} rows that all of them have"

    def drawings(self) -> Sequence[Drawing]:
        """The gain on each task, and the mean over tasks."""
        tasks = (
            "One row for each task. How much the best student scores above the best model of the "
            "same size without a teacher, in points, and what the best small model keeps of the "
            "teacher's score. Intervals are over seeds and examples, of each task alone; the "
            "dashed line is no gain, and all that the teacher scores."
        )
        rows = (
            "What every row keeps of the teacher's score: the ratio of mean scores over all tasks, "
            "with intervals over seeds and examples of these tasks. The dashed line is the "
            "teacher."
        )
        return [Drawing("tasks", self._draw_tasks, tasks), Drawing("rows", self._draw_rows, rows)]

    def _draw_tasks(self) -> Figure:
        table = self.tables["tasks"]
        panels = [
            Dots.of_columns("gain by the teacher (points)", table, "gain", level=0.0),
            Dots.of_columns("best small model keeps (%)", table, "kept", level=100.0),
        ]
        return interval_dots(panels, list(table["task"]), title="Students by task", note="")

    def _draw_rows(self) -> Figure:
        table = self.tables["rows"]
        panels = [Dots.of_columns("score kept (%)", table, "kept", level=100.0)]
        title = f"Mean over {self.facts['tasks']} tasks"
        return interval_dots(panels, list(table["row"]), title=title, note="")


@dataclass(frozen=True)
class CompressionTasks(Join):
    """Is the best student better than the same size without a teacher on most tasks?

    Combines results of `compression-table` of one model on several tasks, with the same settings;
    seeds, rows, the number of training examples, and where models were timed, may differ.

    Method: on each task, the gain of the best student over each model of its size without a
    teacher, as that study has it (the best is picked on examples and by seeds that do not score
    it). `gain_on_most_tasks` is the gain that three of four tasks reach or pass, the third largest
    of four. It surely is above zero where at least so many gains are: with m tasks and k of them
    asked for, lower bounds are made at the level that m - k + 1 tasks together need, upper ones at
    that of k (a partial conjunction, Benjamini and Heller 2008). A task whose teacher does not
    surely beat a constant answer may have any gain: it is not counted as one. The mean over tasks
    of what a row keeps is the ratio of mean scores, as the survey's Table 1 has it. Tasks have
    different examples, so that these errors add up as squares do; those of seeds do so too, with
    the degrees of freedom of Welch and Satterthwaite, but of baselines with random weights, which
    are the same for a seed on all tasks: there they add up as they are.

    Source: A Primer in BERTology (TACL 2020), section 7, Table 1. Limits: tasks are taken as they
    are; nothing is said of others. Scores of different kinds, accuracies and correlations, are
    averaged, as the survey does.
    """

    version: ClassVar[int] = 3  # rows that learnt nothing are not judged
    result_type: ClassVar[type[Result]] = CompressionTasksResult
    sources: ClassVar[tuple[str, ...]] = (TABLE,)
    over: ClassVar[str] = "all tasks"
    lacking: ClassVar[str] = f"it takes results of compression-table on {FEWEST} tasks or more"

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """The gains of all tasks, and means of rows."""
        # By task; what cannot be compared is refused
        names = [result.provenance.corpus_name for result in results]
        refuse_unlike(results, names, lambda result: settings_but(result, _FREE))
        tasks = dict(zip(names, results, strict=True))
        gains = {task: result.evidence().get(GAIN) for task, result in tasks.items()}
        known = [one for one in gains.values() if one is not None]
        most = math.ceil(_MOST * len(tasks))
        enough = len(tasks) >= FEWEST and len(known) >= most
        found = largest_but(known, most, self.level, of=len(tasks)) if enough else None
        return self.result(
            self.provenance(name, results[0], {t: r.identity for t, r in tasks.items()}),
            {
                "tasks": _tasks(tasks, self.level),
                "rows": _rows([_Kept(result) for result in tasks.values()], self.level),
            },
            evidence={QUANTITY: found},
            reasons={} if found else {QUANTITY: _FEW},
            facts={"tasks": len(tasks), "most": most},
        )


def largest_but(found: Sequence[Estimate], most: int, level: float, *, of: int) -> Estimate:
    """The number that `most` of the tasks reach; its bounds hold whichever truly is that one.

    The lower bound is wrong only where one of the m - k + 1 smallest has a lower bound above the
    truth, the upper one only where one of the k largest has one below. Tasks `of` which there is no
    number may have any: they are not counted as gains, and not as losses.
    """
    ranked = sorted(found, key=lambda one: -one.value)
    value = ranked[most - 1].value
    if any(math.isnan(one.low) for one in found):
        return replace(ranked[most - 1], low=math.nan, high=math.nan)

    def strict(times: int) -> list[Estimate]:
        return [one.at_level(1 - (1 - level) / times) for one in found]

    unknown = [math.inf] * (of - len(found))
    low = sorted((one.low for one in strict(of - most + 1)), reverse=True)[most - 1]
    high = sorted([*unknown, *(one.high for one in strict(most))], reverse=True)[most - 1]
    return Estimate(value, min(low, value), max(high, value), of, level, unit="tasks",
                    lasting=1.0, remedy="more seeds and more examples would narrow it")  # fmt: skip


def _bounds(name: str, found: Estimate | None, level: float) -> dict[str, float]:
    ends = (math.nan,) * 3
    if found is not None:
        at = found.at_level(level)
        ends = at.value, at.low, at.high
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def _tasks(tasks: Mapping[str, Result], level: float) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "task": task,
            "learnt": int(result.facts["train_size"]),
            "student": result.facts["best_student"],
            **_bounds("gain", result.evidence().get(GAIN), level),
            "small": result.facts["best_small"],
            **_bounds("kept", result.evidence().get(KEPT), level),
            "seeds": result.facts["seeds"],
            "examples": result.facts["examples"],
        }
        for task, result in tasks.items()
    )


@dataclass(frozen=True)
class _Kept:
    """What rows keep on one task."""

    result: Result

    @cached_property
    def rows(self) -> dict[str, pd.Series[Any]]:
        """The rows but the teacher, by name."""
        table = self.result.tables["rows"]
        return {str(row["row"]): row for _, row in table[table["kind"] != TEACHER].iterrows()}

    @cached_property
    def _runs(self) -> pd.DataFrame:
        """Scores: seeds × rows."""
        judged = str(self.result.facts["judged"])
        return self.result.tables["runs"].pivot(index="seed", columns="row", values=judged)

    @property
    def teacher(self) -> float:
        """Its mean score."""
        return float(self._runs[TEACHER].mean())

    def of(self, name: str, weight: float) -> OfRuns:
        """What a row keeps and its errors, all times a weight."""
        facts, columns = self.result.facts, ("kept", "kept_low", "kept_high")
        level, n = float(facts["level"]), int(facts["examples"])
        found = of_row(self.rows[name], columns, n=n, level=level)
        # The error of a ratio is that of A - r B, in units of B.
        by_seed = (self._runs[name] - found.value * self._runs[TEACHER]) / self.teacher
        own = OfRuns.of(found, by_seed.to_numpy(float), n)
        return replace(
            own,
            value=weight * own.value,
            over_runs=weight * own.over_runs,
            over_examples=weight * own.over_examples,
        )


def _rows(tasks: Sequence[_Kept], level: float) -> pd.DataFrame:
    """Rows that all tasks have: the ratio of mean scores, each task weighing as it scores."""
    import pandas as pd

    whole = sum(task.teacher for task in tasks)
    rows = []
    for name in (n for n in tasks[0].rows if all(n in task.rows for task in tasks)):
        own = [task.rows[name] for task in tasks]
        kept = mean_over_fixed(
            [task.of(name, len(tasks) * task.teacher / whole) for task in tasks],
            level,
            shared=name.startswith(_RANDOM),
        )
        rows.append(
            {
                "row": name,
                "kind": str(own[0]["kind"]),
                "smaller": sum(float(row["smaller"]) for row in own) / len(own),
                **bounded("kept", kept),
                "published_kept": str(own[0]["published_kept"]),
                "published_source": str(own[0]["published_source"]),
            }
        )
    columns = ["row", "kind", "smaller", "kept", "kept_low", "kept_high", "published_kept",
               "published_source"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)
