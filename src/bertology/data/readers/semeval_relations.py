"""SemEval-2010 task 8: sentences with two nominals and the relation between them.

A sentence has three lines and an empty one after them:

    8	"<e1>People</e1> have been moving back into <e2>downtown</e2>."
    Entity-Destination(e1,e2)
    Comment:

The relation's name says its direction. Words are those of English treebanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request
from bertology.data.readers.annotations import check_annotations
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.mentions import words_at
from bertology.data.words.treebank_words import treebank_words
from bertology.errors import DataError

_FIELDS = frozenset({Field.TEXT, Field.WORDS, Field.OFFSETS, Field.ENTITY_RELATIONS})
_NUMBERED = re.compile(r'(\d+)\s+"?(.*?)"?\s*')
_MARK = re.compile(r"<(/?)e([12])>")
_RELATION = re.compile(r"Other|[A-Z][A-Za-z-]+\(e[12],e[12]\)")


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The sentences of a file."""
    path, request = Path(source), Request.of(source, request)
    examples = [_example(block, path) for block in _blocks(path)]
    return Corpus(request.name, examples, _FIELDS, split=request.split)


def _blocks(path: Path) -> Iterator[list[tuple[int, str]]]:
    block: list[tuple[int, str]] = []
    for number, line in numbered_lines(read_text(path)):
        if line.strip():
            block.append((number, line.strip()))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _example(block: list[tuple[int, str]], path: Path) -> Example:
    at = f"{path.name}, line {block[0][0]}"
    numbered = _NUMBERED.fullmatch(block[0][1])
    if numbered is None or len(block) < 2:
        raise DataError(
            f"{at}: this is no sentence with a number, with its relation on the next line.",
            hint='Expected: 8 "<e1>People</e1> move into <e2>downtown</e2>.", then its relation.',
        )
    line, relation = block[1]
    if not _RELATION.fullmatch(relation):
        raise DataError(
            f"{path.name}, line {line}: {relation!r:.40} is no relation.",
            hint="Expected: Cause-Effect(e1,e2) and the like, or Other.",
        )
    text, marks = _unmarked(numbered[2])
    if set(marks) != {"e1", "/e1", "e2", "/e2"}:
        raise DataError(
            f"{at}: the sentence must have <e1>…</e1> and <e2>…</e2>, each once.",
        )
    offsets = treebank_words(text)
    spans = [words_at(offsets, (marks[e], marks[f"/{e}"]), at) for e in ("e1", "e2")]
    about = {
        "words": [text[a:b] for a, b in offsets],
        "offsets": offsets,
        "entity_relations": [[*spans[0], *spans[1], relation]],
    }
    check_annotations(about, [text], at)
    return Example(numbered[1], text, annotations=about)


def _unmarked(marked: str) -> tuple[str, dict[str, int]]:
    """The text without marks, and where each of them stood."""
    text, places, last = "", dict[str, int](), 0
    for mark in _MARK.finditer(marked):
        text += marked[last : mark.start()]
        name = f"{mark[1]}e{mark[2]}"
        if name in places:
            return text, {}  # twice: refused by its caller
        places[name] = len(text)
        last = mark.end()
    return text + marked[last:], places
