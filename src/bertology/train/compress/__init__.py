"""Methods of compression. Every file here but those in `_OTHERS` is one; the file name is its name.

    bertology compress my-model --task mrpc --method layer_choice:layers=6,int8 --to small

A method is written as its name and its options, several of them in the order in which they are
applied. `check_sequence` refuses what makes no sense, before any work.

A method is a frozen dataclass with options and `apply(work)`. `Work` holds the model as it is now,
the original, data, and the one way to train; `compressing` applies methods in sequence, keeps each
finished one, and measures the result beside the original.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bertology.errors import CapabilityError, ParameterError, UnknownNameError
from bertology.registry import Registry
from bertology.train.compress.method import (
    EXITS,
    FORM,
    LEARNING,
    OTHER,
    SHAPE,
    STORED,
    ZEROS,
    Method,
)
from bertology.train.written_options import options_of, separated

__all__ = ["METHODS", "Method", "check_again", "check_sequence", "read_methods"]

_OTHERS = {
    "compressed",
    "compressing",
    "measuring",
    "method",
    "settings",
    "students",
    "text_first",
    "work",
}


def _modules() -> Mapping[str, str]:
    """`layer_choice.py` holds `LayerChoice`."""
    return {
        module.name: f"{__name__}.{module.name}:{module.name.title().replace('_', '')}"
        for module in pkgutil.iter_modules(__path__)
        if module.name not in _OTHERS
    }


METHODS: Registry[type[Method]] = Registry(
    "method of compression", group="bertology.compression", builtin=_modules
)

_FILLED = "its training would fill the zeros again"
_LAST = "weights that are stored in fewer bits are neither trained nor cut; put it last"
_PARTS = "it cuts ordinary layers, and the model has other parts by then"
_NONE = "it is for transformers, and the model is none by then"
_STALE = "exits are trained for the model as it is; put them after it"
_AFTER: Mapping[str, Mapping[str, str]] = {
    SHAPE: {FORM: _PARTS, EXITS: _STALE, ZEROS: _FILLED, STORED: _LAST, OTHER: _NONE},
    FORM: {EXITS: _STALE, ZEROS: _FILLED, STORED: _LAST, OTHER: _NONE},
    EXITS: {EXITS: _STALE, STORED: _LAST, OTHER: _NONE},
    OTHER: {},
    LEARNING: {EXITS: _STALE, ZEROS: _FILLED, STORED: _LAST},
    ZEROS: {EXITS: _STALE, ZEROS: _FILLED, STORED: _LAST, OTHER: _NONE},
    STORED: {STORED: _LAST},
}
"""Kinds of methods, and the kinds that cannot come before them."""


def read_methods(given: Iterable[str | Method]) -> tuple[Method, ...]:
    """Methods from their texts, in their order, if they can be applied one after the other."""
    found: list[Method] = []
    for one in given:
        if isinstance(one, Method):
            found.append(one)
        else:
            found += [_read(text) for text in separated([one])]
    check_sequence(found)
    return tuple(found)


def _read(text: str) -> Method:
    name, _, _ = text.partition(":")
    asked = name.strip().replace("-", "_")
    if asked not in METHODS.names():
        hint = "`bertology compress --help` lists all."
        raise UnknownNameError(METHODS.kind, asked, METHODS.names(), hint=hint)
    kind = METHODS.get(asked)
    options: dict[str, Any] = options_of(kind, text, kind="method", of="compress")
    return kind(**options)


def check_sequence(methods: Sequence[Method]) -> None:
    """Refuse methods that make no sense one after the other."""
    if not methods:
        known = ", ".join(METHODS.names())
        raise ParameterError("method", "compress", f"name at least one of {known}", "none")
    for number, later in enumerate(methods):
        for earlier in methods[:number]:
            why = _AFTER[later.kind].get(earlier.kind) or later.unfit_after(earlier)
            if later.begins:
                why = "it begins with the original model, or another, so only it can be the first"
            if why:
                must = f"not have {later.name!r} after {earlier.name!r}: {why}"
                raise ParameterError("method", "compress", must, [m.text for m in methods])


def check_again(methods: Sequence[Method], name: str, steps: Iterable[str]) -> None:
    """Refuse methods for a model `name` that was made by others (`steps`) and does not allow them.

    Weights of 16 bits are ordinary ones when they are loaded, and allow everything.
    """
    for earlier in (_read(text) for text in steps):
        for later in methods:
            why = _AFTER[later.kind].get(earlier.kind) or later.unfit_after(earlier)
            if why and earlier.name != "half":
                raise CapabilityError(
                    f"{name} was made by {earlier.name!r}, and {later.name!r} cannot come after "
                    f"it: {why}.",
                    hint="Compress the model that it was made of, by all methods in one command.",
                )
