"""`bertology reproduce` from one command to a page: stopped, resumed, refused, explained."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tiny
from bertology.annotated import sense_planes
from bertology.cli.main import app
from bertology.results.known_claims import load_claims
from bertology.results.result import Result
from bertology.run.session import Session
from bertology.studies import STUDIES
from bertology.studies.cloze import affordances, malformed_input
from bertology.train import baselines, speed
from bertology.train.probes import battery
from printed import Done, run


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random BERT that reads as the bundled one does."""
    return tiny.save_reader(tmp_path_factory.mktemp("model") / "tiny")


def call(*arguments: Any) -> tuple[int, str]:
    words = ["reproduce", *(str(a) for a in arguments)]
    done = CliRunner().invoke(app, words, prog_name="bertology")
    assert "Traceback" not in done.output
    assert "This is a bug" not in done.output
    return done.exit_code, done.output


def test_a_page_that_is_stopped_and_resumed(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "out"
    given = ("dark-secrets", "--model", model, "--tasks", "grammar-paraphrase", "--root", tmp_path,
             "--to", to, "--limit", 12, "--train-limit", 16, "--seeds", 1)  # fmt: skip
    # Figures have tests of their own.
    monkeypatch.setattr("bertology.reproduce.render.page._drawn", lambda result, name: b"<svg/>")
    monkeypatch.setattr("bertology.reproduce.render.page._rendered", lambda drawn: b"<svg/>")
    whole = Session.run

    def stop(session: Session, name: str, *more: Any, **named: Any) -> Any:
        if name == "head-ablation":
            raise KeyboardInterrupt
        return whole(session, name, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "run", stop)
        code, said = call(*given)
    assert code == 130, said
    assert f"Continue with: bertology reproduce dark-secrets --model {model}" in said
    assert not (to / "index.html").exists()
    code, said = call(*given)
    assert code == 0, said
    assert "cached   attention-change" in said
    assert "done     head-ablation" in said
    (listed,) = Done("bertology reproduce", said).proposed
    assert "head-ablation" in run(listed).said
    page = (to / "index.html").read_text()
    assert "grammar-paraphrase" in page
    record = json.loads((to / "summary.json").read_text())
    assert len(record["claims"]) > 20
    assert "mrpc" not in record["missing"]
    assert "ud-ewt" in record["missing"]
    assert str(tmp_path) not in (to / "summary.md").read_text()
    assert record["command"].endswith("--root DATA")
    assert "it takes two tasks or more" in page
    code, again = call(*given)
    assert code == 0, again
    assert "running" not in again
    assert "done  " not in again
    assert json.loads((to / "summary.json").read_text())["claims"] == record["claims"]
    assert "This replaced" not in again
    record["command"] = "bertology reproduce dark-secrets --model another"
    (to / "summary.json").write_text(json.dumps(record))
    assert f"To make that page again: {record['command']}" in call(*given)[1]


# Of texts in several languages, which do not come along; the first holds more sentences out.
IN_LANGUAGES = {
    "multilingual-ingredients", "tokenization", "language-space", "word-alignment",
    "zero-shot-transfer", "multilingual-agreement", "structural-probe-transfer",
}  # fmt: skip


# The Primer has 55 steps, which take more than half a minute.
@pytest.mark.parametrize("paper", ["nuggets", pytest.param("primer", marks=pytest.mark.slow)])
def test_a_survey_is_a_page_without_any_data(
    paper: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing: list[tuple[str, str]] = []

    def drawn(result: Result, name: str) -> bytes:
        if name not in result.figures():
            missing.append((result.provenance.study, name))
        return b"<svg/>"

    monkeypatch.setattr("bertology.reproduce.render.page._drawn", drawn)
    # Whether probes and baselines have learnt much does not matter to a page.
    monkeypatch.setattr(baselines, "HIDDEN", 8)
    monkeypatch.setattr(baselines, "EPOCHS", 1)
    learn = battery.descended

    def learn_little(*given: Any, steps: int, **more: Any) -> None:
        learn(*given, steps=4, **more)

    monkeypatch.setattr(battery, "descended", learn_little)
    monkeypatch.setattr(malformed_input, "_LEARNT", 40)
    # Nor do how many copies with shuffled weights there are, and how a picture is laid out.
    for study in map(STUDIES.get, STUDIES):
        if isinstance(getattr(study, "copies", None), int) and "copies" not in {
            f.name for f in fields(study)
        }:
            monkeypatch.setattr(study, "copies", min(study.copies, 2))
    monkeypatch.setattr(affordances, "_COPIES", 1)
    monkeypatch.setattr(sense_planes, "_FEW", 1000)
    # Nor how long models are timed.
    monkeypatch.setattr(speed, "_ALONE", 1)
    monkeypatch.setattr(speed, "_TIMED", 1)
    to = tmp_path / "out"
    little = ("--limit", 12, "--train-limit", 16, "--seeds", 1, "--epochs", 1)
    code, said = call(paper, "--model", model, "--to", to, *little)
    assert code == 0, said
    record = json.loads((to / "summary.json").read_text())
    assert not record["missing"]
    # This model kept no training steps, and learns nothing from 16 examples: what would survive?
    # Twelve pairs are too few to ask about heuristics.
    nuggets = {"heuristics", "super-survivors", "training-steps"}
    lacking = nuggets if paper == "nuggets" else IN_LANGUAGES
    assert {key.partition("@")[0] for key in record["not_run"]} == lacking, said
    unrun = {c["id"] for c in record["claims"] if c["overall"] == "not run"}
    # A page is about one model, so that nothing can be said of sizes.
    missed = {"heuristics", "model-sizes", "super-survivors"} if lacking == nuggets else lacking
    told = {c.id for c in load_claims() if c.study in missed}
    early = {"nuggets-outliers.outliers-emerge-early"} if lacking == nuggets else set()
    assert unrun == told | early
    # A random model follows no relation, has no outliers, and nothing could go: no figures of them.
    absent = ("head-profile", "relation-heads", "outlier-dimensions", "subnetwork-overlap")
    absent += ("word-senses",)  # so few texts have too few occurrences of a sense for clusters
    unasked = {("facts", "versions")} if paper == "primer" else set()  # bundled ones have no "not"
    assert {figure for figure in missing if figure[0] not in absent} == unasked
    page = (to / "index.html").read_text()
    assert re.findall(r'href="#s([^"]+)"', page)
    for target in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{target}"' in page


def test_the_plan_is_shown_and_nothing_is_done(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = call("dark-secrets", "--model", model, "--dry-run", "--limit", 12)
    assert code == 0, said
    assert "fine-tuning-starts" in said
    code, quick = call("dark-secrets", "--model", model, "--dry-run", "--quick")
    assert code == 0, quick
    assert "examples 750, epochs 1" in quick
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("dark-secret",), "Did you mean 'dark-secrets' or"),
        (("dark-secrets", "--tasks", "mrpx"), "Did you mean 'mrpc'?"),
        (("dark-secrets", "--tasks", "grammar"), "has no classification"),
        (("dark-secrets", "--model", "no/such/folder"), "no/such/folder"),
        (("dark-secrets", "--limit", "1"), "--limit"),
        (("dark-secrets", "--tasks", ""), "--tasks"),
    ],
)
def test_bad_input_is_refused_before_any_work(
    words: tuple[str, ...], message: str, model: Path, tmp_path: Path
) -> None:
    named = () if "--model" in words else ("--model", model)
    code, said = call(*words, *named, "--to", tmp_path / "out")
    assert code == 2, said
    assert message in said
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, said = call("dark-secrets", "--model", model, "--to", tmp_path / "file" / "out")
    assert code == 2, said
    assert "cannot be written" in said
