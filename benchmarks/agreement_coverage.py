"""How often the intervals of Krippendorff's alpha miss the truth, by simulation.

People see the true class and err with a small chance, each on their own. `bootstrap` is what the
interval was before; `guarded` is widened by Wilson's interval for the share of disagreement.
Usage: python benchmarks/agreement_coverage.py [--repeats 400]
"""

from __future__ import annotations

import argparse

import numpy as np
from machine import describe

from bertology.stats.agreement import _alpha, krippendorffs_alpha
from bertology.stats.intervals import percentile_interval

SHARES = {"even": (1 / 3, 1 / 3, 1 / 3), "uneven": (0.8, 0.15, 0.05)}


def true_alpha(shares: np.ndarray, error: float) -> float:
    """With infinitely many things: errors go to the other two classes alike."""
    said = np.full((3, 3), error / 2)
    np.fill_diagonal(said, 1 - error)
    apart = 1 - float((shares @ said**2).sum())
    given = shares @ said
    return 1 - apart / (1 - float(given @ given))


def error_for(shares: np.ndarray, alpha: float) -> float:
    """The chance to err that makes alpha what is asked for."""
    low, high = 0.0, 0.5
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if true_alpha(shares, middle) > alpha else (low, middle)
    return low


def misses(classes: str, alpha: float, n: int, people: int, repeats: int) -> tuple[float, float]:
    """Shares of missed truths: bootstrap alone, guarded."""
    rng, shares = np.random.default_rng(0), np.array(SHARES[classes])
    error, missed = error_for(shares, alpha), np.zeros(2)
    for repeat in range(repeats):
        true = rng.choice(3, size=n, p=shares)[:, None]
        wrong = rng.random((n, people)) < error
        said = np.where(wrong, (true + rng.integers(1, 3, (n, people))) % 3, true)
        found = krippendorffs_alpha(
            [list(map(str, row)) for row in said], resamples=400, seed=repeat
        )
        if found is None:  # one class only: nothing is claimed
            continue
        missed[1] += found.excludes(alpha)
        counts = np.stack([(said == k).sum(1) for k in range(3)], axis=1).astype(float)
        drawn = _alpha(counts[np.random.default_rng(repeat).integers(n, size=(400, n))])
        low, high = percentile_interval(drawn[~np.isnan(drawn)])
        missed[0] += not low <= alpha <= high
    return float(missed[0] / repeats), float(missed[1] / repeats)


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--repeats", type=int, default=400)
    given = arguments.parse_args()
    print(describe())
    print("| classes | alpha | things | people | allowed | bootstrap misses | guarded misses |")
    print("|---|---|---|---|---|---|---|")
    for classes in SHARES:
        for alpha in (0.97, 0.8, 0.5):
            for n, people in ((10, 2), (30, 2), (30, 3), (100, 2)):
                plain, ours = misses(classes, alpha, n, people, given.repeats)
                print(f"| {classes} | {alpha} | {n} | {people} | 0.05 | {plain:.3f} | "
                      f"{ours:.3f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
