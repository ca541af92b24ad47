"""Does a model know more of hidden words than how frequent they are? Else it has learnt nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.studies.geometry.outlier_dimensions.questions import (
    asked_of,
    predicts_words,
    uninformed,
)

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

NO_WORDS = (
    "not judged: this model predicts no words, so it is not known whether it has learnt anything"
)
NOT_LEARNT = (
    "not judged: the model does not surely know more of hidden words than how frequent they are; "
    "places and segments move the states of any model, also of one that has learnt nothing"
)


def known_of_texts(
    encoder: Encoder,
    judged: Sequence[str],
    others: Corpus,
    *,
    hidden: float = 0.15,
    seed: int = 0,
    batch_tokens: int = 4096,
) -> NDArray[np.float64]:
    """(texts,) nats by which hidden words cost less than guessing by frequency, at the least.

    NaN for texts without a word to hide; nothing where the model predicts no words.
    """
    from bertology.data.corpus import Corpus

    if encoder.family.causal or not predicts_words(encoder):
        return np.zeros(0)
    texts = Corpus.of_texts(judged)
    guess = uninformed(encoder, texts, others)
    found = np.full(len(judged), np.nan)
    for batch in encoder.batches(texts.texts, tokens_per_batch=batch_tokens):
        asked = asked_of(encoder, batch, texts, start=0, hidden=hidden, seed=seed)
        losses, there = asked.predict().losses, asked.there
        by_guess = np.where(there, guess.losses(asked.wanted)[..., 0], 0.0).sum(1)
        with np.errstate(invalid="ignore", divide="ignore"):
            found[list(batch.indices)] = by_guess / there.sum(1) - losses
    return found
