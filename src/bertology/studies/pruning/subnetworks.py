"""Subnetworks: are those that pruning finds better than others of the same size?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.metrics import judged_metric
from bertology.parameters import check_some_of, parameter
from bertology.results.answers import NOTHING_SURE, points
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate, repeated
from bertology.studies.designs.scored_runs import ScoredRuns, ScoredRunsResult, answered, least
from bertology.studies.designs.task_trials import BARS, same_training_data
from bertology.studies.designs.trials import Reach, reaching, split_part
from bertology.studies.pruning.shared import NOT_LEARNT, Prunings, by_seed, by_step
from bertology.studies.study import Context

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.train.iterative_pruning import Magnitude, PruningJob

PRUNINGS = ("magnitude", "importance")
_KINDS = ("bad", "random", "good")
_SIMPLE = ("majority", "bag-of-words", "cbow", "bilstm")
_SEEDLESS = ("majority", "bag-of-words")
_TOO_MUCH = 2 / 3  # of the elements left: then random subnetworks are mostly the good one
_ALIKE = (
    "not judged: {} % of the elements are left with some seed, so that good, random and bad "
    "subnetworks are mostly the same"
)
_COLLAPSED = (
    "not judged: {} of {} trained subnetworks, good or random, give nearly all examples the same "
    "answer: their training failed, and that tells nothing of what was pruned"
)
_FRESH = "random-start-importance"
_ARRAYS = {"importance": ("heads", "mlps"), "magnitude": ("weights",)}
_ELEMENTS = {"magnitude": "weights", "importance": "heads and MLPs"}
TITLES = {
    "majority": "majority class, or mean",
    "bag-of-words": "bag of words, logistic regression",
    "cbow": "CBOW (mean of static vectors)",
    "bilstm": "BiLSTM over static vectors",
    _FRESH: "random start, random heads and MLPs",
    **{f"{k}-{p}": f"{k} {_ELEMENTS[p]}" for p in PRUNINGS for k in _KINDS},
    "fine-tuned": "whole model",
}
METHODS = tuple(TITLES)


class SubnetworksResult(ScoredRunsResult):
    """Scores of subnetworks and baselines (table `methods`), and of each run (table `runs`).

    `methods` has one row for each method and metric: the mean over seeds, its interval over seeds
    and examples, the spread over seeds, and how much it is above the majority class. `sizes` tells
    for each seed and pruning which share is left and how much of the bad subnetwork also is in the
    good one; for heads and MLPs, which are cut for real, also how many times faster the good
    subnetwork is on this machine and which share of memory it takes.
    """

    lead: ClassVar[int] = len(METHODS)

    @property
    def answer(self) -> str:
        """Good against random against bad, for each way of pruning."""
        found, facts = self.evidence(), self.facts
        told = [
            f"of {_ELEMENTS[p]}, good ones score {points(found[f'good_over_random_{p}'])} above "
            f"random ones, and these {points(found[f'random_over_bad_{p}'])} above bad ones"
            for p in PRUNINGS
            if f"good_over_random_{p}" in found
        ]
        if not told:
            why = next(iter(self.reasons().values()), "no subnetworks were compared")
            return f"{NOTHING_SURE}: {why.removeprefix('not judged: ')}."
        line = "; ".join(told)
        return f"{line[0].upper()}{line[1:]} ({facts['judged']}, over {facts['seeds']} seeds)."

    def headline(self) -> str:
        """How large the subnetworks are."""
        sizes, facts = self.tables["sizes"], self.facts
        left = [
            f"{100 * of['left'].mean():.0f} % of {_ELEMENTS[str(pruning)]} left"
            for pruning, of in sizes.groupby("pruning", sort=False)
        ]
        return f"{facts['task']}: {facts['train_size']} examples to learn from; {', '.join(left)}"

    def drawings(self) -> Sequence[Drawing]:
        """The slides' pictures and table in one."""
        caption = (
            "One row for each method; one panel for each score of the task, times a hundred. Good "
            "subnetworks are what pruning leaves, bad ones what it took away, random ones are "
            "drawn; those of one kind are of the same size, and each was trained again from "
            "the pre-trained weights. Dots are means over seeds, with intervals over seeds and "
            "examples together."
        )
        title = "Good, random and bad subnetworks"
        return [self.methods_drawing("subnetworks", title, TITLES, caption)]


