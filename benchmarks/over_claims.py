"""Many claims on one page: how many hold by chance, and the error over all of them, by simulation.

Usage: python benchmarks/over_claims.py [--repeats 100]
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from machine import describe
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.results.over_claims import false_holds, together
from bertology.results.rules import Outcome, Relation, Rule
from bertology.results.verdicts import Claim, Published, Source, Verdict
from bertology.stats import Estimate

Floats = NDArray[np.float64]
MARGIN, LARGE, CLAIMS = 1.0, 6.0, 60  # effects are in standard errors
RULE = Rule("gain", Relation.ABOVE, 0.0, margin=MARGIN)
CLAIM = Claim("a.b", Source("A", "1"), "So.", Published("3"), "some-study", RULE, "Because.")
TRUE = {
    Outcome.HOLDS: lambda effect: effect >= MARGIN,
    Outcome.SIZE_OPEN: lambda effect: effect > 0,
    Outcome.NEGLIGIBLE: lambda effect: effect < MARGIN,
    Outcome.FAILS: lambda effect: effect <= 0,
}
WORLDS = {
    "none is there": np.zeros(CLAIMS),
    "all just matter": np.full(CLAIMS, MARGIN),
    "a third is large": np.r_[np.zeros(CLAIMS * 2 // 3), np.full(CLAIMS // 3, LARGE)],
    "large, small or none": np.repeat([LARGE, MARGIN / 2, 0.0], CLAIMS // 3),
}


def page(rng: np.random.Generator, effects: Floats, n: int, shared: float) -> list[Verdict]:
    """Means of `n` values; all go up and down together by the share of variance that is shared."""
    noise = rng.normal(size=effects.size) * (1 - shared) ** 0.5 + rng.normal() * shared**0.5
    spread = (rng.chisquare(n - 1, size=effects.size) / (n - 1)) ** 0.5
    found = []
    for at, (value, half) in enumerate(
        zip(effects + noise, stdtrit(n - 1, 0.975) * spread, strict=True)
    ):
        e = Estimate(value, value - half, value + half, n)
        found.append(Verdict(replace(CLAIM, id=f"a.{at}"), RULE.judge(e), e, n))
    return found


def false_share(found: list[Verdict], effects: Floats) -> float:
    """The share of false verdicts among those that say something."""
    said = [(v.outcome, x) for v, x in zip(found, effects, strict=True) if v.outcome in TRUE]
    return sum(not TRUE[outcome](x) for outcome, x in said) / max(1, len(said))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--repeats", type=int, default=100)
    repeats = arguments.parse_args().repeats
    print(describe())
    columns = ["n", "shared", "world", "said to be there, falsely", "told at most"]
    columns += ["false, each at 95 %", "false across claims", "large found", "found across claims"]
    print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for n, shared in ((50, 0.0), (50, 0.7), (5, 0.0)):
        for name, effects in WORLDS.items():
            rng, rows = np.random.default_rng(0), []
            for _ in range(repeats):
                alone = page(rng, effects, n, shared)
                across = together(alone, across_claims=True)
                there = [v.outcome.is_there for v in alone]
                large = effects == LARGE
                found = [
                    np.mean([v.outcome.is_there for v in some], where=large) if large.any() else 0
                    for some in (alone, across)
                ]
                false = [false_share(list(some), effects) for some in (alone, across)]
                rows.append((np.sum(there, where=effects <= 0), false_holds(alone), *false, *found))
            shown = [f"{rate:.3f}" for rate in np.mean(rows, axis=0)]
            shown = shown if LARGE in effects else [*shown[:-2], "", ""]
            print(f"| {n} | {shared} | {name} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
