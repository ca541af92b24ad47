"""What a table of compression shows and says: figures of many rows, and sentences."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.text import Text

from bertology.report.intervals import with_intervals
from bertology.results.known_claims import load_claims
from bertology.studies.compression.compression_table.rows import ROWS, TEACHER
from made_compression_tables import ALONE_HALF, STUDENTS, made_up

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


def test_the_reason_is_that_no_row_is_a_small_model_and_not_that_nothing_was_timed() -> None:
    bits = {"bytes_per_weight": {"16-bit": 2.0}, "fewer": {"power-bert": 1.0}}
    some = ("16-bit", "power-bert")
    result = made_up(0.75, n=300, methods=some, times=("none",), **bits)  # type: ignore[arg-type]
    assert result.answer.startswith("Nothing is sure: no row is a small model, at least 1.5 times")
    assert "no row is a student" in result.answer
    assert "CPU" not in result.answer
    assert "16 bits alone" in result.reasons()["best_small_kept"]
    assert "no times were measured" in result.reasons()["power_bert_faster"]
    alone = made_up(0.75, n=300, methods=("pkd-half",))
    assert not {"best_small_kept", "best_student_over_alone"} & set(alone.reasons())
    few = made_up(1.0, n=3, methods=("pkd-half",), constant=-1.0)
    assert "on at least 4 examples" in few.reasons()["best_small_kept"]


def test_one_seed_does_not_make_a_lucky_teacher_one_that_learnt() -> None:
    """53 of 100 against 50: without other seeds, examples tell that it may be a constant answer."""
    lucky = made_up(0.6, seeds=1, n=100, constant=0.5, methods=("pkd-half",), draw=3)
    score = lucky.table().set_index("row").loc[TEACHER, "score"]
    assert 0.5 < score < 0.6
    assert not lucky.evidence()
    assert "does not surely beat" in lucky.reasons()["pkd_half_smaller"]
    sure = made_up(0.8, seeds=1, n=100, constant=0.5, methods=("pkd-half",))
    assert "pkd_half_smaller" in sure.evidence()


def test_the_answer_names_all_that_were_picked_as_best() -> None:
    one = made_up(0.75, n=100, methods=("pkd-half", "imp"), fewer={"imp": 1.0})
    assert "The best small model (pkd-half, 2.5 times smaller) keeps" in one.answer
    assert "The best student (pkd-half) is" in one.answer
    some, sizes = ("pkd-half", "gobo", "q8bert"), {"gobo": 0.5, "q8bert": 1.0}
    shares = {TEACHER: 0.85, "pkd-half": 0.8, "gobo": 0.79, "q8bert": 0.6}
    mixed = [
        made_up(shares, n=100, seeds=5, luck=0.02, methods=some, bytes_per_weight=sizes, draw=d)
        for d in range(4)
    ]
    for found in mixed:
        counts = dict(pick.split(":") for pick in found.facts["best_small_picks"].split())
        assert sum(map(int, counts.values())) == 10  # of each seed on each half of the examples
        if len(counts) > 1 and int(counts[found.facts["best_small"]]) > 5:
            [other] = set(counts) - {found.facts["best_small"]}
            assert f"(mostly {found.facts['best_small']}, " in found.answer
            assert f"times smaller, else {other}) keeps" in found.answer
    assert any("mostly" in found.answer for found in mixed)
    first = mixed[0]
    first.arrays.attrs |= {"best_small": "gobo", "best_small_picks": "gobo:2 q8bert:2 pkd-half:1"}
    assert "(gobo, q8bert or pkd-half, 2.5 to 8.0 times smaller) keeps" in first.answer
    many = " ".join(f"{name}:1" for name in (*some, TEACHER, *ALONE_HALF))
    first.arrays.attrs |= {"best_student": "pkd-half", "best_student_picks": many}
    assert "(pkd-half, gobo, q8bert or one of 3 more)" in first.answer
    del first.arrays.attrs["best_small_picks"]  # as older results have it
    assert "The best small model (gobo, 8.0 times smaller)" in first.answer
