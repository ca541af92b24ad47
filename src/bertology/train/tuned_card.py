"""The model card of a fine-tuned model, written from its record alone."""

from __future__ import annotations

from collections.abc import Iterator

from bertology.train.model_card import card_head, card_table, card_versions
from bertology.train.records import TrainingRecord
from bertology.train.starts import find_start

_LOADING = """\
```python
import bertology as bt

encoder = bt.load("{name}", head="{head}")  # the path of this folder
```"""


def tuned_card(record: TrainingRecord, *, name: str, head: str = "classification") -> str:
    """A README.md with front matter; every number is the record's."""
    base = record["base"]
    lines = [
        *card_head("text-classification" if head == "classification" else head),
        f"# {name}",
        "",
        f"{base['name']} (fingerprint `{base['fingerprint']}`) for the task {record['task']}: "
        f"{find_start(record['start']).title}; seed {record['settings']['seed']}.",
        "",
        *_scores(record),
        *_training(record),
        *_data(record),
        "## How to load it",
        "",
        _LOADING.format(name=name, head=head),
        "",
        *_limits(record),
        *card_versions(record),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _scores(record: TrainingRecord) -> Iterator[str]:
    yield from ["## Scores on the validation data", ""]
    metrics = list(record["scores"])
    rows: list[tuple[str, ...]] = [
        (
            f"epoch {epoch['number']}" if epoch["number"] else "not fine-tuned",
            *(f"{epoch['scores'][m]:.4f}" for m in metrics),
        )
        for epoch in record["history"]
    ]
    rows.append(("always the same answer", *(f"{record['baseline'][m]:.4f}" for m in metrics)))
    yield from card_table(("", *metrics), rows)
    if record["settings"]["early_stopping"] is not None and record["kept_epoch"]:
        yield (
            f"Epoch {record['kept_epoch']} was kept because it scored best on these data, so its "
            "scores are a little too good."
        )
        yield ""


def _training(record: TrainingRecord) -> Iterator[str]:
    if find_start(record["start"]).learns == "nothing":
        return
    settings = record["settings"]
    patience = settings["early_stopping"]
    rows = [
        ("epochs", f"{len(record['history'])} of {settings['epochs']}"),
        ("batch size", settings["batch_size"]),
        ("learning rate", f"{settings['learning_rate']:g}, linear"),
        ("warm-up", f"{100 * settings['warmup']:g} % of the steps"),
        ("weight decay", f"{settings['weight_decay']:g}"),
        ("gradient clipped at", f"{settings['clip']:g}"),
        ("early stopping", "none" if patience is None else f"after {patience} epochs"),
        ("precision", settings["precision"]),
        ("device", record["device"]),
        *(("way", f"`{way}`") for way in settings.get("ways", ())),
    ]
    yield from ["## Training", "", *card_table(("", ""), rows)]


def _data(record: TrainingRecord) -> Iterator[str]:
    yield from ["## Data", ""]
    rows = [
        (
            part,
            f"{data['name']}, {data['split'] or 'one file'}",
            f"{data['size']:,}",
            f"{cut:,}",
            f"`{data['fingerprint']}`",
        )
        for part, data, cut in (
            ("train", record["train"], record["truncated"]),
            ("validation", record["validation"], record["truncated_validation"]),
        )
    ]
    yield from card_table(("", "corpus", "examples", "cut to fit", "fingerprint"), rows)


def _limits(record: TrainingRecord) -> Iterator[str]:
    yield from ["## Limits", ""]
    yield "- It is one run with one seed; other seeds give other numbers."
    yield "- It was not examined for harmful associations, and is meant for research."
    yield ""
