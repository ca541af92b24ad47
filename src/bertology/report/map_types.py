"""Figures of map types: how often each occurs, and which one each head has."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bertology.errors import ParameterError
from bertology.report.look import GREY, INK, look, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["TYPE_COLOURS", "type_bars", "type_grid"]

# Of Okabe and Ito, ordered so that neighbours in a bar differ in lightness as well.
TYPE_COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d9d9d9")
_CENTRED: dict[str, Any] = {"ha": "center", "va": "center"}


def type_bars(
    shares: ArrayLike,
    *,
    types: Sequence[str],
    names: Sequence[str],
    title: str,
    note: str,
    label: str = "share of all attention maps",
) -> Figure:
    """A bar for each row of `shares` (rows × types, as fractions), cut into the types.

    `names` stand beside the bars: layers, or tasks as in the paper's Figure 2.
    """
    share = np.asarray(shares, dtype=float)
    if share.shape != (len(names), len(types)):
        raise ParameterError(
            "shares", "type_bars", f"be {len(names)} × {len(types)} numbers", share.shape
        )
    with look():
        figure, axes = new_figure(7.0, max(2.6, 0.27 * len(names) + 1.7))
        start = np.zeros(len(names))
        rows = np.arange(len(names))
        for i, name in enumerate(types):
            part = 100 * share[:, i]
            colour = TYPE_COLOURS[i]
            axes.barh(rows, part, left=start, height=0.78, color=colour, label=name, linewidth=0)
            for row in np.flatnonzero(part >= 8):
                ink = "white" if i == 0 else INK
                middle = start[row] + part[row] / 2
                axes.text(middle, float(row), f"{part[row]:.0f}", color=ink, **_CENTRED, fontsize=7)
            start += part
        axes.set(xlim=(0, 100), xlabel=f"{label} (%)", yticks=rows, yticklabels=list(names))
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.spines[["left", "bottom"]].set_visible(False)
        _finish(figure, axes, title, note)
    return figure


def type_grid(
    majority: ArrayLike, shares: ArrayLike, *, types: Sequence[str], title: str, note: str
) -> Figure:
    """The most frequent type of each head (layers × heads), with its share in per cent."""
    kinds, share = np.asarray(majority, dtype=int), np.asarray(shares, dtype=float)
    if kinds.ndim != 2 or share.shape != kinds.shape:
        raise ParameterError("shares", "type_grid", f"have the shape {kinds.shape}", share.shape)
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    layers, heads = kinds.shape
    cell = min(0.42, 6.0 / max(heads, layers, 1))
    with look():
        figure, axes = new_figure(max(6.4, heads * cell + 1.9), max(3.5, layers * cell + 1.9))
        axes.pcolormesh(
            np.arange(heads + 1) - 0.5,
            np.arange(layers + 1) - 0.5,
            kinds,
            cmap=ListedColormap(TYPE_COLOURS),
            vmin=-0.5,
            vmax=len(TYPE_COLOURS) - 0.5,
            edgecolors="white",
            linewidth=0.8,
        )
        for (layer, head), value in np.ndenumerate(100 * share):
            ink = "white" if kinds[layer, head] == 0 else INK
            axes.text(head, layer, f"{value:.0f}", ha="center", va="center", color=ink,
                      fontsize=16 * cell)  # fmt: skip
        axes.set(xlabel="head", ylabel="layer", aspect="equal")
        axes.set(xticks=range(heads), yticks=range(layers))
        axes.set_ylim(layers - 0.5, -0.5)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        patches = [Patch(color=TYPE_COLOURS[i], label=name) for i, name in enumerate(types)]
        _finish(figure, axes, title, note, patches)
    return figure


def _finish(
    figure: Figure, axes: Axes, title: str, note: str, handles: Sequence[object] | None = None
) -> None:
    figure.suptitle(title, x=0.01, ha="left")
    given = {} if handles is None else {"handles": handles}
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=5, frameon=False, fontsize=7.5,
        columnspacing=1.2, handlelength=1.0, handletextpad=0.4, borderaxespad=0.1, **given,
    )  # fmt: skip
    figure.supxlabel(fill(note, 105), x=0.01, ha="left", fontsize=7.5, color=GREY)
