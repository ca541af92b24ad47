"""What a reviewer would otherwise have to say: style and names."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from source_trees import SOURCE

ROOT = Path(__file__).resolve().parents[2]
VAGUE = {"utils", "util", "helpers", "helper", "misc", "common"}


def ruff(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if program is None:
        pytest.skip("needs ruff; install with: make venv")
    return subprocess.run(
        [program, *arguments, "--no-cache", "."], cwd=ROOT, capture_output=True, text=True
    )


def test_ruff_finds_nothing() -> None:
    done = ruff("check", "--output-format=concise")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_code_is_formatted() -> None:
    done = ruff("format", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_modules_are_named_after_what_they_hold() -> None:
    vague = [str(p.relative_to(ROOT)) for p in SOURCE.rglob("*.py") if p.stem in VAGUE]
    assert not vague


def test_nothing_is_left_to_do() -> None:
    """No TODO in the package: what is not there is in the issue tracker, not in the code."""
    marks = ("TODO", "FIXME", "XXX")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted(SOURCE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if any(mark in line for mark in marks)
    ]
    assert not found


def test_no_path_of_one_machine_is_in_the_tree() -> None:
    """Nothing may depend on where this checkout happened to lie."""
    folders = ("src", "tests", "docs", "benchmarks", ".ci")
    files = [
        p for f in folders for p in (ROOT / f).rglob("*") if p.suffix in {".py", ".md", ".yaml"}
    ]
    files += [ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / "README.md"]
    needles = ("/wo" + "rk/", "/ro" + "ot/")  # in two pieces, or this file would be found
    found = [
        str(p.relative_to(ROOT)) for p in files if any(n in p.read_text("utf-8") for n in needles)
    ]
    assert not found
