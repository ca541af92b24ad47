"""How often "emerges between step a and b" is said of a measure that only wanders, and how well.

Null: values around one level, with sampling error (which the intervals know) and wandering from
step to step (which they do not). Power: a rise by a given size at a known step, or spread evenly
over the logarithm of the steps. `plain` leaves out the test against wandering.
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
    "ramp": lambda x: x,
}


def told(curve: str, steps: int, rise: float, wander: float, repeats: int) -> tuple[float, ...]:
    """Shares of repeats: said, said without the test of wandering, true crossing missed."""
    rng, found = np.random.default_rng(0), np.zeros(3)
    at = np.concatenate([[0], np.geomspace(100, 1e5, steps - 1)]).astype(int)
    place = np.linspace(0, 1, steps)
    for repeat in range(repeats):
        truth = rise * CURVES[curve](place) + rng.normal(0, wander, steps)
        seen = truth + rng.normal(0, ERROR, steps)
        values = [Estimate(v, v - 1.984 * ERROR, v + 1.984 * ERROR, 100) for v in seen]
        one = emergence(at.tolist(), values, resamples=300, seed=repeat)
        found += (one.at is not None, one.high[0] < 0 < one.low[-1], 0)
        if one.at is not None and rise:
            beyond = truth - (truth[0] + truth[-1]) / 2 > 0
            k = int(np.flatnonzero(~beyond)[-1])
            found[2] += not (one.at.low <= at[k] and at[min(k + 1, steps - 1)] <= one.at.high)
    return tuple(found / repeats)


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--repeats", type=int, default=1000)
    given = arguments.parse_args()
    print(describe())
    print("| curve | steps | rise | wandering | said | without the test | crossing missed |")
    print("|---|---|---|---|---|---|---|")
    for steps in (6, 8):
        for curve, rise, wander in (
            ("level", 0.0, 0.0), ("level", 0.0, 0.01), ("level", 0.0, 0.05), ("jump", 0.1, 0.01),
            ("jump", 0.2, 0.01), ("late jump", 0.2, 0.01), ("ramp", 0.2, 0.01),
        ):  # fmt: skip
            said, plain, missed = told(curve, steps, rise, wander, given.repeats)
            print(f"| {curve} | {steps} | {rise} | {wander} | {said:.3f} | {plain:.3f} | "
                  f"{missed:.3f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
