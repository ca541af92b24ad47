"""Groups of heads against the rest: false verdicts when no head does anything, and power.

Every example moves the heads of a layer together, as disabling them does in real models; under the
null the sign of each example is drawn at random. `heads only` exchanges heads as if they did not
depend on each other; `both` allows for other examples too.
Usage: python benchmarks/group_contrasts.py [--repeats 400]
"""

from __future__ import annotations

import argparse

import numpy as np
from machine import describe

from bertology.stats.contrasts import group_contrast

LAYERS, HEADS = 12, 12
LAYER = np.repeat(np.arange(LAYERS), HEADS)


def group_of(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Two heads of one layer, most heads of the last layers, or any heads."""
    if kind == "2 heads of a layer":
        return (np.arange(LAYERS * HEADS) // 2) == 60
    if kind == "40 heads, mostly late":
        weights = np.exp(LAYER / 3)
        chosen = rng.choice(LAYERS * HEADS, 40, replace=False, p=weights / weights.sum())
    else:
        chosen = rng.choice(LAYERS * HEADS, 40, replace=False)
    return np.isin(np.arange(LAYERS * HEADS), chosen)


def influences(rng: np.random.Generator, n: int, flips: float) -> np.ndarray:
    """(heads, n) flips of answers: half of them are shared by all heads of a layer."""
    shared = rng.random((LAYERS, n)) < flips / 2
    own = rng.random((LAYERS * HEADS, n)) < flips / 2
    return (shared[LAYER] | own) * rng.choice([-1.0, 1.0], size=n)


def rates(kind: str, n: int, flips: float, effect: float, repeats: int) -> tuple[float, float]:
    """Shares of repeats with a verdict: both sources of error, heads only."""
    rng, found = np.random.default_rng(1), np.zeros(2)
    for repeat in range(repeats):
        group, psi = group_of(kind, rng), influences(rng, n, flips)
        lost = rng.random((LAYERS * HEADS, n)) < effect
        psi = np.where(lost & group[:, None], -1.0, psi)
        covariance = np.cov(psi) / n
        for at, used in enumerate((covariance, 0 * covariance)):
            contrast, _ = group_contrast(psi.mean(1), group, used, n=n, resamples=500, seed=repeat)
            found[at] += contrast.excludes(0)
    both, heads = found / repeats
    return float(both), float(heads)


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--repeats", type=int, default=400)
    given = arguments.parse_args()
    print(describe())
    print("| group | examples | flips of a head | true loss | repeats | both | heads only |")
    print("|---|---|---|---|---|---|---|")
    for kind in ("2 heads of a layer", "40 heads, mostly late", "40 heads, anywhere"):
        for n, flips, effect in ((100, 0.03, 0), (400, 0.03, 0), (400, 0.1, 0), (400, 0.03, 0.02)):
            both, heads = rates(kind, n, flips, effect, given.repeats)
            print(f"| {kind} | {n} | {flips} | {effect} | {given.repeats} | {both:.3f} | "
                  f"{heads:.3f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
