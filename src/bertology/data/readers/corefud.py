"""CorefUD: coreference in CoNLL-U, as `Entity=` in the last column (GUM and many others).

An example is a document, from one `# newdoc` to the next, with the trees of its sentences; the
reader `conllu` gives the same files sentence by sentence. `(e3-person` opens a mention of the
entity e3, `e3)` closes it. Of a mention in several pieces (`e3[1/2]`) the first piece counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.conllu import MARKS, sentences
from bertology.data.readers.mentions import MENTIONED, Brackets
from bertology.data.readers.request import Request
from bertology.errors import DataError

_JOINED = ("words", "lemmas", "pos", "relations")
_FIELDS = MENTIONED | {Field.LEMMAS, Field.POS, Field.HEADS, Field.RELATIONS, Field.SENTENCES}
_PIECE = re.compile(r"\[(\d+)/\d+\]")


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The documents of a .conllu file whose mentions are annotated."""
    path, request = Path(source), Request.of(source, request)
    documents = list(_documents(path))
    if not any(document.marked for document in documents):
        raise DataError(
            f"{path.name} annotates no coreference: no word has Entity= in its last column.",
            hint="Read it sentence by sentence with reader=conllu.",
        )
    examples = [document.example(i) for i, document in enumerate(documents)]
    return Corpus(name=request.name, examples=examples, fields=_FIELDS, split=request.split)


@dataclass
class _Document:
    name: str
    text: str = ""
    marked: bool = False
    brackets: Brackets = field(default_factory=Brackets)
    about: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, sentence: Example, entities: Sequence[str], at: str) -> None:
        """One more sentence, whose words are counted on."""
        about = self.about
        words = len(about.setdefault("words", []))
        start = len(self.text) + 1 if self.text else 0
        for name in _JOINED:
            about.setdefault(name, []).extend(sentence.get(name))
        heads = [head if head < 0 else head + words for head in sentence.get("heads")]
        about.setdefault("heads", []).extend(heads)
        spans = [(a + start, b + start) for a, b in sentence.get("offsets")]
        about.setdefault("offsets", []).extend(spans)
        about.setdefault("sentences", []).append(words)
        self.text = f"{self.text} {sentence.text}" if self.text else sentence.text
        for word, marks in enumerate(entities, start=words):
            if marks:
                self.marked = True
                self._mark(marks, word, at)

    def _mark(self, marks: str, word: int, at: str) -> None:
        if MARKS.sub("", marks):
            raise DataError(
                f"{at}: Entity={marks!r:.60} does not tell where mentions begin and end.",
                hint="Expected (e1-person at the first word, e1) at the last.",
            )
        for begun, alone, ended in MARKS.findall(marks):
            name = (begun or ended).split("-")[0]
            piece = _PIECE.search(name)
            if piece is not None and piece[1] != "1":
                continue
            name = _PIECE.sub("", name)
            if begun:
                self.brackets.open(name, word, at)
            if alone or ended:
                self.brackets.close(name, word, at)

    def example(self, number: int) -> Example:
        about = {**self.about, "coreference": self.brackets.clusters()}
        return Example(id=self.name or str(number), text=self.text, annotations=about)


def _documents(path: Path) -> Iterator[_Document]:
    document = _Document("")
    for one in sentences(path):
        parsed = one.parsed
        if "newdoc id" in parsed.metadata or "newdoc" in parsed.metadata:
            if document.about:
                yield document
            document = _Document(str(parsed.metadata.get("newdoc id") or ""))
        entities = [
            str((token["misc"] or {}).get("Entity") or "")
            for token in parsed
            if isinstance(token["id"], int)
        ]
        document.add(one.example, entities, one.at)
    if document.about:
        yield document
