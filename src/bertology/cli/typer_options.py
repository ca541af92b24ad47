"""From the fields of a dataclass to the arguments and options that typer reads."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer
from rich.markup import escape

from bertology.errors import ParameterError
from bertology.parameters import following, option_name

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_LINE = 24  # characters of a line in the last column of the help, in a narrow terminal
_SCALARS = (int, float, str)
_KNOWN_TO_TYPER = (bool, int, float, str, Path)


def argument(help: str, default: object = MISSING, **settings: object) -> Any:
    """A field that is given by its position; without a default it must be given."""
    return field(default=default, metadata={"help": help, "argument": True, **settings})


def required(help: str, **settings: object) -> Any:
    """A field that must be given as an option."""
    return field(metadata={"help": help, **settings})


def options_of(
    kind: type[DataclassInstance], *, panel: str | None = None
) -> Iterator[inspect.Parameter]:
    """A keyword of a typer command for each field of `kind`.

    In the help a field stands in the `panel` of the class that declares it, else in `panel`.
    """
    for f in fields(kind):
        if "at_least_option" in f.metadata:
            continue
        home = next(c for c in kind.__mro__ if f.name in vars(c).get("__annotations__", {}))
        place = None if f.metadata.get("argument") else vars(home).get("panel", panel)
        yield _option(f, _annotation(home, f), place)


def given_values(kind: type[DataclassInstance], options: Mapping[str, object]) -> dict[str, object]:
    """The fields of `kind` among the values that typer read; None stands for the default."""
    given = {f.name: options[f.name] for f in fields(kind) if options.get(f.name) is not None}
    for name, value in given.items():
        if value == ():  # as of an unset variable of the shell; the default would surprise
            raise ParameterError(name, kind.__name__, "have a value, or be left out", "")
    return given | following(kind, options)


def in_options(
    error: ParameterError,
    command: str,
    kinds: Sequence[type[DataclassInstance]],
    given: Mapping[str, object],
) -> ParameterError:
    """The error with names of options, which the user typed, in place of names of fields.

    Parts of the work have parameters of their own, which may be called as an option is. So either
    the error must be about the command or one of its `kinds`, or the value must be the option's.
    """
    shown = {f.name: _shown_name(f) for kind in kinds for f in fields(kind)}
    names = error.name.split(", ")
    if not all(name in shown for name in names):
        return error
    about = {command, *(base.__name__ for kind in kinds for base in kind.__mro__)}
    values = [given.get(name) for name in names]
    values += [list(value) for value in values if isinstance(value, tuple)]
    if error.of not in about and error.got not in map(repr, values):
        return error
    # A word of the sentence may be a field's name too, but not one with an underscore.
    must = re.sub(r"\w+_\w+", lambda found: shown.get(found[0], found[0]), error.must)
    return error.as_option(", ".join(shown[name] for name in names), command, must)


def _shown_name(f: Field[object]) -> str:
    if f.metadata.get("argument"):
        return str(f.metadata.get("metavar") or f.name.upper())
    return f"--{option_name(f)}"


def pairs_of(given: Iterable[str], option: str, command: str, example: str) -> dict[str, str]:
    """Names and values from an option such as `--columns text=sentence,label=gold`."""
    found = {}
    for pair in given:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not (name and equals and value):
            raise ParameterError(option, command, f"be pairs such as {example}", pair)
        found[name] = value
    return found


def _option(f: Field[object], annotation: Any, panel: str | None) -> inspect.Parameter:
    meta = f.metadata
    choices = meta.get("choices")
    # Square brackets, as in bertology[onnx], are not markup.
    settings: dict[str, Any] = {"help": escape(meta.get("help", "")), "rich_help_panel": panel}
    word = meta.get("metavar") or ("MODEL" if meta.get("model") else None)
    if word is None and meta.get("argument"):
        word = f.name.upper()
    if word is not None:
        settings["metavar"] = word
    if choices and all(isinstance(c, str) for c in choices):
        annotation = Literal[tuple(choices)]
    elif annotation is bool:
        settings["metavar"] = ""  # a flag takes no value
    elif annotation in (int, float):
        settings |= {"min": meta.get("minimum"), "max": meta.get("maximum")}
    elif annotation not in _KNOWN_TO_TYPER and get_origin(annotation) is not list:
        settings["parser"] = _parser(annotation)
        settings.setdefault("metavar", _metavar(annotation))
        annotation = object
    default = _default(f)
    if isinstance(default, str) and "," in default and len(default) > _LINE:
        settings["show_default"] = default.replace(",", ", ")  # so that lines may break
    if default is None and annotation is not object:
        annotation = annotation | None
    declared = (
        typer.Argument(**settings)
        if meta.get("argument")
        else typer.Option(*_names(f, annotation), **settings)
    )
    return inspect.Parameter(
        f.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[annotation, declared],
    )


def _names(f: Field[object], annotation: object) -> tuple[str, ...]:
    """`--name`, and for a yes or no that is not a mere flag also `--no-name`."""
    name = f"--{option_name(f)}"
    if annotation is bool and not f.metadata.get("flag"):
        return (f"{name}/--no-{name.removeprefix('--')}",)
    return (name,)


def _annotation(home: type[object], f: Field[object]) -> Any:
    """The field's type without its `| None`; `object` where it cannot be told at run time."""
    annotation: Any = f.type
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, vars(sys.modules[home.__module__]))
        except NameError:
            return object
    if get_origin(annotation) in (Union, UnionType):
        kinds = [a for a in get_args(annotation) if a is not NoneType]
        annotation = kinds[0] if len(kinds) == 1 else object
    return annotation


def _default(f: Field[object]) -> object:
    """The default as typer shows it in the help: sequences as the user would write them."""
    value = f.default_factory() if f.default_factory is not MISSING else f.default
    if value is MISSING:
        return inspect.Parameter.empty
    if isinstance(value, tuple | list):
        plain = all(isinstance(v, _SCALARS) for v in value)
        return (",".join(str(v) for v in value) if plain else json.dumps(value)) or None
    return value


def _item(annotation: object) -> object:
    """The type of a sequence's items: `int` of `tuple[int, ...]`; None if there is not one."""
    arguments = {a for a in get_args(annotation) if a is not ...}
    return arguments.pop() if len(arguments) == 1 else None


def _metavar(annotation: object) -> str:
    item = _item(annotation)
    if isinstance(item, type) and item in _SCALARS:
        return f"{item.__name__},…".upper()
    return "INT.INT,…" if _item(item) is int else "JSON"


def _parser(annotation: object) -> Callable[[object], object]:
    """Reads `0,3,5` (scalars), `3.5,4.1` (pairs of integers) or any JSON."""
    item = _item(annotation)

    def parse(text: object) -> object:
        if not isinstance(text, str):
            return text
        try:
            if text.lstrip().startswith(("[", "{")) or item is None:
                return _tuples(json.loads(text))
            pieces = [p.strip() for p in text.split(",") if p.strip()]
            if isinstance(item, type) and item in _SCALARS:
                return tuple(item(p) for p in pieces)
            return tuple(tuple(int(n) for n in p.split(".")) for p in pieces)
        except (ValueError, RecursionError):
            expected = _metavar(annotation)
            raise typer.BadParameter(f"{text!r} is not of the form {expected}.") from None

    return parse


def _tuples(value: object) -> object:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
