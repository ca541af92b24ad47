"""The catalogue: one YAML file per dataset, ours beside this file, others by entry point.

A package adds datasets by naming its folder of YAML files in the entry-point group
`bertology.catalog` (value: the package that holds them, e.g. `my_package.datasets`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from bertology.data.corpus import Field, Task
from bertology.data.readers import READERS
from bertology.data.tasks import get_task
from bertology.errors import DataError, UnknownNameError
from bertology.yaml_sections import Section, parse_section

# One entry of the catalogue, read from YAML and checked.

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class CatalogEntry:
    """A dataset: what it is, its source and licence, its folder below the data root, its reader."""

    name: str
    title: str
    source: str  # where it comes from: an address
    licence: str
    reader: str
    fields: tuple[Field, ...]
    splits: Mapping[str, tuple[str, ...]]  # split -> files (patterns); none: the reader knows
    # A pattern may hold {language}: the code of the language whose texts the file holds.
    get: str  # how to get it; {folder} is where it belongs
    citation: str = ""
    folder: str = ""  # below the data root; empty for what is made, not read
    task: Task | None = None
    aliases: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    checksums: Mapping[str, str] = field(default_factory=dict)  # file -> sha256
    parallel: bool = (
        False  # texts with the same id say the same in each language: they are one item
    )

    @property
    def haystack(self) -> str:
        """What a search looks through."""
        task = self.task.name if self.task else ""
        parts = (self.name, *self.aliases, self.title, task, *self.fields, self.citation)
        return " ".join(parts).lower()


def read_entry(text: str, *, where: str) -> CatalogEntry:
    """The entry in a YAML text; a DataError says what is wrong with it, and in which line."""
    section = parse_section(text, label=where)
    given = section.values(CatalogEntry, apart=("splits", "task", "columns", "checksums"))
    given = {key: v.strip() if isinstance(v, str) else v for key, v in given.items()}
    name, reader = given["name"], given["reader"]
    if not _NAME.fullmatch(name):
        raise section.wrong("name", f"the name {name!r} must be small letters, digits and hyphens")
    if reader not in READERS:
        raise _unknown(section, "reader", UnknownNameError("reader", reader, READERS))
    if not given["fields"]:
        raise section.wrong("fields", "'fields' must not be empty")
    _check_below(section, "folder", given.get("folder", ""))
    return CatalogEntry(
        **given,
        splits=_splits(section),
        task=_task(section, name),
        columns=_columns(section),
        checksums=_checksums(section),
    )


def _unknown(section: Section, key: str, error: UnknownNameError) -> DataError:
    return section.wrong(key, error.problem.rstrip("."), hint=error.hint)


def _check_below(section: Section, key: str, *paths: str) -> None:
    for path in paths:
        if path.startswith("/") or ".." in PurePosixPath(path).parts or "\\" in path:
            must = "must stay below the data root"
            raise section.wrong(key, f"{section.name(key)!r} {must}. Got {path!r} instead")


def _splits(section: Section) -> dict[str, tuple[str, ...]]:
    """A list of names (the reader knows the files) or a mapping of names to file patterns."""
    if section.holds("splits") == "list":
        return dict.fromkeys(section.read("splits", tuple[str, ...]), ())
    if section.holds("splits") not in ("mapping", "nothing"):
        raise section.wrong("splits", "'splits' must be a list, or a mapping of names to files")
    inner = section.section("splits")
    splits = {}
    for name in inner:
        one = inner.holds(name) == "text"
        files = (inner.text(name),) if one else inner.read(name, tuple[str, ...])
        if not files:
            raise inner.wrong(name, f"{inner.name(name)!r} must name files")
        _check_below(inner, name, *files)
        splits[name] = files
    return splits


def _columns(section: Section) -> dict[str, str]:
    if "columns" not in section:
        return {}
    columns = section.section("columns")
    columns.only([*(f.value for f in Field), "id"])
    return {key: columns.text(key) for key in columns}


def _checksums(section: Section) -> dict[str, str]:
    if "checksums" not in section:
        return {}
    inner = section.section("checksums")
    found = {file: inner.text(file) for file in inner}
    for file, value in found.items():
        _check_below(inner, file, file)
        if not _SHA256.fullmatch(value):
            must = "must be 64 hexadecimal digits (SHA-256)"
            raise inner.wrong(file, f"{inner.name(file)!r} {must}")
    return found


class _Kind(StrEnum):
    CLASSIFICATION = "classification"
    REGRESSION = "regression"
    TAGGING = "tagging"
    MULTIPLE_CHOICE = "multiple-choice"


@dataclass(frozen=True)
class _TaskFields:
    """A task that is defined in the entry itself."""

    kind: _Kind
    labels: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    name: str | None = None
    pair: bool = False


def _task(section: Section, entry: str) -> Task | None:
    """A task's name, or its definition."""
    if section.holds("task") == "nothing":
        return None
    if section.holds("task") == "text":
        try:
            return get_task(section.text("task"))
        except UnknownNameError as error:
            raise _unknown(section, "task", error) from None
    inner = section.section("task")
    task = inner.make(_TaskFields)
    if task.kind == _Kind.CLASSIFICATION and len(task.labels) < 2:
        raise inner.wrong("labels", "a classification task needs at least two labels")
    standard = ("pearson", "spearman") if task.kind == _Kind.REGRESSION else ("accuracy",)
    return Task(
        name=task.name or entry,
        kind=task.kind.value,
        labels=task.labels,
        metrics=task.metrics or standard,
        pair=task.pair,
    )


__all__ = ["CatalogEntry", "entries", "find", "get", "read_entry"]


@cache
def entries() -> dict[str, CatalogEntry]:
    """Every entry by its name, sorted. Our own names win over those of installed packages."""
    found: dict[str, CatalogEntry] = {}
    for folder in [files(__name__), *_brought()]:
        for file in sorted(folder.iterdir(), key=lambda f: f.name):
            if file.name.endswith((".yaml", ".yml")):
                try:
                    text = file.read_text(encoding="utf-8")
                except UnicodeDecodeError:
                    raise DataError(f"The catalogue entry {file} is not UTF-8.") from None
                entry = read_entry(text, where=str(file))
                found.setdefault(entry.name, entry)
    return dict(sorted(found.items()))


def _brought() -> list[Traversable]:
    folders = []
    for point in entry_points(group="bertology.catalog"):
        try:
            folders.append(files(point.value))
        except ModuleNotFoundError as error:
            raise DataError(
                f"The catalogue {point.name!r} names the package {point.value!r}: {error}.",
                hint=f"Reinstall or remove the package that brings {point.name!r}.",
            ) from None
    return folders


def get(name: str) -> CatalogEntry:
    """The entry of that name or alias, in any case; an UnknownNameError offers the nearest."""
    wanted = name.lower()
    for entry in entries().values():
        if wanted == entry.name or wanted in entry.aliases:
            return entry
    raise UnknownNameError("corpus", name, entries(), hint="`bertology datasets` lists them.")


def find(query: str = "") -> list[CatalogEntry]:
    """Entries with every word of `query` in their name, title, task, fields or citation."""
    words = query.lower().split()
    return [entry for entry in entries().values() if all(w in entry.haystack for w in words)]
