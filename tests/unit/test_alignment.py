"""Words and wordpieces: laws that hold for every text and every kind of fast tokenizer."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from bertology.data.corpus import Example, Field
from bertology.data.words.alignment import (
    Alignment,
    align,
    locate,
    pool,
    split_words,
    units,
)
from bertology.data.words.piece_words import word_spans
from bertology.errors import DataError

SENTENCES = ["the keys to the cabinet are here .", "Don't you see the unbelievable cabinets?"] * 3
KINDS = ("wordpiece", "byte-level", "byte-level untrimmed", "metaspace")


@cache
def tokenizer(kind: str) -> Tokenizer:
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    if kind == "wordpiece":
        made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer(lowercase=True)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=60, special_tokens=special)
    elif kind.startswith("byte-level"):
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        made.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=300, special_tokens=special, initial_alphabet=alphabet
        )
    else:
        made = Tokenizer(models.BPE(unk_token="[UNK]"))
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=special)
    made.train_from_iterator(SENTENCES, trainer)
    template = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    if kind == "byte-level":
        trim = processors.ByteLevel(trim_offsets=True)
        made.post_processor = processors.Sequence([trim, template])
    else:
        made.post_processor = template
    return made


# Letters with and without case, marks, wide and astral characters, all sorts of white space.
TEXTS = st.text(
    st.sampled_from("abkeys tTheD'n.?!-\t\n  é߆漢字😀\u0301\xa0"), min_size=1, max_size=40
).filter(lambda t: bool(t.strip()))


def check(made: Alignment, texts: list[str]) -> None:
    """Every piece that is not special belongs to one word, and words know the same pieces."""
    for piece, span in enumerate(made.piece_spans):
        word = made.word_of(piece)
        assert (word is None) == (span is None)
        if word is not None and span is not None:
            assert [w for w in range(len(made)) if piece in made.pieces_of(w)] == [word]
            start, end = made.word_spans[word]
            assert span[0] == span[1] or (start < span[1] and span[0] < end)
    for word, (start, end) in enumerate(made.word_spans):
        assert list(made.pieces_of(word)) == sorted(set(made.pieces_of(word)))
        assert texts[made.sequence_of(word)][start:end].split() == [
            texts[made.sequence_of(word)][start:end]
        ]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(text=TEXTS)
def test_every_piece_belongs_to_one_word(kind: str, text: str) -> None:
    encoding = tokenizer(kind).encode(text)
    made = align(encoding, text)
    check(made, [text])
    # Spans are recovered: the words of the alignment are the words of the text.
    assert [text[a:b] for a, b in made.word_spans] == text.split()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(first=TEXTS, second=TEXTS)
def test_pairs(kind: str, first: str, second: str) -> None:
    encoding = tokenizer(kind).encode(first, second)
    made = align(encoding, first, second)
    check(made, [first, second])
    assert made.sequences == (0,) * len(first.split()) + (1,) * len(second.split())
    for piece, sequence in enumerate(encoding.sequence_ids):
        word = made.word_of(piece)
        assert word is None or made.sequence_of(word) == sequence


def test_repeated_words_stay_apart() -> None:
    text = "the the the"
    made = align(tokenizer("wordpiece").encode(text), text)
    assert [made.pieces_of(w) for w in range(3)] == [(1,), (2,), (3,)]
    assert [made.word_of(p) for p in range(5)] == [None, 0, 1, 2, None]


def test_truncation_and_padding() -> None:
    cut = Tokenizer.from_str(tokenizer("wordpiece").to_str())
    cut.enable_truncation(4)
    text = "the the the the"
    made = align(cut.encode(text), text)
    assert [made.pieces_of(w) for w in range(4)] == [(1,), (2,), (), ()]
    cut.no_truncation()
    cut.enable_padding(length=9, pad_id=3, pad_token="[PAD]")
    made = align(cut.encode(text), text)
    assert [made.word_of(p) for p in range(9)] == [None, 0, 1, 2, 3, None, None, None, None]


def test_pieces_across_words_belong_to_the_larger_share() -> None:
    class Fixed:
        offsets = ((0, 0), (0, 3), (3, 5), (0, 0))
        ids, tokens = (2, 5, 6, 3), ("[CLS]", "don", "'t", "[SEP]")
        sequence_ids = (None, 0, 0, None)

    made = align(Fixed(), "don't", words=[[(0, 2), (2, 5)]])
    assert (made.pieces_of(0), made.pieces_of(1)) == ((1,), (2,))
    assert made.overlapping(1) == (1, 2)
    # One piece for two words: the second has none of its own, and is found by overlap.
    du = align(Fixed(), "du le", words=[[(0, 2), (0, 2), (3, 5)]])
    assert (du.pieces_of(1), du.overlapping(1), du.spelling(1)) == ((), (1,), (1,))
    outside = align(Fixed(), "don't", words=[[(3, 5)]])
    assert outside.words == (None, None, 0, None)


def test_what_does_not_fit_is_refused() -> None:
    pair = tokenizer("wordpiece").encode("the", "keys")
    with pytest.raises(DataError, match="give both texts"):
        align(pair, "the")
    with pytest.raises(DataError, match="2 texts and words for 1"):
        align(pair, "the", "keys", words=[[(0, 3)]])
    with pytest.raises(DataError, match="Word 1 'keys' is not in the text after character 3"):
        locate("the key", ["the", "keys"])
    example = Example("7", "the key", annotations={Field.WORDS: ["the", "keys"]})
    with pytest.raises(DataError, match="Example '7': Word 1 'keys' is not in the text"):
        word_spans(example)


def test_split_words() -> None:
    assert split_words(" a  bc\t") == [(1, 2), (4, 6)]
    assert split_words("  ") == []


def test_pooling_by_hand() -> None:
    made = Alignment(
        word_spans=((0, 2), (3, 4), (5, 6)),
        sequences=(0, 0, 0),
        piece_spans=(None, (0, 1), (1, 2), (3, 4), None),
        words=(None, 0, 0, 1, None),
    )
    attention = np.arange(25, dtype=np.float32).reshape(1, 5, 5)
    pooled = pool(attention, made)
    assert pooled.shape == (1, 3, 3)
    assert pooled.dtype == np.float32
    # to word 0: pieces 1 + 2 summed; from word 0: pieces 1 and 2 averaged
    assert pooled[0, 0, 0] == ((6 + 7) + (11 + 12)) / 2
    assert pooled[0, 0, 1] == (8 + 13) / 2
    assert pooled[0, 1, 0] == 16 + 17
    assert np.isnan(pooled[0, 2]).all()
    assert np.isnan(pooled[0, :, 2]).all()
    with pytest.raises(DataError, match="the text has 5 pieces"):
        pool(np.zeros((4, 4)), made)


@settings(max_examples=40, deadline=None)
@given(text=TEXTS, seed=st.integers(0, 99))
def test_pooling_keeps_the_attention_that_words_get(text: str, seed: int) -> None:
    made = align(tokenizer("byte-level").encode(text), text)
    scores = np.random.default_rng(seed).random((2, len(made.words), len(made.words)))
    attention = scores / scores.sum(-1, keepdims=True)
    pooled = pool(attention, made)
    kept = [i for i, word in enumerate(made.words) if word is not None]
    for word in range(len(made)):
        if rows := list(made.pieces_of(word)):
            got = np.nansum(pooled[:, word], axis=-1)
            np.testing.assert_allclose(got, attention[:, rows][:, :, kept].sum(-1).mean(-1))


def test_special_tokens_may_stay_in_their_places() -> None:
    spans = ((0, 4), (5, 6), (7, 9))
    # [CLS] ke ys x [SEP] [SEP]; truncation cut the third word off.
    words = (None, 0, 0, 1, None, None)
    made = Alignment(spans, (0, 0, 0), (None, (0, 2), (2, 4), (5, 6), None, None), words)
    assert units(made) == [(0,), (1, 2), (3,), (4,), (5,)]
    attention = np.random.default_rng(0).dirichlet(np.ones(6), size=(2, 6))
    pooled = pool(attention, made, special=True)
    assert pooled.shape == (2, 5, 5)
    np.testing.assert_allclose(pooled.sum(-1), 1)
    np.testing.assert_allclose(pooled[:, 1, 0], attention[:, 1:3, 0].mean(-1))
    np.testing.assert_allclose(pooled[:, 3, 1], attention[:, 4, 1:3].sum(-1))
