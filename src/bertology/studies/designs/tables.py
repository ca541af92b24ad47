"""Tables of heads and layers, put together the same way by every study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import pandas as pd

    from bertology.stats import Estimate
    from bertology.stats.partial_means import PartialMeans


def labelled_table(
    labels: Mapping[str, Iterable[object]], columns: Mapping[str, ArrayLike]
) -> pd.DataFrame:
    """One row for each combination of labels, the last label changing fastest.

    Columns are arrays in this order, of any shape.
    """
    import pandas as pd

    known = {name: np.array(list(values)) for name, values in labels.items()}
    places = np.indices([len(values) for values in known.values()])
    first = {n: v[at.ravel()] for (n, v), at in zip(known.items(), places, strict=True)}
    return pd.DataFrame({**first, **{name: np.ravel(column) for name, column in columns.items()}})


def head_table(
    shape: tuple[int, ...],
    columns: Mapping[str, ArrayLike],
    *,
    groups: tuple[str, Sequence[str]] | None = None,
) -> pd.DataFrame:
    """One row for each head, layer by layer; with `groups` (column, values), for each group.

    `shape` is the number of layers and of heads.
    """
    layers, heads = shape
    labels: dict[str, Sequence[object]] = {} if groups is None else dict([groups])
    return labelled_table(labels | {"layer": range(layers), "head": range(heads)}, columns)


def with_bounds(name: str, means: PartialMeans, *, p: bool = True) -> dict[str, ArrayLike]:
    """Columns `name`, `name_low`, `name_high` and `name_p`, corrected for all rows together."""
    found: dict[str, ArrayLike] = {
        name: means.value,
        f"{name}_low": means.simultaneous_low,
        f"{name}_high": means.simultaneous_high,
    }
    return found | ({f"{name}_p": means.p_adjusted} if p else {})


def bounded(name: str, found: Estimate | None) -> dict[str, float]:
    """Columns `name`, `name_low` and `name_high`: NaN where nothing is known."""
    ends = (nan,) * 3 if found is None else (found.value, found.low, found.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
