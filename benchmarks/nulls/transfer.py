"""Nulls of zero-shot transfer: random models, tags of chance, pairs that are alike by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import test_zero_shot_transfer as planted

import planted_links
from bertology.arrays import Floats
from bertology.stats.language_pairs import Pairs
from bertology.studies.languages.zero_shot_transfer import ZeroShotTransfer
from nulls import BORDER, HOLDS, Null, at_the_truth, judged

_STUDY = replace(planted.STUDY, random_copies=5)
_LANGUAGES = 12


def random_languages(seed: int) -> Mapping[str, str]:
    """A random model learns words of one language by heart; other languages share none of them."""
    reader = planted.encoder("random", seed=seed)
    found = planted_links.ask(_STUDY, reader, planted.corpus(60, seed=seed))
    return judged("zero-shot-transfer", found)


def dealt_tags(seed: int) -> Mapping[str, str]:
    """Languages share their states, but tags are of chance."""
    reader = planted.encoder("shared", seed=seed)
    found = planted_links.ask(_STUDY, reader, planted.corpus(60, seed=seed, dealt=True))
    return judged("zero-shot-transfer", found)


def dealt_labels(seed: int) -> Mapping[str, str]:
    """Labels of texts are of chance: neither whole nor partly frozen models learn anything."""
    given, rng = planted.labelled(40), np.random.default_rng(seed)
    examples = [replace(one, label=int(rng.integers(2))) for one in given.examples]
    study = ZeroShotTransfer(seeds=3, learn="finetune", frozen=(1,), epochs=1, learning_rate=1e-3)
    reader = planted.encoder("shared", seed=seed)
    found = planted_links.ask(study, reader, replace(given, examples=examples))
    return judged("zero-shot-transfer", found)


def swapped_without_text(seed: int) -> Mapping[str, str]:
    """Each language has states of its own, and a new vocabulary sees text without any order."""
    reader = planted.encoder("own", seed=seed, mlm=True)
    study = replace(_STUDY, swap=("de", "fr"), swap_steps=20, random_copies=2)
    given = planted.corpus(60, codes=planted.CODES[:4], seed=seed)
    return judged("zero-shot-transfer", planted_links.ask(study, reader, given))


def unshared_states(seed: int) -> Mapping[str, str]:
    """Each language has states of its own: the task is learnt, and told nowhere else."""
    reader = planted.encoder("own", seed=seed)
    found = planted_links.ask(_STUDY, reader, planted.corpus(60, seed=seed))
    return judged("zero-shot-transfer", found)


def unrelated_pairs(seed: int) -> Mapping[str, str]:
    """Languages are easy or hard, and near to others or far, but one has nothing of the other.

    By turns one language or all of them are sources. What is said of a correlation is false.
    """
    rng = np.random.default_rng(seed)
    sources = range(_LANGUAGES if seed % 2 else 1)
    values, known = _drawn(rng), [_symmetric(_drawn(rng)) for _ in range(2)]
    np.fill_diagonal(values, np.nan)
    pairs = Pairs(values[: len(sources)], sources)
    found = {
        "order_correlation": pairs.relation(known[0], seed=seed),
        "order_partial": pairs.relation(known[0], [known[1]], seed=seed),
        "shared_partial": pairs.relation(known[1], [known[0]], seed=seed),
        "shared_correlation": pairs.relation(known[1], seed=seed),
        "data_correlation": pairs.relation(
            np.tile(rng.normal(size=_LANGUAGES), (_LANGUAGES, 1)), seed=seed
        ),
    }
    evidence = {name: one for name, one in found.items() if one is not None}
    return at_the_truth("zero-shot-transfer", evidence, dict.fromkeys(evidence, 0.0))


def _drawn(rng: np.random.Generator) -> Floats:
    found: Floats = 0.5 * rng.normal(size=(_LANGUAGES, _LANGUAGES)) + rng.normal(size=_LANGUAGES)
    return found


def _symmetric(values: Floats) -> Floats:
    return (values + values.T) / 2


_ALL = (
    "zero-shot-transfer", "other-scripts", "similar-orders", "similar-orders-beyond-pieces",
    "shared-pieces", "centring",
)  # fmt: skip
_RELATIONS = (
    "similar-orders", "similar-orders-beyond-pieces", "shared-pieces", "more-text",
    "shared-pieces-do-not-matter",
)  # fmt: skip

NULLS = (
    Null("random model (transfer)", random_languages, dict.fromkeys(_ALL, HOLDS)),
    Null("tags of chance (transfer)", dealt_tags, dict.fromkeys(_ALL, HOLDS)),
    Null("labels of chance (transfer)", dealt_labels, {"frozen-bottom": HOLDS}),
    Null("a vocabulary without text", swapped_without_text, {"swapped-vocabulary": HOLDS}),
    Null("languages with states of their own", unshared_states, dict.fromkeys(_ALL[:2], HOLDS)),
    Null(
        "pairs of languages that are unrelated", unrelated_pairs, dict.fromkeys(_RELATIONS, BORDER)
    ),
)
