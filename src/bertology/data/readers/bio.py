"""Words in columns whose chunks or entities are marked word by word (CoNLL-2000, 2003, WNUT).

One word per line, an empty line after each sentence, columns between blanks or tabs. `B-NP` begins
a phrase, `I-NP` goes on with it, `O` is outside; also with `E-` or `L-` at the end and `S-` or `U-`
for one word (BIOES, BILOU). An `I-` that follows nothing of its kind begins a phrase, which is how
CoNLL-2003 writes most of them (IOB1). Columns are told by their number from 0, such as
`words=0, tags=1, entities=2`; files with two have words and entities, with three words, tags and
chunks, with four words, tags, chunks and entities. Lines of `-DOCSTART-` are left out. What stands
between the words in the source is not known: they are spaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request
from bertology.data.readers.annotations import check_annotations
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.mentions import spaced
from bertology.errors import DataError

_USUAL: Mapping[int, Sequence[str]] = {
    2: ("words", "entities"),
    3: ("words", "tags", "chunks"),
    4: ("words", "tags", "chunks", "entities"),
}
_MARKED = ("chunks", "entities")
_TAG = re.compile(r"O|[BIESLUM]-\S+")
_DOCUMENT = "-DOCSTART-"
Line = tuple[int, list[str]]


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The sentences of a file."""
    path, request = Path(source), Request.of(source, request)
    found = [rows for rows in _sentences(path) if rows[0][1][0] != _DOCUMENT]
    if not found:
        raise DataError(f"{path.name} has no sentence.")
    columns = _columns(len(found[0][0][1]), request, path)
    examples = [_example(rows, columns, f"{path.stem}-{i}", path) for i, rows in enumerate(found)]
    fields = {Field.TEXT, Field.OFFSETS, *map(Field, columns)}
    return Corpus(request.name, examples, frozenset(fields), split=request.split)


def _sentences(path: Path) -> Iterator[list[Line]]:
    width, first, rows = 0, 0, list[Line]()
    for number, line in numbered_lines(read_text(path)):
        if not line.strip():
            if rows:
                yield rows
            rows = []
            continue
        cells = line.split("\t") if "\t" in line else line.split()
        width, first = width or len(cells), first or number
        if len(cells) != width:
            raise DataError(
                f"{path.name}, line {number}: {len(cells)} columns where line {first} has {width}.",
                hint="Each line is a word with its marks; an empty line ends a sentence.",
            )
        rows.append((number, cells))
    if rows:
        yield rows


def _columns(width: int, request: Request, path: Path) -> dict[str, int]:
    """The number of each field's column."""
    if not request.columns:
        if width not in _USUAL:
            raise DataError(
                f"{path.name} has {width} columns.",
                hint="Say which is which, counted from 0: words=0, tags=1, entities=2.",
            )
        return {name: at for at, name in enumerate(_USUAL[width])}
    allowed = ("words", "tags", "pos", "lemmas", *_MARKED)
    found = {}
    for name, column in request.columns.items():
        if name not in allowed or not column.isdecimal() or int(column) >= width:
            raise DataError(
                f"{path.name}: {name}={column} is no column; it has {width}, counted from 0.",
                hint=f"Fields that columns may hold: {', '.join(allowed)}.",
            )
        found[name] = int(column)
    return {"words": 0, **found}


def _example(rows: Sequence[Line], columns: Mapping[str, int], name: str, path: Path) -> Example:
    at = f"{path.name}, line {rows[0][0]}"
    about: dict[str, object] = {}
    for field, column in columns.items():
        cells = [cells[column].strip() for _, cells in rows]
        if field in _MARKED:
            about[field] = marked_spans(
                [
                    (f"{path.name}, line {number}", cell)
                    for (number, _), cell in zip(rows, cells, strict=True)
                ]
            )
        else:
            about[field] = cells
    words = [str(word) for word in about["words"]]  # type: ignore[attr-defined]
    about["words"] = ["".join(word.split()) for word in words]
    text, about["offsets"] = spaced(words)
    check_annotations(about, [text], at)
    return Example(name, text, annotations=about)


def marked_spans(tags: Sequence[tuple[str, str]]) -> list[list[int | str]]:
    """Phrases [first word, last + 1, label] of a sentence's tags, each with where it stands."""
    found: list[list[int | str]] = []
    begun, label = -1, ""

    def end(word: int) -> None:
        nonlocal begun
        if begun >= 0:
            found.append([begun, word, label])
        begun = -1

    for word, (at, tag) in enumerate(tags):
        if not _TAG.fullmatch(tag):
            raise DataError(
                f"{at}: {tag!r:.40} does not say whether a phrase begins here.",
                hint="Expected B-NAME, I-NAME or O (also E-, L-, S-, U-).",
            )
        mark, _, name = tag.partition("-")
        if mark in "OBSU" or name != label:
            end(word)
        if mark != "O" and begun < 0:
            begun, label = word, name
        if mark in "ELSU":
            end(word + 1)
    end(len(tags))
    return found
