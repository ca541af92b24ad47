"""Seed variance: how much do fine-tuned scores depend on new weights, and on the order of data?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.errors import JobError
from bertology.metrics import judged_metric
from bertology.parameters import parameter
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.task_trials import BARS, TaskTrials, same_training_data
from bertology.studies.designs.trials import Reach, split_part
from bertology.studies.training.seed_variance.results import SeedVarianceResult
from bertology.studies.training.seed_variance.scores import SeedRuns

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

_EARLY = 1 / 3  # of the training, where claims on stopping are judged
_NOT_LEARNT = (
    "not judged: no run is surely better than always giving the most frequent answer, so there is "
    "no score that seeds could change"
)
_FEW = "not judged: fewer than three seeds of each kind"


@dataclass(frozen=True)
class SeedVariance(TaskTrials):
    """How much do fine-tuned scores depend on new weights, and on the order of the data?

    Method: the model is fine-tuned once for each seed of new weights (the classifier, and the
    pooler where the encoder has none) with each seed of the order, which also decides dropout. All
    runs are scored on the same examples, several times during training. Told are: how far scores
    spread by weights, by order and by the rest, from an analysis of variance of the two-way design,
    without the luck of the examples, which is told apart; the expected best of k runs, on the
    examples that pick it and on others; and how early poor runs can be told: the rank correlation
    of scores during training with the final ones on other examples, and what is lost if the poorer
    half of the runs is stopped there. A run has failed if its answers are not surely better than
    always giving the most frequent one, or if its loss was no longer a number.

    Intervals of spreads are over seeds of both kinds and over examples, for normal effects
    (modified large-sample method); others are jackknifed. Claims rest on accuracy (correlation for
    regressions and CoLA), and on a third of the training.

    Source: A Primer in BERTology (TACL 2020), section 6.3; Dodge et al. 2020. Limits: where some
    runs fail, scores have two heights and are not normal: a variance then is mostly that of
    failing. Few seeds tell a variance badly, whatever its size.
    """

    version: ClassVar[int] = 2
    trains_models: ClassVar[bool] = True
    result_type: ClassVar[type[Result]] = SeedVarianceResult
    column: ClassVar[str] = "order"

    seeds: int = parameter(
        5, "Seeds of new weights; each is run with each order. Fewer than 3 give no verdicts.",
        minimum=2,
    )  # fmt: skip
    orders: int = parameter(5, "Seeds of the order of examples, and of dropout.", minimum=2)
    looks: int = parameter(
        9, "How often a run is scored during its training, at equal distances.", minimum=1
    )
    deals: int = parameter(
        10,
        "Times that examples are dealt into those that pick and those that score.",
        minimum=1,
        concludes=True,
    )

    @property
    def variants(self) -> Sequence[str]:
        """The orders."""
        return [f"order-{j}" for j in range(self.orders)]

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares of the training at which runs are scored."""
        return tuple((at + 1) / self.looks for at in range(self.looks))

    def trial(
        self, encoder: Encoder, corpus: Corpus, *, variant: str, seed: int, reach: Reach
    ) -> xr.Dataset:
        """Train one model, and keep what it says of each example at each look."""
        import xarray as xr

        from bertology.train.encoded import task_of
        from bertology.train.evaluate import constant_answer
        from bertology.train.history import Watch
        from bertology.train.starts import STARTS
        from bertology.train.tuning import TuningJob, tune

        train, start = self.load_train(corpus), STARTS["pretrained"]
        order = int(variant.rpartition("-")[2])
        settings = replace(self.settings(start, encoder.shape.hidden, order), weights_seed=seed)
        seen: dict[int, NDArray[np.float64]] = {}
        watch = Watch(self.shares, seen.__setitem__)
        total = self.epochs * -(-len(train) // self.batch_size)
        diverged = False
        try:
            tune(
                TuningJob(encoder, train, corpus, start, settings),
                progress=lambda step: reach(BARS * step.done // step.total),
                watch=watch,
            )
        except JobError:  # the loss is no longer a number
            diverged = True
            seen.pop(total, None)
        constant = np.full(len(corpus), constant_answer(train))
        said = np.stack([seen.get(step, constant) for step in watch.steps(total)])
        said = np.where(np.isfinite(said), said, constant)
        reach(BARS)
        task = task_of(corpus)
        return xr.Dataset(
            {
                "predictions": (("share", "example"), said),
                "labels": ("example", np.asarray(corpus.labels, dtype=np.float64)),
                "diverged": int(diverged),
            },
            {"share": list(self.shares)},
            {
                "task": task.name,
                "kind": task.kind,
                "metrics": " ".join(task.metrics),
                "train_size": len(train),
                "train_fingerprint": train.fingerprint,
                "constant": float(constant[0]),
            },
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Components, the best of k, and how early poor runs are told."""
        same_training_data(measured)
        facts = next(iter(measured.values())).attrs
        judged = judged_metric(str(facts["metrics"]).split())
        by_place = {(split_part(p)[1], _order(p)): part for p, part in measured.items()}
        runs = SeedRuns.read(by_place, judged, level=self.level, deals=self.deals)
        early = runs.nearest(_EARLY)
        components, stopped = runs.components(), runs.stopping()
        evidence = {
            **runs.spreads(),
            "best_gain": runs.best.gain(runs.best.most) if runs.best.most > 1 else None,
            "early_rank_correlation": runs.correlation(early),
            "stopping_loss": stopped[early].loss if stopped else None,
        }
        reasons = {name: _FEW for name, found in evidence.items() if found is None}
        if runs.failed.all():
            reasons, evidence = dict.fromkeys(evidence, _NOT_LEARNT), {}
        return self.result(
            provenance,
            {
                "components": components,
                "best": runs.best_table(),
                "stopping": runs.stopping_table(stopped),
                "runs": runs.table(str(facts["metrics"]).split()),
            },
            evidence=evidence,
            reasons=reasons,
            facts={
                "task": facts["task"],
                "judged": judged,
                "train_size": int(facts["train_size"]),
                "examples": runs.labels.size,
                "seeds": self.seeds,
                "orders": self.orders,
                "epochs": self.epochs,
                "failed": int(runs.failed.sum()),
                "diverged": int(runs.diverged.sum()),
                "constant": runs.constant_score(float(facts["constant"])),
                "early": runs.shares[early],
                "started": runs.best.started,
            },
        )


def _order(part: str) -> int:
    return int(split_part(part)[0].rpartition("-")[2])
