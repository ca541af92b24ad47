"""The modules of the package, parsed once for all tests that look at their code."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "bertology"


@cache
def trees() -> dict[Path, ast.Module]:
    """The tree of every file, in the order of their paths."""
    return {
        path: ast.parse(path.read_text(encoding="utf-8"), str(path))
        for path in sorted(SOURCE.rglob("*.py"))
    }
