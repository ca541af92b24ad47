"""GLUE in its original folder layout, with the quirks each of its nine tasks came with.

A folder is one task (`MRPC/`, `SST-2/` …). Splits: train, validation (MNLI: the matched one),
validation_mismatched, test, test_mismatched, and, where only samples of a training set are at
hand, train_sample and train_sample_validation (JSON: id → text_a, text_b, label).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertology.data.corpus import Corpus
from bertology.data.readers import MissingSplitError, Request, jsonl
from bertology.data.readers.csv import tab_separated
from bertology.data.readers.table import Row, build
from bertology.data.tasks import TASKS, get_task, plain_name
from bertology.errors import DataError, UnknownNameError


@dataclass(frozen=True)
class _Format:
    """The columns of one task, each with the names it has in one file or another."""

    text: tuple[str, ...]
    text_b: tuple[str, ...] = ()
    label: tuple[str, ...] = ("label",)
    bare: tuple[str, ...] = ()  # what the columns of files without a header are
    no_gold: str = ""  # the label of rows on which annotators did not agree; they are dropped
    ragged: bool = False  # the published file has rows with too few cells; they are dropped


GLUE: dict[str, _Format] = {
    "cola": _Format(("sentence",), bare=("source", "label", "mark", "sentence")),
    "sst-2": _Format(("sentence",)),
    "mrpc": _Format(("#1 String",), ("#2 String",), ("Quality",)),
    "sts-b": _Format(
        ("sentence1",),
        ("sentence2",),
        ("score",),
        bare=("genre", "filename", "year", "old_index", "score", "sentence1", "sentence2"),
    ),
    "qqp": _Format(("question1",), ("question2",), ("is_duplicate",), ragged=True),
    "mnli": _Format(
        ("sentence1", "premise"), ("sentence2", "hypothesis"), ("gold_label",), no_gold="-"
    ),
    "qnli": _Format(("question",), ("sentence",)),
    "rte": _Format(("sentence1",), ("sentence2",)),
    "wnli": _Format(("sentence1",), ("sentence2",)),
}
_FILES: dict[str, tuple[str, ...]] = {
    "train": ("train.tsv",),
    "validation": ("dev.tsv",),
    "test": ("test.tsv",),
    "train_sample": ("train_sample_train.json",),
    "train_sample_validation": ("train_sample_dev.json",),
}
_MSR_TRAIN, _MSR_TEST, _MSR_DEV_IDS = (
    "msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "dev_ids.tsv",
)  # fmt: skip
# Patterns in order of preference. Of two test files the one that has labels comes first.
_OWN_FILES: dict[str, dict[str, tuple[str, ...]]] = {
    "mnli": {
        "validation": ("dev_matched.tsv", "dev_matched_*.tsv"),
        "validation_mismatched": ("dev_mismatched.tsv", "dev_mismatched_*.tsv"),
        "test": ("test_matched.tsv",),
        "test_mismatched": ("test_mismatched.tsv",),
    },
    "mrpc": {
        "train": ("train.tsv", _MSR_TRAIN),
        "validation": ("dev.tsv", _MSR_TRAIN),
        "test": (_MSR_TEST, "test.tsv"),
    },
    "sts-b": {"test": ("original/sts-test.tsv", "test.tsv")},
}


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """One split of the task in the folder `source`, or the one file `source` of a task."""
    path, request = Path(source), Request.of(source, request)
    folder = path if path.is_dir() else path.parent
    name = request.task.name if request.task else get_task(folder.name).name
    if name not in GLUE:
        raise UnknownNameError("GLUE task", name, GLUE)
    task = TASKS[name]
    if path.is_file():
        file, split = path, request.split
    else:
        split = _canonical(request.split or "validation")
        file = _file(path, name, split)
    request = replace(request, task=task, split=split, columns={})
    if file.suffix == ".json":
        return jsonl.read(file, request)
    rows, header = _rows(file, name)
    # A file that was named itself is read whole.
    if file is not path and file.name == _MSR_TRAIN and split in ("train", "validation"):
        rows = _of_split(rows, file.parent / _MSR_DEV_IDS, split)
    return build(
        rows, header, replace(request, columns=_columns(file, name, header)), where=_short(file)
    )


def recognises(path: Path) -> bool:
    """Whether `path` is a task's folder in this layout, or a file in such a folder."""
    folder = path if path.is_dir() else path.parent
    if plain_name(folder.name) not in {plain_name(name) for name in GLUE}:
        return False
    if path.is_dir():
        return bool(splits_in(path))
    name = get_task(folder.name).name
    return any(path.match(p) for patterns in _patterns(name).values() for p in patterns)


