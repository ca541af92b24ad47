"""How often does the interval of a difference of shares within layers miss the truth?

    python benchmarks/shares_within_layers.py

Worlds of 12 layers with 12 heads, whose shares differ from layer to layer. Some heads are marked at
random; their shares are higher by a known difference. `super-survivors` judges its claims on this
interval. A claim "below 20 points" is falsely said to hold where the interval lies below a truth of
20, and falsely said to fail where it lies above.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bertology.stats.recurrence import share_difference_within

WORLDS, LAYER = 2000, np.repeat(np.arange(12), 12)
KINDS = ("yes or no", "mixed shares", "mostly 0 or 1")


def shares(kind: str, means: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """A share for each head; "mostly 0 or 1" pulls means together by 19/21."""
    if kind == "yes or no":
        return (rng.random(means.size) < means).astype(float)
    if kind == "mixed shares":
        return rng.beta(3 * means, 3 * (1 - means))
    high = rng.random(means.size) < means
    return np.where(high, rng.beta(20, 1, means.size), rng.beta(1, 20, means.size))


def missed(kind: str, marked: int, truth: float) -> tuple[float, float]:
    """Shares of worlds in which the interval lies below, and above, the true difference."""
    rng, told = np.random.default_rng(1), truth * (19 / 21 if kind == KINDS[2] else 1)
    found = []
    for _ in range(WORLDS):
        first = np.zeros(LAYER.size)
        first[rng.permutation(LAYER.size)[:marked]] = 1
        means = np.linspace(0.1, 0.5, 12)[LAYER] + truth * first
        one = share_difference_within(shares(kind, means, rng), first, LAYER)
        if one is not None:
            found.append((one.high < told, one.low > told))
    below, above = np.mean(found, axis=0)
    return float(below), float(above)


def main() -> None:
    """Print a row for each kind of share and each number of marked heads."""
    print("| shares | heads marked | below 20 points | above 20 points | below 0 | above 0 |")
    print("|---|---|---|---|---|---|")
    for kind in KINDS:
        for marked in (6, 12, 30, 70):
            ends = [f"{100 * x:.1f} %" for truth in (0.2, 0.0) for x in missed(kind, marked, truth)]
            print(f"| {kind} | {marked} | {' | '.join(ends)} |", flush=True)


if __name__ == "__main__":
    main()
