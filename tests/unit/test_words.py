"""A corpus in pieces: words, special tokens and annotation, as the model reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tiny
from bertology.annotated.words import require_offsets, word_batches, words_of
from bertology.data.corpus import Example
from bertology.data.words.piece_words import PieceWords, words_of_first_text
from bertology.errors import CapabilityError, DataError, ModelError
from bertology.model.encoder import Encoder

PIECES = "the key ##s to cabinet are here . don ' t it is".split()
WORDS = ["The", "keys are", "here", "."]
KEYS = Example("keys", "The keys are here.", annotations={"words": WORDS})
PAIR = Example("pair", "the keys", "it is here.")


def encoder(*, side: str = "right", length: int = 64) -> Encoder:
    tokenizer = tiny.tokenizer(PIECES, max_length=length)
    tokenizer.padding_side = side
    return Encoder(tiny.model("bert"), tokenizer, name="tiny")


def spelt(read: PieceWords) -> dict[str, list[str]]:
    """The pieces of each word, both as text; words that occur once only."""
    made, tokens = read.alignment, read.encoding.tokens
    texts = [read.example.texts[made.sequence_of(w)] for w in range(len(made))]
    return {
        text[slice(*made.word_spans[w])]: [tokens[p] for p in made.pieces_of(w)]
        for w, text in enumerate(texts)
    }


def test_annotated_words_and_else_what_white_space_separates() -> None:
    plain = Example("plain", KEYS.text)
    annotated, split = words_of(encoder(), [KEYS, plain])
    assert spelt(annotated) == {
        "The": ["the"], "keys are": ["key", "##s", "are"], "here": ["here"], ".": ["."],
    }  # fmt: skip
    assert spelt(split) == {
        "The": ["the"], "keys": ["key", "##s"], "are": ["are"], "here.": ["here", "."],
    }  # fmt: skip
    assert annotated.special.tolist() == [True] + 6 * [False] + [True]
    assert words_of(encoder(), []) == []


def test_words_of_pairs_are_those_of_both_texts() -> None:
    offsets = [[0, 3], [4, 8], [9, 11], [12, 19], [19, 20]]
    known = Example("known", PAIR.text, "it is here.", annotations={"offsets": offsets})
    plain, annotated = words_of(encoder(), [PAIR, known])
    assert spelt(plain) == {
        "the": ["the"], "keys": ["key", "##s"], "it": ["it"], "is": ["is"], "here.": ["here", "."],
    }  # fmt: skip
    assert list(spelt(annotated)) == ["the", "keys", "it", "is here", "."]
    assert np.flatnonzero(plain.special).tolist() == [0, 4, 9]
    assert [text for _, text in plain.places] == [None, 0, 0, 0, None, 1, 1, 1, 1, None]
    assert plain.places[3] == ((7, 8), 0)
    first = Example("first", PAIR.text, "it is here.", annotations={"words": ["the", "keys"]})
    with pytest.raises(DataError, match="'first' is a pair whose words have no offsets"):
        words_of(encoder(), [first])
    (of_first,) = words_of(encoder(), [first], words=words_of_first_text)
    assert spelt(of_first) == spelt(plain)


def test_words_are_cut_as_the_model_reads_them() -> None:
    (read,) = words_of(encoder(length=5), [KEYS])
    assert spelt(read) == {"The": ["the"], "keys are": ["key", "##s"], "here": [], ".": []}
    (pair,) = words_of(encoder(length=7), [PAIR])
    assert [len(pieces) for pieces in spelt(pair).values()] == [1, 1, 1, 1, 0]


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_batch_knows_the_pieces_of_each_example(side: str) -> None:
    corpus = [KEYS, Example("one", "keys"), Example("long", "the keys to the cabinet are here")]
    seen = []
    for read in word_batches(encoder(side=side, length=8), corpus, tokens_per_batch=16):
        assert read.batch.encodings is not None
        for index, one, tokens in zip(
            read.batch.indices, read.examples, read.batch.tokens, strict=True
        ):
            assert one.example is corpus[index]
            assert one.encoding.tokens == tokens
            seen.append((one.example.id, len(one.special)))
    assert dict(seen) == {"keys": 8, "one": 4, "long": 8}
    assert len(seen) == 3


def test_a_text_is_tokenized_once_or_twice_where_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    made = encoder(length=8)
    kind = type(made.tokenizer)
    whole = kind.__call__

    def counted(self: Any, *given: Any, **options: Any) -> Any:
        calls.append(options.get("truncation"))
        return whole(self, *given, **options)

    monkeypatch.setattr(kind, "__call__", counted)
    assert len(list(word_batches(made, [KEYS, KEYS], tokens_per_batch=8))) == 2
    assert calls == [False]
    list(word_batches(made, [KEYS, Example("long", "the keys " * 9)]))
    assert calls == [False, False, "longest_first"]


def test_encodings_stay_with_the_batch() -> None:
    made = encoder()
    batch = made.encode(["the keys", "it"], indices=[7, 4])
    assert batch.encodings is not None
    assert [e.tokens for e in batch.encodings] == batch.tokens
    assert batch.to("cpu").encodings is batch.encodings
    assert list(batch.to("cpu").indices) == [7, 4]
    assert made.run(dict(batch.inputs)).batch.encodings is None


def test_without_offsets_there_are_no_words() -> None:
    class Slow:
        is_fast = False
        model_max_length = 64

    slow = Encoder(tiny.model("bert"), Slow(), name="slow")
    for ask in (lambda: next(word_batches(slow, [KEYS])), lambda: words_of(slow, [KEYS])):
        with pytest.raises(CapabilityError, match="'slow' does not say where its pieces come from"):
            ask()
    with pytest.raises(ModelError, match="without a tokenizer"):
        require_offsets(Encoder(tiny.model("bert"), name="none"))
