"""Variants over tasks: which ways to fine-tune are better than the plain one on several tasks?"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.errors import DataError
from bertology.metrics import find_metric
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import NOTHING_SURE, largest_row, listed, of_row, points
from bertology.results.drawing import Drawing
from bertology.results.evidence import ALL_OTHERS
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.fixed_means import OfRuns, mean_over_fixed
from bertology.studies.designs.tables import bounded
from bertology.studies.join import Join
from bertology.studies.joins.shared import refuse_unlike, settings_but
from bertology.studies.training.finetuning_variants.runs import PLAIN, TITLES

if TYPE_CHECKING:
    import pandas as pd


BETTER, WORSE = "better", "worse"
TITLED = "title_"  # and a name: the fact that holds the title of a variant
FEWEST = 2  # tasks of a mean
# They are of each task, or have no bearing on scores of variants that several results have. What
# comes first (`intermediate`) is looked at apart: a result need not have that variant.
_FREE = (
    "ways", "seeds", "examples", "train", "train_split", "noise",
    "intermediate", "intermediate_split", "intermediate_limit",
)  # fmt: skip
# What they train or draw before the task is the same for a seed, whatever the task.
_SHARED = ("intermediate", "top-again")


@dataclass(frozen=True)
class TaskOfVariants:
    """One result of `finetuning-variants`."""

    result: Result

    @property
    def name(self) -> str:
        """The task."""
        return str(self.result.facts["task"])

    @property
    def metric(self) -> str:
        """What variants are judged by."""
        return str(self.result.facts["judged"])

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Scores and differences by variant, of the judged metric."""
        table = self.result.tables["variants"]
        found: pd.DataFrame = table[table["metric"] == self.metric].set_index("variant")
        return found

    @property
    def variants(self) -> list[str]:
        """Plain fine-tuning, and what was compared with it."""
        return [str(name) for name in self.rows.index]

    @property
    def learnt(self) -> bool:
        """Whether plain fine-tuning surely beats a constant answer, as the study has it."""
        low, mean = (float(self.rows[column].loc[PLAIN]) for column in ("low", "mean"))
        return not float(self.result.facts["constant"]) >= (mean if math.isnan(low) else low)

    def learnt_by(self, variant: str) -> bool:
        """Whether the variant learnt something, too; else the study judges nothing of it."""
        return quantity_of(variant) not in self.result.reasons()

    def title(self, variant: str) -> str:
        """The title of a variant: the result's own, or that of a variant with a name."""
        own = self.result.facts.get(f"{TITLED}{variant}")
        return str(own) if own else TITLES.get(variant, variant)

    def cost(self, variant: str) -> tuple[float, float]:
        """The share of weights that it trains, and its time in units of plain fine-tuning."""
        table = self.result.tables["costs"].set_index("variant")
        return float(table["share"].loc[variant]), float(table["time"].loc[variant])

    def over_plain(self, variant: str) -> OfRuns:
        """How much better a variant is than plain fine-tuning, and the errors of that."""
        quantity = quantity_of(variant)
        found = self.result.evidence().get(quantity)
        if found is None:
            raise DataError(
                f"The result {self.result.identity[:8]} of {self.name} does not say how sure "
                f"{quantity} is.",
                hint="Run it again with --force: trained models of plain fine-tuning are kept.",
            )
        runs = self.result.tables["runs"].pivot(index="seed", columns="variant")[self.metric]
        by_seed = (runs[variant] - runs[PLAIN]).to_numpy(float)
        return OfRuns.of(found, by_seed, int(self.result.facts["examples"]))


def quantity_of(variant: str) -> str:
    """`layer_mix_over_plain`: what claims call the difference of a variant."""
    return f"{re.sub('[^A-Za-z0-9]', '_', variant)}_over_plain"


