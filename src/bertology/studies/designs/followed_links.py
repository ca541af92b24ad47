"""What heads find of linked words, and what [CLS] gives to classes: tables and evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.data.words.classes import TokenClass
from bertology.stats.extremes import largest_of
from bertology.studies.designs.tables import head_table

if TYPE_CHECKING:
    import pandas as pd

    from bertology.stats import Estimate

__all__ = ["first_table", "followed_evidence"]

Floats = NDArray[np.float64]
KINDS = list(TokenClass)


def first_table(sums: Floats, totals: Floats, counts: Floats) -> pd.DataFrame:
    """What [CLS] gives to each class that occurs; nothing where a head is gone."""
    texts = counts.max(axis=(1, 2))  # of each class
    there = texts > 0
    means, all_of_it = (
        np.where(counts > 0, of / np.maximum(counts, 1), np.nan)[there] for of in (sums, totals)
    )
    columns = {
        "n": np.broadcast_to(texts[there, None, None], means.shape),
        "weight": means,
        "total": all_of_it,
    }
    kinds = [str(k) for k, occurs in zip(KINDS, there, strict=True) if occurs]
    return head_table(means.shape[1:], columns, groups=("class", kinds))


def followed_evidence(links: pd.DataFrame, level: float) -> dict[str, Estimate | None]:
    """Of each relation, the best head's gain over the offset and over itself from elsewhere.

    Whichever is less. As a candidate's only where some head does follow the links. From above the
    largest gain is bounded by the heads' own bounds: that of the truly best must hold, no other.
    """
    found: dict[str, Estimate | None] = {}
    for relation, rows in links[links["excess_low"].notna()].groupby("relation", sort=False):
        value, low = (rows[[f"excess{b}", f"selectivity{b}"]].min(axis=1) for b in ("", "_low"))
        best = largest_of(value, low, rows["alone_high"], n=rows["n"], level=level)
        name = str(relation).replace("-", "_").replace(":", "_")
        found[f"{name}_excess"] = best
        # Where no head surely comes near the offset, there is no candidate to speak of.
        if (rows["share_low"] > 0.75 * (rows["share"] - rows["excess"])).any():
            found[f"{name}_candidate_excess"] = best
    return found
