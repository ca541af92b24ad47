"""One entry of the catalogue, and the check that its YAML says what an entry must say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Any

from bertology.data.corpus import Field, Task
from bertology.data.readers import READERS
from bertology.data.tasks import get_task
from bertology.errors import BertologyError, DataError, UnknownNameError

__all__ = ["Entry", "read_entry"]

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KINDS = ("classification", "regression", "tagging", "multiple-choice")


@dataclass(frozen=True)
class Entry:
    """A dataset: what it is, whose it is, where it lies below the data root, how it is read."""

    name: str
    title: str
    source: str  # where it comes from: an address
    licence: str
    reader: str
    fields: tuple[Field, ...]
    splits: Mapping[str, tuple[str, ...]]  # split -> files (patterns); none: the reader knows
    get: str  # how to get it; {folder} is where it belongs
    citation: str = ""
    folder: str = ""  # below the data root; empty for what is made, not read
    task: Task | None = None
    aliases: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    checksums: Mapping[str, str] = field(default_factory=dict)  # file -> sha256

    @property
    def haystack(self) -> str:
        """What a search looks through."""
        task = self.task.name if self.task else ""
        parts = (self.name, *self.aliases, self.title, task, *self.fields, self.citation)
        return " ".join(parts).lower()


def read_entry(text: str, *, where: str) -> Entry:
    """The entry that a YAML text holds; a DataError says what is wrong with it and where."""
    import yaml

    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DataError(f"{where} is not YAML: {' '.join(str(error).split())}.") from None
    if not isinstance(raw, dict):
        raise DataError(f"{where}: a mapping of keys to values is wanted.")
    try:
        return _entry(raw)
    except (_WrongError, UnknownNameError) as error:
        raise DataError(f"{where}: {error.problem}", hint=error.hint) from None


class _WrongError(BertologyError):
    """A key that is missing, unknown or of the wrong kind; `read_entry` says in which file."""


def _entry(raw: dict[str, Any]) -> Entry:
    known = {f.name: f for f in fields(Entry)}
    for key in raw:
        if key not in known:
            near = get_close_matches(str(key), known, n=1, cutoff=0.5)
            mend = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}."
            raise _WrongError(f"unknown key {key!r}.", hint=mend)
    for key, f in known.items():
        if f.default is MISSING and f.default_factory is MISSING and not raw.get(key):
            raise _WrongError(f"the key {key!r} is missing or empty.")
    name = _text(raw, "name")
    if not _NAME.fullmatch(name):
        raise _WrongError(f"the name {name!r} must be small letters, digits and hyphens.")
    reader = _text(raw, "reader")
    if reader not in READERS:
        raise UnknownNameError("reader", reader, READERS)
    return Entry(
        name=name,
        title=_text(raw, "title"),
        source=_text(raw, "source"),
        licence=_text(raw, "licence"),
        reader=reader,
        fields=tuple(_field(f) for f in _texts(raw, "fields")),
        splits=_splits(raw["splits"]),
        get=_text(raw, "get"),
        citation=_text(raw, "citation"),
        folder=_relative(_text(raw, "folder"), "folder"),
        task=_task(raw.get("task"), name),
        aliases=_texts(raw, "aliases"),
        columns={_field(k, "id").value if k != "id" else k: v for k, v in _strings(raw, "columns")},
        options=_mapping(raw, "options"),
        checksums=dict(_checksum(k, v) for k, v in _strings(raw, "checksums")),
    )


def _text(raw: dict[str, Any], key: str) -> str:
    value = raw.get(key, "")
    if not isinstance(value, str):
        raise _WrongError(f"{key!r} must be text. Got {value!r} instead.")
    return value.strip()


def _texts(raw: dict[str, Any], key: str) -> tuple[str, ...]:
    value = raw.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise _WrongError(f"{key!r} must be a list of texts. Got {value!r} instead.")
    return tuple(value)


def _mapping(raw: dict[str, Any], key: str) -> dict[str, Any]:
    value = raw.get(key, {})
    if not isinstance(value, dict):
        raise _WrongError(f"{key!r} must be a mapping. Got {value!r} instead.")
    return {str(k): v for k, v in value.items()}


def _strings(raw: dict[str, Any], key: str) -> list[tuple[str, str]]:
    items = _mapping(raw, key).items()
    for name, value in items:
        if not isinstance(value, str):
            raise _WrongError(f"{key}.{name} must be text. Got {value!r} instead.")
    return list(items)


def _field(name: str, *also: str) -> Field:
    if name not in set(Field):
        raise UnknownNameError("field", name, [*Field, *also])
    return Field(name)


def _splits(raw: Any) -> dict[str, tuple[str, ...]]:
    """A list of names (the reader knows the files) or a mapping of names to file patterns."""
    if isinstance(raw, list) and all(isinstance(v, str) for v in raw):
        return dict.fromkeys(raw, ())
    if not isinstance(raw, dict):
        raise _WrongError(f"'splits' must be a list or a mapping to files. Got {raw!r} instead.")
    splits = {}
    for name, patterns in raw.items():
        given = [patterns] if isinstance(patterns, str) else patterns
        if not isinstance(given, list) or not given or not all(isinstance(p, str) for p in given):
            raise _WrongError(f"splits.{name} must name files. Got {patterns!r} instead.")
        splits[str(name)] = tuple(_relative(p, f"splits.{name}") for p in given)
    return splits


def _relative(path: str, key: str) -> str:
    if path.startswith("/") or ".." in PurePosixPath(path).parts or "\\" in path:
        raise _WrongError(f"{key!r} must stay below the data root. Got {path!r} instead.")
    return path


def _checksum(file: str, value: str) -> tuple[str, str]:
    if not _SHA256.fullmatch(value):
        raise _WrongError(f"checksums.{file} must be 64 hexadecimal digits (SHA-256).")
    return _relative(file, "checksums"), value


def _task(raw: Any, entry: str) -> Task | None:
    """A task's name, or its definition (kind, labels, metrics, pair)."""
    if raw is None:
        return None
    if isinstance(raw, str):
        return get_task(raw)
    if not isinstance(raw, dict) or not set(raw) <= {"name", "kind", "labels", "metrics", "pair"}:
        raise _WrongError(
            "'task' must be a task's name, or a mapping of kind, labels, metrics and pair."
        )
    kind = raw.get("kind")
    if kind not in _KINDS:
        raise UnknownNameError("kind of task", str(kind), _KINDS)
    labels = _texts(raw, "labels")
    if kind == "classification" and len(labels) < 2:
        raise _WrongError("a classification task needs at least two labels.")
    standard = ("pearson", "spearman") if kind == "regression" else ("accuracy",)
    return Task(
        name=raw.get("name", entry),
        kind=kind,
        labels=labels,
        metrics=_texts(raw, "metrics") or standard,
        pair=bool(raw.get("pair", False)),
    )
