"""Tables as LaTeX, for the packages booktabs and longtable: whole, or the strongest rows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bertology.report.intervals import with_intervals
from bertology.results.number_text import whole_number_text
from bertology.results.ranking import NAMES, column_of, order_told, strongest_first

if TYPE_CHECKING:
    import pandas as pd

    from bertology.results.result import Result

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
_STRONGEST = 10  # rows of an excerpt
_POWER = re.compile(r"(?<=\d)e([+-]?\d+)")


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


def strongest_as_latex(result: Result, name: str) -> str:
    """The ten strongest rows of a table: what they are of, and effect [interval] in one cell.

    It is a `table` with caption and label, to be put into a paper as it is.
    """
    whole, effect, order = _ranked(result, name)
    renamed = result.in_units(name, whole)
    if effect is not None and effect in whole:
        effect = str(renamed.columns[list(whole.columns).index(effect)])
    whole = renamed
    columns, rows = with_intervals(whole.head(_STRONGEST))
    kept = _kept(whole, columns, effect)
    intervals = any(_is_interval(row[i]) for row in rows for i in kept)
    heads = " & ".join(_text(columns[i].replace("_", " ")) for i in kept)
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_caption(result, name, order, intervals=intervals)}}}",
        rf"\label{{tab:{result.provenance.study}-{result.identity[:8]}-{_label(name)}}}",
        rf"\begin{{tabular}}{{{''.join('r' if _is_number(rows, i) else 'l' for i in kept)}}}",
        r"\toprule",
        rf"{heads} \\",
        r"\midrule",
        *(" & ".join(_excerpt_cell(row[i]) for i in kept) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def _ranked(result: Result, name: str) -> tuple[pd.DataFrame, str | None, str]:
    """The rows by rank, the column that is the effect, and the order in words.

    Heads that no one ranks are ranked by their first number that has an interval.
    """
    table, ranking = result.shown(name), result.ranking(name)
    if any(n is not None for n in table.index.names):
        table = table.reset_index()
    if ranking is not None:
        return table, column_of(ranking), result.order_of(name)
    columns, rows = with_intervals(table)
    effect = next((c for i, c in enumerate(columns) if any(_is_interval(r[i]) for r in rows)), None)
    effect = effect if effect in table else next(_numbers(table), None)
    if effect is None or "head" not in table:
        return table, effect, ""
    return strongest_first(table, effect), effect, order_told(table, effect)


def _numbers(table: pd.DataFrame) -> Iterator[str]:
    return (str(n) for n in table.columns if table[n].dtype.kind == "f" and n not in NAMES)


def _kept(table: pd.DataFrame, columns: list[str], effect: str | None) -> list[int]:
    """What rows are of, the effect, and whether it is sure; all columns without an effect."""
    if effect is None or effect not in columns:
        return list(range(len(columns)))
    main = columns.index(effect)
    told = [i for i, n in enumerate(columns) if n in NAMES or (n in table and _is_name(table[n]))]
    sure = [i for i, n in enumerate(columns) if n == "sure"]
    return [*(i for i in told if i not in (main, *sure)), main, *sure]


def _is_name(column: pd.Series[Any]) -> bool:
    """Words and whole numbers say what a row is of."""
    return column.dtype.kind not in "fb"


def _caption(result: Result, name: str, order: str, *, intervals: bool) -> str:
    of = len(result.tables[name])
    rows = f"all {of} rows" if of <= _STRONGEST else f"{_STRONGEST} of {of} rows"
    told = [
        result.answer,
        f"{result.provenance.study} of {result.about}: {name.replace('_', ' ')}, "
        f"{f'{rows}, {order}' if order else rows}.",
    ]
    level = result.facts.get("level")
    if intervals:
        told.append(f"In brackets: intervals{f' at the level {level:g}' if level else ''}.")
    if "layer" in result.tables[name]:
        told.append("Layers and heads are numbered from 0.")
    # An arrow is in no font of text.
    return _text(" ".join(told)).replace("→", r"$\to$").replace("−", "$-$")


def _label(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name)


def _is_interval(cell: object) -> bool:
    return isinstance(cell, str) and cell.endswith("]") and ", " in cell and "[" in cell


def _is_number(rows: list[list[object]], column: int) -> bool:
    cells = [row[column] for row in rows]
    return all(isinstance(c, int | float) and not isinstance(c, bool) for c in cells)


def _excerpt_cell(cell: object) -> str:
    """As in the whole table; a value and its interval are formulas, for signs and powers."""
    if not _is_interval(cell):
        return _cell(cell)
    value, _, ends = str(cell).rpartition("[")
    parts = [value.strip(), f"[{ends}"]
    return " ".join(f"${_formula(part)}$" for part in parts if part and part != "–")


def _formula(text: str) -> str:
    """Powers of ten as such, and an interval without an end."""
    return _POWER.sub(_times, text).replace("inf", r"\infty")


def _times(power: re.Match[str]) -> str:
    return rf" \times 10^{{{int(power[1])}}}"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "--" if math.isnan(value) else _number(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"${value}$"
    return "--" if value is None else _text(str(value))


def _number(value: float) -> str:
    if math.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    digits, _, power = whole_number_text(value).partition("e")
    return rf"${digits} \times 10^{{{int(power)}}}$" if power else f"${digits}$"


def _text(text: str) -> str:
    return _SPECIAL.sub(lambda sign: _SIGNS[sign[0]], " ".join(text.split()))
