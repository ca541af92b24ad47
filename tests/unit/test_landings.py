"""Two landings that add something each touch no common file."""

from __future__ import annotations

import datetime
import importlib.util
import json
import os
import shutil
import subprocess
import sys
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
    fixed = told.partition("### Fixed\n\n")[2]
    assert "- One is right now.\n" in fixed
    assert "- Two, too.\n" in fixed, "whatever else was fixed"

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


STUDY = '''\
"""Toy."""

from __future__ import annotations

from dataclasses import dataclass

from bertology.studies.study import Study


@dataclass(frozen=True)
class {kind}(Study):
    """How long are {words}?

    Method: they are counted. Limits: none.
    """
'''
CLAIM = """\
- id: primer-{name}.they-are-long
  source: {{paper: "Rogers et al. 2020, A Primer in BERTology", section: "3"}}
  statement: The {words} are long.
  published: {{text: "all of them"}}
  study: {name}
  rule: {{quantity: length, relation: above, value: 1}}
  explanation: Their length is compared with one.
"""
SECTION = """\
number: "3"
claims: [primer-{name}]
plan:
  steps: [{{study: {name}, over: words}}]
exhibits:
  - {{study: {name}, caption: Ours., published: Theirs.}}
"""
PAGE = '---\nheadline: "The {words} are long: holds."\n---\n\n# The {words}\n'
ASK = """\
import importlib.util, json
from pathlib import Path
from typer.testing import CliRunner
from bertology.cli.main import app
from bertology.model.shape import Shape
from bertology.reproduce import PAPERS
from bertology.reproduce.plan import ReproductionOptions
from bertology.reproduce.planner import plan_paper
from bertology.results.known_claims import load_claims

def script(path):
    spec = importlib.util.spec_from_file_location("script", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

docs, primer = script("docs/generate.py"), PAPERS.get("primer")
shape = Shape(layers=2, heads=2, hidden=16, head_size=8, mlp=32)
plan = plan_paper(primer, ReproductionOptions("some-model"), shape)
print(json.dumps({
    "bertology studies": CliRunner().invoke(app, ["studies"]).output,
    "the reference": docs.studies(),
    "the reference of claims": docs.claims(),
    "reproductions": docs.reproductions(),
    "benchmarks": docs.benchmarks(),
    "claims": " ".join(c.id for c in load_claims() if primer.makes(c)),
    "the plan of the paper": " ".join(step.key for step in plan.steps),
    "the page of the paper": " ".join(e.study for s in primer.sections for e in s.exhibits),
    "what is not released": script("changelog.d/release.py").told(Path()),
}))
"""


def landing(name: str, words: str, *, folder: bool) -> dict[str, str]:
    """Every file of a landing that adds a study with its claim, section, page, numbers and news."""
    module = name.replace("-", "_")
    kind = "".join(word.capitalize() for word in name.split("-"))
    files = {
        f"src/bertology/studies/geometry/{module}{'/__init__' if folder else ''}.py": STUDY,
        f"src/bertology/claims/primer-{name}.yaml": CLAIM,
        f"src/bertology/papers/primer/sections/3-{name}.yaml": SECTION,
        f"docs/reproductions/geometry/{name}.md": PAGE,
        f"benchmarks/results/{module}.md": "# {words} (`{kind}`)\n\n2030-01-02: a machine.\n",
        f"changelog.d/{name}.added.md": "- The study `{name}`.\n",
    }
    given = {"name": name, "kind": kind, "words": words}
    return {path: text.format(**given) for path, text in files.items()}


def test_two_landings_that_add_a_study_each_only_add_files(tmp_path: Path) -> None:
    """None of them is there before, and none is in both; help, docs and plans know both studies."""
    landings = [
        landing("toy-words", "words", folder=False),
        landing("toy-texts", "texts", folder=True),
    ]
    written = [path for files in landings for path in files]
    assert len(written) == len(set(written))
    assert not [path for path in written if (ROOT / path).exists()]

    house = tmp_path / "src" / "bertology"
    house.mkdir(parents=True)
    for part in (ROOT / "src" / "bertology").iterdir():
        if part.name in ("studies", "claims", "papers"):
            shutil.copytree(part, house / part.name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (house / part.name).symlink_to(part)
    for folder in ("docs", "benchmarks/results", "changelog.d"):
        left_out = shutil.ignore_patterns("images", "__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=left_out)
    for files in landings:
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_text(text)

    asked = [sys.executable, "-c", ASK]
    done = subprocess.run(
        asked,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    for where, said in told.items():
        for name in ("toy-words", "toy-texts"):
            assert name in said.replace("_", "-"), where
