"""The documentation builds without a complaint, and what it prints works."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tiny
from printed import ROOT, printed

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "ARCHITECTURE.md"])


def generator() -> ModuleType:
    """docs/generate.py, which mkdocs calls."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_claim_is_listed_with_the_study_or_join_that_judges_it() -> None:
    from bertology.results.known_claims import load_claims
    from bertology.studies import JOINS

    generate = generator()
    claims, studies = generate.claims(), generate.studies()
    papers = ("dark-secrets", "primer-training")
    own = [c for c in load_claims() if c.id.partition(".")[0] in papers]
    assert any(c.study in JOINS for c in own)
    for claim in own:
        kind = "Join" if claim.study in JOINS else "Study"
        _, _, entry = claims.partition(f"## {claim.id}\n")
        assert f"**{kind}:** [{claim.study}]" in entry.partition("\n## ")[0], claim.id
        assert f"# {claim.study}\n" in studies
        assert f"[{claim.id}]" in studies


def test_the_documentation_builds_strictly(tmp_path: Path) -> None:
    if importlib.util.find_spec("material") is None:
        pytest.skip("needs mkdocs-material; install with: make venv")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = [p.read_text(encoding="utf-8") for p in tmp_path.rglob("*.html")]
    assert pages
    assert not [text for text in pages if "--8" in text], "a file was not included"
    # Offline: no script, style or font may come from elsewhere.
    remote = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="https?://(?!127\.)', re.I)
    assert not [m.group() for text in pages for m in remote.finditer(text)]


def test_every_reproduction_is_two_clicks_from_home_with_what_it_found() -> None:
    generate, folder = generator(), ROOT / "docs" / "reproductions"
    assert "](reproductions/index.md)" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[.+\]\((\S+)\): (.+)$", generate.reproductions(), re.MULTILINE)
    assert {path for path, _ in listed} == {
        path.relative_to(folder).as_posix() for path in folder.rglob("*.md")
    }
    words = r"\b(holds?|fails?|open|inconclusive|judged|surely)\b"
    assert not [path for path, found in listed if not re.search(words, found, re.I)]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_python_in_the_pages_compiles(page: Path) -> None:
    for block in printed(str(page.relative_to(ROOT)), "python"):
        compile(block, str(page), "exec")


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_links_lead_somewhere(page: str) -> None:
    """mkdocs checks the pages under docs/; these two are read on their own."""
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    assert not [link for link in links if not (ROOT / link).exists()]


def test_the_readme_does_what_it_says() -> None:
    first, *_ = printed("README.md", "python")  # the next one needs what `bertology demo` makes
    names: dict[str, Any] = {}
    exec(compile(first, "README.md", "exec"), names)
    assert names["blank"].predictions[0].word == "door"
    assert 2416 in names["bt"].steps()


def test_the_tutorial_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = tmp_path / "bertology-demo" / "model"
    tiny.model("bert", "classification").save_pretrained(checkpoint)
    tiny.tokenizer("the a keys key to cabinet cabinets are is here .".split()).save_pretrained(
        checkpoint
    )
    monkeypatch.chdir(tmp_path)
    code = "\n".join(printed("docs/tutorial.md", "python"))
    exec(compile(code, "tutorial.md", "exec"), {})
    assert (tmp_path / "heads.png").is_file()
    assert list((tmp_path / "results" / "head-ablation").iterdir())
