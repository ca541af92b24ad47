"""A model as a folder to deploy: one file, tokenizer and labels; checked, timed, with a card."""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import torch

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, JobError
from bertology.model.batch import tokenize
from bertology.model.compressed.forms import stored_bytes
from bertology.model.compressed.quantised_maps import Quantised, QuantisedLinear
from bertology.model.encoder import Encoder
from bertology.model.exported import Inputs, Runs, check_format, export_file, open_file
from bertology.model.loading.pruning import is_plain
from bertology.results.provenance import library_versions
from bertology.train.checkpoint import SCHEMA, check_folder, save_checkpoint
from bertology.train.model_card import card_head, card_table, card_versions
from bertology.train.records import TrainingRecord
from bertology.train.token_rows import Encoded

_TEXTS = 64  # that are compared and timed
_BATCHES = (1, 32)  # texts in one call: one that a user waits for, and many at once
_CALLS = 12  # of each kind that are timed, after two that warm up
_CLOSE = 1e-4  # the largest difference, and as a share of the largest logit where that is above 1
_NEAR = 1e-2  # the same of the mean difference, where inputs are rounded

_LOADING = {
    "onnx": """\
import onnxruntime
from transformers import AutoTokenizer

# "{name}" stands for the path of this folder.
tokenizer = AutoTokenizer.from_pretrained("{name}")
session = onnxruntime.InferenceSession("{name}/model.onnx")
inputs = tokenizer(["A text.", "Another one."], padding=True, truncation=True, return_tensors="np")
[logits] = session.run(["logits"], {{i.name: inputs[i.name] for i in session.get_inputs()}})""",
    "pt2": """\
import torch
from transformers import AutoTokenizer

# "{name}" stands for the path of this folder.
tokenizer = AutoTokenizer.from_pretrained("{name}")
model = torch.export.load("{name}/model.pt2").module()
inputs = tokenizer(["A text.", "Another one."], padding=True, truncation=True, return_tensors="pt")
logits = model(**inputs)""",
}
_LARGER = 1.5  # times as large as the weights of the model: more than a computation takes
_ROUNDED = (
    "The model rounds inputs to whole numbers. Where two programs differ in the last digit, some "
    "become the next number, which later layers see; so its answers are no nearer to the file's "
    "than to its own in 64 bits."
)
_TRUST = {
    "onnx": "An ONNX file holds numbers and operations, no code.",
    "pt2": "PyTorch may unpickle what it finds in a .pt2 file, and a pickle can run code: load "
    "such files only from those you trust.",
}


@dataclass(frozen=True)
class Timing:
    """How long one call takes: the median, in milliseconds, of both models taking turns."""

    texts: int  # in one call
    torch_ms: float
    exported_ms: float

    @property
    def ratio(self) -> float:
        """How many times as fast the exported model is."""
        return self.torch_ms / self.exported_ms


@dataclass(frozen=True)
class Exported:
    """A file that was written, and how it compares with the model it came from."""

    folder: Path
    model: str
    format: str
    difference: float  # the largest of any logit
    compared: int  # texts
    same_answers: int  # of them
    megabytes: float
    own_megabytes: float  # of the model's weights as they are stored
    packed: bool  # whether some of them have few bits
    rounded: bool  # whether inputs of maps are rounded
    timings: tuple[Timing, ...]
    threads: int
    plain: bool  # whether plain transformers loads the model as it is

    @property
    def file(self) -> Path:
        """The exported model."""
        return self.folder / f"model.{self.format}"

    @property
    def difference_text(self) -> str:
        """The largest difference, in few digits."""
        return f"{self.difference:.1e}" if self.difference else "0"

    @property
    def size_text(self) -> str:
        """How large the file is beside the model's own, and why."""
        sizes = (
            f"The file has {self.megabytes:.1f} MB, the weights of the loaded model "
            f"{self.own_megabytes:.1f} MB."
        )
        if not self.packed or self.megabytes < _LARGER * self.own_megabytes:
            return sizes
        if self.format == "onnx":
            return f"{sizes} Weights of fewer than 8 bits take 8 in an ONNX file."
        return (
            f"{sizes} Weights of a .pt2 file have 32 bits, whatever they had; an ONNX file keeps "
            "those of 8 bits, and multiplies them (--format onnx)."
        )

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        return (
            f"{self.file} ({self.megabytes:.1f} MB) gives the same answer as {self.model} for "
            f"{self.same_answers} of {self.compared} texts; the largest difference of any logit is "
            f"{self.difference_text}."
        )


