"""`attention-change` finds the model before fine-tuning by itself, or says why it cannot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import bertology as bt
import tiny
from bertology.errors import ModelError, ParameterError
from bertology.results.result import Result
from toy.making import ToyWorld
from toy.shipping import Shipped


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToyWorld:
    monkeypatch.chdir(tmp_path)
    made = ToyWorld(tmp_path)
    shutil.copytree(made.model, "base")
    shutil.copytree(made.model, "tuned")
    model = tiny.model("bert", "classification")
    with torch.no_grad():
        model.bert.encoder.layer[0].attention.self.query.weight.mul_(1.5)
    model.save_pretrained("tuned")
    record(base={"name": "base", "fingerprint": bt.load("base").fingerprint}, start="pretrained")
    return made


def record(**said: Any) -> None:
    Path("tuned/bertology.json").write_text(json.dumps({"schema": 1, **said}))


def change(world: ToyWorld, **how: Any) -> Result:
    return bt.run("attention-change", "tuned", corpus=world.corpus, noise=0, store="new", **how)


def test_the_record_of_a_fine_tuned_model_names_it(world: ToyWorld) -> None:
    found = change(world)
    assert found.provenance.others["before"]["name"] == "base"
    assert found.provenance.parameters["before"] == "base"
    # A model that is named, or loaded by the user, means the same work.
    assert change(world, before="base").identity == found.identity
    loaded = bt.load("tuned", head="classification", device="cpu")
    again = bt.run("attention-change", loaded, corpus=world.corpus, noise=0, store="new")
    assert again.identity == found.identity


def test_worker_processes_compare_with_it_too(world: ToyWorld) -> None:
    asked: dict[str, Any] = {"corpus": world.corpus, "noise": 0, "store": "b", "engine": Shipped()}
    two = bt.run("attention-change", "tuned", **asked)
    assert two.provenance.others["before"]["name"] == "base"


def test_a_model_without_a_record(world: ToyWorld) -> None:
    Path("tuned/bertology.json").unlink()
    with pytest.raises(ParameterError, match=r"'tuned' has no bertology.json.*--before MODEL"):
        change(world)


def test_a_record_without_a_model(world: ToyWorld) -> None:
    record(method="pretrain")
    with pytest.raises(ParameterError, match=r"the bertology.json of 'tuned' does not tell it"):
        change(world)


def test_a_model_from_random_weights_has_none_before(world: ToyWorld) -> None:
    record(base={"name": "base", "fingerprint": "x"}, start="random")
    with pytest.raises(ParameterError, match=r"trained from random weights, so there is none"):
        change(world)


def test_the_model_before_is_gone(world: ToyWorld) -> None:
    record(base={"name": "./gone/base", "fingerprint": "x"}, start="pretrained")
    with pytest.raises(
        ModelError, match=r"from './gone/base', which cannot be loaded here: There"
    ) as e:
        change(world)
    assert "--before MODEL" in str(e.value)


def test_the_model_before_has_changed(world: ToyWorld) -> None:
    shutil.copy("tuned/model.safetensors", "base/model.safetensors")
    with pytest.raises(ModelError, match=r"'base' has changed since(.|\n)*--before base"):
        change(world)


def test_where_no_model_before_is_needed_it_is_compared_with_if_known(world: ToyWorld) -> None:
    texts = [example.text for example in bt.load_corpus(world.corpus)] * 2
    asked: dict[str, Any] = {"corpus": texts, "noise": 0, "resamples": 100, "store": "new"}
    found = bt.run("layer-similarity", "tuned", **asked)
    assert found.provenance.others["against"]["name"] == "base"
    record(base={"name": "./gone/base", "fingerprint": "x"}, start="pretrained")
    assert not bt.run("layer-similarity", "tuned", **asked).provenance.others
    Path("tuned/bertology.json").unlink()
    assert not bt.run("layer-similarity", "tuned", **asked).provenance.others
