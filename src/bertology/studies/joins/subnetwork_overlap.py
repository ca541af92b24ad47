"""Subnetwork overlap: do seeds and tasks keep the same weights, heads and MLPs?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.errors import ParameterError
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, plain
from bertology.results.drawing import Drawing
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.survivors import jackknifed, overlap
from bertology.studies.join import Join

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SubnetworkOverlap", "SubnetworkOverlapResult"]

KINDS = {"heads": "head", "mlps": "mlp", "weights": "weight"}
_TITLES = {"heads": "heads", "mlps": "MLPs", "weights": "weights"}
_WHY_NOT = "not judged: it takes two tasks that are learnt with every seed, and three seeds"
Kappas = NDArray[np.float64]


class SubnetworkOverlapResult(Result):
    """Table `pairs`: how far good subnetworks of two tasks, or of one with two seeds, are the same.

    `kappa` is Cohen's κ, 0 by chance and 1 if the same elements stay, the mean over every two
    seeds, with an interval over seeds; `jaccard` is the share of what stays in either that stays in
    both, `chance` what that would be for random subnetworks of these sizes.
    """

    lead: ClassVar[int] = 12

    @property
    def answer(self) -> str:
        """How far tasks agree, by kind."""
        found = self.evidence()
        told = [
            f"{_TITLES[kind]} κ = {plain(found[f'{one}_kappa_across'])}"
            for kind, one in KINDS.items()
            if f"{one}_kappa_across" in found
        ]
        if not told:
            return f"{NOTHING_SURE}: no two tasks could be compared."
        return f"Good subnetworks of two tasks agree beyond chance by: {', '.join(told)}."

    def drawings(self) -> Sequence[Drawing]:
        """Pairs of tasks, a panel for each kind."""
        caption = (
            "How far good subnetworks are the same, beyond chance (Cohen's κ): 0 as by chance, 1 "
            "if the same elements stay. Rows of one task compare its seeds, the others two tasks. "
            "Dots are means over every two seeds, with intervals over seeds. Where tasks agree "
            "as much as seeds of one task, which elements stay is not of the task."
        )
        return [Drawing("overlap", partial(self._dots), caption)]

    def _dots(self) -> Figure:
        table = self.table()
        names = list(dict.fromkeys(zip(table["first"], table["second"], strict=True)))
        panels = []
        for kind, of in table.groupby("kind", sort=False):
            own = of.set_index(["first", "second"]).reindex(names)
            sides = (own[c].to_numpy(float) for c in ("kappa", "low", "high"))
            panels.append(Dots(f"κ of {_TITLES[str(kind)]}", *sides, level=0.0))
        rows = [one if one == other else f"{one} and {other}" for one, other in names]
        level = 100 * float(self.facts["level"])
        return interval_dots(
            panels,
            rows,
            title=f"Do the same elements stay?\n{self.about}",
            note=f"One task: its seeds. {level:.0f} % intervals over seeds (hollow: none). "
            "Dashed: chance.",
        )


@dataclass(frozen=True)
class SubnetworkOverlap(Join):
    """Do good subnetworks of several seeds and tasks keep the same weights, heads and MLPs?

    Method: `subnetworks` stores what pruning left with each seed of each task. Every two masks are
    compared by Cohen's κ, which is 0 where they agree as two random ones of their sizes: those of
    one task with two seeds (how stable they are), and those of two tasks. Weights are those of the
    encoder without pooler and classifier. Claims rest on the mean over all pairs of tasks; its
    interval leaves out one seed at a time, of all tasks together (jackknife, Student's quantiles).

    Source: When BERT Plays the Lottery, All Tickets Are Winning (EMNLP 2020), section 4; BERTology
    Nuggets, "not stable across related tasks". Limits: intervals are over seeds, not over tasks;
    which tasks are related is for the reader to say. All tasks start from the same pre-trained
    weights, so that weights that are small there go in all of them.
    """

    result_type: ClassVar[type[Result]] = SubnetworkOverlapResult
    sources: ClassVar[tuple[str, ...]] = ("subnetworks",)
    over: ClassVar[str] = "all tasks"
    lacking: ClassVar[str] = "it takes subnetworks of two tasks or more"

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """Every two tasks, and every task with itself."""
        import pandas as pd

        by_task = _by_task(results, name)
        rows, evidence = [], dict[str, Estimate | None]()
        for kind, one in KINDS.items():
            masks = {t: _bits(r, kind) for t, r in by_task.items() if kind in r.arrays}
            found = dict[tuple[str, str], Kappas]()
            for first, second in combinations_with_replacement(masks, 2):
                pair = first, second
                size = masks[first][1]
                compared = [[overlap(a, b, size) for b in masks[second][0]]
                            for a in masks[first][0]]  # fmt: skip
                found[pair] = np.array([[o.kappa for o in row] for row in compared])
                rest = {
                    column: _mean(
                        np.array([[getattr(o, column) for o in row] for row in compared]), pair
                    )
                    for column in ("jaccard", "chance")
                }
                own = self._over_seeds([(found[pair], first == second)])
                bounds = {"kappa": own.value, "low": own.low, "high": own.high, "seeds": own.n}
                rows.append({"kind": kind, "first": first, "second": second, **bounds, **rest})
            within = [(found[t, t], True) for t in masks]
            across = [(found[pair], False) for pair in combinations(masks, 2)]
            if _learnt(by_task.values()):
                evidence[f"{one}_kappa_within"] = self._over_seeds(within)
                evidence[f"{one}_kappa_across"] = self._over_seeds(across)
        columns = ["kind", "first", "second", "kappa", "low", "high", "seeds", "jaccard", "chance"]
        known = {n: e for n, e in evidence.items() if e is not None and not math.isnan(e.value)}
        return self.result(
            self.provenance(name, results[0], {t: r.identity for t, r in by_task.items()}),
            {"pairs": pd.DataFrame(rows, columns=columns)},
            evidence=known,
            reasons={"": _WHY_NOT},
            facts={"tasks": len(by_task)},
        )

    def _over_seeds(self, pairs: Sequence[tuple[Kappas, bool]]) -> Estimate:
        """The mean of all pairs; a seed is left out of all tasks together."""
        seeds = min((min(k.shape) for k, _ in pairs), default=0)
        nothing = Estimate(math.nan, math.nan, math.nan, seeds, self.level, unit="seeds")
        if not pairs:
            return nothing
        value = float(np.mean([_off(k, same) for k, same in pairs]))
        if seeds < 3 or not math.isfinite(value):
            return Estimate(value, math.nan, math.nan, seeds, self.level, unit="seeds")
        left = [
            np.mean([_off(np.delete(np.delete(k, s, 0), s, 1), same) for k, same in pairs])
            for s in range(seeds)
        ]
        return jackknifed(value, np.array(left), self.level)


def _by_task(results: Sequence[Result], name: str) -> dict[str, Result]:
    found = {str(r.facts["task"]): r for r in results}
    models = {r.provenance.model["fingerprint"] for r in results if r.provenance.model}
    if len(found) < len(results) or len(models) > 1:
        raise ParameterError("results", name, "be of one model, one for each task", len(results))
    return found


def _bits(result: Result, kind: str) -> tuple[list[NDArray[np.uint8]], int]:
    """The packed mask of each seed, and how many elements it is of."""
    array = result.arrays[kind].to_numpy()
    if kind == "weights":
        return [row.astype(np.uint8) for row in array], int(result.facts["weights_size"])
    flat = array.reshape(len(array), -1).astype(bool)
    return [np.packbits(row) for row in flat], flat.shape[1]


def _off(between: Kappas, same: bool) -> float:
    """The mean, without the comparisons of a mask with itself."""
    if not same:
        return float(between.mean())
    above = np.triu_indices(len(between), 1)
    return float(between[above].mean()) if len(above[0]) else math.nan


def _mean(values: Kappas, pair: tuple[str, str]) -> float:
    return _off(values, pair[0] == pair[1])


def _learnt(results: Iterable[Result]) -> bool:
    return all((r.table("sizes")["learnt"] == 1).all() for r in results)
