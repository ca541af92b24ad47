"""Fine-tuning starts: what is pre-training worth to a task, and what is fine-tuning?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from bertology.metrics import find_metric, judged_metric
from bertology.parameters import check_some_of, parameter
from bertology.results.answers import NOTHING_SURE, points, raised
from bertology.results.drawing import Drawing
from bertology.results.number_text import number_text
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.scored_runs import learnt_nothing
from bertology.studies.designs.task_trials import BARS, TaskTrials, same_training_data
from bertology.studies.designs.trials import Reach, Reference, Runs, TrialsResult, split_part

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.train.tuning import TuningJob

TITLES = {
    "pretrained": "fine-tuned, pre-trained start",
    "random": "fine-tuned, random start",
    "frozen": "pre-trained, not fine-tuned",
    "frozen-features": "trained head on frozen features (ours)",
}
COMPARED_STARTS = tuple(TITLES)
# Pairs of starts by quantity; chosen before looking, so each has an interval of its own. What is
# said of the first is judged only where it learnt something; a random start need not.
_CONTRASTS = {
    "fine_tuned_over_frozen": ("pretrained", "frozen"),
    "pretrained_over_random": ("pretrained", "random"),
    "random_over_frozen": ("random", "frozen"),
    "features_over_frozen": ("frozen-features", "frozen"),
    "pretrained_over_features": ("pretrained", "frozen-features"),
}
# A random start, and the model that was not fine-tuned.
_REFERENCES = (
    Reference("random", "over_random", "over_random_p"),
    Reference("frozen", "over_frozen", "over_frozen_p"),
)
_FROZEN, _RANDOM = "frozen", "random"
# Random classifiers have seeds of their own: they share no weights with any run that is trained.
_FIRST_CLASSIFIER = 1000


class FineTuningStartsResult(TrialsResult):
    """Scores by start and seed (table `runs`), and their means (table `starts`).

    `starts` has one row for each start and metric, as the paper's Table 1: mean, median and
    Student's interval over `seeds`, and the differences to the random start, paired by seed, and
    to the model that was not fine-tuned, without pairs; `p_adjusted` is corrected (Holm) for all.
    For the model that was not fine-tuned, `seeds` are its random classifiers. Correlations count
    by their size there, as in claims; `runs` has them with their signs.
    """

    lead: ClassVar[int] = 7

    @property
    def _also(self) -> str:
        """How many random classifiers the model that was not fine-tuned was scored under."""
        table = self.tables["starts"]
        drawn = table.loc[table["start"] == _FROZEN, "seeds"]
        return f" ({int(drawn.max())} random classifiers, not fine-tuned)" if len(drawn) else ""

    @property
    def _constants(self) -> dict[str, float]:
        """What a constant answer scores, by metric."""
        metrics = self.tables["starts"]["metric"].unique()
        return {metric: float(self.facts[f"constant_{metric}"]) for metric in metrics}

    @property
    def answer(self) -> str:
        """What fine-tuning gains over none, and pre-training over a random start."""
        found = self.evidence()
        told = [
            f"{what} {_gains(found[name])} of {self.facts['judged']} over {other}"
            for name, what, other in (
                ("fine_tuned_over_frozen", "fine-tuning", "no training"),
                ("pretrained_over_random", "pre-training", "a random start"),
            )
            if name in found
        ]
        if not told:
            whys = [why.removeprefix("not judged: ") for why in self.reasons().values() if why]
            return f"{NOTHING_SURE}: {[*whys, 'no two starts were compared'][0]}."
        return f"{raised('; '.join(told))} (over {self.facts['seeds']} seeds)."

    def headline(self) -> str:
        """What was learnt, and what a constant answer would score."""
        facts = self.facts
        constant = ", ".join(
            f"{find_metric(metric).in_hundred} {number_text(100 * score, '.1f')}"
            for metric, score in self._constants.items()
        )
        return (
            f"{facts['task']}: {facts['train_size']} examples, {facts['epochs']} epochs, "
            f"{facts['seeds']} seeds{self._also}; always the same answer: {constant}"
        )

    def drawings(self) -> Sequence[Drawing]:
        """The paper's Table 1 as a picture."""
        caption = (
            "One row for each way to begin, and one for always giving the same answer; one panel "
            "for each score of the task, times a hundred. Dots are means over seeds, or over "
            "random classifiers for the model that was not fine-tuned, with their intervals. "
            "How far the fine-tuned model lies right of the others is what pre-training "
            "and fine-tuning are worth."
        )
        if any(find_metric(metric).lowest < 0 for metric in self._constants):
            caption += " Correlations count by their size, without their sign."
        return [
            self.dots(
                "starts",
                "What pre-training and fine-tuning are worth",
                {metric: find_metric(metric).in_hundred for metric in self._constants},
                caption,
                names=TITLES,
                constants=self._constants,
                also=self._also,
            )
        ]


def _gains(found: Estimate) -> str:
    if math.isnan(found.low):
        return f"gains {points(found)}"
    surely = "surely gains" if found.low > 0 else "surely loses" if found.high < 0 else ""
    return f"{surely or 'does not surely gain:'} {points(found)}"


