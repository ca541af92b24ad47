"""Subnetwork overlap: do seeds and tasks keep the same weights, heads and MLPs?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.errors import ParameterError
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, plain, raised
from bertology.results.drawing import Drawing
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.survivors import bits_at_step, jackknifed, overlap
from bertology.studies.join import Join

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {"heads": "head", "mlps": "mlp", "weights": "weight"}
_TITLES = {"heads": "heads", "mlps": "MLPs", "weights": "weights"}
QUANTITIES = ("kappa_within", "kappa_across", "within_over_across")
_NOTHING_GONE = (
    "not judged: some seed of some task kept no step, so there is none at which all can be compared"
)
_WHY_NOT = "not judged: it takes two tasks that are learnt with every seed, and three seeds"
Kappas = NDArray[np.float64]
Packed = tuple[list[NDArray[np.uint8]], int]


class SubnetworkOverlapResult(Result):
    """Table `pairs`: how far good subnetworks of two tasks, or of one with two seeds, are the same.

    Masks are those of the deepest step that all seeds of all tasks kept. `kappa` is Cohen's κ, 0 by
    chance and 1 if the same elements stay, the mean over every two seeds, with an interval over
    seeds; `jaccard` is the share of what stays in either that stays in
    both, `chance` what that would be for random subnetworks of these sizes.
    """

    lead: ClassVar[int] = 12

    @property
    def answer(self) -> str:
        """How far tasks agree, by kind."""
        found = self.evidence()
        kappas = {
            _TITLES[kind]: found[f"{one}_kappa_across"]
            for kind, one in KINDS.items()
            if f"{one}_kappa_across" in found
        }
        if not kappas:
            return f"{NOTHING_SURE}: no two tasks could be compared."
        told = ", ".join(f"{title} κ = {plain(kappa)}" for title, kappa in kappas.items())
        sure = any(kappa.excludes(0) for kappa in kappas.values())
        what = f"good subnetworks of two tasks agree beyond chance by: {told}."
        return raised(what) if sure else f"{NOTHING_SURE}: {what}"

    def drawings(self) -> Sequence[Drawing]:
        """Pairs of tasks, a panel for each kind; nothing where no step is shared."""
        if self.table().empty:
            return []
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
            label = f"κ of {_TITLES[str(kind)]}"
            panels.append(Dots.of_columns(label, own, "kappa", scale=1.0, level=0.0))
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

    Method: `subnetworks` stores what each step of pruning left with each seed of each task. Masks
    are compared at the deepest step that all seeds of all tasks kept, where as much is left in all
    of them (column `step`; `left` is the share). Every two are compared by Cohen's κ, which is 0
    where they agree as two random ones of their sizes: those of one task with two seeds (how stable
    they are), and those of two tasks. Weights are those of the encoder without pooler and
    classifier. Claims rest on how much more seeds of one task agree than seeds of two tasks
    (`within_over_across`), the mean over all tasks less that over all pairs of tasks; its interval
    leaves out one seed at a time, of all tasks together (jackknife, Student's quantiles).

    Source: When BERT Plays the Lottery, All Tickets Are Winning (EMNLP 2020), section 4; BERTology
    Nuggets, "not stable across related tasks". Limits: intervals are over seeds, not over tasks;
    which tasks are related is for the reader to say. All tasks start from the same pre-trained
    weights, so that weights that are small there go in all of them.
    """

    version: ClassVar[int] = 2  # masks are compared at one step
    result_type: ClassVar[type[Result]] = SubnetworkOverlapResult
    sources: ClassVar[tuple[str, ...]] = ("subnetworks",)
    over: ClassVar[str] = "all tasks"
    lacking: ClassVar[str] = "it takes subnetworks of two tasks or more"

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """Every two tasks, and every task with itself."""
        import pandas as pd

        by_task = _by_task(results, name)
        rows, evidence = [], dict[str, Estimate]()
        reasons, steps = {"": _WHY_NOT}, dict[str, int]()
        for kind, one in KINDS.items():
            own = {task: r for task, r in by_task.items() if kind in r.arrays}
            if not own:
                continue
            at = steps[kind] = _compared_step(own.values(), kind)
            if not at:
                reasons |= {f"{one}_{quantity}": _NOTHING_GONE for quantity in QUANTITIES}
                continue
            masks = {task: _bits(r, kind, at) for task, r in own.items()}
            found = dict[tuple[str, str], Kappas]()
            for first, second in combinations_with_replacement(masks, 2):
                found[first, second], row = self._pair(masks, first, second)
                rows.append({"kind": kind, "first": first, "second": second, "step": at, **row})
            if not _learnt(by_task.values()):
                continue
            within = [(found[t, t], True) for t in masks]
            across = [(found[pair], False) for pair in combinations(masks, 2)]
            evidence[f"{one}_kappa_within"] = self._over_seeds(within)
            if across:
                evidence[f"{one}_kappa_across"] = self._over_seeds(across)
                evidence[f"{one}_within_over_across"] = self._over_seeds(within, across)
        columns = [
            "kind", "first", "second", "step", "left", "kappa", "low", "high", "seeds", "jaccard",
            "chance",
        ]  # fmt: skip
        return self.result(
            self.provenance(name, results[0], {t: r.identity for t, r in by_task.items()}),
            {"pairs": pd.DataFrame(rows, columns=columns)},
            evidence={n: e for n, e in evidence.items() if not math.isnan(e.value)},
            reasons=reasons,
            facts={"tasks": len(by_task)} | {f"compared_step_{k}": at for k, at in steps.items()},
        )

    def _pair(
        self, masks: Mapping[str, Packed], first: str, second: str
    ) -> tuple[Kappas, dict[str, float]]:
        """κ of every two seeds of two tasks, and their means."""
        (ones, size), (others, _) = masks[first], masks[second]
        compared = [[overlap(a, b, size) for b in others] for a in ones]
        same = first == second
        kappas = np.array([[o.kappa for o in row] for row in compared])
        jaccard, chance = (
            _off(np.array([[getattr(o, column) for o in row] for row in compared]), same)
            for column in ("jaccard", "chance")
        )
        mean = self._over_seeds([(kappas, same)])
        kept = [int(np.bitwise_count(bits).sum(dtype=np.int64)) for bits in (*ones, *others)]
        return kappas, {
            "left": float(np.mean(kept)) / size, "kappa": mean.value, "low": mean.low,
            "high": mean.high, "seeds": mean.n, "jaccard": jaccard, "chance": chance,
        }  # fmt: skip

    def _over_seeds(
        self,
        pairs: Sequence[tuple[Kappas, bool]],
        less: Sequence[tuple[Kappas, bool]] = (),
    ) -> Estimate:
        """The mean of all pairs, less that of others; a seed is left out of all tasks together."""
        every = [*pairs, *less]
        seeds = min(min(k.shape) for k, _ in every)

        def value(without: int | None = None) -> float:
            means = [
                float(np.mean([_off(_left_out(k, without), same) for k, same in group]))
                for group in (pairs, less)
                if group
            ]
            return means[0] - sum(means[1:])

        whole = value()
        if seeds < 3 or not math.isfinite(whole):
            return Estimate(whole, math.nan, math.nan, seeds, self.level, unit="seeds")
        return jackknifed(whole, np.array([value(seed) for seed in range(seeds)]), self.level)


