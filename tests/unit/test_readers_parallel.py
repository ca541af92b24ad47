"""Readers of parallel texts: Tatoeba's sentences, and words that people aligned."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bertology.data.corpus import Corpus, Field
from bertology.data.loading import load_corpus
from bertology.data.readers import Request
from bertology.data.readers.parallel import read_tatoeba, read_word_alignments
from bertology.errors import DataError


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Two languages of the table beside English and one that it does not have."""
    for pair, size in (("deu-eng", 4), ("cmn-eng", 3), ("fao-eng", 2)):
        for code in pair.split("-"):
            lines = "".join(f"{code} {pair} {i}\n" for i in range(1, size + 1))
            (tmp_path / f"tatoeba.{pair}.{code}").write_text(lines, encoding="utf-8")
    (tmp_path / "README.md").write_text("not read")
    return tmp_path


def test_sentences_of_a_pair_are_one_item(pairs: Path) -> None:
    corpus = read_tatoeba(pairs, Request("tatoeba"))
    assert Counter(e.get(Field.LANGUAGE) for e in corpus) == {"en": 9, "de": 4, "zh": 3, "fao": 2}
    by_item = Counter(e.get(Field.ITEM) for e in corpus)
    assert set(by_item.values()) == {2}
    (one,) = (e for e in corpus if e.id == "de/deu-eng/2")
    assert (one.text, one.get(Field.ITEM), one.get(Field.GROUP)) == (
        "deu deu-eng 2", "deu-eng/2", "deu-eng",
    )  # fmt: skip


def test_a_limit_counts_items_of_each_language(pairs: Path) -> None:
    drawn = read_tatoeba(pairs, Request("tatoeba")).take(2, seed=1)
    assert Counter(e.get(Field.LANGUAGE) for e in drawn) == {"en": 6, "de": 2, "zh": 2, "fao": 2}
    assert set(Counter(e.get(Field.ITEM) for e in drawn).values()) == {2}


def test_languages_are_chosen_with_their_translations(pairs: Path) -> None:
    corpus = load_corpus(pairs, reader="tatoeba", languages="de,en")
    assert Counter(e.get(Field.GROUP) for e in corpus) == {"deu-eng": 8}
    with pytest.raises(DataError, match="several of de, zh"):
        load_corpus(pairs, reader="tatoeba", languages="de,zh")


def test_files_of_a_pair_must_agree(pairs: Path) -> None:
    path = pairs / "tatoeba.deu-eng.deu"
    path.write_text("eins\n\ndrei\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2 is empty"):
        read_tatoeba(pairs)
    path.write_text("eins\nzwei\n", encoding="utf-8")
    with pytest.raises(DataError, match="as many lines each; found 2 of deu, 4 of eng"):
        read_tatoeba(pairs)
    path.unlink()
    with pytest.raises(DataError, match=r"tatoeba\.deu-eng\.deu is missing"):
        read_tatoeba(pairs)


def aligned(folder: Path, texts: str, links: str) -> Corpus:
    path = folder / "deen.src-tgt"
    path.write_text(texts, encoding="utf-8")
    path.with_name("deen.gold").write_text(links, encoding="utf-8")
    return read_word_alignments(path)


def test_links_count_from_one_and_are_sure_or_possible(tmp_path: Path) -> None:
    one, two = aligned(
        tmp_path, "das Haus ||| the  house  \n\u3000 ja ||| yes\n", "1-1 2-2 1p2\n2-1\n"
    )
    assert one.get(Field.ALIGNMENT) == [[0, 0, "sure"], [1, 1, "sure"], [0, 1, "possible"]]
    assert one.texts == ("das Haus", "the house")
    both = "\n".join(one.texts)
    assert [both[a:b] for a, b in one.get(Field.OFFSETS)] == one.get(Field.WORDS)
    assert (one.get(Field.LANGUAGE), one.get(Field.LANGUAGE_B)) == ("de", "en")
    assert two.get(Field.WORDS) == ["_", "ja", "yes"]


def test_what_is_no_alignment_is_refused(tmp_path: Path) -> None:
    for texts, links, said in (
        ("das Haus ||| the house\n", "1-3\n", "word 1 and word 3 of 2 and 2"),
        ("das Haus ||| the house\n", "1:1\n", "no link"),
        ("das Haus ||| the house\n", "0-1\n", "no link"),
        ("das Haus the house\n", "1-1\n", "with ||| between"),
        ("das Haus ||| the house\n", "1-1\n1-1\n", "as many lines"),
    ):
        with pytest.raises(DataError, match=said.replace("|", r"\|")):
            aligned(tmp_path, texts, links)
    (tmp_path / "deen.gold").unlink()
    with pytest.raises(DataError, match=r"deen\.gold, which has the links, is missing"):
        read_word_alignments(tmp_path / "deen.src-tgt")
    with pytest.raises(DataError, match="codes of its two languages"):
        read_word_alignments(tmp_path / "german.src-tgt")
