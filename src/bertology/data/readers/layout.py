"""Which reader a path asks for: told by its extension, or by what lies in the folder."""

from __future__ import annotations

import re
from pathlib import Path

from bertology.data.readers import READERS, glue, hub
from bertology.errors import DataError

EXTENSIONS = {
    ".conll": "conll", ".v4_gold_conll": "conll", ".v4_auto_conll": "conll", ".conllu": "conllu",
    ".csv": "csv", ".tsv": "csv", ".json": "jsonl", ".jsonl": "jsonl",
    ".mrg": "brackets", ".ndjson": "jsonl", ".txt": "text", ".tokens": "text", ".text": "text",
}  # fmt: skip
_SPLIT_NAMES = {
    "train": ("train",),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test",),
}


def choose(path: Path, split: str, reader: str | None = None) -> tuple[str, Path]:
    """The reader's name and the file or folder it is to read for `split`."""
    if not path.exists():
        raise DataError(f"There is no file or folder {path}.")
    if not path.is_file() and not path.is_dir():
        raise DataError(f"{path} is a pipe or a device, not a file or a folder.")
    if reader is not None:
        READERS.get(reader)  # an unknown name is refused before anything is looked at
        return reader, path
    if glue.recognises(path):
        return "glue", path
    if path.is_file():
        return _by_extension(path), path
    if hub.is_saved(path):
        return "hub", path
    return _split_file(path, split)


def _by_extension(path: Path) -> str:
    extension = path.suffix.lower()
    if extension in EXTENSIONS:
        return EXTENSIONS[extension]
    if extension.removeprefix(".") in READERS:
        return extension.removeprefix(".")
    raise DataError(
        f"No reader is known for {path.name}.",
        hint=f"Known endings: {', '.join(sorted(EXTENSIONS))}; or say reader=… "
        f"({', '.join(READERS)}).",
    )


def named_after(file: Path) -> tuple[str, str | None]:
    """The name of the data in a file, and which split they are, if the file's name says it.

    `reviews/test.csv` and `reviews-test.csv` are the split test of `reviews`.
    """
    pieces = re.split(r"[-_.]", file.stem)
    last = pieces[-1].lower()
    split = next((n for n, spellings in _SPLIT_NAMES.items() if last in spellings), None)
    if split is None:
        return file.stem, None
    rest = file.stem[: -len(last)].rstrip("-_.")
    return rest or file.absolute().parent.name or file.stem, split


def _split_file(folder: Path, split: str) -> tuple[str, Path]:
    """`dev.jsonl`, `validation.csv`, `en_ewt-ud-dev.conllu` …: one file per split."""
    files = sorted(f for f in folder.iterdir() if f.suffix.lower() in EXTENSIONS)
    by_split: dict[str, list[Path]] = {}
    for file in files:
        if name := named_after(file)[1]:
            by_split.setdefault(name, []).append(file)
    wanted = next((n for n, spellings in _SPLIT_NAMES.items() if split in spellings), split)
    if not by_split:
        raise _no_layout(folder, files)
    if wanted not in by_split:
        raise DataError(
            f"{folder} has no file for the split {split!r}.",
            hint=f"Splits that are there: {', '.join(by_split)}.",
        )
    if len(by_split[wanted]) > 1:
        names = ", ".join(f.name for f in by_split[wanted])
        raise DataError(
            f"{folder} has several files for {split!r}: {names}.", hint="Give one path."
        )
    file = by_split[wanted][0]
    return _by_extension(file), file


def _no_layout(folder: Path, files: list[Path]) -> DataError:
    tasks = sorted(f.name for f in folder.iterdir() if f.is_dir() and glue.recognises(f))
    if tasks:
        hint = (
            f"It holds GLUE tasks; give one of them: {', '.join(str(folder / t) for t in tasks)}."
        )
    elif files:
        hint = f"Give one of its files: {', '.join(f.name for f in files[:5])}."
    else:
        hint = (
            "Known: a GLUE task (train.tsv, dev.tsv), one file per split (train.csv, dev.csv …), "
            "a dataset saved by Hugging Face datasets."
        )
    return DataError(f"The folder {folder} has no layout that is known.", hint=hint)
