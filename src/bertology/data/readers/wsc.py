"""The Winograd Schema Challenge: a pronoun, and what it may stand for.

Two layouts: the collection of Davis, Morgenstern and Marcus (.xml: a text in two parts around the
pronoun, two answers, the right one), and SuperGLUE's (.jsonl: a span of words, a pronoun, whether
they corefer), in which the rows of one text and pronoun make one example. The right candidate is in
the pronoun's cluster; others are mentions of their own. A candidate that the text does not spell
(an answer in other words) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from bertology.data.corpus import Corpus, Example
from bertology.data.readers.files import xml_root
from bertology.data.readers.jsonl import objects
from bertology.data.readers.mentions import MENTIONED, of_characters
from bertology.data.readers.request import Request
from bertology.data.words.alignment import Span, split_words
from bertology.errors import DataError

_ARTICLE = re.compile(r"(?:the|an?|my|his|her|their)\s+", re.IGNORECASE)


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The schemas of a .xml or a .jsonl file."""
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
        yield _example(str(i), text, found, list(zip(spans, said, strict=True)), at)


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
        yield _example(str(i), text, pronoun, candidates, at)


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


def _example(
    name: str, text: str, pronoun: Span, candidates: list[tuple[Span | None, bool]], at: str
) -> Example:
    together, apart = {pronoun}, set[Span]()
    for span, right in candidates:
        if span is not None and span != pronoun:
            (together if right else apart).add(span)
    clusters = [sorted(together), *([span] for span in sorted(apart - together))]
    return of_characters(name, text, clusters, at)
