"""Claims read from YAML, strictly: a misspelt field is an error that names file and line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol

from bertology.errors import DataError, ParameterError
from bertology.results.claims import Claim, Published, Relation, Rule, Source

if TYPE_CHECKING:
    import yaml

__all__ = ["parse_claims", "read_all_claims"]

GROUP = "bertology.claims"
_ID = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")


class _Folder(Protocol):
    """What importlib.resources gives for a package's files."""

    @property
    def name(self) -> str: ...
    def iterdir(self) -> Iterator[Any]: ...
    def read_text(self, encoding: str) -> str: ...


@cache
def read_all_claims() -> tuple[Claim, ...]:
    """Built-in claims, then those of plugins; ids are unique over all of them."""
    claims: dict[str, tuple[Claim, str]] = {}
    for label, text in _texts():
        for claim in parse_claims(text, label=label):
            if claim.id in claims:
                raise DataError(
                    f"The claim {claim.id!r} is in {claims[claim.id][1]} and again in {label}.",
                    hint="Give one of them another id.",
                )
            claims[claim.id] = claim, label
    return tuple(claim for claim, _ in claims.values())


def _texts() -> Iterator[tuple[str, str]]:
    yield from _yaml_files(files("bertology") / "claims", prefix="claims/")
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        try:
            folder = files(entry.value)
        except (ImportError, TypeError) as error:
            raise DataError(
                f"The claims of the plugin {entry.name!r} cannot be found in the package "
                f"{entry.value!r}: {error}.",
                hint=f"The entry point in group {GROUP!r} must name a package that holds *.yaml.",
            ) from error
        yield from _yaml_files(folder, prefix=f"{entry.value}/")


def _yaml_files(folder: _Folder, *, prefix: str) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.iterdir(), key=lambda f: str(f.name)):
        if file.name.endswith((".yaml", ".yml")):
            yield prefix + file.name, file.read_text(encoding="utf-8")


def parse_claims(text: str, *, label: str) -> list[Claim]:
    """The claims in a YAML `text`; `label` names the file in error messages."""
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise DataError(f"{label} is not valid YAML: {error}") from error
    if root is None:
        return []
    if not isinstance(root, yaml.SequenceNode):
        raise _wrong(label, root, "must be a list of claims, each beginning with '- id: …'")
    claims = [_claim(_Fields(node, label)) for node in root.value]
    first: dict[str, int] = {}
    for claim, node in zip(claims, root.value, strict=True):
        if claim.id in first:
            raise _wrong(label, node, f"repeats the id {claim.id!r} of line {first[claim.id]}")
        first[claim.id] = node.start_mark.line + 1
    return claims


def _claim(given: _Fields) -> Claim:
    name = given.text("id")
    if not _ID.fullmatch(name):
        raise given.wrong("id", "must be lower-case words joined by '.' or '-'", name)
    source, published, rule = (given.mapping(key) for key in ("source", "published", "rule"))
    claim = Claim(
        id=name,
        source=Source(
            source.text("paper"),
            source.text("section"),
            page=source.optional_text("page"),
            figure=source.optional_text("figure"),
            quote=source.optional_text("quote"),
        ),
        statement=given.text("statement"),
        published=Published(published.text("text"), published.numbers("values")),
        study=given.text("study"),
        rule=_rule(rule),
        explanation=given.text("explanation"),
    )
    for part in (given, source, published, rule):
        part.nothing_else()
    return claim


def _rule(given: _Fields) -> Rule:
    relation = given.text("relation")
    if relation not in list(Relation):
        raise given.wrong("relation", f"must be one of {', '.join(Relation)}", relation)
    value, values = given.optional_number("value"), given.optional_pair("values")
    try:
        return Rule(given.text("quantity"), Relation(relation), value, values)
    except ParameterError as error:
        raise _wrong(given.label, given.node, error.problem) from error


def _wrong(label: str, node: yaml.Node, problem: str) -> DataError:
    return DataError(f"{label}, line {node.start_mark.line + 1}: {problem}")


class _Fields:
    """A YAML mapping that knows the lines of its fields and which of them were asked for."""

    def __init__(self, node: yaml.Node, label: str, path: str = "") -> None:
        import yaml

        self.node, self.label, self.path = node, label, path
        if not isinstance(node, yaml.MappingNode):
            raise _wrong(label, node, f"{path or 'a claim'} must be a mapping of fields to values")
        loader = yaml.SafeLoader("")
        self._nodes: dict[str, yaml.Node] = {}
        self._values: dict[str, Any] = {}
        self._asked: list[str] = []
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if key in self._nodes:
                raise _wrong(label, key_node, f"the field {path + key!r} is given twice")
            self._nodes[key] = value_node
            self._values[key] = loader.construct_object(value_node, deep=True)

    def wrong(self, key: str, must: str, got: object) -> DataError:
        node = self._nodes.get(key, self.node)
        return _wrong(self.label, node, f"{self.path + key!r} {must}. Got {got!r} instead.")

    def _get(self, key: str, *, needed: bool) -> Any:
        self._asked.append(key)
        if needed and key not in self._values:
            raise _wrong(self.label, self.node, f"the field {self.path + key!r} is missing")
        return self._values.get(key)

    def text(self, key: str) -> str:
        value = self._get(key, needed=True)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(key, "must be text (put numbers in quotes)", value)
        return " ".join(value.split())

    def optional_text(self, key: str) -> str | None:
        return self.text(key) if self._get(key, needed=False) is not None else None

    def mapping(self, key: str) -> _Fields:
        self._get(key, needed=True)
        return _Fields(self._nodes[key], self.label, f"{self.path}{key}.")

    def optional_number(self, key: str) -> float | None:
        value = self._get(key, needed=False)
        return None if value is None else self._number(key, value)

    def optional_pair(self, key: str) -> tuple[float, float] | None:
        value = self._get(key, needed=False)
        if value is None:
            return None
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
            raise self.wrong(key, "must be a list of two numbers", value)
        return self._number(key, value[0]), self._number(key, value[1])

    def numbers(self, key: str) -> dict[str, float]:
        value = self._get(key, needed=False) or {}
        if not isinstance(value, Mapping):
            raise self.wrong(key, "must map names to numbers", value)
        return {str(name): self._number(key, v) for name, v in value.items()}

    def _number(self, key: str, value: object) -> float:
        # bool is an int to Python, and not a number to anyone else.
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise self.wrong(key, "must hold finite numbers", value)
        return float(value)

    def nothing_else(self) -> None:
        for key, node in self._nodes.items():
            if key not in self._asked:
                known = ", ".join(dict.fromkeys(self._asked))
                raise _wrong(
                    self.label, node, f"unknown field {self.path + key!r}; known are: {known}"
                )
