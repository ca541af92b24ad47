"""LAMA: facts as cloze sentences. TEXT has one [MASK], ANSWER is what fills it.

SQuAD and ConceptNet facts come with their sentence; one that names its answer twice has two blanks
and is left out. Google-RE and T-REx facts, and facts of your own, are worded by templates (option
`templates`: a file or folder, relative to the facts, or a mapping; see `readers/templates.py`):
WORDINGS are all of their relation, TEXT is the fact in the first of them.

A fact is an object with `sub_label` or `entity`, `obj_label` or `answer`, and `predicate_id`,
`pred`, `relation` or `group`; without one of these, its relation is the name of the file.

Facts that also have a negated or a misprimed sentence (Kassner and Schütze 2020) give an example
for each version: ITEM is the fact, CONDITION is `plain`, `negated` or `misprimed`, and `prime` the
word in front. ANSWER stays that of the plain sentence, which a negated one should not get.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bertology.data.clozes import MASK, with_mask, worded
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers.jsonl import objects
from bertology.data.readers.request import Request
from bertology.data.readers.table import Row
from bertology.data.readers.templates import Templates, read_templates
from bertology.errors import DataError

_NAMES = {
    "entity": ("sub_label", "entity", "sub"),
    "answer": ("obj_label", "answer"),
    "group": ("predicate_id", "pred", "relation", "group"),
    "id": ("uuid", "id"),
}
_VERSIONS = {
    "plain": "masked_sentences", "negated": "masked_negations", "misprimed": "masked_misprimed",
}  # fmt: skip
_NOBODY = "Squad"  # what LAMA's SQuAD file has in place of every entity
_FIELDS = (Field.ENTITY, Field.WORDINGS, Field.ITEM, Field.CONDITION)


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The facts of one file; those without a sentence or a template are an error."""
    path, request = Path(source), Request.of(source, request)
    relation = path.stem.removesuffix("_random").removesuffix("_test")
    templates = Templates()
    if "templates" in request.options:
        templates = read_templates(request.options["templates"], relation, path.parent)
    examples = [
        example
        for i, row in enumerate(objects(path))
        for example in _versions(_Fact(i, row, relation, request, path), templates)
    ]
    fields = {Field.TEXT, Field.ANSWER, Field.GROUP}
    fields |= {f for f in _FIELDS if all(f.value in e.annotations for e in examples)}
    return Corpus(
        name=request.name, examples=examples, fields=frozenset(fields), split=request.split
    )


class _Fact:
    """What a row says, whatever its columns are called."""

    def __init__(self, index: int, row: Row, relation: str, request: Request, path: Path) -> None:
        self.at, self.values = f"{path.name}, line {row.line}", row.values
        self._columns = request.columns
        self.relation = str(self._given("group") or relation).rsplit("/", 1)[-1]
        self.index, self.id = index, str(self._given("id") or index)
        entity = self._given("entity")
        self.entity = entity if isinstance(entity, str) and entity != _NOBODY else None
        self.answer = self._answers()

    def _given(self, field: str) -> Any:
        if column := self._columns.get(field):
            if column not in self.values:
                raise DataError(
                    f"{self.at}: the fact has no {column!r} (asked for as {field}).",
                    hint=f"It has: {', '.join(self.values)}.",
                )
            return self.values[column]
        found = (self.values[n] for n in _NAMES[field] if self.values.get(n) not in (None, ""))
        return next(found, None)

    def _answers(self) -> list[str]:
        given = self._given("answer")
        answers = [given] if isinstance(given, str) else given
        if not (
            isinstance(answers, list)
            and answers
            and all(isinstance(a, str) and a.strip() for a in answers)
        ):
            raise DataError(
                f"{self.at}: the fact has no 'obj_label' (or 'answer') that is text.",
                hint=f"It has: {', '.join(self.values) or 'nothing'}.",
            )
        return answers


def _versions(fact: _Fact, templates: Templates) -> Iterator[Example]:
    about: dict[str, object] = {"answer": fact.answer, "group": fact.relation}
    if fact.entity:
        about["entity"] = fact.entity
    if wordings := templates.of(fact.relation):
        if not fact.entity:
            raise DataError(f"{fact.at}: the fact has no 'sub_label' (or 'entity') that is text.")
        about["wordings"] = wordings
        if kinds := templates.kinds_of(fact.relation):
            about["wording_kinds"] = kinds
        if kind := templates.cardinality.get(fact.relation):
            about["cardinality"] = kind
        yield Example(fact.id, worded(wordings[0], fact.entity), annotations=about)
        return
    if any(" ".join(texts).count(MASK) > 1 for texts in _all_texts(fact)):
        return
    versions = {name: key for name, key in _VERSIONS.items() if key in fact.values}
    if len(versions) < 2:
        yield Example(fact.id, _sentence(fact, _VERSIONS["plain"]), annotations=about)
        return
    for name, key in versions.items():
        text = _sentence(fact, key)
        # Numbered anew: the published numbers of some facts occur twice.
        item: dict[str, object] = {"item": f"{fact.relation}/{fact.index}", "condition": name}
        if name == "misprimed":
            item["prime"] = text.partition("?")[0]
        yield Example(f"{fact.index}-{name}", text, annotations={**about, **item})


def _sentence(fact: _Fact, key: str) -> str:
    sentences = _texts(fact.values, key, fact.at)
    if not sentences:
        raise DataError(f"{fact.at}: the fact has no {key!r}, and its relation no template.")
    return with_mask(" ".join(sentences), fact.at)


def _all_texts(fact: _Fact) -> list[list[str]]:
    return [_texts(fact.values, key, fact.at) for key in _VERSIONS.values()]


def _texts(values: Mapping[str, Any], key: str, at: str) -> list[str]:
    sentences = values.get(key)
    if not sentences:
        return []
    if not isinstance(sentences, list) or not all(isinstance(s, str) for s in sentences):
        raise DataError(f"{at}: {key!r} must be a list of text, not {sentences!r:.60}.")
    return sentences