@dataclass(frozen=True)
class FineTuningStarts(TaskTrials):
    """What does a task gain from pre-training, and what from fine-tuning?

    Method: a classifier over the encoder is fine-tuned on the training split and scored on the
    corpus that is given, the validation split, with the task's own metrics; once for each start and
    seed. `pretrained` begins with the encoder's weights, `random` with all weights drawn from the
    normal distribution (the spread of the model's config). `frozen` is not fine-tuned at all: the
    encoder under a head drawn at random, which is what the paper calls pre-trained BERT. As random
    heads score very differently and cost no training, it is scored under many (`classifiers`).
    `frozen-features` is ours: the encoder stays as it is and the head is trained. A seed decides
    new weights, the order of examples and dropout; trained starts of one seed share them, and are
    compared by seed. With `frozen` they share nothing, and an interval for two groups with
    unequal spreads (Cochran and Cox's) compares them.

    Claims rest on accuracy (correlation for regressions and CoLA). A random head, and a start that
    learnt nothing, give a correlation its sign by chance; so its size counts, of all starts alike,
    in the table of means and in claims.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.3 and Table 1. Limits:
    intervals are of other seeds and heads on the same validation data, not of other data. A score
    without fine-tuning is that of a random head and says little about what the encoder knows; that
    is what `frozen-features` is for. All starts have the same epochs and, but for the lone head,
    the same learning rate; a random start may want more of both.
    """

    version: ClassVar[int] = 8  # starts that learnt nothing are not judged
    result_type: ClassVar[type[Result]] = FineTuningStartsResult
    column: ClassVar[str] = "start"

    starts: tuple[str, ...] = parameter(COMPARED_STARTS, "Starts to compare.")
    classifiers: int = parameter(
        20, "Random classifiers over the model that is not fine-tuned; they cost little.", minimum=2
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_some_of(self, "starts", COMPARED_STARTS)

    @property
    def variants(self) -> Sequence[str]:
        """The starts."""
        return self.starts

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """One run each, but all random classifiers together: the encoder reads the texts once."""
        together = f"{_FROZEN}-seed-{_FIRST_CLASSIFIER}"
        named = super().parts(shape, corpus)
        alone = (together if split_part(part)[0] == _FROZEN else part for part in named)
        return list(dict.fromkeys(alone))

    def trial(
        self, encoder: Encoder, corpus: Corpus, *, variant: str, seed: int, reach: Reach
    ) -> xr.Dataset:
        """Train one model and score it, or none and score it under all random classifiers."""
        from bertology.train.evaluate import baseline
        from bertology.train.starts import find_start
        from bertology.train.tuning import TuningJob

        train = self.load_train(corpus)
        if variant == _FROZEN:
            found = self._without_training(encoder, corpus, first=seed)
        else:
            start = find_start(variant)
            settings = self.settings(start, encoder.shape.hidden, seed)
            found = self._with_training(TuningJob(encoder, train, corpus, start, settings), reach)
        reach(BARS)
        return found.assign_attrs(
            task=corpus.task.name if corpus.task else corpus.name,
            train_size=len(train),
            train_fingerprint=train.fingerprint,
            **{f"constant_{m}": score for m, score in baseline(train, corpus).items()},
        )

    def _without_training(self, encoder: Encoder, corpus: Corpus, *, first: int) -> xr.Dataset:
        """Scores by classifier, which is told by its seed."""
        import xarray as xr

        from bertology.train.tuning import score_heads

        seeds = list(range(first, first + self.classifiers))
        by_seed, cut = score_heads(encoder, corpus, seeds=seeds, max_length=self.max_length)
        return xr.Dataset(
            {name: ("seed", [scores[name] for scores in by_seed]) for name in by_seed[0]},
            coords={"seed": seeds},
            attrs={"truncated": 0, "truncated_validation": cut},
        ).assign(learning_rate=math.nan)

    def _with_training(self, job: TuningJob, reach: Reach) -> xr.Dataset:
        """The scores of one model."""
        import xarray as xr

        from bertology.train.tuning import tune

        _, history = tune(job, progress=lambda step: reach(BARS * step.done // step.total))
        return xr.Dataset(
            {**history.scores, "learning_rate": job.settings.learning_rate},
            attrs={
                "truncated": history.truncated,
                "truncated_validation": history.truncated_validation,
            },
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """The paper's Table 1, with intervals, and differences between two starts.

        Claims rest on accuracy, as the paper's average of 35.9 points does, or on the first metric
        of tasks that have none or are scored by Matthews' correlation.
        """
        facts = [part.attrs for part in measured.values()]
        same_training_data(measured)
        runs = self.runs(measured)
        others = (self.column, "seed", "learning_rate")
        metrics = [str(name) for name in runs.table if name not in others]
        sizes, judged = _without_signs(runs, metrics), judged_metric(metrics)
        tables = sizes.tables(metrics, _REFERENCES, called="metric") | {"runs": runs.table}
        constant = float(runs.facts[f"constant_{judged}"])
        reasons = {
            quantity: learnt_nothing([TITLES[start]])
            for quantity, (start, _) in _CONTRASTS.items()
            if start != _RANDOM and not sizes.learnt(judged, start, constant)
        }
        return self.result(
            provenance,
            tables,
            evidence={
                quantity: found
                for quantity, found in sizes.contrasts(judged, _CONTRASTS).items()
                if quantity not in reasons
            },
            reasons=reasons,
            facts={
                **runs.facts,
                "judged": judged,
                "truncated": max(int(known["truncated"]) for known in facts),
                "epochs": self.epochs,
                "seeds": self.seeds,
                "classifiers": self.classifiers,
            },
        )


def _without_signs(runs: Runs, metrics: Sequence[str]) -> Runs:
    """Correlations by their size, of all starts alike: else the noise of signs would tell them."""
    table, limits = runs.table.copy(), {name: find_metric(name).within for name in metrics}
    for name in metrics:
        if find_metric(name).lowest < 0:
            table[name], limits[name] = table[name].abs(), (0.0, limits[name][1])
    return replace(runs, table=table, limits=limits, units={_FROZEN: "random classifiers"})
