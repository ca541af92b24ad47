"""How often a claim about the best of 144 heads is false when no head does anything, by simulation.

The same simulation as tests/unit/test_stats_errors.py, with more repeats, beside max-T alone.
Usage: python benchmarks/claim_error.py [--repeats 400]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from machine import describe
from scipy.special import log_ndtr

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit"))
import test_stats_errors as simulation

from bertology.stats.intervals import distinct, evidence_against_zero
from bertology.stats.multiplicity import max_statistics

ROWS = [
    ("accuracy", "strong", ("fewer", "more", "swap", "negatives")),
    ("f1", "strong", ("fewer", "more", "swap", "negatives")),
    ("f1", "weak", ("fewer",)),
    ("f1", "weak", ("more",)),
    ("matthews", "weak", ("fewer", "more")),
]


def rates(name: str, start: str, kinds: tuple[str, ...], repeats: int) -> tuple[float, float]:
    """Shares of null sweeps with a false claim: our bounds, and max-T alone."""
    rng, cells = np.random.default_rng(1), simulation.CELLS[start]
    flips = np.array(
        [
            simulation.null_flips(name, cells, kinds[h % len(kinds)], (0.01, 0.02, 0.03)[h % 3])
            for h in range(simulation.HEADS)
        ]
    )
    ours = plain = 0
    for repeat in range(repeats):
        psi, reach = simulation.null_influences(rng, name, cells, flips)
        null = max_statistics([psi], resamples=200, seed=repeat)
        critical = np.quantile(null.max(axis=1), 0.95)
        evidence = evidence_against_zero(*distinct(psi), reach=reach)
        ours += bool((evidence > -log_ndtr(-critical)).any())
        spread = psi.std(axis=1)
        t = np.abs(psi.mean(axis=1)) * np.sqrt(psi.shape[1]) / np.where(spread > 0, spread, np.inf)
        plain += bool((t > critical).any())
    return ours / repeats, plain / repeats


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--repeats", type=int, default=400)
    given = arguments.parse_args()
    print(describe())
    print("| score | baseline | flips | null sweeps | allowed | false claims | max-T alone |")
    print("|---|---|---|---|---|---|---|")
    for name, start, kinds in ROWS:
        ours, plain = rates(name, start, kinds, given.repeats)
        print(f"| {name} | {start} | {', '.join(kinds)} | {given.repeats} | 0.05 | {ours:.4f} | "
              f"{plain:.4f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
