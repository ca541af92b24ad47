"""What measures reads no parameter that only concludes: of every study, and when it runs."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from bertology.parameters import parameter
from bertology.results.result import Result
from bertology.studies import STUDIES
from bertology.studies.study import ReadWhileMeasuringError, Study, concluding_parameters

if TYPE_CHECKING:
    import xarray as xr

MEASURES = (
    "measure", "plan", "parts", "steps", "texts_read", "cut_at", "ingredients", "task_for",
    "tokens_on_gpu",
)  # fmt: skip


def functions(kind: type[Study], name: str) -> Iterator[Callable[..., object]]:
    """All that a class and those above it call by that name."""
    for one in kind.__mro__:
        found: Any = vars(one).get(name)
        if isinstance(found, property):
            found = found.fget
        found = getattr(found, "__func__", getattr(found, "func", found))
        if inspect.isfunction(found):
            yield found


@cache
def read_by(function: Callable[..., object]) -> frozenset[str]:
    """The names that a method reads of its own object, and of what is above it."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, SyntaxError):  # made by dataclasses
        return frozenset()
    assert isinstance(tree, ast.FunctionDef)
    own = tree.args.args[0].arg if tree.args.args else ""
    return frozenset(
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in (own, "super()")
    )


def read_in(kind: type[Study], *starts: str) -> set[str]:
    """What some methods of a study read, directly or in methods that they call."""
    seen, todo = set[str](), list(starts)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += [read for function in functions(kind, name) for read in read_by(function)]
    return seen


@pytest.mark.parametrize("name", STUDIES.names())
def test_a_study_measures_without_what_only_concludes(name: str) -> None:
    kind = STUDIES.get(name)
    concluding = concluding_parameters(kind)
    assert concluding & {f.name for f in fields(kind)}
    assert "level" in concluding
    assert not concluding & read_in(kind, *MEASURES)


@dataclass(frozen=True)
class Careless(Study):
    """Does it read what it must not?"""

    result_type: ClassVar[type[Result]] = Result
    level: float = parameter(0.95, "Confidence level.", concludes=True)
    words: int = parameter(3, "So many words.")

    def measure(self, *given: object) -> xr.Dataset:
        import xarray as xr

        return xr.Dataset({"level": getattr(self, "level", None)})


def test_reading_what_only_concludes_is_refused_while_measuring() -> None:
    study = Careless(level=0.9, words=5)
    assert study.measuring_parameters == {"words": 5}
    closed = study.measuring()
    assert isinstance(closed, Careless)
    assert (closed.words, study.level) == (5, 0.9)
    with pytest.raises(ReadWhileMeasuringError, match="Careless reads 'level' while it measures"):
        closed.measure()
    assert float(study.measure()["level"]) == 0.9
