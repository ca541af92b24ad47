"""Things that are written as a name and options: `adapters:size=16`, `soft_labels:layers=6`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from bertology.errors import ParameterError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_NEXT = re.compile(r"\+(?=[A-Za-z])")  # which=1+3+5 is one option
_LONGEST = 60  # letters of a name that is made of a text
_KINDS = {"int": int, "float": float, "str": str}


def option_text(thing: DataclassInstance, name: str, *, hidden: Collection[str] = ()) -> str:
    """As it is written; options that are not given and have no value are left out.

    Of those that are `hidden`, it is only told that they are given.
    """
    values = {f.name: getattr(thing, f.name) for f in fields(thing)}
    values |= dict.fromkeys(hidden, "…")
    options = ",".join(f"{n}={_plain(v)}" for n, v in values.items() if v not in (None, ()))
    return f"{name}:{options}" if options else name


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return "+".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def options_of(
    thing: type[DataclassInstance], text: str, *, kind: str, of: str
) -> dict[str, object]:
    """The options that a text gives, as the fields of `thing` want them.

    `kind` and `of` are named in errors: a way of finetune, a method of compress.
    """
    known: dict[str, Any] = {f.name: f for f in fields(thing)}
    options: dict[str, object] = {}
    _, _, rest = text.strip().partition(":")
    for pair in filter(None, (piece.strip() for piece in rest.split(","))):
        option, equals, value = (part.strip() for part in pair.partition("="))
        option = option.replace("-", "_")
        if not equals or option not in known or option in options:
            raise ParameterError(kind, of, _allowed(text, option, known, options), text)
        options[option] = _value(f"the {kind} {text!r}", option, known[option].type, value)
    return options


def _allowed(text: str, option: str, known: Mapping[str, Any], given: Collection[str]) -> str:
    name = text.strip().partition(":")[0]
    if option in given:
        return f"give {option!r} once"
    offered = ", ".join(n if f.default is None else f"{n}={f.default}" for n, f in known.items())
    return f"have options of {name!r}: {offered}" if offered else f"be {name!r} without options"


def _value(text: str, option: str, annotation: object, value: str) -> object:
    if annotation == "tuple[str, ...]":
        return apart(value)
    wanted = _KINDS[str(annotation).removesuffix(" | None")]
    try:
        return wanted(value)
    except ValueError:
        kind = {int: "a whole number", float: "a number"}[wanted]
        raise ParameterError(option, text, f"be {kind}", value) from None


def separated(texts: Iterable[str]) -> list[str]:
    """One text for each thing: `a:x=1,y=2,b` is `a:x=1,y=2` and `b`.

    A piece with an equals sign, and no colon before it, is one more option of what stands before.
    """
    found: list[str] = []
    for text in texts:
        for piece in filter(None, (p.strip() for p in text.split(","))):
            before, equals, _ = piece.partition("=")
            if equals and ":" not in before and found:
                found[-1] += f"{',' if ':' in found[-1] else ':'}{piece}"
            else:
                found.append(piece)
    return found


def apart(text: str) -> tuple[str, ...]:
    """What is joined by `+`: `a:x=1+3+b` is `a:x=1+3` and `b`."""
    return tuple(piece.strip() for piece in _NEXT.split(text))


def plain_name(text: str) -> str:
    """A name of letters, digits and dashes for what is written, such as a row of a table."""
    together = re.sub(r"(?<=\d)\+(?=\d)", "and", text)  # 2+5 is not 2-5
    name = re.sub(r"[^A-Za-z0-9]+", "-", together).strip("-")
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}-{sha256(text.encode()).hexdigest()[:8]}"
    return name


def filled(text: str, values: Mapping[str, object], *, parameter: str, of: str) -> str:
    """With values in place of {names}; others are refused as what `parameter` of `of` gave."""
    try:
        return text.format(**values)
    except (KeyError, ValueError, IndexError):
        must = f"have no other names in braces than {', '.join(values)}"
        raise ParameterError(parameter, of, must, text) from None
