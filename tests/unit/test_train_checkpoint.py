"""A saved model is an ordinary folder with its history beside it, whole or not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.errors import ModelError, StoreError
from bertology.model.encoder import Encoder
from bertology.train.checkpoint import RECORD, read_record, record_of, save_checkpoint
from bertology.train.finetune import Epoch, FinetuneSettings
from bertology.train.fresh import Architecture
from bertology.train.history import History
from made_classifiers import fresh_classifier

SIZE = Architecture(layers=1, heads=2, hidden=8, max_length=16)
TASK = Task("toy", "classification", ("no", "yes"))
CORPUS = Corpus("toy", [Example("1", "a b", label=1)], frozenset({Field.TEXT, Field.LABEL}), TASK)


def record() -> dict[str, Any]:
    history = History((Epoch(1, 0.5, {"accuracy": 0.75}, 1.0),))
    return record_of(CORPUS, CORPUS, FinetuneSettings(seed=3), history)


def test_the_folder_loads_again_and_tells_its_story(tmp_path: Path) -> None:
    model, tokenizer = fresh_classifier(["a b c"], SIZE, labels=TASK.labels)
    place = save_checkpoint(tmp_path / "new" / "model", model, tokenizer, record=record())
    files = {p.name for p in place.iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json", RECORD} <= files
    assert [p.name for p in place.parent.iterdir()] == ["model"]
    encoder = Encoder.load(str(place), head="classification", device="cpu")
    assert encoder.max_length == 16
    for mine, yours in zip(model.parameters(), encoder.model.parameters(), strict=True):
        assert torch.equal(mine, yours)
    pair = encoder.tokenizer("a", "b")
    assert pair == tokenizer("a", "b")
    assert pair["token_type_ids"] == [0, 0, 0, 1, 1]
    told = read_record(place)
    assert told is not None
    assert told["train"]["name"] == "toy"
    assert told["train"]["fingerprint"] == CORPUS.fingerprint
    assert told["settings"]["seed"] == 3
    assert told["scores"] == {"accuracy": 0.75}


def test_other_versions_of_transformers_read_the_tokenizer(tmp_path: Path) -> None:
    """Version 5 writes the name of a class that version 4 does not know."""
    model, tokenizer = fresh_classifier(["a b c"], SIZE, labels=TASK.labels)
    place = save_checkpoint(tmp_path / "model", model, tokenizer, record=record())
    config = json.loads((place / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert not {"backend", "is_local", "local_files_only"} & set(config)
    again = AutoTokenizer.from_pretrained(place)
    assert again.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
    assert again.special_tokens_map == tokenizer.special_tokens_map
    assert again.model_max_length == tokenizer.model_max_length
    assert again("a c", "b Ж") == tokenizer("a c", "b Ж")


def test_an_earlier_model_is_replaced_whole(tmp_path: Path) -> None:
    first, tokenizer = fresh_classifier(["a b c"], SIZE, labels=TASK.labels, seed=1)
    second, _ = fresh_classifier(["a b c"], SIZE, labels=TASK.labels, seed=2)
    place = tmp_path / "model"
    save_checkpoint(place, first, tokenizer, record=record())
    (place / "left-over").touch()
    save_checkpoint(place, second, tokenizer, record=record())
    assert not (place / "left-over").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    loaded = Encoder.load(str(place), head="classification", device="cpu").model
    assert torch.equal(loaded.classifier.weight, second.classifier.weight)


def test_a_save_that_fails_leaves_the_earlier_model(tmp_path: Path) -> None:
    model, tokenizer = fresh_classifier(["a b c"], SIZE, labels=TASK.labels)
    place = save_checkpoint(tmp_path / "model", model, tokenizer, record=record())

    class Full:
        def save_pretrained(self, folder: Path) -> None:
            raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="No space left"):
        save_checkpoint(place, Full(), tokenizer, record=record())
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert read_record(place) is not None


def test_other_peoples_folders_are_left_alone(tmp_path: Path) -> None:
    model, tokenizer = fresh_classifier(["a b c"], SIZE, labels=TASK.labels)
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(StoreError, match="not a model that bertology made"):
        save_checkpoint(tmp_path, model, tokenizer, record=record())
    with pytest.raises(StoreError, match="not a model that bertology made"):
        save_checkpoint(tmp_path / "thesis.txt", model, tokenizer, record=record())
    with pytest.raises(StoreError, match="not a folder you may write to"):
        save_checkpoint(tmp_path / "thesis.txt" / "model", model, tokenizer, record=record())
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_records_that_cannot_be_read_are_said_to_be_so(tmp_path: Path) -> None:
    assert read_record(tmp_path) is None
    assert read_record(tmp_path / "nowhere") is None
    (tmp_path / RECORD).write_text("{")
    with pytest.raises(ModelError, match="line 1: not JSON"):
        read_record(tmp_path)
    (tmp_path / RECORD).write_text('{"schema": 99}')
    with pytest.raises(ModelError, match="schema 1"):
        read_record(tmp_path)
