"""How often bounds of balanced accuracies miss, and how wide they are; beside linearised ones.

    python benchmarks/balanced_bounds.py [REPEATS]

Units (nouns) weigh differently, and each has a share of right answers of its own.
"""

from __future__ import annotations

import sys

import numpy as np

from bertology.stats.balanced import balanced_means, balanced_rows
from bertology.stats.partial_means import partial_means

WORLDS = [(16, 240), (29, 329), (107, 300)]  # units, pairs
TRUTHS = [(0.5, 1.0), (0.7, 2.0), (0.88, 3.0), (0.97, 8.0)]  # accuracy, evenness over units


def main(repeats: int) -> None:
    """One line for each world."""
    rng = np.random.default_rng(0)
    print("units pairs truth | missed, width: linearised | missed, width: ours")
    for units, pairs in WORLDS:
        often = 1 / np.arange(5, 5 + units)
        for truth, even in TRUTHS:
            found = np.zeros((2, 2))
            for _ in range(repeats):
                at = rng.choice(units, size=pairs, p=often / often.sum())
                shares = rng.beta(truth * even, (1 - truth) * even, size=units)
                right = (rng.random(pairs) < shares[at]).astype(float)
                weights = rng.choice([1.0, 0.6], size=pairs)
                of = balanced_rows(right[None], weights, at.astype(str).tolist())
                ends = (1 - of.reach, of.reach)
                old = partial_means(of.rows, within=(0, 1), support=ends, resamples=100)
                new = balanced_means(of, resamples=100)
                for row, one in enumerate((old, new)):
                    low, high = one.alone_low[0], one.alone_high[0]
                    found[row] += not low <= truth <= high, high - low
            (a, b), (c, d) = found / repeats
            print(f"{units:5} {pairs:5} {truth:5} | {a:.3f} {b:.3f} | {c:.3f} {d:.3f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
