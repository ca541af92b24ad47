"""oLMpics (Talmor et al. 2020): questions with two to five answers to choose from.

An object per line: `question` (`stem`, `choices` with `label` and `text`) and `answerKey`. GROUP is
the task, which is the folder's name. Stems with [MASK] are clozes; others are plain questions.
"""

from __future__ import annotations

from pathlib import Path

from bertology.data.clozes import MASK, with_mask
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.jsonl import objects
from bertology.data.readers.request import Request
from bertology.data.readers.table import Row
from bertology.errors import DataError


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The questions of one file."""
    path, request = Path(source), Request.of(source, request)
    task = path.absolute().parent.name
    # Some published ids occur twice, so that questions are numbered.
    examples = [_question(i, row, task, path.name) for i, row in enumerate(objects(path))]
    fields = frozenset({Field.TEXT, Field.ANSWER, Field.CANDIDATES, Field.GROUP})
    return Corpus(name=request.name, examples=examples, fields=fields, split=request.split)


def _question(index: int, row: Row, task: str, where: str) -> Example:
    at = f"{where}, line {row.line}"
    try:
        question, key = row.values["question"], row.values["answerKey"]
        stem = question["stem"].strip()
        choices = {str(one["label"]): one["text"].strip() for one in question["choices"]}
    except (KeyError, TypeError, AttributeError):
        raise DataError(
            f"{at} is not of oLMpics' form.",
            hint='Wanted: {"question": {"stem": …, "choices": [{"label": "A", "text": …}, …]}, '
            '"answerKey": "A"}.',
        ) from None
    if key not in choices or not stem or not all(choices.values()):
        raise DataError(f"{at}: the answer {key!r:.20} is not among the choices, or one is empty.")
    return Example(
        str(index),
        with_mask(stem, at) if MASK in stem else stem,
        annotations={
            "answer": [choices[key]],
            "candidates": tuple(choices.values()),
            "group": task,
        },
    )
