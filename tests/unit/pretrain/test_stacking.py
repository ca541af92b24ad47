"""A deeper model from a shallow one: which layer becomes which."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bertology.train.fresh import Architecture, fresh_bert
from bertology.train.pretrain.config import Objective, Stage
from bertology.train.pretrain.loop import grown
from bertology.train.pretrain.network import Network
from bertology.train.pretrain.weights import Weights

SIZE = Architecture(layers=2, heads=2, hidden=16, max_length=16, dropout=0.0)


def test_layer_i_is_a_copy_of_i_modulo_the_old_depth():
    values = {
        "model.bert.embeddings.word": "e",
        "model.bert.encoder.layer.0.w": "0",
        "model.bert.encoder.layer.1.w": "1",
        "model.cls.bias": "c",
    }
    deeper = grown(values, layers=2, to=6)
    assert [deeper[f"model.bert.encoder.layer.{i}.w"] for i in range(6)] == list("010101")
    assert deeper["model.bert.embeddings.word"] == "e"
    assert deeper["model.cls.bias"] == "c"
    assert len(deeper) == 8


@pytest.mark.parametrize(("layers", "to"), [(1, 12), (3, 12), (6, 12), (4, 4)])
def test_every_new_layer_is_there_once(layers, to):
    values = {f"bert.encoder.layer.{i}.{n}": (i, n) for i in range(layers) for n in ("a", "b.c")}
    deeper = grown(values, layers=layers, to=to)
    assert deeper == {
        f"bert.encoder.layer.{i}.{n}": (i % layers, n) for i in range(to) for n in ("a", "b.c")
    }


def test_a_generator_stays_as_deep_as_it_is():
    values = {"losses.0.replaced.generator.bert.encoder.layer.0.w": 1}
    assert grown(values, layers=1, to=4) == values


def network(tokenizer, layers: int, *losses: str) -> Network:
    size = replace(SIZE, layers=layers)
    model = fresh_bert("BertForPreTraining", size, tokenizer, seed=layers)
    stage = Stage(Objective("full-sentences", losses=losses))
    return Network(model, (stage,), SIZE)


@pytest.mark.parametrize("loss", ["mlm", "replaced"])
def test_a_real_network_finds_all_its_weights(tokenizer, loss):
    """Weights of `replaced` hold a generator with layers of its own."""
    shallow = Weights(network(tokenizer, 2, loss), torch.float32)
    deep_network = network(tokenizer, 4, loss)
    deep = Weights(deep_network, torch.float32)
    values = grown(shallow.as_dict(), layers=2, to=4)
    assert values.keys() == set(deep.names)
    deep.load(values)
    layers = deep_network.model.bert.encoder.layer
    for low, high in ((0, 2), (1, 3)):
        one, other = layers[low].state_dict(), layers[high].state_dict()
        assert all(torch.equal(one[n], other[n]) for n in one)
    assert not torch.equal(
        layers[0].attention.self.query.weight, layers[1].attention.self.query.weight
    )


def test_copies_are_apart_in_memory(tokenizer):
    """Layers that begin alike must be free to become different."""
    shallow = Weights(network(tokenizer, 1, "mlm"), torch.float32)
    deep = Weights(network(tokenizer, 2, "mlm"), torch.float32)
    deep.load(grown(shallow.as_dict(), layers=1, to=2))
    places = [w.data_ptr() for w in deep.learning]
    assert len(set(places)) == len(places)
