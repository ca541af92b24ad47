"""Which code draws figures: a stored figure is shown again as long as it would be drawn the same.

Drawing takes a second for each figure, and a page has many. What decides a figure beside the data
is the version of matplotlib and the code that draws: the module of its kind of result, and all of
ours that it imports, directly or not. Figures are stored with a hash of both.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bertology.results.result import Result

_PACKAGE = "bertology"
_MEASURING = ("annotated", "cli", "model", "reproduce", "run", "server", "train")
"""Rooms whose code decides data, and no figure of them."""


def drawn_by(kind: type[Result]) -> str:
    """A hash of all that decides the figures of a kind of result, but for its data."""
    return _drawn_by(kind.__module__)


@cache
def _drawn_by(module: str) -> str:
    found = hashlib.sha256(version("matplotlib").encode())
    seen, todo = set[str](), [module, f"{_PACKAGE}.results.rendering"]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += _imported(name)
    for name in sorted(seen):
        if (source := _source(name)) is not None:
            found.update(name.encode() + b"\n" + source)
    return found.hexdigest()[:16]


@cache
def _imported(module: str) -> tuple[str, ...]:
    """Our modules that a module imports, anywhere in it; those that only measure are left out."""
    source = _source(module)
    if source is None:
        return ()
    found = {name for node in ast.walk(ast.parse(source)) for name in _named(node)}
    return tuple(sorted(name for name in found if _draws(name)))


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        # What is imported from a package may be a module of it.
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _draws(name: str) -> bool:
    package, _, rest = name.partition(".")
    return package == _PACKAGE and bool(rest) and rest.partition(".")[0] not in _MEASURING


@cache
def _source(module: str) -> bytes | None:
    """The text of a module; None for what is no module, or has no file."""
    loaded = getattr(sys.modules.get(module), "__file__", None)
    if loaded is None:
        try:
            spec = find_spec(module)
        except (ImportError, AttributeError, ValueError):
            return None
        loaded = None if spec is None else spec.origin
    path = None if loaded is None else Path(loaded)
    return path.read_bytes() if path is not None and path.suffix == ".py" else None
