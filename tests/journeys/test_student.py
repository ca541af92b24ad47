"""The student: from a table of her own to a figure and a LaTeX table, as the page prints it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bertology.results.store import Store
from printed import Done, commands, run, run_all

PAGE = "docs/how-to/own-data.md"
VERBS = ["finetune", "run", "export", "report", "run"]
# A tiny model that knows nothing learns by larger steps.
QUICKER = {
    "bertology-mini": "tiny",
    "--to tuned": "--to tuned --rate 5e-3 --epochs 5 --batch-size 16",
}


def test_it_takes_four_commands() -> None:
    assert [command.split()[1] for command in commands(PAGE)][:4] == VERBS[:4]


def check(done: list[Done]) -> None:
    """What the commands of the page say and leave behind."""
    assert [one.verb for one in done] == VERBS
    tuned, ablation, export, report, change = done
    assert "95 % interval, over" in tuned.said
    assert "The model: tuned/seed-0" in tuned.said
    assert "Labels (data = model, by name): good = good, poor = poor" in ablation.said
    assert "head-ablation of tuned/seed-0 over reviews" in ablation.said
    assert "dark-secrets." in ablation.said  # what the literature claims
    written = [Path(line) for line in export.said.split()]
    assert all(path.is_file() and path.parent == Path("paper") for path in written)
    endings = {path.name.split("-", 3)[-1] for path in written}
    assert {"heads.pdf", "layers.pdf", "captions.txt", "heads-strongest.tex"} <= endings
    figure = next(path for path in written if path.name.endswith("-heads.pdf"))
    width = re.search(rb"/MediaBox \[ 0 0 ([0-9.]+)", figure.read_bytes())
    assert width is not None
    assert float(width[1]) == pytest.approx(3.3 * 72)  # a column, in points
    table = next(path for path in written if path.name.endswith("-heads-strongest.tex"))
    assert r"\toprule" in table.read_text(encoding="utf-8")
    captions = next(path for path in written if path.name.endswith("-captions.txt"))
    assert "fine-tuned on reviews" in captions.read_text(encoding="utf-8")
    assert "over reviews" in report.said
    page = Path("reviews.html").read_text(encoding="utf-8")
    assert "Next:" not in report.said  # the plans of papers do not know her data
    assert "head-ablation" in page
    (base,) = [p.others["before"]["name"] for p in Store("results").list("attention-change")]
    assert base == tuned.command.split()[2]
    assert f"Attention moved most from {base}" in change.said


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page has no figures: nobody looks at them here."""
    monkeypatch.setattr("bertology.report.atlas.chapters._drawn", lambda result, name: b"<svg/>")


def test_the_commands_of_the_page(tiny: Path, reviews: Callable[..., None], undrawn: None) -> None:
    reviews(240, 60)
    done = run_all(PAGE, {**QUICKER, "--measure": "--measure --limit 8"})
    check(done)
    # What is proposed on the way can be pasted: this finds the result of before.
    (ablation, _), again = done[0].proposed, done[1].said.partition("Result:")[2]
    assert run(ablation).said.partition("Result:")[2] == again
    show, tables, figures = done[1].proposed
    assert "layers and heads count from 0" in run(show).said
    assert "tables/" in run(tables).said
    assert figures == tables.replace("csv,latex --to tables", "pdf --to figures")


def test_json_lines_do_as_well(tiny: Path, reviews: Callable[..., None], undrawn: None) -> None:
    reviews(80, 20, "jsonl")
    finetune = commands(PAGE)[0].replace(".csv", ".jsonl")
    for old, new in QUICKER.items():
        finetune = finetune.replace(old, new)
    _, change = run(finetune).proposed
    assert "--task reviews-test.jsonl --columns text=review,label=opinion" in change
    assert "attention-change of tuned/seed-0 over reviews" in run(change).said


@pytest.mark.slow
def test_the_page_as_it_stands(reviews: Callable[..., None], here: Path) -> None:
    reviews(600, 120)
    check(run_all(PAGE))
