"""A pruned model as a folder: scored once on held-out data, timed, recorded, with a card."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
from bertology.train.model_card import card_head, card_table, card_versions
from bertology.train.prune import Cut, PruneSettings, Shrunk, Tell, shrink, split_training
from bertology.train.records import TrainingRecord
from bertology.train.speed import Speed, measure_speeds

__all__ = ["Pruned", "prune_to"]

_PLAIN = """\
```python
from transformers import AutoModelForSequenceClassification, AutoTokenizer

# The name stands for the path of this folder.
tokenizer = AutoTokenizer.from_pretrained("{name}")
model = AutoModelForSequenceClassification.from_pretrained("{name}")
```"""
_OURS = """\
```python
import bertology as bt

encoder = bt.load("{name}", head="classification")  # the path of this folder
model, tokenizer = encoder.model, encoder.tokenizer
```

The layers differ in size, which no config of transformers can say: transformers alone refuses
this folder. The model that `bt.load` gives is an ordinary PyTorch module."""


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
    parameters: tuple[int, int]
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
        return (
            f"Without {cut_text(self.cut)} the model is {fewer:.0f} % smaller and "
            f"{self.times_as_fast:.2f} times as fast. On {self.loss.n:,} held-out examples "
            f"{self.metric} is {self.after.value:.3f} after {self.before.value:.3f}: a {change} of "
            f"{abs(self.loss.value):.1f} points ({self.certainty})."
        )

    @property
    def certainty(self) -> str:
        """The interval of the loss, and whether it is surely as small as was asked for."""
        sure = "surely" if self.loss.high <= self.max_loss else "not surely"
        return (
            f"95 % interval {self.loss.low:.1f} to {self.loss.high:.1f}; {sure} at most "
            f"{self.max_loss:g}"
        )


def cut_text(cut: Cut) -> str:
    """`2 layers (3, 7), 14 heads and 1 MLP (0)`"""
    told = []
    for units, name in ((cut.layers, "layer"), (cut.heads, "head"), (cut.mlps, "MLP")):
        if units:
            plural = "" if len(units) == 1 else "s"
            which = "" if name == "head" else f" ({', '.join(str(i) for i in units)})"
            told.append(f"{len(units)} {name}{plural}{which}")
    return " and ".join(filter(None, [", ".join(told[:-1]), told[-1]]))


def prune_to(
    folder: str | Path,
    encoder: Encoder,
    train: Corpus,
    held_out: Corpus,
    settings: PruneSettings | None = None,
    *,
    tell: Tell = lambda text: None,
) -> Pruned:
    """Shrink a model on training data, score it once on held-out data, and save it to `folder`."""
    chosen = settings or PruneSettings()
    place = check_folder(folder)
    check_fit(encoder.model, task_of(train), held_out)
    encoded = encode_for(encoder, held_out)
    ranking, selection = split_training(train, held_out, seed=chosen.seed)
    tell(
        f"{len(ranking):,} training examples rank parts, {len(selection):,} others say how much "
        f"may go, {len(held_out):,} held-out ones are scored at the end"
    )
    shrunk = shrink(encoder, ranking, selection, chosen, tell=tell)
    both = [encoder, shrunk.encoder]
    before, after = (
        answer(one, encoded, task_of(held_out), batch_tokens=chosen.batch_tokens) for one in both
    )
    speeds = measure_speeds(both, encoded, batch_tokens=chosen.batch_tokens)
    metric = before.metric
    found = Pruned(
        folder=place,
        model=encoder.name,
        metric=metric.name,
        cut=shrunk.cut,
        before=score_interval(metric, before.statistics(metric)),
        after=score_interval(metric, after.statistics(metric)),
        loss=_loss(before, after),
        max_loss=chosen.max_loss,
        speeds=(speeds[0], speeds[1]),
        parameters=(_size(encoder), _size(shrunk.encoder)),
        plain=not is_pruned(shrunk.encoder.config),
    )
    record = _record(found, encoder, shrunk, chosen, (ranking, selection, held_out))
    record["scores"] = {
        name: find_metric(name).score(after.predictions, after.labels)
        for name in after.task.metrics
    }
    save_checkpoint(
        place,
        shrunk.encoder.model,
        encoder.tokenizer,
        record=record,
        card=_card(found, record, name=place.name),
    )
    return found


def _size(encoder: Encoder) -> int:
    return sum(p.numel() for p in encoder.model.parameters())


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
    data: tuple[Corpus, Corpus, Corpus],
) -> TrainingRecord:
    ranking, selection, held_out = data
    record: TrainingRecord = {
        "schema": SCHEMA,
        "method": "prune",
        "task": task_of(held_out).name,
        "pruned_from": {"name": encoder.name, "fingerprint": encoder.fingerprint},
        "validation": described(held_out),
        "pruning": {
            "settings": asdict(settings),
            "cut": asdict(found.cut),
            "ranking": described(ranking),
            "selection": described(selection),
            "selection_scores": [shrunk.intact, shrunk.score],
            "tried": shrunk.tried,
            "metric": found.metric,
            "before": _bounds(found.before),
            "after": _bounds(found.after),
            "loss_in_points": _bounds(found.loss),
            "parameters": list(found.parameters),
            "speeds": [asdict(speed) for speed in found.speeds],
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


def _card(found: Pruned, record: TrainingRecord, *, name: str) -> str:
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
        *_method(found, record["pruning"]),
        "## How to load it",
        "",
        (_PLAIN if found.plain else _OURS).format(name=name),
        "",
        *_limits(),
        *card_versions(record, "Made"),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _numbers(found: Pruned) -> Iterator[str]:
    yield from ["## Before and after", ""]
    scores = [f"{e.value:.4f} ({e.low:.4f} to {e.high:.4f})" for e in (found.before, found.after)]
    yield from card_table(
        ("", "before", "after"),
        [
            (f"{found.metric}, 95 % interval", *scores),
            ("parameters", *(f"{n:,}" for n in found.parameters)),
            ("examples a second", *(f"{s.examples_per_second:,.0f}" for s in found.speeds)),
            ("tokens a second", *(f"{s.tokens_per_second:,.0f}" for s in found.speeds)),
        ],
    )
    where = found.speeds[0]
    yield (
        f"The loss is {found.loss.value:.2f} points ({found.certainty}), paired over the same "
        f"{found.loss.n:,} examples. Speeds are of one machine ({where.device}, {where.threads} "
        "threads); both models took turns at the same batches."
    )
    yield ""


def _method(found: Pruned, pruning: dict[str, Any]) -> Iterator[str]:
    ranking, selection = pruning["ranking"], pruning["selection"]
    before, after = pruning["selection_scores"]
    yield from ["## What was cut, and how it was chosen", ""]
    rows = [
        ("layers", ", ".join(str(i) for i in found.cut.layers) or "none"),
        ("heads", ", ".join(f"{i}.{h}" for i, h in found.cut.heads) or "none"),
        ("MLPs", ", ".join(str(i) for i in found.cut.mlps) or "none"),
    ]
    yield from card_table(("part", "numbers in the original, from 0"), rows)
    yield (
        f"Parts were ranked by the mean size of the gradients of their gates (Michel et al., 2019) "
        f"on {ranking['size']:,} training examples, and cut as long as {found.metric} fell by at "
        f"most {found.max_loss:g} points on {selection['size']:,} other training examples "
        f"(from {before:.4f} to {after:.4f}; {pruning['tried']} models were tried). The held-out "
        "data were used once, for the scores above. Nothing was trained after the cut."
    )
    yield ""


def _limits() -> Iterator[str]:
    yield from [
        "## Limits",
        "",
        "- It was cut for one task; on others it may have lost much more.",
        "- The loss is over all examples: rare kinds of examples may have lost more.",
        "- It was not examined for harmful associations, and is meant for research.",
        "",
    ]
