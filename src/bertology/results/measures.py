"""What a result says about every head or layer, in the same form for all studies.

The atlas colours its grid of heads by them, and lists them for each head. What is said of pairs of
layers stands in its comparison of two models.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.errors import ParameterError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Grid = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Measure:
    """A number, or a kind, for every head (layer × head) or for every layer (layer)."""

    name: str
    """Lower case with dashes, unique in its result: `attention-entropy`."""
    title: str
    """What it is, for a reader who knows no study: `Entropy of the attention`."""
    values: Grid
    unit: str = ""
    """`nats`, `points of F1`, `share of maps` …; empty for kinds."""
    low: Grid | None = None
    high: Grid | None = None
    sure: NDArray[np.bool_] | None = None
    """Where it is significant after correction for the number of heads, if the study tests that."""
    middle: float | None = None
    """Where the colour changes, such as 0 for gains and losses; None: one scale, low to high."""
    kinds: tuple[str, ...] = ()
    """Names, if `values` are indices into this list rather than numbers."""
    reading: str = ""
    """One sentence: what a high and a low value mean."""

    def __post_init__(self) -> None:
        for name in ("low", "high", "sure"):
            given = getattr(self, name)
            if given is not None and given.shape != self.values.shape:
                raise ParameterError(
                    name, f"the measure {self.name!r}", f"be {self.values.shape}", given.shape
                )

    @classmethod
    def of_column(
        cls,
        table: pd.DataFrame,
        column: str,
        *,
        bounds: tuple[str, str] | tuple[()] | None = (),
        sure: str | None = None,
        scale: float = 1.0,
        **words: Any,
    ) -> Measure:
        """From a column of a table of heads or layers, and the columns of its bounds and tests.

        Bounds that are not named are those of `bounds_of`; None: it has none. `scale` multiplies
        values and bounds, such as 100 for shares in per cent; `words` are the other fields, such
        as `name` and `title`.
        """
        low, high = (
            None if name is None else scale * column_grid(table, name)
            for name in (bounds_of(table, column) if bounds == () else bounds) or (None, None)
        )
        return cls(
            values=scale * column_grid(table, column),
            low=low,
            high=high,
            sure=None if sure is None else column_grid(table, sure).astype(bool),
            **words,
        )

    @property
    def of_heads(self) -> bool:
        """Whether it has a value for every head rather than for every layer."""
        return self.values.ndim == 2


@dataclass(frozen=True, eq=False)
class LayerGrid:
    """A number for every pair of layers: of one model, or of two (rows and columns)."""

    name: str
    """Lower case with dashes, unique in its result: `cka`."""
    title: str
    values: Grid
    """The first row and column are what enters the first layer, then come the layers."""
    unit: str
    reading: str
    low: Grid | None = None
    high: Grid | None = None
    other: str = ""
    """The parameter of the study that names the model of the columns; empty: the same model."""

    def names(self, axis: int) -> list[str]:
        """What rows (0) or columns (1) are called: `input`, `0`, `1` …"""
        return ["input", *map(str, range(self.values.shape[axis] - 1))]


@dataclass(frozen=True)
class Tracked:
    """What is worth following over the steps of a training run, where nobody names a measure."""

    measure: str
    """A quantity of the evidence, or the name of a measure."""
    label: str
    """What it is, in the middle of a sentence."""
    layers: str = ""
    """The measure that is drawn for all layers beside it."""
    at: str = ""
    """Where the measure is read: a layer, or max for the largest; nothing for a quantity."""
    scale: float = 1.0
    unit: str = ""
    gain: bool = False
    """Whether 0 is the line to be crossed: below it, there is nothing that baselines lack."""


def bounds_of(table: pd.DataFrame, column: str) -> tuple[str, str] | None:
    """The columns of a column's bounds, `COLUMN_low` and `COLUMN_high`, where there are any."""
    return (f"{column}_low", f"{column}_high") if f"{column}_low" in table else None


def column_grid(table: pd.DataFrame, column: str) -> NDArray[np.floating]:
    """A column as layer × head, or by layer where the table has no `head`."""
    if "head" in table:
        layer, head = (table[name].to_numpy() for name in ("layer", "head"))
        heads = int(head.max()) + 1 if len(head) else 1
        if np.array_equal(layer * heads + head, np.arange(len(table))):
            # As studies store it, and many times as quick.
            return table[column].to_numpy().reshape(-1, heads)
        return table.pivot(index="layer", columns="head", values=column).to_numpy()
    return table.sort_values("layer")[column].to_numpy()


def dashed(text: str) -> str:
    """A word of the data as part of a measure's name: `role:Agent` as `role-agent`."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
