"""How often intervals over seeds and examples together (`stats/crossed.py`) hold the truth.

Two methods are compared whose seeds spread unequally, on examples that are easy or hard for all
runs; a run is right where a normal number lies below a border, so that the truth is known. Counted
is how often intervals of 95 %, and those at the level of six comparisons (99.2 %), hold it.

    python benchmarks/crossed_coverage.py [--designs 1000] [--once]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit"))
from test_stats_crossed import drawn

SPREADS = ((0.02, 0.02), (0.4, 0.02), (0.02, 0.1), (0.1, 0.1), (0.4, 0.4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=1000)
    parser.add_argument(
        "--once", action="store_true", help="count once what seeds and examples do together"
    )
    asked = parser.parse_args()
    designs = asked.designs
    print("| seeds | examples | spreads of seeds | 95 % holds | 99.2 % holds | width |")
    print("|---|---|---|---|---|---|")
    for seeds in (3, 5, 10):
        for n in (150, 800):
            for spreads in SPREADS:
                rng = np.random.default_rng(seeds * n)
                held, strict, width = 0, 0, 0.0
                for _ in range(designs):
                    found, truth = drawn(rng, seeds, n, spreads, once=asked.once)
                    more = found.at_level(1 - 0.05 / 6)
                    held += found.low <= truth <= found.high
                    strict += more.low <= truth <= more.high
                    width += found.high - found.low
                cells = (held / designs, strict / designs, width / designs)
                told = " | ".join(f"{cell:.3f}" for cell in cells)
                print(f"| {seeds} | {n} | {spreads[0]}, {spreads[1]} | {told} |", flush=True)


if __name__ == "__main__":
    main()
