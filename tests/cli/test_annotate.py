"""`bertology annotate`: agreement on the terminal, refusals before any work, and the page."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient
from typer.testing import CliRunner

import tiny
from bertology.cli.main import app
from bertology.data.map_labels import LabelFile, MapLabel, MapRecipe, read_labels
from bertology.server import serving


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def bertology(*arguments: Any, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(a) for a in arguments], prog_name="bertology")
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    return done.output


def test_help_has_examples() -> None:
    shown = bertology("annotate", "--help")
    assert "Examples:" in shown
    assert "--agreement" in shown


def test_agreement_is_shown(tmp_path: Path) -> None:
    file = LabelFile(tmp_path / "labels.jsonl")
    for head, label in enumerate(["vertical", "block"] * 3):
        recipe = MapRecipe("m", "c", "s", "0", "text", None, 0, head)
        first = MapLabel(recipe, label, "ann", 1)
        file.append(first)
        if head == 0:
            shown = bertology("annotate", "--agreement", file.path)
            assert "that needs two annotators" in shown
        file.append(replace(first, label="block" if head == 0 else label, turn=2))
    shown = bertology("annotate", "--agreement", file.path)
    assert "ann, pass 1 (rows) and ann, pass 2 (columns)" in shown
    assert "κ = 0.667 [" in shown
    assert "83% of 6 maps" in shown
    assert "Krippendorff" not in shown  # one person, twice
    for annotator in ("bob", "cid"):
        file.append(replace(first, annotator=annotator))
    assert "Krippendorff's α = not defined, 1 maps" in bertology(
        "annotate", "--agreement", file.path
    )


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text("{}\n")
    assert "line 1" in bertology("annotate", "--agreement", path, code=2)
    assert "There is no file" in bertology("annotate", "--agreement", tmp_path / "x", code=2)
    path.write_text("")
    assert "has no labels" in bertology("annotate", "--agreement", path, code=2)


def test_a_port_that_is_taken_is_told_before_a_model_is_loaded(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        shown = bertology("annotate", tmp_path / "no-model", "--port", port, code=2)
    assert "--port 0" in shown


def test_without_the_libraries_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert "pip install 'bertology[explorer]'" in bertology("annotate", code=2)


def test_maps_of_the_package_need_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    def serve(app: FastAPI, claimed: socket.socket, **_: Any) -> None:
        with TestClient(app, base_url=serving.address_of(claimed)) as client:
            shown.append(client.get("/annotate/api/state").json())
            shown.append(client.get(f"/annotate/api/maps/{shown[0]['current']}").json())

    monkeypatch.setattr(serving, "serve", serve)
    monkeypatch.setattr("bertology.cli.annotate._load_encoder", None)
    said = bertology(
        "annotate", "--bundled", "--count", 7, "--to", tmp_path / "labels.jsonl", "--port", 0
    )
    assert "0 of 7 maps are labelled" in said
    state, one = shown
    assert state["total"] == 7
    assert one["tokens"][:3] == ["1", "2", "3"]
    assert one["peak"] > 0
    refused = bertology("annotate", "some-model", "--bundled", "--port", 0, code=2)
    assert "without a model" in refused


def test_the_browser_is_opened_where_the_page_is(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, seen = threading.Event(), []

    def show(address: str) -> bool:
        seen.append(address)
        opened.set()
        return True

    def run(*_: Any, **__: Any) -> None:
        assert opened.wait(30)
        raise KeyboardInterrupt  # as uvicorn does when it has shut down

    monkeypatch.setattr(serving.webbrowser, "open", show)
    monkeypatch.setattr(uvicorn.Server, "run", run)
    claimed = serving.claim_port(0)
    address = serving.address_of(claimed)
    serving.serve(FastAPI(), claimed)
    assert seen == [address]


@pytest.mark.slow  # a process of its own; `explore` serves its page in the same way
def test_the_page_is_served_until_ctrl_c(tmp_path: Path) -> None:
    model = tmp_path / "model"
    tiny.model("bert").save_pretrained(model)
    tiny.tokenizer("the a of".split()).save_pretrained(model)
    labels = tmp_path / "labels.jsonl"
    corpora = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for corpus in corpora:
        corpus.write_text("the a\nof the a\nthe\n")
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "bertology", "annotate", str(model), "--to", str(labels)),
            *(f"--task={corpus}" for corpus in corpora),
            *("--annotator", "ann"),
            *("--count", "5", "--port", "0", "--no-browser"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root / "src"), "HF_HUB_OFFLINE": "1"},
    ) as process:
        assert process.stdout is not None
        assert "0 of 5 maps" in process.stdout.readline()
        address = process.stdout.readline().split()[1]
        assert address.startswith("http://127.0.0.1:")
        body = json.dumps({"number": 0, "label": "block"}).encode()
        asked = urllib.request.Request(
            f"{address}annotate/api/label", data=body, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked) as answer:
            assert json.load(answer)["labelled"] == 1
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "1 of 5 maps" in out
    assert not err
    (label,) = read_labels(labels)
    assert (label.recipe.model, label.annotator, label.label) == (str(model), "ann", "block")
    assert label.recipe.corpus in ("one", "two")
