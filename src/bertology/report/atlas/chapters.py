"""A chapter for each study: its question, method and limits, then figures, tables and commands."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from textwrap import shorten
from typing import TYPE_CHECKING, TypedDict

from bertology.report.atlas.about import About, Describe, commands_of
from bertology.report.atlas.naming import Entry, counted, in_words
from bertology.report.intervals import with_intervals
from bertology.report.slim import slim
from bertology.report.web import (
    Html,
    anchor,
    element,
    facts,
    folded,
    image,
    joined,
    preformatted,
    table,
)
from bertology.results.number_text import whole_number_text
from bertology.results.points import PointColumns
from bertology.results.result import Result

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)
_TEXT = 90  # characters of a text in a title
_LINKS = 6  # measures that are named where they are shown elsewhere


def chapters(
    entries: Sequence[Entry],
    describe: Describe,
    shape: tuple[int, int],
    drawn: Callable[[int], None] = lambda n: None,
) -> Html:
    """All studies, in the order of their names; `drawn` hears of each result that is ready.

    What the grid of heads and the charts of layers show, for models of this `shape`, is not drawn
    again: a link leads there. Only the main figure of a study is.
    """
    studies: dict[str, list[Entry]] = {}
    for entry in entries:
        studies.setdefault(entry.study, []).append(entry)
    pieces = [_chapter(n, group, describe(n), shape, drawn) for n, group in studies.items()]
    return element("section", element("h2", "Every study"), *pieces, id="studies")


def table_key(entry: Entry, name: str) -> str:
    """Names a table on the page."""
    return f"{entry.anchor}/{name}"


def _chapter(
    name: str,
    entries: Sequence[Entry],
    about: About,
    shape: tuple[int, int],
    drawn: Callable[[int], None],
) -> Html:
    told = [("Method", about.method), ("Limits", about.limits), ("Source", about.source)]
    pieces: list[object] = [element("h3", _title(name))]
    if about.question:
        pieces.append(element("p", _prose(about.question)))
    if known := [(label, _prose(text)) for label, text in told if text]:
        pieces.append(folded("Method, limits and source", facts(known)))
    # The first is open; the others are one click away, and their pictures cost nothing until then.
    for i, entry in enumerate(entries):
        pieces.append(_entry(entry, about, shape, opened=i == 0))
        drawn(1)
    return element("article", joined(pieces), id=f"study-{name}", kind="study")


def _title(name: str) -> str:
    return _raised(in_words(name))


def _raised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _prose(text: str) -> Html:
    """A sentence of a docstring: what stands between backticks is code."""
    pieces = _raised(text).split("`")
    code = [element("code", p) if i % 2 else p for i, p in enumerate(pieces)]
    return element("span", *code)


def _entry(entry: Entry, about: About, shape: tuple[int, int], *, opened: bool) -> Html:
    result = entry.result
    n = (result.provenance.corpus or {}).get("size")
    pieces: list[object] = [
        element(
            "summary",
            element("b", entry.label),
            "" if n is None else f" · {n} examples {result.provenance.drawn_note}".rstrip(),
        )
    ]
    pieces.append(element("p", result.answer, kind="answer"))
    told = (result.headline(), result.provenance.labels_note, *result.notes("the model"))
    pieces += [element("p", line, kind="soft") for line in told if line]
    # The measures that the grid of heads or the charts of layers show
    fits = (shape, shape[:1])
    elsewhere = {m.name for m in entry.result.measures() if m.values.shape in fits}
    drawings = entry.result.figures()
    again = [name for name, d in drawings.items() if d.shows and elsewhere >= set(d.shows)]
    again = again[1:] if opened and again[:1] == list(drawings)[:1] else again
    shown = [name for name in drawings if name not in again]
    pieces.append(element("div", *_figures(entry, shown), kind="figures"))
    if again:
        pieces.append(_links(entry, [m for name in again for m in drawings[name].shows]))
    tables = [
        table_piece(
            result.in_units(name, result.shown(name)),
            name=name,
            key=table_key(entry, name),
            order=result.order_of(name),
        )
        for name in result.tables
    ]
    pieces += tables[:1]
    if tables[1:]:
        names = ", ".join(in_words(name) for name in list(result.tables)[1:])
        pieces.append(folded(f"More tables: {names}", *tables[1:]))
    commands = commands_of(result.provenance, about)
    if commands:
        pieces.append(folded("How to make this again", preformatted("\n".join(commands))))
    how = {"open": ""} if opened else {}
    return element("details", joined(pieces), id=entry.anchor, kind="entry", **how)


def _links(entry: Entry, names: Sequence[str]) -> Html:
    """Where to look at measures that are not drawn again."""
    known = {m.name: m for m in entry.result.measures()}
    heads = [known[n] for n in dict.fromkeys(names) if known[n].of_heads]
    pieces: list[object] = []
    if heads:
        first, rest = heads[:_LINKS], len(heads) - _LINKS
        pieces.append("In the grid of heads: ")
        for i, m in enumerate(first):
            address = f"#measure={entry.study}/{m.name}&of={entry.anchor}"
            pieces += [", " if i else "", anchor(address, m.title)]
        pieces.append(f" and {rest} more. " if rest > 0 else ". ")
    if len(heads) < len(set(names)):
        pieces += ["Layer by layer: ", anchor(f"#layers-{entry.study}", "charts"), "."]
    return element("p", *pieces, kind="soft")


def _figures(entry: Entry, names: Sequence[str]) -> Iterator[Html]:
    drawings = entry.result.figures()
    for name, drawing in ((n, drawings[n]) for n in names):
        title, caption = _figure_title(entry.result, name), drawing.caption
        if drawing.points is not None:
            told = drawing.caption_of_any or caption
            yield _walked(entry, drawing.points, name=name, title=title, caption=told)
            continue
        svg = _drawn(entry.result, name)
        if svg is None:
            continue
        buttons = element("span", kind="buttons", data_figure=f"{entry.study}-{name}")
        yield element(
            "figure",
            *_enlargeable(
                image(slim(svg), alt=f"{title}. {caption}"),
                id=f"full-{entry.anchor}-{name}",
                title=title,
            ),
            element("figcaption", element("b", f"{title}. "), caption, " ", buttons),
        )


def _walked(entry: Entry, points: PointColumns, *, name: str, title: str, caption: str) -> Html:
    """Points that the page draws of a table, so that readers may choose the plane and read them."""
    without = element(
        "noscript",
        element("p", "The plane needs JavaScript; bertology report --export FOLDER draws it."),
    )
    host = element(
        "div",
        without,
        data_points=json.dumps(points.as_dict()),
        data_table=table_key(entry, points.table),
        data_name=f"{entry.study}-{name}",
    )
    buttons = element("span", kind="buttons")
    told = element("figcaption", element("b", f"{title}. "), caption, " ", buttons)
    return element("figure", host, told, kind="points")


def _figure_title(result: Result, name: str) -> str:
    """Its name in words; the maps of one text are named by that text."""
    array = name.replace("-", "_")
    tokens = result.arrays[array].attrs.get("tokens") if array in result.arrays else None
    if tokens is None:
        return _title(name)
    text = " ".join(map(str, tokens)).replace(" ##", "")  # word pieces as words
    return f"Maps of “{shorten(text, _TEXT, placeholder=' …')}”"


def _enlargeable(picture: Html, *, id: str, title: str) -> list[Html]:
    """A picture that a tap shows in full size on a narrow screen, without a script."""
    box = Html(
        f'<input type="checkbox" class="enlarge" id="{escape(id)}" '
        f'aria-label="{escape(f"Full size: {title}")}">'
    )
    words = element("label", "Full size", kind="enlarge", for_=id)
    return [box, words, element("div", element("label", picture, for_=id), kind="paper")]


def _drawn(result: Result, name: str) -> bytes | None:
    try:
        return result.svg(name)
    except Exception as error:
        # The numbers are worth showing even where the picture cannot be drawn.
        _log.warning("figure %s of %s was not drawn: %s", name, result.identity, error)
        return None


# A result's tables: a few rows to read, and all of them for the page's buttons.

_ROWS, _COLUMNS = 6, 9
_DIGITS = 5
_OFTEN = 3  # times that each text of a column comes, on average, from where it is written once

Scalar = float | int | str | bool | None


class Repeated(TypedDict):
    """A column of few texts: each of them once, and which one each row has."""

    texts: list[str]
    rows: list[int]


class TableRecord(TypedDict):
    """A table for the page's scripts."""

    columns: list[str]
    values: list[list[Scalar] | Repeated]


