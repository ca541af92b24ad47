"""Nulls of outlier dimensions: positions that agree by chance, random dimensions in their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial

import numpy as np
import torch
import transformers as hf

import planted_links
import planted_outliers
from bertology.results.known_claims import judge
from bertology.stats import Estimate
from bertology.stats.emergence import emergence
from bertology.stats.over_draws import in_most_rows, shared_positions
from bertology.studies.designs.parts import Gathered, gather
from bertology.studies.geometry.outlier_dimensions import OutlierDimensions
from bertology.studies.geometry.outlier_dimensions.questions import (
    DRAW,
    TOGETHER,
    dimension_sets,
)
from bertology.studies.geometry.outlier_dimensions.scores import Effects
from bertology.studies.study import Context
from nulls import HOLDS, Null, judged
from nulls.models import mini, texts

_PLACES = ("the-same-position-in-all-layers", "a-dimension-is-an-outlier-in-most-layers")
_COST = "disabling-outliers-costs-more-than-random-dimensions"
_BREAKS = tuple(f"a-{n}-of-the-weights-breaks-the-model" for n in ("millionth", "ten-thousandth"))
_LINKS = ("outliers-go-with-frequency", "outliers-write-the-sink", "the-sink-feeds-the-outliers")
_OPTIONS = {"level": 0.95, "resamples": 200}
_WIDE = 384  # so that the weights of two dimensions are below a ten-thousandth of all
_DRAWS, _TOGETHER = 47, 30  # sets measured once; those that one of them must beat


def scattered(seed: int) -> Mapping[str, str]:
    """Each layer has outlying weights (Student's, 3 degrees of freedom) at places of its own."""
    rng = np.random.default_rng(seed)
    sigmas = np.abs(rng.standard_t(3, size=((6, 12, 24)[seed % 3], (64, 192, 768)[seed // 3 % 3])))
    far = sigmas > 3
    found = {
        "shared_positions": shared_positions(far, **_OPTIONS, seed=seed),
        "layers_of_leading": in_most_rows(far, **_OPTIONS, seed=seed),
    }
    verdicts = judge("outlier-dimensions", {n: e for n, e in found.items() if e is not None})
    return {v.claim.id.partition(".")[2]: str(v.outcome) for v in verdicts}


def marked(seed: int) -> Mapping[str, str]:
    """A random model whose outliers differ in nothing: a scale of 1.001 among scales of 1."""
    torch.manual_seed(seed)
    made = hf.BertForMaskedLM(planted_outliers.model().config).eval()
    chosen = np.random.default_rng(seed).choice(planted_outliers.WIDTH, 2, replace=False)
    with torch.no_grad():
        for layer in made.bert.encoder.layer:
            layer.output.LayerNorm.weight[chosen] = 1.001
    found = planted_links.ask(
        OutlierDimensions(seed=seed, resamples=200),
        planted_outliers.encoder(made),
        planted_outliers.corpus(60, seed=seed),
    )
    return judged("outlier-dimensions", found)


def ruled(seed: int) -> Mapping[str, str]:
    """Two dimensions carry all that the model knows; two that are drawn at random are loud."""
    loud = np.random.default_rng(seed).choice(planted_outliers.WIDTH, 2, replace=False).tolist()
    made = planted_outliers.model(tuple(loud), scale=1.1, wide=_WIDE, seed=seed)
    found = planted_links.ask(
        OutlierDimensions(seed=seed, resamples=200),
        planted_outliers.encoder(made),
        planted_outliers.corpus(60, seed=seed),
    )
    return judged("outlier-dimensions", found)


def frequent(seed: int, by: str) -> Mapping[str, str]:
    """A model that knows the true frequencies of words and nothing else."""
    found = planted_links.ask(
        OutlierDimensions(seed=seed, resamples=200),
        planted_outliers.frequency_encoder(by, wide=_WIDE, seed=seed),
        planted_outliers.frequency_corpus((60, 200)[seed % 2], seed=seed),
    )
    return judged("outlier-dimensions", found)


@cache
def passes_of_mini() -> Gathered:
    """Random sets of four dimensions of `bertology-mini`, disabled once over 60 sentences.

    There are no more of them that have no dimension in common.
    """
    study = OutlierDimensions(draws=_DRAWS, examples=120)
    some = texts(0, 120)
    part = study.measure(mini("mlm"), some, "examples-000000-000060", Context())
    kept = ["losses", "right", "uninformed", "sep", "cut", "best"]
    return gather(
        {"examples-000000-000060": part}, concatenate=kept, add=["tokens", "sums", "cut_sums"]
    )


def another_draw(seed: int) -> Mapping[str, str]:
    """One random set of `bertology-mini`'s dimensions in the place of its outliers, on texts drawn
    anew.
    """
    seen, rng = passes_of_mini(), np.random.default_rng(seed)
    chosen = seen.last["chosen"].to_numpy().tolist()
    sets = dimension_sets(chosen, seen.last.sizes["width"], draws=_DRAWS, seed=0)
    drawn = [i for i, s in enumerate(sets) if s.kind == DRAW]
    order = rng.permutation(len(drawn))[: _TOGETHER + 1]
    rows = [drawn[i] for i in order]
    picked = rng.integers(len(seen["losses"]), size=len(seen["losses"]))
    arrays = {
        **seen.arrays,
        "losses": seen["losses"][picked][:, [0, *(1 + r for r in rows)]],
        "uninformed": seen["uninformed"][picked],
        "sep": seen["sep"][picked][:, [0, *(2 + i for i in order)]],
        "cut": seen["cut"][picked][:, [1 + i for i in order]],
    }
    named = [sets[r] for r in rows]
    # Activations were looked at in all dimensions of all sets: those of these sets are kept.
    before = sorted({d for s in sets if s.watched for d in s.dimensions})
    after = sorted({d for s in named for d in s.dimensions})
    arrays["sums"] = seen["sums"][:, :, [before.index(d) for d in after]]
    named[0] = replace(named[0], kind=TOGETHER, name="outliers")
    effects = Effects(
        replace(seen, arrays=arrays), named, [96] * len(named), {**_OPTIONS, "seed": seed}
    )
    lost = effects.knowledge_lost()
    found = {
        "cost_over_random": effects.cost_over_random(),
        "knowledge_lost_ten_thousandth": lost,
        "knowledge_lost_millionth": lost,
        "frequency_over_random": effects.frequency_over_random(),
        "sink_over_random": effects.sink_over_random(),
        "magnitude_over_random": effects.magnitude_over_random(),
    }
    verdicts = judge("outlier-dimensions", {n: e for n, e in found.items() if e is not None})
    return {v.claim.id.partition(".")[2]: str(v.outcome) for v in verdicts}


def drifting(seed: int) -> Mapping[str, str]:
    """A measure that drifts from step to step, at as many steps as a run may have kept."""
    rng = np.random.default_rng(seed)
    steps = np.unique(np.geomspace(1, 1e5, (5, 8, 12)[seed % 3]).astype(int))
    curve = np.cumsum(rng.standard_normal(len(steps)))
    values = [Estimate(v, v, v, 100, unit="weights") for v in curve]
    early = emergence(steps.tolist(), values, resamples=1000, seed=seed).early(steps.tolist())
    evidence = {} if early is None else {"outlier_dimensions_largest_sigma_emerges": early}
    verdicts = judge("training-steps", evidence)
    return {v.claim.id.partition(".")[2]: str(v.outcome) for v in verdicts}


NULLS = (
    Null("drift over steps", drifting, {"outliers-emerge-early": HOLDS}),
    Null("outlying weights at places of their own", scattered, dict.fromkeys(_PLACES, HOLDS)),
    Null(
        "marked dimensions of a random model",
        marked,
        dict.fromkeys((_COST, *_BREAKS, *_LINKS), HOLDS),
    ),
    Null(
        "loud at random where two dimensions rule",
        ruled,
        dict.fromkeys((_COST, *_BREAKS, *_LINKS), HOLDS),
    ),
    Null(
        "frequencies only, in the output bias",
        partial(frequent, by="bias"),
        dict.fromkeys((_COST, *_BREAKS, *_LINKS), HOLDS),
    ),
    # That this costs more than random dimensions is true; but no knowledge is lost.
    Null(
        "frequencies only, written by the outliers",
        partial(frequent, by="outliers"),
        dict.fromkeys((*_BREAKS, *_LINKS), HOLDS),
    ),
    Null(
        "random dimensions as outliers",
        another_draw,
        dict.fromkeys((_COST, *_BREAKS, *_LINKS), HOLDS),
    ),
)
