"""How much goes: other examples might have decided otherwise, and intervals know it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bertology.metrics import find_metric
from bertology.stats import repeated
from bertology.stats.deciding import Deciding, removed_share

GONE = np.arange(6) / 10
LABELS = (np.arange(200) % 2).astype(float)


def run(shares: list[float], kept: int, *, turn: int = 0) -> Deciding:
    """Answers of which these shares are right, the first ones of a turned order."""
    place = (np.arange(200) + turn) % 200
    said = [np.where(place < share * 200, LABELS, 1 - LABELS) for share in shares]
    return Deciding(np.stack(said), GONE[: len(said)], kept)


def found(runs: list[Deciding], **more: float) -> tuple[float, float, float]:
    how = {"keep": 0.9, "constant": 0.0, "grain": 0.1} | more
    estimate = removed_share(runs, LABELS, find_metric("accuracy"), **how)  # type: ignore[arg-type]
    return estimate.value, estimate.low, estimate.high


def test_a_clear_fall_leaves_the_interval_of_seeds() -> None:
    runs = [run([0.9, 0.9, 0.9, 0.6, 0.6, 0.6], 3) for _ in range(5)]
    half = 2.776 * 0.1 / math.sqrt(12 * 5)
    assert found(runs) == pytest.approx((0.2, 0.2 - half, 0.2 + half), abs=1e-4)
    assert all(math.isnan(x) for x in found(runs, grain=0.0)[1:])  # seeds tell no spread
    assert all(math.isnan(x) for x in found(runs[:1])[1:])  # one seed has no interval


def test_a_score_at_the_border_might_have_been_decided_otherwise() -> None:
    """0.82 is just kept and 0.79 just not; with 200 examples neither is sure."""
    runs = [run([0.9, 0.9, 0.82, 0.79, 0.6, 0.6], 3, turn=k) for k in range(5)]
    value, low, high = found(runs)
    seeds = repeated([0.2] * 5, grain=0.1)
    assert value == pytest.approx(0.2)
    assert low < seeds.low - 0.03
    assert high > seeds.high + 0.02


def test_what_was_not_tried_may_be_anything() -> None:
    """The last step that was tried fell by a hair: some draws would have gone on from there."""
    runs = [run([0.9, 0.9, 0.9, 0.8], 3, turn=k) for k in range(5)]
    assert found(runs)[2] > 0.6


def test_a_constant_answer_is_a_floor_in_each_draw() -> None:
    """Nine of ten labels are 1: 90 % of the score is less than a constant answer has."""
    labels = (np.arange(200) >= 20).astype(float)
    right = [1.0, 0.96, 0.92, 0.9]
    said = [np.where(np.arange(200) >= (1 - s) * 200, labels, 1 - labels) for s in right]
    runs = [Deciding(np.stack(said), GONE[:4], 2)] * 3
    how = {"keep": 0.9, "constant": 1.0, "grain": 0.1}
    estimate = removed_share(runs, labels, find_metric("accuracy"), **how)  # type: ignore[arg-type]
    assert estimate.value == pytest.approx(0.1)
    assert estimate.low < 0.1 < estimate.high < 0.3


def test_a_run_of_which_no_step_was_tried_leaves_open_how_far_it_had_gone() -> None:
    """A model that did not learn is not pruned; the others have an interval all the same."""
    runs = [run([0.9, 0.9, 0.6, 0.6], 2) for _ in range(4)] + [run([0.5], 1)]
    value, low, high = found(runs)
    assert value == pytest.approx(0.08)
    assert 0 <= low < value
    assert high > 0.2
