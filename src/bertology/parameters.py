"""Parameters as dataclass fields: default, help line and limits, for studies and for commands."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import Field, field, fields
from typing import TYPE_CHECKING, Any

from bertology.errors import ParameterError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


KEEP_PARTS = "1GB"
"""Measurements up to this size stay in a store, where the user does not say."""


def size_of(text: str) -> int | None:
    """The bytes that `all` (None: without end), `none` or a size such as 500MB stand for."""
    if text in ("all", "none"):
        return None if text == "all" else 0
    units = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text)
    if found is None or found[2].upper() not in units:
        must = "be all, none or a size such as 500MB or 2GB"
        raise ParameterError("keep_parts", "run", must, text)
    return int(float(found[1]) * units[found[2].upper()])


def parameter(default: Any, help: str, **limits: Any) -> Any:
    """A field of a frozen dataclass: its default, its line of `--help`, and what it may be.

    `limits` may hold `choices=(…)`, `minimum=…`, `maximum=…`; `check_parameters` checks them, for
    the command line as for Python. In a study, `model=True` says that the value names another
    model, which `measure` finds loaded in `context.others`; "" names none, or, with `before=True`
    too, the one that the studied model was fine-tuned from (`before="if known"`: or none).

    In a study, `concludes=True` says that the value decides only what is concluded of what was
    measured: measuring cannot read it, and what was measured serves all values of it.

    `option="name"` is another name for the command line. `at_least_option="limit"` gives it none:
    where `--limit` is more than the default, it is that.
    """
    return field(default=default, metadata={"help": help, **limits})


def drawn(default: int, what: str = "examples", *, minimum: int = 2) -> Any:
    """How many are drawn of the corpus: the parameter that follows `--limit`."""
    text = f"Draw so many of the {what} at random; all if there are fewer."
    return parameter(default, text, minimum=minimum, at_least_option="limit")


def pooling_of(what: str) -> Any:
    """How the state of something that has several pieces is made of theirs."""
    text = f"The state of {what}: that of its first piece, its last, or the mean."
    return parameter("mean", text, choices=("first", "last", "mean"))


def flag(help: str) -> Any:
    """A field that is False unless the user gives `--name`."""
    return field(default=False, metadata={"help": help, "flag": True})


def option_name(f: Field[Any]) -> str:
    """What a field is called on the command line, without the dashes before it."""
    meta = f.metadata
    return str(meta.get("option") or meta.get("at_least_option") or f.name.replace("_", "-"))


def following(kind: type[DataclassInstance], options: Mapping[str, object]) -> dict[str, object]:
    """Fields without an option of their own, raised to the value of the option they follow."""
    found: dict[str, object] = {}
    for f in fields(kind):
        value = options.get(f.metadata.get("at_least_option", ""))
        if isinstance(value, int) and isinstance(f.default, int) and value > f.default:
            found[f.name] = value
    return found


def check_parameters(given: DataclassInstance, *, of: str | None = None) -> None:
    """Refuse a value outside its declared choices or limits; `of` is named in the error."""
    for f in fields(given):
        must = _broken_limit(f, getattr(given, f.name))
        if must is not None:
            raise ParameterError(f.name, of or type(given).__name__, must, getattr(given, f.name))


def check_some_of(
    given: DataclassInstance, name: str, known: Collection[str], *, least: int = 1
) -> None:
    """Refuse names other than the known ones in a parameter, one twice, or too few."""
    names = getattr(given, name)
    if set(names) - set(known) or len(set(names)) < len(names) or len(names) < least:
        must = f"be some of {', '.join(known)}, none twice"
        raise ParameterError(name, type(given).__name__, must, list(names))


def _broken_limit(f: Field[Any], value: Any) -> str | None:
    """What the value must be and is not."""
    meta = f.metadata
    if value is None:
        return None
    choices: Sequence[object] | None = meta.get("choices")
    if choices is not None and value not in choices:
        return f"be one of {', '.join(repr(c) for c in choices)}"
    if "minimum" in meta and not value >= meta["minimum"]:
        return f"be at least {meta['minimum']}"
    if "maximum" in meta and not value <= meta["maximum"]:
        return f"be at most {meta['maximum']}"
    return None
