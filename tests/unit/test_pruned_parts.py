"""Layers and MLPs that are cut for good: equal to the gated model, and loaded by plain transformers
where its config can say what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

import planted
import tiny
from bertology.errors import BertologyError, CapabilityError, ModelError, ParameterError
from bertology.model.encoder import Encoder
from bertology.model.interventions import GateLayer, GateMLP, SkipLayer, ZeroHead
from bertology.model.loading.pruning import load_pruned, prune_heads, prune_layers, prune_mlps
from bertology.model.sweeps.gate_gradients import importances

FAMILIES = ["bert", "roberta", "electra", "distilbert"]


def logits(model: Any, do: Any = ()) -> Tensor:
    """The output at real tokens; what implementations give at padding differs."""
    inputs = tiny.inputs()
    return Encoder(model).run(inputs, do=do).logits[inputs["attention_mask"].bool()]


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_without_layers_gives_what_skipping_them_gives(name: str, tmp_path: Path) -> None:
    model = tiny.model(name)
    expected = logits(model, SkipLayer([1]))
    assert (expected - logits(model)).abs().max() > 1e-3
    smaller = prune_layers(model, [1])
    close(logits(smaller), expected)
    assert Encoder(smaller).shape.layers == Encoder(model).shape.layers - 1
    smaller.save_pretrained(tmp_path)
    again, info = transformers.AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    close(logits(again), expected)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_without_mlps_gives_what_gating_them_gives(name: str, tmp_path: Path) -> None:
    model = tiny.model(name)
    open_gates = torch.ones(Encoder(model).shape.layers)
    open_gates[[0, 2]] = 0
    expected = logits(model, GateMLP(open_gates))
    smaller = prune_mlps(prune_mlps(model, [2]), [0])
    close(logits(smaller), expected)
    assert sum(p.numel() for p in smaller.parameters()) < sum(p.numel() for p in model.parameters())
    smaller.save_pretrained(tmp_path)
    close(logits(load_pruned(tmp_path, transformers.AutoModel)), expected)
    close(logits(Encoder.load(str(tmp_path), device="cpu").model), expected)


def test_what_was_cut_before_goes_with_its_layer(tmp_path: Path) -> None:
    model = tiny.model("bert")
    expected = logits(
        model, [ZeroHead([(0, 1), (2, 3)]), GateMLP(torch.tensor([1.0, 0.0, 0.0])), SkipLayer([1])]
    )
    smaller = prune_layers(prune_mlps(prune_heads(model, [(0, 1), (1, 0), (2, 3)]), [1, 2]), [1])
    close(logits(smaller), expected)
    assert smaller.config.bertology_pruned_heads == {"0": [1], "1": [3]}
    assert smaller.config.bertology_pruned_mlps == [1]
    smaller.save_pretrained(tmp_path)
    close(logits(Encoder.load(str(tmp_path), device="cpu").model), expected)


def test_a_gate_at_a_layer_leads_from_its_output_to_its_input() -> None:
    model = tiny.model("bert")
    close(logits(model, GateLayer(torch.tensor([1.0, 0.0, 1.0]))), logits(model, SkipLayer([1])))
    close(logits(model, GateLayer(torch.ones(3))), logits(model))
    with pytest.raises(ParameterError, match="have shape"):
        logits(model, GateLayer(torch.ones(2)))


def test_gradients_of_gates_find_the_head_that_carries_the_answer() -> None:
    encoder = Encoder(planted.model(), planted.tokenizer(), head="classification")
    corpus = planted.corpus(60)
    found = importances(encoder, corpus.texts, corpus.labels)
    assert np.unravel_index(found.heads.argmax(), found.heads.shape) == planted.CARRIER
    assert found.layers[0] > 10 * found.layers[1]
    assert found.mlps.max() < 1e-6  # the planted MLPs give nothing


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match="cannot be cut"):
        prune_layers(tiny.model("albert"), [0])
    with pytest.raises(CapabilityError, match="cannot be cut"):
        prune_mlps(tiny.model("modernbert"), [0])
    with pytest.raises(BertologyError, match="at least one layer"):
        prune_layers(tiny.model("bert"), range(3))
    with pytest.raises(BertologyError, match="no layer 7"):
        prune_layers(tiny.model("bert"), [7])
    model = tiny.model("bert")
    model.config.bertology_pruned_mlps = "all"
    model.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="bertology_pruned_mlps"):
        Encoder.load(str(tmp_path), device="cpu")
