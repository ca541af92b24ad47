"""Which test files a change can reach: what `make test-changed` runs.

    python tests/changed.py [--since BASE] [FILE …]

prints the test files that reach the given files, or those that differ from BASE (the branch `main`
when none is named; uncommitted and new files count). A test reaches what it imports, what that
imports, and so on; what is found by its name (a study, a command, a way to train) when the name
stands in one of its texts; pages and data by the names of their folders. Where that cannot be told
(the build, what all tests share) all tests are meant: the list may be too long, not too short.
It is for working; before a change lands, `make test` runs everything.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE, COMMANDS = "src/bertology/", "src/bertology/cli/"
FRONT, MAIN = PACKAGE + "__init__.py", COMMANDS + "main.py"
NAMED = ("cli/", "papers/", "studies/", "train/compress/", "train/ways/")  # found by their names
LISTS = {"JOINS", "METHODS", "STUDIES", "WAYS", "load_claims"}  # who says one of these reads all
LAWS = {"source_trees", "pkgutil"}  # who imports one of these looks at all sources
SHARED = ("tests/conftest.py", "tests/changed.py", "Makefile", "pyproject.toml", "constraints.txt")
_TYPES_ONLY = re.compile(r"^if TYPE_CHECKING:\n(?:    .*\n|\n)+", re.MULTILINE)
_FROM = re.compile(r"^\s*from ([\w.]+) import (\([^)]*\)|.*)", re.MULTILINE)
_IMPORT = re.compile(r"^\s*import ([\w., ]+)", re.MULTILINE)
_DOTTED = re.compile(r"\bbertology(?:\.\w+)+")
_HANDED = re.compile(r"\b(?:bt|bertology)\.(\w+)")
_WORD = re.compile(r"[\w.-]+")


@cache
def sources() -> dict[str, str]:
    """The text of every module of the package and the tests, by its path."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in (PACKAGE, "tests")
        for path in (ROOT / folder).rglob("*.py")
    }


@cache
def modules() -> dict[str, str]:
    """The path of each module by its dotted name."""
    return {
        re.sub(r"^(src|tests)/|(/__init__)?\.py$", "", path).replace("/", "."): path
        for path in sources()
    }


@cache
def by_name() -> dict[str, set[str]]:
    """What is found by its name and not imported: studies, commands, papers, ways to train."""
    found: dict[str, set[str]] = {}
    for path in sources():
        if path.startswith(tuple(PACKAGE + folder for folder in NAMED)):
            found.setdefault(_name(path), set()).add(path)
    return found


def _name(path: str) -> str:
    module = path.removesuffix("/__init__.py").removesuffix(".py")
    return module.rpartition("/")[2].replace("_", "-")


@cache
def imported(path: str) -> set[str]:
    """The dotted names that a file imports, with what it takes from each."""
    text = _TYPES_ONLY.sub("", sources()[path])
    found = {name for some in _IMPORT.findall(text) for name in re.findall(r"[\w.]+", some)}
    for module, names in _FROM.findall(text):
        named = re.findall(r"\w+", re.sub(r"#.*| as \w+", "", names))
        found |= {f"{module}.{name}" for name in named}
    return found


@cache
def words(test: str) -> set[str]:
    """The words in the texts of a test file; what its docstrings tell is not among them."""
    tree = ast.parse(sources()[test])
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {
        word
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told
        for word in _WORD.findall(node.value)
    }


@cache
def homes() -> dict[str, str]:
    """Where what `bertology` hands out is at home."""
    handed = _FROM.findall(sources()[FRONT])
    return {names.split()[0]: module for module, names in handed} | {
        "load": "bertology.model.encoder"
    }


def _file(module: str) -> str | None:
    """The file of a module, or of the module whose attribute is meant."""
    return modules().get(module) or modules().get(module.rpartition(".")[0])


@cache
def following(path: str) -> frozenset[str]:
    """The files that one file leads to."""
    return frozenset(_led(path))


