"""The one reader of YAML files: strict, and every error names file, line and field.

    for claim in parse_list(text, label="claims.yaml", what="claims"):
        claim.make(Claim)            # a dataclass: its fields, types and defaults are the format

A `Section` is a YAML mapping. It knows the line of each field and which fields were read. Fields
that are unknown, repeated, missing or of the wrong type are errors. Types that are understood: str,
int, float, bool, enums of text, `X | None`, tuples, `Mapping[str, X]`, dataclasses, and object for
any plain value. Numbers may be written as 1e-3, which YAML itself takes for text.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from types import NoneType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from bertology.errors import BertologyError, DataError, UnknownNameError
from bertology.yaml_patterns import filled, names_in

if TYPE_CHECKING:
    import yaml

T = TypeVar("T")
_NULL = "tag:yaml.org,2002:null"
_TEXT = "tag:yaml.org,2002:str"
_DEEPEST = 50  # values inside each other
_SURE = 1000  # values inside each other that libyaml reads
_MOST_VALUES = 200_000  # of a file, an alias counted as what it stands for
_LARGEST = 10**300
_MUST = {
    bool: "be true or false",
    int: "be a whole number",
    float: "be a number",
    str: "be text (put numbers, yes and no in quotes)",
}


def parse_section(text: str, *, label: str, hint: str | None = None) -> Section:
    """The mapping that a YAML `text` is. `label` names the file; `hint` helps with an empty one."""
    root = _compose(text, label)
    if root is None:
        raise DataError(f"{label} is empty.", hint=hint)
    return Section(root, label)


def parse_list(text: str, *, label: str, what: str) -> list[Section]:
    """The mappings in the list that a YAML `text` is; none if it is empty."""
    import yaml

    root = _compose(text, label)
    if root is None:
        return []
    if not isinstance(root, yaml.SequenceNode):
        raise _error(label, root, f"the file must be a list of {what}, each after a dash: '- '")
    return [Section(node, label) for node in root.value]


def _compose(text: str, label: str) -> yaml.Node | None:
    import yaml

    root: yaml.Node | None
    try:
        root = yaml.compose(text, Loader=_loader(text))
    except (yaml.YAMLError, ValueError):
        root = _slowly(text, label)
    except RecursionError:
        raise _too_deep(label) from None
    if root is not None:
        _check_nodes(root, label)
    return root


def _loader(text: str) -> type[yaml.SafeLoader]:
    """libyaml's, which takes a twentieth of the time, unless the text may be nested deep.

    It would end the whole process there. A block lies deeper to the right than what it is in, but
    for a list in a field; anything else needs a bracket.
    """
    import yaml

    deepest = 2 * max(map(len, text.splitlines()), default=0) + text.count("[") + text.count("{")
    quick: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return quick if deepest < _SURE else yaml.SafeLoader


def _slowly(text: str, label: str) -> yaml.Node | None:
    """What is wrong, in the words of the reader that is written in Python."""
    import yaml

    try:
        root: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise DataError(f"{label} is not valid YAML: {' '.join(str(error).split())}.") from error
    except (RecursionError, ValueError):  # the latter for \Uffffffff, which is no character
        raise _too_deep(label) from None
    return root


def _too_deep(label: str) -> DataError:
    return DataError(f"{label} is nested too deep, or holds what is no character.")


def _check_nodes(root: yaml.Node, label: str) -> None:
    """Refuse what cannot be held: values inside themselves, aliases of aliases of aliases, and
    halves of characters."""
    waiting, seen = [(root, 0)], 0
    while waiting:
        node, depth = waiting.pop()
        seen += 1
        if depth > _DEEPEST or seen > _MOST_VALUES:
            raise _error(label, node, "the values are nested too deep, or repeat each other")
        if isinstance(node.value, str):
            if any("\ud800" <= c <= "\udfff" for c in node.value):
                raise _error(label, node, "the text holds half a character")
            continue
        for inner in node.value:
            inside = inner if isinstance(inner, tuple) else (inner,)
            waiting += [(one, depth + 1) for one in inside]


def _error(label: str, node: yaml.Node, problem: str, *, hint: str | None = None) -> DataError:
    return DataError(f"{label}, line {node.start_mark.line + 1}: {problem}.", hint=hint)


class Section:
    """A YAML mapping that knows the lines of its fields, and which of them were read.

    `path` names the fields that lead to it: `objective.masking`, `exhibits[2]`.
    """

    def __init__(self, node: yaml.Node, label: str, path: str = "") -> None:
        import yaml

        self.label, self.path, self._node = label, path, node
        if not isinstance(node, yaml.MappingNode):
            where = repr(path) if path else "the value here"
            raise _error(label, node, f"{where} must be a mapping of fields to values")
        self._keys: dict[str, yaml.Node] = {}
        self._values: dict[str, yaml.Node] = {}
        self._read: list[str] = []
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if key in self._values:
                raise _error(label, key_node, f"the field {self.name(key)!r} is given twice")
            self._keys[key], self._values[key] = key_node, value_node

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    @property
    def line(self) -> int:
        """Where it begins, counted from 1."""
        return int(self._node.start_mark.line) + 1

    def name(self, key: str) -> str:
        """A field's full name, with the names of the sections around it."""
        return f"{self.path}.{key}" if self.path else key

    def wrong(self, key: str | None, problem: str, *, hint: str | None = None) -> DataError:
        """An error at the line of a field, or of the section where the field is not given."""
        node = self._node if key is None else self._values.get(key, self._node)
        return _error(self.label, node, problem, hint=hint)

    # What a field holds ------------------------------------------------------------------------

    def read(self, key: str, kind: type[T]) -> T:
        """A field's value, which must be of the type `kind`."""
        found: T = self._value(self._found(key), kind, self.name(key))
        return found

    def text(self, key: str) -> str:
        """A field that holds text, which must not be empty."""
        found = self.read(key, str)
        if not found.strip():
            raise self.wrong(key, f"{self.name(key)!r} must not be empty")
        return found

    def section(self, key: str) -> Section:
        """The mapping in a field."""
        return Section(self._found(key), self.label, self.name(key))

    def sections(self, key: str) -> list[Section]:
        """The mappings in a field that holds a list of them."""
        return [Section(node, self.label, name) for node, name in self._listed(key)]

    def items(self, key: str) -> list[str | Section]:
        """What is in a field that holds a list of texts and mappings."""
        import yaml

        return [
            str(self._scalar(node, str, name))
            if isinstance(node, yaml.ScalarNode)
            else Section(node, self.label, name)
            for node, name in self._listed(key)
        ]

    def holds(self, key: str) -> str:
        """What a field is: "text" (also a number, true, false), "list", "mapping" or "nothing"."""
        node = self._values.get(key)
        if node is None or node.tag == _NULL:
            return "nothing"
        return {"scalar": "text", "sequence": "list"}.get(str(node.id), "mapping")  # type: ignore[attr-defined]

    def only(self, known: Iterable[str]) -> None:
        """Refuse fields that are none of these."""
        names = list(dict.fromkeys(known))
        for key, node in self._keys.items():
            if key not in names:
                near = get_close_matches(key, names, n=1, cutoff=0.5)
                hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(names)}."
                raise _error(self.label, node, f"unknown field {self.name(key)!r}", hint=hint)

    def nothing_else(self, *known: str) -> None:
        """Refuse fields that were not read; `known` are others that are allowed."""
        self.only([*self._read, *known])

    def for_each(self, key: str) -> list[Section]:
        """The section once for each mapping in the list of a field, whose values fill in {names}.

        Every mapping must have the names that the other fields use, and no others.
        """
        rows, wanted = self.sections(key), names_in(self._node, without=key)
        for row in rows:
            if odd := set(row) ^ wanted:
                must = "must have the names that stand in braces, and no others"
                raise row.wrong(None, f"{row.path!r} {must} (see {', '.join(sorted(odd))})")
            for name in row:
                if row.holds(name) != "text":
                    raise row.wrong(name, f"{row.name(name)!r} must be text or a number")
        return [Section(filled(self._node, row._node, without=key), self.label) for row in rows]

    # Dataclasses -------------------------------------------------------------------------------

    def make(self, kind: type[T]) -> T:
        """The dataclass `kind` with the section's fields; the rest keep their defaults."""
        return self.build(kind, self.values(kind))

    def values(
        self,
        kind: type[Any],
        *,
        without: Iterable[str] = (),
        apart: Iterable[str] = (),
    ) -> dict[str, Any]:
        """The section's fields as arguments of the dataclass `kind`.

        Fields in `without` may not be given here; those in `apart` may, and the caller reads them.
        """
        by_hand = set(apart)
        left_out = {*without, *by_hand}
        known = [f for f in fields(kind) if f.name not in left_out]
        self.only([*(f.name for f in known), *by_hand])
        hints = _types(kind, tuple(f.name for f in known))  # type: ignore[arg-type]
        found: dict[str, object] = {}
        for f in known:
            needed = f.default is MISSING and f.default_factory is MISSING
            if needed and hints[f.name] is str:
                found[f.name] = self.text(f.name)
            elif needed or f.name in self:
                found[f.name] = self.read(f.name, hints[f.name])
        return found

    def build(self, kind: type[T], given: Mapping[str, object], *also: Section) -> T:
        """`kind(**given)`; its errors get the line of the field that they are about.

        `also`: other sections that may have that field.
        """
        try:
            return kind(**given)
        except BertologyError as error:
            problem = error.problem.rstrip(".")
            for section in (*also, self):
                if (blamed := section._blamed(error)) is not None:
                    raise section.wrong(blamed, problem, hint=error.hint) from error
            raise self.wrong(None, problem, hint=error.hint) from error

    def _blamed(self, error: BertologyError) -> str | None:
        """The field that an error is about, if that can be found."""
        for key, node in self._values.items():
            if isinstance(error, UnknownNameError):
                items = node.value if isinstance(node.value, list) else [node]
                if any(getattr(item, "value", None) == error.name for item in items):
                    return key
            elif f"{key!r} parameter" in error.problem:
                return key
        return None

    # Types -------------------------------------------------------------------------------------

    def _found(self, key: str) -> yaml.Node:
        self._read.append(key)
        if key not in self._values:
            near = get_close_matches(key, self._values, n=1, cutoff=0.7)
            hint = f"Did you write {near[0]!r} instead?" if near else None
            raise self.wrong(None, f"the field {self.name(key)!r} is missing", hint=hint)
        return self._values[key]

    def _listed(self, key: str) -> list[tuple[yaml.Node, str]]:
        import yaml

        node = self._found(key)
        if not isinstance(node, yaml.SequenceNode):
            raise self.wrong(key, f"{self.name(key)!r} must be a list")
        return [(item, f"{self.name(key)}[{i}]") for i, item in enumerate(node.value)]

    def _value(self, node: yaml.Node, kind: Any, path: str) -> Any:
        if kind is object or kind is Any:
            return self._plain(node)
        if is_dataclass(kind) and isinstance(kind, type):
            return Section(node, self.label, path).make(kind)
        origin = get_origin(kind)
        if origin in (Union, UnionType):
            kinds = [a for a in get_args(kind) if a is not NoneType]
            return None if node.tag == _NULL else self._value(node, kinds[0], path)
        if origin is tuple:
            return self._items(node, get_args(kind), path)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            inner = Section(node, self.label, path)
            return {key: inner.read(key, get_args(kind)[1]) for key in inner}
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            return self._choice(node, kind, path)
        return self._scalar(node, kind, path)

    def _plain(self, node: yaml.Node) -> Any:
        import yaml

        if node.tag == _TEXT and isinstance(node, yaml.ScalarNode):
            return node.value
        try:
            return yaml.SafeLoader("").construct_object(node, deep=True)
        except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError):
            # Dates that do not exist, numbers of 5,000 digits, tags that say another type.
            hint = "Write it in quotes if it is text."
            raise _error(self.label, node, "this value cannot be read", hint=hint) from None

    def _items(self, node: yaml.Node, kinds: tuple[object, ...], path: str) -> tuple[object, ...]:
        import yaml

        count = None if kinds[-1] is ... else len(kinds)
        if not isinstance(node, yaml.SequenceNode) or count not in (None, len(node.value)):
            what = "a list: [a, b]" if count is None else f"a list of {count} values"
            raise _error(self.label, node, f"{path!r} must be {what}")
        each = kinds if count is not None else (kinds[0],) * len(node.value)
        pairs = zip(node.value, each, strict=True)
        return tuple(self._value(n, kind, f"{path}[{i}]") for i, (n, kind) in enumerate(pairs))

    def _choice(self, node: yaml.Node, kind: type[StrEnum], path: str) -> StrEnum:
        given, known = str(self._scalar(node, str, path)), [member.value for member in kind]
        if given in known:
            return kind(given)
        near = get_close_matches(given, known, n=1, cutoff=0.5)
        problem = f"{path!r} must be one of {', '.join(known)}. Got {given!r} instead"
        raise _error(self.label, node, problem, hint=f"Did you mean {near[0]!r}?" if near else None)

    def _scalar(self, node: yaml.Node, kind: type[Any], path: str) -> Any:
        import yaml

        value = found = self._plain(node)
        unquoted = isinstance(node, yaml.ScalarNode) and not node.style  # None or '', by reader
        if kind in (int, float) and isinstance(value, str) and unquoted:
            found = _number(value)
        if kind is int and isinstance(found, float) and found.is_integer():
            found = int(found)
        if kind is float and isinstance(found, int) and not isinstance(found, bool):
            found = float(found) if abs(found) < _LARGEST else math.inf
        if type(found) is not kind or (kind is float and not math.isfinite(found)):
            raise _error(
                self.label, node, f"{path!r} must {_MUST[kind]}. Got {value!r:.60} instead"
            )
        return found


@cache
def _types(kind: type[Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The types of some fields; the types of others may be imported for type checking only."""
    written = {f.name: f.type for f in fields(kind) if f.name in names}
    some = SimpleNamespace(__annotations__=written)
    return get_type_hints(some, globalns=vars(sys.modules[kind.__module__]))


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
