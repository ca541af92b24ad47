"""Tables and figures of this paper that need code; `paper.yaml` names the functions.

Intervals stand in brackets.
"""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING

from bertology.reproduce.paper import ResultsByData, TextTable
from bertology.results.number_text import with_interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from bertology.stats import Estimate


def _points(estimate: Estimate | None) -> str:
    """A difference of scores in points, with its sign."""
    if estimate is None:
        return "–"
    return with_interval(estimate.value, estimate.low, estimate.high, "+.1f", scale=100)


_STARTS = {
    "frozen": "pre-trained",
    "random": "fine-tuned, random start",
    "pretrained": "fine-tuned, pre-trained start",
    "frozen-features": "classifier on frozen features",
}


def starts_table(results: ResultsByData) -> TextTable:
    """Scores by what the fine-tuning started from (fine-tuning-starts)."""
    rows = []
    for title, result in results.items():
        table, facts = result.tables["starts"], result.arrays.attrs
        for metric, block in table.groupby("metric", sort=False):
            by_start = {row["start"]: row for row in block.to_dict("records")}
            cells = [
                with_interval(r["mean"], r["low"], r["high"], scale=100) if r else "–"
                for r in map(by_start.get, _STARTS)
            ]
            rows.append((title, *cells, str(metric), f"{facts['train_size']:,}"))
    seeds = max((int(r.arrays.attrs["seeds"]) for r in results.values()), default=0)
    tables = [result.tables["starts"] for result in results.values()]
    heads = max((int((t["seeds"] * (t["start"] == "frozen")).max()) for t in tables), default=0)
    gains = {
        title: estimate.value
        for title, result in results.items()
        if (estimate := result.evidence().get("fine_tuned_over_frozen")) is not None
    }
    gain = ""
    if gains:
        gain = f" Mean gain over the pre-trained: {100 * mean(gains.values()):+.1f} points"
        # A random classifier correlates with the labels by chance, which makes odd gains.
        scored = [g for t, g in gains.items() if results[t].arrays.attrs["judged"] == "accuracy"]
        if scored and len(scored) < len(gains):
            gain += f", {100 * mean(scored):+.1f} where the metric is accuracy"
        gain += "."
    return TextTable(
        ("data", *_STARTS.values(), "metric", "training examples"),
        tuple(rows),
        note=f"Points on the validation data; means over {seeds} seeds, without fine-tuning over "
        f"{heads} random classifiers, with 95 % intervals in brackets.{gain}",
    )


def example_table(results: ResultsByData) -> TextTable:
    """The heads whose maps are kept as examples of each type (map-types)."""
    from bertology.annotated.map_types.examples import EACH, LONGEST, SHORTEST, kept_in
    from bertology.data.map_labels import MAP_TYPES

    rows = []
    for title, result in results.items():
        kept = kept_in(result.arrays)
        cells = [", ".join(k.name for k in kept if k.type == i) for i in range(len(MAP_TYPES))]
        rows.append((title, *(cell or "–" for cell in cells)))
    return TextTable(
        ("data", *MAP_TYPES),
        tuple(rows),
        note=f"layer.head, counted from 0, of the first {EACH} maps of each type in texts of "
        f"{SHORTEST} to {LONGEST} tokens; –: there is none.",
    )


def type_table(results: ResultsByData) -> TextTable:
    """Shares of the types of maps (map-types)."""
    columns: list[str] = []
    rows = []
    for title, result in results.items():
        table = result.tables["shares"]
        whole = table[table["layer"] == "all"]
        columns = [str(t) for t in whole["type"]]
        cells = [
            with_interval(r["share"], r["low"], r["high"], scale=100)
            for r in whole.to_dict("records")
        ]
        rows.append((title, *cells, str(result.arrays.attrs["examples"])))
    return TextTable(
        ("data", *columns, "examples"),
        tuple(rows),
        note="Per cent of all maps, corrected for the mistakes of the network that names them. In "
        "brackets: 95 % intervals over examples and over the labelled maps that tell its mistakes.",
    )


