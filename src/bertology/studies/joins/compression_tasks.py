"""Compression over tasks: does the best student need its teacher on most of them?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from bertology.errors import DataError
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, listed, points
from bertology.results.drawing import Drawing
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.join import Join

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["CompressionTasks", "CompressionTasksResult", "largest_but"]

TABLE, GAIN, KEPT = "compression-table", "best_student_over_alone", "best_small_kept"
QUANTITY = "gain_on_most_tasks"
FEWEST = 4  # tasks; most of them are three
_MOST = 3 / 4
_FEW = (
    f"not judged: there are fewer than {FEWEST} tasks, or on too few there was something to learn"
)


class CompressionTasksResult(Result):
    """Table `tasks`: the best student of each task beside the same size without a teacher.

    `gain` has the interval of its task alone. Table `rows`: what every row that all tasks have
    keeps of the teacher's score in the mean over tasks, as the survey's Table 1 has it, with an
    interval over seeds and examples of these tasks.
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

    Combines results of `compression-table` of one model over several tasks.

    Method: on each task, the gain of the best student over each model of its size without a
    teacher, as that study has it (the best is picked on examples and by seeds that do not score
    it). `gain_on_most_tasks` is the gain that three of four tasks reach or pass, the third largest
    of four. It surely is above zero where at least so many gains are: with m tasks and k of them
    asked for, lower bounds are made at the level that m - k + 1 tasks together need, upper ones at
    that of k (a partial conjunction, Benjamini and Heller 2008). A task whose teacher does not
    surely beat a constant answer may have any gain: it is not counted as one. The mean over tasks
    of what a row keeps is the ratio of mean scores, as the survey's Table 1 has it; errors of tasks
    add up as squares do, since they have different examples.

    Source: A Primer in BERTology (TACL 2020), section 7, Table 1. Limits: tasks are taken as they
    are; nothing is said of others. Scores of different kinds, accuracies and correlations, are
    averaged, as the survey does.
    """

    result_type: ClassVar[type[Result]] = CompressionTasksResult
    sources: ClassVar[tuple[str, ...]] = (TABLE,)
    over: ClassVar[str] = "all tasks"
    lacking: ClassVar[str] = f"it takes results of compression-table on {FEWEST} tasks or more"

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """The gains of all tasks, and means of rows."""
        tasks = _by_task(results)
        gains = {task: result.evidence().get(GAIN) for task, result in tasks.items()}
        known = [one for one in gains.values() if one is not None]
        most = math.ceil(_MOST * len(tasks))
        enough = len(tasks) >= FEWEST and len(known) >= most
        found = largest_but(known, most, self.level, of=len(tasks)) if enough else None
        return self.result(
            self.provenance(name, results[0], {t: r.identity for t, r in tasks.items()}),
            {"tasks": _tasks(tasks), "rows": _rows(list(tasks.values()))},
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


def _by_task(results: Sequence[Result]) -> dict[str, Result]:
    found = {result.provenance.corpus_name: result for result in results}
    if len(found) < len(results) or len(found) < 2:
        raise DataError(
            "Tasks are compared of one result of compression-table for each of two tasks or more. "
            f"Got {listed(r.provenance.corpus_name for r in results)}.",
            hint="bertology list --study compression-table shows which there are.",
        )
    models = {str(result.provenance.model["fingerprint"]) for result in results}
    if len(models) > 1:
        raise DataError(
            f"The results are of {len(models)} models; tasks are compared of one.",
            hint="Give results of compression-table of the same model.",
        )
    return found


def _bounds(name: str, found: Estimate | None) -> dict[str, float]:
    ends = (math.nan,) * 3 if found is None else (found.value, found.low, found.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def _tasks(tasks: Mapping[str, Result]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "task": task,
            "student": result.facts["best_student"],
            **_bounds("gain", result.evidence().get(GAIN)),
            "small": result.facts["best_small"],
            **_bounds("kept", result.evidence().get(KEPT)),
            "seeds": result.facts["seeds"],
            "examples": result.facts["examples"],
        }
        for task, result in tasks.items()
    )


def _rows(results: Sequence[Result]) -> pd.DataFrame:
    """Rows that all tasks have: the ratio of mean scores, each task weighing as it scores."""
    import pandas as pd

    tables = [result.tables["rows"].set_index("row") for result in results]
    shared = [name for name in tables[0].index if all(name in t.index for t in tables)]
    teachers = [float(t.loc[t["kind"] == "teacher", "score"].iloc[0]) for t in tables]
    rows = []
    for name in shared:
        own = [t.loc[name] for t in tables]
        if str(own[0]["kind"]) == "teacher":
            continue
        weights = [score / sum(teachers) for score in teachers]
        value, below, above = (
            sum(w * float(row["kept"]) for w, row in zip(weights, own, strict=True)),
            *(
                math.hypot(*(w * (float(row[f"kept_{end}"]) - float(row["kept"]))
                             for w, row in zip(weights, own, strict=True)))
                for end in ("low", "high")
            ),
        )  # fmt: skip
        rows.append(
            {
                "row": name,
                "kind": str(own[0]["kind"]),
                "smaller": sum(float(row["smaller"]) for row in own) / len(own),
                **dict(zip(("kept", "kept_low", "kept_high"),
                           (value, value - below, value + above), strict=True)),
                "published_kept": str(own[0]["published_kept"]),
                "published_source": str(own[0]["published_source"]),
            }
        )  # fmt: skip
    columns = ["row", "kind", "smaller", "kept", "kept_low", "kept_high", "published_kept",
               "published_source"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)
