"""What is lost without one outlier: it is picked on other texts than those that judge it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bertology.stats.partial_means import partial_means
from bertology.studies.geometry.outlier_dimensions.questions import (
    SINGLE,
    TOGETHER,
    DimensionSet,
    Uninformed,
)
from bertology.studies.geometry.outlier_dimensions.scores import Effects

TEXTS = 200


def effects(rises: np.ndarray) -> Effects:
    """Seven outliers together and each alone; the intact model knows 2 nats."""
    rng = np.random.default_rng(0)
    intact = rng.normal(3, 0.2, TEXTS)
    seen: Any = {
        "losses": np.stack([intact, *(intact + rise for rise in rises)], axis=1),
        "uninformed": np.stack([intact + 2, intact + 2], axis=1),
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


def test_true_frequencies_are_no_knowledge() -> None:
    """They beat what was counted on as many other texts, and that must not count as knowledge."""
    kinds, said, beaten = 2000, 0, 0
    odds = 1 / np.arange(1, kinds + 1)
    odds /= odds.sum()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        texts = rng.choice(kinds, (2, 100, 12), p=odds)
        own, others = (np.bincount(t.ravel(), minlength=kinds).astype(float) for t in texts)
        asked = texts[0, :, :2]
        blind = Uninformed(own, others, np.ones(kinds, bool)).losses(asked).mean(axis=1)
        losses = -np.log(odds[asked]).mean(axis=1)
        seen: Any = {"losses": np.stack([losses, losses + 1], axis=1), "uninformed": blind}
        sets = [DimensionSet("outliers", TOGETHER, (0,))]
        found = Effects(seen, sets, [10], {"level": 0.95, "resamples": 200, "seed": 0})
        assert found.knowledge() is not None
        said += found.knows or found.knowledge_lost() is not None
        most = partial_means((blind[:, 1] - losses)[None], resamples=200).estimate(0)
        beaten += most is not None and most.low > 0
    assert said == 0
    assert beaten > 15


def test_what_cannot_be_asked_for_gets_nothing() -> None:
    possible = np.array([True, True, False, False])
    blind = Uninformed(np.array([3.0, 1, 0, 0]), np.array([1.0, 0, 0, 0]), possible)
    odds = np.exp(-blind.losses(np.array([0, 1])))
    assert np.allclose(odds[:, 0], [0.75, 0.25])
    assert np.allclose(odds.sum(axis=0), 1)


def test_the_share_lost_is_bounded_by_the_least_and_the_most_that_is_known() -> None:
    rises = np.full((1, TEXTS), 1.0)
    found = effects(np.concatenate([rises, noise(0)[1:]]))
    found.seen["uninformed"][:, 1] += 2
    lost, known = found.knowledge_lost(), found.knowledge()
    assert lost is not None
    assert known is not None
    assert (lost.low, lost.value, lost.high) == pytest.approx((1 / 4, 1 / 3, 1 / 2), rel=0.02)
    assert (known.low, known.value, known.high) == pytest.approx((2, 3, 4), rel=0.02)
