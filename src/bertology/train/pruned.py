"""A pruned model as a folder: scored once on held-out data, timed, recorded, with a card."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, ModelError
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import is_plain
from bertology.model.weight_masks import WeightMask, survival, weights_held_at_zero
from bertology.results.provenance import library_versions
from bertology.stats.intervals import Estimate
from bertology.stats.paired import score_interval
from bertology.train.answers import answer, encode_for
from bertology.train.checkpoint import (
    SCHEMA,
    check_folder,
    described,
    read_record,
    save_checkpoint,
)
from bertology.train.compress.measuring import points_lost
from bertology.train.encoded import task_of
from bertology.train.fit import check_fit
from bertology.train.history import History, OnStep
from bertology.train.memory import Memory
from bertology.train.model_card import LOADED_BY_TRANSFORMERS, card_head, card_table, card_versions
from bertology.train.prune import Cut, Shrunk, Unfinished, shrink
from bertology.train.prune_judge import PruneData, Tell, learned_texts, split_training
from bertology.train.prune_settings import PruneSettings
from bertology.train.prune_weights import shrink_by_magnitude, shrink_by_movement, weights_text
from bertology.train.records import TrainingRecord
from bertology.train.recovery import recover
from bertology.train.speed import Speed, measure_latencies, measure_speeds

if TYPE_CHECKING:
    from bertology.train.prune import Cut

_OURS = """\
```python
import bertology as bt

encoder = bt.load("{name}", head="classification")  # the path of this folder
model, tokenizer = encoder.model, encoder.tokenizer
```

