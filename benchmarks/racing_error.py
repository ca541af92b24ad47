"""The error rate that racing promises, against what it makes, by simulation; and what it saves.

156 variants with known effects, most of them none: a wrong decision about any one of them spoils
a race. Usage: python benchmarks/racing_error.py [--races 400]
"""

from __future__ import annotations

import argparse

import numpy as np
from machine import describe

from bertology.racing import simulate_race


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--races", type=int, default=400)
    given = arguments.parse_args()
    rng = np.random.default_rng(0)
    flips = rng.choice([0.0, 0.005, 0.01, 0.02, 0.04], size=156)
    nothing = (flips / 2, flips / 2)
    mixed = (np.where(np.arange(156) % 8 == 0, 0.0, flips / 2),
             np.where(np.arange(156) % 8 == 0, 0.08, flips / 2))  # fmt: skip
    print(describe())
    print("| effects | examples | margin | races | promised | wrong races | evaluations saved |")
    print("|---|---|---|---|---|---|---|")
    for name, (gains, losses) in (("none", nothing), ("one in eight loses 8 points", mixed)):
        for examples, margin in ((400, 0.02), (1000, 0.02), (5000, 0.01)):
            races = given.races if examples < 5000 else given.races // 4
            seen = simulate_race(
                gains, losses, examples=examples, races=races, margin=margin, seed=1
            )
            print(f"| {name} | {examples} | {margin} | {races} | {seen.promised:.2f} | "
                  f"{seen.observed:.4f} | {100 * seen.saved:.0f} % |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
