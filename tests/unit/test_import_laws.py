"""Imports go one way, and torch stays out of whatever only shows results."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from source_trees import SOURCE, trees

FOUNDATION = {
    "arrays",
    "errors",
    "quiet",
    "registry",
    "stats",
    "metrics",
    "bundled",
    "parameters",
    "plain_files",
    "drafts",
    "yaml_patterns",
    "yaml_sections",
}
_BEFORE: list[set[str]] = [
    FOUNDATION,
    {"model", "data", "results"},
    {"report"},
    {"annotated"},
    {"train"},
    {"studies"},
    {"run"},
    {"papers", "reproduce"},
    {"server"},
    {"cli"},
]
# What each part may import from the rest of the package, in any function or module.
MAY_IMPORT: dict[str, set[str]] = {
    part: set().union(*_BEFORE[:i]) for i, parts in enumerate(_BEFORE) for part in parts
}
# A paper is described by what `reproduce` defines, and `reproduce` finds papers by their folder.
MAY_IMPORT["papers"] |= {"reproduce"}
MAY_IMPORT["reproduce"] |= {"papers"}
MAY_IMPORT["report"] = FOUNDATION | {"results"}
MAY_IMPORT["server"] -= {"papers", "reproduce"}
# The foundation in its own order.
MAY_IMPORT |= {
    "arrays": set(),
    "errors": set(),
    "quiet": set(),
    "bundled": set(),
    "registry": {"errors"},
    "yaml_patterns": set(),
    "yaml_sections": {"errors", "yaml_patterns"},
    "metrics": {"arrays", "errors"},
    "plain_files": {"errors"},
    "drafts": set(),
    "parameters": {"errors"},
    "stats": {"arrays", "errors", "metrics"},
}
# The public face (`bertology/__init__.py`, `__main__.py`) may name every part.
FACE = {"__init__", "__main__"}
TORCH_FREE = FOUNDATION | {"data", "results", "report", "server", "cli"}
TORCH_LIKE = {"torch", "transformers", "safetensors"}
HEAVY = {
    "torch",
    "transformers",
    "datasets",
    "matplotlib",
    "pandas",
    "xarray",
    "ray",
    "scipy",
    "sklearn",
    "pyarrow",
    "nltk",
}


@cache
def modules() -> list[tuple[str, Path, ast.Module]]:
    """Every module: its dotted name, its file and its tree."""
    found = []
    for path, tree in trees().items():
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append((name, path, tree))
    return found


def part_of(module: str) -> str:
    """`bertology.model.encoder` is in `model`; the package itself is the face."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else "__init__"


@cache
def importing_statements(tree: ast.Module) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """All of them, and whether only a type checker sees it.

    Only statements are looked through: no expression imports anything.
    """
    found = []
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, hidden = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append((node, hidden))
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, part, ())
            under = isinstance(node, ast.If) and part == "body" and for_types_only(node)
            waiting += [(n, hidden or under) for n in inner] if isinstance(inner, list) else ()
    return found


def for_types_only(node: ast.If) -> bool:
    return "TYPE_CHECKING" in ast.unparse(node.test)


def imports(name: str, path: Path, tree: ast.Module) -> Iterator[tuple[str, int, bool]]:
    """Absolute names imported, with line and whether only for types."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node, hidden in importing_statements(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, hidden
        else:
            base = node.module or ""
            if node.level:
                parent = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parent, *([base] if base else [])])
            if base == "bertology":  # `from bertology import stats` names a part
                for alias in node.names:
                    yield f"bertology.{alias.name}", node.lineno, hidden
            else:
                yield base, node.lineno, hidden


def test_every_part_is_covered_by_the_law() -> None:
    parts = {part_of(name) for name, _, _ in modules()}
    assert parts - FACE <= set(MAY_IMPORT), "a new part needs its row in MAY_IMPORT"


def test_imports_go_one_way() -> None:
    """Also inside functions; names imported only for the type checker are free."""
    broken = []
    for name, path, tree in modules():
        part = part_of(name)
        if part in FACE:
            continue
        for target, line, for_types in imports(name, path, tree):
            if for_types or target.split(".")[0] != "bertology":
                continue
            other = part_of(target)
            if other == "__version__":
                continue
            if other != part and other not in MAY_IMPORT[part]:
                broken.append(f"{path.relative_to(SOURCE)}:{line} {part} imports {target}")
    assert not broken, "\n".join(broken)


@cache
def importing(*, types: bool = False) -> dict[str, set[str]]:
    """Which modules each module imports at run time, also inside functions; or for `types`, too."""
    found = list(modules())
    names = {name for name, _, _ in found}
    edges: dict[str, set[str]] = {}
    for name, _, tree in found:
        edges[name] = set()
        for node, hidden in importing_statements(tree):
            if hidden and not types:
                continue
            if isinstance(node, ast.ImportFrom):
                given = [f"{node.module}.{alias.name}" for alias in node.names]
                edges[name] |= {g if g in names else str(node.module) for g in given}
            else:
                edges[name] |= {alias.name for alias in node.names}
        edges[name] &= names - {name}
    return edges


def reachable(edges: dict[str, set[str]], start: str) -> set[str]:
    """All that `start` leads to by one import or more."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = edges[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def test_no_module_imports_itself_by_way_of_others() -> None:
    """No circles: not inside functions, and not of names that only a type checker sees."""
    left = dict(importing(types=True))
    while free := {name for name, wanted in left.items() if not wanted & left.keys()}:
        left = {name: wanted for name, wanted in left.items() if name not in free}
    edges = {name: wanted & left.keys() for name, wanted in left.items()}
    assert not {name for name in edges if name in reachable(edges, name)}


