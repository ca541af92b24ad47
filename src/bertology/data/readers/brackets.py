"""Trees in brackets, as in the Penn Treebank (.mrg): `( (S (NP (NNS Dogs)) (VP (VBP bark))) )`.

What is not pronounced (`-NONE-`) is left out, with the phrases that it leaves empty. Functions and
indices of labels are cut off (`NP-SBJ-1` is `NP`), brackets and quotes are written as in plain text
(`-LRB-` is a bracket). The text is the words with spaces, but none before commas and the like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request
from bertology.data.readers.files import read_text
from bertology.data.words.treebank_words import treebank_text
from bertology.errors import DataError

_FIELDS = frozenset({Field.TEXT, Field.WORDS, Field.TAGS, Field.OFFSETS, Field.CONSTITUENTS})
_TOKEN = re.compile(r"[()]|[^\s()]+")
_SILENT = "-NONE-"
_HIGHEST = 100  # brackets above a word that are kept; hostile files have many more


@dataclass
class Phrase:
    """A bracket: its label, its line, how many words came before it, and after its last."""

    line: int
    words: int
    label: str = ""
    has_word: bool = False
    has_phrase: bool = False
    end: int = -1


@dataclass
class TreeSentence:
    """The words of one outermost bracket."""

    line: int
    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    phrases: list[tuple[int, int, str]] = field(default_factory=list)
    above: list[tuple[Phrase, ...]] = field(default_factory=list)
    """The brackets around each terminal, what is not pronounced counted too; its own is last."""


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The sentences of a .mrg file, or of all of those in a folder."""
    path, request = Path(source), Request.of(source, request)
    files = sorted(path.glob("*.mrg")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"{path} has no files that end in .mrg.")
    examples = [
        example_of(sentence, f"{file.stem}-{number}")
        for file in files
        for number, sentence in enumerate(tree_sentences(file))
        if sentence.words
    ]
    return Corpus(name=request.name, examples=examples, fields=_FIELDS, split=request.split)


def tree_sentences(path: Path) -> Iterator[TreeSentence]:
    """One for each outermost bracket; without recursion, however deep brackets are."""
    open_: list[Phrase] = []
    sentence = TreeSentence(1)
    for line, token in _tokens(read_text(path)):
        at = f"{path.name}, line {line}"
        if token == "(":
            if not open_:
                sentence = TreeSentence(line)
            elif open_[-1].has_word:
                raise DataError(f"{at}: a word and a phrase share a bracket.")
            else:
                open_[-1].has_phrase = True
            open_.append(Phrase(line, len(sentence.words)))
        elif not open_:
            raise DataError(
                f"{at}: {token!r:.40} stands outside of all brackets.",
                hint="Every sentence is one bracket: ( (S (NP …) (VP …)) ).",
            )
        elif token == ")":
            _close(open_.pop(), sentence, at, outermost=not open_)
            if not open_:
                yield sentence
        else:
            _name(open_, token, sentence, at)
    if open_:
        raise DataError(f"{path.name}: the bracket of line {open_[0].line} is not closed.")


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        for token in _TOKEN.findall(line):
            yield number, token


def _name(open_: list[Phrase], token: str, sentence: TreeSentence, at: str) -> None:
    """The first token of a bracket is its label; the second is a word."""
    phrase = open_[-1]
    if phrase.has_word or phrase.has_phrase:
        raise DataError(f"{at}: {token!r:.40} comes after the word or the phrases of its bracket.")
    if not phrase.label:
        phrase.label = token
        return
    phrase.has_word = True
    sentence.above.append(tuple(open_[-_HIGHEST:]))
    if phrase.label != _SILENT:
        sentence.words.append(token)
        sentence.tags.append(phrase.label)


def _close(phrase: Phrase, sentence: TreeSentence, at: str, *, outermost: bool) -> None:
    phrase.end = len(sentence.words)
    if not phrase.has_word and not phrase.has_phrase:
        raise DataError(f"{at}: the bracket has neither a word nor phrases.")
    if phrase.has_word or (outermost and not phrase.label):
        return
    if len(sentence.words) > phrase.words:
        label = re.split(r"[-=|]", phrase.label, maxsplit=1)[0] or phrase.label
        sentence.phrases.append((phrase.words, len(sentence.words), label))


def example_of(sentence: TreeSentence, name: str) -> Example:
    """The example of a sentence: its text, words, tags and phrases."""
    text, offsets = treebank_text(sentence.words)
    known = {
        "words": [text[slice(*span)] for span in offsets],
        "tags": sentence.tags,
        "offsets": offsets,
        "constituents": [list(phrase) for phrase in sentence.phrases],
    }
    return Example(id=name, text=text, annotations=known)
