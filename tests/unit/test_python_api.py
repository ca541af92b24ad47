"""In Python everything is as much at hand as on the command line."""

from __future__ import annotations

import sys
from io import StringIO
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import bertology as bt
from bertology.errors import ParameterError
from bertology.run.progress import (
    NoProgress,
    NotebookBar,
    ProgressBar,
    ProgressLines,
    choose_progress,
)


def test_dir_names_what_is_public_and_nothing_else() -> None:
    assert dir(bt) == sorted(bt.__all__)
    assert not [name for name in dir(bt) if name.startswith("_") and name != "__version__"]
    for name in dir(bt):
        assert getattr(bt, name) is not None


def test_studies_are_a_table() -> None:
    found = bt.studies()
    assert list(found.columns) == ["question", "needs", "topic"]
    assert found.loc["head-ablation", "needs"] == "head classification, a task, label, text"
    assert found["question"].str.len().min() > 10
    import bertology.studies  # after which the name is the package's, too

    assert len(bertology.studies()) == len(found)


def test_run_draws_examples_by_itself(tmp_path: Any) -> None:
    found = bt.run("attention-maps", corpus="grammar", limit=3, store=str(tmp_path))
    assert found.provenance.corpus is not None
    assert found.provenance.corpus["size"] == 3
    loaded = bt.load_corpus("grammar", limit=20)
    again = bt.run("attention-maps", corpus=loaded, limit=3, store=str(tmp_path))
    assert again.provenance.corpus is not None
    assert again.provenance.corpus["size"] == 3
    with pytest.raises(ParameterError, match="split"):
        bt.run("attention-maps", corpus=loaded, split="test", store=str(tmp_path))


class Shown:
    """What a cell shows, as IPython's display handles it."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def display(self, thing: Any, *, display_id: bool) -> Shown:
        assert display_id
        self.update(thing)
        return self

    def update(self, thing: Any) -> None:
        self.seen.append(thing.text)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """A process that looks like the kernel of a notebook."""
    shown = Shown()
    drawing = ModuleType("IPython.display")
    drawing.HTML = lambda text: SimpleNamespace(text=text)  # type: ignore[attr-defined]
    drawing.display = shown.display  # type: ignore[attr-defined]
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    for name, module in {"IPython": ipython, "IPython.display": drawing}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setattr("bertology.run.progress._REFRESH", 0.0)
    return shown


def test_a_notebook_shows_progress_and_takes_it_away(notebook: Shown) -> None:
    bar = choose_progress(None)
    assert isinstance(bar, NotebookBar)
    bar.start("a < b", 4)
    bar.advance(1)
    bar.advance(3)
    bar.stop()
    first, second, third, last = notebook.seen
    assert "a &lt; b" in first
    assert "0 of 4" in first
    assert "1 of 4" in second
    assert "left" in second
    assert "4 of 4" in third
    assert last == ""


def test_a_figure_is_the_picture_that_a_cell_shows() -> None:
    """Without pyplot, notebooks printed <Figure size 660x…>."""
    from bertology.report.look import new_panels

    figure, _ = new_panels(3, 2, 1, 1)
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_without_a_terminal_there_is_no_bar(notebook: Shown, monkeypatch: Any) -> None:
    assert isinstance(choose_progress(False), NoProgress)
    monkeypatch.delitem(sys.modules, "ipykernel")
    monkeypatch.setattr(sys, "stderr", StringIO())
    assert isinstance(choose_progress(None), ProgressLines)
    assert isinstance(choose_progress(False), NoProgress)
    assert isinstance(choose_progress(True), ProgressBar)
