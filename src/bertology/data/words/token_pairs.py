"""Pairs of tokens that a head may connect whatever the words mean: neighbours, repetitions, [SEP].

A set of pairs is a mask (T, T): true where attention from the row's token to the column's token
is of interest. Special tokens count as tokens here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertology.data.words.alignment import Alignment
from bertology.data.words.classes import is_punctuation
from bertology.data.words.links import Link

Mask = NDArray[np.bool_]


def at_offset(length: int, offset: int) -> Mask:
    """Each token with the one at a distance: -1 is the token before, 0 itself, 1 the next."""
    return np.eye(length, k=offset, dtype=bool)


def toward(keys: Mask, queries: Mask | None = None) -> Mask:
    """From all tokens, or only from `queries`, to each of `keys` (T,), but not to oneself."""
    pairs: Mask = np.broadcast_to(keys, (len(keys), len(keys))).copy()
    if queries is not None:
        pairs[~queries] = False
    np.fill_diagonal(pairs, False)
    return pairs


def same_token(tokens: Sequence[str], special: Sequence[bool]) -> Mask:
    """Each token that is not special with the other places where the same token occurs."""
    names, ordinary = np.array(tokens), ~np.array(special)
    pairs: Mask = (names[:, None] == names) & ordinary[:, None] & ordinary
    np.fill_diagonal(pairs, False)
    return pairs


def between_texts(texts: Sequence[int | None]) -> Mask:
    """Each token of one text of a pair with each token of the other.

    `texts` says of which text each token is, 0 or 1; None for special tokens.
    """
    first = np.array([text == 0 for text in texts])
    second = np.array([text == 1 for text in texts])
    pairs: Mask = (first[:, None] & second) | (second[:, None] & first)
    return pairs


def punctuation_pieces(
    alignment: Alignment, texts: Sequence[str], sides: Sequence[int | None]
) -> Mask:
    """(T,) the pieces that spell nothing but punctuation; `sides` says of which text each is."""
    rows = zip(alignment.piece_spans, sides, strict=True)
    return np.array(
        [
            span is not None and side is not None and is_punctuation(texts[side][slice(*span)])
            for span, side in rows
        ],
        dtype=bool,
    )


def linked_pieces(alignment: Alignment, link: Link) -> tuple[list[int], list[int]]:
    """The pieces of the words at both ends of a link; none where truncation cut the words off."""
    source, target = (
        sorted({p for w in end for p in alignment.spelling(w)})
        for end in (link.source, link.target)
    )
    return source, target
