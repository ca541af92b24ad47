"""A pronoun or a person, and what in the text is meant: GAP, WinoBias, Winograd schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request
from bertology.data.readers.csv import tab_separated
from bertology.data.readers.files import numbered_lines, read_text, xml_root
from bertology.data.readers.jsonl import objects
from bertology.data.readers.mentions import MENTIONED, of_characters
from bertology.data.words.alignment import Span, split_words
from bertology.errors import DataError

_COLUMNS = (
    "ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset",
    "B-coref", "URL",
)  # fmt: skip
_FEMININE = ("she", "her", "hers")
_SAID = {"true": True, "false": False}


def read_gap(source: str | Path, request: Request | None = None) -> Corpus:
    """GAP: a pronoun and two names in a passage of Wikipedia, and which of them it stands for.

    The name that the pronoun stands for is in its cluster; the other name, and both where it is
    neither, are mentions of their own. Other mentions of the passage are not annotated.

    The passages of a GAP file; GROUP is the pronoun's gender.
    """
    path, request = Path(source), Request.of(source, request)
    (_, header), *rows = tab_separated(path)
    if tuple(header) != _COLUMNS:
        raise DataError(
            f"{path.name} is no GAP file: its first line is {header!r:.80}.",
            hint=f"Expected columns, separated by tabs: {', '.join(_COLUMNS)}.",
        )
    examples = []
    for number, cells in rows:
        at = f"{path.name}, line {number}"
        if len(cells) != len(_COLUMNS):
            raise DataError(f"{at}: {len(cells)} cells where {len(_COLUMNS)} columns are.")
        examples.append(_gap_example(dict(zip(_COLUMNS, cells, strict=True)), at))
    fields = MENTIONED | {Field.GROUP}
    return Corpus(name=request.name, examples=examples, fields=fields, split=request.split)


def _gap_example(row: dict[str, str], at: str) -> Example:
    pronoun, *names = (_mention(row, which, at) for which in ("Pronoun", "A", "B"))
    together, apart = [pronoun], []
    for which, name in zip("AB", names, strict=True):
        said = row[f"{which}-coref"].strip().lower()
        if said not in _SAID:
            raise DataError(f"{at}: {which}-coref must be TRUE or FALSE, not {said!r:.40}.")
        if _SAID[said]:
            together.append(name)
        else:
            apart.append([name])
    gender = "feminine" if row["Pronoun"].lower() in _FEMININE else "masculine"
    clusters = [sorted(together), *apart]
    return of_characters(row["ID"], row["Text"], clusters, at, more={"group": gender})


def _mention(row: dict[str, str], which: str, at: str) -> Span:
    text, written, offset = row["Text"], row[which], row[f"{which}-offset"]
    start = int(offset) if offset.isascii() and offset.isdigit() and len(offset) < 9 else -1
    if start < 0 or not written.strip() or not text.startswith(written, start):
        raise DataError(
            f"{at}: {which} {written!r:.40} does not stand at character {offset!r:.20} of the text."
        )
    return start, start + len(written)


_NUMBER = re.compile(r"\s*\d+\s+")
_OCCUPATIONS = (
    "driver supervisor janitor cook mover laborer construction_worker chief developer carpenter "
    "manager lawyer farmer salesperson physician guard analyst mechanic sheriff CEO attendant "
    "cashier teacher nurse assistant secretary auditor cleaner receptionist clerk counselor "
    "designer hairdresser writer housekeeper baker accountant editor librarian tailor"
).split()
_OTHER = re.compile(
    rf"\b(?:(?:the|an?)\s+)?(?:{'|'.join(o.replace('_', ' ') for o in _OCCUPATIONS)})s?\b",
    re.IGNORECASE,
)


def read_winobias(source: str | Path, request: Request | None = None) -> Corpus:
    """WinoBias: sentences about two people by their occupations, and a pronoun for one of them.

    Lines are like `1 [The developer] argued with the designer because [he] did not like the
    design.`: what is in brackets is one person. The other occupation is found by the published
    lists of both, and is a mention of its own. GROUP is the name of the file up to its first dot,
    such as `pro_stereotyped_type1`: whether the pronoun suits the stereotype, and whether syntax
    decides (type 2) or only what is known of the world (type 1).

    The sentences of a file such as pro_stereotyped_type1.txt.dev.
    """
    path, request = Path(source), Request.of(source, request)
    group = path.name.partition(".")[0]
    examples = [
        _winobias_example(line, str(number), group, f"{path.name}, line {number}")
        for number, line in numbered_lines(read_text(path))
        if line.strip()
    ]
    fields = MENTIONED | {Field.GROUP}
    return Corpus(name=request.name, examples=examples, fields=fields, split=request.split)


def _winobias_example(line: str, name: str, group: str, at: str) -> Example:
    written = _NUMBER.sub("", line, count=1).strip()
    text, mentions = _without_brackets(written, at)
    if len(mentions) < 2:
        raise DataError(
            f"{at}: two or more mentions of one person must be in [brackets], not {len(mentions)}.",
            hint="Such as: 1 [The cook] thanked the guard because [she] was grateful.",
        )
    others = [m.span() for m in _OTHER.finditer(text)]
    apart = [[span] for span in others if not any(_overlap(span, m) for m in mentions)]
    return of_characters(name, text, [mentions, *apart], at, more={"group": group})


def _without_brackets(written: str, at: str) -> tuple[str, list[Span]]:
    text, mentions, begun = "", list[Span](), -1
    for character in written:
        if character == "[" and begun < 0:
            begun = len(text)
        elif character == "]" and 0 <= begun < len(text):
            mentions.append((begun, len(text)))
            begun = -1
        elif character in "[]":
            raise DataError(f"{at}: the brackets are not in pairs: {written!r:.60}.")
        else:
            text += character
    if begun >= 0:
        raise DataError(f"{at}: a bracket is never closed: {written!r:.60}.")
    return text, mentions


def _overlap(a: Span, b: Span) -> bool:
    return a[0] < b[1] and b[0] < a[1]


_ARTICLE = re.compile(r"(?:the|an?|my|his|her|their)\s+", re.IGNORECASE)


def read_wsc(source: str | Path, request: Request | None = None) -> Corpus:
    """The Winograd Schema Challenge: a pronoun, and what it may stand for.

    Two layouts: the collection of Davis, Morgenstern and Marcus (.xml: a text in two parts around
    the pronoun, two answers, the right one), and SuperGLUE's (.jsonl: a span of words, a pronoun,
    whether they corefer), in which the rows of one text and pronoun make one example. The right
    candidate is in the pronoun's cluster; others are mentions of their own. A candidate that the
    text does not spell (an answer in other words) is left out.

    The schemas of a .xml or a .jsonl file.
    """
    path, request = Path(source), Request.of(source, request)
    examples = list(_collection(path) if path.suffix.lower() == ".xml" else _super_glue(path))
    return Corpus(name=request.name, examples=examples, fields=MENTIONED, split=request.split)


def _collection(path: Path) -> Iterator[Example]:
    for i, schema in enumerate(xml_root(path).iter("schema")):
        at = f"{path.name}, schema {i + 1}"
        before, pronoun, after = (_said(schema, f"text/{part}", at) for part in
                                  ("txt1", "pron", "txt2"))  # fmt: skip
        answers = [" ".join((a.text or "").split()) for a in schema.iterfind("answers/answer")]
        right = _said(schema, "correctAnswer", at)[:1].upper()
        if not pronoun or not right or right not in "ABCDEFGH"[: len(answers)]:
            raise DataError(f"{at}: a pronoun, answers and the letter of the right one are wanted.")
        opening = f"{before} " if before else ""
        gap = "" if after[:1] in (".", ",", ";", "?", "!", "'") or not after else " "
        text = f"{opening}{pronoun}{gap}{after}"
        found = (len(opening), len(opening) + len(pronoun))
        spans = [_spelled(answer, text, found) for answer in answers]
        said = ["ABCDEFGH"[k] == right for k in range(len(answers))]
        yield _wsc_example(str(i), text, found, list(zip(spans, said, strict=True)), at)


def _said(schema: Element, path: str, at: str) -> str:
    found = schema.find(path)
    if found is None:
        raise DataError(f"{at}: there is no {path.rpartition('/')[2]}.")
    return " ".join((found.text or "").split())


def _spelled(answer: str, text: str, pronoun: Span) -> Span | None:
    """Where the answer is spelled: the last place before the pronoun, or else after it."""
    for wanted in (answer, _ARTICLE.sub("", answer, count=1)):
        if not wanted:
            continue
        pattern = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)", re.IGNORECASE)
        places = [m.span() for m in pattern.finditer(text)]
        before = [p for p in places if p[1] <= pronoun[0]]
        after = [p for p in places if p[0] >= pronoun[1]]
        if before or after:
            return before[-1] if before else after[0]
    return None


def _super_glue(path: Path) -> Iterator[Example]:
    together: dict[tuple[str, Span], list[tuple[Span | None, bool]]] = {}
    lines: dict[tuple[str, Span], int] = {}
    for row in objects(path):
        at = f"{path.name}, line {row.line}"
        values = row.values
        text, target, label = (values.get(k) for k in ("text", "target", "label"))
        if not isinstance(text, str) or not text.strip() or not isinstance(target, dict):
            raise DataError(f"{at}: text and target are wanted, as in SuperGLUE's WSC.")
        if not isinstance(label, bool):
            raise DataError(
                f"{at}: the label must be true or false.",
                hint="The test split has none; take train or val.",
            )
        candidate, pronoun = (_span(text, target, which, at) for which in ("span1", "span2"))
        together.setdefault((text, pronoun), []).append((candidate, label))
        lines.setdefault((text, pronoun), row.line)
    for i, ((text, pronoun), candidates) in enumerate(together.items()):
        at = f"{path.name}, line {lines[text, pronoun]}"
        yield _wsc_example(str(i), text, pronoun, candidates, at)


def _span(text: str, target: dict[str, Any], which: str, at: str) -> Span:
    """The characters of a span, which is given by its first word, cut at white space."""
    index, written = target.get(f"{which}_index"), target.get(f"{which}_text")
    words = split_words(text)
    whole = isinstance(index, int) and not isinstance(index, bool) and 0 <= index < len(words)
    if not whole or index is None or not isinstance(written, str):
        raise DataError(f"{at}: {which} must have the position of a word, and a text.")
    start, count = words[index][0], max(1, len(written.split()))
    end = words[min(index + count, len(words)) - 1][1]
    # Punctuation hangs on words here ("claim,"); a span ends with its own text.
    if text[start:end].lower().startswith(written.strip().lower()) and written.strip():
        end = start + len(written.strip())
    return start, end


def _wsc_example(
    name: str, text: str, pronoun: Span, candidates: list[tuple[Span | None, bool]], at: str
) -> Example:
    together, apart = {pronoun}, set[Span]()
    for span, right in candidates:
        if span is not None and span != pronoun:
            (together if right else apart).add(span)
    clusters = [sorted(together), *([span] for span in sorted(apart - together))]
    return of_characters(name, text, clusters, at)
