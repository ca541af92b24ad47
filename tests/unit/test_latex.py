"""Tables as LaTeX: nothing in a cell is taken for a command, whatever it holds."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from bertology.report.latex import as_latex


def rows(table: pd.DataFrame) -> list[str]:
    lines = as_latex(table).splitlines()
    return lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]


def test_brackets_at_the_start_of_a_row_are_no_length() -> None:
    assert rows(pd.DataFrame({"token": ["[CLS]", "[SEP]"]})) == [r"{[}CLS{]} \\", r"{[}SEP{]} \\"]


def test_small_and_large_numbers_have_powers_of_ten() -> None:
    table = pd.DataFrame({"p": [0.00001234567, -2.5e9, 0.5, np.inf]})
    assert rows(table) == [
        r"$1.235 \times 10^{-5}$ \\", r"$-2.5 \times 10^{9}$ \\", r"$0.5$ \\", r"-- \\",
    ]  # fmt: skip


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
