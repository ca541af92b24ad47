"""Nulls of baselines and subnetworks: methods of the same skill, whatever their names."""

from __future__ import annotations

from collections.abc import Mapping

import test_task_baselines as simple

from nulls import HOLDS, Null, judged


def same_skill(seed: int) -> Mapping[str, str]:
    """No method is better than another; which examples are hard is drawn, as is a seed's luck."""
    result = simple.made_up(dict.fromkeys(simple.METHODS, 0.7), draw=seed)
    return judged("task-baselines", result)


NULLS = (
    Null(
        "methods of the same skill",
        same_skill,
        {
            "fine-tuned-above-simple-baselines": HOLDS,
            "bilstm-above-majority": HOLDS,
            "bilstm-above-cbow": HOLDS,
        },
    ),
)
