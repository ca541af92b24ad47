"""Super-survivors: which heads and MLPs survive with most seeds and tasks, and what are they?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.data.map_labels import MAP_TYPES
from bertology.errors import DataError, ParameterError
from bertology.parameters import parameter
from bertology.results.answers import points
from bertology.results.result import Result
from bertology.stats import Estimate, holm
from bertology.stats.recurrence import (
    FEWEST,
    rank_association_within,
    recurs,
    runs_needed,
    share_difference_within,
    surely_often,
)
from bertology.studies.join import ResampledJoin
from bertology.studies.joins.super_survivors.results import SuperSurvivorsResult

if TYPE_CHECKING:
    import pandas as pd


MEASURED_ON = ("the pre-trained model", "a fine-tuned model", "another model")
# What is taken of each study: its column, and the name that it has here.
FEATURES: Mapping[str, Mapping[str, str]] = {
    "map-types": {name: name for name in MAP_TYPES},
    "head-taxonomy": {"clark": "clark_class"},
    "syntax-heads": {"relation": "best_relation", "gain": "relation_gain"},
    "relation-heads": {"excess": "relation_excess"},
    "head-ablation": {"difference": "effect", "loss_balance": "share_worse"},
}


def head_features(heads: pd.DataFrame, results: Sequence[Result]) -> pd.DataFrame:
    """One row per head of `heads` with what the results say; several of one study are averaged.

    Of words, such as the relation a head follows best, the first result's are taken. `linguistic`:
    it surely follows a relation (`syntax-heads`), or surely is a relation head above the paper's
    percentile (`relation-heads`), in any of the results.
    """
    places = heads.set_index(["layer", "head"]).index
    found = heads.copy()
    for study, columns in FEATURES.items():
        tables = [_ordered(r, places) for r in results if _tells(r, study)]
        for column, name in columns.items():
            known = [table[column] for table in tables if column in table]
            if known and known[0].dtype.kind in "fiu":
                found[name] = np.mean([one.to_numpy(float) for one in known], axis=0)
            elif known:
                found[name] = known[0].to_numpy()
    if set(MAP_TYPES) <= set(found):
        shares = found[list(MAP_TYPES)].to_numpy()
        found["map_type"] = np.array(MAP_TYPES)[shares.argmax(1)]
    sure = [s for r in results if (s := _linguistic(r, places)) is not None]
    if sure:
        found["linguistic"] = np.any(sure, axis=0)
    return found


def measured_on(result: Result, pruned: str) -> str:
    """On which model, beside the one with the fingerprint `pruned` that was fine-tuned."""
    model = result.provenance.model
    same, tuned = model["fingerprint"] == pruned, bool(model.get("tuned_from"))
    return MEASURED_ON[0 if same else 1 if tuned else 2]


def _tells(result: Result, study: str) -> bool:
    """Whether it is of the study; where the model knows nothing, no head has an effect."""
    return result.provenance.study == study and bool(result.facts.get("informed", True))


def _ordered(result: Result, places: pd.Index) -> pd.DataFrame:
    study = result.provenance.study
    if "heads" not in result.tables:
        raise DataError(
            f"The result {result.identity} of {study!r} has no table of heads.",
            hint="Run the study again with its heads.",
        )
    table = result.tables["heads"].set_index(["layer", "head"])
    if len(table) != len(places) or not table.index.isin(places).all():
        raise DataError(
            f"The result {result.identity} of {study!r} is of other heads than the rest.",
            hint="Join results of models that have the same layers and heads.",
        )
    return table.loc[places]


def _linguistic(result: Result, places: pd.Index) -> np.ndarray | None:
    """Heads that surely follow a relation, all corrections made; None of other studies."""
    study = result.provenance.study
    if study not in ("syntax-heads", "relation-heads"):
        return None
    table = _ordered(result, places)
    if study == "relation-heads":
        return (table["above_percentile"] & table["sure"]).to_numpy(bool)
    tests, gains = table[["gain_p", "selectivity_p"]], table[["gain", "selectivity"]]
    half = (1 - float(result.facts.get("level", 0.95))) / 2  # both questions together
    return ((tests.max(axis=1) < half) & (gains.min(axis=1) > 0)).to_numpy(bool)


# Which heads and MLPs are left in runs of several tasks and seeds.
#
# Runs keep their own size: chance is a random order within each run, so sizes need not be equal,
# and a run that was pruned far tells more than one of which little went.


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


PRUNING = "importance-pruning"
NOTICED = 0.05
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

    version: ClassVar[int] = 2  # five points count, and surely more is never no more
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
            elif slightly := slightly_more(one):
                reasons[quantity] = slightly
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


def slightly_more(excess: Estimate) -> str:
    """Why "no more" is not judged: surely more, but not by what counts; empty where it is."""
    if not 0 < excess.low <= excess.high < NOTICED:
        return ""
    return (
        f"not judged: super-survivors surely have more of them ({points(excess)}), but by less "
        f"than the {100 * NOTICED:g} points that would contradict the statement"
    )


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
