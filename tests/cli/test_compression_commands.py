"""The command that `compression-table` prints beside a row makes the row's weights, bit by bit."""

from __future__ import annotations

import csv
import json
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file
from typer.testing import CliRunner

import bertology as bt
import planted
from bertology.cli.main import app
from bertology.data.command_words import reading_words
from bertology.data.loading import data_root
from bertology.results.store import Store

FAST = ("--epochs", "1", "--batch-size", "16", "--learning-rate", "0.003", "--rounds", "3",
        "--threads", "1", "--device", "cpu")  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small models with a head for a task and without, and data in columns of other names."""
    folder = tmp_path_factory.mktemp("commands")
    torch.manual_seed(0)
    config = hf.BertConfig(
        vocab_size=5 + len(planted.WORDS), hidden_size=16, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=8, max_position_embeddings=40,
    )  # fmt: skip
    for name, kind in (("plain", hf.BertForMaskedLM), ("headed", hf.BertForSequenceClassification)):
        kind(config).save_pretrained(folder / name)
        planted.tokenizer().save_pretrained(folder / name)
    for name, seed in (("task", 1), ("other", 5)):
        (folder / name).mkdir()
        for at, (split, size) in enumerate((("train", 60), ("validation", 30), ("test", 40))):
            with (folder / name / f"{split}.csv").open("w", newline="") as file:
                rows = planted.corpus(size, seed=seed + at)
                told = [(e.text, planted.TASK.labels[int(e.get("label"))]) for e in rows]
                csv.writer(file).writerows([("words", "says"), *told])
    return folder


def done(*words: str) -> None:
    found = CliRunner().invoke(app, list(words), prog_name="bertology")
    assert found.exit_code == 0, found.output


def commands_of(*words: str, store: str) -> dict[str, str]:
    """A table is made, and what it prints beside its rows."""
    done("run", "compression-table", *words, *FAST, "--store", store)
    kept = Store(store)
    [about] = kept.list()
    found = kept.load(about).table("commands").set_index("row")["command"]
    return {str(row): str(command) for row, command in found.items()}


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def same(one: Path, other: Path) -> bool:
    a, b = weights(one), weights(other)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def of_study(store: Path, command: str, made: Path) -> Path:
    """The study's folder of the model that the command made: it has the same identity."""
    identity = json.loads((made / "bertology.json").read_text())["identity"]
    if "finetune" in command.split()[:2]:
        return store / "trained" / "models" / identity
    [last] = sorted((store / "trained" / "compressed" / identity).glob("*/model.safetensors"))[-1:]
    return last.parent


def options_of(command: str) -> dict[str, str]:
    """Each option with the word after it."""
    words = shlex.split(command)
    found = {a: b for a, b in pairwise([*words, ""]) if a.startswith("--")}
    columns = found.pop("--columns").split(",")
    return found | {"--columns": ",".join(sorted(columns))}


OF_DATA = {"--columns": "label=says,text=words", "--rate": "0.003", "--epochs": "1"}


@pytest.mark.parametrize(
    ("model", "asked", "told"),
    [
        ("plain", ("--limit", "25", "--train-limit", "50", "--seeds", "2"),
         {"--limit": "50", "--validation-limit": "25"}),
        pytest.param(
            "headed", ("--split", "test", "--train", "other", "--train-split", "validation"),
            {"--validation": "task", "--split": "test", "--train-split": "validation"},
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_the_command_beside_a_row_makes_its_weights(
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    asked: tuple[str, ...],
    told: dict[str, str],
) -> None:
    monkeypatch.chdir(place)
    store = tmp_path / "store"
    commands = commands_of(
        "--model", model, "--task", "task", "--columns", "text=words,label=says",
        "--methods", "magnitude:weights=0.5,soft_labels:layers=1+half", "--alone", "cut", *asked,
        store=str(store),
    )  # fmt: skip
    rows = ["teacher", "magnitude-weights-0-5", "soft-labels-layers-1-half"]
    for row in rows:
        assert (told | OF_DATA).items() <= options_of(commands[row]).items()
        assert ("--finetune" in commands[row]) == (model == "headed" and row != "teacher")
        words = shlex.split(commands[row])
        assert words[-2:] == ["--to", row]
        made = tmp_path / row
        done(*words[1:-1], str(made), "--device", "cpu")
        found = made / "seed-0" if row == "teacher" else made
        assert same(found, of_study(store, commands[row], found)), row
    command = commands[rows[1]].replace("--seed 0", "--seed 1")
    done(*shlex.split(command)[1:-1], str(tmp_path / "another"), "--device", "cpu")
    assert not same(tmp_path / "another", tmp_path / rows[1])


def test_one_run_measures_several_tasks_and_joins_them(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    asked = ("run", "compression-table", "--model", "plain", "--columns", "text=words,label=says",
             "--methods", "half", "--seeds", "1", *FAST, "--times", "none")  # fmt: skip
    store = tmp_path / "store"
    done(*asked, "--tasks", "task,other", "--store", str(store))
    found = sorted(f"{p.study} {p.corpus_name or p.over}" for p in Store(str(store)).list())
    assert found == [
        "compression-table other", "compression-table task", "compression-tasks all tasks",
    ]  # fmt: skip
    for words, said in (
        (("--tasks", "task,task"), "name each task once"),
        (("--tasks", "task,other", "--task", "task"), "be left out when --tasks is given"),
        (("--tasks", "task,nowhere"), "nowhere"),
    ):
        code = CliRunner().invoke(app, [*asked, *words, "--store", str(tmp_path / "no")])
        assert code.exit_code == 2
        assert said in " ".join(code.output.split())
        assert not (tmp_path / "no").exists(), "refused before any work"


def test_what_no_command_can_name_has_none(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    columns = {"text": "words", "label": "says"}
    corpus = bt.load_corpus("task", **columns)
    made_in_python = bt.load("plain", device="cpu")
    made_in_python.spec = None
    result = bt.run(
        "compression-table", made_in_python, task=corpus, store=Store("memory://commands"),
        methods=("half",), seeds=1, epochs=1, times=("none",),
    )  # fmt: skip
    assert set(result.table("commands")["command"]) == {""}


def test_what_is_usual_is_not_said() -> None:
    usual = {"name_or_path": "mrpc", "split": "validation", "root": str(data_root().resolve())}
    assert reading_words(usual) == ("mrpc", {})
    assert reading_words({**usual, "root": "/elsewhere"}) == ("mrpc", {"--root": "/elsewhere"})
    assert reading_words({}) == ("", {})
