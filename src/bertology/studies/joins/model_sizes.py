"""Model sizes: do larger models generalise better from inference to pairs that mislead?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.report.figures import Dots
from bertology.report.figures.over_runs import size_lines
from bertology.results.answers import NOTHING_SURE, listed, points
from bertology.results.drawing import Drawing
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.trends import FEWEST, among_others, slope_weights
from bertology.studies.designs.tables import bounded
from bertology.studies.join import Join
from bertology.studies.training.heuristics.data import ENTAILED, NOT
from bertology.studies.training.heuristics.scores import CHANCE, VANILLA, HeuristicRuns

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_SCORES = {"score": (ENTAILED, NOT), "entailed": (ENTAILED,), "not_entailed": (NOT,)}
_SHARES = dict.fromkeys(("task", *_SCORES), "%")
# They have no bearing on plain fine-tuning, or are asked for anew.
_FREE = ("methods", "taught", "level")
NOT_LEARNT = "not judged: fewer than two models, of different sizes, surely learnt the task"
TOO_FEW = (
    f"not judged: fewer than {FEWEST} models surely learnt the task, and any two lie on a line"
)


class ModelSizesResult(Result):
    """Table `models`: one row for each model, the smallest first, after plain fine-tuning.

    `task` is the score on the task that was learnt, `score` that on pairs that mislead, in which
    both labels weigh the same (chance is 50 %); `entailed` and `not_entailed` are its two halves,
    `use` how far heuristics are used, and `gain` how much the score is above that of the next
    smaller model (bounds hold for all gains together). Table `trends`: what each doubling of the
    number of parameters adds, of these models as they are (`per_doubling`), and with bounds that
    take them as draws from other models around a line (`among_models`).
    """

    lead: ClassVar[int] = 4
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "models": {**_SHARES, "use": "points", "gain": "points"},
        "trends": {"per_doubling": "points", "among_models": "points"},
    }

    @property
    def answer(self) -> str:
        """Whether larger models score more, of these and among others."""
        found = self.evidence()
        if "score_per_doubling" not in found:
            why = self.reasons().get("score_per_doubling", "nothing was measured")
            return f"{NOTHING_SURE}: {why.removeprefix('not judged: ')}."
        one = found["score_per_doubling"]
        surely = (
            "the larger ones surely score more" if one.low > 0
            else "the larger ones surely score less" if one.high < 0
            else "the larger ones do not surely score more"
        )  # fmt: skip
        told = (
            f"Of these {self.facts['counted']} models {surely} on pairs that mislead: "
            f"{points(one)} for each doubling of parameters"
        )
        if "score_per_doubling_among_models" in found:
            wide = found["score_per_doubling_among_models"]
            sure = "also surely" if wide.low > 0 else "not surely"
            told += f"; {sure} so among other models, {points(wide)}"
        rows = self.tables["models"]
        if worse := [str(name) for name in rows["model"][rows["gain_high"] < 0]]:
            told += f"; surely worse than the next smaller: {listed(worse)}"
        return f"{told} (over {self.facts['seeds']} seeds)."

    def headline(self) -> str:
        """What was learnt, and by how many."""
        facts, rows = self.facts, self.tables["models"]
        aside = [str(name) for name in rows["model"][rows["learnt"] == 0]]
        left = f"; left out, as the task was not surely learnt: {listed(aside)}" if aside else ""
        return (
            f"{len(rows)} models of {_size(rows['parameters'].min())} to "
            f"{_size(rows['parameters'].max())} parameters; {facts['task']}: "
            f"{facts['train_size']} examples to learn from, {facts['epochs']} epochs{left}"
        )

    def drawings(self) -> Sequence[Drawing]:
        """Scores over sizes."""
        return [
            Drawing(
                "sizes",
                self._draw,
                "To the right: the number of parameters of each model, on a logarithmic scale. "
                "Upwards, after plain fine-tuning: the score on the task that was learnt, the "
                "score on pairs that mislead, and right answers on those that are not entailed. "
                "Labels weigh the same, so that any constant answer is at the dashed line of the "
                "first two. Intervals are over seeds, and examples or subcases, of this model; the "
                "line is that of least squares, and ends where it would leave 0 to 100 %. "
                "Grey: the task was not surely learnt.",
            )
        ]

    def _draw(self) -> Figure:
        rows = self.tables["models"]
        chance = 100 * CHANCE
        panels = [
            Dots.of_columns("task (%)", rows, "task", level=chance),
            Dots.of_columns("misleading pairs (%)", rows, "score", level=chance),
            Dots.of_columns("not entailed (%)", rows, "not_entailed"),
        ]
        names = [
            f"{name}, {_size(n)}" for name, n in zip(rows["model"], rows["parameters"], strict=True)
        ]
        return size_lines(
            rows["parameters"],
            names,
            panels,
            aside=rows["learnt"] == 0,
            title=f"Model sizes\nplain fine-tuning, on {self.provenance.corpus_name}",
            note="Dashed: chance, 50 %. Hollow: no interval. Models may differ in more than size.",
        )


@dataclass(frozen=True)
class ModelSizes(Join):
    """Do larger models generalise better from inference to pairs that mislead?

    Combines results of `heuristics` of several models, on the same pairs, after learning from the
    same data with the same settings. Only plain fine-tuning is compared; which other methods were
    run does not matter.

    Method: the score on pairs that mislead, in which each heuristic, label and subcase weighs the
    same, is put on a straight line over the logarithm of the number of all parameters; its slope is
    what a doubling adds. Accuracy on pairs that are not entailed and the score on the task are told
    beside it: the first alone would praise a model that calls everything not entailed. Pairs are
    the same for all models, and seeds are paired, so each seed and each pair gives a slope, and
    intervals are over these: seeds, and examples or subcases where these differ more. They are of
    these very models (`per_doubling`). A second interval (`among_models`) takes them as draws from
    other models that lie around a line, by how far they lie from it (Student's, two degrees of
    freedom less than models), and is put together with the first. Models that did not surely learn
    the task are shown, and left out of the lines.

    Source: BERTology Nuggets, "... but larger models generalize better!"; Bhargava, Drozd and
    Rogers (2021). Limits: models differ in more than their size where they had other text, more
    steps or another vocabulary, or are deeper; no interval knows of that. The first interval says
    nothing of other models; the second is wide with fewer than five. A line does not say whether
    every larger model is better: see `gain`.
    """

    version: ClassVar[int] = 2  # bounds follow Student's law where many values make a mean
    result_type: ClassVar[type[Result]] = ModelSizesResult
    sources: ClassVar[tuple[str, ...]] = ("heuristics",)
    made_by: ClassVar[str] = "`bertology join model-sizes ID ID ID` makes it."
    lacking: ClassVar[str] = "it takes results of heuristics of several models"

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """Every model, and lines through those that learnt the task."""
        check_alike(results)
        ordered = sorted(results, key=_parameters)
        runs = [HeuristicRuns.of_kept(result.arrays, self.level) for result in ordered]
        learnt = [at for at, one in enumerate(runs) if one.learnt(VANILLA)]
        found = dict[str, Estimate]()
        if len({_parameters(ordered[at]) for at in learnt}) > 1:
            sizes = np.log2([_parameters(ordered[at]) for at in learnt])
            found = _trends(sizes, [runs[at] for at in learnt])
        reasons = {q: NOT_LEARNT for q in _quantities() if q not in found}
        if found and len(learnt) < FEWEST:
            wide = [q for q in found if q.endswith(_AMONG)]
            reasons |= dict.fromkeys(wide, TOO_FEW)
            found = {q: e for q, e in found.items() if q not in wide}
        first, main = ordered[0].facts, ordered[-1]
        return self.result(
            self.provenance(name, main, _identities(ordered)),
            {"models": _models(ordered, runs, learnt), "trends": _as_table(found)},
            evidence=found,
            reasons=reasons,
            facts={
                **{n: first[n] for n in ("task", "train_size", "epochs", "seeds", "examples")},
                "counted": len(learnt),
            },
        )


# What can be compared -----------------------------------------------------------------------------


def check_alike(results: Sequence[Result]) -> None:
    """Models must be all that differs."""
    again = "Run heuristics for each model with the same --corpus, --limit, --nli and settings."
    if len(results) < 2:
        raise DataError(
            "Sizes are compared of two models or more. Got one result.",
            hint="bertology list --study heuristics shows which there are.",
        )
    for result in results:
        if "said" not in result.arrays:
            raise DataError(
                f"The result {result.identity[:8]} of {_name(result)} was made before answers were "
                "kept, by which models are compared.",
                hint="Run it again with the same command: trained models are kept in the store.",
            )
        _parameters(result)
    about = [r.provenance for r in results]
    if len({p.model["fingerprint"] for p in about}) < len(results):
        raise DataError(
            f"Two of the results are of the same model: {listed(_name(r) for r in results)}.",
            hint="Give one result for each model.",
        )
    for what, key in (
        ("pairs", [(p.corpus or {}).get("fingerprint") for p in about]),
        ("training data", [sorted(p.ingredients.items()) for p in about]),
        ("versions of the study", [p.study_version for p in about]),
    ):
        if any(one != key[0] for one in key):
            told = listed(f"{_name(r)} ({r.provenance.corpus_name}, {r.facts['examples']} pairs; "
                          f"{r.facts['task']}, {r.facts['train_size']} examples)"
                          for r in results)  # fmt: skip
            raise DataError(f"The models had different {what}: {told}.", hint=again)
    given = [{k: v for k, v in p.parameters.items() if k not in _FREE} for p in about]
    odd = [k for k in given[0] if any(one.get(k) != given[0][k] for one in given)]
    if odd:
        told = "; ".join(f"{k} = {listed(one.get(k) for one in given)}" for k in odd)
        raise DataError(f"The models were fine-tuned with different settings: {told}.", hint=again)


def _parameters(result: Result) -> int:
    known = result.provenance.model.get("parameters")
    if not isinstance(known, int) or known < 1:
        raise DataError(
            f"The result {result.identity[:8]} does not say how many parameters {_name(result)} "
            "has.",
            hint="Run it again.",
        )
    return known


def _name(result: Result) -> str:
    return result.provenance.model_name


def _identities(results: Sequence[Result]) -> dict[str, str]:
    """By fingerprint: two models in folders of the same name are two."""
    return {str(r.provenance.model["fingerprint"]): r.identity for r in results}


def _size(parameters: float) -> str:
    """`8.6 M`."""
    return f"{parameters / 1e6:.1f} M"


# Lines --------------------------------------------------------------------------------------------

_AMONG = "_among_models"


def _quantities() -> list[str]:
    return [f"{q}_per_doubling{end}" for q in ("task", *_SCORES) for end in ("", _AMONG)]


def _trends(sizes: Floats, runs: Sequence[HeuristicRuns]) -> dict[str, Estimate]:
    """Slopes of all scores over sizes, of these models and among others."""
    first, found = runs[0], dict[str, Estimate]()
    weighed: dict[str, tuple[list[Floats], Callable[[Floats, Floats], Estimate], list[float]]] = {
        "task": (
            [one.task_right(VANILLA) for one in runs],
            first.task_lead,
            [one.task_score(VANILLA).value for one in runs],
        )
    }
    right = [one.right(VANILLA) for one in runs]
    for name, labels in _SCORES.items():
        weights = first.weights(labels=labels)

        def lead(one: Floats, other: Floats, weights: Floats = weights) -> Estimate:
            return first.lead(one, other, weights)

        weighed[name] = right, lead, [float((each @ weights).mean()) for each in right]
    for name, (answers, lead_of, values) in weighed.items():
        fixed = _slope(slope_weights(sizes), answers, lead_of)
        found[f"{name}_per_doubling"] = fixed
        found[f"{name}_per_doubling{_AMONG}"] = among_others(sizes, values, fixed, "models")
    return found


def _slope(
    weights: Floats, answers: Sequence[Floats], lead: Callable[[Floats, Floats], Estimate]
) -> Estimate:
    """A slope as the difference of two mixed models: those with weights above 0, and below.

    Weights add up to 0, so both mixtures can be made to add up to 1; their scores are shares.
    """
    much = float(weights[weights > 0].sum())
    mixed = [
        np.sum([w / much * a for w, a in zip(side, answers, strict=True)], axis=0)
        for side in (np.maximum(weights, 0), np.maximum(-weights, 0))
    ]
    found = lead(*mixed)
    return replace(found, value=much * found.value, low=much * found.low, high=much * found.high)


# Tables -------------------------------------------------------------------------------------------


def _models(
    results: Sequence[Result], runs: Sequence[HeuristicRuns], learnt: Sequence[int]
) -> pd.DataFrame:
    import pandas as pd

    rows = []
    whole, no = runs[0].weights(), runs[0].weights(labels=(NOT,))
    for at, (result, one) in enumerate(zip(results, runs, strict=True)):
        below = [other for other in learnt if other < at] if at in learnt else []
        gain = (
            one.lead(one.right(VANILLA), runs[below[-1]].right(VANILLA), whole, len(learnt) - 1)
            if below
            else None
        )
        shape = result.provenance.model.get("shape") or {}
        row: dict[str, object] = {
            "model": _name(result),
            "parameters": _parameters(result),
            "layers": int(shape.get("layers", 0)),
            "hidden": int(shape.get("hidden", 0)),
            "learnt": int(at in learnt),
            **bounded("task", one.task_score(VANILLA)),
        }
        for name, labels in _SCORES.items():
            row |= bounded(name, one.score(VANILLA, one.weights(labels=labels)))
        rows.append(row | bounded("use", one.use(VANILLA, no)) | bounded("gain", gain))
    return pd.DataFrame(rows)


def _as_table(found: Mapping[str, Estimate]) -> pd.DataFrame:
    import pandas as pd

    rows = [
        {
            "quantity": name.replace("_", " "),
            **bounded("per_doubling", found[f"{name}_per_doubling"]),
            **bounded("among_models", found.get(f"{name}_per_doubling{_AMONG}")),
        }
        for name in ("task", *_SCORES)
        if f"{name}_per_doubling" in found
    ]
    columns = [*bounded("per_doubling", None), *bounded("among_models", None)]
    return pd.DataFrame(rows, columns=["quantity", *columns])
