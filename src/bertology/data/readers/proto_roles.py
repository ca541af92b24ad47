"""Semantic proto-roles: has an argument of a predicate this property (is it aware, does it change)?

A folder holds the judgements (one .tsv file with the column Property) of one of two releases:

- SPR1 (Reisinger et al. 2015) counts words in trees of the Penn Treebank, whose .mrg files are in
  the folder that the option `treebank` names; arguments are given by a word and how many brackets
  lie above it.
- SPR2 (White et al. 2016) counts words in sentences of English UD, which are in `sentences.tsv`
  beside the judgements (columns Sentence.ID and tokens, with spaces between them).

A property holds where judges give it 4 or 5 of 5 in the mean; one that a judge calls not applicable
counts as 1. All judgements of a sentence are one example; of an argument in pieces the first one
counts. Splits are those of the release; `all` is the three of them together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request
from bertology.data.readers.annotations import check_annotations
from bertology.data.readers.brackets import TreeSentence, example_of, tree_sentences
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.mentions import spaced
from bertology.data.words.alignment import Span
from bertology.errors import DataError

_SPLITS = {"train": "train", "validation": "dev", "test": "test"}
_HOLDS = 4.0
_COMMON = ("Split", "Sentence.ID", "Pred.Token", "Property", "Response", "Applicable")
_OF_TREES, _OF_WORDS = ("Arg.Pos",), ("Arg.Tokens.Begin", "Arg.Tokens.End")
_SENTENCES = "sentences.tsv"
Row = Mapping[str, str]


@dataclass(frozen=True)
class _Judged:
    """The ratings of one argument, by property; and where the first of them stands."""

    row: Row
    at: str
    ratings: dict[str, list[float]]


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The sentences of a release, with PROTO_ROLES."""
    folder, request = Path(source), Request.of(source, request)
    files = [folder] if folder.is_file() else sorted(folder.glob("*.tsv"))
    files = [file for file in files if file.name != _SENTENCES]
    if len(files) != 1:
        raise DataError(
            f"{folder} should hold one .tsv file of judgements, and has {len(files)}.",
            hint="Keep the file of the release that you want, or name it.",
        )
    file = files[0]
    rows = list(_rows(file))
    trees = all(column in rows[0][1] for column in _OF_TREES)
    needed = (*_COMMON, *(_OF_TREES if trees else _OF_WORDS))
    if missing := [column for column in needed if column not in rows[0][1]]:
        raise DataError(
            f"{file.name} has no column {', '.join(missing)}.",
            hint="Expected is a file of Semantic Proto-Roles, version 1 or 2.",
        )
    wanted = _SPLITS.get(request.split or "", "")
    found = _gathered([(at, row) for at, row in rows if wanted in ("", row["Split"])])
    if not found:
        raise DataError(f"{file.name} has no judgement in the split {request.split!r}.")
    make = _of_trees(folder, request) if trees else _of_words(folder)
    examples = [make(name, judged) for name, judged in found.items()]
    fields = {Field.TEXT, Field.WORDS, Field.OFFSETS, Field.PROTO_ROLES}
    if trees:
        fields |= {Field.TAGS, Field.CONSTITUENTS}
    return Corpus(request.name, examples, frozenset(fields), split=request.split)


def _rows(file: Path) -> Iterator[tuple[str, Row]]:
    header: list[str] = []
    for number, line in numbered_lines(read_text(file)):
        cells = line.split("\t")
        if not header:
            header = cells
        elif line.strip():
            at = f"{file.name}, line {number}"
            if len(cells) != len(header):
                raise DataError(f"{at}: {len(cells)} columns where the header has {len(header)}.")
            yield at, dict(zip(header, cells, strict=True))


def _gathered(rows: list[tuple[str, Row]]) -> dict[str, list[_Judged]]:
    """By sentence its arguments, with all ratings of each property."""
    arguments: dict[tuple[str, ...], _Judged] = {}
    for at, row in rows:
        places = [row.get(column, "") for column in (*_OF_TREES, *_OF_WORDS)]
        key = (row["Sentence.ID"], row["Pred.Token"], *places)
        one = arguments.setdefault(key, _Judged(row, at, defaultdict(list)))
        try:
            rating = float(row["Response"])
        except ValueError:
            raise DataError(f"{at}: the response {row['Response']!r:.20} is no number.") from None
        if row["Applicable"].lower() in ("false", "no"):
            rating = 1.0
        if rating == rating:  # published files have `nan` for a few that were not given
            one.ratings[row["Property"]].append(rating)
    found: dict[str, list[_Judged]] = defaultdict(list)
    for (sentence, *_), one in arguments.items():
        found[sentence].append(one)
    return found


