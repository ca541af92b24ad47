"""One run of one way to fine-tune: the job, its training that a kill does not undo, its answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.errors import DataError
from bertology.studies.designs.task_trials import BARS
from bertology.studies.designs.trials import Reach
from bertology.studies.training.finetuning_variants.choice import Variant

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.history import Step
    from bertology.train.tuning import TuningJob

_MODELS, _UNFINISHED = "models", "unfinished-models"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class VariantRun:
    """What is trained."""

    variant: Variant
    job: TuningJob
    scored: Corpus  # what the model answers; with early stopping, other data decide

    @classmethod
    def of(
        cls,
        encoder: Encoder,
        train: Corpus,
        corpus: Corpus,
        variant: Variant,
        settings: Callable[..., FinetuneSettings],
    ) -> VariantRun:
        """`settings` makes them of a start and ways.

        With early stopping, a part of the training data is left out of it and decides when to
        stop: what is scored must not.
        """
        from bertology.train.iterative_pruning import split_deciding
        from bertology.train.starts import find_start
        from bertology.train.tuning import TuningJob
        from bertology.train.ways import read_ways

        start, deciding = find_start(variant.start), corpus
        ways = read_ways(variant.ways, start=variant.start)
        chosen = settings(start=start, ways=ways)
        if variant.patience is not None:
            try:
                train, deciding = split_deciding(train, corpus)
            except DataError as error:
                raise DataError(
                    f"Early stopping needs data of its own. {error.problem}",
                    hint="Learn from more examples, or leave early-stopping out of --ways.",
                ) from error
            chosen = replace(chosen, early_stopping=variant.patience)
        return cls(variant, TuningJob(encoder, train, deciding, start, chosen), corpus)

    def check(self) -> None:
        """Refuse what does not fit the model or the data, before any work; stages are not tried."""
        from bertology.train.tuning import try_job

        try_job(self.job, self.scored)


@dataclass(frozen=True)
class Trained:
    """A model, and what it cost."""

    job: TuningJob
    model: Any
    weights: int  # that were trained
    seconds: float
    device: str  # that it was trained on; a model that was kept may be of another machine

    @property
    def size(self) -> int:
        """How many weights the model has."""
        return int(self.model.num_parameters())

    def answers(self, corpus: Corpus, *, noise: float) -> tuple[Floats, Floats]:
        """What it says of each example, and of the same with other tokens in it."""
        from bertology.train.encoded import encode_once, task_of
        from bertology.train.evaluate import predict
        from bertology.train.fit import row_limit
        from bertology.train.token_rows import with_noise

        tokens = self.job.encoder.tokenizer
        limit = row_limit(self.model, tokens, self.job.settings.max_length)
        rows, task = encode_once(corpus, tokens, limit), task_of(corpus)
        noisy = with_noise(rows, noise, seed=0)
        return predict(self.model, rows, task), predict(self.model, noisy, task)


def train_variant(run: VariantRun, folder: Path | None, *, keep: bool, reach: Reach) -> Trained:
    """Train it, or go on where it was killed; with `keep`, a model that is there is not made again.

    A model is kept only where other studies may want it: all of them would fill a disk.
    """
    from bertology.model.encoder import Encoder
    from bertology.train.memory import Memory
    from bertology.train.tuning import device_name, make_tuned, tune

    job = run.job

    def tell(step: Step) -> None:
        reach((BARS - 1) * step.done // step.total)

    if folder is not None and keep:
        place = folder / _MODELS / job.identity
        record = make_tuned(place, job, progress=tell)
        found = Encoder.load(str(place), head="classification", device=str(job.encoder.device))
        # Models that an earlier version made did not tell these two.
        weights = record.get("trained_parameters") or found.model.num_parameters()
        epochs = sum(epoch.get("seconds", 0.0) for epoch in record["history"])
        seconds = float(record.get("seconds", epochs))
        return Trained(job, found.model, weights, seconds, str(record.get("device", "")))
    memory = None
    if folder is not None:
        memory = Memory(folder / _UNFINISHED / job.identity, job.identity)
    model, history = tune(job, progress=tell, memory=memory)
    if memory is not None:
        memory.forget()
    return Trained(job, model, history.trained, history.seconds, device_name(job.encoder.device))
