"""What a table of compression shows and says: figures of many rows, and sentences."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.text import Text

from bertology.report.intervals import with_intervals
from bertology.results.known_claims import load_claims
from bertology.studies.designs.compression_rows import ROWS, TEACHER
from made_compression_tables import STUDENTS, made_up

PAPER = "primer-compression."


def test_figures_show_what_claims_on_sizes_count() -> None:
    """A file with zeros is as large as before: movement pruning is not asked for fewer bytes."""
    claims = {c.rule.quantity for c in load_claims() if c.id.startswith(PAPER)}
    for row in ROWS.values():
        if row.published and row.published.smaller:
            assert f"{row.quantity}_{row.saves}" in claims, row.name
    some = ("pkd-half", "q8bert", "mvp", "imp", "layer_choice:layers=3+int8")
    result = made_up(n=60, seeds=2, methods=some, fewer={"pkd-half": 1.6},
                     nonzero={"mvp": 3.8, "imp": 1.6})  # fmt: skip
    panel = result.plot("kept").axes[2]
    dots, published = (
        next(line for line in panel.get_lines() if line.get_marker() == mark) for mark in "oD"
    )
    assert panel.get_xscale() == "log"
    found = dict(zip(result.table()["row"], np.asarray(dots.get_xdata()), strict=True))
    assert found["pkd-half"] == pytest.approx(1.6, rel=1e-3)
    assert found["q8bert"] == 4
    assert (found["mvp"], found["imp"]) == pytest.approx((3.8, 1.6), rel=1e-3)
    beside = dict(zip(result.table()["row"], np.asarray(published.get_xdata()), strict=True))
    assert beside["mvp"] == 33
    assert np.isnan(beside["imp"])  # a range
    drawing = next(d for d in result.drawings() if d.name == "kept")
    assert "ranges such as 94-100 have none" in drawing.caption


def test_many_rows_have_small_dots_with_numbers_beside_them() -> None:
    some = (*STUDENTS, "q8bert", "gobo", "mvp", "imp")
    figure = made_up(n=60, seeds=2, methods=some).plot("pareto")
    figure.canvas.draw()
    for axes in figure.axes:
        boxes = [Text.get_window_extent(text) for text in axes.texts]
        assert len(boxes) > len(some)
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_where_the_teacher_may_be_a_constant_answer_no_share_is_excluded() -> None:
    some = ("pkd-half", "gobo")
    result = made_up(
        dict.fromkeys(some, 0.62) | {TEACHER: 0.64}, constant=0.58, n=200, methods=some, luck=0.001
    )
    row = result.table("losses").set_index("row").loc["gobo"]
    assert (row["kept_above_constant_low"], row["kept_above_constant_high"]) == (-np.inf, np.inf)
    columns, cells = with_intervals(result.table("losses"))
    assert cells[2][columns.index("kept_above_constant")].endswith("[-inf, inf]")
    arrows = {line.get_marker() for line in result.plot("kept").axes[1].get_lines()}
    assert {"<", ">"} <= arrows
