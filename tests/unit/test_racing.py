"""Races: what is settled leaves, and wrong decisions stay as rare as promised."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.errors import DataError, ParameterError
from bertology.racing import Decision, Race, simulate_race
from bertology.stats import ConfidenceSequence


def test_a_race_settles_what_is_clear() -> None:
    rng = np.random.default_rng(0)
    chances = [(0.3, 0.0), (0.0, 0.3), (0.0, 0.0), (0.15, 0.15)]  # (gains, losses)
    race = Race(4, margin=0.02)
    for _ in range(20):
        columns = [rng.choice([1, -1, 0], p=[*chances[v], 1 - sum(chances[v])], size=50)
                   for v in np.flatnonzero(race.active)]  # fmt: skip
        race.update(np.stack(columns, axis=1))
    assert race.decisions == [Decision.HELPS, Decision.HURTS, Decision.NEGLIGIBLE, Decision.OPEN]
    assert race.active.tolist() == [False, False, False, True]
    assert race.seen[0] < race.seen[2] < race.seen[3] == 1000
    estimates = race.estimates()
    assert estimates[0].low > 0
    assert estimates[1].high < 0
    assert max(abs(estimates[2].low), estimates[2].high) < 0.02
    assert estimates[3].n == 1000


def test_wrong_decisions_are_rarer_than_promised() -> None:
    gains = np.r_[np.full(20, 0.01), np.full(10, 0.05), np.full(10, 0.0), np.full(5, 0.05)]
    losses = np.r_[np.full(20, 0.01), np.full(10, 0.03), np.full(10, 0.2), np.full(5, 0.05)]
    outcome = simulate_race(gains, losses, examples=1500, block=150, races=20, margin=0.019)
    assert outcome.observed <= outcome.promised + 3 * np.sqrt(0.05 * 0.95 / 20)
    assert outcome.saved > 0.15
    assert outcome.decided["hurts"] > 0.2
    assert sum(outcome.decided.values()) == pytest.approx(1)


def test_a_simulation_repeats_itself() -> None:
    once, again = (simulate_race([0.1], [0.0], examples=200, races=3) for _ in range(2))
    assert once == again


def test_no_margin_calls_nothing_negligible() -> None:
    race = Race(2, margin=0)
    race.update(np.zeros((5000, 2)))
    assert race.decisions == [Decision.OPEN, Decision.OPEN]


def test_a_sequence_starts_with_what_is_possible_and_narrows() -> None:
    sequence = ConfidenceSequence(3, low=-1, high=1)
    assert sequence.interval()[0].tolist() == [-1, -1, -1]
    sequence.update(np.ones((100, 2)), [True, False, True])
    low, high = sequence.interval()
    assert low[1] == -1
    assert low[0] > 0.8
    assert high[0] == pytest.approx(1)
    assert sequence.seen.tolist() == [100, 0, 100]
    sequence.update(np.zeros((0, 3)))
    assert sequence.interval()[0].tolist() == low.tolist()


def test_rounding_only_widens() -> None:
    values = np.random.default_rng(0).uniform(-0.3, 0.4, size=(300, 2))
    fine, coarse = (ConfidenceSequence(2, bins=bins) for bins in (20_000, 50))
    for sequence in (fine, coarse):
        sequence.update(values)
    assert (coarse.interval()[0] < fine.interval()[0]).all()
    assert (coarse.interval()[1] > fine.interval()[1]).all()


@pytest.mark.parametrize(
    ("block", "says"),
    [
        (np.zeros((5, 3)), "each of the 2 active streams"),
        (np.full((5, 2), 1.5), r"must lie in \[-1, 1\]. Got 1.5"),
        (np.full((5, 2), np.nan), "Got nan"),
    ],
)
def test_bad_blocks_are_refused(block: np.ndarray, says: str) -> None:
    with pytest.raises(DataError, match=says):
        Race(2).update(block)


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(ParameterError, match="margin"):
        Race(2, margin=-0.1)
    with pytest.raises(ParameterError, match="variants"):
        Race(0)
    with pytest.raises(ParameterError, match="below 0"):
        Race(2, low=0.0)
    with pytest.raises(ParameterError, match="below high"):
        ConfidenceSequence(2, low=1, high=0)
    with pytest.raises(ParameterError, match="level"):
        ConfidenceSequence(2, level=95)
    with pytest.raises(ParameterError, match="gains"):
        simulate_race([0.1], [0.1, 0.2], examples=10)
