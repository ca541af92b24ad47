"""Hostile input that a person thought of, by what is wrong with it."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from bertology.cli.pretrain import EXAMPLE
from hostile import ENTRY, LAMA, PHRASES, ROW, TREE, World, pipe

Case = Callable[[World], list[str]]

DEEP = 100_000  # brackets inside each other


def _jsonl(**changed: object) -> Case:
    rows = [ROW, {**ROW, "id": "b", **changed}, {**ROW, "id": "c"}]
    text = "\n".join(map(json.dumps, rows))
    return lambda w: w.study("relation-heads", w.file("own.jsonl", text))


def _field(name: str, value: object) -> Case:
    def change(record: dict[str, Any], folder: Path) -> None:
        record[name] = value

    return lambda w: w.stored(change)


def _made(name: str, value: object) -> Case:
    def change(record: dict[str, Any], folder: Path) -> None:
        record["provenance"][name] = value

    return lambda w: w.stored(change)


def _without_arrays(record: dict[str, Any], folder: Path) -> None:
    """Whole by its checksum, and yet without what the study needs."""
    from bertology.results.formats import arrays_from_bytes, arrays_to_bytes

    path = folder / record["arrays"]["file"]
    arrays = arrays_from_bytes(path.read_bytes())
    data = arrays_to_bytes(arrays.drop_vars(list(arrays.variables)))
    path.write_bytes(data)
    record["arrays"] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _other_table(record: dict[str, Any], folder: Path) -> None:
    path = folder / record["tables"][0]["file"]
    pd.DataFrame({"x": [1]}).to_parquet(path)
    data = path.read_bytes()
    record["tables"][0] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _as_pipe(record: dict[str, Any], folder: Path) -> None:
    path = folder / record["arrays"]["file"]
    path.unlink()
    pipe(path)


def _tokens(**ids: int) -> Case:
    """A tokenizer whose special tokens have other numbers."""

    def make(w: World) -> list[str]:
        written = json.loads((w.model / "tokenizer.json").read_text())
        for token in written["added_tokens"]:
            token["id"] = ids.get(token["content"].strip("[]"), token["id"])
        for name, number in ids.items():
            if f"[{name}]" in written["model"].get("vocab", {}):
                written["model"]["vocab"][f"[{name}]"] = number
            for special in (written.get("post_processor") or {}).get("special_tokens", {}).values():
                if special["id"] == f"[{name}]":
                    special["ids"] = [number]
        return w.with_model(w.altered(tokenizer__json=json.dumps(written)))

    return make


def _config(**changed: object) -> Case:
    return lambda w: w.with_model(w.altered(config__json=changed))


def _recorded(w: World, text: str) -> list[str]:
    """A model with another record beside it; a damaged one is no reason to refuse the model."""
    return w.with_model(w.altered(bertology__json=text), study="outlier-dimensions")


def _without_tokens(w: World) -> list[str]:
    return w.with_model(w.altered(tokenizer_config__json={"pad_token": None}))


def _piped_model(w: World) -> list[str]:
    copy = w.altered(tokenizer__json=None)
    pipe(copy / "tokenizer.json")
    return w.with_model(copy)


def _device_in_folder(w: World) -> list[str]:
    folder = w.place("data")
    folder.mkdir()
    pipe(folder / "dev.csv")
    return w.read(folder)


def _with_weight(w: World, value: float) -> Path:
    from safetensors.numpy import load_file, save_file

    copy = w.altered()
    weights = load_file(copy / "model.safetensors")
    name = next(name for name, array in weights.items() if array.ndim == 2)
    weights[name][0, 0] = value
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    return copy


def _with_more_pieces(w: World) -> Path:
    written = json.loads((w.model / "tokenizer.json").read_text())
    written["model"]["vocab"]["moreover"] = 10_000
    return w.altered(tokenizer__json=json.dumps(written))


_BIG_NUMBER = "9" * 5000
_LINE = "up down good " * 800_000  # 10 MB

NAMED: dict[str, Case] = {
    # Data files
    "json nested deep": lambda w: w.read(w.file("a.json", "[" * DEEP + "]" * DEEP)),
    "jsonl nested deep": lambda w: w.read(w.file("a.jsonl", "[" * DEEP + "]" * DEEP)),
    "json with a long number": lambda w: w.read(w.file("a.json", f'[{{"text":{_BIG_NUMBER}}}]')),
    "label of 5000 digits": lambda w: w.read(w.file("a.csv", f"text,label\nup,{_BIG_NUMBER}\n")),
    "jsonl with a long number": lambda w: w.read(w.file("a.jsonl", f'{{"text": {_BIG_NUMBER}}}')),
    "words are numbers": _jsonl(words=[1, 2, 3]),
    "words are a number": _jsonl(words=3),
    "words are a mapping": _jsonl(words={"a": 1, "b": 2, "c": 3}),
    "words are lists": _jsonl(words=[["a"], ["b"], ["c"]]),
    "words are empty": _jsonl(words=["", "", ""]),
    "words alone are numbers": lambda w: w.read(w.file("a.jsonl", {"words": [1, 2]})),
    "words alone are a mapping": lambda w: w.read(w.file("a.jsonl", {"words": {"a": 1}})),
    "heads are texts": _jsonl(heads=["a", "b", "c"]),
    "heads lie outside": _jsonl(heads=[7, 8, 9]),
    "heads are a number": _jsonl(heads=5),
    "tags are a number": _jsonl(pos=5),
    "tags are nothing": _jsonl(pos=[None, None, None]),
    "offsets are texts": _jsonl(offsets=["a", "b", "c"]),
    "offsets lie outside": _jsonl(offsets=[[0, 9999], [4, 5], [6, 7]]),
    "mentions lie outside": _jsonl(coreference=[[[0, 99]]]),
    "mentions are empty": _jsonl(coreference=[[[1, 1]]]),
    "mentions are numbers": _jsonl(coreference=[0, 3]),
    "sentences lie outside": _jsonl(sentences=[0, 9]),
    "schemas define entities": lambda w: [
        *w.read(w.file("a.xml", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')),
        *("--columns", "reader=wsc"),
    ],
    "links are text": _jsonl(links="own"),
    "links are a number": _jsonl(links=3),
    "text is a list": _jsonl(text=["a"]),
    "label is a list": _jsonl(label=[1]),
    "label is a mapping": _jsonl(label={"a": 1}),
    "subject is text": _jsonl(subject="cat"),
    "group is a list": _jsonl(group=["a"]),
    "a lone surrogate": _jsonl(text="up \ud800 down"),
    "a lone surrogate in words": _jsonl(text="up \udc00", words=["up", "\udc00"]),
    "a pipe as a file": lambda w: w.read(pipe(w.place("a.csv"))),
    "a device as a file": lambda w: w.read("/dev/zero"),
    "a terminal as a file": lambda w: w.read("/dev/tty"),
    "a pipe in a folder": _device_in_folder,
    "an over-long name": lambda w: w.read("x" * 5000 + ".csv"),
    "an over-long path": lambda w: w.read("/".join(["x" * 200] * 40) + ".csv"),
    "an over-long name without an ending": lambda w: w.read("y" * 5000),
    "nobody's home": lambda w: w.read("~nouser/data.csv"),
    "a name that is not UTF-8": lambda w: w.read("\udcff.csv"),
    "catalogue not UTF-8": lambda w: w.read(w.file("a.yaml", b"name: \xff\xfe\n")),
    "catalogue nested deep": lambda w: w.read(w.file("a.yaml", "a: " + "[" * DEEP)),
    "catalogue nested in itself": lambda w: w.read(w.file("a.yaml", ENTRY + "aliases: &a [*a]\n")),
    "catalogue with a tag": lambda w: w.read(w.file("a.yaml", "name: !!python/name:os.system\n")),
    "catalogue with a bad date": lambda w: w.read(
        w.file("a.yaml", ENTRY.replace("header: true", "header: 2024-99-99"))
    ),
    "catalogue with a bad number": lambda w: w.read(w.file("a.yaml", "name: !!int up\n")),
    "catalogue that doubles": lambda w: w.read(w.file("a.yaml", _doubling())),
    "catalogue is a pipe": lambda w: w.read(pipe(w.place("a.yaml"))),
    "bad pattern to skip": lambda w: [*w.read(w.file("a.txt", "up\n")), "--columns", "skip=("],
    "brackets, 100,000 deep": lambda w: w.read(w.file("a.mrg", "(A " * DEEP)),
    "a bracket too many": lambda w: w.read(w.file("a.mrg", PHRASES + ")")),
    "words outside of brackets": lambda w: w.read(w.file("a.mrg", "the cat sits")),
    "only what is not pronounced": lambda w: w.read(w.file("a.mrg", "( (S (-NONE- *)) )")),
    "phrases outside of the words": _jsonl(constituents=[[0, 99]]),
    "phrases of another form": _jsonl(constituents=[["a"], 3]),
    "tree without a root": lambda w: w.read(w.file("a.conllu", TREE.replace("\t0\t", "\t2\t"))),
    "tree with a lone range": lambda w: w.read(
        w.file("a.conllu", TREE.replace("2\tcat", "2-9\tcat"))
    ),
    "squad without answers": lambda w: [
        *w.read(w.file("a.json", {"data": None})),
        "--columns",
        "reader=squad",
    ],
    "squad with numbers": lambda w: [
        *w.read(w.file("a.json", {"data": [{"paragraphs": [{"qas": [1]}]}]})),
        "--columns",
        "reader=squad",
    ],
    "lama with a number": lambda w: [
        *w.read(w.file("a.jsonl", {**LAMA, "masked_sentences": [1]})),
        "--columns",
        "reader=lama",
    ],
    "10 MB in one line": lambda w: w.read(w.file("a.txt", _LINE + "\n")),
    "10 MB in one word": lambda w: w.read(w.file("a.txt", "x" * 10_000_000 + "\n")),
    "10 MB of words": lambda w: w.study("relation-heads", w.file("a.jsonl", _long_sentences())),
    "a tree that is a circle": _jsonl(heads=[1, 2, 0]),
    "a word that is its own head": _jsonl(heads=[0, 2, -1]),
    "200 MB in one packed line": lambda w: [
        "distil-static",
        str(w.model),
        *("--corpus", str(w.file("a.txt.gz", gzip.compress(b"up " * 70_000_000, 1)))),
        *("--to", str(w.place("vectors.txt"))),
    ],
    # Models
    "a weight that is no number": lambda w: w.with_model(_with_weight(w, float("nan"))),
    "an infinite weight": lambda w: w.with_model(_with_weight(w, float("inf"))),
    "a vocabulary beyond the embeddings": lambda w: w.with_model(_with_more_pieces(w)),
    "millions of layers": _config(num_hidden_layers=5_000_000),
    "layers are text": _config(num_hidden_layers="many"),
    "no heads": _config(num_attention_heads=0),
    "heads are nothing": _config(num_attention_heads=None),
    "a width of millions": _config(hidden_size=10**9, num_attention_heads=1),
    "a huge vocabulary": _config(vocab_size=10**12),
    "a huge length": _config(max_position_embeddings=10**12),
    "family is a list": _config(model_type=["bert"]),
    "family is nothing": _config(model_type=None),
    "labels are a list": _config(id2label=["a"]),
    "pruned heads are text": _config(bertology_pruned_heads="all"),
    "pruned heads are outside": _config(bertology_pruned_heads={"99": [7]}),
    "compressed forms are text": _config(bertology_compressed="small"),
    "compressed to no form": _config(bertology_compressed=[{"form": ["quantised"]}]),
    "config is a list": lambda w: w.with_model(w.altered(config__json="[1]")),
    "config is not UTF-8": lambda w: w.with_model(w.altered(config__json=b"\xff\xfe")),
    "config nested deep": lambda w: w.with_model(w.altered(config__json="[" * DEEP)),
    "config listed, nested deep": lambda w: ["models", str(w.altered(config__json="[" * DEEP))],
    "config listed, a list": lambda w: ["models", str(w.altered(config__json="[1]"))],
    "config listed, without family": lambda w: ["models", str(w.altered(config__json="{}"))],
    "weights listed, cut": lambda w: ["models", str(w.altered(model__safetensors=b"x"))],
    "weights are noise": lambda w: w.with_model(w.altered(model__safetensors=os.urandom(64))),
    "special tokens outside": _tokens(CLS=9999, SEP=9998),
    "padding outside": _tokens(PAD=9999),
    "unknown token outside": _tokens(UNK=9999),
    "no padding token": _without_tokens,
    "tokenizer is a pipe": _piped_model,
    "tokenizer nested deep": lambda w: w.with_model(w.altered(tokenizer__json="[" * DEEP)),
    "record is a list": lambda w: _recorded(w, "[]"),
    "record nested deep": lambda w: _recorded(w, "[" * DEEP),
    "record with a long number": lambda w: _recorded(w, f'{{"schema": {_BIG_NUMBER}}}'),
    "record's base is a list": lambda w: _recorded(
        w, '{"schema": 1, "base": {"fingerprint": [1]}, "task": {}}'
    ),
    "model of nobody's home": lambda w: w.with_model("~nouser/model"),
    "model with an over-long name": lambda w: w.with_model("x" * 5000),
    "model is a device": lambda w: w.with_model("/dev/zero"),
    "step of no number": lambda w: w.with_model(f"{w.model}@" + "9" * 5000),
    # Recipes
    "recipe not UTF-8": lambda w: w.recipe(b"\xff\xfe"),
    "recipe nested deep": lambda w: w.recipe("text: " + "[" * DEEP),
    "recipe nested deep, closed": lambda w: w.recipe("text: " + "[" * 3000 + "]" * 3000),
    "recipe of nobody's home": lambda w: w.follow("text: {files: [~nouser/a.txt]}"),
    "recipe with a pipe": lambda w: w.follow(
        json.dumps({"text": {"files": [str(pipe(w.place("a.txt")))]}})
    ),
    "recipe with a NUL": lambda w: w.follow('text: {files: ["a\\0b"]}'),
    "recipe's text nested deep": lambda w: w.follow(
        json.dumps({"text": {"files": [str(w.file("a.jsonl", "[" * DEEP))]}})
    ),
    "recipe's text is a list": lambda w: w.follow(
        json.dumps({"text": {"files": [str(w.file("a.jsonl", [1]))]}})
    ),
    "recipe's text with a half": lambda w: w.follow(
        json.dumps({"text": {"files": [str(w.file("a.jsonl", {"text": "\ud800"}))]}})
    ),
    "recipe's text with strange entities": lambda w: w.follow(
        json.dumps({"text": {"files": [str(w.file("a.jsonl", {"text": "a", "entities": [3]}))]}})
    ),
    "recipe with a surrogate": lambda w: w.recipe('text: {files: ["a\\ud800b"]}'),
    "recipe with a long name": lambda w: w.follow("text: {files: [" + "x" * 5000 + "]}"),
    "recipe's vocabulary of nobody": lambda w: w.recipe(
        "text: {corpus: grammar, examples: 10}\nvocabulary: {from: ~nouser/x}"
    ),
    "recipe's long vocabulary": lambda w: w.recipe(
        "text: {corpus: grammar, examples: 10}\nvocabulary: {from: " + "x" * 5000 + "}"
    ),
    "recipe's start of nobody": lambda w: w.follow(EXAMPLE.replace("steps: 500", "start: ~nouser")),
    "recipe with millions of layers": lambda w: w.recipe(
        EXAMPLE.replace("layers: 2", "layers: 50000000")
    ),
    "recipe a million wide": lambda w: w.recipe(EXAMPLE.replace("hidden: 64", "hidden: 1e15")),
    "recipe of many steps": lambda w: w.recipe(EXAMPLE.replace("steps: 500", "steps: 1e300")),
    "recipe with a long number": lambda w: w.recipe(EXAMPLE.replace("500", _BIG_NUMBER)),
    "recipe with a huge rate": lambda w: w.recipe(EXAMPLE.replace("2e-3", "1" + "0" * 400)),
    "recipe of many shards": lambda w: w.recipe(
        EXAMPLE.replace("held_out", "shards: 1e12\n  held_out")
    ),
    "recipe is a folder": lambda w: ["pretrain", "--config", str(w.folder), "--dry-run"],
    "recipe is a pipe": lambda w: ["pretrain", "--config", str(pipe(w.place("r"))), "--dry-run"],
    "recipe is a device": lambda w: ["pretrain", "--config", "/dev/zero", "--dry-run"],
    "recipe has a long name": lambda w: ["pretrain", "--config", "x" * 5000, "--dry-run"],
    # Stored results
    "result nested deep": lambda w: w.stored(lambda record, folder: b"[" * DEEP),
    "result with a long number": lambda w: w.stored(
        lambda record, folder: b'{"schema_version": ' + _BIG_NUMBER.encode() + b"}"
    ),
    "result not UTF-8": lambda w: w.stored(lambda record, folder: b"\xff\xfe{"),
    "result is a list": lambda w: w.stored(lambda record, folder: []),
    "arrays missing": lambda w: w.stored(lambda record, folder: record.pop("arrays") and None),
    "arrays are nothing": _field("arrays", None),
    "arrays are a list": _field("arrays", []),
    "arrays are text": _field("arrays", "arrays.nc"),
    "arrays elsewhere": _field("arrays", {"file": "../../../x", "bytes": 1, "sha256": "0"}),
    "arrays without their names": lambda w: w.stored(_without_arrays),
    "another table": lambda w: w.stored(_other_table),
    "arrays are a pipe": lambda w: w.stored(_as_pipe),
    "tables are nothing": _field("tables", None),
    "tables are numbers": _field("tables", [1, 2]),
    "tables are a mapping": _field("tables", {"a": 1}),
    "a table without a name": _field("tables", [{"file": "layers.parquet"}]),
    "a table whose name is a list": _field("tables", [{"name": [], "file": "layers.parquet"}]),
    "provenance is nothing": _field("provenance", None),
    "provenance is a list": _field("provenance", [1]),
    "version is a list": _field("schema_version", [1]),
    "model is text": _made("model", "bert"),
    "model's fingerprint is a list": _made("model", {"fingerprint": []}),
    "corpus is a number": _made("corpus", 5),
    "corpus without a name": _made("corpus", {"fingerprint": "x"}),
    "parameters are a list": _made("parameters", [1]),
    "cut is empty": _made("cut", {}),
    "cut is text": _made("cut", "all"),
    "unknown pieces are text": _made("unknown", {"pieces": "a", "of": "b"}),
    "created is a number": _made("created", 5),
    "duration is text": _made("duration", "long"),
    "study is a number": _made("study", 5),
    "study is a path": _made("study", "../x"),
    "others are a list": _made("others", [1]),
    "list of a bad date": lambda w: w.stored(
        lambda record, folder: record["provenance"].update(created=5), "list"
    ),
    "list of a bad duration": lambda w: w.stored(
        lambda record, folder: record["provenance"].update(duration=None), "list"
    ),
    "list of a bad model": lambda w: w.stored(
        lambda record, folder: record["provenance"].update(model=[]), "list"
    ),
    "list of a deep record": lambda w: w.stored(lambda record, folder: b"[" * DEEP, "list"),
    "report of a bad record": lambda w: w.stored(
        lambda record, folder: record["provenance"].update(corpus=5),
        *("report", "model", "--to", str(w.place("page"))),
    ),
    "store of nobody's home": lambda w: ["list", "--store", "~nouser/store"],
    "store with a long name": lambda w: ["list", "--store", "x" * 5000],
    "store is a device": lambda w: ["list", "--store", "/dev/zero"],
    "a long identity": lambda w: ["show", "a" * 5000, "--store", str(w.store)],
}


def _long_sentences() -> str:
    """Two sentences of a hundred thousand words, linked at their beginning."""
    words = _LINE.split()[:100_000]
    rows = [{"id": str(i), "words": words, "links": [[0, 2, "own"]]} for i in range(2)]
    return "\n".join(map(json.dumps, rows))


def _doubling() -> str:
    """Each line names the one before twice: thirty lines are a thousand million values."""
    lines = ["a0: &a0 [x, x]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 30))]
    return "\n".join(lines) + "\n" + ENTRY.replace("header: true", "header: *a29")
