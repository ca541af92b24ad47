"""One pass over sentences: the mean state of each after every layer, and its pieces."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bertology.studies.languages.language_space.space import Vectors

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder


def sentence_means(
    encoder: Encoder,
    corpus: Corpus,
    *,
    batch_tokens: int,
    advance: Callable[[int], None] = lambda texts: None,
) -> tuple[Vectors, list[list[int]]]:
    """(layers + 1, texts, width): means over a text's pieces, special tokens left out; the pieces.

    The first is what enters the first layer. A text without a piece stays 0.
    """
    from bertology.model.reducers.unit_states import UnitStates

    texts = corpus.texts
    found = np.zeros((encoder.shape.layers + 1, len(texts), encoder.shape.hidden), np.float32)
    pieces: list[list[int]] = [[] for _ in texts]

    def take(number: int, states: Tensor, *, into: list[int]) -> None:
        found[number, into] = states.float().cpu().numpy()

    for batch in encoder.batches(texts, tokens_per_batch=batch_tokens):
        groups = []
        for at, encoding in zip(batch.indices, batch.encodings or (), strict=True):
            own = [place for place, added in enumerate(encoding.special_tokens_mask) if not added]
            pieces[at] = [encoding.ids[place] for place in own]
            groups.append([own] if own else [])
        into = [at for at in batch.indices if pieces[at]]
        reducer = UnitStates(batch, groups, partial(take, into=into))
        encoder.run(batch, reduce={"embeddings": reducer, "layer.*.residual": reducer})
        advance(len(batch))
    return found, pieces
