"""LAMA: facts as cloze sentences. TEXT has one [MASK], ANSWER is what fills it.

Google-RE and SQuAD facts come with their sentence; T-REx facts are put into the template of their
relation (option `templates`: the file relations.jsonl, relative to the facts).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.jsonl import objects
from bertology.data.readers.request import Request
from bertology.data.readers.table import Row
from bertology.errors import DataError

__all__ = ["MASK", "read"]

MASK = "[MASK]"
"""The mask as LAMA writes it; a study puts its tokenizer's own mask token in its place."""


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The facts of one file; those without a sentence or a template are an error."""
    path, request = Path(source), Request.of(source, request)
    templates = _templates(path, request)
    examples = [_fact(i, row, templates, path) for i, row in enumerate(objects(path))]
    fields = frozenset({Field.TEXT, Field.ANSWER, Field.GROUP})
    return Corpus(name=request.name, examples=examples, fields=fields, split=request.split)


def _templates(path: Path, request: Request) -> dict[str, str]:
    if "templates" not in request.options:
        return {}
    rows = objects((path.parent / str(request.options["templates"])).resolve())
    for row in rows:
        if not all(isinstance(row.values.get(n), str) for n in ("relation", "template")):
            raise DataError(f"The templates, line {row.line}: 'relation' or 'template' is missing.")
    return {row.values["relation"]: row.values["template"] for row in rows}


def _fact(index: int, row: Row, templates: dict[str, str], path: Path) -> Example:
    at, fact = f"{path.name}, line {row.line}", row.values
    relation = str(fact.get("predicate_id") or fact.get("pred") or path.stem)
    answer = fact.get("obj_label")
    if not isinstance(answer, str) or not answer:
        raise DataError(f"{at}: the fact has no 'obj_label' that is text.")
    annotations: dict[str, object] = {"answer": [answer], "group": relation.rsplit("/", 1)[-1]}
    if subject := fact.get("sub_label"):
        annotations["entity"] = subject
    return Example(
        id=str(fact.get("uuid") or fact.get("id") or index),
        text=_cloze(fact, templates.get(relation), at),
        annotations=annotations,
    )


def _cloze(fact: Mapping[str, Any], template: str | None, at: str) -> str:
    if template is not None:
        return template.replace("[X]", str(fact.get("sub_label"))).replace("[Y]", MASK)
    sentences = fact.get("masked_sentences")
    if not sentences:
        raise DataError(f"{at}: the fact has no 'masked_sentences', and its relation no template.")
    if not isinstance(sentences, list) or not all(isinstance(s, str) for s in sentences):
        raise DataError(f"{at}: 'masked_sentences' must be a list of text, not {sentences!r:.60}.")
    return " ".join(sentences)
