"""SQuAD 1.1 and 2.0: the question is TEXT, its paragraph TEXT_B, ANSWER all accepted answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request
from bertology.data.readers.jsonl import whole
from bertology.errors import DataError


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The questions of a SQuAD file; one without an answer (2.0) has an empty ANSWER."""
    path, request = Path(source), Request.of(source, request)
    content = whole(path)
    try:
        examples = list(_questions(content))
    except (KeyError, TypeError, AttributeError, ValueError):
        raise DataError(
            f"{path.name} is JSON, but not of SQuAD's format.",
            hint="Expected: data → paragraphs → context, qas → id, question, answers; texts are "
            "text, and answer_start is a whole number.",
        ) from None
    fields = frozenset({Field.TEXT, Field.TEXT_B, Field.ANSWER, Field.GROUP})
    return Corpus(name=request.name, examples=examples, fields=fields, split=request.split)


def _questions(content: Any) -> Iterator[Example]:
    for article in content["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                answers = question["answers"]
                texts = [paragraph["context"], question["question"], *(a["text"] for a in answers)]
                if not all(isinstance(text, str) for text in texts):
                    raise TypeError
                yield Example(
                    id=str(question["id"]),
                    text=question["question"].strip(),
                    text_b=paragraph["context"],
                    annotations={
                        "answer": list(dict.fromkeys(a["text"] for a in answers)),
                        # (first, last + 1) characters in the paragraph, one per annotator
                        "answer_spans": [
                            (int(a["answer_start"]), int(a["answer_start"]) + len(a["text"]))
                            for a in answers
                        ],
                        "group": str(article["title"]),
                    },
                )
