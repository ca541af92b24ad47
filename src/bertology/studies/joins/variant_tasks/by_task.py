"""Results of ways to fine-tune on several tasks, side by side: what can be compared, and means."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bertology.errors import DataError
from bertology.metrics import find_metric
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.fixed_means import OfRuns, mean_over_fixed
from bertology.studies.joins.shared.alike_tasks import refuse_unlike, settings_but
from bertology.studies.training.finetuning_variants.choice import PLAIN, TITLES

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
        return {name: [task.over_plain(name) for task in self.learnt] for name in self.shared}

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
                    "over_plain": mean.value,
                    "over_plain_low": mean.low,
                    "over_plain_high": mean.high,
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
