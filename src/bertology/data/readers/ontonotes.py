"""OntoNotes in the columns of CoNLL-2012, sentence by sentence: trees, entities, roles, mentions.

Columns: document, part, number, word, tag, tree, lemma, sense, …, speaker, entities, then one for
the arguments of each predicate (a word whose column 8 names a sense), and coreference last. The
reader `conll` gives the same files as documents with coreference only. A column that has nothing in
the whole file (`-`, `*` or `_`) gives no field. Mentions that go on in another sentence cannot be
seen here: of a cluster, only mentions in the same sentence are together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.annotations import check_annotations
from bertology.data.readers.conll import BRACKETS, EMPTY, SPELLED, TAGS
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.mentions import Brackets, spaced
from bertology.data.readers.request import Request
from bertology.errors import DataError

_ALWAYS = frozenset({Field.TEXT, Field.WORDS, Field.OFFSETS})
_OPTIONAL = (
    Field.TAGS, Field.POS, Field.CONSTITUENTS, Field.ENTITIES, Field.ARGUMENTS, Field.COREFERENCE,
)  # fmt: skip
_FEWEST = 12  # columns: eleven and coreference
_WORD, _TAG, _TREE, _SENSE, _ENTITY, _ROLES = 3, 4, 5, 7, 10, 11
_PIECE = re.compile(r"\(([^()*\s]+)|(\*)|(\))")
Line = tuple[str, list[str]]


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The sentences of a file; of each field, whether the file has any of it."""
    path, request = Path(source), Request.of(source, request)
    examples = [
        _example(lines, f"{path.stem}-{number}") for number, lines in enumerate(_sentences(path))
    ]
    if not examples:
        raise DataError(f"{path.name} has no sentence.")
    fields = set(_ALWAYS)
    for one in _OPTIONAL:
        whole = one in (Field.TAGS, Field.POS)
        there = [bool(example.annotations.get(one.value)) for example in examples]
        if (all if whole else any)(there):
            fields.add(one)
    return Corpus(request.name, examples, frozenset(fields), split=request.split)


def _sentences(path: Path) -> Iterator[list[Line]]:
    lines: list[Line] = []
    for number, line in numbered_lines(read_text(path)):
        at = f"{path.name}, line {number}"
        if line.startswith("#") or not line.strip():
            if lines:
                yield lines
            lines = []
            continue
        cells = line.split("\t") if "\t" in line else line.split()
        if len(cells) < _FEWEST or (lines and len(cells) != len(lines[0][1])):
            expected = f"{len(lines[0][1])} as its sentence" if lines else f"{_FEWEST} or more"
            raise DataError(
                f"{at}: {len(cells)} columns, not {expected}.",
                hint="CoNLL-2012 has document, part, number, word, tag, tree, lemma, sense, word "
                "sense, speaker, entities, one column for each predicate, coreference.",
            )
        lines.append((at, cells))
    if lines:
        yield lines


@dataclass
class _Column:
    """Brackets of one column: `(NP*`, `*)`, `(V*)`."""

    open_: list[tuple[int, str, str]] = field(default_factory=list)
    found: list[list[int | str]] = field(default_factory=list)

    def take(self, cell: str, word: int, at: str, *, flat: bool) -> None:
        """What a word's cell opens and closes; `flat` columns have no phrase in a phrase."""
        if _PIECE.sub("", cell):
            raise DataError(
                f"{at}: {cell!r:.40} does not tell where phrases begin and end.",
                hint="Expected (NP* at the first word, *) at the last, (NP*) for one word, * else.",
            )
        for label, _, closed in _PIECE.findall(cell):
            if label:
                if flat and self.open_:
                    raise DataError(f"{at}: {cell!r:.40} begins inside {self.open_[-1][1]!r:.40}.")
                self.open_.append((word, label, at))
            elif closed:
                if not self.open_:
                    raise DataError(f"{at}: {cell!r:.40} ends a phrase that began nowhere.")
                first, name, _ = self.open_.pop()
                self.found.append([first, word + 1, name])

    def spans(self) -> list[list[int | str]]:
        """All phrases, once the sentence was read."""
        if self.open_:
            raise DataError(
                f"{self.open_[-1][2]}: {self.open_[-1][1]!r:.40} begins and never ends."
            )
        return self.found


def _column(lines: Sequence[Line], number: int, *, flat: bool = True) -> list[list[int | str]]:
    column = _Column()
    for word, (at, cells) in enumerate(lines):
        cell = cells[number].strip()
        if cell not in ("-", "_", "*", ""):
            column.take(cell, word, at, flat=flat)
    return column.spans()


def _example(lines: Sequence[Line], name: str) -> Example:
    at = lines[0][0]
    words = [SPELLED.get(cells[_WORD], "".join(cells[_WORD].split())) for _, cells in lines]
    text, offsets = spaced(words)
    tags = [cells[_TAG].strip() for _, cells in lines]
    about: dict[str, object] = {"words": words, "offsets": offsets}
    if all(tag not in EMPTY for tag in tags):
        about["tags"] = tags
    if all(tag in TAGS for tag in tags):
        about["pos"] = [TAGS[tag] for tag in tags]
    about["constituents"] = [
        [first, end, str(label).split("-")[0] or label]
        for first, end, label in _column(lines, _TREE, flat=False)
    ]
    about["entities"] = _column(lines, _ENTITY)
    about["arguments"] = _arguments(lines)
    about["coreference"] = _mentions(lines)
    check_annotations(about, [text], at)
    return Example(name, text, annotations=about)


def _arguments(lines: Sequence[Line]) -> list[list[int | str]]:
    """[predicate, its end, argument, its end, role] of each column of roles."""
    found: list[list[int | str]] = []
    for number in range(_ROLES, len(lines[0][1]) - 1):
        spans = _column(lines, number)
        predicates = [span for span in spans if span[2] == "V"]
        if len(predicates) != 1:
            raise DataError(
                f"{lines[0][0]}: column {number + 1} of the sentence marks {len(predicates)} "
                "predicates (V), not one."
            )
        (first, end, _) = predicates[0]
        found += [[first, end, *span] for span in spans if span[2] not in ("V", "C-V")]
    return found


def _mentions(lines: Sequence[Line]) -> list[list[tuple[int, int]]]:
    brackets = Brackets()
    for word, (at, cells) in enumerate(lines):
        marks = cells[-1].strip()
        if marks in EMPTY:
            continue
        if BRACKETS.sub("", marks):
            raise DataError(f"{at}: {marks!r:.40} does not tell where mentions begin and end.")
        for begun, alone, ended in BRACKETS.findall(marks):
            if begun:
                brackets.open(begun, word, at)
            if alone or ended:
                brackets.close(begun or ended, word, at)
    return brackets.clusters()
