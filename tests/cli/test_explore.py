"""`bertology explore`: refusals before any work, and the page until Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tiny
from bertology.cli.main import app
from bertology.data.map_labels import read_labels


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def bertology(*arguments: Any, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(a) for a in arguments], prog_name="bertology")
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    return done.output


def test_help_has_examples() -> None:
    shown = bertology("explore", "--help")
    assert "Examples:" in shown
    assert "--annotate" in shown


def test_a_port_that_is_taken_is_told_before_a_model_is_loaded(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "--port 0" in bertology("explore", tmp_path / "none", "--port", port, code=2)


def test_what_cannot_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = bertology("explore", tmp_path / "none", "--port", 0, code=2)
    assert "no model folder" in shown
    assert "--annotate" in bertology("explore", "--annotator", "ann", "--port", 0, code=2)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert "pip install 'bertology[explorer]'" in bertology("explore", code=2)


def post(address: str, body: Any) -> Any:
    asked = urllib.request.Request(
        address, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked) as answer:
        return json.load(answer)


def test_the_page_is_served_until_ctrl_c(tmp_path: Path) -> None:
    model, labels = tmp_path / "model", tmp_path / "labels.jsonl"
    tiny.model("bert", "mlm").save_pretrained(model)
    tiny.tokenizer("the a of".split()).save_pretrained(model)
    corpus = tmp_path / "one.txt"
    corpus.write_text("the a\nof the a\nthe\n")
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "bertology", "explore", str(model), "--port", "0"),
            *("--no-browser", "--annotate", str(labels), "--annotator", "ann", "--count", "5"),
            f"--task={corpus}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root / "src"), "HF_HUB_OFFLINE": "1"},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one: 3 examples\n"
        address = process.stdout.readline().split()[1]
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{address}api/model") as answer:
            about = json.load(answer)
        assert about["name"] == str(model)
        assert about["can"]["masked"]
        assert about["annotate"]
        told = post(f"{address}api/predict", {"view": {"text": "the a", "masked": [1]}, "top": 2})
        assert len(told["before"]["masked"][0]["predictions"]) == 2
        done = post(f"{address}annotate/api/label", {"number": 0, "label": "block"})
        assert done["labelled"] == 1
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert not err
    (label,) = read_labels(labels)
    assert (label.recipe.model, label.annotator, label.label) == (str(model), "ann", "block")
