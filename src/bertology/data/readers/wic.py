"""WiC, the word in context: does a word mean the same in two sentences?

Objects on lines, in one of two forms:

    {"word": "bed", "sentence1": "…", "sentence2": "…", "start1": 3, "end1": 6, "start2": 0,
     "end2": 4, "label": true, "idx": 0}                                      (as in SuperGLUE)
    {"text": "Word: bed. Sentence 1: … Sentence 2: …", "label": 1}

TARGETS are the words at those characters. The second form has no characters: there the target is
the first word that is the lemma, or else the first that may be a form of it, and the sentences,
which are cut into words, are written as plain text. GROUP is the word that is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.readers.jsonl import objects
from bertology.data.readers.labels import parse_label
from bertology.data.readers.mentions import words_at
from bertology.data.readers.request import Request
from bertology.data.words.alignment import Span
from bertology.data.words.inflections import find_word
from bertology.data.words.targets import TARGETED, targeted_pair
from bertology.data.words.treebank_text import treebank_text
from bertology.data.words.treebank_words import treebank_words
from bertology.errors import DataError

_TASK = Task("wic", "classification", ("false", "true"), ("accuracy",), pair=True)
_PROMPT = re.compile(r"Word:\s*(\S.*?)\.\s+Sentence 1:\s*(\S.*?)\s+Sentence 2:\s*(\S.*)", re.DOTALL)


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The pairs of a .jsonl file; without labels where none of its lines has one."""
    path, request = Path(source), Request.of(source, request)
    rows = objects(path)
    labelled = any("label" in row.values for row in rows)
    task = request.task or _TASK
    examples = []
    for i, row in enumerate(rows):
        at = f"{path.name}, line {row.line}"
        label = parse_label(row.values.get("label"), task, at) if labelled else None
        make = _of_prompt if "text" in row.values else _of_characters
        examples.append(make(str(i), row.values, label, at))
    fields = TARGETED | {Field.GROUP} | ({Field.LABEL} if labelled else set())
    return Corpus(request.name, examples, fields, task if labelled else None, request.split)


def _of_characters(
    name: str, row: Mapping[str, Any], label: int | float | None, at: str
) -> Example:
    for key in ("word", "sentence1", "sentence2"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise DataError(
                f"{at}: there is no {key}.",
                hint="Expected word, sentence1, sentence2, start1, end1, start2, end2, label; or "
                "label and text: “Word: … Sentence 1: … Sentence 2: …”.",
            )
    texts = (row["sentence1"], row["sentence2"])
    words = [treebank_words(text) for text in texts]
    targets = [
        words_at(spans, _span(row, which, len(text), at), at)
        for which, text, spans in zip("12", texts, words, strict=True)
    ]
    return targeted_pair(name, texts, words, targets, label=label, more={"group": row["word"]})


def _span(row: Mapping[str, Any], which: str, length: int, at: str) -> Span:
    start, end = row.get(f"start{which}"), row.get(f"end{which}")
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (start, end))
    if not whole or start is None or end is None or not 0 <= start < end <= length:
        raise DataError(
            f"{at}: start{which} and end{which} must be the characters of the word in sentence "
            f"{which}, not {start!r:.20} and {end!r:.20}."
        )
    return start, end


def _of_prompt(name: str, row: Mapping[str, Any], label: int | float | None, at: str) -> Example:
    found = _PROMPT.fullmatch(row["text"].strip()) if isinstance(row["text"], str) else None
    if found is None:
        raise DataError(
            f"{at}: the text is {row['text']!r:.60}.",
            hint="Expected: “Word: bed. Sentence 1: … Sentence 2: …”.",
        )
    lemma = found[1]
    texts, words, targets = list[str](), list[list[Span]](), list[Span]()
    for number in (2, 3):
        text, spans = treebank_text(found[number].split())
        place = find_word(lemma, [text[a:b] for a, b in spans])
        if place is None:
            raise DataError(
                f"{at}: no form of {lemma!r:.40} is found in sentence {number - 1}.",
                hint="Say where it is: sentence1, start1, end1, … as in SuperGLUE.",
            )
        texts.append(text)
        words.append(spans)
        targets.append((place, place + 1))
    both = (texts[0], texts[1])
    return targeted_pair(name, both, words, targets, label=label, more={"group": lemma})
