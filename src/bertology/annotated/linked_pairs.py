"""Attention between linked words, and between unlinked ones that are like them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.words import words_of
from bertology.data.words.link_moves import (
    COMPARISONS,
    LinkedPieces,
    LinkedSentence,
    comparisons,
    pieces_of,
)
from bertology.data.words.piece_words import words_of_first_text

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder


def in_pieces(
    encoder: Encoder, sentences: Sequence[LinkedSentence], direction: str
) -> list[LinkedPieces]:
    """Links between words as links between pieces; sentences in which some are cut are left out."""
    read = words_of(encoder, [s.example for s in sentences], words=words_of_first_text)
    found = [pieces_of(s, r.alignment, direction) for s, r in zip(sentences, read, strict=True)]
    return [pieces for pieces in found if pieces is not None]


def pair_weights(
    encoder: Encoder,
    sentences: Sequence[LinkedPieces],
    *,
    draws: int,
    seed: int,
    batch_tokens: int,
    done: Callable[[int], None],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(sentence, pairs, layer, head): the largest weight of linked pairs, then of each comparison.

    Of each kind of comparison `draws` are made; NaN where none is possible. And (sentence, layer,
    head): the share of the links whose other end is the word that is attended to most.
    """
    from bertology.model.reducers.class_attention import Several
    from bertology.model.reducers.link_hits import LinkedWords, MostAttended
    from bertology.model.reducers.pair_maxima import Aim, PairMaxima

    width, shape = 1 + len(COMPARISONS), encoder.shape
    if not sentences:
        empty = (0, width, shape.layers, shape.heads)
        return np.zeros(empty, np.float32), np.zeros((0, *empty[2:]), np.float32)
    wanted = [[(s.pairs, i * width)] for i, s in enumerate(sentences)]
    for i, moved in enumerate(comparisons(sentences, draws=draws, seed=seed)):
        for kind, drawn in moved.items():
            for host, pairs in drawn:
                wanted[host].append((pairs, i * width + 1 + COMPARISONS.index(kind)))
    maxima = PairMaxima(shape, len(sentences) * width)
    texts = [s.text for s in sentences]
    hits = np.zeros((len(sentences), shape.layers, shape.heads), np.float32)
    for batch in encoder.batches(texts, tokens_per_batch=batch_tokens):
        aims = [Aim(r, *a) for r, at in enumerate(batch.indices) for a in wanted[at]]
        maxima.aim(aims)
        here = [sentences[at] for at in batch.indices]
        linked = LinkedWords.over(batch, [s.pieces for s in here], [s.asked for s in here])
        followed = MostAttended(linked)
        encoder.run(batch, reduce={"layer.*.head.*.pattern": Several([maxima, followed])})
        hits[list(batch.indices)] = followed.value()
        done(len(batch))
    return maxima.means().reshape(len(sentences), width, shape.layers, shape.heads), hits
