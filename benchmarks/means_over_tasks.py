"""Means over tasks of what ways to fine-tune gain (join `variant-tasks`): how often they mislead.

First, standard errors alone (`stats/fixed_means.py`): the spread of seeds of one task is so much
larger than that of the others, and examples add an error to each task, in units of the largest
spread. Counted is how often intervals miss the truth, at 95 % and at the levels of 6 and of 15
variants; and the same with all of Welch and Satterthwaite's degrees of freedom, without the limit.

Then whole results on made-up runs, without training: in how many draws any way is called surely
better or worse in the mean, where none is; and how often the interval of one way alone, at 95 %,
misses what it truly gains.

    python benchmarks/means_over_tasks.py [--draws 100] [--errors 20000]
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from machine import describe

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from bertology.results.result import Result
from bertology.stats import fixed_means
from bertology.stats.fixed_means import OfRuns, mean_over_fixed
from made_variants import over_tasks

LEVELS = (0.95, 1 - 0.05 / 6, 1 - 0.05 / 15)
SPREADS = ((1, 1, 1), (1, 0.3, 0.3), (1, 0.2, 0.2, 0.2), (1, *[0.1] * 7))
WAYS = ("layer-mix", "joined-layers", "features", "adapters", "adversarial", "intermediate")
GAINS = {"adapters": 0.04, "features": -0.08}


def errors(draws: int) -> Iterator[str]:
    """A row for each spread, number of seeds, and error of examples."""
    yield "| seeds | spreads | error of examples | missed at 95 % | of 6 | of 15 | without a limit: 95 % | of 6 | of 15 |"  # noqa: E501
    yield "|---|---|---|---|---|---|---|---|---|"
    for seeds in (3, 5):
        for spreads in SPREADS:
            for over_examples in (0.0, 0.1, 0.3):
                cells = []
                for limit in (fixed_means.MOST, math.inf):
                    shares = missed(spreads, seeds, over_examples, draws, limit)
                    cells += [f"{share:.4f}" for share in shares]
                told = ", ".join(map(str, spreads[:4])) + (" …" if len(spreads) > 4 else "")
                yield f"| {seeds} | {told} | {over_examples} | {' | '.join(cells)} |"


def missed(
    spreads: tuple[float, ...], seeds: int, over_examples: float, draws: int, limit: float
) -> list[float]:
    """Shares of intervals that miss 0, the truth, by level."""
    rng, counts = np.random.default_rng(seeds), [0] * len(LEVELS)
    known, fixed_means.MOST = fixed_means.MOST, limit
    for _ in range(draws):
        by_run = np.array(spreads)[:, None] * rng.normal(size=(len(spreads), seeds))
        off = over_examples * rng.normal(size=len(spreads))
        error = by_run.std(axis=1, ddof=1) / math.sqrt(seeds)
        found = [
            OfRuns(float(mean + more), seeds, 400, float(own), over_examples)
            for mean, more, own in zip(by_run.mean(axis=1), off, error, strict=True)
        ]
        for at, level in enumerate(LEVELS):
            counts[at] += mean_over_fixed(found, level).excludes(0)
    fixed_means.MOST = known
    return [count / draws for count in counts]


# Worlds -------------------------------------------------------------------------------------------


def same_skill(draw: int) -> Result:
    """No way is better than another on any of three tasks."""
    return over_tasks([{}] * 3, draw=draw, seeds=3 + draw % 3)


def unlike_seeds(draw: int) -> Result:
    """The same; on one task, runs of three ways spread ten times as far as on the others."""
    wild = dict.fromkeys(("adapters", "joined-layers", "adversarial"), 0.05)
    return over_tasks([{}] * 3, draw=draw, seeds=3 + draw % 3, luck=[wild, 0.005, 0.005])


def failing_seeds(draw: int) -> Result:
    """The same; one run in ten fails, of plain fine-tuning as of all ways."""
    return over_tasks([{}] * 3, draw=draw, seeds=3 + draw % 3, failing=0.1)


def opposite_tasks(draw: int) -> Result:
    """Every way gains on one task what it loses on another: nothing in the mean of four."""
    up, down = (dict.fromkeys(WAYS, sign * 0.05) for sign in (1, -1))
    return over_tasks([up, down, up, down], draw=draw, seeds=3 + draw % 3)


def gains(draw: int) -> Result:
    """Adapters gain 4 points on each of four tasks, a head on frozen features loses 8."""
    return over_tasks([GAINS] * 4, draw=draw, seeds=5, sizes=(277, 408, 872, 1000))


WORLDS: dict[str, tuple[Callable[[int], Result], dict[str, float]]] = {
    "no way is better": (same_skill, {}),
    "seeds of one task spread": (unlike_seeds, {}),
    "one run in ten fails": (failing_seeds, {}),
    "gains and losses cancel": (opposite_tasks, {}),
    "two ways differ": (gains, GAINS),
}


def worlds(draws: int) -> Iterator[str]:
    """A row for each world."""
    yield "| world | draws | any way falsely sure | intervals | missed | ways that differ | found |"
    yield "|---|---|---|---|---|---|---|"
    for name, (draw, truth) in WORLDS.items():
        false = known = wrong = found = 0
        for seed in range(draws):
            result = draw(seed)
            sure = result.table("means").set_index("variant")["sure"].to_dict()
            right = {way: "better" if gain > 0 else "worse" for way, gain in truth.items()}
            false += any(said not in ("", right.get(way)) for way, said in sure.items())
            found += sum(sure[way] == said for way, said in right.items())
            alone = result.evidence()
            known += len(alone)
            wrong += sum(alone[f"{way.replace('-', '_')}_over_plain"].excludes(truth.get(way, 0.0))
                         for way in WAYS if alone)  # fmt: skip
        told = f"| {name} | {draws} | {false} | {known} | {wrong / max(known, 1):.3f} |"
        yield f"{told} {len(truth) * draws} | {found} |"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--errors", type=int, default=20_000)
    asked = parser.parse_args()
    print(describe())
    for row in (*errors(asked.errors), ""):
        print(row, flush=True)
    for row in worlds(asked.draws):
        print(row, flush=True)


if __name__ == "__main__":
    main()
