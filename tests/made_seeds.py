"""Runs of crossed seeds that are made up: their true scores, and so all variances, are known."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.special import ndtr

from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.training.seed_variance import SeedVariance

BASE = 0.75  # the mean of true scores
ALIKE = 0.5  # how far an example is easy or hard for all runs alike


def made_up(
    spreads: tuple[float, float, float] = (0.02, 0.02, 0.02),
    *,
    seeds: int = 5,
    orders: int = 5,
    examples: int = 300,
    told: float = 0.8,
    failing: float = 0.0,
    base: float = BASE,
    leaning: float = 0.0,
    draw: int = 0,
) -> Result:
    """`spreads` are standard deviations by initialisation, order and rest.

    `told` is the correlation of a run's true score half-way with its last one; `failing` the share
    of runs that give one answer only. `leaning` is how far each kind of seed makes runs better on
    one class and worse on the other, which changes no true score.
    """
    rng = np.random.default_rng([draw, 7])
    study = SeedVariance(seeds=seeds, orders=orders, looks=3, deals=3)
    rows, columns, rest = (
        rng.normal(0, spread, shape)
        for spread, shape in zip(spreads, ((seeds, 1), (1, orders), (seeds, orders)), strict=True)
    )
    away = rows + columns + rest
    other = rng.normal(0, np.hypot(np.hypot(*spreads[:2]), spreads[2]), away.shape)
    labels, common = rng.integers(0, 2, examples), rng.normal(size=examples)
    side = np.where(labels == 1, leaning, -leaning)
    leans = rng.normal(size=(seeds, 1)) + rng.normal(size=(1, orders)) if leaning else away * 0
    parts = {}
    for i, j in np.ndindex(seeds, orders):
        early = BASE + told * away[i, j] + np.sqrt(1 - told**2) * other[i, j] + base - BASE
        skills = (base - 0.1 + 0.1 * rng.random() - 0.05, early, base + away[i, j])
        luck = np.sqrt(ALIKE) * common + np.sqrt(1 - ALIKE) * rng.normal(size=(3, examples))
        right = ndtr(luck) < np.array(skills)[:, None] + leans[i, j] * side
        said = np.where(right, labels, 1 - labels)
        if rng.random() < failing:
            said[:] = 1
        parts[f"order-{j}-seed-{i}"] = part(said, labels, study.shares)
    return study.conclude(parts, provenance())


def part(said: np.ndarray, labels: np.ndarray, shares: tuple[float, ...]) -> xr.Dataset:
    """One run, as the study keeps it."""
    return xr.Dataset(
        {
            "predictions": (("share", "example"), np.asarray(said, float)),
            "labels": ("example", np.asarray(labels, float)),
            "diverged": 0,
        },
        {"share": list(shares)},
        {
            "task": "made-up", "kind": "classification", "metrics": "accuracy", "train_size": 9,
            "train_fingerprint": "x", "constant": 1.0,
        },
    )  # fmt: skip


def provenance() -> Provenance:
    return Provenance(
        "seed-variance", 1, {}, {"name": "m", "fingerprint": "f"},
        {"name": "made-up", "fingerprint": "c"},
    )  # fmt: skip
