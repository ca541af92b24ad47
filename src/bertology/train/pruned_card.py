"""The model card of a pruned model: what was cut, what it cost, how to make and load it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bertology.train.model_card import card_head, card_table, card_versions
from bertology.train.records import TrainingRecord

if TYPE_CHECKING:
    from bertology.train.prune import Cut
    from bertology.train.pruned import Pruned

__all__ = ["cut_text", "pruned_card"]

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
this folder. The model that `bt.load` gives is an ordinary PyTorch module; `bertology export-model`
writes it as one file that runs without this package."""


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
            ("weights on disk and in memory", *(f"{n:,.1f} MB" for n in found.megabytes)),
            ("one text alone", *(f"{t:.1f} ms" for t in found.latencies)),
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


def _method(found: Pruned, record: TrainingRecord) -> Iterator[str]:
    yield from ["## What was cut, and how it was chosen", ""]
    rows = [
        ("layers", ", ".join(str(i) for i in found.cut.layers) or "none"),
        ("heads", ", ".join(f"{i}.{h}" for i, h in found.cut.heads) or "none"),
        ("MLPs", ", ".join(str(i) for i in found.cut.mlps) or "none"),
    ]
    yield from card_table(("part", "numbers in the original, from 0"), rows)
    yield from [" ".join(_chosen(found, record["pruning"])), ""]


def _chosen(found: Pruned, pruning: dict[str, Any]) -> Iterator[str]:
    ranking, selection = pruning["ranking"], pruning["selection"]
    before, after = pruning["selection_scores"]
    recovery = pruning["settings"]["recovery"]
    allowed = recovery["cut_loss"] if recovery else found.max_loss
    yield (
        "Layers and MLPs were ranked by how far the answers move without each of them, heads by "
        "the mean size of the gradients of their gates (Michel et al., 2019), on "
        f"{ranking['size']:,} training examples. Parts were cut as long as the loss of "
        f"{found.metric}, and its standard error, were at most {allowed:g} points on "
        f"{selection['size']:,} other training examples (from {before:.4f} to {after:.4f}; "
        f"{pruning['tried']} models were tried)."
    )
    if pruning["seen"]:
        yield "As far as is known, the model was trained on these examples."
    if recovery:
        yield (
            f"What was left was then trained for {found.recovered} epoch"
            f"{'s' * (found.recovered > 1)}; nothing was chosen by it."
        )
    else:
        yield "Nothing was trained after the cut."
    yield "The held-out data were used once, for the scores above."


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
