"""Error and power of the count of harmless heads: before, by two combinations of exact tests.

Heads flip answers of the same examples: one normal number of each example is shared by all heads to
a degree, and answers of examples with the lowest turn wrong, with the highest right.

- Error: of 144 heads exactly half are harmless (clearly: they gain four points) and half
  lose just the margin of 0.01. To say that most are harmless would be false; 0.025 is allowed,
  half of 0.05, since it is one side of an interval.
- Power: shares of flips are those of real heads, from stored results of head-ablation scored by
  accuracy (`--real FOLDER …`, folders of results), at 400 and 1,000 examples.

`before`: bounds of Chernoff's kind and closed tests with Simes'. `Rüger`: exact tests, combined by
twice the median of the p-values that could be true, which holds under any dependence. `now`: exact
tests and Simes', which ask for tests that rise and fall together, as flips of shared examples do;
`opposed` is a case in which they do not.

    python benchmarks/harmless_heads.py [--repeats 400] [--real FOLDER …]
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from machine import describe
from scipy.special import ndtri

from bertology.stats.answer_flips import small_loss_p
from bertology.stats.intervals import evidence_against_zero
from bertology.stats.multiplicity import fewest_false

HEADS, MARGIN, ERROR = 144, 0.01, 0.025
WAYS = ("before", "Rüger", "now")

Counts = np.ndarray


def flips(
    worse: np.ndarray, better: np.ndarray, n: int, shared: float, rng: np.random.Generator, *,
    opposed: bool = False,
) -> tuple[Counts, Counts]:  # fmt: skip
    """How many answers turn wrong and right without each head; `opposed`: half the heads mirror."""
    own = rng.standard_normal((HEADS, n))
    common = np.tile(rng.standard_normal(n), (HEADS, 1))
    if opposed:
        common[::2] *= -1
    x = math.sqrt(shared) * common + math.sqrt(1 - shared) * own
    return tuple(
        (side * x < ndtri(share)[:, None]).sum(axis=1) for side, share in ((1, worse), (-1, better))
    )


def told(worse: Counts, better: Counts, n: int) -> dict[str, int]:
    """How many heads are harmless at least, by each way."""
    seen = np.stack([worse, n - worse - better, better], axis=1).astype(float)
    values = np.tile([-1.0, 0.0, 1.0], (HEADS, 1)) + MARGIN
    above = (seen * values).sum(axis=1) > 0
    reach = np.where(above, 1 - MARGIN, 1 + MARGIN)
    bounds = np.where(above, np.exp(-evidence_against_zero(values, seen, reach=reach)), 1.0)
    p = small_loss_p(worse, better, n, MARGIN)
    counts = fewest_false(bounds, ERROR), ruger(p, ERROR), fewest_false(p, ERROR)
    return dict(zip(WAYS, counts, strict=True))


def ruger(p: np.ndarray, error: float) -> int:
    """The largest number up to which twice the median of the rest is always small enough."""
    ordered = np.sort(p)
    for sure in range(p.size):
        rest = ordered[sure:]
        middle = math.ceil(rest.size / 2)
        if rest.size / middle * rest[middle - 1] > error:
            return sure
    return p.size


def errors(repeats: int) -> Iterator[str]:
    half = np.arange(HEADS) % 4 < 2  # with and without a mirrored number among both halves
    for n, shared, often in (
        *((400, 0.95, 0.0), (400, 0.6, 0.005), (400, 1.0, 0.02)),
        *((1000, 0.95, 0.005), (1000, 1.0, 0.02), (1000, 0.6, 0.02), (1000, 0.0, 0.005)),
    ):
        for opposed in (False, True):
            rng, false = np.random.default_rng(n), Counter[str]()
            worse = np.where(half, MARGIN, often + MARGIN)
            better = np.where(half, 0.05, often)
            for _ in range(repeats):
                found = told(*flips(worse, better, n, shared, rng, opposed=opposed), n)
                false.update({way: count > HEADS // 2 for way, count in found.items()})
            cells = " | ".join(f"{false[way] / repeats:.3f}" for way in WAYS)
            signs = ", opposed" if opposed else ""
            yield f"| {n} | {often:g} | {shared:g}{signs} | {cells} |"


def power(folders: list[str], repeats: int) -> Iterator[str]:
    for folder in folders:
        heads = pd.read_parquet(Path(folder) / "heads.parquet")
        with xr.open_dataset(Path(folder) / "arrays.nc") as arrays:
            variance = np.diag(arrays["effect_covariance"].to_numpy())
            n = int(arrays["evidence"].to_numpy()[0, 3])
        net, both = heads["difference"].to_numpy(), variance * n + heads["difference"] ** 2
        worse, better = ((both.to_numpy() + way * net) / 2 for way in (-1, 1))
        worse, better = worse.clip(0), better.clip(0)
        true = (worse - better < MARGIN).mean()
        for examples in (400, 1000, 2000):
            rng, rows = np.random.default_rng(examples), []
            for _ in range(repeats):
                found = told(*flips(worse, better, examples, 0.6, rng), examples)
                rows.append([found[way] / HEADS for way in WAYS])
            bounds = np.array(rows)
            cells = " | ".join(
                f"{middle:.2f}, {holds:.2f}"
                for middle, holds in zip(
                    np.median(bounds, axis=0), (bounds > 0.5).mean(axis=0), strict=True
                )
            )
            yield f"| {true:.2f} | {1000 * np.median(both):.0f} | {examples} | {cells} |"


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--repeats", type=int, default=400)
    arguments.add_argument("--real", nargs="+", default=[])
    given = arguments.parse_args()
    print(describe())
    if given.real:
        print(f"| true share | flips of 1,000 | examples | {' | '.join(WAYS)} |\n|{6 * '---|'}")
        for line in power(given.real, given.repeats):
            print(line, flush=True)
        return
    print(f"| examples | flips each way | shared | {' | '.join(WAYS)} |\n|{6 * '---|'}")
    for line in errors(given.repeats):
        print(line, flush=True)


if __name__ == "__main__":
    main()
