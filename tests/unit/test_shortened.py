"""Texts far longer than the model reads lose their end first; what is read stays the same."""

from __future__ import annotations

import random

import pytest

import planted
from bertology.errors import DataError
from bertology.model.batch import count_pieces, shortened, tokenize

LIMIT = 40


def long_text(words: int, seed: int = 0) -> str:
    rng = random.Random(seed)
    return " ".join(rng.choice(planted.WORDS) for _ in range(words))


def test_the_tokens_that_are_read_are_those_of_the_whole_text() -> None:
    tokenizer = planted.tokenizer()
    texts = [long_text(20_000), "up", long_text(5, 1), long_text(9_000, 2)]
    cut = shortened(tokenizer, texts, LIMIT)
    assert [len(c) < len(t) for c, t in zip(cut, texts, strict=True)] == [True, False, False, True]
    made = tokenize(tokenizer, list(texts), limit=LIMIT, too_long="truncate", name="m")
    whole = tokenizer(texts, truncation="longest_first", max_length=LIMIT)
    assert made.rows["input_ids"] == whole["input_ids"]
    assert made.cut == {0, 3}
    assert count_pieces(tokenizer, texts, LIMIT).longer == 2


def test_pairs_are_cut_as_whole_pairs_are() -> None:
    tokenizer = planted.tokenizer()
    pairs = [(long_text(3_500), "up good"), ("the bad", long_text(3_500, 1))]
    made = tokenize(tokenizer, list(pairs), limit=LIMIT, too_long="truncate", name="m")
    firsts, seconds = [a for a, _ in pairs], [b for _, b in pairs]
    whole = tokenizer(firsts, seconds, truncation="longest_first", max_length=LIMIT)
    assert made.rows["input_ids"] == whole["input_ids"]


def test_a_beginning_of_few_tokens_is_made_longer_up_to_a_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bertology.model.batch._MOST_CHARACTERS", 50_000)
    tokenizer = planted.tokenizer()
    late = "x" * 30_000 + " " + long_text(20_000)  # one unknown word first
    (cut,) = shortened(tokenizer, [late], LIMIT)
    assert 30_000 < len(cut) < len(late)
    (one,) = shortened(tokenizer, ["x" * 60_000], LIMIT)
    assert len(one) == 50_000
    assert count_pieces(tokenizer, ["x" * 60_000], LIMIT).longer == 1


def test_without_a_limit_a_huge_text_is_refused() -> None:
    with pytest.raises(DataError, match="1,000,001 characters"):
        shortened(planted.tokenizer(), ["x" * 1_000_001], None)
