"""Static vectors of texts: the model's own input embeddings, or those of a file of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bertology.data.corpus import Corpus
from bertology.data.static_vectors import read_word_vectors, split_words
from bertology.errors import DataError
from bertology.model.encoder import Encoder

PADDING, UNKNOWN = 0, 1  # rows of zeros


@dataclass(frozen=True)
class StaticTable:
    """One row for each word or piece; the first two are zeros: padding, and what has no vector."""

    matrix: Tensor  # (V, D) float32
    numbers: Callable[[Sequence[str]], list[list[int]]]
    """The rows of each text."""

    def covered(self, corpus: Corpus) -> float:
        """The share of words that have a vector."""
        rows = self.numbers([text for example in corpus for text in example.texts])
        every = [number for row in rows for number in row]
        return 1 - every.count(UNKNOWN) / max(1, len(every))


def vectors_for(encoder: Encoder, corpora: Sequence[Corpus], file: str = "") -> StaticTable:
    """The vectors of the texts of these corpora; without a file, the encoder's own."""
    return _of_file(file, corpora) if file else _of_model(encoder)


def _of_model(encoder: Encoder) -> StaticTable:
    """Input embeddings, of one spread: as they are small, a classifier would learn slowly."""
    encoder.require_tokenizer()
    weight = encoder.model.get_input_embeddings().weight.detach().float().cpu()
    scaled = weight / weight.std().clamp(min=1e-12)
    matrix = torch.cat([torch.zeros(2, weight.shape[1]), scaled])

    def numbers(texts: Sequence[str]) -> list[list[int]]:
        found = encoder.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
        return [[piece + 2 for piece in row] for row in found]

    return StaticTable(matrix, numbers)


def _of_file(name: str, corpora: Sequence[Corpus]) -> StaticTable:
    words = sorted(
        {
            word
            for corpus in corpora
            for example in corpus
            for text in example.texts
            for word in split_words(text)
        }
    )
    read = read_word_vectors(name, words)
    vectors = {word: found for word in words if (found := read.find(word)) is not None}
    if not vectors:
        raise DataError(
            f"{name} has a vector for none of the {len(words):,} words of these texts.",
            hint="Is it a file of another language, or one of ids instead of words?",
        )
    rows = {word: at for at, word in enumerate(vectors, 2)}
    matrix = torch.from_numpy(np.stack(list(vectors.values())).astype(np.float32))
    matrix = matrix / matrix.std().clamp(min=1e-12)
    matrix = torch.cat([torch.zeros(2, read.width), matrix])

    def numbers(texts: Sequence[str]) -> list[list[int]]:
        return [[rows.get(word, UNKNOWN) for word in split_words(text)] for text in texts]

    return StaticTable(matrix, numbers)
