"""What happens when: phases, stages, milestones."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.config import Phase, Pretraining, Stage


def phase_at(recipe: Pretraining, step: int) -> Phase:
    """The phase that the update after `step` others belongs to."""
    ends = [round(share * recipe.steps) for share in accumulate(p.share for p in recipe.phases)]
    ends[-1] = recipe.steps
    return next(
        (p for p, end in zip(recipe.phases, ends, strict=True) if step < end), recipe.phases[-1]
    )


def stage_at(stages: tuple[Stage, ...], step: int, total: int, chance: Chance) -> int:
    """Which stage has its turn: by chance, among those that have joined, by their weights."""
    joined = [i for i, s in enumerate(stages) if s.begins * total <= step]
    if len(joined) == 1:
        return joined[0]
    weights = np.array([stages[i].weight for i in joined])
    draw = np.random.default_rng(abs(chance("stage", step).key))
    return int(draw.choice(joined, p=weights / weights.sum()))


def milestones(steps: int, count: int) -> list[int]:
    """`count` steps, two to a tenfold, counted back from the last; the first is 0."""
    if count == 0:
        return []
    later = {max(1, round(steps * 10 ** (-k / 2))) for k in range(count - 1)}
    return sorted({0, *later})
