"""Ways to fine-tune. Every file here but `way.py` is one; the file name is its name.

    bertology finetune bertology-mini mrpc --way adapters:size=16 --way layer_rates:decay=0.9

A way is written as its name and its options. Ways combine; `compatible` refuses what makes no
sense. Two more ways have options of their own in the trainer: features of a frozen encoder are the
start `frozen-features`, and early stopping is `early_stopping`.

A way is a frozen dataclass with options and up to seven hooks (check, prepare, rates, beside,
inputs, loss, finish) into the one trainer.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from bertology.errors import ParameterError
from bertology.registry import Registry
from bertology.train.ways.way import Lesson, Pass, Way
from bertology.train.written_options import options_of

__all__ = ["WAYS", "Lesson", "Pass", "Way", "compatible", "read_way", "read_ways"]


def _modules() -> Mapping[str, str]:
    """`layer_rates.py` holds `LayerRates`."""
    return {
        module.name: f"{__name__}.{module.name}:{module.name.title().replace('_', '')}"
        for module in pkgutil.iter_modules(__path__)
        if module.name != "way"
    }


_ELSEWHERE = {
    "features": "The head alone is trained by --start frozen-features.",
    "early_stopping": "It is an option of its own: --early-stopping 2.",
    "joined_layers": "It is layer_choice:which=last-4,how=joined.",
    "plain": "Without --way, fine-tuning is plain.",
}
"""Variants of `finetuning-variants` that are no ways by these names."""


def _elsewhere(name: str) -> str:
    return _ELSEWHERE.get(name, "")


WAYS: Registry[type[Way]] = Registry(
    "way", group="bertology.ways", builtin=_modules, elsewhere=_elsewhere
)


def read_ways(given: Iterable[str | Way], *, start: str = "pretrained") -> tuple[Way, ...]:
    """Ways from their texts, in the order in which they are applied, if they can be combined."""
    ways = [way if isinstance(way, Way) else read_way(way) for way in given]
    ordered = tuple(sorted(ways, key=lambda way: (way.order, way.name)))
    compatible(ordered, start=start)
    return ordered


def read_way(text: str) -> Way:
    """The way that a text such as `adapters:size=16` describes."""
    name, _, _ = text.strip().partition(":")
    kind = WAYS.get(name.replace("-", "_"))
    options: dict[str, Any] = options_of(kind, text, kind="way", of="finetune")
    return kind(**options)


def compatible(ways: Sequence[Way], *, start: str = "pretrained") -> None:
    """Refuse ways that make no sense together, or not with what the training starts from."""
    names = [way.name for way in ways]
    for way in ways:
        if names.count(way.name) > 1:
            _refuse(ways, f"name {way.name!r} once")
        if start not in way.starts:
            _refuse(ways, f"not have {way.name!r} with the start {start!r}: {_why(way, start)}")
        for other, why in way.against.items():
            if other in names:
                _refuse(ways, f"not have {way.name!r} and {other!r} together: {why}")


def _why(way: Way, start: str) -> str:
    return {
        "frozen": "nothing is trained from it",
        "frozen-features": "it trains the head alone, so that nothing is left to do for the way",
        "random": "it has no pre-trained weights, which the way is about",
    }.get(start, f"it goes with {', '.join(sorted(way.starts))}")


def _refuse(ways: Collection[Way], must: str) -> None:
    raise ParameterError("ways", "finetune", must, [way.text for way in ways])
