"""The house in numbers: how large the package is, and how much of it one study is.

    python benchmarks/house.py                 # this checkout
    python benchmarks/house.py OTHER_CHECKOUT  # and one more, such as a clone

What only one study uses are the modules that it reaches through imports and that are reached
through no other study, join or room. A circle is a set of modules that import each other, imports
for type checkers included.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

HERE = Path(__file__).resolve().parents[1]
Imports = Mapping[str, set[str]]


def modules(root: Path) -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted((root / "src" / "bertology").rglob("*.py")):
        parts = path.relative_to(root / "src").with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: Iterable[str]) -> set[str]:
    """The modules of the package that a file imports anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names} & set(known)
            found |= inside or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & set(known)


def circles(imports: Imports) -> list[list[str]]:
    """Sets of modules of which each reaches each other one."""
    names = sorted(imports)
    at = {name: i for i, name in enumerate(names)}
    pairs = [(at[a], at[b]) for a in names for b in imports[a] if a != b]
    rows, columns = zip(*pairs, strict=True)
    graph = csr_array(([1] * len(pairs), (rows, columns)), shape=(len(names), len(names)))
    _, group = connected_components(graph, connection="strong")
    sizes = Counter(group.tolist())
    large = [g for g, size in sizes.items() if size > 1]
    return [[n for n in names if group[at[n]] == g] for g in large]


def reached(start: Iterable[str], imports: Imports, without: str = "") -> set[str]:
    """All modules that these lead to, themselves included."""
    found, waiting = set(), [name for name in start if name != without]
    while waiting:
        name = waiting.pop()
        if name not in found and name != without:
            found.add(name)
            waiting += imports[name]
    return found


def studies(imports: Imports) -> list[str]:
    """Modules of the topic folders that are a study or a join, as a file or as a folder."""
    names = [n for n in imports if n.count(".") == 3 and n.startswith("bertology.studies.")]
    return [n for n in names if not is_shared(n)]


def is_shared(module: str) -> bool:
    """Whether it is of what studies share."""
    return bool({"designs", "shared"} & set(module.split(".")[2:4]))


def own(study: str, imports: Imports) -> set[str]:
    """What only this study leads to."""
    inside = {n for n in imports if n == study or n.startswith(f"{study}.")}
    others = {n for n in imports if n.startswith("bertology.") and n not in inside}
    roots = {n for n in others if not (n.startswith("bertology.studies.") and is_shared(n))}
    return reached([study], imports) - reached(roots, imports, without=study)


def numbers(root: Path) -> dict[str, object]:
    """One column of the table."""
    paths = modules(root)
    imports = {name: imported(path, paths) for name, path in paths.items()}
    lines = {n: len(p.read_text(encoding="utf-8").splitlines()) for n, p in paths.items()}
    names = studies(imports)
    alone = [own(study, imports) for study in names]
    spread = [folders(found, study) for found, study in zip(alone, names, strict=True)]
    designs = [n for n in paths if n.startswith("bertology.studies.designs.")]
    return {
        "lines of `src`": f"{sum(lines.values()):,}",
        "files of `src`": len(paths),
        "modules of `studies/designs/`": len(designs),
        "lines of one study, median": statistics.median(sum(lines[n] for n in o) for o in alone),
        "files of one study, median": statistics.median(len(o) for o in alone),
        "folders in which these lie, mean": f"{statistics.mean(spread):.2f}",
        "circles of imports, types included": len(circles(imports)),
    }


def folders(names: Iterable[str], study: str) -> int:
    """In how many folders of the house the modules of one study lie."""
    return len({study if n.startswith(study) else n.rpartition(".")[0] for n in names})


def main() -> None:
    roots = [*map(Path, sys.argv[1:]), HERE]
    columns = [numbers(root) for root in roots]
    print("| what |" + "".join(f" {root.name} |" for root in roots))
    print("|---|" + "---|" * len(roots))
    for name in columns[0]:
        print(f"| {name} |" + "".join(f" {column[name]} |" for column in columns))


if __name__ == "__main__":
    main()
