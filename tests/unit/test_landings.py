"""Two landings that add something each touch no common file."""

from __future__ import annotations

import datetime
import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from printed import ROOT


def script(path: str) -> ModuleType:
    """A script of this repository as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """What a release changes, elsewhere."""
    shutil.copytree(ROOT / "changelog.d", tmp_path / "changelog.d")
    (tmp_path / "src" / "bertology").mkdir(parents=True)
    for path in ("CHANGELOG.md", "src/bertology/__init__.py"):
        shutil.copy(ROOT / path, tmp_path / path)
    return tmp_path


def test_changes_that_are_not_released_become_a_release(copied: Path) -> None:
    release = script("changelog.d/release.py")
    (copied / "changelog.d" / "one.fixed.md").write_text("- One is right now.\n")
    (copied / "changelog.d" / "two.fixed.md").write_text("- Two, too.\n")
    before = (copied / "CHANGELOG.md").read_text(encoding="utf-8")
    told = release.told(copied)
    assert "### Fixed\n\n- One is right now.\n- Two, too.\n" in told

    release.release(copied, "9.8.7", datetime.date(2030, 1, 2))
    after = (copied / "CHANGELOG.md").read_text(encoding="utf-8")
    head, _, releases = before.partition("## [")
    assert after == f"{head}## [9.8.7] - 2030-01-02\n\n{told}\n## [{releases}"
    assert '\n__version__ = "9.8.7"\n' in (copied / "src/bertology/__init__.py").read_text()
    assert not release.fragments(copied)
    assert release.told(copied) == ""


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("one.better.md", "- One.\n", "one.better.md: the kind must be one of added, changed"),
        ("one.md", "- One.\n", "one.md: the kind must be"),
        ("one.added.md", "One.\n", "one.added.md: it must hold list items"),
    ],
)
def test_other_files_are_refused(copied: Path, name: str, text: str, said: str) -> None:
    (copied / "changelog.d" / name).write_text(text)
    with pytest.raises(SystemExit, match=said):
        script("changelog.d/release.py").told(copied)
