"""A pruned model as a folder: scored once on held-out data, timed, recorded, with a card."""

from __future__ import annotations

import json
import zlib
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, ModelError
from bertology.metrics import find_metric
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import is_plain
from bertology.model.weight_masks import WeightMask, survival, weights_held_at_zero
from bertology.results.comparison import beats_constant_answer
from bertology.results.provenance import library_versions
from bertology.stats.intervals import Estimate
from bertology.stats.paired import paired_bootstrap, score_interval
from bertology.train.answers import Answers, answer, encode_for
from bertology.train.checkpoint import (
    SCHEMA,
    check_folder,
    described,
    read_record,
    save_checkpoint,
)
from bertology.train.encoded import task_of
from bertology.train.fit import check_fit
from bertology.train.history import History, OnStep
from bertology.train.memory import Memory
from bertology.train.prune import Cut, Shrunk, shrink
from bertology.train.prune_data import PruneData, learned_texts, split_training
from bertology.train.prune_judge import Tell
from bertology.train.prune_progress import Unfinished
from bertology.train.prune_settings import PruneSettings
from bertology.train.prune_weights import shrink_by_magnitude, shrink_by_movement, weights_text
from bertology.train.pruned_card import cut_text, pruned_card
from bertology.train.records import TrainingRecord
from bertology.train.recovery import recover
from bertology.train.speed import Speed, measure_latencies, measure_speeds


@dataclass(frozen=True)
class Pruned:
    """A smaller model, and what it cost: losses are in points of the task's main metric."""

    folder: Path
    model: str  # the one that was given
    metric: str
    cut: Cut
    mask: WeightMask | None  # of single weights, where these went
    before: Estimate  # scores on the held-out data
    after: Estimate
    loss: Estimate  # paired over the same examples; below 0 is a gain
    max_loss: float | None  # what was asked for, in points; None where nothing was
    method: str
    speeds: tuple[Speed, Speed]
    latencies: tuple[float, float]  # milliseconds for one text alone
    parameters: tuple[int, int]
    megabytes: tuple[float, float]  # of the weights
    packed: tuple[float, float] | None  # megabytes with gzip, where weights are zeros
    recovered: int  # epochs of training, in which weights went or after the cut
    knows: bool  # whether it still surely beats a constant answer
    plain: bool  # whether plain transformers loads it

    @property
    def times_as_fast(self) -> float:
        """How many times as many examples a second."""
        before, after = self.speeds
        return after.examples_per_second / before.examples_per_second

    @property
    def sentence(self) -> str:
        """The answer in a few sentences."""
        change = "loss" if self.loss.value >= 0 else "gain"
        epochs = f"{self.recovered} epoch{'s' * (self.recovered > 1)}"
        trained = f", after {epochs} of training," if self.recovered else ""
        return (
            f"{self.gain} On {self.loss.n:,} held-out examples"
            f"{trained} {self.metric} is {self.after.value:.3f}; before the cut it was "
            f"{self.before.value:.3f}: a {change} of {abs(self.loss.value):.1f} points "
            f"({self.certainty})."
            + ("" if self.knows else " It is not surely better than a constant answer any more.")
        )

    @property
    def gain(self) -> str:
        """What is gone and what that saves, in one sentence."""
        if self.mask is None:
            fewer = 100 * (1 - self.parameters[1] / self.parameters[0])
            return (
                f"Without {cut_text(self.cut)} the model is {fewer:.0f} % smaller and "
                f"{self.times_as_fast:.2f} times as fast."
            )
        assert self.packed is not None
        return (
            f"Without {weights_text(self.mask)}, which are zeros now, the file is as large as "
            f"before ({self.megabytes[1]:.1f} MB; packed with gzip {self.packed[1]:.1f} MB, before "
            f"{self.packed[0]:.1f} MB), and the model is {self.times_as_fast:.2f} times as fast: "
            "zeros save no time where matrices are multiplied as a whole."
        )

    @property
    def certainty(self) -> str:
        """The interval of the loss, and whether it is surely as small as was asked for."""
        interval = f"95 % interval {self.loss.low:.1f} to {self.loss.high:.1f}"
        if self.max_loss is None:
            return interval
        sure = "surely" if self.loss.high <= self.max_loss else "not surely"
        return f"{interval}; {sure} at most {self.max_loss:.3g}"


@dataclass(frozen=True)
class PruneWatch:
    """Who is told what, while a model is pruned."""

    tell: Tell = lambda text: None
    progress: OnStep = lambda step: None  # of the training after the cut
    command: str | None = None  # which makes the model again


