"""The student in Python: the notebook of the documentation, run as a reader does."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from printed import ROOT

NOTEBOOK = ROOT / "docs" / "notebooks" / "own-data.ipynb"
# A tiny model has few heads to switch off; what it learns is not looked at.
QUICKER = {
    '"bertology-mini"': '"tiny"',
    '"train", 1500': '"train", 200',
    '"validation", 200': '"validation", 40',
    "rate=1.5e-4": "rate=3e-3",
    "limit=100": "limit=20",
}


def executed(folder: Path, swaps: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> NotebookNode:
    """The notebook after its cells were run in a kernel of its own."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src")]))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        for old, new in swaps.items():
            cell.source = cell.source.replace(old, new)
    NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def shown(notebook: NotebookNode, cell: str) -> str:
    """What a cell shows, as text."""
    (found,) = [c for c in notebook.cells if c.id == cell]
    texts = [o.get("text") or "".join(o.get("data", {}).values()) for o in found.outputs]
    return "\n".join(texts)


def check(notebook: NotebookNode, folder: Path) -> None:
    """What the cells show and leave behind."""
    assert "fine-tuned on questions has accuracy" in shown(notebook, "finetune")
    assert "Model: tuned/seed-0" in shown(notebook, "finetune")
    assert "accuracy" in shown(notebook, "answer")
    assert "image/png" in str(next(c for c in notebook.cells if c.id == "figure").outputs)
    assert (folder / "heads.pdf").is_file()
    assert list((folder / "paper").glob("*-heads-strongest.tex"))
    assert "Attention moved most from" in shown(notebook, "change")
    assert "text/html" in str(next(c for c in notebook.cells if c.id == "view").outputs)
    problems = [
        o for c in notebook.cells for o in c.get("outputs", []) if o.get("name") == "stderr"
    ]
    assert not problems  # no warning of any library


def test_it_is_kept_without_outputs() -> None:
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    assert not [c.id for c in cells if c.get("outputs") or c.get("execution_count")]


def test_the_notebook(tiny: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(executed(here, QUICKER, monkeypatch), here)


@pytest.mark.slow
def test_the_notebook_as_it_stands(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(executed(here, {}, monkeypatch), here)
