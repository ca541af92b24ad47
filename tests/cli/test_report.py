"""`bertology report`: a page from a store or from nothing, files for papers, clear refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tiny
from bertology.cli import report
from bertology.cli.main import app
from bertology.results.store import Store
from bertology.studies import STUDIES
from toy_atlas import TUNED_A, Toy, make, toy_store

__all__ = ["toy_store"]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def call(*arguments: Any) -> tuple[int, str]:
    words = ["report", *(str(a) for a in arguments)]
    done = CliRunner().invoke(app, words, prog_name="bertology")
    assert "Traceback" not in done.output
    assert "This is a bug" not in done.output
    return done.exit_code, done.output


def test_a_page_from_a_store(toy_store: Store, tmp_path: Path) -> None:
    page = tmp_path / "deep" / "page.html"
    code, said = call("toy", "--store", toy_store.url, "--to", page, "--task", "task-a")
    assert code == 0, said
    assert f"Page:  {page}" in said
    text = page.read_text(encoding="utf-8")
    assert "fine-tuned on task-a" in text
    assert "fine-tuned on task-b" not in text
    assert str(tmp_path) not in text


def test_before_and_after_fine_tuning_and_two_models(toy_store: Store, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    given = ("toy", "--store", toy_store.url, "--to", page, "--compare")
    assert call(*given, "task-a")[0] == 0
    assert "toy and toy fine-tuned on task-a" in page.read_text(encoding="utf-8")
    assert call(*given, TUNED_A)[0] == 0
    assert "toy and toy-tuned" in page.read_text(encoding="utf-8")
    origin = {"name": "toy", "fingerprint": "aaaa11112222", "task": "task-a"}
    again = {"name": "/far/away/a-2/toy-tuned", "fingerprint": "abab", "tuned_from": origin}
    toy_store.save(make(again, "task-a"))
    assert call(*given, "task-a")[0] == 0  # two models learnt it
    assert "toy and toy fine-tuned on task-a" in page.read_text(encoding="utf-8")
    code, said = call(*given, "mrpc")  # a task, and no model's name
    assert code == 2
    assert "bertology finetune toy mrpc" in said
    assert "--model mrpc" not in said
    code, said = call(*given, "nobody")
    assert code == 2
    assert "has no results of 'nobody'" in said


def test_files_for_papers(
    toy_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Toy.figures
    monkeypatch.setattr(Toy, "figures", lambda self: {"heads": whole(self)["heads"]})
    page, folder = tmp_path / "page.html", tmp_path / "files"
    code, said = call("other", "--store", toy_store.url, "--to", page, "--export", folder)
    assert code == 0, said
    endings = {p.suffix for p in folder.rglob("*.*")}
    assert endings == {".svg", ".png", ".pdf", ".csv", ".tex", ".txt"}
    assert f"in {folder}" in said


def test_what_cannot_be_done_is_said_with_what_can(toy_store: Store, tmp_path: Path) -> None:
    code, said = call("nobody", "--store", toy_store.url)
    assert code == 2
    for text in ("other, toy", "bertology report nobody --measure", "bertology verify nobody"):
        assert text in said
    code, said = call("toy", "--store", toy_store.url, "--task", "task-z")
    assert code == 2
    assert "Did you mean 'task-" in said
    assert "bertology finetune" not in said
    code, said = call("toy", "--store", toy_store.url, "--task", "mrpc")
    assert code == 2
    assert "bertology finetune toy mrpc" in said
    blocked = tmp_path / "file"
    blocked.write_text("")
    code, said = call("toy", "--store", toy_store.url, "--to", blocked / "page.html")
    assert code == 2
    assert "--to" in said


def test_a_page_from_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.save_reader(tmp_path / "tiny-reader")
    monkeypatch.setattr(report, "_EXAMPLES", 4)
    for name in STUDIES:
        monkeypatch.setattr(STUDIES.get(name), "standard", name == "attention-maps")
    monkeypatch.setattr("bertology.report.atlas.chapters._drawn", lambda result, name: b"<svg/>")
    page, store = tmp_path / "page.html", tmp_path / "results"
    given = (model, "--measure", "--store", store, "--to", page)
    code, said = call(*given)
    assert code == 0, said
    assert "1/1  attention-maps over grammar (4 examples)" in said
    text = page.read_text(encoding="utf-8")
    assert "<h1>tiny-reader</h1>" in text
    assert "Attention to the previous token" in text
    assert str(tmp_path) not in text
    made = sorted(store.rglob("result.json"))
    when = [p.stat().st_mtime_ns for p in made]
    assert call(*given)[0] == 0
    assert [p.stat().st_mtime_ns for p in made] == when  # nothing is run twice
    # On data of one's own.
    own = tmp_path / "films-test.csv"
    own.write_text("review;stars\n" + "".join(f"a {w} b;{i % 2}\n" for i, w in enumerate("cdefgh")))
    code, said = call(*given, "--task", own, "--columns", "text=review,label=stars", "--limit", 5)
    assert code == 0, said
    assert "1/1  attention-maps over films (5 examples)" in said
    assert "films" in page.read_text(encoding="utf-8")
    code, said = call(*given, "--corpus", own, "--columns", "text=review")
    assert code == 0, said
    assert "attention-maps over films (4 examples)" in said


def test_options_of_measuring_without_measuring(toy_store: Store, tmp_path: Path) -> None:
    for option, value in (("--corpus", "a.csv"), ("--columns", "text=a"), ("--limit", "3")):
        code, said = call("toy", "--store", toy_store.url, option, value)
        assert code == 2
        assert f"'{option}' option of report must be given together with --measure" in said
    code, said = call("toy", "--measure", "--task", "a.csv", "--corpus", "b.csv")
    assert code == 2
    assert "be left out when --task is given" in said
