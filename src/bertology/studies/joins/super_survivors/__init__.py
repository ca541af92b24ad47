"""Super-survivors: which heads and MLPs survive with most seeds and tasks, and what are they?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.data.map_labels import MAP_TYPES
from bertology.errors import ParameterError
from bertology.parameters import parameter
from bertology.results.result import Result
from bertology.stats import Estimate, holm
from bertology.stats.recurrence import recurs, runs_needed, surely_often
from bertology.stats.within_groups import (
    FEWEST,
    rank_association_within,
    share_difference_within,
)
from bertology.studies.join import ResampledJoin
from bertology.studies.joins.super_survivors.head_features import (
    FEATURES,
    head_features,
    measured_on,
)
from bertology.studies.joins.super_survivors.results import SuperSurvivorsResult
from bertology.studies.joins.super_survivors.surviving_runs import SurvivingRuns, surviving_runs

if TYPE_CHECKING:
    import pandas as pd

PRUNING = "importance-pruning"
NOTICED = 0.2
"""A difference of shares that counts; the claims have the same border."""
_HETEROGENEOUS = MAP_TYPES[-1]
# What is compared: the column of heads, and the quantity that a claim is judged on.
_COMPARED = {**dict.fromkeys(MAP_TYPES, ""), "linguistic": "linguistic_excess"}
_COMPARED[_HETEROGENEOUS] = "heterogeneous_excess"
_ASSOCIATED = (_HETEROGENEOUS, MAP_TYPES[0], "relation_gain", "effect", "share_worse")
_LACKING = {
    "heterogeneous_excess": "no result of map-types is among those combined",
    "linguistic_excess": "no result of syntax-heads or relation-heads is among those combined",
}
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SuperSurvivors(ResampledJoin):
    """Which heads and MLPs survive with most seeds and in most tasks, and what are they?

    Method: `importance-pruning` stores which heads and MLPs are left after each step, with every
    seed of every task. Of each run that learnt its task the good subnetwork is taken, what is left
    after the last step that it kept. A super-survivor survives in surely more runs than chance
    gives and with most seeds in more than half of the tasks. Chance is a random order of the heads
    in each run (and of the MLPs), which keeps its own size: a run that was pruned far tells more.
    P-values are corrected for all heads and MLPs by the largest value of each order. Beside `p`
    there is `p_in_layer`, where only the order of heads within layers is chance, and `p_tasks`,
    where the seeds of a task are one: few tasks rarely make a single head sure.

    Then what other studies say of super-survivors is compared with the other heads of the same
    layers: shares of map types, and whether they surely follow a relation (`syntax-heads`,
    `relation-heads`). Heads are what is counted: intervals are Welch's over heads, within layers.
    In how many runs a head survives is ranked against heterogeneous and vertical shares, gains on
    relations and effects of disabling the head, within layers (Spearman; random orders, Holm's
    correction). Claims are judged only where tasks surely agree on heads of the same layer: else
    survivors are chance, or tell no more than their layer.

    Source: Prasanna, Rogers and Rumshisky (2020), When BERT Plays the Lottery, section 6; BERTology
    Nuggets, "Heads surviving importance-based pruning are NOT necessarily linguistically
    informative". Limits: what is pruned is the model fine-tuned with each seed, while map types,
    relations and effects may be of the pre-trained model or of one fine-tuned copy: `sources` says
    which. Tasks are few and start from the same weights. Types of single heads are not corrected
    for the mistakes of the network that names them.
    """

    result_type: ClassVar[type[Result]] = SuperSurvivorsResult
    sources: ClassVar[tuple[str, ...]] = (PRUNING, *FEATURES)
    over: ClassVar[str] = "all tasks"
    lacking: ClassVar[str] = "it takes importance-pruning of two tasks or more"

    steps: int = parameter(
        0,
        "Look at what is left after so many steps, and leave out runs that kept fewer; 0: after "
        "the last step that each run kept.",
        minimum=0,
    )

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """Survival over runs, and what survivors are."""
        pruned = [r for r in results if r.provenance.study == PRUNING]
        if not pruned:
            raise ParameterError("results", name, f"hold one of {PRUNING} at least", 0)
        runs = surviving_runs(pruned, name, self.steps)
        heads, mlps, limit = self._survival(runs)
        heads = head_features(heads, results)
        shared = self._shared(runs)
        compared = self._compared(heads)
        evidence, reasons = self._judged(runs, heads, shared, limit)
        return self.result(
            self.provenance(name, pruned[0], _identities(results)),
            {
                "heads": heads,
                "mlps": mlps,
                "compared": compared,
                "associations": self._associations(heads),
                "runs": runs.table,
                "sources": _sources(results, pruned[0]),
            },
            evidence=evidence,
            reasons=reasons,
            facts={
                "tasks": len(runs.names),
                "runs": len(runs.tasks),
                "heads_left": float(runs.heads.mean()),
                "mlps_left": float(runs.mlps.mean()),
                "shared_p": shared,
            },
        )

    def _survival(self, runs: SurvivingRuns) -> tuple[pd.DataFrame, pd.DataFrame, float]:
        """Tables of heads and MLPs, and how far above chance is sure, in standard deviations."""
        import pandas as pd

        layers, each = runs.heads.shape[1:]
        often = partial(surely_often, level=self.level, resamples=self.resamples, seed=self.seed)
        tasks = [runs.by_task(left) for left in (runs.heads, runs.mlps)]
        (heads_p, mlps_p), limit = often([_flat(left) for left in (runs.heads, runs.mlps)])
        (heads_by_task, mlps_by_task), _ = often([_flat(left) for left in tasks])
        (in_layer,), _ = often([runs.heads.astype(float)])
        places = np.indices((layers, each)).reshape(2, -1)
        found = []
        for place, left, by_task, more in (
            (
                {"layer": places[0], "head": places[1]},
                runs.heads,
                tasks[0],
                {
                    "p": heads_p.ravel(),
                    "p_in_layer": in_layer.ravel(),
                    "p_tasks": heads_by_task.ravel(),
                },
            ),
            (
                {"layer": np.arange(layers)},
                runs.mlps,
                tasks[1],
                {"p": mlps_p.ravel(), "p_tasks": mlps_by_task.ravel()},
            ),
        ):
            most = (by_task.reshape(len(by_task), -1) > 0.5).sum(0)
            survival = left.reshape(len(left), -1).mean(0)
            sure = (more["p"] < 1 - self.level) & (most > len(by_task) / 2)
            columns = {**place, "super_survivor": sure, "survival": survival, "tasks": most}
            found.append(pd.DataFrame({**columns, **more}))
        return found[0], found[1], limit

    def _shared(self, runs: SurvivingRuns) -> float:
        """The p-value of tasks agreeing on heads of the same layer; 1 of a single task."""
        by_task = runs.by_task(runs.heads)
        if len(by_task) < 2:
            return 1.0
        return recurs(by_task, resamples=self.resamples, seed=self.seed)

    def _difference(self, heads: pd.DataFrame, column: str) -> Estimate | None:
        values, who = heads[column].to_numpy(float), heads["super_survivor"].to_numpy(bool)
        return share_difference_within(values, who, heads["layer"].to_numpy(), self.level)

    def _compared(self, heads: pd.DataFrame) -> pd.DataFrame:
        """Super-survivors beside other heads, and the difference within layers."""
        import pandas as pd

        who, rows = heads["super_survivor"].to_numpy(bool), []
        for column in (c for c in _COMPARED if c in heads):
            values, found = heads[column].to_numpy(float), self._difference(heads, column)
            sides = [float(values[s].mean()) if s.any() else math.nan for s in (who, ~who)]
            ends = (math.nan,) * 3 if found is None else (found.value, found.low, found.high)
            rows.append((column, *sides, *ends, 0 if found is None else found.n))
        columns = ["what", "super_survivors", "others", "difference", "low", "high", "n"]
        return pd.DataFrame(rows, columns=columns)

    def _associations(self, heads: pd.DataFrame) -> pd.DataFrame:
        """In how many runs heads survive, against other numbers, within layers."""
        import pandas as pd

        rows = []
        for column in (c for c in _ASSOCIATED if c in heads):
            known = heads[np.isfinite(heads[column].to_numpy(float))]
            found = rank_association_within(
                known["survival"], known[column], known["layer"], level=self.level,
                resamples=self.resamples, seed=self.seed,
            )  # fmt: skip
            if found is not None:
                rho, p = found
                rows.append((column, rho.value, rho.low, rho.high, p, rho.n))
        table = pd.DataFrame(rows, columns=["what", "rho", "low", "high", "p", "n"])
        table.insert(5, "p_adjusted", holm(table["p"].to_numpy()) if len(table) else [])
        return table

    def _judged(
        self, runs: SurvivingRuns, heads: pd.DataFrame, shared: float, limit: float
    ) -> tuple[dict[str, Estimate], dict[str, str]]:
        """What claims are judged on, and why the rest is not."""
        found, reasons = dict[str, Estimate](), dict[str, str]()
        whole = self._why_not(runs, heads, shared)
        for column, quantity in ((c, q) for c, q in _COMPARED.items() if q):
            why = _LACKING[quantity] if column not in heads else whole
            one = None if why else self._difference(heads, column)
            if one is None:
                few = f"fewer than {FEWEST} super-survivors have other heads in their layer"
                reasons[quantity] = f"not judged: {why or few}"
            else:
                remedy = self._remedy(one, heads, column, runs, limit)
                found[quantity] = replace(one, lasting=1.0, remedy=remedy)
        return found, reasons

    def _why_not(self, runs: SurvivingRuns, heads: pd.DataFrame, shared: float) -> str:
        """Why nothing is judged; empty where something may be."""
        if len(runs.names) < 2:
            return "it takes two tasks that are learnt and can be pruned"
        if runs.heads.all() and runs.mlps.all():
            return "no run of any task could lose a step and keep its score"
        if not heads["super_survivor"].any():
            things = runs.heads[0].size + runs.mlps[0].size
            # The mean that tells how probable it is to survive in all runs by chance.
            share = float(np.exp(np.log(np.maximum(runs.heads.mean((1, 2)), 1e-9)).mean()))
            needed = runs_needed(share, things, self.level)
            more = (
                f"; with {100 * share:.0f} % of the heads left it takes about {needed} runs, and "
                f"there are {len(runs.tasks)}"
            )
            few = needed is not None and needed > len(runs.tasks)
            return f"no head surely survives in more runs than chance gives{more if few else ''}"
        if shared >= 1 - self.level:
            return "tasks do not surely agree on which heads of a layer survive"
        return ""

    def _remedy(
        self, found: Estimate, heads: pd.DataFrame, column: str, runs: SurvivingRuns, limit: float
    ) -> str:
        """How many runs would make as many heads sure as it takes, if they survive as often."""
        shares, there = runs.heads.mean((1, 2)), len(runs.tasks)
        most = heads["tasks"].to_numpy() > len(runs.names) / 2
        above = np.where(most, heads["survival"].to_numpy() - shares.mean(), 0.0)
        wanted = limit**2 * float((shares * (1 - shares)).mean()) / np.maximum(above, 1e-9) ** 2
        wanted = np.where(heads["super_survivor"], there, np.maximum(wanted, there + 1))
        for number in np.unique(np.ceil(wanted[(above > 0) & (wanted > there)])):
            more = self._difference(heads.assign(super_survivor=wanted <= number), column)
            if more is not None and (more.high - more.low) / 2 < abs(NOTICED - found.value):
                return f"about {number:.0f} runs would make enough super-survivors sure"
        return "the model has too few heads, however many tasks and seeds there are"


def _flat(left: NDArray[Any]) -> Floats:
    """(rows, 1, things): all heads, or MLPs, in one group."""
    return np.asarray(left, np.float64).reshape(len(left), 1, -1)


def _identities(results: Sequence[Result]) -> Mapping[str, object]:
    return {f"{r.provenance.study} {i}": r.identity for i, r in enumerate(results)}


def _sources(results: Sequence[Result], pruned: Result) -> pd.DataFrame:
    """Where each number is from; the model that is pruned is fine-tuned anew with every seed."""
    import pandas as pd

    base = str(pruned.provenance.model["fingerprint"])

    def rows() -> Iterator[tuple[object, ...]]:
        for r in results:
            own = r.provenance.study == PRUNING
            where = "the model fine-tuned with each seed" if own else measured_on(r, base)
            corpus = (r.provenance.corpus or {}).get("name")
            yield r.provenance.study, where, r.provenance.model_name, corpus, r.identity

    return pd.DataFrame(rows(), columns=["study", "measured_on", "model", "corpus", "identity"])
