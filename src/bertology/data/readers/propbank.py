"""Universal Proposition Bank: CoNLL-U with the predicates and arguments of PropBank.

Column 11 names the sense of each word that is a predicate (`come.03`); then each predicate has a
column of its own, in their order, that marks its arguments at their head words (`ARG0`, `ARGM-TMP`)
and itself (`V`). An argument is therefore one word here, the head of its phrase.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.annotations import check_annotations
from bertology.data.readers.conllu import FIELDS, ReadSentence, sentences
from bertology.data.readers.request import Request
from bertology.errors import DataError

_EMPTY = ("_", "")
_ITSELF = ("V", "C-V")  # the predicate, and the rest of one in several words ("set up")


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The sentences of a .conllu file with roles."""
    path, request = Path(source), Request.of(source, request)
    examples = [_with_roles(one, path.name) for one in sentences(path, more=True)]
    fields = FIELDS | {Field.ARGUMENTS}
    if all(Field.TAGS in example.annotations for example in examples):
        fields |= {Field.TAGS}
    return Corpus(name=request.name, examples=examples, fields=fields, split=request.split)


def _with_roles(sentence: ReadSentence, file: str) -> Example:
    """With ARGUMENTS, from the columns after the tenth."""
    lines = [(f"{file}, line {number}", cells) for number, cells in sentence.more]
    predicates = [word for word, (_, row) in enumerate(lines) if row and row[0] not in _EMPTY]
    arguments: list[list[int | str]] = []
    for word, (at, row) in enumerate(lines):
        roles = row[1:]
        if not predicates and all(role in _EMPTY for role in roles):
            continue  # published files have one empty column there
        if len(roles) != len(predicates):
            raise DataError(
                f"{at}: {len(roles)} columns of roles, and the sentence has {len(predicates)} "
                "predicates.",
                hint="After column 11 (the sense of a predicate) each predicate has one column.",
            )
        for predicate, role in zip(predicates, roles, strict=True):
            if role not in _EMPTY and role not in _ITSELF:
                arguments.append([predicate, predicate + 1, word, word + 1, role])
    for number, predicate in enumerate(predicates, start=1):
        _check_column([(at, row[number]) for at, row in lines], predicate, set(predicates))
    about = {**sentence.example.annotations, "arguments": sorted(arguments)}
    check_annotations(about, sentence.example.texts, sentence.at)
    return replace(sentence.example, annotations=about)


def _check_column(column: Sequence[tuple[str, str]], predicate: int, all_: set[int]) -> None:
    """V stands at the predicate, or (`turn on`) at a word of it that is no predicate itself."""
    at, own = column[predicate]
    marked = {word for word, (_, role) in enumerate(column) if role in _ITSELF}
    if own not in (*_ITSELF, *_EMPTY) or not marked - (all_ - {predicate}):
        raise DataError(
            f"{at}: the predicate has {own!r:.40} in its own column, where V belongs.",
            hint="The columns of roles are in the order of the predicates.",
        )
