"""What the demo says is what its results show: sure where a test says so, and not otherwise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bertology.cli.demo import (
    decided,
    links_told,
    lost_told,
    preferred,
    sets_told,
    sink_told,
)
from bertology.results.measures import Measure
from bertology.results.rules import Outcome

LAYERS, HEADS = 3, 2


def grid(**at: float) -> Any:
    """Zeros but for some heads: h1_0 is head 0 of layer 1."""
    found = np.zeros((LAYERS, HEADS))
    for name, value in at.items():
        layer, head = name.removeprefix("h").split("_")
        found[int(layer), int(head)] = value
    return found


def followed(sure: bool) -> Any:
    excess = grid(h1_0=0.3, h2_1=0.4)
    rows = [
        {
            "relation": relation, "direction": "forward", "layer": i, "head": h,
            "share": 0.5 + excess[i, h], "excess": excess[i, h], "excess_low": excess[i, h] - 0.1,
            "excess_high": excess[i, h] + 0.1,
        }
        for relation in ("verb-object", "verb-subject") for i in range(LAYERS) for h in range(HEADS)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    table.loc[table["relation"] == "verb-subject", "share"] = np.nan
    tested = grid(h1_0=1).astype(bool) if sure else np.zeros((LAYERS, HEADS), bool)
    measures = [
        Measure(f"{r}-excess", "t", 100 * excess, sure=tested)
        for r in ("verb-object", "verb-subject")
    ]
    return SimpleNamespace(tables={"links": table}, measures=lambda: measures)


def test_a_head_is_named_only_where_it_is_surely_better_than_an_offset() -> None:
    subject, found = links_told(followed(sure=True))
    assert subject == "verb → subject: no such words in these sentences."
    # Head 2.1 has the larger excess, but no test speaks for it.
    assert found.startswith("verb → object: from the verb, head 1.0 attends most to its object")
    assert "in 80 % of links" in found
    assert "finds 50 %. Surely better, by 20 to 40 points." in found
    _, found = links_told(followed(sure=False))
    assert found == "verb → object: no head is surely better than a fixed offset."


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        (
            (0.2, 0.6, 0.5),
            "[SEP] is a sink: layers 1 and 2 surely give it more than 40 % of all attention. "
            "Layer 1 gives it most: 60 % (54 to 66 %).",
        ),
        (
            (0.2, 0.6, 0.46),
            "[SEP] is a sink: layer 1 surely gives it more than 40 % of all attention. "
            "Layer 1 gives it most: 60 % (54 to 66 %).",
        ),
        (
            (0.2, 0.1, 0.42),
            "[SEP] is no sink here: no layer surely gives it 40 %. "
            "Layer 2 gives it most: 42 % (36 to 48 %).",
        ),
    ],
)
def test_a_sink_is_called_so_only_where_it_is_one(shares: tuple[float, ...], told: str) -> None:
    layers = pd.DataFrame(
        [
            {"part": "sep", "layer": i, "share": s, "low": s - 0.05, "high": s + 0.05}
            for i, s in enumerate(shares)
        ]
    )
    heads = pd.DataFrame(
        [
            {
                "class": kind, "layer": i, "head": 1, "weight": s + (kind == "cls"),
                "weight_simultaneous_low": s - 0.1, "weight_simultaneous_high": s + 0.1,
            }
            for kind in ("cls", "sep") for i, s in enumerate(shares)
        ]
    )  # fmt: skip
    facts = {"level": 0.95, "examples": 100}
    result: Any = SimpleNamespace(
        tables={"layers": layers, "heads": heads}, arrays=SimpleNamespace(attrs=facts)
    )
    sink, strongest = sink_told(result)
    assert sink == told
    most = int(np.argmax(shares))
    assert strongest.startswith(f"Of single heads, {most}.1 gives it most: {100 * max(shares):.0f}")


def ablated(sure: Any) -> Any:
    values = grid(h0_1=-12.0, h2_0=-30.0, h1_1=5.0)
    effect = Measure("ablation-effect", "t", values, low=values - 4, high=values + 4, sure=sure)
    loss = Measure("ablation-loss", "t", -values, low=-values - 4, high=-values + 4, sure=sure)
    return SimpleNamespace(
        measures=lambda: [effect, loss], arrays=SimpleNamespace(attrs={"metric": "accuracy"})
    )


def test_losses_are_told_where_they_are_sure_the_largest_first() -> None:
    told, worse = lost_told(ablated(grid(h0_1=1, h2_0=1).astype(bool)), "head")
    assert told == (
        "2 of 6 heads surely change the accuracy: head 2.0 -30 points [-34, -26]; "
        "head 0.1 -12 points [-16, -8]."
    )
    assert worse == (
        "2 of 6 heads surely change how probable right answers are (pairs that get worse less "
        "pairs that get better): head 2.0 +30 % [+26, +34]; head 0.1 +12 % [+8, +16]."
    )
    told, _ = lost_told(ablated(np.zeros((LAYERS, HEADS), bool)), "head")
    assert told == "None of the 6 heads surely changes the accuracy."


def test_sets_are_sure_or_not() -> None:
    rows = pd.DataFrame(
        {
            "set": ["0.1", "2.0"], "difference": [-0.2, 0.01], "score": [0.7, 0.91],
            "simultaneous_low": [-0.3, -0.02], "simultaneous_high": [-0.1, 0.04],
            "sure": [True, False],
        }
    )  # fmt: skip
    result: Any = SimpleNamespace(
        tables={"sets": rows}, arrays=SimpleNamespace(attrs={"metric": "accuracy"})
    )
    assert list(sets_told(result, {"0.1": "A", "2.0": "B"})) == [
        "Disabling A surely changes the accuracy: -20 points [-30, -10], to 70 %.",
        "Disabling B does not surely change the accuracy: +1 points [-2, +4], to 91 %.",
    ]


def test_pairs_come_with_an_interval_and_chance() -> None:
    told = preferred([1.0] * 90 + [-1.0] * 10)
    assert "Of 100 pairs" in told
    assert "in 90 % (95 % interval 82 to 95 %; a guess gives 50 %)" in told


def test_claims_without_an_answer_are_counted_and_not_shown() -> None:
    def verdicts(*outcomes: Outcome) -> Any:
        return SimpleNamespace(verdicts=lambda: [SimpleNamespace(outcome=o) for o in outcomes])

    found, undecided = decided(
        [
            verdicts(Outcome.FAILS, Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE),
            verdicts(Outcome.HOLDS, Outcome.NEGLIGIBLE, Outcome.INCONCLUSIVE),
        ]
    )
    assert [v.outcome for v in found] == [Outcome.HOLDS, Outcome.FAILS, Outcome.NEGLIGIBLE]
    assert undecided == 2
