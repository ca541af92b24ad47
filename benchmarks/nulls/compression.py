"""Nulls of compression: models of the same skill, models at a claim's border, and lucky seeds."""

from __future__ import annotations

import re
from collections.abc import Mapping

import made_compression_tables as tables
from bertology.results.known_claims import load_claims
from nulls import BORDER, FAILS, HOLDS, Null, at_the_truth, judged

_STUDY, _JOIN = "compression-table", "compression-tasks"
_SEEDS = (3, 4, 5)
_KEPT = {
    "pkd-half": "pkd-half", "pkd-quarter": "pkd-quarter", "distilbert": "distilbert",
    "bert-192": "bert-192", "bert-48": "bert-48", "tinybert": "tinybert",
    "minilm-half": "minilm", "bilstm-soft": "bilstm", "q-bert": "q-bert", "q8bert": "q8bert",
    "gobo": "gobo", "mccarley": "structured-pruning", "mvp": "movement-pruning",
    "imp": "rewinding", "albert": "albert", "theseus-half": "theseus", "power-bert": "power-bert",
    "layers-dropped": "layer-drop",
}  # fmt: skip
"""The claim on each row, without its ending."""
_CLAIMS = tuple(f"{claim}-keeps" for claim in _KEPT.values())
_SPEEDS = {
    c.rule.quantity: (c.id.partition(".")[2], float(c.rule.value or 0))
    for c in load_claims()
    if re.fullmatch(r"primer-compression\..*-faster", c.id)
}
"""The claim on each row's speed, and its border, by quantity."""
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


def nothing_learnt(seed: int) -> Mapping[str, str]:
    """Rows are as good as a constant answer, which has nine tenths of the teacher's score."""
    shares = {"teacher": 0.62} | dict.fromkeys((*_KEPT, "soft-half"), 0.55)
    found = tables.made_up(shares, seeds=_SEEDS[seed % 3], draw=seed, n=872, constant=0.55)
    return judged(_STUDY, found)


def numbers_at_the_borders(seed: int) -> Mapping[str, str]:
    """Answers are numbers, on scales of their own; every row has 95 % of the correlation."""
    shares = {"teacher": _TEACHER} | dict.fromkeys((*_KEPT, "soft-half"), 0.95 * _TEACHER)
    found = tables.made_up(
        shares, seeds=_SEEDS[seed % 3], draw=seed, n=400, luck=0.01, numbers=True
    )
    names = [f"{row.replace('-', '_')}_kept" for row in _KEPT]
    return at_the_truth(_STUDY, found.evidence(), dict.fromkeys((*names, "best_small_kept"), 0.95))


def one_is_best(seed: int) -> Mapping[str, str]:
    """One student keeps 97 % and is as good as without a teacher, six others are worse."""
    worse = {name: (0.97 - 0.005 * at) * _TEACHER for at, name in enumerate(tables.STUDENTS)}
    shares = {"teacher": _TEACHER} | dict.fromkeys(tables.CUT, 0.97 * _TEACHER) | worse
    found = tables.made_up(
        shares, seeds=_SEEDS[seed % 3], draw=seed, luck=0.01, methods=tables.STUDENTS, random=0.6
    )
    truth = {"best_small_kept": 0.97, "best_student_over_alone": 0.0}
    return at_the_truth(_STUDY, found.evidence(), truth)


def one_baseline_as_good(seed: int) -> Mapping[str, str]:
    """Students are as good as pre-trained layers without a teacher, and better than random ones."""
    found = tables.made_up(
        0.75, seeds=_SEEDS[seed % 3], draw=seed, luck=0.02, methods=tables.STUDENTS, random=0.6
    )
    return judged(_STUDY, found)


def numbers_one_baseline(seed: int) -> Mapping[str, str]:
    """The same where answers are numbers, on scales of their own."""
    found = tables.made_up(
        0.75, seeds=_SEEDS[seed % 3], draw=seed, luck=0.01, methods=tables.STUDENTS, random=0.3,
        numbers=True,
    )  # fmt: skip
    return judged(_STUDY, found)


def fewer_bits(seed: int) -> Mapping[str, str]:
    """8-bit models are but twice as small."""
    return judged(_STUDY, tables.made_up(seeds=3, draw=seed, bytes_per_weight={"q8bert": 2.0}))


def as_fast_as_asked(seed: int) -> Mapping[str, str]:
    """Every row is just as fast as its border asks for."""
    faster = {
        row: known[1] for row in _KEPT if (known := _SPEEDS.get(f"{row.replace('-', '_')}_faster"))
    }
    return judged(_STUDY, tables.made_up(seeds=3, draw=seed, n=300, faster=faster))


def half_of_the_tasks(seed: int) -> Mapping[str, str]:
    """Students gain much on two of four tasks, and nothing on the others."""
    return judged(_JOIN, tables.over_tasks((0.1, 0.1, 0.0, 0.0), draw=seed))


def half_of_the_tasks_picked(seed: int) -> Mapping[str, str]:
    """The same with the best of seven students, lucky seeds, and a poor second baseline."""
    found = tables.over_tasks(
        (0.1, 0.1, 0.0, 0.0), draw=seed, seeds=_SEEDS[seed % 3], students=tables.STUDENTS,
        random=0.5, luck=0.02,
    )  # fmt: skip
    return judged(_JOIN, found)


def one_task_unlearnt(seed: int) -> Mapping[str, str]:
    """Gains on two tasks, none on the third, and on the fourth the teacher learnt nothing."""
    found = tables.over_tasks(
        (0.1, 0.1, 0.0, 0.1), draw=seed, seeds=_SEEDS[seed % 3], random=0.5, luck=0.02, unlearnt=1
    )
    return judged(_JOIN, found)


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
    Null("compressed models that learnt nothing", nothing_learnt, dict.fromkeys(_CLAIMS, HOLDS)),
    Null(
        "compressed models whose numbers are just at the border",
        numbers_at_the_borders,
        dict.fromkeys((*_CLAIMS, "small-loss"), BORDER),
    ),
    Null("one student is best", one_is_best, {"small-loss": BORDER, "teachers-help": BORDER}),
    Null("students as good as one baseline", one_baseline_as_good, {"teachers-help": HOLDS}),
    Null("students whose numbers are as good as one baseline", numbers_one_baseline,
         {"teachers-help": BORDER}),
    Null("the best small model just at the border", best_at_the_border, {"small-loss": HOLDS}),
    Null("fewer bits that save little", fewer_bits, {"precision-saves-memory": HOLDS}),
    Null("compressed models just as fast as asked", as_fast_as_asked,
         dict.fromkeys((claim for claim, _ in _SPEEDS.values()), BORDER)),
    Null("students better on half of the tasks", half_of_the_tasks,
         {"teachers-help-on-most-tasks": HOLDS}),
    Null("the best of seven students better on half of the tasks", half_of_the_tasks_picked,
         {"teachers-help-on-most-tasks": HOLDS}),
    Null("students better on half of the tasks, nothing learnt on one", one_task_unlearnt,
         {"teachers-help-on-most-tasks": HOLDS}),
    Null("students better on no task", no_task, {"teachers-help-on-most-tasks": HOLDS}),
)  # fmt: skip
