"""What a study of fragments concludes: tables, quantities for claims, and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.report.figures import Band, Dots, band_curve, interval_dots
from bertology.results.answers import NOTHING_SURE, percent, points
from bertology.results.drawing import Drawing
from bertology.results.result import Result
from bertology.studies.training.fragments.scores import (
    HYPOTHESIS,
    INOCULATED,
    TAUGHT,
    FragmentRuns,
    parted,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.stats import Estimate

MEAN = "all, mean"
NOT_LEARNT = (
    "not judged: the old task was not surely learnt, so there is nothing that could carry over or "
    "be lost"
)
NOT_TAUGHT = (
    "not judged: the fragments were not surely learnt beyond chance, no teaching and what "
    "hypotheses alone tell"
)
ZERO_SHOT_ONLY = "not judged: nothing was taught (all amounts are 0)"
ONE_LABEL = "not judged: no fragment has five examples of every label, so that chance is not known"
NO_STEPS = "not judged: the corpus does not say how many steps a pair takes, or all take as many"
_SCORES = dict.fromkeys(
    (
        "majority", "accuracy", "zero_shot", "hypothesis_only", "taught", "score", "old_score",
    ),
    "%",
)  # fmt: skip
_POINTS = dict.fromkeys(
    ("zero_shot_loss", "taught_gain", "old_loss", "old_loss_without", "per_step"), "points"
)


class FragmentsResult(Result):
    """What a model of inference makes of fragments, before and after it was taught them.

    Table `fragments`: for each fragment and their mean the scores before (zero-shot) and after the
    largest lesson, what the old task loses, and what one step more changes. `curve`: both tasks by
    number of examples taught. `steps`: the score by number of steps. `choices`: which mixture and
    epoch inoculation chose. Scores weigh all labels the same; `accuracy` and `majority` do not.
    """

    lead: ClassVar[int] = 6
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "fragments": {**_SCORES, **_POINTS},
        "curve": {**_SCORES, "old_loss": "points"},
        "steps": {**_SCORES},
        "choices": {"deciding_new": "%", "deciding_old": "%"},
    }

    @property
    def answer(self) -> str:
        """How far it falls short without teaching, and what teaching gains and costs."""
        found, facts = self.evidence(), self.facts
        if "zero_shot_loss" not in found:
            why = self.reasons().get("zero_shot_loss", "nothing was measured")
            return f"{NOTHING_SURE}: {why.removeprefix('not judged: ')}."
        before = found["zero_shot_loss"]
        told = (
            f"Without teaching it scores {percent(found['zero_shot_score'], limits=())} on "
            f"fragments, {points(before)} below its old task"
        )
        if "taught_gain" not in found:
            return f"{told} (over {facts['seeds']} seeds)."
        gain = found["taught_gain"]
        surely = "surely gains" if gain.low > 0 else "does not surely gain:"
        told += f"; teaching {facts['amount']} examples {surely} {points(gain)}"
        if "old_task_loss" in found:
            told += f", and the old task loses {points(found['old_task_loss'])}"
        return f"{told} (over {facts['seeds']} seeds)."

    def headline(self) -> str:
        """What was learnt, asked and taught."""
        facts = self.facts
        taught = f"at most {facts['amount']} examples taught" if facts["amount"] else "none taught"
        chance = f"chance is {100 / int(facts['classes']):.0f} %"
        return (
            f"{facts['fragments']} fragments ({facts['judged']} with all labels), "
            f"{facts['examples']} pairs; old task {facts['old_task']}, "
            f"{facts['old_size']} examples; {taught}; {facts['seeds']} seeds; {chance}"
        )

    def drawings(self) -> Sequence[Drawing]:
        """Fragments before and after, both tasks by amount, and the trend over steps."""
        labels = "every label weighs the same, so that a constant answer is at the dashed line"
        found = [
            Drawing(
                "fragments",
                self._draw_fragments,
                "One row for each fragment, the last for their mean. From left to right, as far as "
                "measured: the score without teaching, the score after the largest lesson with "
                "inoculation (grey bars: a bag of words that sees the hypothesis only), and what "
                f"the old task loses by that. In scores {labels}. Intervals are over seeds and "
                "examples, for all fragments together.",
            )
        ]
        if len(self.tables["curve"]) > 1:
            found.append(
                Drawing(
                    "curve",
                    self._draw_curve,
                    "To the right: how many examples of a fragment were taught. Upwards: the mean "
                    "score over fragments, and that of the old task after the lesson, with "
                    "inoculation (mixture and epoch chosen by the mean of both tasks) and with new "
                    f"examples only; {labels}. Bands are intervals over seeds and examples.",
                )
            )
        if self.tables["fragments"]["per_step"].notna().any():
            found.append(
                Drawing(
                    "steps",
                    self._draw_steps,
                    "One row for each fragment, the last for all: how much the share of right "
                    "answers changes with one inference step more, in points, after the largest "
                    "lesson (without teaching where there was none), within pairs of the same "
                    "label. Left of the dashed line: more steps are harder. Intervals hold for all "
                    "fragments together.",
                )
            )
        return found

    @property
    def _chance(self) -> float:
        return 100 / int(self.facts["classes"])

    def _draw_fragments(self) -> Figure:
        rows = self.tables["fragments"]
        panels = [Dots.of_columns("zero-shot (%)", rows, "zero_shot", level=self._chance)]
        if int(self.facts["amount"]):
            score = [100 * rows[f"taught{end}"].to_numpy(float) for end in ("", "_low", "_high")]
            words = 100 * rows["hypothesis_only"].to_numpy(float)
            label = f"taught {self.facts['amount']} (%)"
            panels.append(Dots(label, *score, level=self._chance, bars=words))
            panels.append(
                Dots.of_columns("loss of the old task (points)", rows, "old_loss", level=0)
            )
        return interval_dots(
            panels,
            [str(name) for name in rows["fragment"]],
            title=f"Fragments of logic\n{self.about}",
            note=f"Dashed: chance, {self._chance:.0f} %, or no loss. Grey bars: hypotheses alone.",
        )

    def _draw_curve(self) -> Figure:
        table = self.tables["curve"]
        amounts = sorted(set(table["amount"]))
        bands = []
        for column, method, name in (
            ("score", INOCULATED, "fragments, inoculated"),
            ("score", TAUGHT, "fragments, new examples only"),
            ("old_score", INOCULATED, "old task, inoculated"),
            ("old_score", TAUGHT, "old task, new examples only"),
        ):
            rows = table[table["method"].isin([method, ""])].set_index("amount").loc[amounts]
            sides = (100 * rows[f"{column}{end}"].to_numpy(float) for end in ("", "_low", "_high"))
            bands.append(Band(name, *sides))
        return band_curve(
            bands,
            [f"{k}" for k in amounts],
            title=f"Teaching fragments\n{self.about}",
            label="score (%)",
            xlabel="examples taught",
            level=self._chance,
            note=f"Dotted: chance, {self._chance:.0f} %. Bands: intervals over seeds and examples.",
        )

    def _draw_steps(self) -> Figure:
        rows = self.tables["fragments"]
        rows = rows[rows["per_step"].notna()]
        return interval_dots(
            [Dots.of_columns("change for each step (points)", rows, "per_step", level=0)],
            [str(name) for name in rows["fragment"]],
            title=f"Inference steps\n{self.about}",
            note="Intervals over seeds and examples, for all fragments together.",
        )


def concluded(
    runs: FragmentRuns, measured: Mapping[str, xr.Dataset]
) -> tuple[dict[str, pd.DataFrame], dict[str, Estimate | None], dict[str, str]]:
    """Tables, evidence, and reasons why something is not judged."""
    tables = {
        "fragments": _fragments(runs),
        "curve": _curve(runs),
        "steps": _steps(runs),
        "choices": _choices(runs, measured),
    }
    return tables, *_evidence(runs)


def _evidence(runs: FragmentRuns) -> tuple[dict[str, Estimate | None], dict[str, str]]:
    """Over the fragments that have all labels; nothing is said of what was not learnt."""
    judged, most = runs.judged, runs.most
    names = (
        "zero_shot_loss",
        "taught_gain",
        "old_task_loss",
        "inoculation_saves",
        "score_per_step",
    )
    if not judged:
        return {}, dict.fromkeys(names, ONE_LABEL)
    found: dict[str, Estimate | None] = {
        "zero_shot_score": runs.score(runs.zero, runs.weights(judged)),
        "old_task_gain": runs.old_gain(),
    }
    learnt = found["old_task_gain"]
    assert learnt is not None
    if not learnt.low > 0 and runs.seeds > 1:
        return found, dict.fromkeys(names, NOT_LEARNT)
    found["zero_shot_loss"] = runs.zero_shot_loss(judged)
    if not most:
        return found, dict.fromkeys(names[1:], ZERO_SHOT_ONLY)
    gain = found["taught_gain"] = runs.taught_gain(judged, most)
    if not gain.low > 0 and runs.seeds > 1:
        return found, dict.fromkeys(names[2:], NOT_TAUGHT)
    found["old_task_loss"] = runs.old_loss(INOCULATED, judged, most)
    found["inoculation_saves"] = runs.saved(judged, most)
    trend = found["score_per_step"] = runs.per_step(runs.new[INOCULATED, most], judged)
    return found, {} if trend else {"score_per_step": NO_STEPS}


def _bounds(name: str, found: Estimate | None) -> dict[str, float]:
    ends = (math.nan,) * 3 if found is None else (found.value, found.low, found.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def _fragments(runs: FragmentRuns) -> pd.DataFrame:
    """One row for each fragment, and one for the mean of those that are judged."""
    import pandas as pd

    most, tests = runs.most, len(runs.fragments)
    asked = [(name, [at], tests) for at, name in enumerate(runs.fragments)]
    if runs.judged:
        asked.append((MEAN, runs.judged, 1))
    rows = []
    for name, chosen, together in asked:
        here, weights = np.isin(runs.group, chosen), runs.weights(chosen)
        counts = np.unique(runs.labels[here], return_counts=True)[1]
        row: dict[str, object] = {
            "fragment": name,
            "pairs": int(here.sum()),
            "majority": float(counts.max() / here.sum()),
            "accuracy": float(runs.zero[:, here].mean()),
            **_bounds("zero_shot", runs.score(runs.zero, weights, together)),
            **_bounds("zero_shot_loss", runs.zero_shot_loss(chosen, together)),
        }
        last = runs.zero
        if most:
            last = runs.new[INOCULATED, most]
            row |= {
                "hypothesis_only": runs.score(runs.new[HYPOTHESIS, most], weights).value,
                **_bounds("taught", runs.score(last, weights, together)),
                **_bounds("taught_gain", runs.taught_gain(chosen, most, together)),
                **_bounds("old_loss", runs.old_loss(INOCULATED, chosen, most, together)),
                **_bounds("old_loss_without", runs.old_loss(TAUGHT, chosen, most, together)),
            }
        rows.append(row | _bounds("per_step", runs.per_step(last, chosen, together)))
    return pd.DataFrame(rows)


def _curve(runs: FragmentRuns) -> pd.DataFrame:
    """Both tasks by amount and method, the mean over fragments."""
    import pandas as pd

    chosen = runs.judged or list(range(len(runs.fragments)))
    weights = runs.weights(chosen)
    first = {
        "amount": 0,
        "method": "",
        **_bounds("score", runs.score(runs.zero, weights)),
        **_bounds("old_score", runs.score(runs.old, runs.old_weights)),
    }
    rows = [first]
    for amount in runs.amounts:
        for method in (INOCULATED, TAUGHT, HYPOTHESIS):
            row = {
                "amount": amount,
                "method": method,
                **_bounds("score", runs.score(runs.new[method, amount], weights)),
            }
            if method != HYPOTHESIS:
                after = runs.old_after(method, chosen, amount)
                row |= _bounds("old_score", runs.score(after, runs.old_weights))
                row |= _bounds("old_loss", runs.old_loss(method, chosen, amount))
            rows.append(row)
    return pd.DataFrame(rows)


def _steps(runs: FragmentRuns) -> pd.DataFrame:
    """The score by number of steps, before and after the largest lesson."""
    import pandas as pd

    rows = []
    last = runs.new[INOCULATED, runs.most] if runs.most else None
    for at, name in enumerate(runs.fragments):
        own = runs.group == at
        for step in np.unique(runs.steps[own & np.isfinite(runs.steps)]):
            here = own & (runs.steps == step)
            if here.sum() < 2:
                continue
            even = here / here.sum()
            row = {
                "fragment": name,
                "steps": int(step),
                "pairs": int(here.sum()),
                **_bounds("zero_shot", runs.score(runs.zero, even)),
            }
            if last is not None:
                row |= _bounds("taught", runs.score(last, even))
            rows.append(row)
    columns = ["fragment", "steps", "pairs"]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)


def _choices(runs: FragmentRuns, measured: Mapping[str, xr.Dataset]) -> pd.DataFrame:
    """What inoculation chose in each lesson."""
    import pandas as pd

    rows = []
    for part, found in measured.items():
        fragment, amount, seed = parted(part)
        if fragment >= 0:
            at = int(found["chosen"])
            rows.append(
                {
                    "fragment": runs.fragments[fragment],
                    "amount": amount,
                    "seed": seed,
                    **{name: int(found[name][at]) for name in ("mixture", "epoch")},
                    **{n: float(found[n][at]) for n in ("deciding_new", "deciding_old")},
                }
            )
    columns = ["fragment", "amount", "seed", "mixture", "epoch", "deciding_new", "deciding_old"]
    return pd.DataFrame(rows, columns=columns)
