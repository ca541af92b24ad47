"""SemCor in its own format: a file for each document, a word on each line, with its WordNet sense.

    <s snum="1">
    <wf cmd="ignore" pos="DT">The</wf>
    <wf cmd="done" pos="NN" lemma="grand_jury" wnsn="1" lexsn="1:14:00::">grand_jury</wf>
    <punc>.</punc>
    </s>

Older copies have no quotes around values. A sentence is an example, its document is the GROUP.
SENSES have lemma and part of speech ("grand_jury.n") and WordNet's key
("grand_jury%1:14:00::"); of several keys, the first. What is joined by "_" is several words
with one sense. Names that stand for a kind of thing (pn="person") have that kind as their lemma,
not themselves, so they have no sense here. In the documents brownv only verbs have senses.

The split "test" has a fifth of the documents, by a hash of their names; "train" has the others.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.request import Request
from bertology.data.words.treebank_text import treebank_text
from bertology.errors import DataError, UnknownNameError

_FIELDS = frozenset({Field.TEXT, Field.WORDS, Field.OFFSETS, Field.SENSES, Field.GROUP})
_SPLITS = ("train", "test")
_HELD_OUT = 5  # one document of so many
_WORD = re.compile(r"<(wf|punc)((?:\s[^<>]*)?)>([^<>]*)</\1>")
_ATTRIBUTE = re.compile(r"""(\w+)=(?:"([^"]*)"|([^\s">]+))""")
_FRAME = re.compile(r"</?(?:contextfile|context|p)(?:\s[^<>]*)?>")
_SENTENCE = re.compile(r"<s(?:\s[^<>]*)?>")
# The first number of WordNet's keys; 5 are adjectives that go with another one.
_PARTS_OF_SPEECH = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
_KEY = re.compile(r"([1-5]):\d\d:\d\d:[^\s:]*:(?:\d\d)?")


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The sentences of a document, or of the documents of one split in a folder."""
    path, request = Path(source), Request.of(source, request)
    files = _documents(path, request.split) if path.is_dir() else [path]
    examples = [example for file in files for example in _sentences(file)]
    if not examples:
        raise DataError(f"{path} has no sentence in SemCor's format.")
    return Corpus(request.name, examples, _FIELDS, split=request.split)


def split_of_document(name: str) -> str:
    """The split of a document, by its file's name, whatever other documents there are."""
    return _SPLITS[zlib.crc32(name.encode()) % _HELD_OUT == 0]


def _documents(folder: Path, split: str | None) -> list[Path]:
    if split not in (None, "all", *_SPLITS):
        raise UnknownNameError("split of SemCor", split, ("all", *_SPLITS))
    files = [f for f in sorted(folder.iterdir()) if f.is_file() and not f.name.startswith(".")]
    # The published folder has two documents without a byte.
    there = [f for f in files if f.stat().st_size]
    return [f for f in there if split in (None, "all", split_of_document(f.name))]


def _sentences(path: Path) -> Iterator[Example]:
    words, senses, begun = list[str](), list[list[object]](), 0
    count = 0
    for number, line in numbered_lines(read_text(path)):
        at, line = f"{path.name}, line {number}", line.strip()
        if found := _WORD.fullmatch(line):  # first, as nearly all lines are words
            if not begun:
                raise DataError(f"{at}: a word stands outside of all sentences.")
            _add(words, senses, found, at)
        elif _SENTENCE.fullmatch(line):
            if begun:
                raise DataError(f"{at}: a sentence begins inside the one of line {begun}.")
            words, senses, begun = [], [], number
        elif line == "</s>":
            if not begun:
                raise DataError(f"{at}: a sentence ends here and begins nowhere.")
            if words:
                yield _example(f"{path.name}-{count}", words, senses, path.name)
                count += 1
            begun = 0
        elif line and not _FRAME.fullmatch(line):
            raise DataError(
                f"{at}: {line[:60]!r} is no line of SemCor.",
                hint='Expected: a word in <wf …>, or one of <punc>, <s snum="1">, </s>, <p …>, '
                "</p>, <context …>, <contextfile …>.",
            )
    if begun:
        raise DataError(f"{path.name}: the sentence of line {begun} never ends.")


def _add(words: list[str], senses: list[list[object]], found: re.Match[str], at: str) -> None:
    kind, given, written = found.groups()
    parts = [part for part in unescape(written).split("_") if part.strip()]
    if not parts:
        raise DataError(f"{at}: the word is empty.")
    first = len(words)
    words += parts
    if "lexsn" not in given:
        return
    about = {name: quoted or bare for name, quoted, bare in _ATTRIBUTE.findall(given)}
    lemma, key = (about.get(name) for name in ("lemma", "lexsn"))
    if kind == "punc" or "pn" in about or not lemma or not key:
        return
    key = key.partition(";")[0]
    number = _KEY.fullmatch(key)
    if number is None:
        raise DataError(
            f"{at}: lexsn is {key[:40]!r}, which is no sense of WordNet.",
            hint="Expected the part of its key after %, such as 1:04:00::.",
        )
    name = unescape(lemma)
    of_speech = _PARTS_OF_SPEECH[number[1]]
    senses.append([first, len(words), f"{name}.{of_speech}", f"{name}%{key}"])


def _example(name: str, words: list[str], senses: list[list[object]], document: str) -> Example:
    text, offsets = treebank_text(words)
    about = {
        "words": [text[a:b] for a, b in offsets],
        "offsets": offsets,
        "senses": senses,
        "group": document,
    }
    return Example(name, text, annotations=about)
