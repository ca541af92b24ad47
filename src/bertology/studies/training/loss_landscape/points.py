"""Every point of loss landscapes as tables: along lines, of surfaces, and of the ways of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.train.landscape.places import around_places, share_places, way_places

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

AROUND, PATH = "around", "path"
_WHERE = {"run", "between", "way"}

Floats = NDArray[np.float64]


def line_table(parts: Mapping[Any, xr.Dataset], reach: float) -> pd.DataFrame:
    """Every loss along a line: around the end, on the way there, and to the end of another."""
    import pandas as pd

    frames = []

    def add(start: str, line: str, seed: int, direction: int, at: Floats, losses: Floats) -> None:
        told = {"start": start, "line": line, "seed": seed, "direction": direction}
        frames.append(pd.DataFrame({**told, "place": np.round(at, 9), "loss": losses}))

    for part, found in parts.items():
        if part.kind == "run":
            seed = part.numbers[0]
            around = found["around_losses"].to_numpy()
            for number, losses in enumerate(around):
                at = around_places(reach, len(losses))
                add(part.start, AROUND, seed, number, at, losses)
            way = found["way_losses"].to_numpy()
            add(part.start, "way", seed, 0, way_places(len(way)), way)
        elif part.kind == "between":
            losses = found["losses"].to_numpy()
            add(part.start, "between", part.numbers[0], 0, share_places(len(losses)), losses)
    return pd.concat(frames, ignore_index=True)


def surface_table(parts: Mapping[Any, xr.Dataset], grid: int, reach: float) -> pd.DataFrame:
    """Every point of the surfaces."""
    import pandas as pd

    frames = []
    for part, found in parts.items():
        if part.kind in _WHERE:
            continue
        at = way_places(grid) if part.kind == PATH else around_places(reach, grid)
        y = np.round(at[part.numbers[0]], 9)
        losses = found["losses"].to_numpy()
        row = {"start": part.start, "plane": part.kind, "x": np.round(at, 9), "y": y}
        frames.append(pd.DataFrame({**row, "loss": losses}))
    found_rows = pd.concat(frames, ignore_index=True)
    return found_rows.sort_values(["start", "plane", "y", "x"], ignore_index=True)


def path_table(parts: Mapping[Any, xr.Dataset]) -> pd.DataFrame:
    """Where runs and their twins pass through the plane."""
    import pandas as pd

    frames = []
    for part, found in parts.items():
        if part.kind != "way":
            continue
        epochs = found.sizes["stop"] - 2
        stops = ["start", *(f"epoch {n}" for n in range(1, epochs + 1)), "twin's end"]
        columns = {name: found[name].to_numpy() for name in ("x", "y", "inside", "loss")}
        frames.append(pd.DataFrame({"start": part.start, "stop": stops, **columns}))
    return pd.concat(frames, ignore_index=True)