def prune_to(
    folder: str | Path,
    encoder: Encoder,
    train: Corpus,
    held_out: Corpus,
    settings: PruneSettings | None = None,
    *,
    force: bool = False,
    watch: PruneWatch | None = None,
) -> Pruned:
    """Shrink a model on training data, score it once on held-out data, and save it to `folder`.

    A run that was stopped goes on where it was: after the last cut, or the last epoch of the
    training that may follow.
    """
    chosen, told = settings or PruneSettings(), watch or PruneWatch()
    place = check_folder(folder)
    if encoder.head != "classification":
        raise CapabilityError(
            f"{encoder.name!r} was loaded without a head for a task.",
            hint='Fine-tune it, and load it with head="classification".',
        )
    check_fit(encoder.model, task_of(train), held_out)
    encode_for(encoder, held_out)  # refused before any work, if at all
    data = split_training(
        train,
        held_out,
        seed=chosen.seed,
        limit=chosen.limit,
        learned=learned_texts(encoder.name),
        method=chosen.method,
    )
    told.tell(_uses(data, held_out))
    unfinished = Unfinished(place, _identity(encoder, train, held_out, chosen))
    if force:
        unfinished.forget_others()
    shrunk = _shrunk(encoder, data, chosen, unfinished, told)
    history = shrunk.history or _recovered(shrunk, data, chosen, unfinished.memory(), told)
    found, scores = _measured(place, encoder, shrunk, held_out, chosen, history)
    record = _record(found, encoder, shrunk, chosen, data, held_out)
    record["scores"] = scores
    if history is not None:
        record["history"] = [epoch.as_record() for epoch in history.epochs]
    if told.command:
        record["command"] = told.command
    save_checkpoint(
        place,
        shrunk.encoder.model,
        encoder.tokenizer,
        record=record,
        card=pruned_card(found, record, name=place.name),
    )
    unfinished.forget()
    return found


def _shrunk(
    encoder: Encoder,
    data: PruneData,
    settings: PruneSettings,
    unfinished: Unfinished,
    watch: PruneWatch,
) -> Shrunk:
    """The smaller model, by the method that was asked for."""
    if settings.method == "movement":
        return shrink_by_movement(
            encoder,
            data,
            settings,
            unfinished=unfinished,
            tell=watch.tell,
            progress=watch.progress,
        )
    if settings.method == "magnitude":
        return shrink_by_magnitude(
            encoder, data.selection, settings, unfinished=unfinished, tell=watch.tell
        )
    assert data.ranking is not None
    steps = unfinished.steps
    return shrink(
        encoder,
        data.ranking,
        data.selection,
        settings,
        begun=steps.found(),
        keep=steps.keep,
        tell=watch.tell,
    )


def _measured(
    place: Path,
    encoder: Encoder,
    shrunk: Shrunk,
    held_out: Corpus,
    settings: PruneSettings,
    history: History | None,
) -> tuple[Pruned, dict[str, float]]:
    """Scores and speeds of both models on the held-out data, and all scores of the smaller one."""
    encoded = encode_for(encoder, held_out)
    both = (encoder, shrunk.encoder)
    before, after = (
        answer(one, encoded, task_of(held_out), batch_tokens=settings.batch_tokens) for one in both
    )
    speeds = measure_speeds(both, encoded, batch_tokens=settings.batch_tokens)
    latencies = measure_latencies(both, encoded)
    metric = before.metric
    found = Pruned(
        folder=place,
        model=encoder.name,
        metric=metric.name,
        cut=shrunk.cut,
        mask=shrunk.mask,
        before=score_interval(metric, before.statistics(metric)),
        after=score_interval(metric, after.statistics(metric)),
        loss=_loss(before, after),
        max_loss=settings.final_loss(before.score),
        method=settings.method,
        speeds=(speeds[0], speeds[1]),
        latencies=(latencies[0], latencies[1]),
        parameters=(encoder.parameters, shrunk.encoder.parameters),
        megabytes=(_megabytes(encoder), _megabytes(shrunk.encoder)),
        packed=None if shrunk.mask is None else (_packed(encoder), _packed(shrunk.encoder)),
        recovered=len(history.epochs) if history else 0,
        knows=beats_constant_answer(
            after.predictions,
            after.labels,
            classes=after.task.kind != "regression",
            metric=metric.name,
        ),
        plain=is_plain(shrunk.encoder.config),
    )
    scores = {
        name: find_metric(name).score(after.predictions, after.labels)
        for name in after.task.metrics
    }
    return found, scores


def _uses(data: PruneData, held_out: Corpus) -> str:
    """What each example is for, in words."""
    known = "the model may have been trained on them" if data.seen else "it was not trained on them"
    deciding = f"{len(data.selection):,} training examples say how much may go"
    if data.ranking is not None:
        deciding = (
            f"{len(data.ranking):,} training examples rank parts, {len(data.selection):,} others "
            "say how much may go"
        )
    return f"{deciding} ({known}), {len(held_out):,} held-out ones are scored at the end"


