"""One claim on several tasks, and what would settle an open one: error and power by simulation.

Usage: python benchmarks/over_tasks.py [--repeats 400]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
from machine import describe
from numpy.typing import NDArray

from bertology.results.over_tasks import corrected, overall
from bertology.results.rules import Outcome, Relation, Rule
from bertology.results.verdicts import Claim, Published, Source, Verdict
from bertology.stats import Estimate, bounded_mean_bounds, mean_interval, percentile_interval
from bertology.stats.partial_means import partial_means

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, float, int], Estimate]
RULE = Rule("gain", Relation.ABOVE, 0.0)
CLAIM = Claim("a.b", Source("A", "1"), "So.", Published("3"), "some-study", RULE, "Because.")
SIZES = (30, 50, 100, 200, 400, 800)
DECIDED = (Outcome.HOLDS, Outcome.FAILS)


def student(rng: np.random.Generator, effect: float, n: int) -> Estimate:
    """The mean of normal values; `effect` is in standard deviations."""
    return mean_interval(rng.normal(effect, size=n))


def skewed(rng: np.random.Generator, effect: float, n: int) -> Estimate:
    """The mean of skewed values, by Student's interval."""
    return mean_interval(rng.exponential(size=n) - 1 + effect)


def bounded(rng: np.random.Generator, effect: float, n: int) -> Estimate:
    """The mean of skewed values, by the bounds that claims about means over examples rest on."""
    values = rng.exponential(size=n) - 1 + effect
    found = partial_means(values[None], resamples=200).estimate(0)
    assert found is not None
    return found


def bootstrap(rng: np.random.Generator, effect: float, n: int) -> Estimate:
    """The mean of skewed values, by the percentile bootstrap."""
    values = rng.exponential(size=n) - 1 + effect
    means = values[rng.integers(n, size=(400, n))].mean(axis=1)
    low, high = percentile_interval(means)
    return Estimate(values.mean(), low, high, n)


def likelihood(rng: np.random.Generator, effect: float, n: int) -> Estimate:
    """Answers that flip in 4 % of examples, by likelihood bounds; `effect` as above."""
    rate, spread = 0.04, 0.2
    gain = (rate + effect * spread) / 2
    flips = rng.choice([1.0, -1.0, 0.0], p=[gain, rate - gain, 1 - rate], size=n)
    low, high = bounded_mean_bounds(
        np.array([[-1.0, 0.0, 1.0]]),
        np.array([[(flips == v).sum() for v in (-1, 0, 1)]]),
        low=-1.0,
        high=1.0,
        budget=math.log(2 / 0.05),
    )
    return Estimate(flips.mean(), low[0], high[0], n)


def judged(rng: np.random.Generator, draw: Draw, effects: list[float], n: int) -> list[Verdict]:
    found = [draw(rng, effect, n) for effect in effects]
    return [Verdict(CLAIM, RULE.judge(e), e, e.n) for e in found]


def over_tasks(draw: Draw, n: int, effects: list[float], repeats: int) -> list[float]:
    """False verdicts alone and corrected; the share that holds and that is mixed over all tasks."""
    rng, alone, together, holds, mixed = np.random.default_rng(0), 0, 0, 0, 0
    for _ in range(repeats):
        each = judged(rng, draw, effects, n)
        strict = corrected(each)
        alone += any(_false(v, e) for v, e in zip(each, effects, strict=True))
        together += any(_false(v, e) for v, e in zip(strict, effects, strict=True))
        holds += overall(strict) == "holds"
        mixed += overall(strict) == "mixed"
    return [count / repeats for count in (alone, together, holds, mixed)]


def _false(verdict: Verdict, effect: float) -> bool:
    """With an effect of 0 either outcome is called false."""
    wrong = DECIDED if effect == 0 else (Outcome.FAILS if effect > 0 else Outcome.HOLDS,)
    return verdict.outcome in wrong


def settled(draw: Draw, effect: float, n: int, repeats: int) -> tuple[int, float, float]:
    """Open verdicts, the median of what they say is needed, and how often that many decide."""
    rng, needed, decided = np.random.default_rng(1), [], 0
    for _ in range(repeats):
        (verdict,) = judged(rng, draw, [effect], n)
        found = verdict.settling
        if found is not None and found.needed is not None and found.needed <= 100 * n:
            needed.append(found.needed)
            (again,) = judged(rng, draw, [effect], found.needed)
            decided += again.outcome in DECIDED
    return len(needed), float(np.median(needed)), decided / len(needed)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--repeats", type=int, default=400)
    repeats = arguments.parse_args().repeats
    print(describe())
    print("\n| interval | n | tasks | effects | false alone | corrected | holds | mixed |")
    print("|---|---|---|---|---|---|---|---|")
    for draw, n, size in ((student, 3, 2.0), (student, 200, 0.3), (bootstrap, 200, 0.3),
                          (likelihood, 400, 0.15)):  # fmt: skip
        plans = {
            "none": [0.0] * 8,
            "all alike": [size] * 8,
            "half of them": [size] * 4 + [0.0] * 4,
            "one against": [size] * 7 + [-size],
        }
        for name, effects in plans.items():
            rates = over_tasks(draw, n, effects, repeats)
            shown = " | ".join(f"{rate:.3f}" for rate in rates)
            print(f"| {draw.__name__} | {n} | 8 | {name} | {shown} |", flush=True)
    print("\n| interval of skewed values | " + " | ".join(f"n = {n}" for n in SIZES) + " |")
    print("|---|" + "---|" * len(SIZES))
    for draw in (skewed, bootstrap, bounded):
        times = repeats if draw is bounded else 5 * repeats
        false = [over_tasks(draw, n, [0.0] * 8, times)[1] for n in SIZES]
        print(
            f"| {draw.__name__} | " + " | ".join(f"{rate:.3f}" for rate in false) + " |", flush=True
        )
    print("\n| interval | n | true effect | open verdicts | needed (median) | decided then |")
    print("|---|---|---|---|---|---|")
    for draw, n, effect in ((student, 3, 0.5), (student, 100, 0.1), (student, 100, 0.2),
                            (bootstrap, 100, 0.1), (likelihood, 400, 0.05)):  # fmt: skip
        count, median, share = settled(draw, effect, n, repeats)
        print(f"| {draw.__name__} | {n} | {effect} σ | {count} | {median:,.0f} | {share:.2f} |")


if __name__ == "__main__":
    main()
