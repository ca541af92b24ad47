"""Impact between the words of examples, in the pieces that a model sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bertology.data.words.piece_words import PieceWords
from bertology.model.encoder import Encoder
from bertology.model.masked_lm.impact import Impact, MaskableText, impact_matrices

__all__ = ["word_impacts"]


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
