"""Parts of the depth, and what a far ancestor loses."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.studies.designs.probe_scores import middle_over_ends, parts_of_depth
from bertology.studies.designs.shares import ratio_values


def layers_in(count: int) -> list[list[int]]:
    """The layers, counted from 1, of the three parts."""
    each = np.eye(count)
    return [[layer + 1 for layer in np.flatnonzero(part)] for part in parts_of_depth(each)]


def test_the_middle_has_the_published_layers() -> None:
    assert layers_in(12) == [[1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12]]
    assert layers_in(24)[1] == list(range(10, 20))
    assert layers_in(3) == [[1], [2], [3]]


@pytest.mark.parametrize("count", [1, 2])
def test_two_layers_have_no_middle(count: int) -> None:
    hits, counts = np.ones((40, count)), np.full(40, 2)
    assert middle_over_ends(hits, counts, level=0.95) is None


def test_what_is_best_at_one_end_is_not_best_in_the_middle() -> None:
    rng = np.random.default_rng(0)
    counts = np.full(400, 10)
    falling = rng.binomial(10, np.linspace(0.95, 0.7, 12), size=(400, 12)).astype(float)
    found = middle_over_ends(falling, counts, level=0.95)
    assert found is not None
    assert found.high < 0


def test_all_that_frequent_labels_leave_is_the_same_for_few_and_many() -> None:
    """States that tell everything lose nothing, however much words alone tell."""
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 9, 300).astype(float)
    for share in (0.5, 0.95):
        frequent = np.minimum(rng.binomial(counts.astype(int), share), counts)
        values = ratio_values(counts - frequent, counts - frequent)
        assert values == pytest.approx(np.ones(300))
