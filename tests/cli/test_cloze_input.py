"""Files that cloze studies cannot use: one line that says what is wrong, one what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import planted_facts
from bertology.cli.main import app

ASKED = {"answer": ["paris"], "candidates": ["paris", "london"], "group": "home"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("facts")
    encoder = planted_facts.encoder(planted_facts.model())
    encoder.model.save_pretrained(made)
    encoder.tokenizer.save_pretrained(made)
    return made


def rows(text: str, **more: Any) -> list[dict[str, Any]]:
    return [{"text": text, **ASKED, **more}] * 3


@pytest.mark.parametrize(
    ("study", "given", "message", "hint"),
    [
        ("diagnostics", rows("hugo comes ."), "There is no blank in 'hugo", "Write {mask}"),
        ("diagnostics", rows("[MASK] from [MASK] ."), "has 2 blanks", "Write {mask} once"),
        ("facts", rows("hugo comes ."), "There is no blank in 'hugo", "Write {mask}"),
        ("facts", rows("hugo from [MASK] .", answer=["☃"]), "can be asked: 0", "Give more facts"),
        ("facts", rows("hugo from [MASK] .", answer=[]), "can be asked: 0", "Give more facts"),
        (
            "diagnostics",
            rows("hugo from [MASK] .", candidates=["paris", "☃☃"]),
            "not in the vocabulary",
            "Leave it out",
        ),
        ("diagnostics", rows("hugo [MASK]" + " from" * 600), "too long", "Shorten it"),
        (
            "diagnostics",
            rows("hugo from [MASK] .", candidates=["paris", "london " * 600]),
            "too long",
            "Shorten it",
        ),
        ("agreement", rows("hugo from [MASK] ."), "needs the fields contrast", "It has: answer"),
        (
            "agreement",
            rows("hugo comes .", contrast="hugo from the paris ."),
            "No pair can be compared",
            "Give more pairs",
        ),
        ("diagnostics", [], "is empty", "at least one example"),
    ],
)
def test_what_cannot_be_asked_is_told_in_words(
    folder: Path, tmp_path: Path, study: str, given: list[dict[str, Any]], message: str, hint: str
) -> None:
    data = tmp_path / "mine.jsonl"
    data.write_text("\n".join(map(json.dumps, given)), encoding="utf-8")
    words = ["run", study, "--model", str(folder), "--corpus", str(data), "--device", "cpu"]
    found = CliRunner().invoke(app, [*words, "--store", str(tmp_path / "store")])
    lines = [line for line in found.output.splitlines() if line.strip()]
    assert found.exit_code == 2, found.output
    error = next(at for at, line in enumerate(lines) if line.startswith("Error:"))
    assert message in " ".join(lines[error:])
    assert hint in " ".join(lines[error:])
    assert "Traceback" not in found.output
