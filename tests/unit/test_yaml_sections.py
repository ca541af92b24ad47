"""The one reader of YAML: what it takes, and that every error names file, line and field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from bertology.errors import DataError, ParameterError
from bertology.yaml_sections import Section, parse_list, parse_section


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


@dataclass(frozen=True)
class Part:
    name: str
    weight: float = 1.0


@dataclass(frozen=True)
class Whole:
    title: str
    colour: Colour = Colour.RED
    size: int | None = None
    ready: bool = False
    parts: tuple[Part, ...] = ()
    pair: tuple[float, float] | None = None
    published: Mapping[str, float] = field(default_factory=dict)
    anything: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise ParameterError("size", "Whole", "be at least 1", self.size)


TEXT = """\
title: A title
colour: green
size: 2e3
ready: true
parts:
  - {name: first, weight: 3}
  - name: second
pair: [0, 1e-3]
published: {RTE: 3}
anything: {a: [1, x], b: null}
"""


def section(text: str = TEXT) -> Section:
    return parse_section(text, label="some.yaml")


def test_a_dataclass_is_its_own_format() -> None:
    assert section().make(Whole) == Whole(
        "A title", Colour.GREEN, 2000, ready=True, parts=(Part("first", 3.0), Part("second")),
        pair=(0.0, 0.001), published={"RTE": 3.0}, anything={"a": [1, "x"], "b": None},
    )  # fmt: skip
    assert section("title: t\nsize: null").make(Whole) == Whole("t")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("colour:", "color:", "line 2: unknown field 'color'.\nDid you mean 'colour'?"),
        ("size:", "colour:", "line 3: the field 'colour' is given twice."),
        ("title: A title", "", "line 2: the field 'title' is missing."),
        ("title: A title", "title: ' '", "line 1: 'title' must not be empty."),
        ("title: A title", "title: 3", "line 1: 'title' must be text (put numbers, yes and no"),
        ("green", "gren", "line 2: 'colour' must be one of red, green. Got 'gren' instead"),
        ("2e3", "2.5", "line 3: 'size' must be a whole number. Got 2.5 instead."),
        ("2e3", "0", "line 3: The 'size' parameter of Whole must be at least 1"),
        ("true", "1", "line 4: 'ready' must be true or false. Got 1 instead."),
        ("weight: 3", "weight: .nan", "line 6: 'parts[0].weight' must be a number"),
        ("name: second", "nam: second", "line 7: unknown field 'parts[1].nam'"),
        ("name: second", "second", "line 7: 'parts[1]' must be a mapping"),
        ("[0, 1e-3]", "[0]", "line 8: 'pair' must be a list of 2 values."),
        ("[0, 1e-3]", "['0', 1]", "line 8: 'pair[0]' must be a number. Got '0' instead."),
        ("RTE: 3", "RTE: much", "line 9: 'published.RTE' must be a number"),
        ("{RTE: 3}", "[3]", "line 9: 'published' must be a mapping"),
        ("ready: true", "ready: [", "not valid YAML"),
    ],
)
def test_mistakes_are_told_with_file_line_and_field(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(DataError) as caught:
        section(TEXT.replace(old, new)).make(Whole)
    assert str(caught.value).startswith("some.yaml")
    assert message in str(caught.value)


def test_fields_that_nobody_read_are_refused() -> None:
    given = section("a: 1\nb: {c: 2}\nd: x")
    assert given.read("a", int) == 1
    inner = given.section("b")
    assert (inner.name("c"), inner.line) == ("b.c", 2)
    with pytest.raises(DataError, match="line 3: unknown field 'd'"):
        given.nothing_else()
    given.nothing_else("d")
    with pytest.raises(DataError, match=r"'e' is missing"):
        given.text("e")


def test_what_a_field_holds() -> None:
    given = section("a: 1\nb: [1]\nc: {d: 1}\ne:")
    assert [given.holds(key) for key in "abcex"] == ["text", "list", "mapping", *["nothing"] * 2]
    with pytest.raises(DataError, match=r"line 2: 'b\[0\]' must be a mapping"):
        given.sections("b")
    with pytest.raises(DataError, match="'a' must be a list"):
        given.sections("a")


def test_lists_of_mappings() -> None:
    assert [s.line for s in parse_list("- {a: 1}\n- {a: 2}", label="l", what="things")] == [1, 2]
    assert parse_list("", label="l", what="things") == []
    with pytest.raises(DataError, match="l, line 1: the file must be a list of things"):
        parse_list("a: 1", label="l", what="things")
    with pytest.raises(DataError, match="l is empty"):
        parse_section("", label="l")


# One mapping for several ----------------------------------------------------------------------

PATTERN = """\
- each:
    - {row: one, least: 1.5}
    - {row: two, least: 3}
  title: "{row} is at least {least}"
  parts: [{name: "{row}", weight: "{least}"}]
"""


def test_a_pattern_is_one_section_for_each_row() -> None:
    [pattern] = parse_list(PATTERN, label="some.yaml", what="wholes")
    one, two = (found.make(Whole) for found in pattern.for_each("each"))
    assert one == Whole("one is at least 1.5", parts=(Part("one", 1.5),))
    assert two == Whole("two is at least 3", parts=(Part("two", 3.0),))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{row: two, least: 3}", "{row: two}", "line 3: 'each[1]' must have the names"),
        ("least: 3}", "least: 3, more: x}", "no others (see more)"),
        ("least: 3}", "least: [3]}", "line 3: 'each[1].least' must be text or a number"),
        ("least: 3}", "least: much}", "line 3: 'parts[0].weight' must be a number"),
        ("title:", "colour: red\n  size: x\n  title:", "line 5: 'size' must be a whole number"),
        ("- {row: one, least: 1.5}\n    - {row: two, least: 3}", "x: y", "'each' must be a list"),
    ],
)
def test_mistakes_in_a_pattern_are_told_with_their_line(old: str, new: str, said: str) -> None:
    assert old in PATTERN
    [pattern] = parse_list(PATTERN.replace(old, new), label="some.yaml", what="wholes")
    with pytest.raises(DataError, match=re.escape(said)):
        [found.make(Whole) for found in pattern.for_each("each")]