def _led(path: str) -> Iterator[str]:
    if path == FRONT:
        return  # it hands out what is asked for
    text = sources()[path]
    handed = {homes()[name] for name in _HANDED.findall(text) if name in homes()}
    for module in imported(path) | set(_DOTTED.findall(text)) | handed:
        file = _file(module)
        if file and not (path == MAIN and file.startswith(COMMANDS)):
            yield file
            parts = file.split("/")
            packages = ("/".join([*parts[:i], "__init__.py"]) for i in range(1, len(parts)))
            yield from (package for package in packages if package in sources())
    if path.startswith("tests/"):
        for word in words(path) & by_name().keys():
            yield from by_name()[word]
        folders = path.split("/")[1:-1]
        shared = (f"tests/{'/'.join(folders[:i])}/conftest.py" for i in range(1, len(folders) + 1))
        yield from (conftest for conftest in shared if conftest in sources())
        # What all tests share hands fixtures of other modules to whoever names them.
        for name in imported("tests/conftest.py"):
            module, _, fixture = name.rpartition(".")
            if module in modules() and re.search(rf"\b{fixture}\b", text):
                yield modules()[module]


@cache
def reached(test: str) -> frozenset[str]:
    """All files that a test can lead to, itself among them."""
    found, waiting = {test}, [test]
    while waiting:
        fresh = following(waiting.pop()) - found
        found |= fresh
        waiting += fresh
    return frozenset(found)


@cache
def _said(test: str) -> tuple[set[str], set[str]]:
    """Imports and words of a test file, and of what it takes from the folder of the tests."""
    own = [path for path in reached(test) if path.startswith("tests/")]
    return set().union(*map(imported, own)), set().union(*map(words, own))


def tells(test: str, changed: str) -> bool:
    """Whether a test can tell that a file has changed."""
    takes, says = _said(test)
    if changed.endswith(".py") and not (ROOT / changed).exists():
        return _name(changed) in says  # who imported it has changed as well
    if not changed.startswith(PACKAGE):
        if changed.startswith("tests/"):
            return changed in reached(test)
        return changed.split("/")[0] in says  # pages, benchmarks, recipes
    taken = {part for name in takes for part in name.split(".")}
    handed = {"STUDIES", "studies"} & set(_HANDED.findall(sources()[test]))
    room = changed.removeprefix(PACKAGE)
    if LAWS & taken or (room.startswith(NAMED) and (LISTS & taken or handed)):
        return True
    if changed in sources():
        return changed in reached(test)
    if room.startswith("claims/"):
        return modules()["bertology.results.known_claims"] in reached(test)
    nearest, folder = room.rpartition("/")[0], room.split("/")[-2:-1]
    while f"{PACKAGE}{nearest}/__init__.py" not in sources():
        if not nearest:
            return True  # data of the package itself
        nearest = nearest.rpartition("/")[0]
    read = (file.startswith(f"{PACKAGE}{nearest}/") for file in reached(test))
    return bool(set(folder) & says) or any(read)


def every_test() -> list[str]:
    """All test files."""
    return sorted(path for path in sources() if path.rpartition("/")[2].startswith("test_"))


def reaching(changed: Iterable[str]) -> list[str]:
    """The test files that can tell that something has changed."""
    files = set(changed)
    data = {path for path in files if path.startswith("tests/") and not path.endswith(".py")}
    if data or files & set(SHARED):
        return every_test()
    style = "tests/unit/test_style.py"  # looks at everything
    return [t for t in every_test() if t == style or any(tells(t, path) for path in files)]


def differing(base: str) -> list[str]:
    """The files that differ from where this branch left `base`, and those that are new."""

    def git(*given: str) -> list[str]:
        done = subprocess.run(["git", *given], cwd=ROOT, check=True, capture_output=True, text=True)
        return done.stdout.splitlines()

    [since] = git("merge-base", base, "HEAD")
    new = git("ls-files", "--others", "--exclude-standard")
    return [*git("diff", "--name-only", "--no-renames", since), *new]


def main() -> None:
    """Prints one test file a line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, help="what changed, instead of asking git")
    parser.add_argument("--since", default="main", help="a branch or commit (default: main)")
    given = parser.parse_args()
    named = [path.resolve().relative_to(ROOT).as_posix() for path in given.files]
    try:
        changed = named or differing(given.since)
    except subprocess.CalledProcessError as error:
        parser.error(f"git does not know what differs from {given.since!r}: {error.stderr.strip()}")
    print("\n".join(reaching(changed)))


if __name__ == "__main__":
    main()
