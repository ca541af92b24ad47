"""What goes wrong for users, through the command line: a clear message, exit 2, nothing lost."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import planted
import tiny
from bertology.cli.main import app
from bertology.results.files import LocalFiles


class World:
    """A good model, good data and a store with one finished result, to spoil one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, folder / "store"
        self.model, self.data = folder / "model", folder / "data.csv"
        planted.model().save_pretrained(self.model)
        planted.tokenizer().save_pretrained(self.model)
        rows = [f"{e.text},{e.label}" for e in planted.corpus(24)]
        self.data.write_text("\n".join(["text,label", *rows]) + "\n")

    def copy(self, name: str) -> Path:
        """A copy of the model to spoil."""
        where = self.folder / name
        if not where.exists():
            shutil.copytree(self.model, where)
        return where

    def file(self, name: str, text: str | bytes) -> Path:
        """A data file of one's own."""
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def run(self, *more: Any, **changed: Any) -> list[str]:
        """The arguments of a run that is right but for what is changed."""
        given = {"model": self.model, "task": self.data, "store": self.store, **changed}
        pairs = [(f"--{k.replace('_', '-')}", str(v)) for k, v in given.items() if v is not None]
        flat = [piece for pair in pairs for piece in pair]
        return ["run", "head-ablation", *flat, *[str(m) for m in more]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(tmp_path_factory.mktemp("world"))
    assert call(made.run())[0] == 0
    return made


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def call(arguments: list[str]) -> tuple[int, str]:
    done = CliRunner().invoke(app, arguments, prog_name="bertology")
    return done.exit_code, " ".join(done.output.replace("│", " ").split())


def unsafe(world: World) -> Path:
    copy = world.copy("pickle-only")
    (copy / "model.safetensors").unlink(missing_ok=True)
    torch.save({}, copy / "pytorch_model.bin")
    return copy


def cut_short(world: World) -> Path:
    copy = world.copy("cut-short")
    data = (world.model / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(data[:2000])
    return copy


def other_family(world: World) -> Path:
    copy = world.copy("other-family")
    (copy / "config.json").write_text(json.dumps({"model_type": "gpt_neox"}))
    return copy


def without_tokenizer(world: World) -> Path:
    copy = world.copy("without-tokenizer")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (copy / name).unlink(missing_ok=True)
    return copy


def without_head(world: World) -> Path:
    copy = world.folder / "without-head"
    tiny.model("bert").save_pretrained(copy)
    planted.tokenizer().save_pretrained(copy)
    return copy


def three_labels(world: World) -> Path:
    return world.file("three.csv", "text,label\nup,0\ndown,1\nup up,2\n")


def old_schema(world: World) -> list[str]:
    store = world.folder / "old-store"
    if not store.exists():
        shutil.copytree(world.store, store)
    (record,) = store.glob("head-ablation/*/result.json")
    written = json.loads(record.read_text())
    record.write_text(json.dumps({**written, "schema_version": 999}))
    return ["show", record.parent.name, "--store", str(store)]


def damaged_result(world: World) -> list[str]:
    store = world.folder / "damaged-store"
    if not store.exists():
        shutil.copytree(world.store, store)
    (table,) = store.glob("head-ablation/*/*heads*.parquet")
    table.write_bytes(table.read_bytes()[:100])
    return ["show", table.parent.name, "--store", str(store)]


CASES: dict[str, tuple[Callable[[World], list[str]], str]] = {
    "model without its option": (lambda w: w.run("tiny"), "named by --model tiny"),
    "unknown model": (lambda w: w.run(model="bert-bas-uncased"), "Unknown model"),
    "missing model folder": (lambda w: w.run(model="./no/such/model"), "no model folder"),
    "model is a file": (lambda w: w.run(model=w.data), "a model is a folder"),
    "pickle-only checkpoint": (lambda w: w.run(model=unsafe(w)), "--allow-pickle"),
    "corrupt checkpoint": (lambda w: w.run(model=cut_short(w)), "corrupt"),
    "unknown family": (lambda w: w.run(model=other_family(w)), "Unknown model family 'gpt_neox'"),
    "no tokenizer": (lambda w: w.run(model=without_tokenizer(w)), "without a tokenizer"),
    "no trained head": (lambda w: w.run(model=without_head(w)), "no trained classification head"),
    "no GPU": (lambda w: w.run("--force", device="cuda:7"), "cuda"),
    "bad device": (lambda w: w.run("--force", device="toaster"), "auto, cpu, cuda"),
    "unknown study": (lambda w: ["run", "head-ablatoin"], "Did you mean 'head-ablation'"),
    "unknown task": (lambda w: w.run(task="mprc"), "mrpc"),
    "task not downloaded": (lambda w: w.run(task="rte", root=w.folder), "rte"),
    "missing data file": (lambda w: w.run(task=w.folder / "nothing.csv"), "nothing.csv"),
    "no task at all": (lambda w: w.run(task=None), "needs a task"),
    "missing column": (
        lambda w: w.run(task=w.file("columns.csv", "sentence,gold\nup,1\n")),
        "--columns label=gold",
    ),
    "bad column mapping": (lambda w: w.run(columns="label"), "pairs such as label=gold"),
    "unknown column": (lambda w: w.run(columns="label=gold"), "gold"),
    "empty file": (lambda w: w.run(task=w.file("empty.csv", "")), "empty"),
    "header only": (lambda w: w.run(task=w.file("header.csv", "text,label\n")), "no rows"),
    "NaN label": (lambda w: w.run(task=w.file("nan.csv", "text,label\nup,nan\nup,1\n")), "label"),
    "missing label": (lambda w: w.run(task=w.file("gap.csv", "text,label\nup,\nup,1\n")), "label"),
    "not UTF-8": (lambda w: w.run(task=w.file("latin.csv", b"text,label\n\xff\xfe,1\n")), "UTF-8"),
    "broken JSON": (
        lambda w: w.run(task=w.file("broken.jsonl", '{"text": "up", "label": 1}\n{"text"\n')),
        "line 2",
    ),
    "labels do not fit": (lambda w: w.run(task=three_labels(w)), "labels"),
    "missing split": (lambda w: w.run(task="grammar-paraphrase", split="holdout"), "holdout"),
    "no examples asked for": (lambda w: w.run(limit=0), "limit"),
    "layer out of range": (lambda w: w.run("--sets", "7.0"), "name heads of a model with 2 layers"),
    "nonsense set of heads": (lambda w: w.run("--sets", "first"), "be heads such as 3.5+7.1"),
    "unknown metric": (lambda w: w.run("--metric", "acuracy"), "Did you mean 'accuracy'?"),
    "unknown method": (lambda w: w.run("--method", "softly"), "--method"),
    "too few resamples": (lambda w: w.run("--resamples", 3), "100"),
    "unknown engine": (lambda w: w.run(engine="steam"), "steam"),
    "unknown result": (lambda w: ["show", "abcdef", "--store", str(w.store)], "abcdef"),
    "unknown format": (lambda w: ["export", "x", "--format", "docx", "--to", "out"], "docx"),
    "unknown claim": (lambda w: ["claims", "show", "dark-secrets.some-head-help"], "some-heads"),
    "store is a file": (lambda w: w.run("--limit", 20, store=w.data), "data.csv"),
    "unknown store protocol": (lambda w: w.run("--limit", 20, store="gopher://x/y"), "gopher"),
    "wrong schema version": (old_schema, "999"),
    "damaged result": (damaged_result, "damaged"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_answered_clearly(world: World, case: str) -> None:
    make, text = CASES[case]
    before = sorted(world.store.rglob("*"))
    code, shown = call(make(world))
    assert code == 2, shown
    assert text in shown
    assert "Traceback" not in shown
    assert sorted(world.store.rglob("*")) == before, "nothing may be lost or half-written"


def test_a_long_text_is_cut_not_refused(world: World) -> None:
    rows = "\n".join([f"{'up ' * 90}good,1", "bad up,0", "good up,1", "bad down,0"])
    code, shown = call(world.run(task=world.file("long.csv", f"text,label\n{rows}\n")))
    assert code == 0, shown


@pytest.mark.parametrize(
    ("number", "text"),
    [(errno.ENOSPC, "full"), (errno.EACCES, "permission")],
)
def test_what_the_disk_refuses(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int, text: str
) -> None:
    """The run stops with a message; parts that were finished before are kept."""
    written: list[str] = []
    honest = LocalFiles._temporary_file

    def refuse(self: LocalFiles, path: str, data: bytes) -> Any:
        if len(written) >= 2:
            raise OSError(number, "refused", path)
        written.append(path)
        return honest(self, path, data)

    monkeypatch.setattr(LocalFiles, "_temporary_file", refuse)
    rows = "\n".join(f"{e.text},{e.label}" for e in planted.corpus(200, seed=5))
    data = world.file("more.csv", f"text,label\n{rows}\n")
    store = world.folder / f"refusing-{number}"
    code, shown = call(world.run(task=data, store=store))
    assert code == 2, shown
    assert text in shown.lower()
    assert "Traceback" not in shown
    kept = [p for p in store.rglob("*.nc") if "examples" in p.name]
    assert kept, "the finished part is gone"
    monkeypatch.undo()
    monkeypatch.setenv("COLUMNS", "300")
    times = {p: p.stat().st_mtime_ns for p in kept}
    assert all(p.stat().st_mtime_ns == t for p, t in times.items())
    code, shown = call(world.run(task=data, store=store))
    assert code == 0, shown
