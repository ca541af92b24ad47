"""Ways to fine-tune, made up: runs of one task, of several, and what is joined of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.model.shape import Shape
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.scored_runs import answered
from bertology.studies.designs.trials import split_part
from bertology.studies.joins.variant_tasks import VariantTasks
from bertology.studies.training.finetuning_variants import FinetuningVariants

PLAIN_SCORE = 0.75
TWO = Task("two", "classification", ("no", "yes"), ("accuracy", "f1"))
TEXTS = frozenset({Field.TEXT, Field.LABEL})
CLAIMED = ("layer-mix", "joined-layers", "features", "adapters", "adversarial")


def made_up(
    right: dict[str, float] | float = 0.75,
    noisy: dict[str, float] | float = 0.65,
    *,
    seeds: int = 5,
    n: int = 600,
    draw: int = 0,
    constant: float = 0.5,
    ways: tuple[str, ...] = CLAIMED,
    luck: dict[str, float] | float = 0.005,
    failing: float = 0.0,
) -> Result:
    """Runs that are made up: how often a variant is right; examples are hard for all alike.

    `luck` is how far runs of a variant spread; `failing` the share of runs of any variant that give
    one answer only.
    """
    rng = np.random.default_rng(draw)
    study = FinetuningVariants(seeds=seeds, ways=ways, intermediate="another")
    labels = rng.integers(0, 2, n)
    corpus = Corpus(
        "made-up", [Example(str(i), "x", label=int(y)) for i, y in enumerate(labels)], TEXTS, TWO
    )
    hard, parts = rng.random((2, n)), {}
    for part in study.parts(Shape(1, 1, 1, 1, 1), corpus):
        name, _ = split_part(part)
        lucky = rng.normal(0, luck if isinstance(luck, float) else luck.get(name, 0.005))
        said = []
        for row, asked in zip(hard, (right, noisy), strict=True):
            share = asked if isinstance(asked, float) else asked.get(name, 0.75)
            fine = (row + rng.random(n)) / 2 < _mixed(share) + lucky
            said.append(np.where(fine, labels, 1 - labels))
        if failing and rng.random() < failing:
            said = [np.ones(n, int)] * 2
        facts = {"trained": 10 if name == "adapters" else 1000, "size": 1000, "seconds": 2.0}
        facts |= {"constant_accuracy": constant, "constant_f1": 0.5}
        found = answered({name: said[0]}, corpus, corpus, **facts)
        parts[part] = found.assign(noisy=(("method", "example"), said[1][None]))
    about = {"name": "m", "fingerprint": "f"}, {"name": "made-up", "fingerprint": "c"}
    return study.conclude(parts, Provenance("finetuning-variants", 1, {}, *about))


def _mixed(share: float) -> float:
    """Where the mean of two uniform numbers lies below with this probability."""
    return math.sqrt(share / 2) if share <= 0.5 else 1 - math.sqrt((1 - share) / 2)


def of_task(
    task: str,
    right: Mapping[str, float] | float = PLAIN_SCORE,
    *,
    model: str = "m",
    settings: Mapping[str, object] | None = None,
    data: Mapping[str, str] | None = None,
    ways: tuple[str, ...] = CLAIMED,
    seeds: int = 3,
    n: int = 300,
    draw: int = 0,
    constant: float = 0.5,
    luck: dict[str, float] | float = 0.005,
    failing: float = 0.0,
) -> Result:
    """One result as the study stores it; `settings` are other parameters than the usual ones."""
    found = made_up(
        right if isinstance(right, float) else dict(right), seeds=seeds, n=n, draw=draw,
        constant=constant, ways=ways, luck=luck, failing=failing,
    )  # fmt: skip
    study = FinetuningVariants(seeds=seeds, ways=ways, intermediate="another")
    found.arrays.attrs["task"] = task
    about = replace(
        found.provenance,
        parameters={**study.parameters, **(settings or {})},
        model={"name": model, "fingerprint": model},
        corpus={"name": task, "fingerprint": task},
        ingredients={"training_data": f"{task}-train", **(data or {})},
    )
    return replace(found, provenance=about)


def over_tasks(
    gains: Sequence[Mapping[str, float]],
    *,
    draw: int = 0,
    unlearnt: int = 0,
    sizes: Sequence[int] = (),
    seeds: int = 3,
    n: int = 300,
    luck: dict[str, float] | float | Sequence[dict[str, float] | float] = 0.005,
    failing: float = 0.0,
) -> Result:
    """One task for each of `gains` over plain fine-tuning, by variant.

    On so many tasks, the last ones, plain fine-tuning is no better than a constant answer
    (`unlearnt`). `sizes` are the examples that score each task, and `luck` may be one for each.
    """
    found = []
    for at, gain in enumerate(gains):
        own = luck if isinstance(luck, float | dict) else luck[at]
        found.append(
            of_task(
                f"task-{at}", {name: PLAIN_SCORE + more for name, more in gain.items()},
                draw=101 * draw + at, seeds=seeds, n=sizes[at] if sizes else n, luck=own,
                constant=0.9 if at >= len(gains) - unlearnt else 0.5, failing=failing,
            )
        )  # fmt: skip
    return VariantTasks().join(found)
