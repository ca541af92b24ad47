"""What the model is given and what is switched off in it: the key of every answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Changes:
    """What is switched off, sorted, so that equal sets compare as equal."""

    heads: tuple[tuple[int, int], ...] = ()
    layers: tuple[int, ...] = ()
    dimensions: tuple[int, ...] = ()
    how: str = "uniform"

    def __bool__(self) -> bool:
        return bool(self.heads or self.layers or self.dimensions)


@dataclass(frozen=True)
class Shown:
    """What the model is given, and what is switched off in it."""

    text: str
    pair: str | None = None
    masked: tuple[int, ...] = ()
    changes: Changes = Changes()

    @property
    def intact(self) -> Shown:
        """The same with nothing off."""
        return Shown(self.text, self.pair, self.masked)
