"""How often "emerges between step a and b" is wrong, and how often chance passes for a change.

Curves: a level; a jump at a known step; a rise spread evenly over the steps, or over three of them;
around each of them values wander (drawn alike at every step) or drift (a random walk), which the
intervals do not know of; they know the sampling error of each value. `said`: a crossing is given.
`wrong`: it is, and the true values of this run (as drawn) cross elsewhere. `beyond chance`: the
change is told from wandering and drift.
Usage: python benchmarks/emergence_error.py [--repeats 1000]
"""

from __future__ import annotations

import argparse

import numpy as np
from machine import describe

from bertology.stats import Estimate
from bertology.stats.emergence import emergence

ERROR = 0.01  # standard error of each value
CURVES = {
    "level": lambda x: np.zeros_like(x),
    "jump": lambda x: (x >= 0.5).astype(float),
    "late jump": lambda x: (x >= 0.99).astype(float),
    "over three": lambda x: np.clip((x - 0.3) / 0.4, 0, 1),
    "even rise": lambda x: x,
}


def told(
    curve: str, steps: int, rise: float, noise: tuple[float, float], repeats: int
) -> tuple[float, ...]:
    """Shares of repeats: said, wrong, beyond chance; `noise` is wandering and drift."""
    rng, found = np.random.default_rng(0), np.zeros(3)
    at = np.concatenate([[0], np.geomspace(100, 1e5, steps - 1)]).astype(int)
    place = np.linspace(0, 1, steps)
    for repeat in range(repeats):
        truth = rise * CURVES[curve](place) + rng.normal(0, noise[0], steps)
        truth += np.cumsum(rng.normal(0, noise[1], steps))
        seen = truth + rng.normal(0, ERROR, steps)
        values = [Estimate(v, v - 1.984 * ERROR, v + 1.984 * ERROR, 100) for v in seen]
        one = emergence(at.tolist(), values, resamples=500, seed=repeat)
        found += (one.at is not None, False, one.at is not None and one.p < 0.05)
        if one.at is not None:
            beyond = (truth - (truth[0] + truth[-1]) / 2) * np.sign(truth[-1] - truth[0]) > 0
            k = int(np.flatnonzero(~beyond)[-1])
            found[1] += not (one.at.low <= at[k] and at[min(k + 1, steps - 1)] <= one.at.high)
    return tuple(found / repeats)


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--repeats", type=int, default=1000)
    given = arguments.parse_args()
    print(describe())
    print("| curve | steps | rise | wandering | drift | said | wrong | beyond chance |")
    print("|---|---|---|---|---|---|---|---|")
    for steps in (6, 8):
        for curve, rise, *noise in (
            ("level", 0.0, 0.0, 0.0), ("level", 0.0, 0.01, 0.0), ("level", 0.0, 0.05, 0.0),
            ("level", 0.0, 0.0, 0.01), ("level", 0.0, 0.0, 0.02), ("level", 0.0, 0.0, 0.05),
            ("level", 0.0, 0.02, 0.02),
            ("jump", 0.1, 0.01, 0.0), ("jump", 0.2, 0.01, 0.0), ("jump", 0.2, 0.0, 0.01),
            ("late jump", 0.2, 0.01, 0.0), ("over three", 0.2, 0.01, 0.0),
            ("even rise", 0.2, 0.01, 0.0), ("even rise", 0.4, 0.01, 0.0),
        ):  # fmt: skip
            rates = told(curve, steps, rise, (noise[0], noise[1]), given.repeats)
            shown = " | ".join(f"{rate:.3f}" for rate in rates)
            print(f"| {curve} | {steps} | {rise} | {noise[0]} | {noise[1]} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
