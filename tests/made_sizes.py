"""Results of heuristics of models of several sizes, with known habits and without any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import made_heuristics as made
from bertology.results.provenance import Provenance
from bertology.results.result import Result

SIZES = (1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000)
_REST = tuple(name for name in made.AS_PUBLISHED if name != "vanilla")
Habit = tuple[float, float, float, float]  # as in made_heuristics


def of_models(
    habits: Sequence[Habit], *, sizes: Sequence[int] = SIZES, draw: int = 0, **how: Any
) -> list[Result]:
    """One result for each habit, of as many models; all of them are asked the same pairs."""
    corpus = {"name": "made-up", "fingerprint": "c"}
    found = []
    for at, (habit, size) in enumerate(zip(habits, sizes, strict=False)):
        result = made.made_up({"vanilla": habit}, draw=1000 * draw + at, without=_REST, **how)
        model = {
            "name": f"model-{at}",
            "fingerprint": f"f{at}",
            "parameters": size,
            "shape": {"layers": 2 + at, "hidden": 64},
        }
        about = Provenance("heuristics", 2, {"seeds": 3}, model, corpus, ingredients={"data": "d"})
        found.append(replace(result, provenance=about))
    return found


def rising(step: float, models: int = len(SIZES)) -> list[Habit]:
    """Each model says "entailed" of fewer pairs that are not, by `step`."""
    return [(0.9, 0.6 - step * at, 0.1, 0.9) for at in range(models)]
