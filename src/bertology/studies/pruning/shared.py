"""Iterative pruning by seed: fine-tune, prune step by step while the score is kept, tell each step.

A subclass says the `method` and what it finds of a mask (`describe`); `train/iterative_pruning.py`
does the work and keeps fine-tuned models and masks in `Context.trained`, so that another study that
asks for the same (`self.job(…)`, then `prune`) gets them without any training, and a process that
is killed loses the step it was in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.metrics import find_metric, judged_metric
from bertology.parameters import parameter
from bertology.report.figures.over_runs import pruning_curve
from bertology.results.answers import NOTHING_SURE, percent, plain
from bertology.results.drawing import Drawing
from bertology.results.number_text import number_text
from bertology.results.result import Result
from bertology.stats import Estimate, repeated
from bertology.stats.deciding import Deciding, removed_share
from bertology.stats.survivors import bits_at_step
from bertology.studies.designs.task_trials import BARS, TaskTrials, same_training_data
from bertology.studies.designs.trials import reaching, split_part
from bertology.studies.study import Context

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.nested_masks import NestedWeights
    from bertology.train.iterative_pruning import Importance, Magnitude, Pruning, PruningJob

NOT_LEARNT = (
    "not judged: with {} of {} seeds the whole model does not surely beat a constant answer, so "
    "there was no score to keep"
)
ONE_SEED = "not judged: one seed cannot agree with others"
UNDEFINED = (
    "not judged: with some seed no step was kept, or what is left in the step that all kept gives "
    "seeds nothing to differ in"
)


class PruningsResult(Result):
    """Runs by seed (table `runs`) and their steps (table `steps`)."""

    pruned: ClassVar[str]
    """What goes, in the plural: `heads`; the quantity is `heads_removed`."""
    agreement: ClassVar[tuple[str, str]]
    """The quantity that tells how far seeds agree, and on what."""

    @property
    def answer(self) -> str:
        """How much goes, and whether the same ones stay."""
        found, quantity = self.evidence(), f"{self.pruned}_removed"
        if quantity not in found:
            why = self.reasons().get(quantity, "nothing was pruned")
            return f"{NOTHING_SURE}: {why.removeprefix('not judged: ')}."
        told = (
            f"{percent(found[quantity])} of the {self.pruned} can go while "
            f"{100 * float(self.facts['keep']):.0f} % of the score is kept"
        )
        kappa, which = self.agreement
        if kappa in found:
            told += f"; seeds agree on which {which} stay with κ {plain(found[kappa])}"
        return f"{told} ({self.over_seeds})."

    def headline(self) -> str:
        """The task, what pruning did to its score, and where seeds are compared."""
        told = f"{self.facts['task']}: {self.kept_text()}"
        left = 100 * float(self.facts["compared_left"])
        if int(self.facts["seeds"]) > 1 and int(self.facts["compared_step"]):
            told += f"; seeds are compared where {left:.0f} % of the {self.pruned} are left"
        return told

    def curve(self, left: str) -> Drawing:
        """The score by what is left; `left` says of what."""
        steps, facts = self.tables["steps"], self.facts
        metric = find_metric(str(facts["metric"]))
        draw = partial(
            pruning_curve,
            steps[["seed", "left", "reported"]].to_numpy(float),
            self.tables["curve"][["left", "mean", "low", "high"]].to_numpy(float),
            title=f"Score by what is left\n{self.about}",
            xlabel=f"{left} left (%)",
            ylabel=metric.in_hundred,
            constant=float(facts["constant"]),
        )
        return Drawing(
            "curve",
            draw,
            f"To the right: {left} that are left, in per cent, fewer and fewer. Upwards: the "
            "score on data that decided nothing, times a hundred. Thin lines are seeds, to the "
            "last step that was tried: the one that fell below what had to be kept, and up to two "
            "more. Dots with bars are means over seeds with their intervals, where all seeds have "
            "the step. The dashed line is a constant answer.",
        )

    @property
    def over_seeds(self) -> str:
        """What means are over."""
        seeds = int(self.facts["seeds"])
        return "one seed" if seeds == 1 else f"over {seeds} seeds"

    def kept_text(self) -> str:
        """Scores of the whole and of the pruned model."""
        runs = self.tables["runs"]
        whole, after = (number_text(100 * runs[c].mean(), ".1f") for c in ("full", "pruned"))
        metric = find_metric(str(self.facts["metric"])).in_hundred
        return f"{metric} {whole} whole, {after} pruned ({self.over_seeds})"


@dataclass(frozen=True)
class Prunings(TaskTrials):
    """The parameters that all of them share, what is done for each seed, and what all conclude."""

    trains_models: ClassVar[bool] = True
    variant: ClassVar[str] = "pruned"

    seeds: int = parameter(
        5, "Runs, each with another seed; one gives no verdicts, two no agreement.", minimum=1
    )
    keep: float = parameter(
        0.9,
        "Prune as long as this share of the whole model's score is kept, on data that decide.",
        minimum=0.01,
        maximum=0.999,
    )
    deciding: int = parameter(
        500,
        "Training examples that decide how far is pruned, and are not learnt from; at most a "
        "fifth.",
        minimum=20,
    )

    @property
    def variants(self) -> Sequence[str]:
        """One; runs differ in their seed only."""
        return [self.variant]

    @property
    def method(self) -> Magnitude | Importance:
        """How it is pruned."""
        raise NotImplementedError

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """There must be enough to learn from and to decide by."""
        super().check(encoder, corpus)
        self.job(encoder, corpus, seed=0)

    def job(
        self, encoder: Encoder, corpus: Corpus, seed: int, *, batch_tokens: int = 4096
    ) -> PruningJob:
        """All that decides the mask of one seed; the data that decide are the same for all."""
        from bertology.train.encoded import task_of
        from bertology.train.iterative_pruning import PruningJob, split_deciding
        from bertology.train.starts import STARTS
        from bertology.train.tuning import TuningJob

        learn, decide = split_deciding(self.load_train(corpus), corpus, deciding=self.deciding)
        start = STARTS["pretrained"]
        settings = self.settings(start, encoder.shape.hidden, seed)
        tuning = TuningJob(encoder, learn, decide, start, settings)
        metric = judged_metric(task_of(corpus).metrics)
        return PruningJob(tuning, corpus, metric, self.method, self.keep, batch_tokens)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Fine-tune and prune with one seed."""
        from bertology.train.iterative_pruning import prune

        _, seed = split_part(part)
        job = self.job(encoder, corpus, seed, batch_tokens=context.batch_tokens)
        reach = reaching(context)
        found = prune(job, folder=context.trained, tell=lambda done: reach(int(BARS * done)))
        told = self.describe(job, found)
        reach(BARS)
        return _with_steps(told, job, found)

    def describe(self, job: PruningJob, found: Pruning) -> xr.Dataset:
        """What is told of a mask, as arrays."""
        raise NotImplementedError

    # The conclusion ----------------------------------------------------------------------------

    def common(
        self, measured: Mapping[str, xr.Dataset], left: str
    ) -> tuple[dict[str, pd.DataFrame], dict[str, Any], dict[str, Estimate], str]:
        """Tables, facts, evidence of scores, and why nothing is judged ("" where something is).

        `left` names what a step counts: weights, or heads.
        """
        import pandas as pd

        same_training_data(measured)
        first, step = next(iter(measured.values())), compared_step(measured)
        facts = first.attrs
        steps = pd.concat(
            [_steps_of(part, split_part(name)[1], left) for name, part in measured.items()],
            ignore_index=True,
        )
        runs = pd.DataFrame(
            [_run_of(part, split_part(name)[1], left) for name, part in measured.items()]
        )
        told = {
            "task": facts["task"],
            "metric": facts["metric"],
            "constant": float(facts["constant"]),
            "train_size": int(facts["train_size"]),
            "seeds": len(runs),
            "keep": self.keep,
            "compared_step": step,
            "compared_left": float(first[f"left_{left}"][step] / first[f"left_{left}"][0]),
        }
        within = find_metric(str(told["metric"])).within
        ratio = runs["pruned"] / runs["full"]
        unlearnt = int((~runs["learnt"].astype(bool)).sum())
        reason = NOT_LEARNT.format(unlearnt, len(runs)) if unlearnt else ""
        tables = {"runs": runs, "curve": _curve(steps, len(runs), self.level, within)}
        tables["steps"] = steps
        return tables, told, {"kept_score": repeated(ratio, self.level)}, reason

    def removed(self, measured: Mapping[str, xr.Dataset], kind: str) -> Estimate:
        """The share of heads, MLPs or weights that goes; over seeds and deciding examples."""
        order = sorted(measured, key=lambda part: split_part(part)[1])
        parts = [measured[name] for name in order]
        first = parts[0]
        runs, steps = [], []
        for part in parts:
            left, kept = part[f"left_{kind}"].to_numpy(), int(part["kept_steps"])
            gone = 1 - left / left[0]
            runs.append(Deciding(part["decided"].to_numpy(), gone, kept))
            if len(gone) > 1:
                last = min(kept, len(gone) - 1)
                steps.append(gone[last] - gone[last - 1])
        return removed_share(
            runs,
            first["deciding_labels"].to_numpy(),
            find_metric(str(first.attrs["metric"])),
            keep=self.keep,
            constant=float(first["constant_answer"]),
            grain=float(np.mean(steps)) if steps else 0.0,
            level=self.level,
        )

    def judged(
        self, evidence: Mapping[str, Estimate], reason: str
    ) -> tuple[dict[str, Estimate], dict[str, str]]:
        """What claims are judged on, and why the rest is not; `reason` is why nothing is."""
        if reason:
            return {}, dict.fromkeys(evidence, reason)
        known = {name: e for name, e in evidence.items() if not math.isnan(e.value)}
        why = UNDEFINED if self.seeds > 1 else ONE_SEED
        return known, {name: why for name in evidence if name not in known}


