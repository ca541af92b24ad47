"""`bertology verify`: claims chosen, judged, stopped, resumed, written; no signal from noise."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tiny
from bertology.cli.main import app
from bertology.errors import JobError
from bertology.results.store import Store
from bertology.run.session import Session
from printed import Done, run

FEW = ("--tasks", "grammar-paraphrase", "--limit", 12, "--train-limit", 16, "--seeds", 2)
SIGNALS = ("frame", "verb-subject", "some-heads", "a-layer", "a-random-head", "last-two-layers")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny random model; what is made by one test serves the next."""
    folder = tmp_path_factory.mktemp("home")
    tiny.save_reader(folder / "tiny", layers=3)
    return folder


def call(*arguments: Any) -> tuple[int, str]:
    words = ["verify", *(str(a) for a in arguments)]
    done = CliRunner().invoke(app, words, prog_name="bertology")
    assert "Traceback" not in done.output
    assert "This is a bug" not in done.output
    return done.exit_code, done.output


def test_a_random_model_bears_out_no_claim_that_needs_a_signal(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ("--json", home / "verdicts.json", "--csv", home / "verdicts.csv")
    given = (home / "tiny", *FEW, "--to", home, "--claims", ",".join(SIGNALS), *files)
    whole = Session.run

    def stop(session: Session, name: str, *more: Any, **named: Any) -> Any:
        if name == "head-ablation":
            raise KeyboardInterrupt
        return whole(session, name, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "run", stop)
        code, said = call(*given)
    assert code == 130, said
    assert f"Continue with: bertology verify {home / 'tiny'}" in said
    assert not (home / "verdicts.json").exists()
    code, said = call(*given)
    assert code == 1, said  # what has learnt nothing cannot be asked what it would miss
    assert "cached   relation-heads" in said
    assert "done     head-ablation" in said
    assert "fine-tuning-starts" not in said  # no claim needs it
    assert "Could not be judged: " in said
    assert "the intact model does not surely beat a constant answer" in " ".join(said.split())
    assert "not judged" in said
    assert "not-applicable" not in said  # files alone keep that word
    record = json.loads((home / "verdicts.json").read_text())
    assert len(record["claims"]) > 10
    assert not {"holds", "size open"} & {c["overall"] for c in record["claims"]}
    assert record["false_holds_at_most"] > 0
    assert "would still be said to hold" in " ".join(said.split())
    _, strict = call(*given, "--across-claims")
    assert "The error is held over all claims" in " ".join(strict.split())
    assert json.loads((home / "verdicts.json").read_text())["across_claims"] is True
    ids = {c["id"] for c in record["claims"]}
    assert "dark-secrets.a-head-attends-along-frames" in ids
    unjudged = [c for c in record["claims"] if c["reason"]]
    assert unjudged
    of_papers = [c for c in unjudged if not c["ours"]]  # ours are counted apart
    assert record["counts"]["not judged"] == len(of_papers)
    rows = list(csv.DictReader((home / "verdicts.csv").read_text(encoding="utf-8").splitlines()))
    assert {r["claim"] for r in rows} == ids
    frames = next(r for r in rows if r["claim"] == "dark-secrets.a-head-attends-along-frames")
    assert float(frames["low"]) <= float(frames["value"]) <= float(frames["high"])
    assert frames["result"]
    assert Store(str(home / "results")).has(frames["result"])
    # What is proposed can be pasted; it had been "show RESULT".
    claim, result, page = Done("bertology verify", said).proposed
    assert "ublished" in run(claim).said
    assert "Result:" in run(result).said
    assert page == f"bertology report {home / 'tiny'} --store {home / 'results'}"


def test_a_step_that_failed_is_no_success(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Session.run

    def fail(session: Session, name: str, study: Any, of: Any, corpus: Any, **named: Any) -> Any:
        if corpus.name == "grammar-entailment":
            raise JobError("1 of 1 parts failed: out of memory")
        return whole(session, name, study, of, corpus, **named)

    monkeypatch.setattr(Session, "run", fail)
    tasks = ("--tasks", "grammar-paraphrase,grammar-entailment", *FEW[2:])
    claims = ("--claims", "dark-secrets.last-two-layers-change-most")
    code, said = call(home / "tiny", *tasks, "--to", tmp_path, *claims)
    assert code == 1, said
    assert "Could not be judged" not in said  # the other task judged it
    assert "Failed: attention-change@grammar-entailment (1 of 1 parts failed" in said


def test_a_classifier_is_not_taught_again(home: Path) -> None:
    claims = ("--claims", "dark-secrets.last-two-layers-change-most")
    code, said = call(home / "tiny", *FEW, "--to", home, *claims)
    assert code == 0, said
    assert "1 claim\n" in said
    assert "1 claims" not in said
    (tuned,) = home.glob("models/*/tiny-tuned")
    code, said = call(tuned, *FEW[2:], "--to", home, *claims)
    assert code == 0, said
    assert "given    finetune" in said
    assert "cached   attention-change" in said  # the very result that teaching it here gives
    assert f"fine-tuned on grammar-paraphrase from {home / 'tiny'}" in said
    code, said = call(tuned, "--tasks", "grammar-entailment", "--to", home, "--dry-run")
    assert code == 2, said
    assert "be grammar-paraphrase" in said


def test_a_classifier_whose_origin_is_gone_is_an_encoder(home: Path, tmp_path: Path) -> None:
    (tuned,) = home.glob("models/*/tiny-tuned")
    record = json.loads((tuned / "bertology.json").read_text())
    for file in tuned.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    record["base"]["fingerprint"] = "other"
    (tmp_path / "bertology.json").write_text(json.dumps(record))
    code, said = call(tmp_path, *FEW, "--claims", "some-heads", "--dry-run")
    assert code == 0, said
    assert "the model before fine-tuning is not here" in said
    assert "finetune" in said


def test_the_plan_has_no_more_than_the_claims_need(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = call(home / "tiny", "--dry-run")
    assert code == 0, said
    assert "Left out: 12 claims of pretraining-objectives" in said
    assert "fine-tuning-starts" in said
    code, said = call(
        home / "tiny", "--dry-run", "--claims", "primer-training.sentence-order-beats-nsp"
    )
    assert code == 0, said
    assert "Left out" not in said
    assert "('mlm-nsp', 'sop')" in said
    code, said = call(home / "tiny", "--dry-run", "--claims", "numersense")
    assert code == 0, said
    assert "No step for claims of number-words: grammar has no answer, candidates" in said
    assert "what the claims need: nothing that can be run here." in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--claims", "dark-secrets.some-heads-hurts"), "Did you mean 'dark-secrets.some-heads"),
        (("--claims", "nobody says it"), "Unknown claim 'nobody says it'"),
        (("--tasks", "mrpx"), "Did you mean 'mrpc'?"),
        (("--limit", "1"), "--limit"),
        (("--csv", "no/such/folder/table.csv"), "cannot be written"),
    ],
)
def test_bad_input_is_refused_before_any_work(
    words: tuple[str, ...], message: str, home: Path, tmp_path: Path
) -> None:
    code, said = call(home / "tiny", *words, "--to", tmp_path / "out")
    assert code == 2, said
    assert message in said
    assert not (tmp_path / "out").exists()


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    code, said = call("no/such/folder", "--to", tmp_path)
    assert code == 2, said
    assert "no/such/folder" in said
