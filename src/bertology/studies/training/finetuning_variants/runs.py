"""One run of one way to fine-tune: the job, its training that a kill does not undo, its answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.arrays import Floats
from bertology.errors import DataError, ParameterError
from bertology.studies.designs.task_trials import BARS
from bertology.studies.designs.trials import Reach

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.history import Step
    from bertology.train.tuning import TuningJob


# Which ways to fine-tune are compared: variants by name, and ways as they are written.
#
# A variant is a name of `VARIANTS`, which fits its way to the size of the model, or ways as
# `bertology finetune --way` takes them, several of them joined by `+`:
# `mixout:share=0.9+layer_rates:decay=0.95`. Names may be joined, too:
# `early-stopping+adapters:size=64`.


@dataclass(frozen=True)
class Variant:
    """A way to fine-tune, or several, by their texts."""

    title: str
    ways: tuple[str, ...] = ()
    start: str = "pretrained"
    patience: int | None = None  # epochs without a better score; None for no early stopping

    def filled(self, **values: object) -> Variant:
        """With numbers in place of {names}, as they suit the model."""
        from bertology.train.written_options import filled

        def fill(text: str) -> str:
            return filled(text, values, parameter="ways", of="FinetuningVariants")

        return replace(self, ways=tuple(fill(text) for text in self.ways))


PLAIN, INTERMEDIATE = "plain", "intermediate"
# What ways say of a model with so many layers: {half} of them, {top} a quarter.
VARIANTS: dict[str, Variant] = {
    PLAIN: Variant("plain fine-tuning"),
    "layer-mix": Variant("learnt mix of all layers", ("layer_mix",)),
    "joined-layers": Variant("last four layers joined", ("layer_choice:which=last-4,how=joined",)),
    "chosen-layers": Variant(
        "mean of the last four layers", ("layer_choice:which=last-4,how=mean",)
    ),
    "features": Variant("head on frozen features", start="frozen-features"),
    "frozen-bottom": Variant("lower half frozen", ("frozen_bottom:layers={half}",)),
    "top-again": Variant("top quarter drawn anew", ("top_again:layers={top}",)),
    "layer-rates": Variant("rates falling by layer", ("layer_rates:decay=0.9",)),
    "bias-only": Variant("bias terms only", ("bias_only",)),
    "adapters": Variant("adapters", ("adapters:size=16",)),
    "lora": Variant("LoRA", ("lora:rank=8",)),
    "mixout": Variant("mixout", ("mixout:share=0.7",)),
    "adversarial": Variant("adversarial embeddings", ("adversarial:steps=2",)),
    "substitution": Variant("tokens substituted", ("substitution:share=0.1",)),
    "masked-lm": Variant("more masked-LM first", ("masked_lm:epochs=1",)),
    INTERMEDIATE: Variant(
        "another task first", ("intermediate:task={task},split={split},limit={limit}",)
    ),
    "early-stopping": Variant("early stopping", patience=1),
}
TITLES = {name: variant.title for name, variant in VARIANTS.items()}
NAMED = tuple(name for name in VARIANTS if name not in (PLAIN, INTERMEDIATE))
"""Names that may be asked for; another task must be named by an option of its own."""
# LoRA needs another package; the mean of the last layers came later.
USUAL = tuple(name for name in NAMED if name not in ("lora", "chosen-layers"))


def chosen_variants(given: Sequence[str]) -> dict[str, Variant]:
    """Variants by their names, in the order given; what ways say is read later, with the model.

    The text of a variant that has no name of its own is its title.
    """
    from bertology.train.written_options import plain_name, separated

    texts = [_dashed(text) for text in separated(given)]
    names = [text if text in NAMED else plain_name(text) for text in texts]
    taken = [name for name in names if name in (PLAIN, INTERMEDIATE)]
    if taken or len(set(names)) < len(names):
        must = (
            f"be some of {', '.join(NAMED)}, or ways of `bertology finetune` (several joined by "
            "`+`), none twice; another task is named by --intermediate"
        )
        raise ParameterError("ways", "FinetuningVariants", must, taken or list(given))
    return {name: _variant(text) for name, text in zip(names, texts, strict=True)}


def _dashed(text: str) -> str:
    """Names of variants may be written with either line, as those of ways."""
    name = text.replace("_", "-")
    return name if name in (*NAMED, PLAIN, INTERMEDIATE) else text


def _variant(text: str) -> Variant:
    from bertology.train.written_options import apart

    if text in NAMED:
        return VARIANTS[text]
    parts = [
        VARIANTS[n] if (n := _dashed(one)) in NAMED else Variant(one, (one,)) for one in apart(text)
    ]
    return Variant(
        text,
        tuple(way for part in parts for way in part.ways),
        next((part.start for part in parts if part.start != "pretrained"), "pretrained"),
        next((part.patience for part in parts if part.patience is not None), None),
    )


_MODELS, _UNFINISHED = "models", "unfinished-models"


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
