"""A pruned model as a folder: scored once on held-out data, timed, recorded, with a card."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from bertology.data.corpus import Corpus
from bertology.errors import ModelError
from bertology.metrics import find_metric
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import is_pruned
from bertology.results.provenance import library_versions
from bertology.stats.intervals import Estimate
from bertology.stats.paired import paired_bootstrap
from bertology.stats.score_interval import score_interval
from bertology.train.answers import Answers, answer, encode_for
from bertology.train.checkpoint import (
    SCHEMA,
    check_folder,
    described,
    read_record,
    save_checkpoint,
)
from bertology.train.encoded import task_of
from bertology.train.finetune import check_fit
from bertology.train.history import History, OnStep
from bertology.train.memory import Memory
from bertology.train.prune import Cut, PruneSettings, Shrunk, Tell, shrink
from bertology.train.prune_data import PruneData, learned_texts, split_training
from bertology.train.prune_progress import Progress
from bertology.train.pruned_card import cut_text, pruned_card
from bertology.train.records import TrainingRecord
from bertology.train.recovery import recover
from bertology.train.speed import Speed, measure_latencies, measure_speeds

__all__ = ["PruneWatch", "Pruned", "prune_to"]

_UNFINISHED = "-unfinished"


@dataclass(frozen=True)
class Pruned:
    """A smaller model, and what it cost: losses are in points of the task's main metric."""

    folder: Path
    model: str  # the one that was given
    metric: str
    cut: Cut
    before: Estimate  # scores on the held-out data
    after: Estimate
    loss: Estimate  # paired over the same examples; below 0 is a gain
    max_loss: float
    speeds: tuple[Speed, Speed]
    latencies: tuple[float, float]  # milliseconds for one text alone
    parameters: tuple[int, int]
    megabytes: tuple[float, float]  # of the weights
    recovered: int  # epochs of training after the cut
    plain: bool  # whether plain transformers loads it

    @property
    def times_as_fast(self) -> float:
        """How many times as many examples a second."""
        before, after = self.speeds
        return after.examples_per_second / before.examples_per_second

    @property
    def sentence(self) -> str:
        """The answer in two sentences."""
        fewer = 100 * (1 - self.parameters[1] / self.parameters[0])
        change = "loss" if self.loss.value >= 0 else "gain"
        epochs = f"{self.recovered} epoch{'s' * (self.recovered > 1)}"
        trained = f", after {epochs} of training," if self.recovered else ""
        return (
            f"Without {cut_text(self.cut)} the model is {fewer:.0f} % smaller and "
            f"{self.times_as_fast:.2f} times as fast. On {self.loss.n:,} held-out examples"
            f"{trained} {self.metric} is {self.after.value:.3f}; before the cut it was "
            f"{self.before.value:.3f}: a {change} of {abs(self.loss.value):.1f} points "
            f"({self.certainty})."
        )

    @property
    def certainty(self) -> str:
        """The interval of the loss, and whether it is surely as small as was asked for."""
        sure = "surely" if self.loss.high <= self.max_loss else "not surely"
        return (
            f"95 % interval {self.loss.low:.1f} to {self.loss.high:.1f}; {sure} at most "
            f"{self.max_loss:g}"
        )


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
    check_fit(encoder.model, task_of(train), held_out)
    encode_for(encoder, held_out)  # refused before any work, if at all
    data = split_training(
        train,
        held_out,
        seed=chosen.seed,
        limit=chosen.limit,
        learned=learned_texts(encoder.name),
    )
    told.tell(_uses(data, held_out))
    identity = _identity(encoder, train, held_out, chosen)
    kept = Progress(place.with_name(f"{place.name}{_UNFINISHED}.json"), identity)
    memory = Memory(place.with_name(f"{place.name}{_UNFINISHED}"), identity)
    if force and not memory.begun:
        memory.forget()
    shrunk = shrink(
        encoder,
        data.ranking,
        data.selection,
        chosen,
        begun=kept.found(),
        keep=kept.keep,
        tell=told.tell,
    )
    history = _recovered(shrunk, data, chosen, memory, told)
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
    kept.forget()
    memory.forget()
    return found


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
        before=score_interval(metric, before.statistics(metric)),
        after=score_interval(metric, after.statistics(metric)),
        loss=_loss(before, after),
        max_loss=settings.max_loss,
        speeds=(speeds[0], speeds[1]),
        latencies=(latencies[0], latencies[1]),
        parameters=(_size(encoder), _size(shrunk.encoder)),
        megabytes=(_megabytes(encoder), _megabytes(shrunk.encoder)),
        recovered=len(history.epochs) if history else 0,
        plain=not is_pruned(shrunk.encoder.config),
    )
    scores = {
        name: find_metric(name).score(after.predictions, after.labels)
        for name in after.task.metrics
    }
    return found, scores


def _uses(data: PruneData, held_out: Corpus) -> str:
    """What each example is for, in words."""
    known = "the model may have been trained on them" if data.seen else "it was not trained on them"
    return (
        f"{len(data.ranking):,} training examples rank parts, {len(data.selection):,} others say "
        f"how much may go ({known}), {len(held_out):,} held-out ones are scored at the end"
    )


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
    return recover(
        shrunk.encoder,
        training,
        data.selection,
        recipe,
        memory=memory,
        progress=watch.progress,
    )


def _size(encoder: Encoder) -> int:
    return sum(p.numel() for p in encoder.model.parameters())


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
            "ranking": described(data.ranking),
            "selection": described(data.selection),
            "seen": data.seen,
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


def _bounds(estimate: Estimate) -> dict[str, float]:
    return {name: getattr(estimate, name) for name in ("value", "low", "high", "n", "level")}