@dataclass(frozen=True)
class VariantsByTask:
    """Several tasks: the table of all, and means over those that were learnt."""

    tasks: Sequence[TaskOfVariants]
    level: float

    @property
    def learnt(self) -> list[TaskOfVariants]:
        """The tasks on which there was something to improve on."""
        return [task for task in self.tasks if task.learnt]

    @property
    def variants(self) -> list[str]:
        """All variants, those of the first task first."""
        return list(dict.fromkeys(name for task in self.tasks for name in task.variants))

    @property
    def shared(self) -> list[str]:
        """What all tasks have and plain fine-tuning is compared with."""
        common = (n for n in self.variants if all(n in task.variants for task in self.tasks))
        return [name for name in common if name != PLAIN]

    @property
    def titles(self) -> dict[str, str]:
        """Of all variants, as the first result that has one calls it."""
        owners = {n: t for task in reversed(self.tasks) for n, t in _owned(task).items()}
        return {name: owners[name].title(name) for name in self.variants}

    @cached_property
    def _measured(self) -> dict[str, list[OfRuns]]:
        if len(self.learnt) < FEWEST:
            return {}
        return {
            name: [task.over_plain(name) for task in self.learnt]
            for name in self.shared
            if all(task.learnt_by(name) for task in self.learnt)
        }

    def mean(self, variant: str, times: int = 1) -> Estimate:
        """The mean difference over tasks, at the level that so many comparisons need."""
        title = f"{variant} {self.titles[variant]}".replace("_", "-")
        ends = np.array([find_metric(task.metric).differences_within for task in self.learnt])
        low, high = ends.mean(axis=0).tolist()
        return mean_over_fixed(
            self._measured[variant],
            1 - (1 - self.level) / times,
            shared=any(way in title for way in _SHARED),
            within=(low, high),
        )

    def means(self) -> dict[str, Estimate]:
        """Of each variant by itself; none where too few tasks were learnt."""
        return {name: self.mean(name) for name in self._measured}

    def surely(self) -> dict[str, str]:
        """Which variants are better or worse in the mean, when all are tested (Holm)."""
        found, open_yet = dict[str, str](), list(self._measured)
        while open_yet:
            each = {name: self.mean(name, len(open_yet)) for name in open_yet}
            told = {
                name: BETTER if one.value > 0 else WORSE
                for name, one in each.items()
                if one.excludes(0.0)
            }
            if not told:
                break
            found |= told
            open_yet = [name for name in open_yet if name not in told]
        return found

    def table(self) -> pd.DataFrame:
        """One row for each variant and task."""
        import pandas as pd

        kept = ["seeds", "mean", "low", "high",
                "over_plain", "over_plain_low", "over_plain_high", "sure"]  # fmt: skip
        found = []
        for name in self.variants:
            for task in self.tasks:
                if name in task.variants:
                    share, time = task.cost(name)
                    own = {"variant": name, "task": task.name, "metric": task.metric}
                    row = {column: task.rows.loc[name, column] for column in kept}
                    costs = {"share": share, "time": time, "learnt": int(task.learnt)}
                    found.append({**own, **row, **costs})
        return pd.DataFrame(found)

    def mean_table(self) -> pd.DataFrame:
        """One row for each variant that all tasks have; bounds hold for all of them together."""
        import pandas as pd

        sure, found = self.surely(), []
        for name in self.shared:
            none = Estimate(math.nan, math.nan, math.nan, 0, self.level)
            mean = self.mean(name, len(self.shared)) if name in self._measured else none
            told = [str(task.rows.loc[name, "sure"]) for task in self.learnt]
            costs = np.array([task.cost(name) for task in self.tasks])
            found.append(
                {
                    "variant": name,
                    "tasks": len(self.learnt),
                    **bounded("over_plain", mean),
                    "sure": sure.get(name, ""),
                    "better_on": told.count(BETTER),
                    "worse_on": told.count(WORSE),
                    "share": costs[:, 0].mean(),
                    "time": costs[:, 1].mean(),
                }
            )
        return pd.DataFrame(found)


def _owned(task: TaskOfVariants) -> dict[str, TaskOfVariants]:
    return dict.fromkeys(task.variants, task)


# What can be compared -----------------------------------------------------------------------------


def by_task(results: Sequence[Result], level: float) -> VariantsByTask:
    """Refuse what is not one model on several tasks, with the same settings."""
    tasks = [TaskOfVariants(result) for result in results]
    refuse_unlike(results, [task.name for task in tasks], _settings)
    found = VariantsByTask(tasks, level)
    if not found.shared:
        raise DataError(
            "No variant is in all of the results, but the plain one.",
            hint="Run finetuning-variants on each task with the same --model and settings.",
        )
    return found


def _settings(result: Result) -> dict[str, object]:
    """What must be alike; a result that lacks one of them does not use it."""
    asked, found = result.provenance.parameters, settings_but(result, _FREE)
    if asked.get("intermediate"):
        found |= {k: v for k, v in asked.items() if k.startswith("intermediate")}
    return found


