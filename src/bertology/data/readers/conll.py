"""CoNLL-2011/2012: documents in columns, mentions as brackets in the last one.

The columns are those of the shared task (document, part, number, word, tag, …, coreference), as in
OntoNotes, LitBank and WinoBias, or three (number, word, coreference), as in GUM and OntoGUM.
Lines that begin with `#` open and end documents; empty lines end sentences, where there are any.
Brackets are `(7` at the first word, `7)` at the last, `(7)` for one word, several with or without
`|` between them. The reader `ontonotes` gives the shared task's files sentence by sentence, with
trees, entities and roles. What stands between the words in the source is not known: they are
spaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.mentions import MENTIONED, Brackets, spaced
from bertology.data.readers.request import Request
from bertology.errors import DataError

EMPTY = ("", "-", "_", "*")
BRACKETS = re.compile(r"\(([^()|]+)(\)?)|([^()|]+)\)|\|")
_BEGIN = re.compile(r"#\s*begin document\s*(?:\((.*)\);\s*part\s*(\d+)|(.*))")
_FEWEST = 5  # columns of the shared task's files: four before what we read, and coreference
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


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The documents of a file; each part of a document is an example."""
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
    if len(cells) != 3 and len(cells) < _FEWEST:
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
