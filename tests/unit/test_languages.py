"""Corpora in several languages: which language a text is in, and what languages are like."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.data.corpus import Corpus, Field
from bertology.data.languages import FEATURES, language, languages, order_distance
from bertology.data.loading import load_corpus
from bertology.errors import CapabilityError, UnknownNameError

_ENTRY = """
name: greetings
title: Greetings
source: https://example.org
licence: CC0
reader: text
fields: [text, language, item]
splits: {{test: "{pattern}"}}
parallel: true
get: Write them into {{folder}}.
"""


@pytest.fixture
def entry(tmp_path: Path) -> str:
    """An entry with three languages of four lines each, and a file that is none of them."""
    for code, words in {"de": "guten Tag", "fr": "bonjour", "ja": "こんにちは"}.items():
        (tmp_path / f"hello-{code}.txt").write_text("".join(f"{words} {i}\n" for i in range(4)))
    (tmp_path / "hello-READ_ME.txt").write_text("nothing\n")
    path = tmp_path / "greetings.yaml"
    path.write_text(_ENTRY.format(pattern="hello-{language}.txt"))
    return str(path)


def _codes(corpus: Corpus) -> list[str]:
    return [example.get(Field.LANGUAGE) for example in corpus]


def test_the_language_is_read_off_the_name_of_the_file(entry: str) -> None:
    corpus = load_corpus(entry)
    assert _codes(corpus) == ["de"] * 4 + ["fr"] * 4 + ["ja"] * 4
    assert [e.id for e in corpus][:2] == ["de/1", "de/2"]
    assert {e.get(Field.ITEM) for e in corpus} == {"1", "2", "3", "4"}


def test_languages_are_chosen_by_their_codes(entry: str) -> None:
    assert set(_codes(load_corpus(entry, languages="ja,de"))) == {"de", "ja"}
    with pytest.raises(UnknownNameError, match="language of greetings"):
        load_corpus(entry, languages=["xx"])
    with pytest.raises(CapabilityError, match="lacks language"):
        load_corpus("grammar", languages="en", limit=20)


def test_the_same_items_are_drawn_in_each_language(entry: str) -> None:
    drawn = load_corpus(entry, limit=2, seed=3)
    items = {c: {e.get("item") for e in drawn if e.get("language") == c} for c in _codes(drawn)}
    assert len(drawn) == 6
    assert len(set(map(frozenset, items.values()))) == 1
    again = load_corpus(**drawn.origin)
    assert again.fingerprint == drawn.fingerprint


def test_so_many_of_each_language_where_texts_are_not_parallel(entry: str) -> None:
    whole = load_corpus(entry)
    apart = Corpus("apart", whole.examples, frozenset({Field.TEXT, Field.LANGUAGE}))
    assert _codes(apart.take(1)) == ["de", "fr", "ja"]


def test_languages_are_known_by_both_codes() -> None:
    assert language("jpn") is language("ja")
    assert language("ja").verb_final
    assert language("ar").right_to_left
    with pytest.raises(UnknownNameError, match="language"):
        language("qq")


def test_every_order_has_a_value() -> None:
    for one in languages().values():
        assert len(one.orders) == len(FEATURES), one.code
        assert order_distance(one, one) == 0
    assert order_distance(language("es"), language("it")) == 0
    assert order_distance(language("ja"), language("es")) > 0.7
