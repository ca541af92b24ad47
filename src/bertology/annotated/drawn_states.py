"""States of a few words of each text, the same words in every model, however each cuts them up.

Studies that come back to the states of a whole corpus keep them on disk (`states.py`). Where they
are needed once, they are held for one block of texts, and two models are compared word by word:
their vocabularies and widths may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.states import Words
from bertology.annotated.words import word_batches, words_of
from bertology.data.words.piece_words import FindWords, known_words

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.data.corpus import Corpus, Example
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder


def drawn_words(
    encoders: Sequence[Encoder], corpus: Corpus, *, most: int, seed: int, start: int = 0
) -> list[list[int]]:
    """At most so many words of each example, of those that all models have pieces of.

    They are drawn by the seed and the number of the example, of which the first is `start`.
    """
    known = [words_of(encoder, corpus) for encoder in encoders]
    found = []
    for i, each in enumerate(zip(*known, strict=True)):
        shared = [
            word
            for word in range(min(len(one.alignment) for one in each))
            if all(one.alignment.pieces_of(word) for one in each)
        ]
        rng = np.random.default_rng((seed, start + i))
        drawn = rng.permutation(len(shared))[:most]
        found.append(sorted(shared[int(at)] for at in drawn))
    return found


def states_of_words(
    encoder: Encoder,
    corpus: Sequence[Example],
    words: Words,
    *,
    batch_tokens: int = 4096,
    advance: Callable[[int], None] = lambda examples: None,
    find: FindWords = known_words,
    changed: Callable[[Batch], Batch] = lambda batch: batch,
) -> NDArray[np.float32]:
    """(layers + 1, words, width): means over the pieces of each word; 0 is what enters layer 0.

    Words are in the order of the examples; `find` says which words these have, and `changed` what
    the model reads in place of a batch.
    """
    from bertology.model.reducers.unit_states import UnitStates

    ends = np.cumsum([0, *map(len, words)])
    found = np.zeros((encoder.shape.layers + 1, int(ends[-1]), encoder.shape.hidden), np.float32)

    def take(number: int, states: Tensor, *, at: NDArray[np.int64]) -> None:
        found[number, at] = states.float().cpu().numpy()

    for read in word_batches(encoder, corpus, tokens_per_batch=batch_tokens, words=find):
        rows = read.batch.indices
        groups = [
            [one.alignment.pieces_of(word) for word in words[i]]
            for i, one in zip(rows, read.examples, strict=True)
        ]
        at = np.concatenate([np.arange(ends[i], ends[i + 1]) for i in rows])
        if at.size:
            batch = changed(read.batch)
            reducer = UnitStates(batch, groups, partial(take, at=at))
            encoder.run(batch, reduce={"embeddings": reducer, "layer.*.residual": reducer})
        advance(len(read.batch))
    return found
