"""LAMA: facts as cloze sentences. TEXT has one [MASK], ANSWER is what fills it.

SQuAD and ConceptNet facts come with their sentence; one that names its answer twice has two blanks
and is left out. Google-RE and T-REx facts, and facts of your own, are worded by templates (option
`templates`: a file or folder, relative to the facts, or a mapping; see below):
WORDINGS are all of their relation, TEXT is the fact in the first of them.

A fact is an object with `sub_label` or `entity`, `obj_label` or `answer`, and `predicate_id`,
`pred`, `relation` or `group`; without one of these, its relation is the name of the file.

Facts that also have a negated or a misprimed sentence (Kassner and Schütze 2020) give an example
for each version: ITEM is the fact, CONDITION is `plain`, `negated` or `misprimed`, and `prime` the
word in front. ANSWER stays that of the plain sentence, which a negated one should not get.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertology.data.clozes import MASK, check_template, with_mask, worded
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.jsonl import objects
from bertology.data.readers.table import Row
from bertology.errors import DataError, ParameterError

# Templates of relations: `[X] was born in [Y].`
#
# They lie in one file, or in a folder with a file for each relation (`P19.jsonl`, `P19.txt`):
#
# - JSON Lines with `template` (LAMA, LPAQA) or `pattern` (ParaRel), in one file also `relation`;
# - plain text, a template per line.
#
# One file without relations has templates for every fact. A few may also be given as a mapping of
# relations to templates. Several kinds are a list, each named by what it is, and are kept apart:
#
#     templates: [{manual: relations.jsonl}, {mined: prompts/mined}]

_KEYS = ("template", "pattern")
_ENDINGS = (".jsonl", ".txt")
_SPACE = re.compile(r"\s+([.,;:?!])")


@dataclass(frozen=True)
class Templates:
    """Templates by relation (None: of every relation), and what kind of relation it is."""

    by_relation: Mapping[str | None, tuple[str, ...]] = field(default_factory=dict)
    cardinality: Mapping[str | None, str] = field(default_factory=dict)
    kinds: Mapping[str | None, tuple[str, ...]] = field(default_factory=dict)
    """What kind each template is of; of several, with spaces between. Empty: of no kind."""

    def of(self, relation: str) -> tuple[str, ...]:
        """The templates of a relation, the same tuple whenever asked; empty if there are none."""
        return self.by_relation.get(relation) or self.by_relation.get(None, ())

    def kinds_of(self, relation: str) -> tuple[str, ...]:
        """The kinds of the same templates."""
        return self.kinds.get(relation) or self.kinds.get(None, ())


def read_templates(given: object, relation: str, beside: Path) -> Templates:
    """The templates: a mapping, a file, one relation's file in a folder, or kinds of these."""
    if isinstance(given, list | tuple):
        return _of_kinds(given, relation, beside)
    if isinstance(given, Mapping):
        return Templates({str(name): _given(name, of) for name, of in given.items()})
    path = (beside / str(given)).resolve()
    if path.is_dir():
        files = [path / f"{relation}{ending}" for ending in _ENDINGS]
        found = [file for file in files if file.is_file()]
        if not found:
            raise DataError(
                f"There are no templates of {relation!r}: {path} has no file "
                f"{' or '.join(file.name for file in files)}."
            )
        return _collected(found[0], relation)
    if not path.is_file():
        raise DataError(
            f"There is no file or folder of templates {path}.",
            hint="Say where it is with templates=…, relative to the facts.",
        )
    return _collected(path, None)


def _of_kinds(given: Sequence[object], relation: str, beside: Path) -> Templates:
    parts: dict[str, Templates] = {}
    for one in given:
        if not isinstance(one, Mapping) or len(one) != 1:
            must = "list kinds of templates, such as [{mined: prompts/mined}]"
            raise ParameterError("templates", "the LAMA reader", must, given)
        ((kind, path),) = one.items()
        if not str(kind).strip() or " " in str(kind):
            must = "have kinds without spaces"
            raise ParameterError("templates", "the LAMA reader", must, kind)
        parts[str(kind)] = read_templates(path, relation, beside)
    cardinality = {name: of for part in parts.values() for name, of in part.cardinality.items()}
    templates, kinds = {}, {}
    for name in dict.fromkeys(name for part in parts.values() for name in part.by_relation):
        found: dict[str, str] = {}
        of_kinds: dict[str, list[str]] = {}
        for kind, part in parts.items():
            for template in part.by_relation.get(name) or part.by_relation.get(None, ()):
                # With and without a space before the full stop it is the same wording.
                same = _SPACE.sub(r"\1", template)
                found.setdefault(same, template)
                of_kinds.setdefault(same, []).append(kind)
        templates[name] = tuple(found.values())
        kinds[name] = tuple(" ".join(dict.fromkeys(of)) for of in of_kinds.values())
    return Templates(templates, cardinality, kinds)


def _given(name: object, templates: object) -> tuple[str, ...]:
    of = [templates] if isinstance(templates, str) else templates
    if not isinstance(of, list | tuple) or not of or not all(isinstance(t, str) for t in of):
        must = "map relations to templates"
        raise ParameterError("templates", "the LAMA reader", must, templates)
    return tuple(check_template(template, f"The relation {name!r}") for template in of)


def _collected(path: Path, relation: str | None) -> Templates:
    found: dict[str | None, list[str]] = {}
    cardinality: dict[str | None, str] = {}
    for named, template, kind in _rows(path, relation):
        of = found.setdefault(named, [])
        if template not in of:
            of.append(template)
        if kind:
            cardinality[named] = kind
    return Templates({name: tuple(of) for name, of in found.items()}, cardinality)


def _rows(path: Path, relation: str | None) -> Iterator[tuple[str | None, str, str]]:
    """Relation, template, cardinality."""
    if path.suffix.lower() == ".txt":
        for number, line in numbered_lines(read_text(path)):
            if line.strip():
                yield relation, check_template(line, f"{path.name}, line {number}"), ""
        return
    for row in objects(path):
        at = f"{path.name}, line {row.line}"
        template = next((row.values[key] for key in _KEYS if key in row.values), None)
        named = row.values.get("relation", relation)
        if not isinstance(template, str) or not isinstance(named, str | None):
            raise DataError(
                f"{at}: 'template' or 'relation' is not text.",
                hint='A line is wanted such as {"relation": "P19", "template": "[X] was born in '
                '[Y]."}.',
            )
        yield named, check_template(template, at), str(row.values.get("type") or "")


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
