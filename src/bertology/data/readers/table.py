"""From rows with named columns to a Corpus: shared by CSV, JSONL, the hub and GLUE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.readers import Request
from bertology.data.readers.annotations import SPANS, WORD_LEVEL, check_annotations
from bertology.data.readers.labels import infer_task, is_missing, parse_label
from bertology.errors import DataError, ParameterError
from bertology.plain_files import parse_json

_PAIRS = (
    ("text", "text_b"), ("text_a", "text_b"), ("sentence1", "sentence2"),
    ("premise", "hypothesis"), ("question1", "question2"), ("question", "sentence"),
)  # fmt: skip
_SINGLE = ("text", "sentence", "content", "review")
_LABELS = ("label", "gold_label", "labels", "score", "target", "class")
USUAL_NAMES = frozenset({*(name for pair in _PAIRS for name in pair), *_SINGLE, *_LABELS})
"""Columns that are found without being named."""
_GROUPED_BY = ("file", "folder")
_DIRECT = {f.value for f in Field} - {"text", "text_b", "label"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row and the line it begins on."""

    line: int
    values: Mapping[str, Any]


def find_columns(header: Sequence[str], asked: Mapping[str, str], where: str) -> dict[str, str]:
    """Field → column: given by the user, else by the usual names, else named like a field."""
    for field_name, column in asked.items():
        if column not in header:
            near = get_close_matches(column, header, n=1, cutoff=0.5)
            guess = f" Did you mean {field_name}={near[0]!r}?" if near else ""
            raise DataError(
                f"{where} has no column {column!r} (asked for as {field_name}).",
                hint=f"Its columns: {', '.join(header)}.{guess}",
            )
    found = dict(asked)
    if "text" not in found and "words" not in found:
        found |= {k: v for k, v in _usual_texts(header).items() if k not in found}
    if "text" not in found and "words" not in found and "words" not in header:
        raise DataError(
            f"{where}: no column has one of the usual names of a text.",
            hint=f"Its columns: {', '.join(header)}. Say which one it is, as in text={header[0]!r} "
            f"(--columns text={header[0]}); the second text of a pair is text_b.",
        )
    label = next((name for name in _LABELS if name in header), None)
    if label is not None and "label" not in found:
        found["label"] = label
    taken = set(found.values())
    found |= {c: c for c in header if c in _DIRECT and c not in found and c not in taken}
    return found


def _usual_texts(header: Sequence[str]) -> dict[str, str]:
    for first, second in _PAIRS:
        if first in header and second in header:
            return {"text": first, "text_b": second}
    for name in _SINGLE:
        if name in header:
            return {"text": name}
    return {}


def grouped(corpus: Corpus, path: Path, request: Request) -> Corpus:
    """The corpus with its file's or folder's name for a group, where that is asked for."""
    by = request.options.get("grouped_by")
    if by is None:
        return corpus
    if by not in _GROUPED_BY:
        raise ParameterError("grouped_by", request.name, "be 'file' or 'folder'", by)
    group = path.stem if by == "file" else path.absolute().parent.name
    examples = [replace(e, annotations={**e.annotations, "group": group}) for e in corpus]
    return replace(corpus, examples=examples, fields=corpus.fields | {Field.GROUP})


def build(rows: Sequence[Row], header: Sequence[str], request: Request, *, where: str) -> Corpus:
    """The corpus that `rows` hold; error messages begin with `where`, a file's name."""
    if not rows:
        raise DataError(f"{where} has a header and no rows.")
    columns = _with_id(rows, find_columns(header, request.columns, where), where)
    columns, task = _task(rows, _annotated(rows, columns, request), request, where)
    examples = [_example(i, row, columns, task, where) for i, row in enumerate(rows)]
    return Corpus(
        name=request.name,
        examples=examples,
        fields=frozenset({Field.TEXT, *(Field(c) for c in columns if c != "id")}),
        task=task,
        split=request.split,
    )