@dataclass(frozen=True)
class Subnetworks(Prunings):
    """Are subnetworks that pruning finds better than others of the same size?

    Method: for each seed the model is fine-tuned and pruned, by the size of weights and by the
    importance of heads and MLPs, as in `magnitude-pruning` and `importance-pruning` with what they
    do if nothing else is said (their masks are taken if they are stored). The good subnetwork is
    what is left. A random one has as many elements of the whole model, drawn at random. A bad one
    has those that did not survive, and a few of the others to match the size (or as many as match
    it, where more were pruned than survived). Each is trained again from the pre-trained weights:
    weights that are gone are held at zero, heads and MLPs are cut out of the model for real, which
    is saved, loaded again and timed. Beside them stand the whole model, the simple models of
    `task-baselines`, and a random start with random heads and MLPs. All learn from the same data
    and are scored on the same examples, which decided nothing. Intervals are over seeds and
    examples together, differences are paired by seed. That two are about as good is not judged
    where a training failed (nearly all answers of a good or random subnetwork are the same; column
    `collapsed` of table `runs`), and it takes more than five seeds: how many is told.

    Claims rest on accuracy (correlation for regressions and CoLA).

    Source: When BERT Plays the Lottery, All Tickets Are Winning (EMNLP 2020), sections 5 and 6;
    BERTology Nuggets. Limits: where little is pruned, bad and random subnetworks share most
    elements with good ones (column `shared`), and differences are small for that reason. The
    paper decides and reports on the same data. Speed is of the machine that did the work.
    """

    version: ClassVar[int] = 4  # bounds allow for rare answers that were not seen
    result_type: ClassVar[type[Result]] = SubnetworksResult
    column: ClassVar[str] = "method"

    prunings: tuple[str, ...] = parameter(PRUNINGS, "Ways to find subnetworks.")
    baselines: tuple[str, ...] = parameter(_SIMPLE, "Simple models beside them.")
    vectors: str = parameter(
        "",
        "A file of word vectors for CBOW and BiLSTM (GloVe or word2vec). If not given: the "
        "model's input embeddings.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_some_of(self, "prunings", PRUNINGS, least=0)
        check_some_of(self, "baselines", _SIMPLE, least=0)

    @property
    def variants(self) -> Sequence[str]:
        """What is done together for one seed."""
        return ("whole", *self.prunings)

    @property
    def method(self) -> Magnitude:
        """By the size of weights; `_job` has the other one."""
        from bertology.train.iterative_pruning import Magnitude

        return Magnitude()

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The training data, and the contents of the file of vectors."""
        from bertology.data.static_vectors import fingerprint_of

        known = super().ingredients(corpus)
        return known | ({"vectors": fingerprint_of(self.vectors)} if self.vectors else {})

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """The whole model and simple ones, or the three subnetworks of one pruning."""
        from bertology.train.iterative_pruning import Importance

        pruning, seed = split_part(part)
        job = self.job(encoder, corpus, seed, batch_tokens=context.batch_tokens)
        reach = reaching(context)
        if pruning == "whole":
            found = self._whole(job, context, reach)
        else:
            by = replace(job, method=Importance()) if pruning == "importance" else job
            found = self._subnetworks(by, pruning, context, reach)
        reach(BARS)
        return found

    def _whole(self, job: PruningJob, context: Context, reach: Reach) -> xr.Dataset:
        from bertology.train.baselines import train_baseline
        from bertology.train.iterative_pruning import tuned_encoder
        from bertology.train.subnetworks import answers_on

        tuning, corpus, seed = job.tuning, job.report, job.tuning.settings.seed
        share = BARS / (1 + len(self.baselines))
        whole = tuned_encoder(
            tuning, context.trained, progress=lambda s: reach(int(share * s.done / s.total))
        )
        said = {"fine-tuned": answers_on(whole.model, tuning, corpus)}
        for at, name in enumerate(self.baselines, 1):
            if seed and name in _SEEDLESS:
                continue
            run = train_baseline(
                name,
                tuning.encoder,
                tuning.train,
                corpus,
                seed=seed,
                vectors=self.vectors,
                progress=lambda done, at=at: reach(int(share * (at + done))),  # type: ignore[misc]
            )
            said[name] = run.predictions
        return answered(said, corpus, tuning.train)

    def _subnetworks(
        self, job: PruningJob, pruning: str, context: Context, reach: Reach
    ) -> xr.Dataset:
        from bertology.model.part_masks import PartMask
        from bertology.train.iterative_pruning import prune
        from bertology.train.subnetworks import answers_on, measure_cut, retrained, rivals

        tuning, corpus, seed = job.tuning, job.report, job.tuning.settings.seed
        found = prune(job, folder=context.trained, tell=lambda done: reach(int(0.3 * BARS * done)))
        masks = rivals(found.mask, tuning.encoder, seed=seed)
        runs = [(f"{kind}-{pruning}", masks[kind], "pretrained") for kind in _KINDS]
        if pruning == "importance":
            runs.append((_FRESH, masks["random"], "random"))
        said: dict[str, Any] = {}
        told: dict[str, Any] = {"learnt": int(found.learnt)}
        for at, (name, mask, start) in enumerate(runs):
            model = retrained(
                job,
                mask,
                start=start,
                tell=lambda done, at=at: reach(  # type: ignore[misc]
                    int(BARS * (0.3 + 0.65 * (at + done) / len(runs)))
                ),
            )
            said[name] = answers_on(model, tuning, corpus)
            if name == "good-importance":
                cut = measure_cut(model, tuning, corpus)
                told |= {"speed": cut.speed, "memory": cut.memory, "reloaded": int(cut.reloaded)}
        told["kept_steps"] = len(found.kept)
        arrays = (
            _of_parts(masks["good"], masks["bad"], found.masks)
            if isinstance(masks["good"], PartMask)
            else _of_weights(masks["good"], masks["bad"], found.masks, tuning.encoder)
        )
        return (
            answered(said, corpus, tuning.train)
            .assign(**told)
            .merge(arrays, combine_attrs="override")
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Means, differences with intervals over seeds and examples, and sizes."""
        import xarray as xr

        same_training_data(measured)
        facts = next(iter(measured.values())).attrs
        metrics = str(facts["metrics"]).split()
        judged = judged_metric(metrics)
        runs = ScoredRuns.read(measured, self.level, _SEEDLESS, METHODS)
        evidence, reasons = dict[str, Estimate | None](), dict[str, str]()
        sizes = _sizes(measured)
        for pruning in self.prunings:
            own = _contrasts(runs, pruning, judged)
            learnt, left = (sizes.loc[sizes["pruning"] == pruning, c] for c in ("learnt", "left"))
            if (learnt == 0).any():
                why = NOT_LEARNT.format(int((learnt == 0).sum()), len(learnt))
                reasons |= dict.fromkeys(own, why)
            elif (left > _TOO_MUCH).any():
                reasons |= dict.fromkeys(own, _ALIKE.format(f"{100 * left.max():.0f}"))
            else:
                evidence |= own
        lost, of = _collapsed(runs, "importance")
        if lost and evidence.pop("good_over_random_importance", None) is not None:
            reasons["good_over_random_importance"] = _COLLAPSED.format(lost, of)
        if "importance" in self.prunings:
            speeds = sizes.loc[sizes["pruning"] == "importance", "speed"]
            evidence["good_speed"] = repeated(speeds, self.level)
        reference = "majority" if "majority" in runs.predictions else None
        return self.result(
            provenance,
            {
                "methods": runs.table(self.column, metrics, reference=reference),
                "sizes": sizes,
                "runs": runs.runs(self.column, metrics).assign(
                    collapsed=np.concatenate([runs.collapsed(m) for m in runs.predictions])
                ),
            },
            evidence=evidence,
            reasons=reasons,
            facts={
                "task": facts["task"],
                "train_size": facts["train_size"],
                "judged": judged,
                "examples": len(runs.labels),
                "seeds": self.seeds,
                "weights_size": next(
                    (int(p["weights_size"]) for p in measured.values() if "weights_size" in p), 0
                ),
            },
            arrays=xr.Dataset(_masks(measured, self.prunings)),
        )


def _contrasts(runs: ScoredRuns, pruning: str, metric: str) -> dict[str, Estimate | None]:
    """Pairs that were chosen before looking; each has an interval of its own.

    What would settle them is counted in seeds: the examples are those that the task has.
    """
    good, random, bad = (f"{kind}-{pruning}" for kind in ("good", "random", "bad"))

    def over(one: str, other: str) -> Estimate | None:
        return runs.difference(one, other, metric, in_seeds=True)

    found = {
        f"whole_over_good_{pruning}": over("fine-tuned", good),
        f"good_over_random_{pruning}": over(good, random),
        f"random_over_bad_{pruning}": over(random, bad),
        f"good_over_bad_{pruning}": over(good, bad),
        f"bad_over_majority_{pruning}": over(bad, "majority"),
        f"bad_over_simple_{pruning}": least(over(bad, simple) for simple in _SIMPLE),
    }
    if pruning == "importance":
        found["bad_over_random_start"] = over(bad, _FRESH)
    return found


def _collapsed(runs: ScoredRuns, pruning: str) -> tuple[int, int]:
    """How many good and random subnetworks give nearly all examples one answer; of how many."""
    names = [f"{kind}-{pruning}" for kind in ("good", "random")]
    found = [runs.collapsed(name) for name in names if name in runs.predictions]
    return sum(int(x.sum()) for x in found), sum(len(x) for x in found)


def _of_parts(good: Any, bad: Any, steps: Any) -> xr.Dataset:
    import xarray as xr

    full = steps.at(0)
    every = int(full.heads.sum() + full.mlps.sum())
    kept = int(good.heads.sum() + good.mlps.sum())
    both = int((good.heads & bad.heads).sum() + (good.mlps & bad.mlps).sum())
    return xr.Dataset(
        {
            "heads": (("step", "layer", "head"), steps.heads.astype(np.int8)),
            "mlps": (("step", "layer"), steps.mlps.astype(np.int8)),
            "left": kept / every,
            "shared": both / max(1, kept),
        }
    )


def _of_weights(good: Any, bad: Any, steps: Any, encoder: Encoder) -> xr.Dataset:
    import xarray as xr

    from bertology.train.subnetworks import body_planes

    planes, size = body_planes(steps, encoder)
    both = sum(int(np.bitwise_count(good.bits[n] & bad.bits[n]).sum()) for n in good.bits)
    return xr.Dataset(
        {
            "weights": (("plane", "byte"), planes),
            "weights_size": size,
            "left": good.share,
            "shared": both / max(1, good.kept),
        }
    )


def _sizes(measured: Mapping[str, xr.Dataset]) -> pd.DataFrame:
    """One row for each pruning and seed."""
    import pandas as pd

    rows = [
        {
            "pruning": pruning,
            "seed": seed,
            **{
                name: float(part[name]) if name in part else math.nan
                for name in ("left", "shared", "learnt", "speed", "memory", "reloaded")
            },
        }
        for name, part in measured.items()
        for pruning, seed in [split_part(name)]
        if pruning in PRUNINGS
    ]
    columns = ["pruning", "seed", "left", "shared", "learnt", "speed", "memory", "reloaded"]
    return pd.DataFrame(rows, columns=columns).sort_values(
        ["pruning", "seed"], ascending=[False, True], ignore_index=True
    )


def _masks(measured: Mapping[str, xr.Dataset], prunings: Sequence[str]) -> dict[str, Any]:
    """What is left in each step of each seed (weights: packed bits of the last step of each)."""
    found: dict[str, Any] = {}
    for pruning in prunings:
        own = {name: part for name, part in measured.items() if split_part(name)[0] == pruning}
        first = next(iter(own.values()))
        for name in _ARRAYS[pruning]:
            # Steps, or planes, come first; where a seed has fewer, zeros follow.
            found[name] = (("seed", *first[name].dims), by_step(own, name))
        found[f"{pruning}_kept_steps"] = ("seed", by_seed(own, "kept_steps"))
    return found