def table_data(frame: pd.DataFrame) -> TableRecord:
    """All of a table by columns, for scripts."""
    flat = _flat(frame)
    return {
        "columns": [str(c) for c in flat.columns],
        "values": [_column([_plain(v) for v in flat[c].tolist()]) for c in flat.columns],
    }


def _column(values: list[Scalar]) -> list[Scalar] | Repeated:
    texts = dict.fromkeys(v for v in values if isinstance(v, str))
    whole = all(isinstance(v, str) for v in values)
    if not whole or len(values) < _OFTEN * len(texts) or len(texts) < 2:
        return values
    place = {text: i for i, text in enumerate(texts)}
    return {"texts": list(texts), "rows": [place[v] for v in values if isinstance(v, str)]}


def table_piece(frame: pd.DataFrame, *, name: str, key: str, order: str = "") -> Html:
    """The first rows, with intervals in one cell; buttons get the whole table by its key.

    `order` says which rows come first, such as "largest excess first".
    """
    columns, rows = with_intervals(_flat(frame).head(_ROWS))
    shown = table(
        [in_words(c) for c in columns[:_COLUMNS]],
        [[_cell(v) for v in row[:_COLUMNS]] for row in rows],
    )
    hidden = []
    if len(frame) > _ROWS:
        hidden.append(counted(len(frame) - _ROWS, "more row"))
    if len(columns) > _COLUMNS:
        hidden.append(counted(len(columns) - _COLUMNS, "more column"))
    first = f"The first rows ({order})" if order else "The first rows"
    more = f"{first}; {' and '.join(hidden)}." if hidden else ""
    buttons = element("span", kind="buttons", data_table=key, data_name=name)
    line = element("p", element("b", f"Table: {in_words(name)}. "), more, " ", buttons, kind="soft")
    return element("div", joined([line, shown]), kind="numbers")


def _flat(frame: pd.DataFrame) -> pd.DataFrame:
    named = [n for n in frame.index.names if n is not None]
    return frame.reset_index() if named else frame


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "–" if math.isnan(value) else whole_number_text(value)
    return "–" if value is None else str(value)


def _plain(value: object) -> Scalar:
    """The value as JSON can hold it."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)