def by_seed(measured: Mapping[str, xr.Dataset], name: str) -> NDArray[Any]:
    """An array of all parts, seeds first, in their order."""
    order = sorted(measured, key=lambda part: split_part(part)[1])
    return np.stack([measured[part][name].to_numpy() for part in order])


def by_step(measured: Mapping[str, xr.Dataset], name: str) -> NDArray[Any]:
    """An array (seed, step, …) of all parts; where a seed has fewer steps, zeros follow."""
    order = sorted(measured, key=lambda part: split_part(part)[1])
    found = [measured[part][name].to_numpy() for part in order]
    most = max(len(array) for array in found)
    return np.stack([np.pad(a, [(0, most - len(a)), *[(0, 0)] * (a.ndim - 1)]) for a in found])


def compared_step(measured: Mapping[str, xr.Dataset]) -> int:
    """The deepest step that all seeds kept: there, as much is left with every seed."""
    return min(int(part["kept_steps"]) for part in measured.values()) - 1


def joined_planes(masks: NestedWeights) -> NDArray[np.uint8]:
    """(plane, byte): which step each weight went in, as `bits_by_seed` reads it."""
    found = [plane.joined() for plane in masks.planes]
    return np.stack(found) if found else np.zeros((0, len(masks.whole.joined())), np.uint8)


