"""A result as a piece of HTML, for notebooks and for the report page to build upon."""

from __future__ import annotations

import logging
from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING

from bertology.results.claims import Verdict
from bertology.results.number_text import whole_number_text
from bertology.results.verdict_view import look_of, statement_text

if TYPE_CHECKING:
    from bertology.results.result import Result

_log = logging.getLogger(__name__)
_ROWS = 10


def fragment(result: Result) -> str:
    """The answer, heading, main figure, verdicts, the strongest rows, and what else is drawn."""
    pieces = [
        f'<p style="font-size:1.15em"><b>{escape(result.answer)}</b></p>',
        _heading(result),
        _figure(result),
        _verdicts(result.verdicts()),
        _table(result),
        _other_figures(result),
    ]
    return f'<div class="bertology-result">{"".join(pieces)}</div>'


def _heading(result: Result) -> str:
    p = result.provenance
    model = escape(str(p.model.get("name", "")))
    over = "" if p.corpus is None else f" over <b>{escape(str(p.corpus.get('name', '')))}</b>"
    parameters = escape(", ".join(f"{k}={v}" for k, v in p.parameters.items()))
    told = [*([p.labels_note] if p.labels_note else []), *result.notes()]
    note = "".join(f"<br>{escape(one)}" for one in told)
    return (
        f"<p><b>{escape(p.study)}</b> of <b>{model}</b>{over} "
        f"<code>{escape(result.identity)}</code><br><small>{parameters}</small>{note}</p>"
    )


def _figure(result: Result) -> str:
    drawings = result.figures()
    if not drawings:
        return ""
    name, drawing = next(iter(drawings.items()))
    try:
        from bertology.results.rendering import render

        svg = b64encode(render(drawing.draw())).decode()
    except Exception as error:
        # The numbers are worth showing even where the picture cannot be drawn.
        _log.warning("figure %s was not drawn: %s", name, error)
        return ""
    # As an image: inlined SVGs on one page would share and mix up their ids.
    caption = escape(drawing.caption)
    image = (
        f'<img alt="{escape(name)}" style="max-width:100%" src="data:image/svg+xml;base64,{svg}">'
    )
    below = f"<figcaption><small>{caption}</small></figcaption>"
    return f'<figure style="margin:0">{image}{below}</figure>'


def _other_figures(result: Result) -> str:
    """Names and captions of the figures that are not shown, and how to see them."""
    rows = [
        f"<li><code>.plot({escape(repr(drawing.name))})</code> {escape(drawing.caption)}</li>"
        for drawing in result.drawings()[1:]
    ]
    if not rows:
        return ""
    more = "One more figure" if len(rows) == 1 else f"{len(rows)} more figures"
    return f"<details><summary>{more}</summary><ul>{''.join(rows)}</ul></details>"


def _verdicts(verdicts: list[Verdict]) -> str:
    rows = []
    for verdict in verdicts:
        look = look_of(verdict.outcome)
        source = verdict.claim.source
        rows.append(
            f'<li style="list-style:none"><b style="color:{look.colour}">{look.sign} '
            f"{look.words}</b> "
            f"{escape(statement_text(verdict.claim))} <small>({escape(verdict.measured)}; "
            f"{escape(str(source))})</small></li>"
        )
    return f'<ul style="padding-left:0">{"".join(rows)}</ul>' if rows else ""


def _table(result: Result) -> str:
    if not result.tables:
        return ""
    table = result.in_units(next(iter(result.tables)), result.shown())
    shown: str = table.head(_ROWS).to_html(border=0, float_format=whole_number_text)
    rest = len(table) - _ROWS
    more = f"<p><small>… {rest} more rows in <code>.table()</code></small></p>" if rest > 0 else ""
    return shown + more