def _identity(encoder: Encoder, train: Corpus, held_out: Corpus, settings: PruneSettings) -> str:
    """A hash of what decides the model; names, paths, devices and batches are left out."""
    asked = asdict(settings)
    del asked["batch_tokens"]
    data = [train.fingerprint, held_out.fingerprint]
    plain = json.dumps([encoder.fingerprint, data, asked], sort_keys=True)
    return sha256(plain.encode()).hexdigest()[:16]


def _recovered(
    shrunk: Shrunk, data: PruneData, settings: PruneSettings, memory: Memory, watch: PruneWatch
) -> History | None:
    recovery = settings.recovery
    if recovery is None:
        return None
    training = data.training.take(recovery.limit, seed=settings.seed)
    recipe = recovery.settings(shrunk.encoder, settings.seed)
    if done := memory.found():
        watch.tell(f"continuing the training after epoch {done} of {recipe.epochs}")
    watch.tell(f"training what is left on {len(training):,} examples")
    model, mask = shrunk.encoder.model, shrunk.mask
    with nullcontext() if mask is None else weights_held_at_zero(model, mask):
        return recover(
            shrunk.encoder,
            training,
            data.selection,
            recipe,
            memory=memory,
            progress=watch.progress,
        )


def _packed(encoder: Encoder) -> float:
    """Megabytes of the weights with gzip, at its quickest level."""
    squeeze, size = zlib.compressobj(level=1), 0
    for weight in encoder.model.parameters():
        size += len(squeeze.compress(weight.detach().cpu().contiguous().view(torch.uint8).numpy()))
    return (size + len(squeeze.flush())) / 1e6


def _megabytes(encoder: Encoder) -> float:
    held: int = sum(p.numel() * p.element_size() for p in encoder.model.parameters())
    return held / 1e6


def _loss(before: Answers, after: Answers) -> Estimate:
    """The loss in points. Its bounds allow for changed answers that were not seen."""
    metric = before.metric
    found = paired_bootstrap(metric, before.statistics(metric), after.statistics(metric)[None])
    value, low, high = (
        -100 * float(end[0]) + 0.0
        for end in (found.difference, found.simultaneous_high, found.simultaneous_low)
    )
    return Estimate(value, low, high, found.n, found.level)


def _record(
    found: Pruned,
    encoder: Encoder,
    shrunk: Shrunk,
    settings: PruneSettings,
    data: PruneData,
    held_out: Corpus,
) -> TrainingRecord:
    record: TrainingRecord = {
        "schema": SCHEMA,
        "method": "prune",
        "task": task_of(held_out).name,
        "pruned_from": {"name": encoder.name, "fingerprint": encoder.fingerprint},
        "validation": described(held_out),
        "pruning": {
            "settings": asdict(settings),
            "cut": asdict(found.cut),
            "ranking": None if data.ranking is None else described(data.ranking),
            "selection": described(data.selection),
            "training": min(len(data.training), settings.learn_limit or len(data.training)),
            "seen": data.seen,
            "allowed": shrunk.allowed,
            "selection_scores": [shrunk.intact, shrunk.score],
            "tried": shrunk.tried,
            "metric": found.metric,
            "before": _bounds(found.before),
            "after": _bounds(found.after),
            "loss_in_points": _bounds(found.loss),
            "parameters": list(found.parameters),
            "megabytes": list(found.megabytes),
            "speeds": [asdict(speed) for speed in found.speeds],
            "latencies_in_ms": list(found.latencies),
            "recovered": found.recovered,
            **_weights_record(found, encoder),
        },
        "versions": library_versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        earlier = read_record(Path(encoder.name).expanduser()) or {}
    except ModelError:
        earlier = {}  # a damaged record is no reason to refuse the model
    if "base" in earlier:  # what it was fine-tuned from is still so
        record["base"] = earlier["base"]
    return record


def _weights_record(found: Pruned, encoder: Encoder) -> dict[str, Any]:
    """What is said of single weights, where these went."""
    if found.mask is None or found.packed is None:
        return {}
    kinds: dict[str, list[int]] = {}
    for row in survival(encoder, found.mask):
        sums = kinds.setdefault(row.kind, [0, 0])
        sums[0] += row.kept
        sums[1] += row.size
    return {
        "weights": {"kept": found.mask.kept, "of": found.mask.size, "by_kind": kinds},
        "mask": found.mask.digest,
        "packed_megabytes": list(found.packed),
    }


def _bounds(estimate: Estimate) -> dict[str, float]:
    return {name: getattr(estimate, name) for name in ("value", "low", "high", "n", "level")}
