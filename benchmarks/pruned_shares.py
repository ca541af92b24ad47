"""Do intervals of how much pruning removes hold what seeds and deciding examples would give?

A world whose truth is known: seeds have curves of their own, examples are easy or hard for all of
them, and one step after the other the score falls. The truth is the mean over fresh seeds and fresh
examples of the share that is removed. Counted is how often an interval holds it, beside Student's
interval over seeds alone.

    python benchmarks/pruned_shares.py [--draws 300]
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from bertology.metrics import find_metric
from bertology.stats.deciding import Deciding, removed_share
from bertology.stats.repeated import repeated

STEPS, KEEP = 11, 0.9
GONE = np.arange(STEPS) / 10
Floats = NDArray[np.float64]


def drawn(rng: np.random.Generator, seeds: int, n: int, spread: float) -> list[Deciding]:
    """Answers 1 (right) and 0 of each seed's steps, as many as are tried; labels are all 1."""
    ease, found = rng.normal(size=n), []
    for _ in range(seeds):
        knee = 0.5 + spread * rng.normal()
        own = 0.7 * ease + 0.7 * rng.normal(size=n)
        # A share of 0.85 is right, and from the knee on the score falls to a half.
        border = 1.05 - 2.5 * np.clip(GONE - knee + 0.15, 0, 0.42)
        noise = 0.14 * rng.normal(size=(STEPS, n))
        answers = (own + noise < border[:, None]).astype(np.float64)
        scores = answers.mean(1)
        floor = max(KEEP * scores[0], scores[0] / 2 + 0.25)
        fell = scores[1:] < floor
        kept = int(fell.argmax()) + 1 if fell.any() else STEPS
        tried = min(kept + 3, STEPS)
        found.append(Deciding(answers[:tried], GONE[:tried], kept))
    return found


def truth(n: int, spread: float, draws: int = 4000) -> float:
    rng = np.random.default_rng(99)
    ends = [r.removed[r.kept - 1] for _ in range(draws) for r in drawn(rng, 1, n, spread)]
    return float(np.mean(ends))


def coverage(seeds: int, n: int, spread: float, draws: int) -> tuple[float, float, float]:
    """Of both together, of seeds alone, and the mean width of the first."""
    rng, wanted = np.random.default_rng(seeds * n), truth(n, spread)
    held = alone = width = 0.0
    for _ in range(draws):
        runs = drawn(rng, seeds, n, spread)
        labels = np.ones(n)
        # Half of the examples have the other label, and are answered as often right.
        labels[::2] = 0
        runs = [
            Deciding(np.where(r.answers == 1, labels, 1 - labels), r.removed, r.kept) for r in runs
        ]
        found = removed_share(
            runs, labels, find_metric("accuracy"), keep=KEEP, constant=1.0, grain=0.1
        )
        seeds_only = repeated([r.removed[r.kept - 1] for r in runs])
        held += found.low <= wanted <= found.high
        alone += seeds_only.low <= wanted <= seeds_only.high
        width += found.high - found.low
    return held / draws, alone / draws, width / draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=300)
    draws = parser.parse_args().draws
    print("| seeds | examples | spread of seeds | holds the truth | seeds alone | width |")
    print("|---|---|---|---|---|---|")
    for seeds in (3, 5, 10):
        for n in (100, 500):
            for spread in (0.02, 0.15):
                both, alone, width = coverage(seeds, n, spread, draws)
                print(f"| {seeds} | {n} | {spread} | {both:.3f} | {alone:.3f} | {width:.2f} |")


if __name__ == "__main__":
    main()
