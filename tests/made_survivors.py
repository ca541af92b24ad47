"""Prunings of several tasks and seeds that are made up, and what other studies say of the heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bertology.data.map_labels import MAP_TYPES
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.joins.super_survivors import SuperSurvivors

LAYERS, HEADS = 12, 12
TASKS = ("mrpc", "rte", "sst-2", "cola")
LAYER, HEAD = (side.ravel() for side in np.indices((LAYERS, HEADS)))
MODEL = {"name": "m", "fingerprint": "f"}


def made(
    study: str, tables: dict[str, pd.DataFrame], *, corpus: str = "made", **more: Any
) -> Result:
    """A result of a study; `arrays`, `model` and facts as `more`."""
    model, arrays = more.pop("model", MODEL), more.pop("arrays", {})
    about = Provenance(study, 1, {}, model, {"name": corpus, "fingerprint": corpus})
    return Result(about, tables, xr.Dataset(arrays, attrs=more))


def pruning(
    task: str, strength: np.ndarray, rng: np.random.Generator, *, seeds: int = 5, steps: int = 5,
    by_task: float = 0.0, kept: Sequence[int] = (), learnt: Sequence[int] = (), share: float = 0.1,
) -> Result:  # fmt: skip
    """The weakest heads go, in each step a tenth; seeds and tasks move their strength by chance."""
    shape = strength.shape
    own = strength + by_task * rng.normal(size=shape)
    heads, mlps = [], []
    for _ in range(seeds):
        ranks = (own + rng.normal(size=shape)).ravel().argsort().argsort()
        lost = [round(share * ranks.size) * step for step in range(steps + 1)]
        heads.append([(ranks >= gone).reshape(shape) for gone in lost])
        order = (rng.normal(size=shape[0]) + np.linspace(3, 0, shape[0])).argsort().argsort()
        mlps.append([order >= step for step in range(steps + 1)])
    kept = list(kept) or [steps] * seeds
    runs = pd.DataFrame(
        {"seed": range(seeds), "learnt": list(learnt) or [1] * seeds, "steps": kept}
    )
    arrays = {
        "heads_left": (("seed", "step", "layer", "head"), np.array(heads)),
        "mlps_left": (("seed", "step", "layer"), np.array(mlps)),
        "kept_steps": ("seed", np.array(kept) + 1),  # with the whole model
    }
    return made("importance-pruning", {"runs": runs}, corpus=task, arrays=arrays, task=task)


def of_heads(study: str, model: dict[str, Any] | None = None, **columns: Any) -> Result:
    """A table of all heads."""
    table = pd.DataFrame({"layer": LAYER, "head": HEAD, **columns})
    return made(study, {"heads": table}, model=model or MODEL)


def types(heterogeneous: np.ndarray, rng: np.random.Generator) -> Result:
    """Shares of map types; what is not heterogeneous is of the other types, by chance."""
    others = rng.dirichlet([1.5, 1, 0.3, 0.3], len(LAYER)) * (1 - heterogeneous.ravel())[:, None]
    shares = dict(zip(MAP_TYPES, [*others.T, heterogeneous.ravel()], strict=True))
    tuned = {"name": "t", "fingerprint": "t", "tuned_from": {"name": "m", "task": "rte"}}
    return of_heads("map-types", model=tuned, **shares)


def followers(follows: np.ndarray) -> Result:
    """Heads that surely follow a relation, and others that do not."""
    yes = follows.ravel().astype(bool)
    gain, p = np.where(yes, 0.3, -0.02), np.where(yes, 0.001, 1.0)
    columns = {"relation": "obj", "gain": gain, "selectivity": gain}
    return of_heads("syntax-heads", **columns, gain_p=p, selectivity_p=p)


def ablation(effect: np.ndarray) -> Result:
    """What the task loses without each head."""
    return of_heads("head-ablation", difference=effect.ravel(), loss_balance=-effect.ravel())


def joined(
    strength: np.ndarray, others: Sequence[Result], draw: int, *, tasks: int = 4,
    resamples: int = 400, **how: Any,
) -> Result:  # fmt: skip
    """Super-survivors of so many tasks, of heads with this strength."""
    rng = np.random.default_rng([draw, 1])
    prunings = [pruning(name, strength, rng, **how) for name in TASKS[:tasks]]
    return SuperSurvivors(resamples=resamples).join([*prunings, *others])
