"""A compressed model beside its original: what was done, what it saves and costs; its card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertology.stats.intervals import Estimate
from bertology.train.compress.method import epochs_text
from bertology.train.model_card import LOADED_BY_TRANSFORMERS, card_head, card_table, card_versions
from bertology.train.records import TrainingRecord

_SHOWN = 10  # examples that flipped, in the card; all are in flips.json
_LONGEST = 120  # characters of a text that is shown
_OURS = """\
```python
import bertology as bt

encoder = bt.load("{name}", head="classification")  # the path of this folder
model, tokenizer = encoder.model, encoder.tokenizer
```

What `bt.load` gives is an ordinary PyTorch module."""
_REFUSED = (
    "**transformers alone refuses this folder**: some parts are not those of the model's family. "
    '`bertology.load(FOLDER, head="classification")` loads it.'
)


@dataclass(frozen=True, repr=False)
class Compressed:
    """What its record says; print it for the answer in a few sentences."""

    folder: Path
    record: TrainingRecord

    @property
    def measured(self) -> Mapping[str, Any]:
        """All numbers, of the original first and then of the compressed model."""
        found: Mapping[str, Any] = self.record["compression"]
        return found

    @property
    def methods(self) -> tuple[str, ...]:
        """What was done, as it is written."""
        return tuple(step["method"] for step in self.measured["steps"])

    @property
    def metric(self) -> str:
        """The task's main metric."""
        return str(self.measured["metric"])

    @property
    def before(self) -> Estimate:
        """The score of the original on the held-out data."""
        return Estimate(**self.measured["before"])

    @property
    def after(self) -> Estimate:
        """The score of the compressed model on the same examples."""
        return Estimate(**self.measured["after"])

    @property
    def loss(self) -> Estimate:
        """Points that were lost, paired over the same examples; below 0 is a gain."""
        return Estimate(**self.measured["loss_in_points"])

    @property
    def times_smaller(self) -> float:
        """How many times as many bytes the original takes on the disk."""
        before, after = self.measured["bytes_on_disk"]
        return float(before / after)

    def times_as_fast(self, size: int = 32, device: str | None = None) -> float:
        """How many times as many texts a second in batches of this size, 1 or 32."""
        speeds = self.measured["texts_per_second"]
        before, after = speeds[device or next(iter(speeds))][str(size)]
        return float(after / before)

    @property
    def certainty(self) -> str:
        """The interval of the loss, and what it says."""
        loss = self.loss
        sure = "surely a loss" if loss.low > 0 else "surely a gain" if loss.high < 0 else None
        low, high = f"{loss.low:.1f}", f"{loss.high:.1f}"
        if sure and "0.0" in (low, high.lstrip("-")):  # by so little that it would read as 0
            low, high = ("above 0", high) if loss.low > 0 else (low, "below 0")
        if self.measured["flips"].get("changed") == 0:
            sure = "no answer changed"
        return f"95 % interval {low} to {high}; {sure or 'it may be by chance'}"

    @property
    def _size(self) -> str:
        """How large it is, in words that also fit a model that grew."""
        before, after = (f"{size / 1e6:,.1f} MB" for size in self.measured["bytes_on_disk"])
        if self.times_smaller >= 1.05:
            told = f"is {self.times_smaller:.1f} times as small on the disk"
        else:
            told = "is no smaller on the disk"
        old, new = (f"{number:,}" for number in self.measured["parameters"])
        parameters = f"{new} parameters (" + ("as before)" if new == old else f"before {old})")
        return f"{told} ({after}, before {before}), has {parameters}"

    @property
    def sentence(self) -> str:
        """The answer in a few sentences."""
        loss = self.loss
        change = "loss" if loss.value >= 0 else "gain"
        knows = "" if self.measured["knows"] else (
            " It is not surely better than a constant answer."
        )  # fmt: skip
        return (
            f"The model {self._size}, and reads {self.times_as_fast(1):.2f} times as many texts a "
            "second one by one, "
            f"{self.times_as_fast(32):.2f} times in batches of 32. On {loss.n:,} held-out "
            f"examples {self.metric} is {self.after.value:.3f}, that of the original "
            f"{self.before.value:.3f}: a {change} of {abs(loss.value):.1f} points "
            f"({self.certainty}).{knows}"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r}, {', '.join(self.methods)})"

    def __str__(self) -> str:
        return f"{self.sentence}\nModel: {self.folder}"


