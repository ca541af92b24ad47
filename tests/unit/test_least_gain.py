"""The smallest gain over baselines, also where no sentence of the sample differs from one."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.studies.designs.probe_scores import least_gain


@pytest.mark.parametrize(("n", "reach"), [(24, 0.167), (2000, 0.0022)])
def test_sentences_that_all_agree_say_no_more_than_their_number(n: int, reach: float) -> None:
    """24 sentences with full marks everywhere had the interval [0, 0]: surely no gain."""
    counts = np.full(n, 7)
    found = least_gain([np.zeros(n), np.zeros(n)], counts, level=0.95)
    assert (found.value, found.n) == (0, n)
    assert found.high == pytest.approx(reach, rel=0.02)
    assert found.low == -found.high


def test_the_baseline_that_ties_decides_beside_those_that_are_beaten() -> None:
    rng, n = np.random.default_rng(0), 200
    beaten, ties = rng.integers(0, 3, n).astype(float), np.zeros(n)
    both = least_gain([beaten, ties], np.full(n, 4), level=0.95)
    assert both.value == 0
    assert -0.03 < both.low < 0 < both.high < 0.03
    alone = least_gain([beaten], np.full(n, 4), level=0.95)
    assert alone.low > 0.2
