"""Layer restoring: which layers of a fine-tuned model need what fine-tuning gave them?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.errors import InterruptedRunError
from bertology.metrics import judged_metric
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.scored_runs import ScoredRuns, answered
from bertology.studies.designs.task_trials import BARS, TaskTrials, same_training_data
from bertology.studies.designs.trials import reaching, split_part
from bertology.studies.study import Context
from bertology.studies.training.layer_restoring.restored_layers import (
    WHOLE,
    RestoredLayers,
    asked_changes,
)
from bertology.studies.training.layer_restoring.results import LayerRestoringResult

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

_TRAINED = 0.7  # of the work, about


@dataclass(frozen=True)
class LayerRestoring(TaskTrials):
    """Which layers of a fine-tuned model need what fine-tuning gave them?

    Method: the model is fine-tuned once for each seed. Then layers are set back to the weights that
    they had before, in memory: one by one; all layers from the lowest up to one; all from one up to
    the highest; the embeddings; and thirds of the layers. What is set back is compared with the
    whole fine-tuned model on the same examples, paired by seed; its loss has an interval over
    seeds and examples together, in tables of layers wide enough for all layers. Beside it stand
    layers that are drawn anew (what a layer is worth at all), layers half-way between before and
    after, and the whole encoder at four points of that way. The pooler and the classifier stay
    fine-tuned. How far fine-tuning moved the weights of a layer is told beside them.

    Claims rest on accuracy (correlation for regressions and CoLA), and on the lowest and the
    highest third of the layers. They are judged where the whole models, over seeds and examples,
    are surely more than five points better than a constant answer, and none collapsed: who has less
    to lose than the margin of a claim cannot lose dramatically.

    Source: A Primer in BERTology (TACL 2020), section 5.2; Hao et al. 2019. Limits: layers above
    were trained with what is set back below them, and get states that they never saw; so a loss
    tells that a layer's change is used, and no loss does not tell that it learnt nothing. Upper
    layers are nearer to the classifier, which stays.
    """

    trains_models: ClassVar[bool] = True
    result_type: ClassVar[type[Result]] = LayerRestoringResult
    column: ClassVar[str] = "change"
    version: ClassVar[int] = 3  # judged where more can be lost than the margin

    @property
    def variants(self) -> Sequence[str]:
        """One; runs differ in their seed only."""
        return ["fine-tuned"]

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """Layers must have weights of their own, and there must be no others."""
        from bertology.model.weight_depths import weight_depths

        super().check(encoder, corpus)
        weight_depths(encoder)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Fine-tune one model, and score it with every change."""
        from bertology.train.encoded import encode_once, task_of
        from bertology.train.evaluate import predict
        from bertology.train.fit import row_limit
        from bertology.train.iterative_pruning import tuned_encoder
        from bertology.train.restoring import Restorer
        from bertology.train.starts import STARTS
        from bertology.train.tuning import TuningJob

        _, seed = split_part(part)
        train, start, reach = self.load_train(corpus), STARTS["pretrained"], reaching(context)
        job = TuningJob(
            encoder, train, corpus, start, self.settings(start, encoder.shape.hidden, seed)
        )
        try:
            tuned = tuned_encoder(
                job,
                context.trained,
                progress=lambda step: reach(int(_TRAINED * BARS * step.done / step.total)),
            )
        except InterruptedRunError:
            raise KeyboardInterrupt from None  # the session knows what is kept
        model, task, tokenizer = tuned.model, task_of(corpus), encoder.tokenizer
        unseen = encode_once(corpus, tokenizer, row_limit(model, tokenizer, self.max_length))
        said: dict[str, Any] = {WHOLE: predict(model, unseen, task)}
        restorer, changes = Restorer(encoder, tuned), asked_changes(encoder.shape.layers)
        for at, change in enumerate(changes, 1):
            with restorer.changed(change, seed=seed):
                said[change.name] = predict(model, unseen, task)
            reach(int(BARS * (_TRAINED + (1 - _TRAINED) * at / len(changes))))
        reach(BARS)
        return answered(said, corpus, train, classes=int(task.kind != "regression")).assign(
            moved=("layer", restorer.moved())
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Losses by layer and by part, with intervals."""
        same_training_data(measured)
        facts = next(iter(measured.values())).attrs
        metrics = str(facts["metrics"]).split()
        judged = judged_metric(metrics)
        runs = ScoredRuns.read(measured, self.level)
        moved = np.mean([part["moved"].to_numpy() for part in measured.values()], axis=0)
        found = RestoredLayers(runs, judged, moved)
        collapsed = int(runs.collapsed(WHOLE).sum())
        evidence, reasons = found.evidence(), {}
        if why := found.unjudged(classes=bool(facts["classes"])):
            evidence, reasons = {}, dict.fromkeys(evidence, f"not judged: {why}")
        return self.result(
            provenance,
            {
                "layers": found.layers(),
                "parts": found.parts(),
                "runs": runs.runs(self.column, metrics),
            },
            evidence=evidence,
            reasons=reasons,
            facts={
                "task": facts["task"],
                "judged": judged,
                "train_size": int(facts["train_size"]),
                "examples": runs.labels.size,
                "seeds": len(runs.predictions[WHOLE]),
                "epochs": self.epochs,
                "third": found.third,
                "collapsed": collapsed,
            },
        )
