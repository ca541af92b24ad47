"""What is lost without one outlier: it is picked on other texts than those that judge it."""

from __future__ import annotations

from typing import Any

import numpy as np

from bertology.studies.designs.dimension_sets import SINGLE, TOGETHER, DimensionSet
from bertology.studies.designs.outlier_scores import Effects

TEXTS = 200


def effects(rises: np.ndarray) -> Effects:
    """Seven outliers together and each alone; the intact model knows 2 nats."""
    rng = np.random.default_rng(0)
    intact = rng.normal(3, 0.2, TEXTS)
    seen: Any = {
        "losses": np.stack([intact, *(intact + rise for rise in rises)], axis=1),
        "uninformed": intact + 2,
    }
    sets = [DimensionSet("outliers", TOGETHER, tuple(range(7)))]
    sets += [DimensionSet(f"dimension {i}", SINGLE, (i,)) for i in range(7)]
    return Effects(seen, sets, [70, *[10] * 7], {"level": 0.95, "resamples": 200, "seed": 0})


def noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.5, (8, TEXTS))


def test_one_outlier_that_breaks_the_model_is_enough() -> None:
    rises = noise(1)
    rises[[0, 3]] += 1.6
    found = effects(rises).knowledge_lost(10)
    assert found is not None
    assert found.low > 0.5
    assert abs(found.value - 0.8) < 0.1


def test_the_largest_of_nothing_is_nothing() -> None:
    lost = [effects(noise(seed)).knowledge_lost(10) for seed in range(40)]
    assert abs(np.mean([one.value for one in lost if one])) < 0.01
    assert sum(one.low > 0 for one in lost if one) <= 4
    assert effects(noise(0)).fewest_touched() == 10
