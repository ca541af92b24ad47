"""Tables of compression that are made up: how often each row is right, and how large it is."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import xarray as xr

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.model.shape import Shape
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.compression.compression_table import TIMINGS, CompressionTable
from bertology.studies.designs.compression_rows import ROWS, TEACHER
from bertology.studies.designs.scored_runs import answered
from bertology.studies.designs.trials import split_part

__all__ = ["ALONE_HALF", "PUBLISHED", "SHAPE", "made_up", "over_tasks"]

TWO = Task("two", "classification", ("no", "yes"), ("accuracy", "f1"))
SHAPE = Shape(12, 12, 768, 64, 3072)
ALONE_HALF = "cut-layers-6", "random-layers-6"
PUBLISHED = tuple(name for name, row in ROWS.items() if row.published)
ASKED = (*PUBLISHED, "soft-half")
_PER_WEIGHT = {"gobo": 0.4, "q8bert": 1.0}  # bytes; of others 4


def made_up(
    right: Mapping[str, float] | float = 0.75,
    *,
    seeds: int = 3,
    n: int = 500,
    draw: int = 0,
    luck: float = 0.005,
    failing: float = 0.0,
    constant: float = 0.5,
    methods: tuple[str, ...] = ASKED,
    same: bool = False,
    faster: Mapping[str, float] | None = None,
    bytes_per_weight: Mapping[str, float] | None = None,
    task: str = "made-up",
) -> Result:
    """Rows that are right so often; examples are hard for all alike.

    With `same`, all rows give the teacher's answers. Rows that `right` does not name are right as
    often as the teacher. `luck` is how far runs spread, `failing` the share of runs of any row that
    give one answer only, `faster` how many times as fast rows are.
    """
    rng = np.random.default_rng(draw)
    study = CompressionTable(seeds=seeds, methods=methods)
    labels = rng.integers(0, 2, n)
    examples = [Example(str(i), "x", label=int(y)) for i, y in enumerate(labels)]
    corpus = Corpus(task, examples, frozenset({Field.TEXT, Field.LABEL}), TWO)
    rows, hard, parts = study.rows(SHAPE, corpus), rng.random(n), dict[str, xr.Dataset]()
    teacher = right if isinstance(right, float) else right.get(TEACHER, 0.75)
    said: dict[int, np.ndarray] = {}
    for part in study.parts(SHAPE, corpus)[:-1]:
        name, seed = split_part(part)
        share = teacher if isinstance(right, float) else right.get(name, teacher)
        fine = (hard + rng.random(n)) / 2 < _mixed(share) + rng.normal(0, luck)
        answers = np.where(fine, labels, 1 - labels)
        if failing and rng.random() < failing:
            answers = np.ones(n, int)
        if same:
            answers = said.setdefault(seed, answers)
        row = rows[name]
        weights = 1000 if row.kind == TEACHER else 400
        each = {**_PER_WEIGHT, **(bytes_per_weight or {})}.get(name, 4.0)
        parts[part] = answered(
            {name: answers}, corpus, corpus, kind=row.kind, title=row.title, text=row.text,
            alone=" ".join(row.alone), answers="classification", seconds=1.0, epochs=3,
            bytes=int(each * 1000 if name in _PER_WEIGHT else each * weights),
            parameters=weights, nonzero=weights, constant_accuracy=constant, constant_f1=0.5,
        )  # fmt: skip
    parts[TIMINGS] = _times(list(rows), faster or {}, rng)
    about = {"name": "m", "fingerprint": "f"}, {"name": task, "fingerprint": task}
    return study.conclude(parts, Provenance("compression-table", 1, study.parameters, *about))


def _times(rows: list[str], faster: Mapping[str, float], rng: np.random.Generator) -> xr.Dataset:
    speed = np.array([1.0, *(faster.get(name, 1.0) for name in rows[1:])])
    spent = rng.lognormal(0, 0.03, (len(rows), 1, 2, 2, 7))
    spent[:, :, :, 1] /= speed[:, None, None, None]
    return xr.Dataset(
        {"spent": (("row", "device", "size", "model", "round"), spent)},
        {"row": rows, "device": ["cpu"], "size": [1, 32], "model": ["teacher", "own"]},
    )


def _mixed(share: float) -> float:
    """Where the mean of two uniform numbers lies below with this probability."""
    return math.sqrt(share / 2) if share <= 0.5 else 1 - math.sqrt((1 - share) / 2)


def over_tasks(gains: tuple[float, ...], *, draw: int = 0, n: int = 500, seeds: int = 3) -> Result:
    """Tasks on which students are better by so much than the same shape without a teacher."""
    from bertology.studies.joins.compression_tasks import CompressionTasks

    found = []
    for at, gain in enumerate(gains):
        shares = {TEACHER: 0.75} | dict.fromkeys(("pkd-half", "soft-half"), 0.7)
        shares |= dict.fromkeys(ALONE_HALF, 0.7 - gain)
        found.append(
            made_up(shares, draw=31 * draw + at, methods=("pkd-half", "soft-half"),
                    task=f"task-{at}", n=n, seeds=seeds)
        )  # fmt: skip
    return CompressionTasks().join(found)
