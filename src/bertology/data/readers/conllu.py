"""CoNLL-U: syntactic words with lemmas, tags, heads, relations and their place in the text.

A multiword token (`2-3 don't`) gives its syntactic words (`do`, `n't`); if they spell
it, each gets its own characters; if not (French `du` = `de` + `le`), each gets all of them.
Empty nodes (`8.1`) belong to the enhanced graph only and are skipped. Where the words have tags of
the treebank's own (XPOS), these are kept as TAGS; where the file says that `Entity=` holds types of
entities (`# global.Entity = GRP-etype-…`, as in GUM), mentions are kept as ENTITIES, but for those
that go on in the next sentence and for later pieces of those in several.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request
from bertology.data.readers.annotations import check_annotations, check_heads
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.mentions import MENTIONED, Brackets
from bertology.errors import DataError

_COLUMNS = 10
FIELDS = frozenset(
    {
        Field.TEXT, Field.WORDS, Field.LEMMAS, Field.POS, Field.HEADS, Field.RELATIONS,
        Field.OFFSETS, Field.SUBJECT, Field.OBJECT, Field.VERB, Field.NEGATION, Field.NUMBER,
    }
)  # fmt: skip
# The enhanced graph is not used, and parsing it takes most of the time.
_PARSERS = {"deps": lambda line, i: line[i]}
_NUMBERS = {"Sing": "singular", "Plur": "plural"}
MARKS = re.compile(r"\(([^()]+)(\)?)|([^()]+)\)")
"""Of `Entity=`: a mention that begins (and perhaps ends) here, or one that ends."""
_LATER = re.compile(r"\[(?!1/)\d+/\d+\]")  # a later piece of a mention in several
Token = Mapping[str, Any]
"""One line of a sentence, by the names of the columns; their types differ."""


class Sentence(Protocol):
    """What is used of a `conllu.TokenList`."""

    @property
    def metadata(self) -> Mapping[str, str]: ...
    def __iter__(self) -> Iterator[Token]: ...


@dataclass(frozen=True)
class ReadSentence:
    """Where a sentence stands, how it was parsed, the example made of it, and more columns."""

    at: str
    parsed: Sentence
    example: Example
    more: Sequence[tuple[int, Sequence[str]]] = field(default_factory=list)
    """Of each word its line and the cells from the eleventh on, where there may be any."""


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The sentences of a .conllu file."""
    path, request = Path(source), Request.of(source, request)
    found = list(sentences(path))
    examples = [one.example for one in found]
    fields = FIELDS
    if all(Field.TAGS in example.annotations for example in examples):
        fields |= {Field.TAGS}
    declared = str(found[0].parsed.metadata.get("global.Entity", "")).split("-")
    if "etype" in declared:
        examples = [_with_entities(one, declared.index("etype")) for one in found]
        fields |= {Field.ENTITIES}
    return Corpus(
        name=request.name, examples=examples, fields=fields, task=None, split=request.split
    )


def sentences(path: Path, *, more: bool = False) -> Iterator[ReadSentence]:
    """The sentences of a file; with `more`, lines may have more than the ten columns."""
    for index, (line, block) in enumerate(_blocks(read_text(path))):
        at = f"{path.name}, sentence at line {line}"
        cells: list[tuple[int, Sequence[str]]] = []
        if more:
            for number, row in enumerate(block, start=line):
                if not row.startswith("#") and row.partition("\t")[0].isdecimal():
                    cells.append((number, row.split("\t")[_COLUMNS:]))
            block = [
                row if row.startswith("#") else "\t".join(row.split("\t")[:_COLUMNS])
                for row in block
            ]
        parsed = _parsed(block, line, path)
        yield ReadSentence(at, parsed, _example(parsed, at, index), cells)


def _with_entities(sentence: ReadSentence, type_at: int) -> Example:
    """With ENTITIES, whose type is so many places after the name of the mention's entity."""
    open_: dict[str, list[tuple[int, str]]] = {}
    found: list[list[int | str]] = []
    words = [token for token in sentence.parsed if isinstance(token["id"], int)]
    for place, token in enumerate(words):
        for begun, alone, ended in MARKS.findall(str((token["misc"] or {}).get("Entity") or "")):
            name, *about = (begun or ended).split("-")
            if _LATER.search(name):
                continue
            if begun:
                kind = about[type_at - 1] if len(about) >= type_at else ""
                open_.setdefault(name, []).append((place, kind))
            if (alone or ended) and open_.get(name):
                first, kind = open_[name].pop()
                if kind:
                    found.append([first, place + 1, kind])
    about = {**sentence.example.annotations, "entities": sorted(found)}
    return replace(sentence.example, annotations=about)


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    first, block = 1, list[str]()
    for number, line in numbered_lines(text):
        if line.strip():
            if not block:
                first = number
            block.append(line)
        elif block:
            yield first, block
            block = []
    if block:
        yield first, block


def _parsed(block: list[str], line: int, path: Path) -> Sentence:
    from conllu import parse
    from conllu.exceptions import ParseException

    for number, row in enumerate(block, start=line):
        if not row.startswith("#") and (n := row.count("\t") + 1) != _COLUMNS:
            raise DataError(
                f"{path.name}, line {number}: {n} columns where CoNLL-U has {_COLUMNS}.",
                hint="Columns are separated by tabs; '_' stands for an empty one.",
            )
    try:
        parsed: Sentence = parse("\n".join(block) + "\n\n", field_parsers=_PARSERS)[0]
    except ParseException as error:
        where = f"{path.name}, sentence at line {line}"
        raise DataError(f"{where}: not CoNLL-U ({str(error).strip()}).") from None
    return parsed


