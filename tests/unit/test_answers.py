"""The one sentence that every result begins with, where the study says nothing better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bertology.report.export import export
from bertology.report.intervals import with_intervals
from bertology.results.answers import (
    listed,
    percent,
    points,
    raised,
    strongest,
    strongest_of,
)
from bertology.results.evidence import evidence_array
from bertology.results.hundredths import in_hundredths, rows_in_hundredths
from bertology.results.measures import Measure
from bertology.results.number_text import interval_text, number_text
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.layer_orders import mirrored
from result_conformance import check_answer


class Graded(Result):
    """Heads whose values and bounds its arrays hold, if there are any."""

    def measures(self) -> Sequence[Measure]:
        if "value" not in self.arrays:
            return []
        value = self.arrays["value"].to_numpy()
        low, high = value - 0.1, value + 0.1
        sure = (low > 0) | (high < 0) if self.facts.get("tested") else None
        return [Measure("gain", "Gain of the head", value, "points", low, high, sure)]


def graded(value: object = None, *, tested: bool = True, **evidence: Estimate) -> Graded:
    arrays = evidence_array(evidence) if evidence else xr.Dataset()
    if value is not None:
        arrays["value"] = (("layer", "head"), np.array(value, float))
    arrays.attrs = {"level": 0.95, "examples": 20, "tested": int(tested)}
    given = Provenance("my-study", 1, {}, {"name": "m", "fingerprint": "f"})
    return Graded(given, {"heads": pd.DataFrame({"a": [1]})}, arrays)


def test_the_strongest_sure_head_is_told() -> None:
    told = graded([[0.0, 0.5], [0.05, -0.3]]).answer
    assert told == "Surely: gain of the head is largest in head 0.1, 0.5 [0.4, 0.6] points."
    check_answer(told)


def test_where_no_head_is_sure_it_says_so() -> None:
    told = graded([[0.0, 0.05], [0.02, -0.03]]).answer
    assert told.startswith("Nothing is sure: gain of the head is largest in head 0.1, 0.05 [")
    check_answer(told)


def test_bounds_of_one_head_are_widened_for_the_best_of_many() -> None:
    (measure,) = graded([[0.0, 0.5], [0.05, -0.3]], tested=False).measures()
    alone = strongest(measure, n=20, level=0.95, together=True).estimate
    of_many = strongest(measure, n=20, level=0.95, together=False).estimate
    assert of_many.low < alone.low < alone.high < of_many.high
    assert of_many.level == 0.95


def test_without_heads_the_first_quantity_with_an_interval_answers() -> None:
    unknown = Estimate(0.4, math.nan, math.nan, 3)
    told = graded(nothing=unknown, pair_gain=Estimate(0.3, 0.1, 0.5, 1200, unit="pairs")).answer
    assert told == "The pair gain is 0.3 [0.1, 0.5], over 1,200 pairs."
    check_answer(told)
    empty = graded().answer
    assert empty == "Nothing is sure: this result has no number with an interval."
    check_answer(empty)


def test_sure_measures_go_before_larger_ones() -> None:
    (small,) = graded([[0.2, 0.0], [0.0, 0.0]]).measures()
    (large,) = graded([[0.9, 0.0], [0.0, 0.0]], tested=False).measures()
    best, found = strongest_of([large, small], n=5, level=0.95)
    assert best is small
    assert found.sure
    assert found.name == "head 0.0"


def test_the_answer_stands_before_all_else() -> None:
    result = graded([[0.0, 0.5], [0.05, -0.3]])
    assert result.summary().splitlines()[1].strip() == result.answer
    page = result._repr_html_()
    assert 0 < page.index(result.answer) < page.index("my-study")


def test_shares_and_points_have_their_unit() -> None:
    found = Estimate(0.7125, 0.66, 0.7501, 20)
    assert percent(found) == "71 % [66, 75]"
    assert percent(found, ".1f") == "71.3 % [66.0, 75.0]"
    assert points(Estimate(0.01, -0.002, 0.02, 20)) == "1.0 point [-0.2, 2.0]"
    assert points(Estimate(-0.02, math.nan, math.nan, 2)) == "-2.0 points (no interval)"
    assert listed("abc") == "a, b and c"
    assert listed("a") == "a"
    assert listed("") == "none"
    assert listed("abcd", 2) == "a, b and 2 more"
    assert listed("ab", 2) == "a and b"
    assert points(mirrored(Estimate(-0.02, -0.03, 0.01, 20))) == "2.0 points [-1.0, 3.0]"
    assert raised("[CLS] gets MRPC") == "[CLS] gets MRPC"


@pytest.mark.parametrize("value", [1.25, 0.35, 2.5, 0.0125 * 100, 12345.5, 1e-7 * 1.5])
def test_there_is_one_rule_of_rounding(value: float) -> None:
    """1.25 was +1.3 on one page and -1.2 on another: half-way went to the even digit or not."""
    for spec in (".1f", ".0f", ".2g"):
        up, down = number_text(value, f"+{spec}"), number_text(-value, f"+{spec}")
        assert up.removeprefix("+") == down.lstrip("+-")
        assert number_text(value, spec) == up.removeprefix("+")


def test_what_lies_half_way_goes_away_from_zero() -> None:
    assert [number_text(x, "+.1f") for x in (1.25, -1.25, 1.35, 0.05)] == [
        "+1.3", "-1.3", "+1.4", "+0.1",
    ]  # fmt: skip
    assert [number_text(x, ".2g") for x in (0.125, 0.115, 125.0, 0.00125)] == [
        "0.13", "0.12", "130", "0.0013",
    ]  # fmt: skip
    assert [number_text(x, "+.2g") for x in (5987, -5987, 3e9)] == ["+6000", "-6000", "+3e+09"]
    assert number_text(np.float64(2.5), ".0f") == "3"
    assert number_text(math.inf, ".1f") == "inf"
    assert interval_text(-1.25, 1.25, ".1f") == "[-1.3, 1.3]"


def test_figures_are_exported_with_their_captions_in_words(tmp_path: Path) -> None:
    from toy_atlas import MODEL, make

    result = make(MODEL)
    good = type(result).drawings(result)[:1]
    result.drawings = lambda: good  # type: ignore[method-assign]
    (captions,) = [p for p in export(result, tmp_path, ["svg"]) if p.name.endswith("captions.txt")]
    first, second = captions.read_text(encoding="utf-8").strip().split("\n\n")
    assert first.endswith(result.answer)
    assert second.startswith("heads: One cell for each head.")


def test_tables_have_the_unit_of_figures_and_verdicts() -> None:
    """An accuracy was 0.0125 in a table, 1.3 points in the figure and 0.0125 in the verdict."""
    table = pd.DataFrame(
        {
            "layer": [0, 1], "n": [3, 4], "difference": [0.0125, -0.0125], "low": [-0.1, -0.2],
            "high": [0.1, 0.2], "simultaneous_low": [-0.3, -0.4], "simultaneous_high": [0.3, 0.4],
            "share": [0.5, 1.0], "share_low": [0.4, 0.9], "share_high": [0.6, 1.0],
            "alone_low": [0.0, 0.0], "p": [0.01, 0.02],
        }
    )  # fmt: skip
    shown = in_hundredths(table, {"difference": "points", "share": "%", "absent": "%"})
    columns, rows = with_intervals(shown)
    assert columns[:4] == ["layer", "n", "difference (points)", "share (%)"]
    assert rows[0][2:4] == ["1.25 [-30, 30]", "50 [40, 60]"]
    assert rows[1][2:4] == ["-1.25 [-40, 40]", "100 [90, 100]"]
    assert shown["p"].tolist() == [0.01, 0.02]
    assert shown["layer"].tolist() == [0, 1]
    assert table["difference"].tolist() == [0.0125, -0.0125]  # what is stored stays
    assert in_hundredths(table, {}).equals(table)


def test_rows_may_have_units_of_their_own() -> None:
    table = pd.DataFrame({"measure": ["loss", "score"], "mean": [2.0, 0.5], "low": [1.0, 0.25]})
    shown = rows_in_hundredths(table, table["measure"] == "score", ["mean"])
    assert shown["mean"].tolist() == [2.0, 50.0]
    assert shown["low"].tolist() == [1.0, 25.0]


def test_bare_ends_belong_to_the_value_before_them() -> None:
    table = pd.DataFrame(
        {
            "excess": [0.2], "simultaneous_low": [0.1], "simultaneous_high": [0.3],
            "accuracy": [0.4], "accuracy_low": [0.35], "accuracy_high": [0.45],
        }
    )  # fmt: skip
    columns, rows = with_intervals(in_hundredths(table, {"accuracy": "%"}))
    assert dict(zip(columns, rows[0], strict=True)) == {
        "excess": "0.2 [0.1, 0.3]",
        "accuracy (%)": "40 [35, 45]",
    }