def export_to(
    folder: str | Path,
    encoder: Encoder,
    corpus: Corpus,
    *,
    format: str = "pt2",
) -> Exported:
    """Export a classifier, compare it with the original on texts of `corpus`, and save it.

    Nothing is written to `folder` where the two differ.
    """
    check_format(format)
    place = check_folder(folder)
    if encoder.new_weights:
        raise CapabilityError(
            f"{encoder.name!r} has no head for classification: it would be exported with a "
            "random one.",
            hint="Fine-tune it first: bertology finetune MODEL TASK.",
        )
    encoder.require_tokenizer()
    if encoder.device.type != "cpu":  # a file names the device that it was traced on
        raise CapabilityError(
            f"Models are exported on the CPU; this one is on {encoder.device}.",
            hint='Load it there: bt.load(…, head="classification", device="cpu").',
        )
    encoded = _encode(encoder, corpus)
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / f"model.{format}"
        export_file(encoder, _batch(encoded, [0, len(encoded) - 1], encoder), path, format=format)
        runs = open_file(path)
        found = _compare(encoder, runs, encoded)
        exported = Exported(
            folder=place,
            model=encoder.name,
            format=format,
            difference=found[0],
            compared=len(encoded),
            same_answers=found[1],
            megabytes=path.stat().st_size / 1e6,
            own_megabytes=stored_bytes(encoder.model) / 1e6,
            packed=any(isinstance(m, Quantised) for m in encoder.model.modules()),
            rounded=_rounds(encoder),
            timings=_times(encoder, runs, encoded),
            threads=torch.get_num_threads(),
            plain=is_plain(encoder.config),
        )
        record = _record(exported, encoder, corpus)
        save_checkpoint(
            place,
            _Files(path, encoder),
            encoder.tokenizer,
            record=record,
            card=_card(exported, record, name=place.name),
        )
    return exported


@dataclass(frozen=True)
class _Files:
    """What goes into the folder beside tokenizer, record and card."""

    path: Path
    encoder: Encoder

    def save_pretrained(self, save_directory: str | os.PathLike[str]) -> None:
        """The file, and the config, which names the labels."""
        shutil.copy(self.path, save_directory)
        self.encoder.config.save_pretrained(save_directory)


def _encode(encoder: Encoder, corpus: Corpus) -> Encoded:
    """Some texts as tokens, and the longest row that the model takes."""
    texts = corpus.texts[:_TEXTS]
    found = tokenize(
        encoder.tokenizer, texts, limit=encoder.max_length, too_long="truncate", name=corpus.name
    )
    rows = {name: list(values) for name, values in found.rows.items()}
    return Encoded(rows, [0] * len(texts), encoder.tokenizer, len(found.cut), encoder.max_length)


def _batch(encoded: Encoded, chosen: Sequence[int], encoder: Encoder) -> Inputs:
    inputs, _ = encoded.batch(chosen, encoder.device)
    return inputs


def _compare(encoder: Encoder, runs: Runs, encoded: Encoded) -> tuple[float, int]:
    """The largest difference of any logit, and how many answers are the same.

    Texts go in batches of all sizes, from one to all of them, so lengths and padding differ.
    """
    exact = _in_double(encoder) if _rounds(encoder) else None
    found: list[tuple[torch.Tensor, ...]] = []  # of the model, of the file, of the model in 64 bits
    start, size = 0, 1
    while start < len(encoded):
        chosen = list(range(start, min(start + size, len(encoded))))
        inputs = _batch(encoded, chosen, encoder)
        wanted = _logits(encoder, inputs)
        known = wanted if exact is None else _logits(exact, inputs)
        found.append(tuple(one.float().cpu() for one in (wanted, runs(inputs), known)))
        start, size = start + size, size + 1
    wanted, given, known = (torch.cat(one) for one in zip(*found, strict=True))
    away, scale = (wanted - given).abs(), max(1.0, float(wanted.abs().max()))
    if exact is None:
        limit = _CLOSE * scale
        equal = float(away.max()) <= limit
    else:  # where numbers differ by rounding, some inputs become the next whole number
        limit = _NEAR * scale
        equal = float(away.mean()) <= limit + 2 * float((wanted - known).abs().mean())
    if not equal:
        raise JobError(
            "The exported model is not equal to the original: a logit differs by "
            f"{float(away.max()):.2g}. Nothing was written.",
            hint="Try another --format.",
        )
    number = wanted.shape[-1] == 1  # of which there is no best class
    same = away[:, 0] <= limit if number else wanted.argmax(-1) == given.argmax(-1)
    return float(away.max()), int(same.sum())