def _annotated(rows: Sequence[Row], columns: dict[str, str], request: Request) -> dict[str, str]:
    """Without annotations of words that some rows lack, unless the user named their column."""
    lacking = {
        field
        for field in ("words", *WORD_LEVEL)
        if field in columns
        and field not in request.columns
        and ("text" in columns or field != "words")
        and any(row.values.get(columns[field]) is None for row in rows)
    }
    return {k: v for k, v in columns.items() if k not in lacking}


def _with_id(rows: Sequence[Row], columns: dict[str, str], where: str) -> dict[str, str]:
    """Ids of the file are kept if they are unique; else rows are numbered from 0."""
    column = columns.get("id", "id")
    seen: set[str] = set()
    for row in rows:
        value = str(row.values.get(column, ""))
        if value and value not in seen:
            seen.add(value)
        elif "id" in columns:
            raise DataError(f"{where}, line {row.line}: the id {value!r} is empty or not unique.")
        else:
            return columns
    return {**columns, "id": column}


def _task(
    rows: Sequence[Row], columns: dict[str, str], request: Request, where: str
) -> tuple[dict[str, str], Task | None]:
    column = columns.get("label")
    if column is None:
        return columns, request.task
    values = [row.values.get(column) for row in rows]
    if all(str(v) == "-1" for v in values) or (
        "label" not in request.columns and all(is_missing(v) for v in values)
    ):
        # Hidden test labels: -1 on the hub, or an empty column that the user did not name.
        return {k: v for k, v in columns.items() if k != "label"}, request.task
    pair = "text_b" in columns
    if request.task is not None:
        return columns, replace(request.task, pair=pair)
    if names := request.options.get("labels"):
        labels = tuple(names.split(",")) if isinstance(names, str) else tuple(map(str, names))
        task = Task(request.name, "classification", tuple(n.strip() for n in labels), pair=pair)
        return columns, task
    return columns, infer_task(request.name, values, pair=pair, where=where)


def _example(
    index: int, row: Row, columns: Mapping[str, str], task: Task | None, where: str
) -> Example:
    at = f"{where}, line {row.line}"
    values = {field: row.values.get(column) for field, column in columns.items()}
    label = values.pop("label", None)
    given_id = values.pop("id", None)
    annotations = {k: _cast(k, v, at) for k, v in values.items() if k not in ("text", "text_b")}
    texts = [values[name] for name in ("text", "text_b") if values.get(name) is not None]
    check_annotations(annotations, texts, at)
    text = values["text"] if "text" in values else " ".join(annotations.get("words") or ())
    return Example(
        id=str(index if given_id is None else given_id),
        text=_text(text, columns.get("text", "words"), at),
        text_b=_text(values["text_b"], columns["text_b"], at) if "text_b" in columns else None,
        label=parse_label(label, task, at) if task and "label" in columns else None,
        annotations=annotations,
    )


def _text(value: object, column: str, at: str) -> str:
    if value is None or (isinstance(value, float) and value != value):
        raise DataError(f"{at}: the text in column {column!r} is missing.")
    if not isinstance(value, str):
        raise DataError(f"{at}: column {column!r} holds {value!r}, which is not text.")
    if not value.strip():
        raise DataError(f"{at}: the text in column {column!r} is empty.")
    return value.strip()


def _cast(field: str, value: object, at: str) -> Any:
    """Cells of a CSV are strings: spaces separate words and their tags, and | several answers.

    What has parts of parts, such as spans of words, is written as in JSON.
    """
    if not isinstance(value, str):
        return value
    if field in SPANS and value.strip():
        try:
            return parse_json(value, label=at)
        except DataError:
            must = "must be written as in JSON, such as [[0, 2]]"
            raise DataError(f"{at}: {field} {must}, not {value!r:.60}.") from None
    if field == "words" or (field in WORD_LEVEL and field not in ("heads", "offsets")):
        return value.split()
    if field == "answer":
        return [value]
    if field in ("candidates", "wordings"):
        return tuple(part.strip() for part in value.split("|"))
    if field in ("heads", "subject", "object", "verb", "steps"):
        try:
            numbers = [int(part) for part in value.split()]
        except ValueError:
            raise DataError(f"{at}: {field} must be whole numbers, not {value!r}.") from None
        return numbers if field == "heads" else (numbers[0] if numbers else None)
    return value
