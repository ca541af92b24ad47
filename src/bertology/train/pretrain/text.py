"""Text to pre-train on: documents of sentences, from plain, compressed or JSON-lines files."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from glob import glob
from itertools import count
from pathlib import Path
from typing import IO

from bertology.errors import DataError
from bertology.plain_files import local_path, parse_json

_COMPRESSED = (".xz", ".gz", ".bz2")
_LONGEST = 16_000_000  # characters of a line
_ENCODING = "utf-8-sig"  # with or without a byte order mark

_EXAMPLE = 'A line looks like {"text": "Ann saw Bo.", "entities": [[0, 3], [8, 10]]}.'

Span = tuple[int, int]


@dataclass(frozen=True)
class Document:
    """Sentences that belong together, and what is known about them."""

    sentences: tuple[str, ...]
    entities: tuple[tuple[Span, ...], ...] | None = None  # characters, for each sentence
    label: str | None = None  # of the whole document, for conditional MLM


def find_files(patterns: Iterable[str | Path]) -> list[Path]:
    """The files that paths and patterns like `texts/*.txt.xz` name, each once, in order."""
    found: list[Path] = []
    for pattern in patterns:
        path = local_path(pattern)
        # A file may be called a[1].txt, which is a pattern too.
        here = [path] if path.is_file() else [Path(p) for p in sorted(glob(str(path)))]
        files = [p for p in here if p.is_file()]
        if not files:
            raise DataError(
                f"There is no text file {str(pattern)!r}.",
                hint="Give files or patterns: texts/*.txt, texts/*.txt.xz, pairs.jsonl.",
            )
        found += [f for f in files if f not in found]
    return found


def read_documents(files: Iterable[Path]) -> Iterator[Document]:
    """All documents of the files, in order.

    In text files a line is a sentence and an empty line ends a document. In JSON-lines files
    (`.jsonl`) a line is a document: `{"text": …}` or `{"sentences": […]}`, and, where there is
    more to tell, `"entities": [[start, end], …]` (characters of the text; one list for each
    sentence if there are several), `"label": …`, or `"translation": …` beside `"text"`.
    """
    for file in files:
        name = file.name
        for ending in _COMPRESSED:
            name = name.removesuffix(ending)
        try:
            with _open(file) as opened:
                lines = _lines(opened, file)
                yield from _from_json(lines, file) if name.endswith(".jsonl") else _plain(lines)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{file} is not UTF-8: byte 0x{error.object[error.start]:02x}."
            ) from error
        except (OSError, lzma.LZMAError, zlib.error, EOFError) as error:
            raise DataError(f"{file} cannot be read: {error}.") from error


def _open(file: Path) -> IO[str]:
    match file.suffix:
        case ".xz":
            return lzma.open(file, "rt", encoding=_ENCODING)
        case ".gz":
            return gzip.open(file, "rt", encoding=_ENCODING)
        case ".bz2":
            return bz2.open(file, "rt", encoding=_ENCODING)
    return file.open("rt", encoding=_ENCODING)


def _lines(opened: IO[str], file: Path) -> Iterator[str]:
    """Line by line; a small packed file can hold a line that fills the memory."""
    for number in count(1):
        line = opened.readline(_LONGEST)
        if len(line) == _LONGEST:
            raise DataError(
                f"{file}, line {number}, has more than {_LONGEST:,} characters.",
                hint="A line is a sentence, and an empty line ends a document; in JSON lines, a "
                "line is a document.",
            )
        if not line:
            return
        yield line


def _plain(lines: Iterable[str]) -> Iterator[Document]:
    sentences: list[str] = []
    for line in lines:
        if text := line.strip():
            sentences.append(text)
        elif sentences:
            yield Document(tuple(sentences))
            sentences = []
    if sentences:
        yield Document(tuple(sentences))


def _from_json(lines: Iterable[str], file: Path) -> Iterator[Document]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            fields = parse_json(line.rstrip("\r\n"), label=str(file), first_line=number)
            yield _document(fields)
        except DataError as error:
            raise DataError(error.problem, hint=_EXAMPLE) from None
        except (ValueError, TypeError) as error:
            problem = f"{file}, line {number}, is no document: {error}."
            raise DataError(problem, hint=_EXAMPLE) from error


def _document(fields: object) -> Document:
    if not isinstance(fields, Mapping):
        raise TypeError("it is no object {…}")
    label = fields.get("label")
    if "sentences" in fields:
        sentences = _texts("sentences", fields["sentences"])
        nested = fields.get("entities")
        if not isinstance(nested, list | None):
            raise TypeError("its entities must be lists")
    elif "text" in fields:
        sentences = _texts("text", [fields["text"]])
        nested = [fields["entities"]] if "entities" in fields else None
    else:
        raise ValueError("it has neither text nor sentences")
    if "translation" in fields:
        sentences += _texts("translation", [fields["translation"]])
        nested = [*nested, []] if nested is not None else None
    if nested is not None and len(nested) != len(sentences):
        raise ValueError(f"{len(nested)} lists of entities for {len(sentences)} sentences")
    entities = None
    if nested is not None:
        entities = tuple(_spans(*pair) for pair in zip(nested, sentences, strict=True))
    return Document(sentences, entities, None if label is None else str(label))


def _texts(field: str, given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        raise TypeError(f"its {field} must be text")
    return tuple(given)


def _spans(given: object, sentence: str) -> tuple[Span, ...]:
    if not isinstance(given, list):
        raise TypeError("its entities must be lists")
    for pair in given:
        if not isinstance(pair, list) or [type(end) for end in pair] != [int, int]:
            raise TypeError(f"the entity {pair!r:.60} is no pair of whole numbers")
    spans = tuple((a, b) for a, b in given)
    for a, b in spans:
        if not 0 <= a < b <= len(sentence):
            raise ValueError(f"the entity [{a}, {b}] is not within its {len(sentence)} characters")
    return spans
