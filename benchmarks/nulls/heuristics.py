"""Nulls of heuristics: runs with known habits, in which what a claim says is not so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import test_model_sizes as made_sizes

import made_heuristics as made
from bertology.studies.joins.model_sizes import ModelSizes
from nulls import FAILS, HOLDS, Null, judged

_USE = ("bert-learns-shallow-heuristics", "lexical-overlap-misleads")
_HELP, _DATA = "no-modelling-approach-helps", "shortcuts-in-data-are-learnt"
_BESIDE = ("hypothesis-only", "overlap-only")
_LARGER, _THESE = "larger-models-generalise-better", "the-larger-of-these-models-do-better"
Habits = dict[str, tuple[float, float, float, float]]


def _judged(seed: int, habits: Habits, **how: Any) -> Mapping[str, str]:
    """Three, four or five seeds; three or four subcases."""
    sizes = {"seeds": 3 + seed % 3, "cases": 3 + seed % 2, "without": _BESIDE, **how}
    return judged("heuristics", made.made_up(habits, draw=seed, **sizes))


def _all(habit: tuple[float, float, float, float]) -> Habits:
    return dict.fromkeys(made.AS_PUBLISHED, habit)


def nothing_learnt(seed: int) -> Mapping[str, str]:
    """Every answer to everything is drawn by chance, as with shuffled labels or a random model."""
    return _judged(seed, _all((0.5, 0.5, 0.5, 0.5)))


def always_entailed(seed: int) -> Mapping[str, str]:
    """The task is learnt, but everything here is said to be entailed, controls too."""
    return _judged(seed, _all((0.9, 0.9, 0.9, 0.9)))


def structure_is_seen(seed: int) -> Mapping[str, str]:
    """Pairs that mislead are told as well as controls, whatever was learnt from."""
    return _judged(seed, _all((0.9, 0.1, 0.1, 0.9)))


def helped_by_the_margin(seed: int) -> Mapping[str, str]:
    """One way gains just 5 points, the others nothing."""
    plain, helped = (0.9, 0.6, 0.1, 0.9), (0.9, 0.5, 0.1, 0.9)
    same = dict.fromkeys(made.WAYS, plain)
    return _judged(seed, {"vanilla": plain, **same, "hex": helped}, each=100, luck=0.003)


def used_by_the_margin(seed: int) -> Mapping[str, str]:
    """Heuristics are used, and counterexamples help, by just 5 points: not negligible."""
    plain, taught = (0.8, 0.25, 0.2, 0.9), (0.85, 0.2, 0.2, 0.9)
    habits = _all(plain) | {f"taught-{name}": taught for name in made.GROUPS}
    return _judged(seed, habits, each=150, luck=0.003, spread=0.02)


def runs_collapse(seed: int) -> Mapping[str, str]:
    """Structure is seen, but one run in six says the same of everything."""
    return _judged(seed, _all((0.9, 0.1, 0.1, 0.9)), failing=1 / 6)


def subcases_differ(seed: int) -> Mapping[str, str]:
    """Some subcases are called entailed far more often than others, but on the whole none more."""
    return _judged(seed, _all((0.5, 0.5, 0.5, 0.9)), spread=0.2)


def taught_nothing(seed: int) -> Mapping[str, str]:
    """Heuristics are used; models with counterexamples learn nothing, so show no shortcut."""
    nothing = {f"taught-{name}": (0.5, 0.5, 0.5, 0.5) for name in made.GROUPS}
    return _judged(seed, nothing)


def _joined(seed: int, alarms: list[float], **how: Any) -> Mapping[str, str]:
    """Models of as many sizes, by how often each calls "entailed" what is not."""
    sizes = {"seeds": 3 + seed % 3, "cases": 3 + seed % 2, "luck": 0.01, "spread": 0.04, **how}
    habits = [(0.9, alarm, 0.1, 0.9) for alarm in alarms]
    results = made_sizes.of_models(habits, draw=seed, **sizes)
    return judged("model-sizes", ModelSizes().join(results))


def sizes_do_not_matter(seed: int) -> Mapping[str, str]:
    """Four or five models that are the same but for their seeds."""
    return _joined(seed, [0.5] * (4 + seed % 2))


def models_differ_by_chance(seed: int) -> Mapping[str, str]:
    """Four or five models with other habits, which have nothing to do with their sizes."""
    rng = np.random.default_rng([seed, 1])
    return _joined(seed, list(rng.normal(0.5, 0.1, 4 + seed % 2)), each=40)


def sizes_help_by_the_margin(seed: int) -> Mapping[str, str]:
    """Each doubling adds just one point to the score: it is not negligible."""
    alarms = [0.5 - 0.02 * at for at in range(5)]
    return _joined(seed, alarms, each=150, luck=0.003, spread=0.01)


_UNDER = frozenset({"fails", "negligible"})
NULLS = (
    Null(
        "nothing of inference is learnt, so no heuristic",
        nothing_learnt,
        dict.fromkeys((*_USE, _HELP, _DATA), HOLDS),
    ),
    Null("everything is called entailed", always_entailed, dict.fromkeys((*_USE, _DATA), HOLDS)),
    Null("structure is seen", structure_is_seen, dict.fromkeys((*_USE, _DATA), HOLDS)),
    Null("one way helps by the margin", helped_by_the_margin, {_HELP: HOLDS | FAILS}),
    Null(
        "heuristics are used by the margin",
        used_by_the_margin,
        dict.fromkeys((*_USE, _DATA), _UNDER),
    ),
    Null("runs of inference collapse", runs_collapse, dict.fromkeys((*_USE, _DATA), HOLDS)),
    Null(
        "subcases differ, heuristics do not",
        subcases_differ,
        {**dict.fromkeys((*_USE, _DATA), HOLDS), _HELP: FAILS},
    ),
    Null("counterexamples are not learnt", taught_nothing, {_DATA: _UNDER}),
    Null(
        "models of all sizes are alike",
        sizes_do_not_matter,
        dict.fromkeys((_LARGER, _THESE), HOLDS | FAILS),
    ),
    Null("models differ, but not by size", models_differ_by_chance, {_LARGER: HOLDS | FAILS}),
    Null(
        "each doubling helps by the margin",
        sizes_help_by_the_margin,
        dict.fromkeys((_LARGER, _THESE), _UNDER),
    ),
)
