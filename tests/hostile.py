"""Hostile input, made by a seed: data files, models, recipes and stored results, each spoilt once.

`random_case` spoils a good file at a random place and gives the arguments of one command; the
cases that a person thought of are in `hostile_cases`.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer

import planted
from bertology.cli.main import app
from bertology.cli.pretrain import EXAMPLE

# Values that no field expects.
VALUES: list[Any] = [
    None, True, -1, 0, 10**18, 10**400, 1e308, float("nan"), float("inf"), "", " ", "\x00",
    "\ud800", "x" * 5000, "~nouser/x", "/dev/zero", "..", [], {}, [[]], [1, 2], {"a": 1}, [None],
    "é\u2028",
]  # fmt: skip
TREE = """\
# sent_id = 1
# text = The cat sleeps
1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_
2\tcat\tcat\tNOUN\t_\tNumber=Sing\t3\tnsubj\t_\t_
3\tsleeps\tsleep\tVERB\t_\t_\t0\troot\t_\t_

"""
ROW = {
    "id": "a", "text": "the good cat", "label": 1, "words": ["the", "good", "cat"],
    "pos": ["DET", "ADJ", "NOUN"], "heads": [2, 2, -1], "relations": ["det", "amod", "root"],
    "links": [[0, 2, "own"]], "lemmas": ["the", "good", "cat"], "subject": 2, "group": "g",
    "coreference": [[[0, 3]]], "sentences": [0],
}  # fmt: skip
_QUESTION = {"id": "q", "question": "up?", "answers": [{"text": "up", "answer_start": 0}]}
SQUAD = {"data": [{"title": "t", "paragraphs": [{"context": "up down", "qas": [_QUESTION]}]}]}
CONLL = "#begin document (a); part 0\n0\tThe\t(7\n1\tcat\t7)\n2\tsees\t_\n3\tit\t(7)\n"
_COLUMNS = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL"
GAP = f"{_COLUMNS}\n1\tAnn saw Bea as she fell\tshe\t15\tAnn\t0\tTRUE\tBea\t8\tFALSE\tu\n"
WINOBIAS = "1 [The cook] saw the guard because [he] was late.\n"
SCHEMA = (
    "<collection><schema><text><txt1>The cup broke the lid as</txt1><pron>it</pron><txt2>fell"
    "</txt2></text><answers><answer>The cup</answer><answer>the lid</answer></answers>"
    "<correctAnswer>A</correctAnswer></schema></collection>"
)
_SPANS = {"span1_index": 0, "span1_text": "Ann", "span2_index": 2, "span2_text": "she"}
WSC = {"text": "Ann says she fell", "target": _SPANS, "label": True}
ENTITIES = (
    TREE.replace("# sent_id", "# newdoc id = a\n# sent_id")
    .replace("det\t_\t_", "det\t_\tEntity=(e1-cat")
    .replace("nsubj\t_\t_", "nsubj\t_\tEntity=e1)")
)
PHRASES = "( (S (NP-SBJ (DT the) (NN cat)) (VP (VBZ sits) (NP (-NONE- *))) (. .)) )\n"
# Files of coreference and phrases by their readers: how they are called, and a good one.
MENTIONS: dict[str, tuple[str, str]] = {
    "conll": ("a.conll", CONLL), "corefud": ("a.conllu", ENTITIES), "gap": ("a.tsv", GAP),
    "brackets": ("a.mrg", PHRASES), "winobias": ("a.txt.dev", WINOBIAS), "wsc": ("a.xml", SCHEMA),
}  # fmt: skip
LAMA = {"uuid": "1", "obj_label": "up", "sub_label": "the", "masked_sentences": ["a [MASK]"]}
ENTRY = """\
name: own
title: A set of our own
source: https://example.org
licence: CC0
reader: csv
fields: [text, label]
splits: {validation: data.csv}
get: It is here.
columns: {text: text}
task: {kind: classification, labels: [bad, good]}
options: {header: true}
"""


@dataclass(frozen=True)
class Answer:
    """What a command did."""

    code: int
    shown: str
    seconds: float


class TooSlowError(BaseException):
    """Not an Exception: nothing in the package may catch it."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@cache
def _command() -> Any:
    """The command tree, made once: typer's own runner makes it for every call."""
    return typer.main.get_command(app)