def _example(tokens: Sentence, at: str, index: int) -> Example:
    words = [t for t in tokens if isinstance(t["id"], int)]
    if not words:
        raise DataError(f"{at}: there are no words.")
    if [w["id"] for w in words] != list(range(1, len(words) + 1)):
        raise DataError(f"{at}: the words are not numbered 1, 2, 3, ….")
    heads = []
    for word in words:
        head = word["head"]
        if not isinstance(head, int) or not 0 <= head <= len(words):
            raise DataError(f"{at}: word {word['id']} {word['form']!r} has the head {head!r}.")
        heads.append(head - 1)
    check_heads(heads, at)
    text, offsets = _place(tokens, words, at)
    relations = [str(w["deprel"]) for w in words]
    annotations: dict[str, object] = {
        "words": [w["form"] for w in words],
        "lemmas": [w["lemma"] for w in words],
        "pos": [w["upos"] for w in words],
        "heads": heads,
        "relations": relations,
        "offsets": offsets,
        **_main_clause(words, heads, relations),
    }
    if all(w["xpos"] not in (None, "_") for w in words):
        annotations["tags"] = [w["xpos"] for w in words]
    return Example(
        id=str(tokens.metadata.get("sent_id", index)), text=text, annotations=annotations
    )


def _place(tokens: Sentence, words: list[Token], at: str) -> tuple[str, list[tuple[int, int]]]:
    """The sentence as written, and the place of each syntactic word in it."""
    spans: dict[int, tuple[int, int]] = {}
    text, cut = "", 0
    for token in tokens:
        number = token["id"]
        inside = isinstance(number, int) and number in spans
        empty = isinstance(number, tuple) and number[1] == "."
        if inside or empty:
            continue
        start = len(text)
        text += token["form"]
        cut = len(text)
        if isinstance(number, int):
            spans[number] = (start, len(text))
        else:
            parts = words[number[0] - 1 : number[2]]
            spans |= _share([w["form"] for w in parts], number[0], token["form"], start)
        if (token["misc"] or {}).get("SpaceAfter") != "No":
            text += " "
    # The comment `# text` keeps what the columns lose, for instance two spaces in a row.
    written = tokens.metadata.get("text")
    ordered = [spans[w["id"]] for w in words]
    text = text[:cut]
    if written is None or written == text:
        return text, ordered
    return written, _move(ordered, text, written, at)


def _share(forms: list[str], first: int, surface: str, start: int) -> dict[int, tuple[int, int]]:
    if "".join(forms) != surface:
        return {first + i: (start, start + len(surface)) for i in range(len(forms))}
    spans = {}
    for i, form in enumerate(forms):
        spans[first + i] = (start, start + len(form))
        start += len(form)
    return spans


def _move(spans: list[tuple[int, int]], ours: str, written: str, at: str) -> list[tuple[int, int]]:
    """Spans in `ours` as spans in `written`, which differs from it in white space only."""
    here = [i for i, c in enumerate(ours) if not c.isspace()]
    there = [i for i, c in enumerate(written) if not c.isspace()]
    if [ours[i] for i in here] != [written[i] for i in there]:
        raise DataError(
            f"{at}: the words do not spell the comment '# text = {written[:60]}'.",
            hint="Correct the comment, or delete it.",
        )
    to = dict(zip(here, there, strict=True))
    return [(to[a], to[b - 1] + 1) for a, b in spans]


def _main_clause(words: list[Token], heads: list[int], relations: list[str]) -> dict[str, object]:
    root = heads.index(-1) if -1 in heads else None

    def child(*names: str) -> int | None:
        at = (i for i, (h, r) in enumerate(zip(heads, relations, strict=True))
              if root is not None and h == root and r.split(":")[0] in names)  # fmt: skip
        return next(at, None)

    subject = child("nsubj", "csubj")
    verbal = root is not None and words[root]["upos"] in ("VERB", "AUX")
    number = (words[subject]["feats"] or {}).get("Number") if subject is not None else None
    return {
        "subject": subject,
        "object": child("obj"),
        "verb": root if verbal else child("cop"),
        "negation": [i for i, w in enumerate(words) if (w["feats"] or {}).get("Polarity") == "Neg"],
        "number": _NUMBERS.get(number) if number else None,
    }


_EMPTY = ("_", "")
_ITSELF = ("V", "C-V")  # the predicate, and the rest of one in several words ("set up")


def read_propbank(source: str | Path, request: Request | None = None) -> Corpus:
    """Universal Proposition Bank: CoNLL-U with the predicates and arguments of PropBank.

    Column 11 names the sense of each word that is a predicate (`come.03`); then each predicate has
    a column of its own, in their order, that marks its arguments at their head words (`ARG0`,
    `ARGM-TMP`) and itself (`V`). An argument is therefore one word here, the head of its phrase.

    The sentences of a .conllu file with roles.
    """
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


_JOINED = ("words", "lemmas", "pos", "relations")
_FIELDS = MENTIONED | {Field.LEMMAS, Field.POS, Field.HEADS, Field.RELATIONS, Field.SENTENCES}
_PIECE = re.compile(r"\[(\d+)/\d+\]")


def read_corefud(source: str | Path, request: Request | None = None) -> Corpus:
    """CorefUD: coreference in CoNLL-U, as `Entity=` in the last column (GUM and many others).

    An example is a document, from one `# newdoc` to the next, with the trees of its sentences; the
    reader `conllu` gives the same files sentence by sentence. `(e3-person` opens a mention of the
    entity e3, `e3)` closes it. Of a mention in several pieces (`e3[1/2]`) the first piece counts.

    The documents of a .conllu file whose mentions are annotated.
    """
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
