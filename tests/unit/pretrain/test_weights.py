"""What learns in float32, what computes in bfloat16, and that the two stay together."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bertology.train.optimizers import make_optimizer
from bertology.train.pretrain.weights import Weights

PRECISIONS = (torch.float32, torch.bfloat16)
both = pytest.mark.parametrize("precision", PRECISIONS, ids=["float32", "bfloat16"])


class Two(nn.Module):
    """Two layers, of which the second is not always used."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 1)


def one_step(weights: Weights) -> None:
    for weight in weights.learning:
        weight.grad = torch.full_like(weight, 0.5)
    make_optimizer("adamw", weights.learning, rate=1e-3, weight_decay=0.1).step()
    weights.publish()


@both
def test_the_copies_are_the_learning_weights_rounded(precision):
    network = Two()
    weights = Weights(network, precision)
    assert all(w.dtype == torch.float32 for w in weights.learning)
    assert all(p.dtype == precision for p in network.parameters())
    for _ in range(3):
        one_step(weights)
        for learning, computing in zip(weights.learning, network.parameters(), strict=True):
            assert torch.equal(computing.detach(), learning.detach().to(precision))


def test_float32_has_no_second_copy():
    network = Two()
    weights = Weights(network, torch.float32)
    assert all(a is b for a, b in zip(weights.learning, network.parameters(), strict=True))


def test_small_updates_add_up_where_bfloat16_would_lose_them():
    network = Two()
    weights = Weights(network, torch.bfloat16)
    weights.load({n: torch.ones_like(w) for n, w in weights.as_dict().items()})
    with torch.no_grad():
        for _ in range(128):  # above 1 the numbers of bfloat16 are 2**-7 apart
            torch._foreach_add_(weights.learning, 2.0**-12)
            weights.publish()
    assert network.first.weight[0, 0].item() == 1 + 2.0**-5


@both
def test_gradients_add_up_in_float32(precision):
    network = Two()
    weights = Weights(network, precision)
    draw = torch.Generator().manual_seed(0)
    expected: list[torch.Tensor] = [torch.zeros_like(w) for w in weights.learning]
    for _ in range(5):
        parts = [torch.randn(w.shape, generator=draw).to(precision) for w in weights.learning]
        # What a backward pass does: it adds to the gradients of the weights that compute.
        for parameter, part in zip(network.parameters(), parts, strict=True):
            parameter.grad = part if parameter.grad is None else parameter.grad + part
        weights.collect()
        expected = [e + p.float() for e, p in zip(expected, parts, strict=True)]
    for weight, e in zip(weights.learning, expected, strict=True):
        assert weight.grad is not None
        assert weight.grad.dtype == torch.float32
        assert torch.equal(weight.grad, e)
    if precision != torch.float32:
        assert all(p.grad is None for p in network.parameters())


@both
def test_cleared_gradients_are_zero_and_stay_where_they_are(precision):
    weights = Weights(Two(), precision)
    weights.clear()  # nothing to clear yet
    one_step(weights)
    before = [w.grad.data_ptr() for w in weights.learning]
    weights.clear()
    assert all(not w.grad.any() for w in weights.learning)
    assert [w.grad.data_ptr() for w in weights.learning] == before


@both
def test_what_never_had_a_gradient_does_not_decay(precision):
    network = Two()
    weights = Weights(network, precision)
    before = {n: w.clone() for n, w in weights.as_dict().items()}
    optimizer = make_optimizer("adamw", weights.learning, rate=0.1, weight_decay=0.5)
    for _ in range(2):
        weights.clear()
        network.first(torch.ones(1, 4, dtype=precision)).sum().backward()
        weights.collect()
        assert len(weights.live) == 2
        optimizer.step()
    after = weights.as_dict()
    assert not torch.equal(after["first.weight"], before["first.weight"])
    assert torch.equal(after["second.weight"], before["second.weight"])
    assert torch.equal(after["second.bias"], before["second.bias"])


@both
def test_told_and_loaded_they_are_the_same(precision):
    weights = Weights(Two(), precision)
    one_step(weights)
    told = {n: w.clone() for n, w in weights.as_dict().items()}
    network = Two()
    other = Weights(network, precision)
    other.load(told)
    for name, value in other.as_dict().items():
        assert torch.equal(value, told[name])
        assert torch.equal(network.get_parameter(name).detach(), told[name].to(precision))


def test_frozen_weights_do_not_learn():
    network = Two()
    network.first.requires_grad_(False)
    weights = Weights(network, torch.bfloat16)
    assert weights.names == ["second.weight", "second.bias"]
    assert len(weights.computing) == 2
