"""Random sets of dimensions have nothing in common with each other or with those chosen."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.studies.geometry.outlier_dimensions.questions import DRAW, LONE, dimension_sets


def drawn(chosen: list[int], width: int, draws: int = 30, kind: str = DRAW) -> list[set[int]]:
    sets = dimension_sets(chosen, width, draws=draws, seed=3)
    return [set(s.dimensions) for s in sets if s.kind == kind]


@pytest.mark.parametrize(("chosen", "width"), [([3], 64), ([3, 9, 60], 192), ([*range(12)], 768)])
def test_no_dimension_is_in_two_sets(chosen: list[int], width: int) -> None:
    found = drawn(chosen, width)
    assert len(found) == 30
    assert all(len(one) == len(chosen) for one in found)
    assert len(set().union(set(chosen), *found)) == 31 * len(chosen)
    alone = drawn(chosen, width, kind=LONE) if len(chosen) > 1 else found
    assert len(set().union(*alone) - set(chosen)) == 30


def test_there_are_as_many_as_dimensions_allow_and_none_above_one_half() -> None:
    assert len(drawn([0, 1, 2, 3], 40)) == 9
    assert len(drawn([*range(20)], 40)) == 1
    assert drawn([*range(21)], 40) == []


def test_a_random_choice_is_largest_no_more_often_than_any_draw() -> None:
    """Where one dimension rules, a choice of six of 120 holds it in 5 % of all cases."""
    rng, largest = np.random.default_rng(0), 0
    for seed in range(400):
        chosen = rng.choice(120, 6, replace=False).tolist()
        sets = dimension_sets(chosen, 120, draws=30, seed=seed)
        some = [s.dimensions for s in sets if s.watched]
        assert len(some) == 20
        values = [float(7 in one) + 1e-3 * rng.random() for one in some]
        largest += values[0] == max(values)
    assert largest <= 31  # 1 of 20 is 20; more than 31 come in less than 1 % of cases