The layers differ in size, which no config of transformers can say: transformers alone refuses
this folder. The model that `bt.load` gives is an ordinary PyTorch module; `bertology export-model`
writes it as one file that runs without this package."""


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
        loss=points_lost(before, after),
        max_loss=settings.final_loss(before.score),
        method=settings.method,
        speeds=(speeds[0], speeds[1]),
        latencies=(latencies[0], latencies[1]),
        parameters=(encoder.parameters, shrunk.encoder.parameters),
        megabytes=(_megabytes(encoder), _megabytes(shrunk.encoder)),
        packed=None if shrunk.mask is None else (_packed(encoder), _packed(shrunk.encoder)),
        recovered=len(history.epochs) if history else 0,
        knows=after.knowing,
        plain=is_plain(shrunk.encoder.config),
    )
    return found, after.scores


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
            "before": found.before.as_record(),
            "after": found.after.as_record(),
            "loss_in_points": found.loss.as_record(),
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
        earlier = read_record(encoder.name) or {}
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


def cut_text(cut: Cut) -> str:
    """`2 layers (3, 7), 14 heads and 1 MLP (0)`"""
    told = []
    for units, name in ((cut.layers, "layer"), (cut.heads, "head"), (cut.mlps, "MLP")):
        if units:
            plural = "" if len(units) == 1 else "s"
            which = "" if name == "head" else f" ({', '.join(str(i) for i in units)})"
            told.append(f"{len(units)} {name}{plural}{which}")
    return " and ".join(filter(None, [", ".join(told[:-1]), told[-1]]))


def pruned_card(found: Pruned, record: TrainingRecord, *, name: str) -> str:
    """A README.md with front matter."""
    origin = record["pruned_from"]
    lines = [
        *card_head("text-classification"),
        f"# {name}",
        "",
        f"{origin['name']} (fingerprint `{origin['fingerprint']}`), pruned for the task "
        f"{record['task']}.",
        "",
        found.sentence,
        "",
        *_numbers(found),
        *_method(found, record),
        *_command(record),
        "## How to load it",
        "",
        (LOADED_BY_TRANSFORMERS if found.plain else _OURS).format(name=name),
        "",
        *_limits(),
        *card_versions(record, "Made"),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _numbers(found: Pruned) -> Iterator[str]:
    yield from ["## Before and after", ""]
    scores = [f"{e.value:.4f} ({e.low:.4f} to {e.high:.4f})" for e in (found.before, found.after)]
    packed = [("packed with gzip", *(f"{n:,.1f} MB" for n in found.packed or ()))]
    yield from card_table(
        ("", "before", "after"),
        [
            (f"{found.metric}, 95 % interval", *scores),
            ("parameters", *(f"{n:,}" for n in found.parameters)),
            ("weights on disk and in memory", *(f"{n:,.1f} MB" for n in found.megabytes)),
            *(packed if found.packed else ()),
            ("one text alone", *(f"{t:.1f} ms" for t in found.latencies)),
            ("examples a second", *(f"{s.examples_per_second:,.0f}" for s in found.speeds)),
            ("tokens a second", *(f"{s.tokens_per_second:,.0f}" for s in found.speeds)),
        ],
    )
    where = found.speeds[0]
    if found.mask is not None:
        yield (
            "The weights that are gone are zeros in the file: it gets smaller only when it is "
            "packed (gzip, quickest level). Matrices are multiplied as a whole, zeros and all, so "
            "the model is not faster: where speeds differ, it is by chance. Only software for "
            "sparse matrices gains from zeros."
        )
        yield ""
    yield (
        f"The loss is {found.loss.value:.2f} points ({found.certainty}), paired over the same "
        f"{found.loss.n:,} examples. Speeds are of one machine ({where.device}, {where.threads} "
        f"thread{'' if where.threads == 1 else 's'}); both models took turns at the same batches."
    )
    yield ""


def _method(found: Pruned, record: TrainingRecord) -> Iterator[str]:
    yield from ["## What was cut, and how it was chosen", ""]
    pruning = record["pruning"]
    if found.mask is None:
        rows = [
            ("layers", ", ".join(str(i) for i in found.cut.layers) or "none"),
            ("heads", ", ".join(f"{i}.{h}" for i, h in found.cut.heads) or "none"),
            ("MLPs", ", ".join(str(i) for i in found.cut.mlps) or "none"),
        ]
        yield from card_table(("part", "numbers in the original, from 0"), rows)
    else:
        weights = pruning["weights"]
        every = {**weights["by_kind"], "all": (weights["kept"], weights["of"])}
        rows = [(f"`{k}`" if k != "all" else k, f"{n:,} of {of:,} ({100 * n / of:.1f} %)")
                for k, (n, of) in every.items()]  # fmt: skip
        yield from card_table(("matrices of all layers", "weights that are left"), rows)
        yield from ["Embeddings, biases, LayerNorms, and what is not named here, are whole.", ""]
    said = [*_ranked(found, pruning), *_decided(found, pruning), *_trained(found, pruning)]
    yield from [" ".join([*said, "The held-out data were used once, for the scores above."]), ""]


def _ranked(found: Pruned, pruning: dict[str, Any]) -> Iterator[str]:
    """By what was chosen what goes."""
    on = f"on {pruning['ranking']['size']:,} training examples" if pruning["ranking"] else ""
    yield {
        "measured": "Layers and MLPs were ranked by how far the answers move without each of "
        "them, heads by the mean size of the gradients of their gates (Michel et al., 2019), "
        f"{on}.",
        "importance": "Heads and MLPs were ranked by the mean size of the gradients of their "
        f"gates (Michel et al., 2019; those of heads divided by their length in each layer), {on}, "
        "and anew after each cut of a tenth of all heads and one MLP (Prasanna et al., 2020).",
        "magnitude": "The weights of the smallest size went, over all matrices together.",
        "movement": "Weights went that a training moved towards zero (movement pruning, Sanh et "
        "al., 2020): as many in each matrix, first fast, then slowly.",
    }[found.method]


def _decided(found: Pruned, pruning: dict[str, Any]) -> Iterator[str]:
    """How it was decided how much goes."""
    (before, after), examples = pruning["selection_scores"], pruning["selection"]["size"]
    other = "other training examples" if pruning["ranking"] else "training examples"
    if pruning["allowed"] is None:
        share = pruning["settings"]["weights"]
        yield (
            f"How many stay was given ({share:g} of all). On {examples:,} {other}, which decided "
            f"nothing, {found.metric} went from {before:.4f} to {after:.4f}."
        )
    else:
        tried = pruning["tried"]
        models = "1 model was" if tried == 1 else f"{tried} models were"
        yield (
            f"Cuts were made as long as the loss of {found.metric}, and its standard error, were "
            f"at most {pruning['allowed']:.3g} points on {examples:,} {other} (from {before:.4f} "
            f"to {after:.4f}; {models} tried)."
        )
        if (keep := pruning["settings"]["keep"]) is not None:
            yield (
                f"{100 * keep:g} % of the score were to be kept, and at least half of what the "
                "model is better than a constant answer."
            )
    if pruning["seen"]:
        yield "As far as is known, the model was trained on these examples."


def _trained(found: Pruned, pruning: dict[str, Any]) -> Iterator[str]:
    epochs = f"{found.recovered} epoch{'s' * (found.recovered > 1)}"
    if found.method == "movement":
        yield (
            f"The training took {epochs} on {pruning['training']:,} other training examples, from "
            "the weights of the model before; so what changed is due to both, more training and "
            "fewer weights."
        )
    elif found.recovered:
        held = ", with zeros held at zero" if found.mask is not None else ""
        yield f"What was left was then trained for {epochs}{held}; nothing was chosen by it."
    else:
        yield "Nothing was trained after the cut."


def _command(record: TrainingRecord) -> Iterator[str]:
    if command := record.get("command"):
        yield from ["## How to make it again", "", f"```sh\n{command}\n```", ""]


def _limits() -> Iterator[str]:
    yield from [
        "## Limits",
        "",
        "- It was cut for one task; on others it may have lost much more.",
        "- The loss is over all examples: rare kinds of examples may have lost more.",
        "- It was not examined for harmful associations, and is meant for research.",
        "",
    ]