def _annotated(example: Example, pairs: list[tuple[Span, Span, _Judged]], at: str) -> Example:
    roles = []
    for predicate, argument, judged in pairs:
        means = {name: sum(of) / len(of) for name, of in judged.ratings.items()}
        holds = {name: mean >= _HOLDS for name, mean in sorted(means.items())}
        roles.append([*predicate, *argument, holds])
    about = {**example.annotations, "proto_roles": roles}
    check_annotations(about, example.texts, at)
    return Example(example.id, example.text, annotations=about)


def _whole(row: Row, column: str, at: str) -> int:
    try:
        return int(row[column])
    except ValueError:
        raise DataError(f"{at}: {column} {row[column]!r:.20} is no whole number.") from None


def _of_words(folder: Path) -> Callable[[str, list[_Judged]], Example]:
    """SPR2: words of the sentences in a file beside the judgements."""
    beside = folder.parent if folder.is_file() else folder
    if not (beside / _SENTENCES).is_file():
        raise DataError(
            f"{beside} has no {_SENTENCES}, which says what the judged sentences are.",
            hint="Write one with the columns Sentence.ID and tokens (of UD English EWT 1.2).",
        )
    tokens = {row["Sentence.ID"]: row["tokens"].split() for _, row in _rows(beside / _SENTENCES)}

    def make(name: str, judged: list[_Judged]) -> Example:
        at = judged[0].at
        if name not in tokens:
            raise DataError(f"{at}: {_SENTENCES} has no sentence {name!r:.60}.")
        text, offsets = spaced(tokens[name])
        pairs = []
        for one in judged:
            predicate = _whole(one.row, "Pred.Token", one.at)
            first, last = (_whole(one.row, column, one.at) for column in _OF_WORDS)
            pairs.append(((predicate, predicate + 1), (first, last + 1), one))
        example = Example(name, text, annotations={"words": tokens[name], "offsets": offsets})
        return _annotated(example, pairs, at)

    return make


def _of_trees(folder: Path, request: Request) -> Callable[[str, list[_Judged]], Example]:
    """SPR1: words of trees, in which what is not pronounced is counted."""
    beside = folder.parent if folder.is_file() else folder
    trees = beside / str(request.options.get("treebank", "../treebank/combined"))
    if not trees.is_dir():
        raise DataError(
            f"There is no folder {trees} with the trees that were judged (wsj_0001.mrg, …).",
            hint="Say where the Penn Treebank is with treebank=…, relative to the judgements.",
        )
    read: dict[str, list[TreeSentence]] = {}

    def make(name: str, judged: list[_Judged]) -> Example:
        at, (file, _, number) = judged[0].at, name.partition("_")
        path = trees / f"wsj_{file}.mrg"
        if file not in read:
            if not path.is_file():
                raise DataError(f"{at}: there is no file {path}.")
            read[file] = list(tree_sentences(path))
        if not number.isdecimal() or int(number) >= len(read[file]):
            raise DataError(f"{at}: {path.name} has no sentence {number!r:.20}.")
        tree = read[file][int(number)]
        pairs = [
            (
                _place(tree, f"{_whole(one.row, 'Pred.Token', one.at)}:0", one.at),
                _place(tree, one.row["Arg.Pos"].split(",")[0], one.at),
                one,
            )
            for one in judged
        ]
        return _annotated(example_of(tree, name), pairs, at)

    return make


def _place(tree: TreeSentence, given: str, at: str) -> Span:
    """The words below the bracket that lies so many above a terminal: `7:2`."""
    terminal, _, height = given.partition(":")
    known = terminal.isdecimal() and height.isdecimal() and int(terminal) < len(tree.above)
    if not known or int(height) >= len(tree.above[int(terminal)]):
        raise DataError(f"{at}: the tree has no bracket {given!r:.20}.")
    phrase = tree.above[int(terminal)][-1 - int(height)]
    if phrase.words == phrase.end:
        raise DataError(f"{at}: nothing is pronounced below the bracket {given!r:.20}.")
    return phrase.words, phrase.end
