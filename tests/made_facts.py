"""Answers to facts that are made up, by relation, for what is concluded from them."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.cloze.facts import Facts

Floats = NDArray[np.float64]


def concluded(hits: Floats, frequent: Floats, chance: Floats, *, seed: int = 0) -> Result:
    """Of hits (relations, facts): whether the answer, and the most frequent object, is right."""
    relations, n = hits.shape[0], hits.size
    rank = np.where(hits.ravel() > 0, 1.0, 50.0)
    flat = {"frequent": frequent.ravel(), "chance": chance.ravel(), "in_name": np.zeros(n)}
    flat |= {
        "prime": np.full(n, np.nan),
    }
    texts = {
        "relation": [f"r{r}" for r in range(relations) for _ in range(hits.shape[1])],
        "item": [str(i) for i in range(n)],
        "condition": ["plain"] * n,
        "cardinality": [""] * n,
    }
    by_wording = dict.fromkeys(("rank", "restricted", "best", "first"), rank[:, None])
    data = xr.Dataset(
        {name: (("example", "wording"), v) for name, v in by_wording.items()}
        | {name: ("example", v) for name, v in (flat | texts).items()}
        | {"top": (("example", "place"), np.zeros((n, 10), int))}
    )
    made = {"name": "m", "fingerprint": "f"}
    return Facts(resamples=100, seed=seed).conclude(
        {f"examples-000000-{n:06d}": data}, Provenance("facts", 2, {}, made, made)
    )


def one_answer(seed: int) -> Result:
    """One answer for every subject of a relation, whose objects all differ: right once in each."""
    relations, facts = 4 + seed % 5, 30 + 5 * (seed % 3)
    hits, rng = np.zeros((relations, facts)), np.random.default_rng(seed)
    hits[np.arange(relations), rng.integers(facts, size=relations)] = 1
    others = (1 - hits) / (facts - 1)  # how many of the others have this answer
    return concluded(hits, np.zeros_like(hits), hits - others, seed=seed)


def templates_differ(seed: int) -> Result:
    """Some relations are known better than by frequency, as many others worse."""
    rng = np.random.default_rng(seed)
    share = np.clip(0.4 + 0.2 * rng.standard_normal((20, 1)), 0, 1)
    hits = (rng.random((20, 40)) < share).astype(float)
    frequent = (rng.random(hits.shape) < 0.4).astype(float)
    return concluded(hits, frequent, hits, seed=seed)
