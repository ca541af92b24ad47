"""Nulls of compression: models of the same skill, models at a claim's border, and lucky seeds."""

from __future__ import annotations

from collections.abc import Mapping

import made_compression_tables as tables
from nulls import BORDER, FAILS, HOLDS, Null, at_the_truth, judged

_STUDY, _JOIN = "compression-table", "compression-tasks"
_SEEDS = (3, 4, 5)
_KEPT = {
    "pkd-half": "pkd-half", "pkd-quarter": "pkd-quarter", "distilbert": "distilbert",
    "bert-192": "bert-192", "bert-48": "bert-48", "tinybert": "tinybert",
    "minilm-half": "minilm", "bilstm-soft": "bilstm", "q-bert": "q-bert", "q8bert": "q8bert",
    "gobo": "gobo", "mccarley": "structured-pruning", "mvp": "movement-pruning",
    "imp": "rewinding", "albert": "albert", "theseus-half": "theseus", "power-bert": "power-bert",
}  # fmt: skip
"""The claim on each row, without its ending."""
_CLAIMS = tuple(f"{claim}-keeps" for claim in _KEPT.values())
_TEACHER = 0.8


def same_skill(seed: int) -> Mapping[str, str]:
    """All rows are as good as the teacher, with a teacher or without."""
    return judged(_STUDY, tables.made_up(0.75, seeds=_SEEDS[seed % 3], draw=seed))


def lucky_seeds(seed: int) -> Mapping[str, str]:
    """The same, and every run has much luck of its own, by which the best is picked."""
    return judged(_STUDY, tables.made_up(0.75, seeds=_SEEDS[seed % 3], draw=seed, luck=0.02))


def failing_seeds(seed: int) -> Mapping[str, str]:
    """The same, and one run in ten fails, of the teacher as of all rows."""
    return judged(_STUDY, tables.made_up(0.75, seeds=_SEEDS[seed % 3], draw=seed, failing=0.1))


def at_the_borders(seed: int) -> Mapping[str, str]:
    """Every row keeps 95 % of the score; borders are put there."""
    shares = {"teacher": _TEACHER} | dict.fromkeys((*_KEPT, "soft-half"), 0.95 * _TEACHER)
    found = tables.made_up(shares, seeds=_SEEDS[seed % 3], draw=seed, n=277, luck=0.01)
    names = [f"{row.replace('-', '_')}_kept" for row in _KEPT]
    return at_the_truth(_STUDY, found.evidence(), dict.fromkeys(names, 0.95))


def best_at_the_border(seed: int) -> Mapping[str, str]:
    """All small models keep just 97 % of the score."""
    shares = {"teacher": _TEACHER} | dict.fromkeys((*_KEPT, "soft-half"), 0.97 * _TEACHER)
    found = tables.made_up(shares, seeds=_SEEDS[seed % 3], draw=seed, luck=0.01)
    return judged(_STUDY, found)


def fewer_bits(seed: int) -> Mapping[str, str]:
    """8-bit models are but twice as small, and three bits make a model just 1.2 times as fast."""
    found = tables.made_up(
        seeds=3, draw=seed, faster={"gobo": 1.2}, bytes_per_weight={"q8bert": 2.0}
    )
    return judged(_STUDY, found)


def half_of_the_tasks(seed: int) -> Mapping[str, str]:
    """Students gain much on two of four tasks, and nothing on the others."""
    return judged(_JOIN, tables.over_tasks((0.1, 0.1, 0.0, 0.0), draw=seed))


def no_task(seed: int) -> Mapping[str, str]:
    """Students gain nothing on any task: with a teacher or without, it is the same."""
    return judged(_JOIN, tables.over_tasks((0.0,) * 4, draw=seed))


_ALIKE = {
    **dict.fromkeys(_CLAIMS, FAILS),
    "small-loss": FAILS,
    "teachers-help": HOLDS,
    "states-help": HOLDS,
}

NULLS = (
    Null("compressed models as good as the teacher", same_skill, _ALIKE),
    Null("compressed models with lucky seeds", lucky_seeds, _ALIKE),
    Null("compressed models that fail now and then", failing_seeds, _ALIKE),
    Null(
        "compressed models just at the border", at_the_borders, dict.fromkeys(_CLAIMS, BORDER)
    ),
    Null("the best small model just at the border", best_at_the_border, {"small-loss": HOLDS}),
    Null(
        "fewer bits that save little",
        fewer_bits,
        {"precision-saves-memory": HOLDS, "precision-needs-hardware": HOLDS},
    ),
    Null("students better on half of the tasks", half_of_the_tasks,
         {"teachers-help-on-most-tasks": HOLDS}),
    Null("students better on no task", no_task, {"teachers-help-on-most-tasks": HOLDS}),
)  # fmt: skip
