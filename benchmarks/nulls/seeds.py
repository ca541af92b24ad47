"""Nulls of seeds and of layers that are set back: made-up runs whose true scores are known."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import made_restored
import made_seeds
from nulls import BORDER, FAILS, HOLDS, Null, judged

_SPREADS = ("seeds-change-scores", "new-weights-contribute", "data-order-contributes")
_EARLY = "poor-runs-are-told-early"
_STOPPED = "stopping-poor-runs-costs-little"
_LOWER, _UPPER = "lower-layers-can-be-restored", "upper-layers-need-fine-tuning-more"


def only_luck(seed: int) -> Mapping[str, str]:
    """All runs are equally good and differ by the luck of the examples; time tells nothing."""
    size = (5, 6, 8)[seed % 3]
    result = made_seeds.made_up((0, 0, 0), seeds=size, orders=5, told=0.0, draw=seed)
    return judged("seed-variance", result)


def leaning_runs(seed: int) -> Mapping[str, str]:
    """Seeds decide which class a run prefers, and so how it does on these examples; no more."""
    result = made_seeds.made_up((0, 0, 0), examples=277, told=0.0, leaning=0.04, draw=seed)
    return judged("seed-variance", result)


def border_of_spreads(seed: int) -> Mapping[str, str]:
    """Weights and order spread scores by a fifth of a point each, runs by half a point in all."""
    rest = sqrt(0.005**2 - 2 * 0.002**2)
    result = made_seeds.made_up((0.002, 0.002, rest), examples=3000, told=0.0, draw=seed)
    return judged("seed-variance", result)


def failing_runs(seed: int) -> Mapping[str, str]:
    """One run in seven fails, whatever its seeds: neither weights nor order contribute."""
    result = made_seeds.made_up((0, 0, 0.003), failing=1 / 7, told=0.0, draw=seed)
    return judged("seed-variance", result)


def blind_stopping(seed: int) -> Mapping[str, str]:
    """Early scores tell nothing, and to stop one of two runs blindly costs half a point.

    The better of two normal scores is 0.564 standard deviations above the mean.
    """
    result = made_seeds.made_up(
        (0, 0, 0.005 / 0.5642), seeds=6, orders=6, examples=4000, told=0.0, draw=seed
    )
    return judged("seed-variance", result)


def any_layers(seed: int) -> Mapping[str, str]:
    """Whatever is set back costs the same five points."""
    result = made_restored.made_up(lambda change: 0.05, seeds=3 + seed % 3, draw=seed)
    return judged("layer-restoring", result)


def just_above(seed: int) -> Mapping[str, str]:
    """The highest third costs half a point more than the lowest, which costs just five."""
    top = made_restored.LAYERS - 1
    result = made_restored.made_up(
        lambda change: 0.05 + 0.005 * (top in change.layers), examples=2000, draw=seed
    )
    return judged("layer-restoring", result)


def nothing_to_lose(seed: int) -> Mapping[str, str]:
    """Models guess, whatever is set back: that nothing is lost says nothing of layers."""
    result = made_restored.made_up(lambda change: 0.0, skill=0.5, seeds=3 + seed % 3, draw=seed)
    return judged("layer-restoring", result)


def little_to_lose(seed: int) -> Mapping[str, str]:
    """Models are better than a constant answer by the margin only, and so cannot lose more."""
    result = made_restored.made_up(lambda change: 0.0, skill=0.55, seeds=3 + seed % 3, draw=seed)
    return judged("layer-restoring", result)


NULLS = (
    Null("seeds change nothing", only_luck, dict.fromkeys((*_SPREADS, _EARLY), HOLDS)),
    Null("seeds change what runs prefer", leaning_runs, dict.fromkeys(_SPREADS, HOLDS)),
    Null("spreads are just the margin", border_of_spreads, dict.fromkeys(_SPREADS, BORDER)),
    Null(
        "runs fail whatever the seed",
        failing_runs,
        dict.fromkeys((*_SPREADS[1:], _EARLY), HOLDS),
    ),
    Null("stopping is blind", blind_stopping, {_STOPPED: HOLDS, _EARLY: HOLDS}),
    Null("models set back had learnt nothing", nothing_to_lose, {_LOWER: HOLDS, _UPPER: HOLDS}),
    Null("models set back had no more than the margin", little_to_lose, {_LOWER: HOLDS}),
    Null("any layers set back lose the same", any_layers, {_LOWER: BORDER, _UPPER: HOLDS}),
    Null(
        "upper layers lose just the margin more",
        just_above,
        {_LOWER: BORDER, _UPPER: FAILS | {"negligible"}},
    ),
)
