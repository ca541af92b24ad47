"""Distances: places in a plane, and groups that are nearer to each other than exchanges are."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.manifold import MDS

from bertology.errors import DataError
from bertology.stats.contrasts import difference_within
from bertology.stats.distances import in_the_plane, nearer_within


def distances(places: np.ndarray) -> np.ndarray:
    return np.sqrt(((places[:, None] - places) ** 2).sum(-1))


def test_what_lies_in_a_plane_is_found_again() -> None:
    wanted = distances(np.random.default_rng(0).normal(size=(20, 2)))
    places, stress = in_the_plane(wanted)
    assert distances(places) == pytest.approx(wanted, abs=1e-6)
    assert stress == pytest.approx(0, abs=1e-6)


@pytest.mark.filterwarnings("ignore:.*:FutureWarning")
def test_it_fits_no_worse_than_another_scaling() -> None:
    d = distances(np.random.default_rng(1).normal(size=(40, 6)))
    places, stress = in_the_plane(d)
    theirs = MDS(n_init=8, dissimilarity="precomputed", random_state=0).fit(d)
    found, wanted = (((distances(p) - d) ** 2).sum() for p in (places, theirs.embedding_))
    assert found <= 1.02 * wanted
    assert stress == pytest.approx(np.sqrt(found / (d**2).sum()))
    again, _ = in_the_plane(d)
    assert (again == places).all()


def test_things_that_are_all_alike_lie_on_one_spot() -> None:
    places, stress = in_the_plane(np.zeros((4, 4)))
    assert (places == 0).all()
    assert stress == 0


def test_distances_that_are_not_known_are_refused() -> None:
    with pytest.raises(DataError, match="none of them NaN"):
        in_the_plane(np.full((3, 3), np.nan))
    with pytest.raises(DataError, match="Distances of 3 things"):
        nearer_within(np.zeros((2, 2)), [0, 0, 1], [0, 0, 0], size=2)


def test_groups_of_near_things_are_found() -> None:
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(6), 5)
    middles = rng.normal(size=(6, 3))
    d = distances(middles[groups] + 0.1 * rng.normal(size=(30, 3)))
    found = nearer_within(d, groups, rng.normal(size=30), size=10)
    assert found is not None
    assert found.low > 0.5
    assert found.value < 1


def test_near_things_of_one_property_are_not_taken_for_groups() -> None:
    """Each group has its own breadth, and distances tell nothing but breadth."""
    breadth = np.repeat(np.arange(6.0), 5) + np.linspace(0, 0.1, 30)
    d = distances(breadth[:, None])
    groups = np.repeat(np.arange(6), 5)
    assert nearer_within(d, groups, breadth, size=5) is None
    loose = nearer_within(d, groups, breadth, size=30)
    assert loose is not None
    assert loose.low > 0.3  # which is what would be said without care


def test_things_that_are_equally_broad_are_all_exchanged() -> None:
    """Equal values must not leave things in the order of their groups."""
    groups = np.repeat(np.arange(4), 4)
    d = distances(groups[:, None].astype(float))
    found = nearer_within(d, groups, np.ones(16), size=4)
    assert found is not None
    assert found.low > 0.5


def test_errors_are_as_rare_as_promised() -> None:
    wrong, runs, groups = 0, 200, np.repeat(np.arange(4), 4)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        d = distances(rng.normal(size=(16, 3)))
        found = nearer_within(d, groups, rng.normal(size=16), size=4, resamples=200, seed=seed)
        assert found is not None
        wrong += found.low > 0 or found.high < 0
    assert wrong <= 18  # 5 % of 200, and three standard errors


def test_a_difference_within_groups_is_not_one_between_them() -> None:
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(20), 10)
    first = rng.random(200) < (0.2 + 0.6 * (groups > 9))
    values = 5.0 * (groups > 9) + rng.normal(size=200)
    found = difference_within(values, first, groups)
    assert found is not None
    assert found.low < 0 < found.high
    found = difference_within(values + first, first, groups)
    assert found is not None
    assert found.low < 1 < found.high
    assert found.low > 0
    assert difference_within(values, groups > 9, groups) is None  # no group has both


def test_differences_within_groups_miss_as_rarely_as_promised() -> None:
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        groups, first = rng.integers(0, 12, 80), rng.random(80) < 0.4
        values = rng.exponential(size=80) * (1 + groups) + groups
        found = difference_within(values, first, groups)
        assert found is not None
        wrong += found.low > 0 or found.high < 0
    assert wrong <= 20
