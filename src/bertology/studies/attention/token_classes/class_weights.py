"""What classes of tokens get in one part of the work, example by example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.data.words.classes import SPECIAL, TokenClass
from bertology.stats.extremes import largest_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.annotated.tagged_batches import ClassifiedBatch
    from bertology.model.encoder import Encoder
    from bertology.stats import Estimate

Floats = NDArray[np.float64]
Changes = NDArray[np.float32]
SITES = "layer.*.head.*.pattern"
SINK = 0.4
"""Of a layer's attention: a token that surely gets more is called a sink."""


def class_scores(encoder: Encoder, read: ClassifiedBatch) -> Changes:
    """What each class receives in a batch: (example, class, layer, head)."""
    from bertology.model.reducers.class_attention import ClassAttention

    found = ClassAttention(read.groups, words=(), signs=())
    encoder.run(read.batch, reduce={SITES: found})
    return found.value()[0]


def summed(change: Changes) -> Floats:
    """(class, layer, head): the sum over the examples that have the class."""
    found: Floats = np.nansum(change, axis=0, dtype=np.float64)
    return found


def layer_shares(part: xr.Dataset) -> NDArray[np.float32]:
    """(example, part, layer), mean over heads: what [CLS], [SEP] and punctuation get."""
    kinds = [str(kind) for kind in (*SPECIAL, TokenClass.PUNCTUATION)]
    return part["share"].sel({"class": kinds}).mean("head").to_numpy()


def strongest_class(part: xr.Dataset, kinds: Sequence[TokenClass]) -> xr.DataArray:
    """The weight of the strongest of these classes, mean over heads, in each example."""
    score = part["score"].sel({"class": [str(kind) for kind in kinds]})
    return score.max("class").mean(("layer", "head"))


def largest_head(rows: pd.DataFrame, column: str, level: float) -> Estimate | None:
    """The largest excess or change of a class, with bounds that hold for all heads and classes."""
    bounds = (rows[name] for name in (column, f"{column}_low", f"{column}_high"))
    return largest_of(*bounds, n=rows["n"], level=level)
