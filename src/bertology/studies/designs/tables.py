"""Tables of heads and layers, put together the same way by every study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import pandas as pd

    from bertology.stats.partial_means import PartialMeans

__all__ = ["head_table", "with_bounds"]


def head_table(
    layers: int,
    heads: int,
    columns: Mapping[str, ArrayLike],
    *,
    groups: tuple[str, Sequence[str]] | None = None,
) -> pd.DataFrame:
    """One row for each head, layer by layer; with `groups` (column, values), for each group.

    Columns are arrays in this order, of any shape.
    """
    import pandas as pd

    layer, head = (index.ravel() for index in np.indices((layers, heads)))
    first: dict[str, Any] = {"layer": layer, "head": head}
    if groups is not None:
        name, values = groups
        first = {name: np.repeat(list(values), layers * heads)}
        first |= {"layer": np.tile(layer, len(values)), "head": np.tile(head, len(values))}
    return pd.DataFrame({**first, **{name: np.ravel(column) for name, column in columns.items()}})


def with_bounds(name: str, means: PartialMeans, *, p: bool = True) -> dict[str, ArrayLike]:
    """Columns `name`, `name_low`, `name_high` and `name_p`, corrected for all rows together."""
    found: dict[str, ArrayLike] = {
        name: means.value,
        f"{name}_low": means.simultaneous_low,
        f"{name}_high": means.simultaneous_high,
    }
    return found | ({f"{name}_p": means.p_adjusted} if p else {})