def bits_by_seed(
    measured: Mapping[str, xr.Dataset], name: str, step: int
) -> list[NDArray[np.uint8]]:
    """The packed masks of a step, one for each seed; none where all is left in it."""
    order = sorted(measured, key=lambda part: split_part(part)[1])
    return (
        [bits_at_step([*measured[part][name].to_numpy()], step) for part in order] if step else []
    )


def _with_steps(told: xr.Dataset, job: PruningJob, found: Pruning) -> xr.Dataset:
    from bertology.train.encoded import task_of
    from bertology.train.evaluate import baseline, constant_answer

    task, train, steps = task_of(job.report), job.tuning.train, found.steps
    found_of: dict[str, Any] = {
        "score": ("step", [step.score for step in steps]),
        "reported": ("step", [step.reported for step in steps]),
        "decided": (("step", "deciding"), [step.answers for step in steps]),
        "deciding_labels": ("deciding", np.asarray(job.tuning.validation.labels, float)),
        "constant_answer": constant_answer(train),
        "kept_steps": len(found.kept),
        "learnt": int(found.learnt),
        "floor": found.floor,
    }
    for kind in steps[0].left:
        found_of[f"left_{kind}"] = ("step", [step.left[kind] for step in steps])
    return told.assign(found_of).assign_attrs(
        task=task.name,
        metric=job.metric,
        constant=baseline(train, job.report)[job.metric],
        train_size=len(train),
        train_fingerprint=train.fingerprint,
    )


def _steps_of(part: xr.Dataset, seed: int, left: str) -> pd.DataFrame:
    import pandas as pd

    count = part[f"left_{left}"].to_numpy()
    return pd.DataFrame(
        {
            "seed": seed,
            "step": range(len(count)),
            "left": count / count[0],
            "score": part["score"].to_numpy(),
            "reported": part["reported"].to_numpy(),
            "kept": np.arange(len(count)) < int(part["kept_steps"]),
        }
    )


def _run_of(part: xr.Dataset, seed: int, left: str) -> dict[str, float]:
    """The last kept step of one seed beside the whole model."""
    last = int(part["kept_steps"]) - 1
    count, reported = part[f"left_{left}"].to_numpy(), part["reported"].to_numpy()
    return {
        "seed": seed,
        "steps": last,
        "left": float(count[last] / count[0]),
        "full": float(reported[0]),
        "pruned": float(reported[last]),
        "floor": float(part["floor"]),
        "learnt": int(part["learnt"]),
    }


def _curve(
    steps: pd.DataFrame, seeds: int, level: float, within: tuple[float, float]
) -> pd.DataFrame:
    """Means over seeds by step, where all seeds have it: later ones would be of the best only."""
    import pandas as pd

    rows = []
    for step, of in steps.groupby("step"):
        if len(of) == seeds:
            mean = repeated(of["reported"], level, within=within)
            bounds = {"low": mean.low, "high": mean.high, "seeds": mean.n}
            rows.append({"step": step, "left": of["left"].mean(), "mean": mean.value, **bounds})
    columns = ["step", "left", "mean", "low", "high", "seeds"]
    return pd.DataFrame(rows, columns=columns)
