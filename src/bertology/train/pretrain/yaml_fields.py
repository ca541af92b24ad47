"""Dataclasses read from YAML, strictly: every error names file, line and field.

The fields, their types and their limits are those of the dataclass; nothing is said twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from bertology.errors import BertologyError, DataError, UnknownNameError

if TYPE_CHECKING:
    import yaml

__all__ = ["Section", "parse_root"]

_WORDS = {
    bool: "be true or false",
    int: "be a whole number",
    float: "be a number",
    str: "be text (put numbers in quotes)",
}


def parse_root(text: str, *, label: str) -> Section:
    """The mapping that a YAML `text` is; `label` names the file in error messages."""
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise DataError(f"{label} is not valid YAML: {error}") from error
    if root is None:
        raise DataError(f"{label} is empty.", hint="See: bertology pretrain --example")
    return Section(root, label)


class Section:
    """A YAML mapping that knows the lines of its fields."""

    def __init__(self, node: yaml.Node, label: str, path: str = "") -> None:
        import yaml

        self.node, self.label, self.path = node, label, path
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong(None, f"{path or 'a recipe'} must be a mapping of fields to values")
        self.nodes: dict[str, yaml.Node] = {}
        self._keys: dict[str, yaml.Node] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if key in self.nodes:
                raise self._at(key_node, f"the field {self.name(key)!r} is given twice")
            self.nodes[key], self._keys[key] = value_node, key_node

    def name(self, key: str) -> str:
        """A field's name with those of the sections it is in."""
        return f"{self.path}.{key}" if self.path else key

    def wrong(self, key: str | None, problem: str, *, hint: str | None = None) -> DataError:
        """An error at the line of a field, or of the section."""
        node = self.nodes.get(key, self.node) if key is not None else self.node
        return self._at(node, problem, hint=hint)

    def _at(self, node: yaml.Node, problem: str, *, hint: str | None = None) -> DataError:
        return DataError(f"{self.label}, line {node.start_mark.line + 1}: {problem}.", hint=hint)

    def only(self, known: Iterable[str]) -> None:
        """Refuse fields that are none of these."""
        names = list(known)
        for key, node in self._keys.items():
            if key not in names:
                near = get_close_matches(key, names, n=1, cutoff=0.5)
                hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(names)}."
                raise self._at(node, f"unknown field {self.name(key)!r}", hint=hint)

    def section(self, key: str) -> Section:
        """The mapping in a field."""
        return Section(self.nodes[key], self.label, self.name(key))

    def text(self, key: str) -> str:
        """A field that holds text."""
        return str(self._value(self.nodes[key], str, self.name(key)))

    def read(self, key: str, annotation: Any) -> Any:
        """A field's value, of the given type."""
        return self._value(self.nodes[key], annotation, self.name(key))

    def values(self, kind: type[Any], *, without: Iterable[str] = ()) -> dict[str, Any]:
        """The section's fields as arguments of the dataclass `kind`."""
        left_out = set(without)
        known = [f for f in fields(kind) if f.name not in left_out]
        self.only(f.name for f in known)
        hints = get_type_hints(kind)
        for f in known:
            needed = f.default is MISSING and f.default_factory is MISSING
            if needed and f.name not in self.nodes:
                raise self.wrong(None, f"the field {self.name(f.name)!r} is missing")
        return {name: self.read(name, hints[name]) for name in self.nodes}

    def made(self, kind: type[Any]) -> Any:
        """The dataclass `kind` with the section's fields; the rest keep their defaults."""
        return self.build(kind, self.values(kind))

    def build(self, kind: type[Any], given: Mapping[str, Any]) -> Any:
        """`kind(**given)`; what it refuses is told with the line of the field it is about."""
        try:
            return kind(**given)
        except BertologyError as error:
            raise self.wrong(
                self._blamed(error), error.problem.rstrip("."), hint=error.hint
            ) from error

    def _blamed(self, error: BertologyError) -> str | None:
        """The field that an error speaks of, as well as can be told."""
        for key, node in self.nodes.items():
            if isinstance(error, UnknownNameError):
                items = node.value if isinstance(node.value, list) else [node]
                if any(getattr(item, "value", None) == error.name for item in items):
                    return key
            elif f"{key!r} parameter" in error.problem:
                return key
        return None

    def _value(self, node: yaml.Node, annotation: Any, path: str) -> Any:
        import yaml

        if is_dataclass(annotation) and isinstance(annotation, type):
            return Section(node, self.label, path).made(annotation)
        if get_origin(annotation) in (Union, UnionType):
            kinds = [a for a in get_args(annotation) if a is not NoneType]
            if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
                return None
            return self._value(node, kinds[0], path)
        if get_origin(annotation) is tuple:
            return self._items(node, get_args(annotation), path)
        return self._scalar(node, annotation, path)

    def _items(self, node: yaml.Node, kinds: tuple[Any, ...], path: str) -> tuple[Any, ...]:
        import yaml

        count = None if kinds[-1] is ... else len(kinds)
        good = isinstance(node, yaml.SequenceNode) and count in (None, len(node.value))
        if not good:
            what = "a list: [a, b]" if count is None else f"a list of {count} values"
            raise self._at(node, f"{path!r} must be {what}")
        each = kinds if count is not None else (kinds[0],) * len(node.value)
        pairs = zip(node.value, each, strict=True)
        return tuple(self._value(n, kind, f"{path}[{i}]") for i, (n, kind) in enumerate(pairs))

    def _scalar(self, node: yaml.Node, kind: type[Any], path: str) -> Any:
        import yaml

        value: Any = yaml.SafeLoader("").construct_object(node, deep=True)
        found = value
        # YAML takes 1e-3 for text: its numbers have a point, 1.0e-3.
        plain = isinstance(node, yaml.ScalarNode) and node.style is None  # not in quotes
        if kind in (int, float) and isinstance(value, str) and plain:
            found = _number(value)
        if kind is int and isinstance(found, float) and found.is_integer():
            found = int(found)
        if kind is float and isinstance(found, int) and not isinstance(found, bool):
            found = float(found)
        fits = type(found) is kind and (kind is not float or math.isfinite(found))
        if not fits:
            raise self._at(node, f"{path!r} must {_WORDS[kind]}. Got {value!r} instead")
        return found


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
