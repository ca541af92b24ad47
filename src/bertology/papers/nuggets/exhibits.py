"""The tables of this talk that need code; `paper.yaml` names the functions."""

from __future__ import annotations

from bertology.reproduce.paper import ResultsByData, TextTable
from bertology.results.number_text import with_interval


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


def outlier_costs(results: ResultsByData) -> TextTable:
    """The intact model, outliers disabled, and the middle and the worst of the random draws."""
    rows = []
    for title, result in results.items():
        if "sets" not in result.tables:
            rows.append((title, "no outlier was found", "", "", "", "", ""))
            continue
        for row in result.tables["sets"].to_dict("records"):
            if row["kind"] == "lone draw":
                continue
            name = str(row["set"])
            rise = with_interval(row["loss_rise"], row["loss_rise_low"], row["loss_rise_high"])
            rows.append(
                (
                    title,
                    name,
                    str(row["weights"]),
                    "" if name == "intact" else rise,
                    _number(row["perplexity"], ".1f"),
                    _number(100 * row["commonest"], ".0f"),
                    _number(row["entropy"], ".1f"),
                )
            )
    return TextTable(
        ("data", "disabled", "weights", "rise of the loss", "perplexity", "commonest", "entropy"),
        tuple(rows),
        note="Rise in nats; intervals over texts hold for all sets. Commonest: per cent of "
        "predictions that are the same one; entropy of all predictions in bits.",
    )


def outlier_completions(results: ResultsByData) -> TextTable:
    """Some texts as they were, and as the model completes them."""
    rows = []
    for result in results.values():
        if "completions" not in result.tables:
            continue
        for row in result.tables["completions"].to_dict("records"):
            rows += [(name, str(row[key])) for key, name in _COMPLETED.items() if key in row]
    return TextTable(
        ("", "text"), tuple(rows), note="Words in brackets were hidden from the model."
    )


_COMPLETED = {
    "text": "text",
    "intact": "intact",
    "without": "without outliers",
    "random": "without random dimensions",
}


def _number(value: float, spec: str) -> str:
    return "" if value != value else format(value, spec)
