"""Texts in which some tokens are others, the same for every model that reads them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bertology.train.token_rows import Encoded


def with_noise(encoded: Encoded, share: float, *, seed: int) -> Encoded:
    """The same rows; each token but the special ones is any ordinary one with this probability."""
    tokens = encoded.tokenizer
    special = set(tokens.all_special_ids)
    ordinary = np.array([i for i in range(len(tokens)) if i not in special])
    rng = np.random.default_rng(seed)
    rows = []
    for row in encoded.rows["input_ids"]:
        ids = np.asarray(row)
        chosen = (rng.random(len(ids)) < share) & ~np.isin(ids, list(special))
        drawn = rng.choice(ordinary, len(ids))
        rows.append(np.where(chosen, drawn, ids).tolist())
    return replace(encoded, rows={**encoded.rows, "input_ids": rows})
