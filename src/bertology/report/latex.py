"""A table as LaTeX, for the packages booktabs and longtable."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["as_latex"]

_SIGNS = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    # The end of a row would take what stands in brackets after it for a length.
    "[": "{[}", "]": "{]}",
    # Fonts of the old encoding have other signs in these places.
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip
_SPECIAL = re.compile("[" + re.escape("".join(_SIGNS)) + "]")
_PAGE = 40  # rows that fit on a page; more are set as a table that runs on


def as_latex(table: pd.DataFrame) -> str:
    """All rows, as a `tabular` or, where they are many, a `longtable`; numbers have four digits."""
    import pandas as pd

    counted = isinstance(table.index, pd.RangeIndex) and table.index.name is None
    flat = table if counted else table.reset_index()
    kinds = [
        "r" if pd.api.types.is_numeric_dtype(flat[c]) and flat[c].dtype != bool else "l"
        for c in flat.columns
    ]
    rows = [" & ".join(_cell(v) for v in row) + r" \\" for row in flat.itertuples(index=False)]
    heads = " & ".join(_text(str(c).replace("_", " ")) for c in flat.columns)
    long = len(rows) > _PAGE
    setting = "longtable" if long else "tabular"
    lines = [
        r"% needs \usepackage{booktabs,longtable}" if long else r"% needs \usepackage{booktabs}",
        rf"\begin{{{setting}}}{{{''.join(kinds)}}}",
        r"\toprule",
        rf"{heads} \\",
        r"\midrule",
        *([r"\endhead"] if long else []),  # what stands above it is repeated on every page
        *rows,
        r"\bottomrule",
        rf"\end{{{setting}}}",
        "",
    ]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return _number(value) if math.isfinite(value) else "--"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"${value}$"
    return "--" if value is None else _text(str(value))


def _number(value: float) -> str:
    digits, _, power = f"{value:.4g}".partition("e")
    return rf"${digits} \times 10^{{{int(power)}}}$" if power else f"${digits}$"


def _text(text: str) -> str:
    return _SPECIAL.sub(lambda sign: _SIGNS[sign[0]], " ".join(text.split()))
