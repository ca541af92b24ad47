"""The table of this talk that needs code; `paper.yaml` names the function."""

from __future__ import annotations

from bertology.reproduce.paper import ResultsByData, TextTable
from bertology.results.verdict_view import with_interval

__all__ = ["syntax_table"]


def syntax_table(results: ResultsByData) -> TextTable:
    """The best head of each relation that was published, beside the best offset (syntax-heads)."""
    rows = []
    for title, result in results.items():
        table = result.tables["relations"]
        for row in table[table["published_name"].astype(bool)].to_dict("records"):
            rows.append(
                (
                    title,
                    f"{row['relation']} ({row['published_name']})",
                    f"{int(row['layer'])}.{int(row['head'])}",
                    with_interval(row["share"], row["share_low"], row["share_high"], scale=100),
                    f"{100 * row['baseline']:.1f} ({int(row['offset'])})",
                    str(row["n"]),
                )
            )
    return TextTable(
        ("data", "relation (theirs)", "layer.head", "accuracy", "baseline (offset)", "sentences"),
        tuple(rows),
        note="Per cent of words whose most attended word is the right one, in the better of both "
        "directions; layers and heads are counted from 0. The head was picked on one half of the "
        "sentences and scored on the other, as was the offset. Intervals hold for all relations "
        "together.",
    )