def compressed_card(found: Compressed, flips: Sequence[Mapping[str, Any]], *, name: str) -> str:
    """A README.md with front matter."""
    record = found.record
    origin = record["compressed_from"]
    plain = found.measured["plain"]
    lines = [
        *card_head("text-classification", plain=plain),
        f"# {name}",
        "",
        f"{origin['name']} (fingerprint `{origin['fingerprint']}`), compressed for the task "
        f"{record['task']} by {', then '.join(f'`{m}`' for m in found.methods)}.",
        "",
        found.sentence,
        "",
        *([] if plain else [_REFUSED, ""]),
        "## The original and this model",
        "",
        *card_table(("", "original", "this model"), number_rows(found)),
        *_how_measured(found),
        *_steps(found),
        *_flips(found, flips),
        *_command(found),
        "## How to load it",
        "",
        (LOADED_BY_TRANSFORMERS if plain else _OURS).format(name=name),
        "",
        "## Limits",
        "",
        "- It was made for one task; on others it may have lost much more.",
        "- The loss is over all examples: rare kinds of examples may have lost more.",
        "- It is one run with one seed; other seeds give other numbers.",
        "- It was not examined for harmful associations, and is meant for research.",
        "",
        *card_versions(record, "Made"),
    ]
    return "\n".join(lines).rstrip() + "\n"


def number_rows(found: Compressed) -> list[tuple[str, str, str]]:
    """Name, original, compressed: the numbers that are shown in cards and on screens."""
    told = found.measured
    scores = [f"{e.value:.3f} ({e.low:.3f} to {e.high:.3f})" for e in (found.before, found.after)]
    rows = [
        (f"{found.metric}, 95 % interval", *scores),
        ("weights on the disk", *_megabytes(told["bytes_on_disk"])),
        ("weights in memory", *_megabytes(told["bytes_in_memory"])),
        ("parameters", *(f"{n:,}" for n in told["parameters"])),
    ]
    if "packed_bytes" in told:
        rows.insert(2, ("weights packed with gzip", *_megabytes(told["packed_bytes"])))
    for device, peak in told.get("peak_bytes", {}).items():
        rows.append((f"memory for 32 texts, {device}", *_megabytes(peak)))
    for device, speeds in told["texts_per_second"].items():
        for size, pair in speeds.items():
            how = "one by one" if size == "1" else f"in batches of {size}"
            rows.append((f"texts a second {how}, {device}", *(f"{v:,.1f}" for v in pair)))
    return [(a, b, c) for a, b, c in rows]


def _megabytes(sizes: Sequence[float]) -> tuple[str, str]:
    before, after = (f"{size / 1e6:,.2f} MB" for size in sizes)
    return before, after


def _how_measured(found: Compressed) -> Iterator[str]:
    threads = found.measured["threads"]
    yield (
        f"The loss is {found.loss.value:.2f} points ({found.certainty}), paired over the same "
        f"{found.loss.n:,} held-out examples, by which nothing was chosen. Both models "
        f"took turns at the same texts on one machine ({threads} "
        f"thread{'' if threads == 1 else 's'} on the CPU); cutting texts into tokens is not "
        "counted. Memory is that of the weights as they are loaded by `bt.load`."
    )
    yield ""


def _steps(found: Compressed) -> Iterator[str]:
    yield from ["## What was done", ""]
    for number, step in enumerate(found.measured["steps"], 1):
        source = f" ({step['source']})" if step["source"] else ""
        yield f"{number}. `{step['method']}`: {step['summary']}{source}."
        for note in step["notes"]:
            yield f"    - {note}"
        if step["epochs"]:
            # A step that was done before a stop, by an earlier version, does not know.
            stages = step.get("trainings", 1)
            where = f" in {stages} trainings, the last of them" if stages > 1 else ""
            many = f"{epochs_text(step['epochs'])}{where}"
            yield f"    - trained for {many} on {step['examples']:,} training examples"
    settings = found.record["settings"]
    rate = settings["rate"]
    if not any(step["epochs"] for step in found.measured["steps"]):
        yield ""
        return
    yield ""
    yield (
        f"Trainings had batches of {settings['batch_size']}, "
        f"{'the usual rate for the size of the model' if rate is None else f'rate {rate:g}'}, and "
        f"seed {settings['seed']}. Whatever was chosen, was chosen by training examples."
    )
    yield ""


def _flips(found: Compressed, flips: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    counted = found.measured["flips"]
    yield from ["## Which answers changed", ""]
    if "changed" in counted:
        yield (
            f"{counted['changed']:,} of {counted['examples']:,} answers: {counted['lost']:,} were "
            f"right and are wrong now, {counted['won']:,} the other way round. `flips.json` has "
            "all of them."
        )
    else:
        yield (
            f"Answers are numbers, which moved by {counted['mean_change']:.3g} in the mean. "
            "`flips.json` has those that moved furthest."
        )
    yield ""
    if flips:
        rows = [
            (f["id"], " / ".join(map(_short, f["texts"])), f["right"], f["before"], f["after"])
            for f in flips[:_SHOWN]
        ]
        yield from card_table(("example", "text", "right", "original", "this model"), rows)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 1]}…"


def _command(found: Compressed) -> Iterator[str]:
    if command := found.record.get("command"):
        yield from ["## How to make it again", "", f"```sh\n{command}\n```", ""]
