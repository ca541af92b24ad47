"""What `bertology demo` says: sentences made from results, and nothing that they do not show.

A statement is called sure only where a test that is corrected for all heads, layers or relations
says so. Where nothing is sure, the sentence says that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bertology.results.claims import Verdict
    from bertology.results.measures import Measure
    from bertology.results.result import Result
    from bertology.stats import Estimate

    Bools = NDArray[np.bool_]

RELATIONS = {
    "verb-subject": ("verb", "subject"),
    "verb-object": ("verb", "object"),
}
"""Relations that are looked for, and what their links lead from and to."""
_SHOWN = 5  # heads or layers that are named, the strongest first


def preferred(differences: Sequence[float]) -> str:
    """In how many minimal pairs the right sentence is the likelier one."""
    from scipy.stats import binomtest

    n, right = len(differences), sum(d > 0 for d in differences)
    low, high = binomtest(right, n).proportion_ci(0.95)
    return (
        f"Of {n} pairs that differ in one such verb, the right one is likelier in "
        f"{100 * right / n:.0f} % (95 % interval {100 * low:.0f} to {100 * high:.0f} %; a guess "
        "gives 50 %)."
    )


def links_told(result: Result) -> Iterator[str]:
    """For each relation the head that surely follows it best, beside the best fixed offset."""
    measures = {m.name: m for m in result.measures()}
    table = result.tables["links"]
    for relation, (source, target) in RELATIONS.items():
        rows = table[(table["relation"] == relation) & (table["direction"] == "forward")]
        measure = measures.get(f"{relation}-excess")
        if measure is None or measure.sure is None or rows["share"].isna().all():
            yield f"{source} → {target}: no such words in these sentences."
            continue
        layer, head = _largest(measure, measure.sure)
        if layer is None:
            yield f"{source} → {target}: no head is surely better than a fixed offset."
            continue
        best = rows[(rows["layer"] == layer) & (rows["head"] == head)].iloc[0]
        yield (
            f"{source} → {target}: from the {source}, head {layer}.{head} attends most to its "
            f"{target} in {100 * best['share']:.0f} % of links; looking a fixed number of words "
            f"away finds {100 * (best['share'] - best['excess']):.0f} %. Surely better, by "
            f"{100 * best['excess_low']:.0f} to {100 * best['excess_high']:.0f} points."
        )


def _largest(measure: Measure, among: Bools) -> tuple[int | None, int | None]:
    """Layer and head of the largest value among some; None where there are none."""
    import numpy as np

    if not among.any():
        return None, None
    best = np.where(among, np.nan_to_num(measure.values, nan=-np.inf), -np.inf)
    layer, head = np.unravel_index(int(best.argmax()), best.shape)
    return int(layer), int(head)


def sink_told(result: Result) -> Iterator[str]:
    """Whether layers give most of their attention to [SEP], and which head gives most."""
    from bertology.stats import Estimate
    from bertology.studies.designs.class_weights import SINK

    layers, heads = result.tables["layers"], result.tables["heads"]
    sep = layers[layers["part"] == "sep"].sort_values("layer")
    level, n = float(result.arrays.attrs["level"]), int(result.arrays.attrs["examples"])
    together = 1 - (1 - level) / len(sep)  # intervals that hold for all layers at once
    shares = [
        Estimate(share, low, high, n, level).at_level(together)
        for share, low, high in zip(sep["share"], sep["low"], sep["high"], strict=True)
    ]
    most = max(range(len(shares)), key=lambda layer: shares[layer].value)
    sinks = [layer for layer, share in enumerate(shares) if share.low > SINK]
    strongest = f"Layer {most} gives it most: {_percent(shares[most])}."
    if sinks:
        yield (
            f"[SEP] is a sink: {_listed('layer', sinks)} surely give{'s' * (len(sinks) == 1)} it "
            f"more than {100 * SINK:.0f} % of all attention. {strongest}"
        )
    else:
        yield f"[SEP] is no sink here: no layer surely gives it {100 * SINK:.0f} %. {strongest}"
    rows = heads[heads["class"] == "sep"]
    best = rows.iloc[int(rows["weight"].argmax())]
    low, high = (float(best[f"weight_simultaneous_{end}"]) for end in ("low", "high"))
    weight = Estimate(float(best["weight"]), low, high, n, level)
    yield f"Of single heads, {best['layer']}.{best['head']} gives it most: {_percent(weight)}."


def _percent(share: Estimate) -> str:
    """`51 % (50 to 52 %)`."""
    return f"{100 * share.value:.0f} % ({100 * share.low:.0f} to {100 * share.high:.0f} %)"


def lost_told(result: Result, one: str) -> Iterator[str]:
    """What the task surely loses without each head, or each layer; `one` says which."""
    measures = {m.name: m for m in result.measures()}
    prefix = "" if one == "head" else "layer-"
    metric = str(result.arrays.attrs["metric"])
    yield _changes(measures[f"{prefix}ablation-effect"], one, f"the {metric}", " points")
    changed = "how probable right answers are (pairs that get worse less pairs that get better)"
    yield _changes(measures[f"{prefix}ablation-loss"], one, changed, " %")


def _changes(measure: Measure, one: str, of: str, unit: str) -> str:
    """How many heads or layers surely change something, and the strongest of them."""
    import numpy as np

    from bertology.results.number_text import interval_text

    sure, low, high = measure.sure, measure.low, measure.high
    if sure is None or low is None or high is None:
        return f"Whether a {one} changes {of} was not tested."
    sure = sure & np.isfinite(measure.values)
    count = int(sure.sum())
    if not count:
        return f"None of the {measure.values.size} {one}s surely changes {of}."
    begin = f"{count} of {measure.values.size} {one}s surely change{'s' * (count == 1)} {of}"
    order = np.argsort(-np.where(sure, np.abs(measure.values), -1), axis=None)[: min(count, _SHOWN)]
    told = []
    for flat in order:
        at = np.unravel_index(int(flat), measure.values.shape)
        value, least, most = (float(g[at]) for g in (measure.values, low, high))
        name = ".".join(str(int(i)) for i in at)
        told.append(f"{one} {name} {value:+.0f}{unit} {interval_text(least, most, '+.0f')}")
    few = "" if count <= _SHOWN else "the strongest are "
    return f"{begin}: {few}{'; '.join(told)}."


def sets_told(result: Result, sets: Mapping[str, str]) -> Iterator[str]:
    """What disabling several heads at once does; `sets`: the words for each set by its name."""
    from bertology.results.number_text import interval_text

    table = result.tables["sets"].set_index("set").to_dict("index")
    metric = result.arrays.attrs["metric"]
    for name, words in sets.items():
        row = table[name]
        low, high = (100 * row[f"simultaneous_{end}"] for end in ("low", "high"))
        surely = "surely changes" if row["sure"] else "does not surely change"
        yield (
            f"Disabling {words} {surely} the {metric}: {100 * row['difference']:+.0f} points "
            f"{interval_text(low, high, '+.0f')}, to {100 * row['score']:.0f} %."
        )


def decided(results: Sequence[Result]) -> tuple[list[Verdict], int]:
    """Verdicts that say something, and how many claims were judged without an answer."""
    from bertology.results.claims import Outcome

    verdicts = [v for result in results for v in result.verdicts()]
    order = (Outcome.HOLDS, Outcome.FAILS, Outcome.NEGLIGIBLE)
    found = [v for outcome in order for v in verdicts if v.outcome is outcome]
    return found, sum(v.outcome is Outcome.INCONCLUSIVE for v in verdicts)


def _listed(one: str, numbers: Sequence[int]) -> str:
    """`layer 3`, `layers 3 and 4`, `layers 3, 4 and 7`."""
    words = [str(n) for n in numbers]
    if len(words) == 1:
        return f"{one} {words[0]}"
    return f"{one}s {', '.join(words[:-1])} and {words[-1]}"
