"""`bertology compress`: one command from a pre-trained model to a smaller one with a card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from typer.testing import CliRunner

import bertology as bt
import planted
from bertology.cli.compress import CompressOptions
from bertology.cli.main import app
from bertology.train.compress import METHODS


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small pre-trained model, a task and some text, in a folder."""
    folder = tmp_path_factory.mktemp("compress")
    torch.manual_seed(0)
    config = hf.BertConfig(
        vocab_size=5 + len(planted.WORDS), hidden_size=16, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=8, max_position_embeddings=40,
    )  # fmt: skip
    hf.BertForMaskedLM(config).save_pretrained(folder / "model")
    planted.tokenizer().save_pretrained(folder / "model")
    planted.written(folder / "task", train=60, validation=30)
    (folder / "text.txt").write_text("\n".join(["the good up", "a bad down down", ""] * 8))
    return folder


def call(place: Path, *words: Any, model: str = "model") -> tuple[int, str]:
    given = [place / model, "--task", place / "task", "--device", "cpu", *words]
    done = CliRunner().invoke(app, ["compress", *map(str, given)], prog_name="bertology")
    assert "Traceback" not in done.output
    assert "This is a bug" not in done.output
    return done.exit_code, " ".join(done.output.split())


def test_from_a_pretrained_model_to_a_card(place: Path) -> None:
    method = f"distil_text:layers=1,text_epochs=1,file={place / 'text.txt'},int8"
    asked = ("--method", method, "--epochs", 1, "--to", place / "small")
    code, said = call(place, *asked)
    assert code == 0, said
    for words in ("fine-tuned first", "1 of 2: distil_text", "2 of 2: int8", "times as small",
                  "answers changed", "bertology score", "README.md tells all of this"):  # fmt: skip
        assert words in said, words
    card = (place / "small" / "README.md").read_text()
    assert "1 epoch on 16 texts came first" in card
    assert "bertology compress" in card
    record = json.loads((place / "small" / "bertology.json").read_text())
    assert record["method"] == "compress"
    assert record["base"]["name"] == str(place / "model")
    assert bt.load(str(place / "small"), head="classification").shape.layers == 1
    assert (place / "small-original/README.md").read_text().count("\n# small-original\n") == 1
    code, said = call(place, *asked)
    assert code == 0
    assert "was made on" in said
    assert "small-original was made on" in said
    code, said = call(place, "--method", "low_rank", "--to", place / "y", model="small")
    assert code == 2
    assert "was made by 'int8', and 'low_rank' cannot come after it" in said
    code, said = call(place, "--method", "half", "--epochs", 1, "--to", place / "small")
    assert code == 2
    assert "--force" in said
    code, said = call(
        place, "--method", "rewound:rounds=1", "--epochs", 1, "--to", place / "zeros",
        model="small-original",
    )  # fmt: skip
    assert code == 0, said
    assert "packed with gzip" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--method", "int9"), "Unknown method of compression 'int9'"),
        (("--method", "a"), "`bertology compress --help` lists all"),
        (("--method", "int8,layer_choice"), "put it last"),
        (("--method", "soft_labels:layers=9"), "'layers' parameter of the student must be at most"),
        (("--method", "soft_labels:layers=2,which=1+9"), "name 2 layers of 1 to 2"),
        (("--method", "layer_drop:layers=9"), "be at most 2, as the model has no more"),
        (("--method", "low_rank:rank=many"), "be a whole number"),
        (("--method", "distil_text:file=nowhere.txt"), "nowhere.txt"),
        (("--method", "half", "--epochs", "0"), "--epochs"),
        (("--method", "half", "--limit", "3"), "--limit"),
        ((), "--method"),
    ],
)
def test_errors_in_words(words: tuple[str, ...], said: str, place: Path) -> None:
    code, output = call(place, *words, "--to", place / "x", model="small-original")
    assert code == 2, output
    assert said in output
    assert not (place / "x").exists()
    assert not (place / "x-unfinished").exists(), "refused before any work"


def test_a_model_is_never_replaced_by_what_is_made_of_it(place: Path) -> None:
    words = ("--method", "half", "--to", place / "small-original", "--force")
    code, output = call(place, *words, model="small-original")
    assert code == 2
    assert "is the folder of the model that is to be compressed" in output


def test_the_help_names_every_method() -> None:
    [option] = [f for n, f in CompressOptions.__dataclass_fields__.items() if n == "method"]
    assert all(name in option.metadata["help"] for name in METHODS)
