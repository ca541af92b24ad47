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
from bertology.data.readers import Request
from bertology.data.readers.annotations import check_annotations
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.mentions import MENTIONED, Brackets, spaced
from bertology.errors import DataError

EMPTY = ("", "-", "_", "*")
BRACKETS = re.compile(r"\(([^()|]+)(\)?)|([^()|]+)\)|\|")
_BEGIN = re.compile(r"#\s*begin document\s*(?:\((.*)\);\s*part\s*(\d+)|(.*))")
_CONLL_FEWEST = 5  # columns of the shared task's files: four before what we read, and coreference
SPELLED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
            "/.": ".", "/?": "?", "/-": "-"}  # fmt: skip
# The tags of the Penn Treebank that say what kind of word a mention may have, as universal ones.
TAGS = {
    **dict.fromkeys(("NN", "NNS"), "NOUN"), **dict.fromkeys(("NNP", "NNPS"), "PROPN"),
    **dict.fromkeys(("PRP", "PRP$", "WP", "WP$", "EX"), "PRON"), "CD": "NUM", "MD": "AUX",
    **dict.fromkeys(("VB", "VBD", "VBG", "VBN", "VBP", "VBZ"), "VERB"), "POS": "PART", "TO": "PART",
    **dict.fromkeys(("JJ", "JJR", "JJS", "AFX"), "ADJ"), "CC": "CCONJ", "IN": "ADP", "UH": "INTJ",
    **dict.fromkeys(("RB", "RBR", "RBS", "WRB"), "ADV"), **dict.fromkeys(("DT", "PDT", "WDT"),
    "DET"), **dict.fromkeys((".", ",", ":", "``", "''", "-LRB-", "-RRB-", "HYPH", "NFP"), "PUNCT"),
    **dict.fromkeys(("$", "#", "SYM"), "SYM"), "RP": "ADP",
    **dict.fromkeys(("FW", "LS", "ADD", "XX", "GW"), "X"),
}  # fmt: skip


def read_conll(source: str | Path, request: Request | None = None) -> Corpus:
    """CoNLL-2011/2012: documents in columns, mentions as brackets in the last one.

    The columns are those of the shared task (document, part, number, word, tag, …, coreference), as
    in OntoNotes, LitBank and WinoBias, or three (number, word, coreference), as in GUM and OntoGUM.
    Lines that begin with `#` open and end documents; empty lines end sentences, where there are
    any. Brackets are `(7` at the first word, `7)` at the last, `(7)` for one word, several with or
    without `|` between them. The reader `ontonotes` gives the shared task's files sentence by
    sentence, with trees, entities and roles. What stands between the words in the source is not
    known: they are spaced.

    The documents of a file; each part of a document is an example.
    """
    path, request = Path(source), Request.of(source, request)
    found = list(_documents(path))
    examples = [document.example(i) for i, document in enumerate(found)]
    fields = MENTIONED
    for added in (Field.SENTENCES, Field.POS):
        if all(added in example.annotations for example in examples):
            fields |= {added}
    return Corpus(name=request.name, examples=examples, fields=fields, split=request.split)


@dataclass
class _Document:
    name: str
    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    sentences: list[int] = field(default_factory=lambda: [0])
    brackets: Brackets = field(default_factory=Brackets)

    def example(self, number: int) -> Example:
        text, offsets = spaced(self.words)
        about: dict[str, object] = {
            "words": self.words,
            "offsets": offsets,
            "coreference": self.brackets.clusters(),
        }
        begun = [word for word in self.sentences if word < len(self.words)]
        if len(begun) > 1:
            about["sentences"] = begun
        tags = [TAGS.get(tag) for tag in self.tags]
        if all(tag is not None for tag in tags):
            about["pos"] = tags
        return Example(id=self.name or str(number), text=text, annotations=about)


def _documents(path: Path) -> Iterator[_Document]:
    document = _Document("")
    for number, line in numbered_lines(read_text(path)):
        if line.startswith("#"):
            if document.words:
                yield document
                document = _Document("")
            if begun := _BEGIN.match(line):
                name, part, plain = begun.groups()
                document.name = (plain or "").strip() if name is None else f"{name}/{int(part)}"
        elif not line.strip():
            document.sentences.append(len(document.words))
        else:
            _take(document, line, f"{path.name}, line {number}")
    if document.words:
        yield document


def _take(document: _Document, line: str, at: str) -> None:
    cells = line.split("\t") if "\t" in line else line.split()
    if len(cells) != 3 and len(cells) < _CONLL_FEWEST:
        raise DataError(
            f"{at}: {len(cells)} columns.",
            hint="CoNLL-2012 has document, part, number, word, tag, …, coreference; files with "
            "three columns have number, word, coreference.",
        )
    written = cells[1] if len(cells) == 3 else cells[3]
    word = SPELLED.get(written, "".join(written.split()))
    marks = cells[-1].strip()
    if not word:
        if marks not in EMPTY:
            raise DataError(f"{at}: the word is missing.")
        return  # a published file of OntoGUM has such a line
    place = len(document.words)
    document.words.append(word)
    document.tags.append("" if len(cells) == 3 else cells[4])
    if len(document.sentences) > 1 and document.sentences[-1] == document.sentences[-2]:
        document.sentences.pop()  # two empty lines
    if marks in EMPTY:
        return
    if BRACKETS.sub("", marks):
        raise DataError(
            f"{at}: {marks!r:.40} does not tell where mentions begin and end.",
            hint="Expected (7 at the first word, 7) at the last, (7) for one word; - for none.",
        )
    for begun, alone, ended in BRACKETS.findall(marks):
        if begun:
            document.brackets.open(begun, place, at)
        if begun and alone:
            document.brackets.close(begun, place, at)
        elif ended:
            document.brackets.close(ended, place, at)


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