def _rounds(encoder: Encoder) -> bool:
    """Whether inputs are rounded to whole numbers, which may fall either way."""
    modules = encoder.model.modules()
    return any(isinstance(m, QuantisedLinear) and m.activations is not None for m in modules)


def _in_double(encoder: Encoder) -> Encoder:
    """The same model with other errors of rounding: how far these move its answers."""
    model = copy.deepcopy(encoder.model).double()
    return Encoder(model, encoder.tokenizer, head=encoder.head, name=encoder.name)


def _logits(encoder: Encoder, inputs: Inputs) -> torch.Tensor:
    with encoder.turn(), torch.no_grad():
        logits: torch.Tensor = encoder.model(**inputs).logits
        return logits


def _times(encoder: Encoder, runs: Runs, encoded: Encoded) -> tuple[Timing, ...]:
    def original(inputs: Inputs) -> torch.Tensor:
        return _logits(encoder, inputs)

    found = []
    for size in _BATCHES:
        spent: tuple[list[float], list[float]] = ([], [])
        for call in range(_CALLS + 2):
            chosen = [(call * size + i) % len(encoded) for i in range(size)]
            inputs = _batch(encoded, chosen, encoder)
            for own, run in zip(spent, (original, runs), strict=True):
                started = time.perf_counter()
                run(inputs)
                own.append(1e3 * (time.perf_counter() - started))
        found.append(Timing(size, *(median(own[2:]) for own in spent)))
    return tuple(found)


def _record(exported: Exported, encoder: Encoder, corpus: Corpus) -> TrainingRecord:
    shown = asdict(replace(exported, folder=Path()))
    del shown["folder"], shown["model"]
    return {
        "schema": SCHEMA,
        "method": "export",
        "exported_from": {"name": encoder.name, "fingerprint": encoder.fingerprint},
        "export": {**shown, "texts": corpus.name},
        "versions": {**library_versions(), **_extra_versions(exported.format)},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _extra_versions(format: str) -> dict[str, str]:
    from importlib.metadata import version

    return {n: version(n) for n in ("onnx", "onnxruntime")} if format == "onnx" else {}


def _card(exported: Exported, record: TrainingRecord, *, name: str) -> str:
    origin = record["exported_from"]
    lines = [
        *card_head("text-classification"),
        f"# {name}",
        "",
        f"{origin['name']} (fingerprint `{origin['fingerprint']}`) as one file, "
        f"`model.{exported.format}`, for any number of texts at once and any length that the "
        "model takes. `config.json` names the labels.",
        "",
        *_numbers(exported),
        "## How to load it",
        "",
        f"```python\n{_LOADING[exported.format].format(name=name)}\n```",
        "",
        _TRUST[exported.format],
        "",
        *card_versions(record, "Made"),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _numbers(exported: Exported) -> Iterator[str]:
    yield from ["## Compared with the original", ""]
    rows = [
        (f"{t.texts} text{'s' * (t.texts > 1)} in one call", f"{t.torch_ms:.1f} ms",
         f"{t.exported_ms:.1f} ms", f"{t.ratio:.2f}")
        for t in exported.timings
    ]  # fmt: skip
    yield from card_table(("", "the model in PyTorch", "the file", "times as fast"), rows)
    yield (
        f"The largest difference of any logit over {exported.compared} texts, in batches of many "
        f"sizes, is {exported.difference_text}; {exported.same_answers} answers are the same. "
        f"Times are medians on one machine (CPU, {exported.threads} threads), both taking turns."
    )
    yield ""
    yield from [exported.size_text, ""]
    if exported.rounded:
        yield from [_ROUNDED, ""]
