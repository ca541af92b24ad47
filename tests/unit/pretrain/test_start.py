"""Going on from a model that is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bertology.errors import ModelError
from bertology.train.fresh import Architecture
from bertology.train.pretrain.config import Phase, Pretraining
from bertology.train.pretrain.config_files import parse_recipe
from bertology.train.pretrain.loop import pretrain
from bertology.train.pretrain.state import identity

SMALL = Architecture(layers=1, heads=2, hidden=16, max_length=16, dropout=0.0)
FIRST = Pretraining(model=SMALL, steps=2, batch_tokens=64, phases=(Phase(16),), evaluate_every=2)


@pytest.fixture(scope="module")
def begun(tmp_path_factory, shards, tokenizer) -> Path:
    folder = tmp_path_factory.mktemp("first") / "run"
    pretrain(FIRST, shards, tokenizer, folder=folder, device="cpu")
    return folder / "model"


def still(folder: Path, **change: object) -> Pretraining:
    """A run that starts from the folder and changes next to nothing."""
    return replace(FIRST, start=str(folder), learning_rate=1e-12, weight_decay=0.0, **change)


def test_it_begins_with_the_weights_of_the_folder(begun, shards, tokenizer):
    from transformers import BertForPreTraining

    first = BertForPreTraining.from_pretrained(begun).state_dict()
    after = pretrain(still(begun, seed=7), shards, tokenizer, device="cpu").model.state_dict()
    assert all(torch.allclose(after[n], first[n], atol=1e-6) for n in first)


def test_more_positions_than_before_start_fresh(begun, shards, tokenizer):
    from transformers import BertForPreTraining

    first = BertForPreTraining.from_pretrained(begun).bert.embeddings.position_embeddings.weight
    longer = still(begun, model=replace(SMALL, max_length=32), phases=(Phase(32),))
    model = pretrain(longer, shards, tokenizer, device="cpu").model
    positions = model.bert.embeddings.position_embeddings.weight
    assert torch.allclose(positions[:16], first, atol=1e-6)
    assert 0 < positions[16:].std() < 0.1


@pytest.mark.parametrize("change", [{"hidden": 32}, {"layers": 2}])
def test_another_shape_is_refused(begun, shards, tokenizer, change):
    with pytest.raises(ModelError, match=r"lacks the weights|this model's is"):
        pretrain(still(begun, model=replace(SMALL, **change)), shards, tokenizer, device="cpu")


def test_heads_that_are_cut_otherwise_are_refused(begun, shards, tokenizer):
    """All weights would fit, and none would mean what it did."""
    other = still(begun, model=replace(SMALL, heads=4))
    with pytest.raises(ModelError, match="has 2 heads; this one is to have 4"):
        pretrain(other, shards, tokenizer, device="cpu")


def test_layers_are_not_left_out_in_silence(tmp_path, shards, tokenizer):
    deep = replace(FIRST, model=replace(SMALL, layers=2))
    pretrain(deep, shards, tokenizer, folder=tmp_path / "run", device="cpu")
    with pytest.raises(ModelError, match="more layers than this one begins with"):
        pretrain(still(tmp_path / "run" / "model"), shards, tokenizer, device="cpu")


def test_old_names_of_weights_are_known(begun, tmp_path, shards, tokenizer):
    import shutil

    from safetensors.torch import load_file, save_file

    old = shutil.copytree(begun, tmp_path / "old")
    names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    weights = {}
    for name, weight in load_file(begun / "model.safetensors").items():
        for new, former in names.items():
            name = name.replace(new, former)
        weights[name] = weight
    save_file(weights, old / "model.safetensors")
    one, other = (pretrain(still(f), shards, tokenizer, device="cpu").model for f in (begun, old))
    assert all(map(torch.equal, one.parameters(), other.parameters()))


def test_no_model_there_is_refused(tmp_path, shards, tokenizer):
    with pytest.raises(ModelError, match="no model to start from"):
        pretrain(still(tmp_path / "nothing"), shards, tokenizer, device="cpu")


def test_the_record_tells_which_model_but_not_where(begun, tmp_path, shards, tokenizer):
    pretrain(still(begun), shards, tokenizer, folder=tmp_path / "run", device="cpu")
    record = (tmp_path / "run" / "model" / "bertology.json").read_text()
    assert str(begun) not in record


def test_identity_depends_on_the_weights_not_on_their_place(begun, tmp_path):
    import shutil

    moved = shutil.copytree(begun, tmp_path / "moved")
    there, here = (identity(still(f), "text", 1) for f in (begun, moved))
    assert there == here != identity(FIRST, "text", 1)
    (moved / "model.safetensors").write_bytes(b"other")
    assert identity(still(moved), "text", 1) != there


def test_the_path_in_a_recipe_starts_from_its_folder(tmp_path):
    text = "text: {files: [a.txt]}\ntraining: {start: run/model}\n"
    recipe = parse_recipe(text, label="recipe.yaml", base=tmp_path / "recipes")
    assert recipe.resolved().start == str((tmp_path / "recipes/run/model").resolve())
    moved = recipe.seen_from(tmp_path)
    assert moved.training.start == "recipes/run/model"
    assert moved.resolved() == recipe.resolved()
