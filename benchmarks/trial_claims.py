"""False verdicts of the twelve claims of `pretraining-objectives`, and of heads that tasks share.

Trials: no objective gains or loses anything, runs of one seed share its luck, and every claim is
put where it just does not hold. One false verdict in twelve claims is a false study. `each alone`
is how intervals were before; `together` as they are now.

Shared heads: each of two tasks misses ten heads of 144, none of them in common. A false verdict
calls some head missed in both; with `shared`, one head is missed in both, and it is power.
Usage: python benchmarks/trial_claims.py [--repeats 2000]
"""

from __future__ import annotations

import argparse

import numpy as np
from machine import describe
from scipy.special import ndtr

from bertology.stats import holm
from bertology.stats.repeated import repeated

CLAIMS, HEADS, LEVEL = 12, 144, 0.95


def trials(seeds: int, repeats: int) -> tuple[float, float]:
    """Shares of studies with a false verdict: each claim alone, all together."""
    rng, wrong = np.random.default_rng(0), np.zeros(2)
    for _ in range(repeats):
        scores = rng.normal(0, 0.03, (CLAIMS + 1, seeds)) + rng.normal(0, 0.05, seeds)
        for at, level in enumerate((LEVEL, 1 - (1 - LEVEL) / CLAIMS)):
            found = [repeated(own - scores[0], level) for own in scores[1:]]
            wrong[at] += any(e.excludes(0) for e in found)
    alone, together = wrong / repeats
    return float(alone), float(together)


def shared_heads(size: float, shared: bool, tasks: int, repeats: int) -> tuple[float, float]:
    """Shares of comparisons that call a head missed in both: rows alone, and for all tasks."""
    rng, told = np.random.default_rng(1), np.zeros(2)
    for _ in range(repeats):
        sure = []
        for task in range(tasks):
            effect = np.zeros(HEADS)
            effect[10 * task : 10 * task + 10] = -size
            if shared and task < 2:
                effect[-1] = -size
            z = effect + rng.normal(size=HEADS)
            p = holm(2 * ndtr(-np.abs(z)))
            sure.append([(z < 0) & (p < limit) for limit in (0.05, 0.05 / tasks)])
        for at in range(2):
            kinds = np.stack([one[at] for one in sure])
            told[at] += bool((kinds.sum(0) > 1).any())
    plain, ours = told / repeats
    return float(plain), float(ours)


def main() -> None:
    """Print both tables."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--repeats", type=int, default=2000)
    given = arguments.parse_args()
    print(describe())
    print("| seeds | studies | each alone | together |")
    print("|---|---|---|---|")
    for seeds in (3, 5, 10):
        alone, together = trials(seeds, given.repeats)
        print(f"| {seeds} | {given.repeats} | {alone:.3f} | {together:.3f} |", flush=True)
    print()
    print("| tasks | effect, in errors | one head shared | corrected for heads | and for tasks |")
    print("|---|---|---|---|---|")
    for tasks, size, shared in ((2, 6, False), (4, 6, False), (2, 6, True), (4, 6, True)):
        plain, ours = shared_heads(size, shared, tasks, given.repeats)
        print(f"| {tasks} | {size} | {'yes' if shared else 'no'} | {plain:.3f} | {ours:.3f} |",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
