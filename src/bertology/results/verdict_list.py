"""The verdicts on one result: a list that is shown as a small table, one line for each claim."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from bertology.results.claims import Verdict
from bertology.results.verdict_view import brief, look_of, statement_text

if TYPE_CHECKING:
    import pandas as pd

_LONG = 70  # characters of a reason; `Verdict.measured` has all of it


class Verdicts(list[Verdict]):
    """Each verdict says all that it rests on as `measured`, or when it is printed."""

    def table(self) -> pd.DataFrame:
        """The verdict on each claim, what was found, the statement, and all that it rests on."""
        import pandas as pd

        rows = [
            (v.claim.id, v.outcome.in_words, brief(v), statement_text(v.claim), v.measured)
            for v in self
        ]
        columns = ["claim", "verdict", "found", "statement", "measured"]
        return pd.DataFrame(rows, columns=columns).set_index("claim")

    def __repr__(self) -> str:
        if not self:
            return "No claim of the literature is about this result."
        rows = [
            (f"{look_of(v.outcome).sign} {v.outcome.in_words}", v.claim.id, _cut(brief(v)))
            for v in self
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows)

    def _repr_html_(self) -> str:
        rows = []
        for v in self:
            look = look_of(v.outcome)
            rows.append(
                f'<tr><td style="color:{look.colour}"><b>{look.sign} {look.words}</b></td>'
                f'<td style="text-align:left" title="{escape(v.measured)}">'
                f"{escape(statement_text(v.claim))}</td><td>{escape(_cut(brief(v)))}</td></tr>"
            )
        return f"<table>{''.join(rows)}</table>" if rows else f"<p>{self!r}</p>"


def _cut(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"
