"""How many seeds a table of compression needs: what is surely seen of a loss or of a gain.

Made-up runs of two models on as many examples as tasks of GLUE have to score. Every run has luck of
its own, in points of its score, and examples are hard for all alike. Told is half of the interval's
width, the median over draws: of the share of the teacher's score that is kept; of the gain over the
same size without a teacher; and of that gain at the level that it needs on each of two tasks, if
it is to be sure on three of four (join `compression-tasks`). What is nearer to a border is open.

    python benchmarks/compression_seeds.py [--draws 60]
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bertology.stats import Estimate
from bertology.studies.designs.scored_runs import ScoredRuns

SEEDS = (3, 5, 8, 10)
# Examples, the teacher's score, and the spread of runs: of an English model of 12 × 384 about.
TASKS = {
    "SST-2": (872, 0.88, 0.005),
    "MRPC": (408, 0.80, 0.01),
    "RTE": (277, 0.62, 0.015),
    "STS-B": (1500, 0.80, 0.005),
}
_ALIKE = 0.85  # of what makes examples hard, the share that is the same for all runs
_TWO_TASKS = 0.975
Floats = NDArray[np.float64]


def answers(
    rng: np.random.Generator, task: str, seeds: int, hard: Floats, labels: Floats
) -> Floats:
    """(seeds, examples) of runs that have the task's score in the mean."""
    n, score, luck = TASKS[task]
    drawn = score + luck * rng.normal(size=(seeds, 1))
    wrong = math.sqrt(_ALIKE) * hard + math.sqrt(1 - _ALIKE) * rng.normal(size=(seeds, n))
    if task == "STS-B":
        return np.asarray(drawn * labels + np.sqrt(1 - drawn**2) * wrong)
    return np.where(wrong < ndtri(drawn), labels, 1 - labels)


def widths(task: str, seeds: int, draws: int) -> list[float]:
    """Halves of intervals, in points: of what is kept, and of a gain at two levels."""
    rng, found = np.random.default_rng(seeds), list[tuple[float, ...]]()
    n, metric = TASKS[task][0], "pearson" if task == "STS-B" else "accuracy"
    for _ in range(draws):
        hard = rng.normal(size=n)
        labels = rng.normal(size=n) if task == "STS-B" else rng.integers(0, 2, n).astype(float)
        said = {name: answers(rng, task, seeds, hard, labels) for name in ("own", "other")}
        runs = ScoredRuns(said, labels, 0.95)
        kept = runs.kept("own", "other", metric)
        gain = runs.difference("own", "other", metric, in_seeds=True, once=True)
        assert kept is not None
        assert gain is not None
        found.append(tuple(_half(one) for one in (kept, gain, gain.at_level(_TWO_TASKS))))
    return [float(x) for x in np.median(found, axis=0)]


def _half(found: Estimate) -> float:
    return 50 * (found.high - found.low)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=60)
    draws = parser.parse_args().draws
    print("| task | seeds | kept (%) | gain (points) | gain, sure on three of four tasks |")
    print("|---|---|---|---|---|")
    for task in TASKS:
        for seeds in SEEDS:
            told = " | ".join(f"± {x:.1f}" for x in widths(task, seeds, draws))
            print(f"| {task} | {seeds} | {told} |", flush=True)


if __name__ == "__main__":
    main()
