"""Files of word vectors: all three formats give the same, and broken ones are refused in words."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from bertology.data.static_vectors import read_word_vectors, split_words
from bertology.errors import DataError

WORDS = {
    "the": [0.5, -1.0, 2.0],
    "Paris": [1.0, 0.25, 0.0],
    ". .": [3.0, 3.0, 3.0],
    "é": [0.0, 1.0, -8.0],
}


def lines() -> bytes:
    return b"".join(f"{w} {' '.join(map(str, v))}\n".encode() for w, v in WORDS.items())


def binary(*, line_ends: bool = False) -> bytes:
    end = b"\n" if line_ends else b""
    records = [w.encode() + b" " + np.array(v, "<f4").tobytes() + end
               for w, v in WORDS.items() if " " not in w]  # fmt: skip
    return f"{len(records)} 3\n".encode() + b"".join(records)


FORMATS = {
    "glove": lines(),
    "word2vec-text": b"4 3\n" + lines(),
    "word2vec": binary(),
    "word2vec-line-ends": binary(line_ends=True),
    "gzipped": gzip.compress(binary()),
    "gzipped-text": gzip.compress(lines()),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_vectors_that_were_written(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(FORMATS[kind])
    found = read_word_vectors(path, {"THE", "Paris", "é", "unseen"})
    assert found.width == 3
    assert set(found.vectors) == {"the", "Paris", "é"}
    for word in found.vectors:
        np.testing.assert_array_equal(found.vectors[word], np.float32(WORDS[word]))
    given = found.find("The")
    assert given is not None
    assert given.tolist() == WORDS["the"]
    assert found.find("paris") is None  # only lower-cased forms are tried


def test_a_word_may_hold_spaces(tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(lines())
    assert read_word_vectors(path, {". ."}).vectors[". ."].tolist() == WORDS[". ."]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "line 1: no word vector"),
        (b"word\n", "1 to 10,000"),
        (b"a 1 2 3\nb 1 2\n", "line 2: not a word and 3 numbers"),
        (b"a 1 2 3\nb 1 2 x\n", "line 2: not a word and 3 numbers"),
        (b"a 1 2 3\n\nb 1 2 3\n", "line 2 is empty"),
        (b"a 1 2 nan\n", "'a' holds what is not a finite number"),
        (b"9 99999999\nxx", "Got 99,999,999"),
        (binary()[:-3], "ends in the middle"),
        (b"3 3\n" + b"x" * 20_000, "no word at its beginning"),
        (gzip.compress(lines(), mtime=0)[:-9], "broken gzip"),
        (b"a " + b"1" * 500_000, "too long"),
    ],
)
def test_broken_files_are_refused_in_words(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(DataError, match=said):
        read_word_vectors(path, {"a", "b", "the"})


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, said in (("none", "There is no file"), ("", "a folder"), ("pipe", "a pipe")):
        with pytest.raises(DataError, match=said):
            read_word_vectors(tmp_path / name, {"a"})


def test_words_and_marks_are_split() -> None:
    assert split_words("It's 5 o'clock, René.") == [
        "It", "'", "s", "5", "o", "'", "clock", ",", "René", ".",
    ]  # fmt: skip