STUDY = "finetuning-variants"
_OVER = ("over_plain", "over_plain_low", "over_plain_high")
_NAMED = 2  # of those that are better, or worse, in the answer
_POINTS = {"over_plain": "points", "share": "%"}
_FEW = (
    f"not judged: plain fine-tuning surely beats a constant answer on fewer than {FEWEST} tasks, "
    "so that there is no mean over them"
)
_UNLEARNT = "not judged: on some task this variant does not surely beat a constant answer"


class VariantTasksResult(Result):
    """Table `rows`: one row for each way to fine-tune and task, by the metric that judges the task.

    `over_plain` is the difference to plain fine-tuning by seed; its bounds hold for all variants of
    that task together, and `sure` is tested for all of them (Holm), both as the task's own result
    has them. `share` is that of the weights which are trained, `time` is in units of plain
    fine-tuning, and empty where that was on another device. `learnt` is 0 where plain fine-tuning
    does not surely beat a constant answer. Table `means`: the mean difference of each variant that
    all tasks have, over the tasks that were learnt (`tasks`); bounds hold for all variants
    together, `sure` is tested for all of them (Holm). `better_on` and `worse_on` count these tasks,
    each by its own test alone.
    """

    lead: ClassVar[int] = 6
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "rows": {"mean": "× 100", **_POINTS},
        "means": _POINTS,
    }

    @property
    def answer(self) -> str:
        """Which variants are surely better or worse in the mean over tasks."""
        means, told = self.tables["means"], []
        if not self._has_means:
            return f"{NOTHING_SURE}: {_FEW.removeprefix('not judged: ')}."
        on = f"in the mean over {self.facts['counted']} tasks"
        of = f"of {len(means)} ways to fine-tune"
        for what, first in ((BETTER, False), (WORSE, True)):
            rows = means[means["sure"] == what].sort_values("over_plain", ascending=first)
            if len(rows):
                names = listed((self._with_points(row) for _, row in rows.iterrows()), _NAMED)
                told.append(f"{names} surely {'is' if len(rows) == 1 else 'are'} {what}")
        if told:
            return f"I{on[1:]}, {'; '.join(told)} than plain fine-tuning, {of}."
        most = largest_row(means, "over_plain", size=True)
        return (
            f"{NOTHING_SURE}: {on}, none {of} is surely better or worse than the plain one; the "
            f"largest difference is that of {self._with_points(most)}."
        )

    def headline(self) -> str:
        """Which tasks, over how many seeds, and what was left out."""
        rows = self.tables["rows"]
        fewest, most = rows["seeds"].min(), rows["seeds"].max()
        seeds = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        aside = list(dict.fromkeys(rows.loc[rows["learnt"] == 0, "task"]))
        why = "left out of the mean, as plain fine-tuning does not surely beat a constant answer"
        return (
            f"{self.provenance.model_name}: {listed(dict.fromkeys(rows['task']))}; "
            f"{len(self.tables['means'])} variants that all of them have, "
            f"{self.facts['epochs']} epochs, {seeds} seeds"
        ) + (f"; {why}: {listed(aside)}" if aside else "")

    def drawings(self) -> Sequence[Drawing]:
        """Gains over plain fine-tuning, in the mean and by task; scores by task."""
        return [self._draw_gains(), self._draw()]

    @property
    def _has_means(self) -> bool:
        return int(self.facts["counted"]) >= FEWEST

    def _title(self, variant: str) -> str:
        return str(self.facts[f"{TITLED}{variant}"])

    def _with_points(self, row: pd.Series[float]) -> str:
        return f"{self._title(str(row['variant']))} ({points(of_row(row, _OVER))})"

    def _by_task(self, names: list[str]) -> dict[str, pd.DataFrame]:
        """The rows of each task, NaN for variants that it lacks."""
        rows = self.tables["rows"]
        return {
            str(task): own.set_index("variant").reindex(names)
            for task, own in rows.groupby("task", sort=False)
        }

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(self.tables["rows"]["variant"]))

    def _draw_gains(self) -> Drawing:
        names, panels = [name for name in self._names if name != PLAIN], []
        if self._has_means:
            means = self.tables["means"].set_index("variant").reindex(names)
            label = f"mean over {self.facts['counted']} tasks (points)"
            panels.append(Dots.of_columns(label, means, "over_plain", level=0.0))
        for task, rows in self._by_task(names).items():
            left = "" if rows["learnt"].max() else ", left out of the mean"
            label = f"{task} (points of {rows['metric'].dropna().iloc[0]}){left}"
            panels.append(Dots.of_columns(label, rows, "over_plain", level=0.0))
        return drawings.dots(
            "gains",
            panels,
            [self._title(name) for name in names],
            self.about,
            title="What ways to fine-tune gain over plain fine-tuning",
            same_scale=True,
            caption="One row for each way to fine-tune: how much better it is than plain "
            "fine-tuning with the same seeds, in points. The first panel is the mean over tasks "
            "that were learnt, the others are the tasks; all have the same scale. Intervals are "
            "over seeds and examples of these very tasks, and hold for all rows of a panel "
            "together: those that do not reach the dashed line are surely better or worse.",
            note="Intervals hold for all rows of a panel together (hollow: none).",
        )

    def _draw(self) -> Drawing:
        names, panels = self._names, []
        for task, rows in self._by_task(names).items():
            metric = find_metric(str(rows["metric"].dropna().iloc[0]))
            level = 100 * float(self.facts[f"constant_{task}"])
            label = f"{task}: {metric.in_hundred}"
            panels.append(Dots.of_columns(label, rows, "mean", level=level))
        return drawings.dots(
            "scores",
            panels,
            [self._title(name) for name in names],
            self.about,
            title="Scores by way to fine-tune and task",
            caption="One row for each way to fine-tune, one panel for each task, by the metric "
            "that judges the task, times a hundred. Dots are means over seeds, with intervals over "
            "seeds and examples of each row alone. The dashed line is the best constant answer.",
            note="Dashed: a constant answer. Intervals are over seeds and examples (hollow: none).",
        )


