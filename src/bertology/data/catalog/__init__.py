"""The catalogue: one YAML file per dataset, ours beside this file, others by entry point.

A package adds datasets by naming its folder of YAML files in the entry-point group
`bertology.catalog` (value: the package that holds them, e.g. `my_package.datasets`).
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable

from bertology.data.catalog.entry import CatalogEntry, read_entry
from bertology.errors import DataError, UnknownNameError

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
