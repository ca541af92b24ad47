"""Results as small tables for readers, by study; intervals in brackets."""

from __future__ import annotations

import math
from statistics import mean
from typing import TYPE_CHECKING, Any

from bertology.reproduce.paper import Found, Numbers

if TYPE_CHECKING:
    from bertology.stats import Estimate

__all__ = [
    "ablation_numbers",
    "evidence_numbers",
    "example_numbers",
    "relation_numbers",
    "starts_numbers",
    "type_numbers",
    "with_interval",
]


def with_interval(value: float, low: float, high: float, *, scale: float = 1.0) -> str:
    """`0.31 [0.28, 0.34]`; the bare value where there is no interval."""
    shown = _short(scale * value)
    if math.isnan(low) or math.isnan(high):
        return shown
    return f"{shown} [{_short(scale * low)}, {_short(scale * high)}]"


def _points(estimate: Estimate | None) -> str:
    """A difference of scores in points, with its sign."""
    if estimate is None:
        return "–"
    shown = f"{100 * estimate.value:+.1f}"
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return shown
    return f"{shown} [{100 * estimate.low:+.1f}, {100 * estimate.high:+.1f}]"


def _short(value: float) -> str:
    # What rounding leaves of a zero is shown as one, and without a sign.
    return "–" if math.isnan(value) else f"{round(value, 9) + 0.0:.3g}"


def evidence_numbers(found: Found) -> Numbers:
    """What claims are judged on, a column for each corpus."""
    evidence = {title: result.evidence() for title, result in found.items()}
    quantities = list(dict.fromkeys(q for entry in evidence.values() for q in entry))
    rows = [
        (quantity.replace("_", " "), *(_cell(evidence[title].get(quantity)) for title in found))
        for quantity in quantities
    ]
    return Numbers(
        ("quantity", *found),
        tuple(rows),
        note="In brackets: intervals as claims are judged on; "
        "n: examples, heads, layers, links or seeds.",
    )


def _cell(estimate: Any) -> str:
    if estimate is None:
        return "–"
    return f"{with_interval(estimate.value, estimate.low, estimate.high)}, n = {estimate.n}"


_STARTS = {
    "frozen": "pre-trained",
    "random": "fine-tuned, random start",
    "pretrained": "fine-tuned, pre-trained start",
    "frozen-features": "head on frozen features",
}


def starts_numbers(found: Found) -> Numbers:
    """Scores by what a fine-tuning started from (fine-tuning-starts)."""
    rows = []
    for title, result in found.items():
        table, facts = result.tables["starts"], result.arrays.attrs
        for metric, block in table.groupby("metric", sort=False):
            by_start = {row["start"]: row for row in block.to_dict("records")}
            cells = [
                with_interval(r["mean"], r["low"], r["high"], scale=100) if r else "–"
                for r in map(by_start.get, _STARTS)
            ]
            rows.append((title, *cells, str(metric), f"{facts['train_size']:,}"))
    seeds = max((int(r.arrays.attrs["seeds"]) for r in found.values()), default=0)
    gains = {
        title: estimate.value
        for title, result in found.items()
        if (estimate := result.evidence().get("fine_tuned_over_frozen")) is not None
    }
    gain = ""
    if gains:
        gain = f" Mean gain over the pre-trained: {100 * mean(gains.values()):+.1f} points"
        # A random head correlates with the answers at will, which makes for odd gains.
        scored = [g for t, g in gains.items() if found[t].arrays.attrs["judged"] == "accuracy"]
        if scored and len(scored) < len(gains):
            gain += f", {100 * mean(scored):+.1f} where it is of accuracy"
        gain += "."
    return Numbers(
        ("data", *_STARTS.values(), "metric", "examples learnt from"),
        tuple(rows),
        note=f"Points on the validation data; means over {seeds} seeds, in brackets their 95 % "
        f"interval.{gain}",
    )


def example_numbers(found: Found) -> Numbers:
    """The heads whose maps are kept as examples of each type (map-types)."""
    from bertology.annotated.map_types.examples import EACH, LONGEST, SHORTEST, kept_in
    from bertology.data.map_labels import MAP_TYPES

    rows = []
    for title, result in found.items():
        kept = kept_in(result.arrays)
        cells = [", ".join(k.name for k in kept if k.type == i) for i in range(len(MAP_TYPES))]
        rows.append((title, *(cell or "–" for cell in cells)))
    return Numbers(
        ("data", *MAP_TYPES),
        tuple(rows),
        note=f"layer.head, from 0, of the first {EACH} maps of each type in texts of "
        f"{SHORTEST} to {LONGEST} tokens; –: there is none.",
    )


def type_numbers(found: Found) -> Numbers:
    """Shares of the types of maps (map-types)."""
    columns: list[str] = []
    rows = []
    for title, result in found.items():
        table = result.tables["shares"]
        whole = table[table["layer"] == "all"]
        columns = [str(t) for t in whole["type"]]
        cells = [
            with_interval(r["share"], r["low"], r["high"], scale=100)
            for r in whole.to_dict("records")
        ]
        rows.append((title, *cells, str(result.arrays.attrs["examples"])))
    return Numbers(
        ("data", *columns, "examples"),
        tuple(rows),
        note="Per cent of all maps, in brackets 95 % intervals over examples (Student's). Claims "
        "rest on wider ones, which hold for any bounded values.",
    )


def relation_numbers(found: Found) -> Numbers:
    """Heads of the highest weight between linked words, and sure ones (relation-heads)."""
    rows = []
    for title, result in found.items():
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
    return Numbers(
        ("data", "sentences", "layer.head", "weight", "excess over unlinked words", "sure"),
        tuple(rows),
        note="First the two heads of the highest weight, then up to three others that are sure, "
        "by excess; layers and heads from 0. Intervals of the excess hold for all heads and "
        "comparisons together. A claim about the largest excess has the highest of all lower "
        "bounds, which may be another head's than the largest excess itself.",
    )


def ablation_numbers(found: Found) -> Numbers:
    """What is gained and lost without heads and layers (head-ablation)."""
    rows = []
    for title, result in found.items():
        facts, evidence = result.arrays.attrs, result.evidence()
        names = ("best_head_gain", "mean_head_gain", "best_layer_gain", "worst_layer_loss")
        cells = [_points(evidence.get(name)) for name in names]
        score = f"{100 * float(facts['intact']):.1f} ({facts['metric']})"
        rows.append((title, score, *cells, str(facts["examples"])))
    return Numbers(
        ("data", "intact", "best head", "mean of all heads", "best layer", "worst layer's loss",
         "examples"),
        tuple(rows),
        note="Changes of the score in points. Intervals of the best and the worst hold for all "
        "heads, or layers, together.",
    )  # fmt: skip