@dataclass(frozen=True)
class VariantTasks(Join):
    """Which ways to fine-tune are better than the plain one in the mean over several tasks?

    Combines results of `finetuning-variants` of one model, on several tasks, with the same
    settings; seeds, and which variants were run, may differ.

    Method: the table has each variant and task as that study has them. The mean over tasks of a
    difference to plain fine-tuning, in points of the metrics that judge the tasks, each task
    weighing the same, has an interval over seeds and examples of these very tasks. Tasks share no
    examples, so these variances add. Those of seeds add too, with the degrees of freedom of Welch
    and Satterthwaite, but no more than half as many again as the task with the fewest seeds has:
    where one task's seeds spread the most, more would miss too often. Equal numbers of seeds are no
    shared chance, but for variants that first learn another task, or draw layers anew: what they
    begin with is the same on all tasks, so that standard errors of seeds are added for them.
    Bounds hold for all variants that all tasks have (Bonferroni), and which of them are surely
    better or worse is tested for all of them (Holm). Tasks on which plain fine-tuning does not
    surely beat a constant answer are told, and left out of the mean; a variant that does not
    on another task has none.

    Source: A Primer in BERTology (TACL 2020), section 6.3. Limits: tasks are few and chosen, and
    nothing is said of others. Accuracies and correlations are averaged, as benchmarks do. New heads
    of tasks with as many labels, adapters and LoRA begin with the same weights for a seed, which is
    taken for no shared chance. On how many tasks a variant is better is counted by each task's own
    test. Every variant has one setting, the same for all tasks. Times are of the machines that
    trained.
    """

    result_type: ClassVar[type[Result]] = VariantTasksResult
    version: ClassVar[int] = 2  # variants that learnt nothing on some task have no mean
    sources: ClassVar[tuple[str, ...]] = (STUDY,)
    over: ClassVar[str] = "all tasks"
    made_by: ClassVar[str] = "`bertology join variant-tasks ID ID ID` makes it."
    lacking: ClassVar[str] = f"it takes results of {STUDY} of one model on several tasks"

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """The table of all tasks, and means over those that were learnt."""
        found = by_task(results, self.level)
        means = found.means()
        return self.result(
            self.provenance(name, results[0], {t.name: t.result.identity for t in found.tasks}),
            {"rows": found.table(), "means": found.mean_table()},
            evidence={quantity_of(variant): one for variant, one in means.items()},
            reasons={quantity_of(variant): _UNLEARNT for variant in found.shared}
            if len(found.learnt) >= FEWEST
            else {ALL_OTHERS: _FEW},
            facts={
                "tasks": len(found.tasks),
                "counted": len(found.learnt),
                "epochs": results[0].facts["epochs"],
                **{f"constant_{t.name}": float(t.result.facts["constant"]) for t in found.tasks},
                **{f"{TITLED}{n}": title for n, title in found.titles.items()},
            },
        )
