"""How often intervals of means over a few words miss the truth, and how wide they are.

Scores of words as they come: near 1 with a tail below, near 0 with a few far above, words that all
are told, or that are told wholly or not at all. `hall` is `stats.skewed_means`; `student` lacks
its correction; `before` are the bounds that `word-senses` had until its version 2: of one mean
(`least_means`, behind its claims), and of one of 13 layers in 5 tables (`partial_means`).

    python benchmarks/skewed_means.py [--repeats 4000]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from machine import describe

from bertology.stats import mean_intervals
from bertology.stats.least_means import least_means
from bertology.stats.partial_means import partial_means
from bertology.stats.skewed_means import skewed_means

LAYERS, TABLES = 13, 5
WITHIN = (-1.0, 1.0)
Rng = np.random.Generator
Shape = tuple[Callable[[Rng, tuple[int, ...]], np.ndarray], float]


def lifted(rng: Rng, size: tuple[int, ...]) -> np.ndarray:
    high = rng.beta(6, 1.5, size)
    return np.where(rng.random(size) < 0.7, rng.normal(0.02, 0.08, size), high)


def half_ones(rng: Rng, size: tuple[int, ...]) -> np.ndarray:
    return np.where(rng.random(size) < 0.5, 1.0, rng.beta(4, 1.5, size))


def rare(rng: Rng, size: tuple[int, ...]) -> np.ndarray:
    return np.where(rng.random(size) < 0.1, rng.beta(3, 3, size), rng.normal(0, 0.05, size))


SHAPES: dict[str, Shape] = {
    "normal": (lambda rng, size: rng.normal(0.3, 0.2, size), 0.3),
    "near 1, tail below (Beta 8, 1)": (lambda rng, size: rng.beta(8, 1, size), 8 / 9),
    "tail above (Beta 1, 4)": (lambda rng, size: rng.beta(1, 4, size), 1 / 5),
    "all or nothing (Beta ½, ½)": (lambda rng, size: rng.beta(0.5, 0.5, size), 0.5),
    "70 % about 0, 30 % about 0.8": (lifted, 0.7 * 0.02 + 0.3 * 0.8),
    "half of them exactly 1": (half_ones, 0.5 + 0.5 * 4 / 5.5),
    "10 % about 0.5, the rest about 0": (rare, 0.05),
}


def told(low: np.ndarray, high: np.ndarray, truth: float) -> str:
    """Misses in per cent, below and above the truth, and the median width."""
    below, above = 100 * (high < truth).mean(), 100 * (low > truth).mean()
    return f"{below + above:.1f} ({below:.1f} + {above:.1f}), {np.median(high - low):.2f}"


def row(shape: str, n: int, repeats: int) -> str:
    draw, truth = SHAPES[shape]
    values = draw(np.random.default_rng(n), (n, repeats))
    cells = [told(*skewed_means(values, within=WITHIN)[1:], truth)]
    cells.append(told(*mean_intervals(values)[1:], truth))
    # Each mean by itself has the bounds that a single comparison of a single head has.
    alone = [least_means([values.T[at : at + 1]]) for at in range(min(repeats, 400))]
    lows, highs = (np.array([getattr(x, side)[0] for x in alone]) for side in ("low", "high"))
    cells.append(told(lows, highs, truth))
    tabled = []
    for at in range(0, min(repeats, 520), LAYERS):
        some = values.T[at : at + LAYERS]
        found = partial_means(some, within=WITHIN, level=1 - 0.05 / TABLES, resamples=200)
        tabled.append((found.simultaneous_low, found.simultaneous_high))
    cells.append(told(*(np.concatenate(side) for side in zip(*tabled, strict=True)), truth))
    return f"| {shape} | {n} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=4000)
    repeats = parser.parse_args().repeats
    print(describe())
    print("| scores of words | words | hall | student | before: claims | before: tables |")
    print("|---|---|---|---|---|---|")
    for shape in SHAPES:
        for n in (5, 10, 20, 50):
            print(row(shape, n, repeats), flush=True)


if __name__ == "__main__":
    main()