def call(arguments: list[str], *, seconds: float) -> Answer:
    """Run a command in this process; a code of 124 means that it was stopped by the clock."""
    began = time.monotonic()
    # As a terminal has them: standard output is strict, standard error is not.
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    code = 0
    try:
        with _at_most(seconds), redirect_stdout(out), redirect_stderr(err):
            _command().main(args=arguments, prog_name="bertology")
    except TooSlowError:
        code = 124
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        code = 1
        err.write(traceback.format_exc())
    shown = ""
    for stream in (out, err):
        stream.flush()
        shown += stream.buffer.getvalue().decode()  # type: ignore[attr-defined]
    return Answer(code, shown, time.monotonic() - began)


def wrong_with(answer: Answer, *, seconds: float) -> str:
    """What is wrong with an answer; empty where it is one of ours."""
    if answer.seconds > seconds:
        return f"{answer.seconds:.0f} s"
    if answer.code not in (0, 2):
        return f"exit code {answer.code}: {answer.shown[-400:]}"
    if answer.code == 2 and not answer.shown.strip():
        return "refused without a word"
    shown = answer.shown
    for words in ("Traceback", "This is a bug", "NoneType", "object is not", "object has no attr"):
        if words in shown:
            return f"says {words!r}: {shown[-400:]}"
    return ""


class World:
    """A good model, good data, a good recipe and a store with one result."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.model, self.store = folder, folder / "model", folder / "store"
        self._count = 0
        planted.model().save_pretrained(self.model)
        planted.tokenizer().save_pretrained(self.model)
        rows = [f"{e.text},{e.label}" for e in planted.corpus(8)]
        self.csv = "\n".join(["text,label", *rows]) + "\n"
        good = self.study("outlier-dimensions", self.file("data.csv", self.csv))
        done = call(good, seconds=120)
        assert done.code == 0, done.shown
        (self.result,) = self.store.glob("outlier-dimensions/*")

    def place(self, name: str) -> Path:
        """A path in a folder of its own."""
        self._count += 1
        where = self.folder / str(self._count)
        where.mkdir()
        return where / name

    def file(self, name: str, content: str | bytes | object) -> Path:
        """A file of one's own; what is neither text nor bytes is written as JSON."""
        path = self.place(name)
        if not isinstance(content, str | bytes):
            content = json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def read(self, data: str | Path, *, model: str | Path | None = None) -> list[str]:
        """The arguments of a run that reads the texts of a corpus."""
        return self.study("attention-maps", data, model=model)

    def study(self, name: str, data: str | Path, *, model: str | Path | None = None) -> list[str]:
        """The arguments of a run of a study."""
        of = ["--model", str(model or self.model), "--store", str(self.store)]
        more = ["--relation", "links", "--no-every"] if name == "relation-heads" else []
        return ["run", name, "--corpus", str(data), *of, *more]

    def altered(self, **files: bytes | str | dict[str, Any] | None) -> Path:
        """A copy of the model with other files; `__` in a name stands for the dot."""
        copy = self.place("model")
        shutil.copytree(self.model, copy)
        for name, content in files.items():
            path = copy / name.replace("__", ".")
            if content is None:
                path.unlink()
            elif isinstance(content, dict):
                path.write_text(json.dumps({**json.loads(path.read_text()), **content}))
            else:
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return copy

    def with_model(self, model: str | Path, *, study: str = "attention-maps") -> list[str]:
        """A run of an altered model over good data."""
        return self.study(study, self.folder / "1" / "data.csv", model=model)

    def recipe(self, text: str | bytes) -> list[str]:
        """The arguments that show what a recipe would do."""
        return ["pretrain", "--config", str(self.file("recipe.yaml", text)), "--dry-run"]

    def follow(self, text: str) -> list[str]:
        """The arguments that follow a recipe."""
        path = self.file("recipe.yaml", text)
        return ["pretrain", "--config", str(path), "--to", str(path.parent / "to")]

    def stored(self, change: Callable[[dict[str, Any], Path], Any], *command: str) -> list[str]:
        """`show`, or another command, of a copy of the store whose result was changed."""
        store = self.place("store")
        folder = store / self.result.parent.name / self.result.name
        shutil.copytree(self.result, folder)
        record = json.loads((folder / "result.json").read_text())
        changed = change(record, folder)
        if not isinstance(changed, bytes):
            changed = json.dumps(record if changed is None else changed).encode()
        (folder / "result.json").write_bytes(changed)
        words = command or ("show", folder.name)
        return [*words, "--store", str(store)]


def pipe(path: Path) -> Path:
    """A named pipe: who opens it waits for ever."""
    os.mkfifo(path)
    return path


# Random cases ---------------------------------------------------------------------------------


def _places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from _places(inner, (*path, key))


