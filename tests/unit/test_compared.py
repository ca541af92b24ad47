"""Numbers of two models: paired where rows are of the same examples, else what intervals allow."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from bertology.report.atlas.compare import Side, compare_piece
from bertology.report.atlas.naming import entries_of
from bertology.report.atlas.side_by_side import LeftOut, lacking_piece, side_by_side
from bertology.results.compared import (
    Compared,
    compared_arrays,
    difference,
    read_compared,
    row_mean,
)
from bertology.stats import Estimate
from toy_atlas import MODEL, SHAPE, make

LEVEL = 0.95


def share(rows: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Compared:
    found = row_mean("right", rows, level=LEVEL)
    assert found is not None
    return found


def test_pairs_tell_a_small_difference_that_two_intervals_do_not() -> None:
    first = np.tile([1.0, 1.0, 0.0, 0.0], 100)
    second = np.where(np.arange(400) % 20 == 0, 0.0, first)  # 20 right answers are lost
    found = difference(share(first), share(second))
    assert found.paired
    assert found.sure
    assert found.estimate.value == pytest.approx(-0.05)
    other = difference(share(first), share(second[:-1]))
    assert not other.paired
    assert not other.sure


def test_equal_rows_leave_room_for_what_was_not_seen() -> None:
    rows = np.tile([1.0, 0.0], 50)
    found = difference(share(rows), share(rows)).estimate
    assert (found.value, found.low) == (0.0, -found.high)
    assert 0 < found.high < 0.05


def test_intervals_hold_as_often_as_they_say() -> None:
    rng, missed = np.random.default_rng(0), 0
    for _ in range(80):
        first, second = (rng.random((2, 60)) < 0.7).astype(float)
        found = difference(share(first), share(second)).estimate
        missed += not found.low <= 0 <= found.high
    assert missed <= 8  # 5 % of 80, and two standard errors


def test_exact_numbers_differ_exactly() -> None:
    one, other = (Compared("n", Estimate(x, x, x, 10), "dimensions") for x in (4.0, 1.0))
    found = difference(one, other)
    assert (found.estimate.low, found.estimate.high, found.sure) == (-3, -3, True)


def test_numbers_are_read_back() -> None:
    kept = [share(np.array([1.0, 0.0, np.nan, 1.0])), Compared("n", Estimate(1, 1, 1, 2), "σ")]
    ratio = row_mean("ratio", np.array([1.3, 0.1]), level=0.9, counted="nouns", bounded=False)
    assert ratio is not None
    back = read_compared(compared_arrays([*kept, ratio]))
    assert [one.title for one in back] == ["right", "n", "ratio"]
    assert [one.estimate for one in back] == [one.estimate for one in (*kept, ratio)]
    assert back[1].rows is None
    assert back[0].support == (-1.0, 1.0)
    np.testing.assert_array_equal(back[0].rows, kept[0].rows)
    assert read_compared(xr.Dataset()) == []
    assert row_mean("few", np.array([1.0, np.nan]), level=LEVEL) is None


def test_what_cannot_be_compared_is_told_once() -> None:
    first, second = (make({**MODEL, "name": n, "fingerprint": n}) for n in ("small", "large"))
    numbers = compared_arrays([share(np.array([0.0, 1.0]))])
    second.arrays = second.arrays.merge(numbers)
    second.provenance.model["shape"] = {**SHAPE, "layers": 4}
    sides = [Side(n, entries_of([("", [r])])) for n, r in (("small", first), ("large", second))]
    found = side_by_side(*sides)
    assert found.rows == ()
    assert "small has no numbers of toy-study here." in found.lacking
    assert any("small has 2 layers of 3 heads, large 4 layers" in text for text in found.lacking)
    why = "'small' is a BiLSTM: it has no layers."
    left = [LeftOut("toy-study", "", why), LeftOut("map-types", "", why), LeftOut("x", "d", "No.")]
    lacking = side_by_side(*sides, left).lacking
    assert lacking[:2] == (f"Toy study, map types: {why}", "X over d: No.")
    assert not any("has no numbers" in text for text in lacking)
    piece = str(compare_piece(*sides, [], lacking=lacking_piece(found)))
    assert "What cannot be compared" in piece
    assert "bertology run attention-maps" in piece  # still told, as nothing is shared
