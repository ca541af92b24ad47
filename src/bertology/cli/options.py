"""From a dataclass's fields to the options of a command: name, type, limits, help, default."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer

from bertology.errors import ParameterError

__all__ = ["columns_of", "given_values", "options_of"]

_SCALARS = (int, float, str)


def options_of(kind: type[Any], *, panel: str) -> list[inspect.Parameter]:
    """One keyword of a typer command for each field of `kind`, listed under `panel`.

    An option that is not given is None, so that the dataclass's own default counts; the help
    shows that default.
    """
    return [_option(kind, f, panel) for f in fields(kind)]


def given_values(kind: type[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `kind` that the user gave on the command line."""
    given = {f.name: options[f.name] for f in fields(kind) if options.get(f.name) is not None}
    for name, value in given.items():
        if value == ():  # as of an unset variable of the shell; the default would surprise
            option = f"--{name.replace('_', '-')}"
            raise ParameterError(option, "the command", "name something, or be left out", "")
    return given


def columns_of(pairs: Iterable[str], *, of: str) -> dict[str, str]:
    """Which column holds which field, from `--columns` of the command called `of`."""
    found = {}
    for pair in pairs:
        name, equals, column = pair.partition("=")
        if not (name and equals and column):
            raise ParameterError("--columns", of, "be pairs such as label=gold", pair)
        found[name] = column
    return found


def _option(kind: type[Any], f: Field[Any], panel: str) -> inspect.Parameter:
    required = f.default is MISSING and f.default_factory is MISSING
    annotation = _annotation(kind, f)
    choices = f.metadata.get("choices")
    shown = "" if required else _shown(f)
    settings: dict[str, Any] = {
        # Typer would put a default that is not the option's own in parentheses.
        "help": f.metadata.get("help", "") + (f" [default: {shown}]" if shown else ""),
        "rich_help_panel": panel,
        "show_default": False,
    }
    if choices and all(isinstance(c, str) for c in choices):
        annotation = Literal[tuple(choices)]
    elif f.metadata.get("model"):
        settings["metavar"] = "MODEL"
    elif annotation in (int, float):
        settings |= {"min": f.metadata.get("minimum"), "max": f.metadata.get("maximum")}
    elif annotation not in (bool, str):
        settings |= {"parser": _parser(annotation), "metavar": _metavar(annotation)}
        annotation = object
    name = f.name.replace("_", "-")
    flags = (f"--{name}/--no-{name}",) if annotation is bool else (f"--{name}",)
    if f.metadata.get("flag"):
        flags = (f"--{name}",)
    wanted = annotation if required or annotation is object else annotation | None
    return inspect.Parameter(
        f.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else None,
        annotation=Annotated[wanted, typer.Option(*flags, **settings)],
    )


def _annotation(kind: type[Any], f: Field[Any]) -> Any:
    """The field's type without its `| None`; `object` where it cannot be told at run time."""
    annotation: Any = f.type
    if isinstance(annotation, str):
        home = next(c for c in kind.__mro__ if f.name in vars(c).get("__annotations__", {}))
        try:
            annotation = eval(annotation, vars(sys.modules[home.__module__]))
        except NameError:
            return object
    if get_origin(annotation) in (Union, UnionType):
        kinds = [a for a in get_args(annotation) if a is not NoneType]
        annotation = kinds[0] if len(kinds) == 1 else object
    return annotation


def _shown(f: Field[Any]) -> str:
    value = f.default_factory() if f.default_factory is not MISSING else f.default
    if value is None or value == () or (f.metadata.get("flag") and value is False):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ",".join(str(v) for v in value)
    return str(value)


def _item(annotation: Any) -> Any:
    """The type of a sequence's items: an int of `tuple[int, ...]`, else None."""
    arguments = [a for a in get_args(annotation) if a is not ...]
    same = len(set(arguments)) == 1
    return arguments[0] if same else None


def _metavar(annotation: Any) -> str:
    item = _item(annotation)
    if item in _SCALARS:
        return f"{item.__name__},…".upper()
    if _item(item) is int:
        return "INT.INT,…"
    return "JSON"


def _parser(annotation: Any) -> Callable[[Any], Any]:
    """Reads `0,3,5` (scalars), `3.5,4.1` (pairs of integers) or any JSON."""
    item = _item(annotation)

    def parse(text: Any) -> Any:
        if not isinstance(text, str):
            return text
        try:
            if text.lstrip().startswith(("[", "{")) or item is None:
                return _tuples(json.loads(text))
            pieces = [p.strip() for p in text.split(",") if p.strip()]
            if item in _SCALARS:
                return tuple(item(p) for p in pieces)
            return tuple(tuple(int(n) for n in p.split(".")) for p in pieces)
        except ValueError:
            expected = _metavar(annotation)
            raise typer.BadParameter(f"{text!r} is not of the form {expected}.") from None

    return parse


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
