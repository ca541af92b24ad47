"""What the network makes of maps that were drawn by chance, of models that it did not learn from.

`checkpoints/map-types/mistakes.csv`, written by `benchmarks/train_map_types.py`: for each map its
model, its text, the type that labellers saw and the one that a network named which was trained
without maps of that kind of model.
"""

from __future__ import annotations

import csv
from functools import cache

import numpy as np

from bertology.bundled import CHECKPOINTS
from bertology.data.map_labels import MAP_TYPES
from bertology.stats.named_shares import Mistakes

MISTAKES = "map-types/mistakes.csv"


@cache
def bundled_mistakes() -> Mistakes:
    """Of the network that comes with the package."""
    with (CHECKPOINTS / MISTAKES).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    seen, named = (
        np.array([MAP_TYPES.index(row[name]) for row in rows]) for name in ("seen", "named")
    )
    models, texts = (
        np.unique([row[name] for row in rows], return_inverse=True)[1].ravel()
        for name in ("model", "text")
    )
    return Mistakes(seen, named, models, texts, len(MAP_TYPES), unit="labelled maps")
