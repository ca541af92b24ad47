"""ERASER (DeYoung et al. 2020): documents with a label and the words that people gave as evidence.

A line of a split, and the document in a file of `docs/` beside it, cut into words by white space
and into sentences by lines:

    {"annotation_id": "negR_900.txt", "classification": "NEG", "query": "…",
     "evidences": [[{"docid": "negR_900.txt", "start_token": 40, "end_token": 43, "text": "…"}]]}

RATIONALES are these words, counted in the document; spans without a word are left out. Tasks whose
evidence lies in several documents are not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.jsonl import objects
from bertology.data.readers.labels import infer_task, parse_label
from bertology.data.readers.mentions import spaced
from bertology.data.readers.request import Request
from bertology.errors import DataError

_FIELDS = frozenset(
    {Field.TEXT, Field.LABEL, Field.WORDS, Field.OFFSETS, Field.SENTENCES, Field.RATIONALES}
)
_HINT = (
    "Expected: annotation_id, classification, and evidences as lists of {docid, start_token, …}."
)


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The documents of a split such as val.jsonl, which stands beside the folder docs."""
    path, request = Path(source), Request.of(source, request)
    rows = objects(path)
    labels = [row.values.get("classification") for row in rows]
    task = request.task or infer_task(request.name, labels, pair=False, where=path.name)
    examples = []
    for row in rows:
        at = f"{path.name}, line {row.line}"
        label = parse_label(row.values.get("classification"), task, at)
        examples.append(_example(row.values, label, path.parent / "docs", at))
    return Corpus(request.name, examples, _FIELDS, task, request.split)


def _example(row: Mapping[str, Any], label: int | float, docs: Path, at: str) -> Example:
    name = row.get("annotation_id")
    evidence = list(_evidence(row, at))
    documents = {str(one["docid"]) for one in evidence} or {str(name)}
    if not isinstance(name, str) or not name:
        raise DataError(f"{at}: there is no annotation_id.", hint=_HINT)
    if len(documents) > 1:
        raise DataError(f"{at}: its evidence lies in {len(documents)} documents; one can be read.")
    file = docs / documents.pop()
    # A name must not lead out of the folder of documents.
    if file.parent != docs or not file.is_file():
        raise DataError(f"{at}: there is no document {file.name!r:.60} in {docs}.")
    words, sentences = list[str](), list[int]()
    for _, line in numbered_lines(read_text(file)):
        if line.split():
            sentences.append(len(words))
            words += line.split()
    text, offsets = spaced(words)
    spans = sorted({_span(one, len(words), at) for one in evidence})
    spans = [(start, end) for start, end in spans if start < end]
    about = {
        "words": words,
        "offsets": offsets,
        "sentences": sentences,
        "rationales": [list(span) for span in spans],
    }
    return Example(name, text, label=label, annotations=about)


def _evidence(row: Mapping[str, Any], at: str) -> Sequence[Mapping[str, Any]]:
    groups = row.get("evidences")
    lists = isinstance(groups, list) and all(isinstance(group, list) for group in groups)
    found = [one for group in groups or () for one in group] if lists else []
    if not lists or not all(isinstance(one, dict) and "docid" in one for one in found):
        raise DataError(f"{at}: evidences are {groups!r:.60}.", hint=_HINT)
    return found


def _span(one: Mapping[str, Any], words: int, at: str) -> tuple[int, int]:
    ends = one.get("start_token"), one.get("end_token")
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in ends)
    start, end = ends
    if not whole or start is None or end is None or not 0 <= start <= end <= words:
        raise DataError(
            f"{at}: start_token and end_token must be words of the document, which has {words}, "
            f"not {start!r:.20} and {end!r:.20}."
        )
    return start, end
