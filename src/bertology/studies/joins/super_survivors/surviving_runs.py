"""Which heads and MLPs are left in runs of several tasks and seeds.

Runs keep their own size: chance is a random order within each run, so sizes need not be equal, and
a run that was pruned far tells more than one of which little went.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from bertology.results.result import Result

Truths = NDArray[np.bool_]
_ARRAYS = ("heads_left", "mlps_left", "kept_steps")


@dataclass(frozen=True)
class SurvivingRuns:
    """What is left in each run that learnt its task and could be pruned."""

    heads: Truths
    """(runs, layers, heads)."""
    mlps: Truths
    """(runs, layers)."""
    tasks: tuple[str, ...]
    """Of each run."""
    table: pd.DataFrame
    """Every run: task, seed, whether it learnt, steps that it kept, and whether it is used."""

    @property
    def names(self) -> list[str]:
        """The tasks, once each."""
        return list(dict.fromkeys(self.tasks))

    def by_task(self, left: Truths) -> NDArray[np.float64]:
        """(tasks, …) of (runs, …): the share of a task's runs in which each thing is left."""
        which = np.array(self.tasks)
        return np.stack([left[which == name].mean(0) for name in self.names])


def surviving_runs(results: Sequence[Result], name: str, steps: int = 0) -> SurvivingRuns:
    """Runs that learnt, after `steps` steps (those that kept fewer are left out); 0: its last one.

    `name` is the join that asks.
    """
    import pandas as pd

    by_task = {str(result.facts["task"]): result for result in results}
    models = {result.provenance.model["fingerprint"] for result in results}
    if len(by_task) < len(results) or len(models) > 1:
        must = "have results of importance-pruning of one model, one for each task"
        raise ParameterError("results", name, must, len(results))
    table = pd.concat([_runs(task, result) for task, result in by_task.items()], ignore_index=True)
    learnt = table["learnt"].to_numpy(bool)
    pruned = learnt & (table["steps"].to_numpy() >= max(steps, 1))
    # Where nothing could be pruned, all is left in all runs, and the result says so.
    table["used"] = pruned if steps or pruned.any() else learnt
    heads, mlps = [], []
    for task, result in by_task.items():
        own = table[table["task"] == task].reset_index(drop=True)
        used = np.flatnonzero(own["used"])
        if used.size:
            last = own["steps"].to_numpy()[used] if steps == 0 else np.full(used.size, steps)
            heads.append(result.arrays["heads_left"].to_numpy().astype(bool)[used, last])
            mlps.append(result.arrays["mlps_left"].to_numpy().astype(bool)[used, last])
    if not heads:
        why = f"kept {steps} steps" if steps else "has learnt its task"
        raise DataError(f"No run of {', '.join(by_task)} {why}.", hint=_HINT)
    if len({part.shape[1:] for part in heads}) > 1:
        raise ParameterError("results", name, "be of models of one shape", len(results))
    tasks = tuple(table["task"][table["used"]])
    return SurvivingRuns(np.concatenate(heads), np.concatenate(mlps), tasks, table)


_HINT = "Run importance-pruning with more training examples, or ask for fewer steps."


def _runs(task: str, result: Result) -> pd.DataFrame:
    """Its runs in the order of the arrays, which is that of seeds."""
    import pandas as pd

    if not set(_ARRAYS) <= set(result.arrays):
        raise DataError(
            f"The result {result.identity} of {result.provenance.study!r} does not say what is "
            "left after each step.",
            hint="It is of an older version: run the study again.",
        )
    if not all(result.arrays[name].to_numpy()[:, 0].all() for name in _ARRAYS[:2]):
        raise DataError(
            f"The result {result.identity} is of a model that lacks heads or MLPs from the start.",
            hint="Which heads survive is compared for whole models.",
        )
    runs = result.table("runs").sort_values("seed")
    return pd.DataFrame(
        {
            "task": task,
            "seed": runs["seed"].to_numpy(int),
            "learnt": runs["learnt"].to_numpy(int),
            "steps": result.arrays["kept_steps"].to_numpy().astype(int) - 1,  # first all is left
        }
    )
