"""Nulls of what is drawn: sweeps over heads, names of map types, runs of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import test_architecture_sweep as architectures
import test_fine_tuning_starts as starts
import test_link_candidates as candidates
import test_pretraining_objectives as objectives
import xarray as xr
from ablation_power import HEADS, LAYERS, Sweep, ablated, turn_wrong, with_sets
from map_type_shares import MIXED, TRUTHS, checked, named_by, rows

from bertology.annotated.map_types.mistakes import bundled_mistakes
from bertology.data.map_labels import MAP_TYPES
from bertology.results.known_claims import load_claims
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats.named_shares import NamedShares
from bertology.studies.attention.map_types import _FORMED
from bertology.studies.joins.head_profile import HeadProfile
from bertology.studies.joins.task_comparison import TaskComparison
from nulls import ANY, BORDER, FAILS, HOLDS, Null, at_the_truth, judged

EXAMPLES, ALL = 400, LAYERS * HEADS
RIGHT = 0.907  # the share of right answers of a sweep
WHERE = np.indices((LAYERS, HEADS)).reshape(2, -1)
COMMON = (0.37, 0.30, 0.04, 0.14, 0.15)  # shares of map types

Plant = Callable[[np.ndarray, np.ndarray, np.random.Generator], None]


def lose(share: float) -> Plant:
    """So large a share of all answers turns wrong in the long run."""

    def plant(odds: np.ndarray, intact: np.ndarray, rng: np.random.Generator) -> None:
        hit = (rng.random(odds.size) < share / RIGHT) & (odds > 0)
        odds[hit] = -odds[hit]

    return plant


# ---------------------------------------------------------------- sweeps


def sweeps(seed: int, **how: Any) -> Mapping[str, str]:
    """No head, layer or set does anything on average."""
    sweep = Sweep(seed, EXAMPLES, **how)
    return {
        **judged("head-ablation", ablated(sweep, None)),
        **judged("head-sets", with_sets(sweep, None)),
    }


def other_scores(seed: int) -> Mapping[str, str]:
    """The same where scores are no means: F1 of a strong and of a weak model, Matthews."""
    worlds: tuple[dict[str, Any], ...] = (
        {"metric": "f1", "positive": 0.7},
        {"metric": "f1", "middle": 0.9},
        {"metric": "matthews", "positive": 0.7},
    )
    return sweeps(seed, **worlds[seed % len(worlds)])


def just_harmful(seed: int) -> Mapping[str, str]:
    """Just over half of the heads cost one answer in a hundred, as do half of all sets."""
    sweep, half = Sweep(seed, 2000), range(ALL // 2 + 1)
    plant = lose(0.01)
    found = with_sets(Sweep(seed, 2000), lose(0.02))  # a mean of 0.01 over the sets of a size
    return {
        **judged("head-ablation", ablated(sweep, plant, planted=half)),
        **judged("head-sets", found),
    }


def shift(share: float, by: float) -> Plant:
    """The odds of the right answer change in so many examples."""

    def plant(odds: np.ndarray, intact: np.ndarray, rng: np.random.Generator) -> None:
        hit = rng.random(odds.size) < share
        odds[hit] = intact[hit] + by

    return plant


def loss_just_matters(seed: int) -> Mapping[str, str]:
    """A head and a layer change the loss of three examples in a hundred for the worse; or better.

    What they do to other examples has no direction, and is made smaller by as many examples.
    """
    by = -3.0, 3.0
    worse, better = (
        judged("head-ablation", ablated(Sweep(seed, 2000), shift(0.031, one))) for one in by
    )
    return {
        **worse,
        "disabling-some-heads-lowers-the-loss": better["disabling-some-heads-lowers-the-loss"],
    }


def made(study: str, columns: Mapping[str, Any], task: str = "simulated") -> Result:
    """A table of heads, as a join reads it."""
    table = pd.DataFrame({"layer": WHERE[0], "head": WHERE[1], **columns})
    corpus = {"name": task, "fingerprint": task}
    about = Provenance(study, 1, {}, {"name": "simulated", "fingerprint": "0"}, corpus)
    facts = {"level": 0.95, "informed": 1, "examples": EXAMPLES, "margin": 0.01}
    return Result(about, {"heads": table}, xr.Dataset(attrs=facts))


def profile(seed: int, plant: Plant | None = None) -> Mapping[str, str]:
    """Which heads are heterogeneous, and which two follow a relation, is drawn.

    The effect, if there is one, is that of the relation heads.
    """
    rng = np.random.default_rng([seed, 1])
    chosen = rng.choice(ALL, 2, replace=False)
    follows = np.isin(np.arange(ALL), chosen)
    columns = {"weight": 0.3 * follows, "excess": 0.2 * follows}
    relations = made("relation-heads", columns | {"sure": follows, "above_percentile": follows})
    types = made("map-types", {"type": rng.choice(np.array(MAP_TYPES), ALL, p=COMMON)})
    sweep = Sweep(seed, EXAMPLES if plant is None else 2000)
    effects = ablated(sweep, plant, planted=chosen.tolist())
    found = HeadProfile(resamples=1000, seed=seed).join([effects, relations, types])
    return judged("head-profile", found)


def other_heads(seed: int) -> Mapping[str, str]:
    """Each of two tasks misses five heads of its own."""
    results = [
        ablated(
            Sweep(1000 * seed + at, EXAMPLES),
            turn_wrong,
            planted=range(20 * at, 20 * at + 5),
            task=f"task {at}",
        )
        for at in range(2)
    ]
    return judged("task-comparison", TaskComparison(resamples=1000).join(results))


def same_types(seed: int, kappa: float) -> Mapping[str, str]:
    """Heads of two tasks are of the same type by so much more than by chance."""
    rng, names = np.random.default_rng(seed), np.array(MAP_TYPES)
    one, other = (rng.choice(names, ALL, p=COMMON) for _ in range(2))
    same = np.where(rng.random(ALL) < kappa, one, other)
    results = [made("map-types", {"type": t}, task) for t, task in ((one, "a"), (same, "b"))]
    return judged("task-comparison", TaskComparison(resamples=1000, seed=seed).join(results))


def half_diagonal(seed: int) -> Mapping[str, str]:
    """One to eight candidates; in the long run half of the maps of each are diagonal."""
    rng, size = np.random.default_rng(seed), candidates.WHERE.shape[1]
    found = np.isin(np.arange(size), rng.choice(size, 1 + seed % 8, replace=False))
    share = np.where(found, rng.binomial(100, 0.5, size) / 100, 0.05)
    outcomes = {}
    for relation in ("verb-subject", "noun-pronoun"):
        types = candidates.types(np.ones(size, bool), share)
        joined = candidates.joined(candidates.links(found, relation), types)
        name = f"{relation}-candidates-are-diagonal"
        outcomes[name] = judged("link-candidates", joined)[name]
    return outcomes


# ---------------------------------------------------------------- map types


def named_types(seed: int) -> Mapping[str, str]:
    """A network whose mistakes differ from model to model names the maps of one more model."""
    chance, table = np.random.default_rng(seed), bundled_mistakes().table
    truth = np.array(list(TRUTHS.values())[seed % len(TRUTHS)])
    mistakes, own = checked(table, 60.0, chance), rows(table, 60.0, chance)
    named, true = named_by(truth, own, 80, chance)
    shares = NamedShares(named, mistakes)
    evidence = {
        "heterogeneous_share": shares.of(MIXED),
        "first_three_share": shares.of(*_FORMED),
    }
    borders = {
        "heterogeneous_share": float(true[MIXED]),
        "first_three_share": float(true[list(_FORMED)].sum()),
    }
    return at_the_truth("map-types", evidence, borders)


# ---------------------------------------------------------------- runs of training

_COMPARED_WITH = ("mlm-nsp", "no-nsp", "static")
NOISE = 0.03  # standard deviation of a score from run to run


def seeds_of(seed: int) -> int:
    """Three, four or five runs of each variant."""
    return 3 + seed % 3


def no_objective(seed: int) -> Mapping[str, str]:
    """No objective gains anything; where that would bear a claim out, it loses the margin."""
    losing = dict.fromkeys(("no-sentence-loss", "stream-subsampled", "unk-mask"), -0.01)
    found = objectives.planted(losing, seeds=seeds_of(seed), noise=NOISE, draw=seed)
    return judged("pretraining-objectives", found)


def no_architecture(seed: int) -> Mapping[str, str]:
    """The same for shapes and ways to train."""
    found = architectures.planted(
        0, seeds=seeds_of(seed), noise=NOISE, draw=seed, saved=0, otherwise=-0.01
    )
    return judged("architecture-sweep", found)


def no_start(seed: int) -> Mapping[str, str]:
    """No start is better than another; fine-tuning gains just the 10 points that are asked for."""
    scores = dict.fromkeys(starts.COMPARED_STARTS, 0.6)
    run = partial(starts.made_up, seeds=seeds_of(seed), noise=NOISE)
    found = judged("fine-tuning-starts", run(scores, draw=seed))
    gained = judged("fine-tuning-starts", run({**scores, "pretrained": 0.7}, draw=seed))
    return {**found, "fine-tuning-pays": gained["fine-tuning-pays"]}


def just_matters(seed: int) -> Mapping[str, str]:
    """Everything that is compared gains just the margin, so nothing is negligible."""
    how: dict[str, Any] = {"seeds": seeds_of(seed), "draw": seed, "noise": 0.003}
    gains = {name: 0.002 for name in objectives.COMPARED_OBJECTIVES if name not in _COMPARED_WITH}
    same = dict.fromkeys(starts.COMPARED_STARTS, 0.6)
    return {
        **judged("pretraining-objectives", objectives.planted(gains, **how)),
        **judged("architecture-sweep", architectures.planted(0.002, **how)),
        **judged("fine-tuning-starts", starts.made_up({**same, "pretrained": 0.61}, **how)),
    }


def _of(study: str, outcomes: frozenset[str] = HOLDS) -> dict[str, frozenset[str]]:
    return {c.id.partition(".")[2]: outcomes for c in load_claims() if c.study == study}


def _with_margin(*studies: str) -> list[str]:
    found = [c for c in load_claims() if c.study in studies and c.rule.margin is not None]
    return [c.id.partition(".")[2] for c in found if not c.rule.quantity.startswith("layers_over")]


_SMALLER = frozenset({"fails", "negligible"})
_LOSSES = tuple(
    f"disabling-{n}-the-loss" for n in ("some-heads-raises", "some-heads-lowers", "a-layer-raises")
)
_TRIALS = ("pretraining-objectives", "architecture-sweep", "fine-tuning-starts")
_HARMLESS = (
    "disabling-one-head-is-mostly-harmless",
    "disabling-several-heads-is-harmless",
    "most-heads-can-be-zeroed",
)
_ABLATIONS = {**_of("head-ablation"), **_of("head-sets"), **dict.fromkeys(_HARMLESS, FAILS)}
_ALL_ABLATIONS = {**_of("head-ablation", ANY), **_of("head-sets", ANY)}
_CANDIDATES = tuple(f"{n}-candidates-are-diagonal" for n in ("verb-subject", "noun-pronoun"))
_MATTER = (
    "disabling-heterogeneous-heads-hurts-more",
    "disabling-heterogeneous-heads-raises-the-loss-more",
)
_LIKE_LOSS = (
    "disabling-relation-heads-raises-the-loss-like-others",
    "disabling-relation-heads-leaves-the-loss",
)
_LIKE = (
    "disabling-relation-heads-is-harmless",
    "disabling-relation-heads-hurts-no-more-than-others",
    "relation-heads-need-not-contribute",
    "important-heads-can-be-zeroed",
)
_MAP_TYPES = (
    "heterogeneous-maps-are-32-to-61-per-cent",
    "first-three-map-types-are-common",
    "most-maps-are-not-heterogeneous",
    "most-heads-are-not-informative",
)


NULLS = (
    Null("answers drawn anew", sweeps, _ABLATIONS),
    Null("answers drawn anew, F1 and Matthews", other_scores, _ABLATIONS),
    Null("permuted labels", partial(sweeps, middle=0.0), _ALL_ABLATIONS),
    Null("the loss is just the margin", just_harmful, dict.fromkeys(_HARMLESS, HOLDS)),
    Null("the loss changes by the margin", loss_just_matters, dict.fromkeys(_LOSSES, _SMALLER)),
    Null(
        "roles of heads shuffled",
        profile,
        {**dict.fromkeys(_MATTER, HOLDS), **dict.fromkeys((*_LIKE, *_LIKE_LOSS), FAILS)},
    ),
    Null(
        "relation heads lose just the margin",
        partial(profile, plant=lose(0.01)),
        dict.fromkeys(_LIKE, HOLDS),
    ),
    Null(
        "relation heads raise the loss by just the margin",
        partial(profile, plant=shift(0.031, -3.0)),
        dict.fromkeys(_LIKE_LOSS, HOLDS),
    ),
    Null("each task misses other heads", other_heads, {"two-tasks-need-the-same-head": HOLDS}),
    Null("half of the maps are diagonal", half_diagonal, dict.fromkeys(_CANDIDATES, BORDER)),
    Null(
        "types of heads shuffled",
        partial(same_types, kappa=0.0),
        {"heads-keep-their-map-type-over-tasks": HOLDS},
    ),
    Null(
        "κ is just 0.6",
        partial(same_types, kappa=0.6),
        {"heads-keep-their-map-type-over-tasks": HOLDS},
    ),
    Null(
        "border at the truth (map types)",
        named_types,
        dict.fromkeys(_MAP_TYPES, BORDER),
    ),
    Null("no objective gains", no_objective, _of("pretraining-objectives")),
    Null("no shape or trick gains", no_architecture, _of("architecture-sweep")),
    Null("no start gains", no_start, _of("fine-tuning-starts")),
    Null(
        "all gain just the margin",
        just_matters,
        dict.fromkeys(_with_margin(*_TRIALS), _SMALLER),
    ),
)
