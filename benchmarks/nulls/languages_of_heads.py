"""A null of heads in several languages: languages that are all alike, and heads of chance."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import test_languages as languages

from bertology.results.known_claims import load_claims
from nulls import FAILS, HOLDS, Null, judged


def alike(seed: int) -> Mapping[str, str]:
    """Kinds of languages do not differ; the order of words is as free as chance makes it."""
    rng, given = np.random.default_rng(seed), []
    for code in languages.CODES:
        given += languages.of_language(code, rng, less=0.0, found_at=1, follows=False)
    for result in given:
        if "found" in result.tables:
            found = result.tables["found"]
            found["links"] = rng.integers(20, 120, len(found))
    return judged("languages", languages.joined(given, seed=seed))


def _false(name: str) -> frozenset[str]:
    if "as-frequent" in name or "as-much" in name:
        return FAILS
    # Heads look at fixed offsets, so that the head of other languages surely finds less.
    return HOLDS if name.startswith("heads-of-other-languages") else HOLDS | FAILS


NULLS = (
    Null(
        "languages that are all alike (heads)",
        alike,
        {
            name: _false(name)
            for name in (
                claim.id.partition(".")[2] for claim in load_claims() if claim.study == "languages"
            )
        },
    ),
)