DESIGNS = 30
SHARING = {"designs", "shared"}


def study_of(module: str) -> tuple[str, ...]:
    """Topic and name of the study that a module is of, or where it is shared."""
    return tuple(module.split(".")[2:4])


def used_by(module: str, edges: dict[str, set[str]]) -> set[tuple[str, ...]]:
    """The studies that reach a module, also by way of what they share."""
    found, seen, waiting = set(), {module}, [module]
    while waiting:
        wanted = waiting.pop()
        for name in {n for n, led_to in edges.items() if wanted in led_to} - seen:
            seen.add(name)
            if not name.startswith("bertology.studies."):
                continue
            if SHARING & set(study_of(name)):
                waiting.append(name)
            else:
                found.add(study_of(name))
    return found


def test_what_only_one_study_uses_lies_in_it() -> None:
    """`designs/` has users in two topics or more, `TOPIC/shared/` two studies of the topic."""
    edges = importing()
    lent = [
        name
        for name, path, _ in modules()
        if part_of(name) == "studies"
        and path.name != "__init__.py"
        and SHARING & set(study_of(name))
    ]
    for name in lent:
        users = used_by(name, edges)
        topics = {topic for topic, *_ in users}
        if "designs" in study_of(name):
            assert len(topics) > 1, f"{name} is used in {users} only"
        else:
            assert topics == {study_of(name)[0]}, f"{name} is used in {users}: it is a design"
            assert len(users) > 1, f"{name} is used by {users} only"
    assert sum("designs" in study_of(name) for name in lent) <= DESIGNS


def test_only_what_computes_names_torch() -> None:
    """Parts without torch do not import it anywhere, not even inside a function."""
    broken = []
    for name, path, tree in modules():
        if part_of(name) not in TORCH_FREE:
            continue
        for target, line, for_types in imports(name, path, tree):
            if not for_types and target.split(".")[0] == "torch":
                broken.append(f"{path.relative_to(SOURCE)}:{line} imports {target}")
    assert not broken, "\n".join(broken)


def loaded_by(statement: str, watched: set[str]) -> set[str]:
    """Which of the watched libraries a fresh interpreter has after `statement`."""
    code = f"{statement}\nimport sys\nprint(*sorted({watched!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def dotted(part: str) -> list[str]:
    """All modules of a part, also those of its sub-packages."""
    folder = SOURCE / part
    found = pkgutil.walk_packages([str(folder)], prefix=f"bertology.{part}.")
    return [f"bertology.{part}", *sorted(m.name for m in found)]


def test_showing_results_needs_no_torch() -> None:
    """One part after the other in one process: the first that has torch is the one to mend."""
    lines = [
        line
        for part in ("results", "report", "studies", "reproduce", "papers")
        for line in (
            "import " + ", ".join(dotted(part)),
            f"assert not {TORCH_LIKE!r} & set(sys.modules), {part!r}",
        )
    ]
    assert loaded_by("\n".join(["import sys", *lines]), TORCH_LIKE) == set()


@pytest.mark.parametrize("module", ["bertology", "bertology.cli.main"])
def test_the_front_door_is_light(module: str) -> None:
    assert loaded_by(f"import {module}", HEAVY) == set()
