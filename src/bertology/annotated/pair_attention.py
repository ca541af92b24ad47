"""Attention between two spans of words as what a probe is given of a layer, in the place of states.

A pair (a, b) has two numbers for each head: how much a attends to b, and b to a; the sum over words
that are attended to, the mean over those that attend. Nothing attends before the first layer, so
the input is all zeros: a probe of it can only guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.states import States
from bertology.annotated.words import require_offsets, word_batches, words_of
from bertology.arrays import Ints

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

Halves = NDArray[np.float16]
_BLOCK = 256  # texts
_NOWHERE = Path()


class WordPlaces(States):
    """Which words have states, without any state: enough to ask questions about them."""

    def __init__(self, encoder: Encoder, corpus: Corpus) -> None:
        require_offsets(encoder)
        there = [
            np.array([bool(one.alignment.pieces_of(w)) for w in range(len(one.alignment))], bool)
            for one in words_of(encoder, list(corpus))
        ]
        self.there, self.folder = np.concatenate(there), _NOWHERE
        self.counts = np.array([int(own.sum()) for own in there], np.int64)


class PairAttention(States):
    """(layers + 1, pairs, 2 × heads): one state for each pair, in the order of their texts."""

    def __init__(self, values: Halves, counts: Ints, words: States) -> None:
        self._values, self.counts = values, counts
        self.there, self.folder = words.there, words.folder  # of words, which may be missing

    @property
    def block_sizes(self) -> list[int]:
        """How many pairs each block of texts has."""
        return [
            int(self.counts[at : at + _BLOCK].sum()) for at in range(0, len(self.counts), _BLOCK)
        ]

    def block(self, number: int) -> Halves:
        """Those of one block of texts."""
        first = int(self.counts[: number * _BLOCK].sum())
        return self._values[:, first : first + self.block_sizes[number]]


def pair_attention(
    encoder: Encoder,
    corpus: Corpus,
    words: States,
    pairs: Ints,
    examples: Ints,
    *,
    batch_tokens: int = 4096,
    advance: Callable[[int], None] = lambda examples: None,
) -> tuple[PairAttention, Ints]:
    """The attention of `pairs` (R, 2, 2), and the number of each pair as a span (R, 1, 2).

    A pair is two spans of words, by the numbers of their states in `words`; `examples` (R,) are the
    texts that they stand in.
    """
    from bertology.model.reducers.word_maps import WordMaps

    order = np.argsort(examples, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    counts = np.bincount(examples, minlength=len(corpus))
    first = np.cumsum([0, *counts])
    own = (pairs - np.cumsum([0, *words.counts])[:-1][examples][:, None, None])[order]
    shape = encoder.shape
    values = np.zeros((shape.layers + 1, len(order), 2 * shape.heads), np.float16)
    for read in word_batches(encoder, corpus, tokens_per_batch=batch_tokens):
        asked = [row for row, at in enumerate(read.batch.indices) if counts[at]]
        if asked:
            batch = read.batch.only(asked)
            spelt = [
                [p for w in range(len(one.alignment)) if (p := one.alignment.pieces_of(w))]
                for one in (read.examples[row] for row in asked)
            ]
            rows = np.concatenate([np.arange(first[at], first[at + 1]) for at in batch.indices])
            text = np.repeat(np.arange(len(asked)), [counts[at] for at in batch.indices])
            take = partial(_take, text=text, spans=own[rows], rows=rows, into=values)
            encoder.run(batch, reduce={"layer.*.head.*.pattern": WordMaps(batch, spelt, take)})
        advance(len(read.batch))
    spans = np.stack([number, number + 1], axis=1)[:, None]
    return PairAttention(values, counts, words), spans


def _take(layer: int, maps: Tensor, *, text: Ints, spans: Ints, rows: Ints, into: Halves) -> None:
    """Both directions of all pairs of a batch, from maps (B, H, W, W) of one layer."""
    import torch

    # Sums of all words up to here, so that any rectangle of the map is four of them.
    sums = torch.nn.functional.pad(maps.double().cumsum(2).cumsum(3), (1, 0, 1, 0))
    at = torch.from_numpy(text).to(maps.device)
    (a, a_end), (b, b_end) = (
        [torch.from_numpy(np.ascontiguousarray(end)).to(maps.device) for end in spans[:, side].T]
        for side in (0, 1)
    )

    def attention(source: Sequence[Tensor], target: Sequence[Tensor]) -> Tensor:
        (top, bottom), (left, right) = source, target
        corners = [sums[at, :, row, column] for row in (top, bottom) for column in (left, right)]
        return (corners[3] - corners[2] - corners[1] + corners[0]) / (bottom - top)[:, None]

    both = torch.cat([attention((a, a_end), (b, b_end)), attention((b, b_end), (a, a_end))], dim=1)
    heads = maps.shape[1]  # fewer than in other layers where some were pruned
    columns = np.r_[:heads, into.shape[2] // 2 : into.shape[2] // 2 + heads]
    into[layer + 1, rows[:, None], columns] = both.half().cpu().numpy()
