"""The model card of a pruned model: what was cut, what it cost, how to make and load it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bertology.train.model_card import card_head, card_table, card_versions
from bertology.train.records import TrainingRecord

if TYPE_CHECKING:
    from bertology.train.prune import Cut
    from bertology.train.pruned import Pruned

LOADED_BY_TRANSFORMERS = """\
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