def _by_task(results: Sequence[Result], name: str) -> dict[str, Result]:
    found = {str(r.facts["task"]): r for r in results}
    models = {r.provenance.model["fingerprint"] for r in results if r.provenance.model}
    if len(found) < len(results) or len(models) > 1:
        raise ParameterError("results", name, "be of one model, one for each task", len(results))
    return found


def _compared_step(results: Iterable[Result], kind: str) -> int:
    """The deepest step that all seeds of all tasks kept: as much is left everywhere."""
    pruning = "magnitude" if kind == "weights" else "importance"
    return min(int(r.arrays[f"{pruning}_kept_steps"].min()) for r in results) - 1


def _bits(result: Result, kind: str, step: int) -> Packed:
    """The packed mask of each seed at a step, and how many elements it is of."""
    array = result.arrays[kind].to_numpy()
    if kind == "weights":
        of_seeds = [bits_at_step(planes.astype(np.uint8), step) for planes in array]
        return of_seeds, int(result.facts["weights_size"])
    there = array[0, 0].astype(bool)  # a model that was cut before has fewer
    flat = array[:, step, there].astype(bool)
    return [np.packbits(row) for row in flat], flat.shape[1]


def _left_out(between: Kappas, seed: int | None) -> Kappas:
    return between if seed is None else np.delete(np.delete(between, seed, 0), seed, 1)


def _off(between: Kappas, same: bool) -> float:
    """The mean, without the comparisons of a mask with itself."""
    if not same:
        return float(between.mean())
    above = np.triu_indices(len(between), 1)
    return float(between[above].mean()) if len(above[0]) else math.nan


def _learnt(results: Iterable[Result]) -> bool:
    return all((r.table("sizes")["learnt"] == 1).all() for r in results)
