"""How often intervals over seeds and examples together (`stats/crossed.py`) hold the truth.

Two methods are compared whose seeds spread unequally, on examples that are easy or hard for all
runs; a run is right where a normal number lies below a border, so that the truth is known. Counted
is how often intervals of 95 %, and those at the level of six comparisons (99.2 %), hold it. With
`--ratios`, what a row keeps of a teacher's score, and of what that has above a constant answer: how
often intervals miss it, in all draws and in those whose teacher surely beats the constant answer,
and how many are without bounds.

    python benchmarks/crossed_coverage.py [--designs 1000] [--once | --ratios]
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit"))
from test_stats_crossed import ACCURACY, both_sides, drawn

from bertology.stats.crossed import crossed_ratio, crossed_score

SPREADS = ((0.02, 0.02), (0.4, 0.02), (0.02, 0.1), (0.1, 0.1), (0.4, 0.4))
# Examples; how often teacher, row and a constant answer are right; the spread of runs; seeds.
RATIOS = (
    (277, 0.57, 0.53, 0.53, 0.015, 10),
    (277, 0.57, 0.55, 0.53, 0.005, 10),
    (277, 0.62, 0.575, 0.53, 0.015, 3),
    (408, 0.72, 0.69, 0.684, 0.005, 10),
    (408, 0.80, 0.78, 0.684, 0.01, 5),
    (872, 0.88, 0.86, 0.51, 0.005, 3),
)


def ratios(designs: int) -> None:
    """What is kept above a constant answer, and of the whole score."""
    print("| examples | teacher | row | constant | spread | seeds | of | truth | misses | "
          "where the teacher learnt | no bounds | width |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for n, teacher, row, constant, luck, seeds in RATIOS:
        for floor in (constant, 0.0):
            truth, rng = (row - floor) / (teacher - floor), np.random.default_rng(seeds * n)
            misses, learnt, widths = list[bool](), list[bool](), list[float]()
            for _ in range(designs):
                own, base = both_sides(rng, (row, teacher), seeds, n, luck)
                found = crossed_ratio(ACCURACY, own, base, floor=floor)
                if not math.isnan(found.value):
                    misses.append(not found.low <= truth <= found.high)
                    learnt.append(crossed_score(ACCURACY, base).low > constant)
                    widths.append(found.high - found.low)
            of_learnt = sum(m for m, known in zip(misses, learnt, strict=True) if known)
            told = (n, teacher, row, constant, luck, seeds, "above it" if floor else "all",
                    f"{truth:.2f}", f"{sum(misses)} of {len(misses)}",
                    f"{of_learnt} of {sum(learnt)}", sum(map(math.isinf, widths)),
                    f"{np.median(widths):.3g}")  # fmt: skip
            print(f"| {' | '.join(map(str, told))} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=1000)
    parser.add_argument(
        "--once", action="store_true", help="count once what seeds and examples do together"
    )
    parser.add_argument("--ratios", action="store_true", help="of ratios of two scores")
    asked = parser.parse_args()
    designs = asked.designs
    if asked.ratios:
        ratios(designs)
        return
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
