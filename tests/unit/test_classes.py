"""Token classes: masks on sentences made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tiny
from bertology.data.corpus import Example, Field
from bertology.data.words.classes import (
    NEGATIONS,
    Specials,
    TokenClass,
    class_masks,
    has_classes,
    position_groups,
)
from bertology.data.words.piece_words import PieceWords, word_spans
from bertology.data.words.treebank_words import treebank_words
from bertology.errors import DataError

PIECES = "don ' t the dog ##s bark , not she saw it . ? can he never n".split()


def tokens(kind: TokenClass, example: Example, **limits: Any) -> list[str]:
    """The pieces of a class, as text."""
    tokenizer = tiny.tokenizer(PIECES)
    encoding = tokenizer(*([text] for text in example.texts), **limits).encodings[0]
    read = PieceWords.of(example, encoding)
    mask = class_masks(read, Specials.of(tokenizer))[list(TokenClass).index(kind)]
    return [token for token, chosen in zip(encoding.tokens, mask, strict=True) if chosen]


def annotated(text: str, words: str, pos: str, **more: Any) -> Example:
    return Example("e", text, annotations={"words": words.split(), "pos": pos.split(), **more})


CONTRACTED = annotated(
    "Dogs don't bark, she saw it.",
    "Dogs do n't bark , she saw it .",
    "NOUN AUX PART VERB PUNCT PRON VERB PRON PUNCT",
    relations="nsubj aux advmod root punct nsubj:outer parataxis obj punct".split(),
)


def test_every_class_of_a_sentence_with_a_contraction() -> None:
    assert tokens(TokenClass.NOUN, CONTRACTED) == ["dog", "##s"]
    assert tokens(TokenClass.VERB, CONTRACTED) == ["don", "bark", "saw"]
    assert tokens(TokenClass.PRONOUN, CONTRACTED) == ["she", "it"]
    assert tokens(TokenClass.SUBJECT, CONTRACTED) == ["dog", "##s", "she"]
    assert tokens(TokenClass.OBJECT, CONTRACTED) == ["it"]
    assert tokens(TokenClass.NEGATION, CONTRACTED) == ["don", "'", "t"]
    assert tokens(TokenClass.PUNCTUATION, CONTRACTED) == [",", "."]
    assert tokens(TokenClass.CLS, CONTRACTED) == ["[CLS]"]
    assert tokens(TokenClass.SEP, CONTRACTED) == ["[SEP]"]
    assert tokens(TokenClass.OTHER, CONTRACTED) == []


def test_truncation_leaves_what_is_still_there() -> None:
    limits = {"truncation": True, "max_length": 6}
    assert tokens(TokenClass.NEGATION, CONTRACTED, **limits) == ["don", "'"]
    assert tokens(TokenClass.PRONOUN, CONTRACTED, **limits) == []


def test_both_texts_of_a_pair() -> None:
    first, second = "The dog saw it", "She never can bark."
    spans = [*treebank_words(first), *((a + len(first) + 1, b + len(first) + 1)
             for a, b in treebank_words(second))]  # fmt: skip
    pair = Example(
        "p", first, text_b=second,
        annotations={
            "words": "The dog saw it She never can bark .".split(),
            "offsets": spans,
            "pos": "DET NOUN VERB PRON PRON ADV AUX VERB PUNCT".split(),
            "tags": [*" subject  object subject     ".split(" ")[:9]],
        },
    )  # fmt: skip
    assert word_spans(pair)[1][0] == (0, 3)
    assert tokens(TokenClass.SUBJECT, pair) == ["dog", "she"]
    assert tokens(TokenClass.OBJECT, pair) == ["it"]
    assert tokens(TokenClass.NEGATION, pair) == ["never"]
    assert tokens(TokenClass.SEP, pair) == ["[SEP]", "[SEP]"]
    assert tokens(TokenClass.OTHER, pair) == ["the"]


@pytest.mark.parametrize("written", ["don't", "Don’t", "do n't", "don 't", "DON'T"])
def test_negations_are_found_however_they_are_split(written: str) -> None:
    text = f"she {written} bark"
    words = [text[a:b] for a, b in treebank_words(text)]
    example = Example("n", text, annotations={"words": words, "pos": ["X"] * len(words)})
    assert tokens(TokenClass.NEGATION, example)
    assert "she" not in tokens(TokenClass.NEGATION, example)


def test_a_full_stop_is_no_part_of_the_word_before_it() -> None:
    text = "He said no. Then Dr. No came, No. 5 of two."
    words = [text[a:b] for a, b in treebank_words(text)]
    assert " ".join(words) == "He said no . Then Dr. No came , No. 5 of two ."


def test_only_the_papers_words_are_negations() -> None:
    assert len(NEGATIONS) == 17
    for text in ("she cannot bark", "it doesn't bark", "a knot, another", "no dog"):
        words = [text[a:b] for a, b in treebank_words(text)]
        example = Example("n", text, annotations={"words": words, "pos": ["X"] * len(words)})
        assert tokens(TokenClass.NEGATION, example) == []


def test_the_main_clause_serves_where_there_is_no_tree() -> None:
    example = annotated("she saw it", "she saw it", "PRON VERB PRON", subject=0, object=None)
    assert tokens(TokenClass.SUBJECT, example) == ["she"]
    assert tokens(TokenClass.OBJECT, example) == []


def test_what_is_missing_is_named() -> None:
    with pytest.raises(DataError, match="no part-of-speech tags"):
        tokens(TokenClass.NOUN, Example("e", "the dog", annotations={"words": ["the", "dog"]}))
    pair = Example("p", "a", "b", annotations={"words": ["a", "b"], "pos": ["X", "X"]})
    with pytest.raises(DataError, match="pair whose words have no offsets"):
        tokens(TokenClass.NOUN, pair)
    assert has_classes({Field.POS, Field.WORDS, Field.RELATIONS})
    assert not has_classes({Field.WORDS, Field.RELATIONS})


def test_positions_are_matched_within_each_text() -> None:
    tokenizer = tiny.tokenizer(PIECES)
    encoding = tokenizer(["the dog saw it"], ["she can"]).encodings[0]
    groups = position_groups(encoding, 2)
    assert groups.tolist() == [-1, 0, 0, 1, 1, -1, 2, 3, -1]


def test_other_families_have_other_special_tokens() -> None:
    class Roberta:
        cls_token_id, bos_token_id, sep_token_id, eos_token_id = 0, 0, 2, 2

    class T5:
        cls_token_id, bos_token_id, sep_token_id, eos_token_id = None, None, None, 1

    assert (Specials.of(Roberta).first, Specials.of(Roberta).separators) == ({0}, {2})
    assert (Specials.of(T5).first, Specials.of(T5).separators) == (frozenset(), {1})


def test_words_are_split_as_treebanks_do() -> None:
    text = "He can't say the U.S. company 's don 't-know (1,000.50)."
    found = [text[a:b] for a, b in treebank_words(text)]
    assert found == [
        "He", "ca", "n't", "say", "the", "U.S.", "company", "'s", "do", "n 't", "-", "know",
        "(", "1,000.50", ")", ".",
    ]  # fmt: skip
    assert np.all(np.diff([a for a, _ in treebank_words(text)]) > 0)
