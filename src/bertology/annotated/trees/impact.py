"""Impact between the words of examples, in the pieces that a model sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bertology.data.words.piece_words import PieceWords
from bertology.model.encoder import Encoder
from bertology.model.masked_lm.impact import Impact, MaskableText, impact_matrices


def word_impacts(
    encoder: Encoder,
    examples: Sequence[tuple[PieceWords, Sequence[int]]],
    *,
    measure: str = "distance",
    tokens_per_batch: int = 4096,
) -> NDArray[np.float32]:
    """(B, C, n, n) of the words that are named of each example; see `impact_matrices`."""
    texts = [
        MaskableText(
            one.encoding.ids,
            [one.alignment.pieces_of(word) for word in words],
            [int(of == 1) for of in one.encoding.sequence_ids],
        )
        for one, words in examples
    ]
    found = impact_matrices(
        encoder, texts, measure=cast("Impact", measure), tokens_per_batch=tokens_per_batch
    )
    n = max(of.shape[-1] for of in found)
    return np.stack([np.pad(of, ((0, 0), *[(0, n - of.shape[-1])] * 2)) for of in found])


def scaled(maps: NDArray[np.floating], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Impacts (B, C, n, n) as the authors' code has them before it looks for projective trees.

    They are exponentiated, and each column, a possible head, is divided by the sum of the row of
    the same word: words that others change much are made less likely heads.
    """
    there = np.arange(maps.shape[-1]) < np.asarray(sizes)[:, None]
    pairs = (there[:, :, None] & there[:, None, :])[:, None]
    most = np.where(pairs, maps, -np.inf).max(axis=(2, 3), keepdims=True)
    powers = np.where(pairs, np.exp(np.where(pairs, maps, most) - most), 0.0)
    sums = powers.sum(axis=3)[:, :, None, :]  # (B, C, 1, n)
    return np.asarray(powers / np.where(sums > 0, sums, 1.0), np.float64)