def splits_in(folder: Path, name: str | None = None) -> list[str]:
    """The splits whose files are in a task's folder."""
    name = name or get_task(folder.name).name
    return [
        split
        for split, patterns in _patterns(name).items()
        if any(_usable(f, split) for p in patterns for f in folder.glob(p))
    ]


def _usable(file: Path, split: str) -> bool:
    # The validation pairs of MRPC are told from its training pairs by a list of their ids.
    return file.name != _MSR_TRAIN or split == "train" or (file.parent / _MSR_DEV_IDS).is_file()


def _patterns(name: str) -> dict[str, tuple[str, ...]]:
    return {**_FILES, **_OWN_FILES.get(name, {})}


def _canonical(split: str) -> str:
    short = {"dev": "validation", "validation_matched": "validation", "test_matched": "test"}
    return short.get(split, split)


def _file(folder: Path, name: str, split: str) -> Path:
    patterns = _patterns(name)
    there = splits_in(folder, name)
    if split not in patterns:
        raise UnknownNameError(f"split of {name}", split, there)
    if split not in there:
        raise MissingSplitError(
            f"{folder} has no {split} split: no file {' or '.join(patterns[split])}.",
            hint=f"Splits that are there: {', '.join(there) or 'none'}.",
        )
    files = (f for p in patterns[split] for f in sorted(folder.glob(p)) if _usable(f, split))
    return next(files)


def _rows(file: Path, name: str) -> tuple[list[Row], list[str]]:
    form = GLUE[name]
    lines = tab_separated(file)
    first = lines[0][1]
    headed = any(column in first for column in form.text)
    if headed:
        header, lines = first, lines[1:]
    elif form.bare and len(first) >= len(form.bare):
        header = list(form.bare)
    else:
        raise _wrong_header(file, form, first)
    rows = []
    for line, row in lines:
        if len(row) < len(header):
            if form.ragged:
                continue
            raise DataError(
                f"{_short(file)}, line {line}: {len(row)} cells where {len(header)} columns are."
            )
        values = dict(zip(header, row, strict=False))
        if form.no_gold and any(values.get(column) == form.no_gold for column in form.label):
            continue
        rows.append(Row(line, values))
    return rows, header


def _columns(file: Path, name: str, header: Sequence[str]) -> dict[str, str]:
    form = GLUE[name]
    found = {}
    for field in ("text", "text_b", "label"):
        names: tuple[str, ...] = getattr(form, field)
        column = next((n for n in names if n in header), None)
        if column is not None:
            found[field] = column
        elif names and not (field == "label" and "test" in file.name):
            raise _wrong_header(file, form, header)
    return found


def _wrong_header(file: Path, form: _Format, found: Sequence[str]) -> DataError:
    wanted = [" or ".join(names) for names in (form.text, form.text_b, form.label) if names]
    return DataError(
        f"{_short(file)} has another header than this task's files have.",
        hint=f"Wanted: {', '.join(wanted)}. Found: {', '.join(found)[:200]}.",
    )


def _of_split(rows: list[Row], ids: Path, split: str) -> list[Row]:
    if not ids.is_file():
        return rows
    held_out = {tuple(row) for _, row in tab_separated(ids)}
    wanted = split == "validation"
    return [r for r in rows if ((r.values["#1 ID"], r.values["#2 ID"]) in held_out) == wanted]


def _short(file: Path) -> str:
    return f"{file.parent.name}/{file.name}"
