"""Vocabularies: the same every time, of the size asked for, and nothing lost below it."""

from __future__ import annotations

from typing import Any

import pytest

from bertology.errors import DataError
from bertology.train.vocabulary import SPECIAL, wordpieces

TEXTS = [
    "The cats saw the caf\u00e9.",
    "A cat sees cats; the dogs saw it.",
    "Zebras \u4e2d\u6587!",
] * 3


def _made(**options: Any) -> Any:
    return wordpieces(lambda: TEXTS, **{"vocab_size": 120, "max_length": 16} | options)


def test_the_same_text_gives_the_same_numbers() -> None:
    first = _made().get_vocab()
    for _ in range(5):
        assert _made().get_vocab() == first


def test_special_tokens_come_first_and_are_known_by_their_names() -> None:
    tokenizer = _made()
    assert tokenizer.convert_ids_to_tokens(range(5)) == list(SPECIAL.values())
    for name, mark in SPECIAL.items():
        assert getattr(tokenizer, f"{name}_token") == mark
    assert sorted(tokenizer.all_special_ids) == [0, 1, 2, 3, 4]
    assert tokenizer.model_max_length == 16


@pytest.mark.parametrize("size", [40, 64, 120, 4000])
def test_the_size_is_never_exceeded(size: int) -> None:
    tokenizer = _made(vocab_size=size)
    assert len(tokenizer) <= size
    assert sorted(tokenizer.get_vocab().values()) == list(range(len(tokenizer)))


def test_text_comes_back_from_its_pieces() -> None:
    tokenizer = _made(vocab_size=200)
    for text in TEXTS[:2]:
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.unk_token_id not in ids
        plain = text.lower().replace("\u00e9", "e")
        assert tokenizer.decode(ids).replace(" ", "") == plain.replace(" ", "")


def test_inner_pieces_are_pieces_and_not_marks() -> None:
    tokenizer = _made(vocab_size=120)
    assert tokenizer.tokenize("stt") == ["s", "##t", "##t"]
    assert "##t" not in tokenizer.tokenize("##t")


def test_case_is_kept_if_asked_for() -> None:
    pieces = _made(lowercase=False, vocab_size=300).get_vocab()
    assert {"The", "the", "caf\u00e9"} <= set(pieces)
    assert not any(p != p.lower() for p in _made().get_vocab() if p not in SPECIAL.values())


def test_rare_characters_become_unknown() -> None:
    tokenizer = _made(alphabet=12)
    assert tokenizer.tokenize("\u4e2d") == ["[UNK]"]
    letters = {p for p in tokenizer.get_vocab() if len(p) == 1}
    assert len(letters) == 12
    assert {"e", "s", "t"} <= letters


def test_the_text_may_be_a_stream_that_is_opened_twice() -> None:
    calls = []

    def texts() -> Any:
        calls.append(1)
        return iter(TEXTS)

    assert wordpieces(texts, vocab_size=120, max_length=16).get_vocab() == _made().get_vocab()
    assert len(calls) == 2


def test_no_text_no_vocabulary() -> None:
    for nothing in ([], [" \n "]):
        with pytest.raises(DataError, match="no text"):
            wordpieces(lambda texts=nothing: texts, vocab_size=50, max_length=8)  # type: ignore[misc]
