"""Tables of compression that are made up: how often each row is right, and how large it is."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec

import numpy as np
import xarray as xr

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.model.shape import Shape
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.compression.compression_table import TIMINGS, CompressionTable
from bertology.studies.compression.compression_table.rows import ROWS, TEACHER
from bertology.studies.designs.scored_runs import answered
from bertology.studies.designs.trials import split_part

TWO = Task("two", "classification", ("no", "yes"), ("accuracy", "f1"))
MUCH = Task("much", "regression", (), ("pearson", "spearman"))
SHAPE = Shape(12, 12, 768, 64, 3072)
ALONE_HALF = "cut-layers-6-first", "random-layers-6"
PUBLISHED = tuple(name for name, row in ROWS.items() if row.published)
ASKED = (*PUBLISHED, "soft-half", "layers-dropped")
STUDENTS = ("pkd-half", "pkd-quarter", "distilbert", "tinybert", "minilm-half", "theseus-half",
            "soft-half")  # fmt: skip
CUT = (
    ALONE_HALF[0], "cut-layers-6", "cut-layers-3-first", "cut-layers-4-heads-12-hidden-312",
)  # fmt: skip
P = ParamSpec("P")
_MADE: dict[str, Result] = {}
_WEIGHTS = 1_000_000
_PER_WEIGHT = {"gobo": 0.4, "q8bert": 1.0}  # bytes; of others 4


def once(make: Callable[P, Result]) -> Callable[P, Result]:
    """What is asked for again, as by every case of a test, is the same result."""

    @wraps(make)
    def made(*given: P.args, **named: P.kwargs) -> Result:
        asked = f"{make.__name__} {given} {sorted(named.items())}"
        if asked not in _MADE:
            _MADE[asked] = make(*given, **named)
        return _MADE[asked]

    return made


@once
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
    numbers: bool = False,
    random: float | None = None,
    faster: Mapping[str, float] | None = None,
    bytes_per_weight: Mapping[str, float] | None = None,
    fewer: Mapping[str, float] | None = None,
    nonzero: Mapping[str, float] | None = None,
    task: str = "made-up",
    times: tuple[str, ...] = ("cpu",),
    devices: tuple[str, ...] = ("cpu",),
    untrained: tuple[str, ...] = (),
) -> Result:
    """Rows that are right so often; examples are hard for all alike.

    With `same`, all rows give the teacher's answers. Rows that `right` does not name are right
    as often as the teacher, and baselines with random weights as `random` says. `luck` is how
    far runs spread, `failing` the share of runs of any row that give one answer only, `faster`
    how many times as fast rows are, `fewer` how many times fewer weights they have, `nonzero` how
    many times fewer are not zero. With `numbers`, answers are such, `right` are correlations, and
    every row has a scale of its own.
    """
    rng = np.random.default_rng(draw)
    study = CompressionTable(seeds=seeds, methods=methods, times=times)
    labels = rng.normal(size=n) if numbers else rng.integers(0, 2, n)
    examples = [Example(str(i), "x", label=y.item()) for i, y in enumerate(labels)]
    about = MUCH if numbers else TWO
    corpus = Corpus(task, examples, frozenset({Field.TEXT, Field.LABEL}), about)
    rows, parts = study.rows(SHAPE, corpus), dict[str, xr.Dataset]()
    hard = rng.normal(size=n) if numbers else rng.random(n)
    scales = dict(
        zip(rows, np.random.default_rng([draw, 1]).uniform(0.5, 1, (len(rows), 2)), strict=True)
    )
    teacher = right if isinstance(right, float) else right.get(TEACHER, 0.75)
    said: dict[int, np.ndarray] = {}
    for part in study.parts(SHAPE, corpus):
        if part == TIMINGS:
            parts[part] = _times(list(rows), faster or {}, devices, rng)
            continue
        name, seed = split_part(part)
        share = teacher if isinstance(right, float) else right.get(name, teacher)
        if random is not None and name.startswith("random-"):
            share = random
        if numbers:
            shown = share + rng.normal(0, luck)
            wrong = math.sqrt(0.7) * hard + math.sqrt(0.3) * rng.normal(size=n)
            scale, middle = scales[name]
            answers = scale * (shown * labels + math.sqrt(1 - shown**2) * wrong) + middle
        else:
            fine = (hard + rng.random(n)) / 2 < _mixed(share) + rng.normal(0, luck)
            answers = np.where(fine, labels, 1 - labels)
        if failing and rng.random() < failing:
            answers = np.ones(n, int)
        if same:
            answers = said.setdefault(seed, answers)
        row = rows[name]
        weights = _WEIGHTS if row.kind == TEACHER else int(_WEIGHTS / (fewer or {}).get(name, 2.5))
        left = int(_WEIGHTS / nonzero[name]) if nonzero and name in nonzero else weights
        each = {**_PER_WEIGHT, **(bytes_per_weight or {})}.get(name, 4.0)
        parts[part] = answered(
            {name: answers}, corpus, corpus, kind=row.kind, title=row.title, text=row.text,
            alone=" ".join(row.alone), answers=about.kind, seconds=1.0,
            epochs=0 if name in untrained else 3,
            bytes=int(each * (_WEIGHTS if name in _PER_WEIGHT else weights)),
            parameters=weights, nonzero=left, constant_accuracy=constant, constant_f1=0.5,
            constant_pearson=0.0, constant_spearman=0.0,
            model='{"name": "m", "flags": []}', data=json.dumps({"name_or_path": task}),
        )  # fmt: skip
    made = {"name": "m", "fingerprint": "f"}, {"name": task, "fingerprint": task}
    origin = Provenance("compression-table", study.version, study.parameters, *made)
    return study.conclude(parts, origin)


def _times(
    rows: list[str], faster: Mapping[str, float], devices: tuple[str, ...], rng: np.random.Generator
) -> xr.Dataset:
    speed = np.array([1.0, *(faster.get(name, 1.0) for name in rows[1:])])
    spent = rng.lognormal(0, 0.03, (len(rows), len(devices), 2, 2, 7))
    spent[:, :, :, 1] /= speed[:, None, None, None]
    return xr.Dataset(
        {"spent": (("row", "device", "size", "model", "round"), spent)},
        {"row": rows, "device": list(devices), "size": [1, 32], "model": ["teacher", "own"]},
    )


def _mixed(share: float) -> float:
    """Where the mean of two uniform numbers lies below with this probability."""
    return math.sqrt(share / 2) if share <= 0.5 else 1 - math.sqrt((1 - share) / 2)


@once
def over_tasks(
    gains: tuple[float, ...],
    *,
    draw: int = 0,
    n: int = 500,
    seeds: int = 3,
    students: tuple[str, ...] = ("pkd-half", "soft-half"),
    random: float | None = None,
    luck: float = 0.005,
    unlearnt: int = 0,
) -> Result:
    """Tasks on which students are better by so much than the same shape without a teacher.

    With `random`, baselines with random weights are right so often. On so many tasks, the last
    ones, the teacher has nothing that a constant answer has not (`unlearnt`).
    """
    from bertology.studies.joins.compression_tasks import CompressionTasks

    found = []
    for at, gain in enumerate(gains):
        shares = {TEACHER: 0.75} | dict.fromkeys(students, 0.7)
        shares |= dict.fromkeys(CUT, 0.7 - gain) | {ALONE_HALF[1]: 0.7 - gain}
        constant = 0.9 if at >= len(gains) - unlearnt else 0.5
        found.append(
            made_up(shares, draw=31 * draw + at, methods=students, task=f"task-{at}", n=n,
                    seeds=seeds, random=random, luck=luck, constant=constant)
        )  # fmt: skip
    return CompressionTasks().join(found)
