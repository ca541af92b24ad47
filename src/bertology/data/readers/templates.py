"""Templates of relations: `[X] was born in [Y].`

They lie in one file, or in a folder with a file for each relation (`P19.jsonl`, `P19.txt`):

- JSON Lines with `template` (LAMA, LPAQA) or `pattern` (ParaRel), in one file also `relation`;
- plain text, a template per line.

One file without relations has templates for every fact. A few may also be given as a mapping of
relations to templates. Several kinds are a list, each named by what it is, and are kept apart:

    templates: [{manual: relations.jsonl}, {mined: prompts/mined}]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bertology.data.clozes import check_template
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.jsonl import objects
from bertology.errors import DataError, ParameterError

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
