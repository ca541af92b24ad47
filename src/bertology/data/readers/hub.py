"""Hugging Face `datasets`: an id on the hub, or a folder written by `save_to_disk`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from bertology.data.corpus import Corpus, Field, Task
from bertology.data.readers import Request
from bertology.data.readers.table import Row, build, find_columns
from bertology.errors import DataError, UnknownNameError


class Table(Protocol):
    """What is used of a `datasets.Dataset`."""

    @property
    def column_names(self) -> list[str]: ...
    @property
    def features(self) -> Mapping[str, object]: ...
    def __iter__(self) -> Iterator[Mapping[str, Any]]: ...


def is_saved(folder: Path) -> bool:
    """Whether `save_to_disk` wrote this folder."""
    return (folder / "dataset_dict.json").is_file() or (
        (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()
    )


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """One split of a dataset. On the hub, `owner/name:configuration` names a configuration."""
    request = Request.of(source, request)
    split = request.split or "validation"
    if Path(source).is_dir():
        data, where = _saved(Path(source), split), str(source)
    else:
        data, where = _downloaded(str(source), split, request), f"the hub dataset {source}"
    header = list(data.column_names)
    columns = find_columns(header, request.columns, where)
    task = request.task or _task_of(data.features, columns, request)
    names = _class_names(data.features, columns)
    rows = [Row(i, _named(row, names)) for i, row in enumerate(data, start=1)]
    return build(rows, header, replace(request, task=task, split=split), where=where)


def _saved(folder: Path, split: str) -> Table:
    from datasets import DatasetDict, load_from_disk

    try:
        data = load_from_disk(str(folder))
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"Cannot read the saved dataset in {folder}: {_first_line(error)}.",
            hint="Save it again with dataset.save_to_disk(…).",
        ) from None
    if not isinstance(data, DatasetDict):
        table: Table = data
        return table
    if split not in data:
        raise UnknownNameError(f"split of {folder}", split, [str(name) for name in data])
    chosen: Table = data[split]
    return chosen


def _downloaded(source: str, split: str, request: Request) -> Table:
    from datasets import load_dataset

    name, _, config = source.partition(":")
    config = config or str(request.options.get("config") or "")
    try:
        data: Table = load_dataset(name, config or None, split=split)
    except (OSError, ValueError, RuntimeError, LookupError) as error:
        # No network, an unknown or gated dataset, a missing configuration or split.
        arguments = f"{name!r}, {config!r}" if config else repr(name)
        folder = name.rsplit("/", 1)[-1]
        raise DataError(
            f"Cannot get {source!r} (split {split!r}) from the Hugging Face hub: "
            f"{_first_line(error)}.",
            hint="No such folder is on this machine either. Where there is a network (and "
            'HF_HUB_OFFLINE is not set), keep a copy with: python -c "from datasets import '
            f"load_dataset; load_dataset({arguments}).save_to_disk('{folder}')\" — then load "
            f"it here by its path, './{folder}'.",
        ) from None
    return data


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")


def _task_of(
    features: Mapping[str, object], columns: Mapping[str, str], request: Request
) -> Task | None:
    label = features.get(columns.get("label", ""))
    if (names := getattr(label, "names", None)) is not None and not request.options.get("labels"):
        return Task(request.name, "classification", tuple(names), pair="text_b" in columns)
    tags = getattr(features.get(columns.get("tags", "")), "feature", None)
    if (names := getattr(tags, "names", None)) is not None:
        return Task(request.name, "tagging", tuple(names))
    return None


def _class_names(
    features: Mapping[str, object], columns: Mapping[str, str]
) -> dict[str, list[str]]:
    """Columns that hold tags as numbers, with the names of these tags."""
    coded = {}
    for column in (columns[f] for f in (Field.TAGS, Field.POS, Field.RELATIONS) if f in columns):
        names = getattr(getattr(features[column], "feature", None), "names", None)
        if names is not None:
            coded[column] = list(names)
    return coded


def _named(row: Mapping[str, Any], names: Mapping[str, list[str]]) -> dict[str, object]:
    return {k: [names[k][i] for i in v] if k in names else v for k, v in row.items()}
