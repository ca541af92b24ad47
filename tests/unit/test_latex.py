"""Tables as LaTeX: nothing in a cell is taken for a command, whatever it holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pandas as pd
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from bertology.report.latex import as_latex, strongest_as_latex
from bertology.results import Provenance, Result


def rows(table: pd.DataFrame) -> list[str]:
    lines = as_latex(table).splitlines()
    return lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]


def test_brackets_at_the_start_of_a_row_are_no_length() -> None:
    assert rows(pd.DataFrame({"token": ["[CLS]", "[SEP]"]})) == [r"{[}CLS{]} \\", r"{[}SEP{]} \\"]


def test_small_and_large_numbers_have_powers_of_ten() -> None:
    table = pd.DataFrame({"p": [0.00001234567, -2.5e9, 0.5, np.nan]})
    assert rows(table) == [
        r"$1.235 \times 10^{-5}$ \\", r"$-2.5 \times 10^{9}$ \\", r"$0.5$ \\", r"-- \\",
    ]  # fmt: skip


def test_an_interval_without_ends_is_not_a_missing_one() -> None:
    table = pd.DataFrame({"low": [-np.inf, np.nan], "high": [np.inf, np.nan]})
    assert rows(table) == [r"$-\infty$ & $\infty$ \\", r"-- & -- \\"]


def test_many_rows_run_on_over_pages() -> None:
    text = as_latex(pd.DataFrame({"layer": range(41)}))
    assert r"\begin{longtable}{r}" in text
    assert r"\endhead" in text
    assert "longtable" in text.splitlines()[0]
    assert r"\begin{tabular}" in as_latex(pd.DataFrame({"layer": range(40)}))


def test_a_named_index_is_a_column() -> None:
    table = pd.DataFrame({"x": [1]}, index=pd.Index(["a_b"], name="key"))
    assert rows(table) == [r"a\_b & $1$ \\"]


@given(st.text())
def test_no_sign_of_a_text_is_left_bare(text: str) -> None:
    (row,) = rows(pd.DataFrame({"text": [text]}, dtype=object))
    cell = row.removesuffix(r" \\")
    known = r"\\text(backslash|asciitilde|asciicircum|less|greater|bar)\{\}|\\[&%$#_{}]|\{[\[\]]\}"
    assert not set(re.sub(known, "", cell)) & set("\\~^<>|&%$#_{}[]\n")


# The strongest rows


class Ranked(Result):
    strongest: ClassVar[Mapping[str, str]] = {"links": "excess"}

    @property
    def answer(self) -> str:
        return "[SEP] gets 5 % → 50 %."


def ranked(**columns: object) -> Ranked:
    heads = pd.DataFrame({"layer": range(12), "head": range(12), **columns})
    arrays = xr.Dataset(attrs={"level": 0.95})
    given = Provenance("my-study", 1, {}, {"name": "m", "fingerprint": "f"})
    return Ranked(given, {"links": heads}, arrays)


def excerpt(result: Result) -> list[str]:
    return strongest_as_latex(result, "links").splitlines()


def body(lines: list[str]) -> list[str]:
    return lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]


def test_the_ten_strongest_rows_have_effect_and_interval_in_one_cell() -> None:
    effect = np.arange(12) / 10 - 0.5
    result = ranked(
        n=range(100, 112),
        p=effect * 0,
        excess=effect,
        excess_low=effect - 1,
        excess_high=effect + 1,
    )
    lines = excerpt(result)
    assert len(body(lines)) == 10
    assert body(lines)[0] == r"$11$ & $11$ & $111$ & $0.6$ $[-0.4, 1.6]$ \\"
    assert body(lines)[-1] == r"$2$ & $2$ & $102$ & $-0.3$ $[-1.3, 0.7]$ \\"
    assert lines[lines.index(r"\toprule") + 1] == r"layer & head & n & excess \\"
    assert r"\begin{tabular}{rrrl}" in lines
    assert lines[0] == r"% needs \usepackage{booktabs}"
    (caption,) = [line for line in lines if line.startswith(r"\caption")]
    assert caption.startswith(
        r"\caption{{[}SEP{]} gets 5 \% $\to$ 50 \%. my-study of m: links, 10 of 12 rows, largest "
        "excess first."
    )
    assert "intervals at the level 0.95" in caption
    assert rf"\label{{tab:my-study-{result.identity[:8]}-links}}" in lines
    assert lines.index(r"\begin{table}") < lines.index(r"\end{tabular}") < len(lines) - 1


def test_rows_and_caption_are_those_that_are_shown() -> None:
    """The answer in the caption named head 0.7, which was row 16."""
    effect = np.arange(12) / 10
    result = ranked(excess=effect, excess_low=effect - 1, excess_high=effect + 1)
    result.tables["links"]["sure"] = effect == 0.5
    lines = excerpt(result)
    assert [row.split(" & ")[0] for row in body(lines)[:2]] == ["$5$", "$11$"]
    assert any("10 of 12 rows, sure ones before others, largest excess first" in x for x in lines)


def test_corrected_bounds_go_before_others_and_small_numbers_have_powers() -> None:
    effect = np.full(12, 1.5e-7)
    bounds = {f"excess_{end}": effect for end in ("low", "high")}
    together = {"excess_simultaneous_low": -effect, "excess_simultaneous_high": 0.25 + 0 * effect}
    (first, *_) = body(excerpt(ranked(excess=effect, **bounds, **together)))
    assert "0.25]$" in first
    assert r"$1.5 \times 10^{-7}$" in first


def test_heads_without_a_ranking_are_ranked_and_other_tables_stay() -> None:
    values = np.array([3.0, 9, 1] + 9 * [0.0])
    lines = excerpt(ranked(weight=values, weight_low=values, weight_high=values, other=values))
    assert [row.split(" & ")[0] for row in body(lines)[:3]] == ["$1$", "$0$", "$2$"]
    assert "largest weight first" in lines[3]
    assert "other" not in lines[lines.index(r"\toprule") + 1]
    words = ranked()
    words.tables["links"] = pd.DataFrame({"word": ["a_b", "c"]})
    assert body(excerpt(words)) == [r"a\_b \\", r"c \\"]
    assert "all 2 rows" in excerpt(words)[3]
    assert "brackets" not in excerpt(words)[3]
