"""A corpus as a model reads it: batches whose examples know their words, pieces and annotation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.data.words.piece_words import FindWords, PieceWords, known_words
from bertology.errors import CapabilityError

if TYPE_CHECKING:
    from bertology.data.corpus import Example
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder


@dataclass(frozen=True)
class WordBatch:
    """What a model is run on, and what is known of each of its examples, in the same order."""

    batch: Batch
    examples: Sequence[PieceWords]


def require_offsets(encoder: Encoder) -> None:
    """Refuse a tokenizer that does not tell which characters its pieces spell."""
    encoder.require_tokenizer()
    if not getattr(encoder.tokenizer, "is_fast", False):
        raise CapabilityError(
            f"The tokenizer of {encoder.name!r} does not say where its pieces come from, so "
            "words cannot be found among them.",
            hint="Save a fast tokenizer (tokenizer.json) beside the model.",
        )


def word_batches(
    encoder: Encoder,
    corpus: Sequence[Example],
    *,
    tokens_per_batch: int = 4096,
    words: FindWords = known_words,
) -> Iterator[WordBatch]:
    """The corpus in the batches of `encoder.batches`, each example with its words and pieces.

    `words` finds the words of an example; without it they are the annotated ones, or what white
    space separates where none are annotated.
    """
    require_offsets(encoder)
    texts = [example.given for example in corpus]
    for batch in encoder.batches(texts, tokens_per_batch=tokens_per_batch):
        pairs = zip(batch.indices, batch.encodings or (), strict=True)
        yield WordBatch(batch, [PieceWords.of(corpus[i], e, words) for i, e in pairs])


def words_of(
    encoder: Encoder, corpus: Sequence[Example], *, words: FindWords = known_words
) -> list[PieceWords]:
    """The same of all examples in their order, where the model is not run on them."""
    require_offsets(encoder)
    if not corpus:
        return []
    encodings = encoder.tokenize([example.given for example in corpus]).encodings or ()
    return [PieceWords.of(x, e, words) for x, e in zip(corpus, encodings, strict=True)]