def relation_table(results: ResultsByData) -> TextTable:
    """Heads with the highest weight between linked words, and sure ones (relation-heads)."""
    rows = []
    for title, result in results.items():
        heads, facts = result.tables["heads"], result.arrays.attrs
        by_weight = heads.sort_values("weight", ascending=False).head(2)
        sure = heads[heads["sure"].astype(bool)].drop(by_weight.index, errors="ignore")
        by_excess = sure.sort_values("excess", ascending=False).head(3)
        rows += [
            (
                title,
                str(facts["sentences"]),
                f"{int(r['layer'])}.{int(r['head'])}",
                f"{r['weight']:.3f}",
                with_interval(r["excess"], r["simultaneous_low"], r["simultaneous_high"]),
                "yes" if r["sure"] else "no",
            )
            for r in [*by_weight.to_dict("records"), *by_excess.to_dict("records")]
        ]
    return TextTable(
        ("data", "sentences", "layer.head", "weight", "excess over unlinked words", "sure"),
        tuple(rows),
        note="First the two heads with the highest weight, then up to three others, by excess, "
        "whose interval lies above 0 (sure). Layers and heads are counted from 0. The intervals "
        "hold for all heads and comparisons together. A claim about the largest excess uses the "
        "highest of all lower bounds, which may belong to another head than the largest excess.",
    )


def ablation_table(results: ResultsByData) -> TextTable:
    """How score and loss change without heads and layers (head-ablation)."""
    rows = []
    for title, result in results.items():
        facts, tables = result.arrays.attrs, result.tables
        score = f"{100 * float(facts['intact']):.1f} ({facts['metric']})"
        cells = [
            _one_row(tables.get("heads"), largest=True),
            _points(result.evidence().get("mean_head_gain")),
            _one_row(tables.get("layers"), largest=True),
            _one_row(tables.get("layers"), largest=False),
            _surely(tables.get("heads")),
            _surely(tables.get("layers")),
        ]
        rows.append((title, score, *cells, str(facts["examples"])))
    return TextTable(
        ("data", "intact", "best head", "mean of all heads", "best layer", "worst layer",
         "heads that surely change score, loss", "layers that surely change score, loss",
         "examples"),
        tuple(rows),
        note="Changes of the score in points. Best and worst are the head and the layers with the "
        "largest change (layer.head, counted from 0), each with its own interval, which holds for "
        "all heads, or all layers, together. The loss surely changes where the right answer surely "
        "becomes less probable in more examples than more probable, or the other way round.",
    )  # fmt: skip


def _one_row(table: pd.DataFrame | None, *, largest: bool) -> str:
    """The head or layer with the largest gain or loss: the change, its own interval, its name."""
    if table is None:
        return "–"
    row = table.sort_values("difference", ascending=not largest, kind="stable").iloc[0]
    places = [str(int(row[name])) for name in ("layer", "head") if name in table]
    bounds = (row["simultaneous_low"], row["simultaneous_high"])
    low, high = (f"{round(100 * b, 9) + 0.0:+.1f}" for b in bounds)
    return f"{100 * row['difference']:+.1f} [{low}, {high}] ({'.'.join(places)})"


def _surely(table: pd.DataFrame | None) -> str:
    if table is None:
        return "–"
    return f"{int(table['sure'].sum())}, {int(table['loss_sure'].sum())} of {len(table)}"


def examples_by_type(results: ResultsByData) -> Figure | None:
    """Example maps of each type (map-types), from as many corpora as there is room for.

    The corpora take turns; each gives its first map whose head is not yet in the row.
    """
    from bertology.annotated.map_types.examples import EACH, LONGEST, SHORTEST, kept_in
    from bertology.data.map_labels import MAP_TYPES
    from bertology.report.figures import TitledMap, example_sheet

    kept = {title: kept_in(result.arrays) for title, result in results.items()}
    rows: dict[str, list[TitledMap]] = {}
    for i, name in enumerate(MAP_TYPES):
        left = {title: [k for k in maps if k.type == i] for title, maps in kept.items()}
        row: dict[str, TitledMap] = {}  # by head
        while any(left.values()):
            for title in left:
                left[title] = [k for k in left[title] if k.name not in row]
                for one in left[title][:1]:
                    label = f"{one.name}, {title}"
                    row[one.name] = TitledMap(label, one.weights, one.tokens, one.second)
        if row:
            rows[name] = list(row.values())[:EACH]
    if not rows:
        return None
    return example_sheet(
        rows,
        title="Attention maps of each type",
        note=f"The first maps in texts of {SHORTEST} to {LONGEST} tokens, in the order of "
        "examples, layers and heads. The data take turns; no head is twice in a row.",
    )


def types_by_data(results: ResultsByData) -> Figure:
    """A bar for each corpus, cut into the types of maps (map-types)."""
    from bertology.report.figures import type_bars

    rows, names, types = [], [], []
    for title, result in results.items():
        table = result.tables["shares"]
        whole = table[table["layer"] == "all"]
        types = [str(t) for t in whole["type"]]
        rows.append(whole["share"].to_list())
        names.append(f"{title} ({result.arrays.attrs['examples']})")
    return type_bars(
        rows,
        types=types,
        names=names,
        title="Types of attention maps, by data",
        note="All layers and heads; in brackets the number of examples.",
    )