def spoilt_json(value: Any, rng: random.Random) -> Any:
    """A copy in which one place holds another value, or nothing."""
    made = json.loads(json.dumps(value))
    *path, last = rng.choice(list(_places(made)))
    inside = made
    for key in path:
        inside = inside[key]
    if rng.random() < 0.25:
        del inside[last]
    else:
        inside[last] = rng.choice(VALUES)
    return made


def spoilt_bytes(data: bytes, rng: random.Random) -> bytes:
    """The same bytes cut, with some changed, doubled or put in."""
    if not data:
        return b"\x00"
    at = rng.randrange(len(data))
    to = min(len(data), at + rng.randrange(1, 40))
    kind = rng.randrange(6)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes(rng.randrange(256) for _ in range(to - at)) + data[to:]
    if kind == 2:
        return data[:at] + data[to:]
    if kind == 3:
        return data[:to] + data[at:to] * 3 + data[to:]
    if kind == 4:
        return (
            data[:at] + rng.choice([b"\x00", b"\xff", b"[" * 5000, b"{", b'"', b"\t"]) + data[at:]
        )
    numbers = [i for i, byte in enumerate(data) if byte in b"0123456789"]
    if not numbers:
        return data[::-1]
    at = rng.choice(numbers)
    return data[:at] + rng.choice([b"-1", b"1e999", b"9" * 30, b"x"]) + data[at + 1 :]


def _random_data(w: World, rng: random.Random) -> list[str]:
    study = rng.choice(["attention-maps", "relation-heads", "minimal-pairs", "syntax-heads"])
    kinds = ["csv", "jsonl", "json", "conllu", "yaml", "squad", "lama", "tsv", "txt", "super"]
    kind = rng.choice([*kinds, *MENTIONS])
    if kind in ("jsonl", "json"):
        rows: list[Any] = [{**ROW, "id": str(i), "contrast": "up"} for i in range(3)]
        rows[rng.randrange(3)] = spoilt_json(rows[0], rng)
        text = json.dumps(rows) if kind == "json" else "\n".join(map(json.dumps, rows))
        return w.study(study, w.file(f"a.{kind}", text))
    if kind in MENTIONS:
        name, good = MENTIONS[kind]
        path = w.file(name, spoilt_bytes(good.encode(), rng))
        return [*w.study("coreference-heads", path), "--columns", f"reader={kind}"]
    if kind == "super":
        path = w.file("a.jsonl", json.dumps(spoilt_json(WSC, rng)))
        return [*w.read(path), "--columns", "reader=wsc"]
    if kind in ("squad", "lama"):
        made: Any = spoilt_json(SQUAD if kind == "squad" else LAMA, rng)
        return [*w.read(w.file("a.json", made)), "--columns", f"reader={kind}"]
    good = {"conllu": TREE * 2, "yaml": ENTRY}.get(kind, w.csv)
    path = w.file(f"a.{kind}", spoilt_bytes(good.encode(), rng))
    (path.parent / "data.csv").write_text(w.csv)
    return w.study(study, path)


_MODEL_FILES = (
    "config.json", "config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors",
)  # fmt: skip


def _random_model(w: World, rng: random.Random) -> list[str]:
    copy = w.altered()
    path = copy / rng.choice(_MODEL_FILES)
    if path.suffix == ".json" and rng.random() < 0.7:
        path.write_text(json.dumps(spoilt_json(json.loads(path.read_text()), rng)))
    else:
        path.write_bytes(spoilt_bytes(path.read_bytes(), rng))
    if rng.random() < 0.2:
        return ["models", str(copy)]
    return w.with_model(copy, study=rng.choice(["outlier-dimensions", "attention-maps"]))


def _random_recipe(w: World, rng: random.Random) -> list[str]:
    return w.recipe(spoilt_bytes(EXAMPLE.encode(), rng))


def _random_result(w: World, rng: random.Random) -> list[str]:
    def change(record: dict[str, Any], folder: Path) -> Any:
        if rng.random() < 0.6:
            return spoilt_json(record, rng)
        path = rng.choice(sorted(p for p in folder.iterdir() if p.is_file()))
        data = spoilt_bytes(path.read_bytes(), rng)
        path.write_bytes(data)
        return data if path.name == "result.json" else None

    return w.stored(change, *rng.choice([(), ("list",)]))


KINDS = {
    "data": _random_data,
    "model": _random_model,
    "recipe": _random_recipe,
    "result": _random_result,
}


def random_case(w: World, kind: str, seed: int) -> list[str]:
    """The arguments of a command on a good file that was spoilt at random."""
    return KINDS[kind](w, random.Random(f"{kind} {seed}"))
