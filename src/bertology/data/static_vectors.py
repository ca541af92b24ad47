"""Files of word vectors: GloVe's text, word2vec's text and binary format, plain or gzipped.

Such files hold millions of words, of which a task uses some thousands: the file is read once, line
by line, and only the vectors of the words that are asked for are kept.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from bertology.drafts import draft_file
from bertology.errors import DataError, StoreError
from bertology.plain_files import local_path

_WIDEST = 10_000  # numbers of one vector
_LONGEST_WORD = 10_000  # bytes; the longest that known files hold has about a thousand
_NUMBER = 40  # bytes that one number may take in a text file
_HEADER = re.compile(rb"(\d{1,12}) (\d{1,12})\s*")
_WORD = re.compile(r"\w+|[^\w\s]")

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class WordVectors:
    """Vectors by word, all of one width; words that the file does not have are not there."""

    vectors: dict[str, Floats] = field(repr=False)
    width: int

    def find(self, word: str) -> Floats | None:
        """The vector of a word, or else of its lower-cased form."""
        exact = self.vectors.get(word)
        return self.vectors.get(word.lower()) if exact is None else exact


def split_words(text: str) -> list[str]:
    """Words and punctuation marks: as vectors of words have them, nearly."""
    return _WORD.findall(text)


def read_word_vectors(name: str | Path, words: Collection[str]) -> WordVectors:
    """The vectors of these words, as written or lower-cased, from a GloVe or word2vec file."""
    path = local_path(name)
    wanted = {w.encode(): w for word in words for w in (word, word.lower())}
    try:
        with _opened(path) as file:
            width, rows = _rows(file, path, wanted)
            found = {wanted[word]: vector for word, vector in rows}
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(f"{path} is a broken gzip file.") from None
    except OSError as problem:
        raise DataError(f"Cannot read {path}: {problem.strerror or problem}.") from None
    for word, vector in found.items():
        if not np.isfinite(vector).all():
            raise DataError(f"{path}: the vector of {word!r} holds what is not a finite number.")
    return WordVectors(found, width)


def _opened(path: Path) -> IO[bytes]:
    if not path.exists():
        raise DataError(
            f"There is no file {path}.",
            hint="Vectors are files such as glove.6B.300d.txt or GoogleNews-vectors.bin.gz.",
        )
    if not path.is_file():
        raise DataError(f"{path} is {'a folder' if path.is_dir() else 'a pipe or a device'}, "
                        "not a file of word vectors.")  # fmt: skip
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    # A GzipFile reads as files do; the type checker has another name for it.
    return cast("IO[bytes]", gzip.open(path, "rb")) if zipped else path.open("rb")


Rows = Iterator[tuple[bytes, Floats]]


def _rows(file: IO[bytes], path: Path, wanted: Collection[bytes]) -> tuple[int, Rows]:
    """The width, and the wanted words with their vectors."""
    first = _line(file, path, 1, _LONGEST_WORD + _WIDEST * _NUMBER)
    header = _HEADER.fullmatch(first)
    if header is None:
        width = len(first.split()) - 1
        _check_width(width, path)
        return width, _text(file, path, wanted, width=width, begun=(1, first))
    count, width = int(header[1]), int(header[2])
    _check_width(width, path)
    # The first record tells: only in a text file its line is one word and `width` numbers.
    record = _line(file, path, 2, _LONGEST_WORD + width * _NUMBER, whole=False)
    if _is_text(record, width):
        return width, _text(file, path, wanted, width=width, begun=(2, record))
    every = _binary(file, path, count, width, begun=record)
    return width, ((word, vector) for word, vector in every if word in wanted)


def _check_width(width: int, path: Path) -> None:
    if not 1 <= width <= _WIDEST:
        raise DataError(
            f"{path}, line 1: a word and its vector should be there, with 1 to {_WIDEST:,} "
            f"numbers. Got {width:,}.",
            hint="GloVe files have a word and its numbers in each line; word2vec files begin with "
            "the numbers of words and of dimensions.",
        )


def _line(file: IO[bytes], path: Path, number: int, most: int, *, whole: bool = True) -> bytes:
    line = file.readline(most)
    if not line.strip():
        raise DataError(f"{path}, line {number}: no word vector is there.")
    if whole and len(line) == most:
        raise DataError(f"{path}, line {number} is too long for a word and its vector.")
    return line


def _is_text(line: bytes, width: int) -> bool:
    fields = _fields(line, width)
    return len(fields) == width + 1 and _numbers(fields[1:]) is not None


def _fields(line: bytes, width: int) -> list[bytes]:
    """A word, which may hold spaces, and its numbers."""
    return line.rstrip().rsplit(b" ", width)


def _numbers(fields: list[bytes]) -> Floats | None:
    try:
        return np.array(fields, dtype=np.float32)
    except ValueError:
        return None


def _text(
    file: IO[bytes],
    path: Path,
    wanted: Collection[bytes],
    *,
    width: int,
    begun: tuple[int, bytes],
) -> Rows:
    """Numbers are read of the wanted words only: that is most of the time."""
    most = _LONGEST_WORD + width * _NUMBER
    number, line = begun
    while line.strip():
        word, *numbers = _fields(line, width)
        vector = _numbers(numbers) if word in wanted else None
        if len(numbers) != width or len(line) == most or (word in wanted and vector is None):
            raise DataError(
                f"{path}, line {number}: not a word and {width} numbers, as line 1 has them."
            )
        if vector is not None:
            yield word, vector
        line, number = file.readline(most), number + 1
    if file.read(1):
        raise DataError(f"{path}, line {number} is empty, but more lines follow.")


def _binary(file: IO[bytes], path: Path, count: int, width: int, *, begun: bytes) -> Rows:
    """Words end with a space; four bytes for each number; some writers add a line end."""
    size, held = 4 * width, begun
    for number in range(1, count + 1):
        while (end := held.find(b" ")) < 0 and len(held) <= _LONGEST_WORD:
            held = _more(file, held, path, number)
        if not 0 <= end <= _LONGEST_WORD:
            raise DataError(f"{path}: record {number} has no word at its beginning.")
        while len(held) < end + 1 + size:
            held = _more(file, held, path, number)
        word = held[:end].lstrip(b"\n")
        yield word, np.frombuffer(held[end + 1 : end + 1 + size], dtype="<f4")
        held = held[end + 1 + size :]


def _more(file: IO[bytes], held: bytes, path: Path, number: int) -> bytes:
    block = file.read(1 << 20)
    if not block:
        raise DataError(f"{path} ends in the middle: record {number} is not whole.")
    return held + block


def write_word_vectors(place: Path, words: Sequence[str], vectors: NDArray[np.floating]) -> None:
    """Words and their vectors (N, D) in word2vec's text format: numbers of both first, then lines.

    The file is there when it is whole, or not at all.
    """
    width = vectors.shape[1]
    row = " ".join(["%.8g"] * width)
    try:
        with draft_file(place) as draft, draft.open("wb") as file:
            file.write(f"{len(words)} {width}\n".encode())
            for word, vector in zip(words, vectors, strict=True):
                file.write(f"{word} {row % tuple(vector)}\n".encode(errors="replace"))
    except OSError as problem:
        raise StoreError(
            f"Vectors cannot be written to {place}: {problem.strerror or problem}.",
            hint="Choose another file with --to, or make room.",
        ) from None


def fingerprint_of(name: str | Path) -> str:
    """A hash of the file, which is part of the identity of what is computed from it."""
    path = local_path(name)
    with _opened(path):  # so that what is no file is refused in the same words
        pass
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:16]
