"""Nulls of explanations: orders that all are of chance, classifiers that know nothing or read by
attention alone, and other attention exactly at the border."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

import planted_explanations as made
import planted_links
from bertology.results.provenance import Provenance
from bertology.studies.attention.attention_explanations import AttentionExplanations
from bertology.studies.attention.attention_explanations.scores import NAMES, PLACES, SCORES
from nulls import BORDER, HOLDS, Null, judged

_EXAMPLES = 80
_QUICK = {"resamples": 200, "orders": 2, "permutations": 1, "search_steps": 20, "path_steps": 4}


def _scores(rng: np.random.Generator, size: int) -> np.ndarray:
    """(example, method, score): each method by chance, in texts that are easy or hard for all.

    Most answers lose next to nothing without some words, a few lose all; many never flip.
    """
    shape = (size, len(NAMES))
    hard = rng.beta(0.3, 0.9, size)[:, None]
    lost = np.clip(hard * rng.beta(0.4, 0.8, shape), 0, 1)
    alone = np.clip(hard * rng.beta(0.4, 0.8, shape), 0, 1)
    flips = rng.random(shape) < hard
    erased = np.where(flips, rng.choice([0.05, 0.1, 0.2, 0.3, 0.5, 0.75], shape), 1.0)
    tau = np.clip(rng.normal(0.1 * hard, 0.4, shape), -1, 1)
    precision, f1 = rng.beta(0.8, 2.0, shape), rng.choice([0.0, 0.25, 0.5, 1.0], shape)
    sizes = np.clip(rng.normal(0.1 * hard, 0.4, shape), -1, 1)
    erased[rng.random(size) < 0.4] = np.nan  # answers that stay without any word
    by_name = dict(zip(SCORES, (lost, alone, erased, tau, sizes, precision, f1), strict=True))
    return np.stack([by_name[name] for name in SCORES], axis=-1)


def _divergence(rng: np.random.Generator, size: int) -> np.ndarray:
    """Of mean one half: for most texts none or nearly all."""
    return rng.beta(0.6, 0.6, size)


def by_chance(seed: int) -> Mapping[str, str]:
    """A good classifier, all of whose explanations are of chance; training moves as search does."""
    rng, study = np.random.default_rng(seed), AttentionExplanations(**_QUICK, adversary=2)
    size = _EXAMPLES
    label = rng.integers(0, 2, size).astype(float)
    right = rng.random(size) < 0.85
    single = {
        "answer": np.where(right, label, 1 - label),
        "probability": rng.beta(5, 1, size),
        "words": rng.integers(5, 30, size).astype(float),
        "flips": rng.integers(0, 2, size).astype(float),
        "found": _divergence(rng, size),
        "moved": rng.random(size) / 100,
        "found_changed": np.zeros(size),
        "other_top": rng.integers(0, 2, size).astype(float),
    }
    part = xr.Dataset(
        {
            "scores": (("example", "method", "score"), _scores(rng, size)),
            "permuted": (("example", "place", "what"), rng.random((size, len(PLACES), 3))),
            "label": ("example", label),
            **{name: ("example", values) for name, values in single.items()},
        },
        coords={"method": list(NAMES), "score": list(SCORES), "place": list(PLACES)},
        attrs={"task": "made up"},
    )
    names = ("divergence", "variation", "changed", "found_as_near")
    moved, changed = rng.random(size) / 10, rng.integers(0, 2, size).astype(float)
    values = (_divergence(rng, size), moved, changed, _divergence(rng, size))
    trained = xr.Dataset({n: ("example", v) for n, v in zip(names, values, strict=True)})
    about = Provenance(
        study="attention-explanations",
        study_version=study.version,
        parameters=study.parameters,
        model={"name": "made up", "fingerprint": "0"},
        corpus={"name": "made up", "fingerprint": "0"},
    )
    found = study.conclude({f"examples-000000-{size:06d}": part, "adversary": trained}, about)
    return judged("attention-explanations", found)


def random_classifier(seed: int) -> Mapping[str, str]:
    """Random weights: there is no answer to explain, and nothing may be said of it."""
    study = AttentionExplanations(**_QUICK, seed=seed)
    given = made.corpus(30, seed=seed)
    return judged(
        "attention-explanations",
        planted_links.ask(study, made.encoder(made.by_chance(seed)), given),
    )


def reads_by_attention(seed: int) -> Mapping[str, str]:
    """The attention that is shown is what the answer is read by: no other gives the same one."""
    study = AttentionExplanations(**_QUICK, seed=seed)
    given = made.corpus(30, seed=seed)
    return judged(
        "attention-explanations",
        planted_links.ask(study, made.encoder(made.reads_one_word()), given),
    )


_COMPARED = (
    "attention-beats-chance-as-explanation",
    "attention-agrees-less-with-leaving-out-than-gradients",
    "erasing-by-attention-needs-more-words",
    "training-moves-attention-less-than-search",
    "norms-explain-better-than-weights",
    "attention-agrees-with-human-rationales",
)
_OTHER = "other-attention-gives-the-same-answer"
_MORE = ("erasing-by-attention-needs-more-words", "norms-explain-better-than-weights")

NULLS = (
    Null(
        "explanations of chance",
        by_chance,
        {**dict.fromkeys(_COMPARED, HOLDS), _OTHER: BORDER},
    ),
    Null(
        "random classifier (explanations)",
        random_classifier,
        dict.fromkeys((*_COMPARED, _OTHER), HOLDS),
    ),
    Null(
        "attention that is read by (explanations)",
        reads_by_attention,
        dict.fromkeys((*_MORE, _OTHER), HOLDS),
    ),
)
