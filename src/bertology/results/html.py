"""The parts of a result as pieces of HTML, for notebooks."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from bertology.results.drawing import Drawing
from bertology.results.number_text import whole_number_text
from bertology.results.provenance import Provenance
from bertology.results.rendering import render
from bertology.results.rules import look_of
from bertology.results.verdicts import Verdict, statement_text

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)
_ROWS = 10


def heading(p: Provenance, notes: Sequence[str]) -> str:
    """What was asked of which model, over what, and what a reader must be warned of."""
    model = escape(str(p.model.get("name", "")))
    over = "" if p.corpus is None else f" over <b>{escape(str(p.corpus.get('name', '')))}</b>"
    parameters = escape(", ".join(f"{k}={v}" for k, v in p.parameters.items()))
    told = [*([p.labels_note] if p.labels_note else []), *notes]
    note = "".join(f"<br>{escape(one)}" for one in told)
    return (
        f"<p><b>{escape(p.study)}</b> of <b>{model}</b>{over} "
        f"<code>{escape(p.identity)}</code><br><small>{parameters}</small>{note}</p>"
    )


def main_figure(drawings: Sequence[Drawing]) -> str:
    """The first of the figures."""
    if not drawings:
        return ""
    drawing = drawings[0]
    try:
        svg = b64encode(render(drawing.draw())).decode()
    except Exception as error:
        # The numbers are worth showing even where the picture cannot be drawn.
        _log.warning("figure %s was not drawn: %s", drawing.name, error)
        return ""
    # As an image: inlined SVGs on one page would share and mix up their ids.
    caption = escape(drawing.caption)
    image = (
        f'<img alt="{escape(drawing.name)}" style="max-width:100%" '
        f'src="data:image/svg+xml;base64,{svg}">'
    )
    below = f"<figcaption><small>{caption}</small></figcaption>"
    return f'<figure style="margin:0">{image}{below}</figure>'


def other_figures(drawings: Sequence[Drawing]) -> str:
    """Names and captions of the figures that are not shown, and how to see them."""
    rows = [
        f"<li><code>.plot({escape(repr(drawing.name))})</code> {escape(drawing.caption)}</li>"
        for drawing in drawings[1:]
    ]
    if not rows:
        return ""
    more = "One more figure" if len(rows) == 1 else f"{len(rows)} more figures"
    return f"<details><summary>{more}</summary><ul>{''.join(rows)}</ul></details>"


def verdict_list(verdicts: Sequence[Verdict]) -> str:
    """A line for each claim."""
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


def first_rows(table: pd.DataFrame) -> str:
    """The first rows of a table, and how to see the others."""
    shown: str = table.head(_ROWS).to_html(border=0, float_format=whole_number_text)
    rest = len(table) - _ROWS
    more = f"<p><small>… {rest} more rows in <code>.table()</code></small></p>" if rest > 0 else ""
    return shown + more
