"""Nulls of numeracy: random models, values of other numbers, states of noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import test_number_words as simulated

import made_numbers
import planted_links
from bertology.data.corpus import Corpus
from bertology.studies.probing.numeracy import Numeracy
from nulls import HOLDS, Null, judged
from nulls.models import encoder, mini, random_model


@cache
def _whole(kind: str) -> dict[str, Corpus]:
    return Numeracy().splits(made_numbers.corpus(kind))


def _asked(seed: int, reader: object, splits: dict[str, Corpus], copies: int) -> Mapping[str, str]:
    study = Numeracy(writings=("pieces", "digits"), seeds=4, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Numeracy, "splits", lambda study, corpus: splits)
        patch.setattr(Numeracy, "copies", copies)
        return judged("numeracy", planted_links.ask(study, reader, splits["near"]))


def random_numbers(seed: int) -> Mapping[str, str]:
    """A random model tells digits in their places, but no more than its shuffled weights do."""
    kind = ("values", "lists", "sums")[seed % 3]
    splits = made_numbers.some(_whole(kind), seed)
    return _asked(seed, encoder(random_model(seed)), splits, Numeracy.copies)


def other_values(seed: int) -> Mapping[str, str]:
    """The bundled model is asked for values that were dealt out anew among all numbers."""
    splits, rng = made_numbers.some(_whole("values"), seed), np.random.default_rng(seed)
    dealt = {}
    for role, texts in splits.items():
        labels = np.array([float(e.label or 0) for e in texts])
        for group in made_numbers.GROUPS:
            own = [e.get("group") == group for e in texts]
            labels[own] = rng.permutation(labels[own])
        made = [replace(e, label=float(x)) for e, x in zip(texts, labels, strict=True)]
        dealt[role] = replace(texts, examples=made)
    return _asked(seed, mini(), dealt, 4)


def noise_of_numbers(seed: int) -> Mapping[str, str]:
    """Every number has a random vector, the same wherever it stands."""
    kind = ("values", "lists", "sums")[seed % 3]
    with pytest.MonkeyPatch.context() as patch:
        found = made_numbers.ask(
            patch,
            made_numbers.nothing,
            made_numbers.corpus(kind),
            writings=("pieces", "digits"),
            seed=seed,
        )
    return judged("numeracy", found)


def random_number_words(seed: int) -> Mapping[str, str]:
    """A random masked language model likes some number words for no reason."""
    return judged("number-words", simulated.chance(seed))


_FALSE = dict.fromkeys(
    (
        "numbers-are-decoded",
        "larger-numbers-are-not-decoded",
        "decimals-are-decoded-worse",
        "digits-apart-are-decoded-better",
    ),
    HOLDS,
)

NULLS = (
    Null("random model (numeracy)", random_numbers, _FALSE),
    Null("values of other numbers (numeracy)", other_values, _FALSE),
    Null("random vectors (numeracy)", noise_of_numbers, _FALSE),
    Null(
        "random model (number words)",
        random_number_words,
        {"number-words-are-known": HOLDS},
    ),
)
