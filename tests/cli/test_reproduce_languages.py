"""`bertology reproduce dark-secrets --languages …`: parallel texts in, one page out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tiny
from bertology.cli.main import app
from bertology.data.loading import load_corpus
from bertology.results.store import Store

NOUNS, VERBS = ("dog", "cat", "man", "woman"), ("sees", "likes", "finds")
WORDS = {"subject": "nsubj", "object": "obj", "adverb": "advmod"}
FEW = 16


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def call(*arguments: Any) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["reproduce", *map(str, arguments)], prog_name="bertology")
    assert "Traceback" not in done.output
    return done.exit_code, done.output


def treebank(code: str) -> str:
    """Sentences of the same items: the verb is in the middle, or stands last in ja and hi."""
    lines = []
    for item in range(FEW):
        parts = [("subject", NOUNS[item % 4]), ("object", NOUNS[(item + 1) % 4])]
        parts += [("adverb", "often")] * (item % 3)
        verb = ("verb", VERBS[item % 3])
        at = len(parts) if code in ("ja", "hi") else 1
        parts.insert(at, verb)
        lines += [f"# sent_id = s{item}", f"# text = {' '.join(w for _, w in parts)}"]
        for n, (role, word) in enumerate(parts, start=1):
            shown = "𒀀𒀁" if code == "hi" else word
            head, relation = (0, "root") if role == "verb" else (at + 1, WORDS[role])
            pos = {"verb": "VERB", "adverb": "ADV"}.get(role, "NOUN")
            row = (n, shown, shown, pos, "_", "_", head, relation, "_", "_")
            lines.append("\t".join(map(str, row)))
        lines.append("")
    text = "\n".join(lines) + "\n"
    return (
        text if code != "hi" else "\n".join(x for x in lines if not x.startswith("# text")) + "\n"
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Parallel treebanks of a few sentences."""
    for code in ("ar", "de", "en", "hi", "ja", "ru"):
        folder = tmp_path / "data" / "ud" / f"UD_{code}-PUD"
        folder.mkdir(parents=True)
        (folder / f"{code}_pud-ud-test.conllu").write_text(treebank(code), encoding="utf-8")
    return tmp_path / "data"


def test_languages_are_set_side_by_side(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertology.reproduce.render.page._drawn", lambda result, name: b"<svg/>")
    monkeypatch.setattr("bertology.reproduce.render.page._rendered", lambda drawn: b"<svg/>")
    monkeypatch.setattr(Store, "_draw", lambda *given: None)
    model = tiny.save_reader(tmp_path / "model" / "tiny")
    to = tmp_path / "out"
    given = ("--model", model, "--root", root, "--to", to)
    code, said = call("dark-secrets", "--languages", "ar,de,en,ja,ru,hi,fr", *given)
    assert code == 0, said
    assert "syntax-heads        pud:ja" in said
    assert "Unknown language of pud 'fr'" in said, "what the treebanks lack is left out"
    record = json.loads((to / "summary.json").read_text(encoding="utf-8"))
    assert record["reproduction"] == "dark-secrets-languages"
    assert record["command"].startswith("bertology reproduce dark-secrets-languages --model tiny")
    assert "--languages ar,de,en,ja,ru,hi,fr" in record["command"]
    assert {c["id"].partition(".")[0] for c in record["claims"]} == {"dark-secrets-languages"}
    store = Store(str(to / "results"))
    (about,) = store.list("languages")
    result = store.load(about)
    assert list(result.tables["order"]["name"]) == [
        "Japanese",
        "Russian",
        "Arabic",
        "English",
        "German",
    ]
    assert list(result.tables["left_out"]["name"]) == ["Hindi"]
    offsets = result.tables["relations"].set_index(["relation", "language"])["offset"]
    assert offsets["nsubj", "ja"] > 0
    assert offsets["obj", "en"] == -1
    assert offsets["obj", "ja"] == 1
    corpus = load_corpus("pud", root=root, languages="ja")
    assert len(corpus) == FEW
    assert "cached" in call("dark-secrets-languages", "--languages", "ja,de", *given)[1]


def test_all_languages_are_those_of_the_plan_and_unknown_ones_are_refused(
    root: Path, tmp_path: Path
) -> None:
    model = tiny.save_reader(tmp_path / "model" / "tiny")
    given = ("--model", model, "--root", root, "--dry-run")
    code, said = call("dark-secrets", "--languages", "all", *given)
    assert code == 0
    assert "Korean" in said
    assert "fine-tun" not in said
    code, said = call("dark-secrets", "--languages", "klingon", *given)
    assert code == 2
    assert "language 'klingon'" in said
    code, said = call("nuggets", "--languages", "de", *given)
    assert code == 2
    assert "dark-secrets" in said
    code, said = call("dark-secrets", "--languages", "de,de", *given)
    assert code == 2
    assert "name each language once" in said
