"""Mixes of layers: those of a plain PyTorch module; weights where the label was written."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from bertology.studies.designs.layer_places import (
    Place,
    centre_of_gravity,
    expected_layer,
    unevenness,
)
from bertology.train.probes import mixes as module
from bertology.train.probes.classifiers import Examples
from bertology.train.probes.mixes import Mix, Mixes, Task, mixed
from bertology.train.probes.streams import StateStream
from made_states import MadeStates

LAYERS, WIDTH, CLASSES = 5, 8, 3


class ScalarMix(nn.Module):
    """As in ELMo and Tenney et al.: a softmax over layers, a scale, and a linear classifier."""

    def __init__(self, layers: int, start: torch.Tensor) -> None:
        super().__init__()
        self.scores, self.scale = nn.Parameter(torch.zeros(layers)), nn.Parameter(torch.ones(()))
        self.linear, self.bias = nn.Parameter(start.clone()), nn.Parameter(torch.zeros(CLASSES))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        weights = self.scores.softmax(0)
        mix = self.scale * (weights[:, None, None] * states[: len(weights)]).sum(0)
        return mix @ self.linear + self.bias


def drawn(n: int, layer: int, *, kept: bool = False, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Noise, but for one layer (and those after it, if `kept`), which tells the label."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=n)
    states = rng.normal(size=(LAYERS, n, WIDTH))
    signal = 3 * np.eye(WIDTH)[labels]
    states[layer : None if kept else layer + 1] += signal
    return states, labels


@pytest.mark.parametrize("layers", [1, 3, LAYERS])
def test_a_mix_is_that_of_plain_pytorch_trained_alone(layers: int) -> None:
    """The same steps of Adam on the same batches give the same weights, whatever stands beside."""
    states, labels = (torch.from_numpy(of) for of in drawn(240, 2))
    states = states.float()
    every = [Mix(1, 0, 1e-2), Mix(3, 0, 1e-3), Mix(LAYERS, 0, 1e-4)]
    made = Mixes(every, (LAYERS, WIDTH, CLASSES))
    at = [mix.layers for mix in every].index(layers)
    alone = ScalarMix(layers, made.weights[2][at])
    adam = torch.optim.Adam(
        [
            {"params": [alone.scores], "lr": module._RATE * module._OF_LAYERS},
            {"params": [alone.linear], "weight_decay": every[at].decay},
            {"params": [alone.scale, alone.bias]},
        ],
        lr=module._RATE,
    )
    going = module._Going.of(made, torch.zeros(len(every)))
    for some in 5 * torch.arange(240).split(60):
        going.move(Examples(states[:, some], labels[some, None].expand(-1, len(every))))
        adam.zero_grad()
        nn.functional.cross_entropy(alone(states[:, some]), labels[some]).backward()
        adam.step()
    scores, scale, linear, bias = (weight[at] for weight in going.mixes.weights)
    assert torch.allclose(scores[:layers], alone.scores, atol=1e-4)
    assert torch.allclose(scale, alone.scale, atol=1e-4)
    assert torch.allclose(linear, alone.linear, atol=1e-4)
    assert torch.allclose(bias, alone.bias, atol=1e-4)
    assert (going.mixes.layer_weights()[at, layers:] == 0).all()


def ask(states: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares of right answers from the first layers, and weights of all."""
    rows = np.arange(len(labels))
    split = np.array([0, 0, 2, 0, 0, 1, 0, 2, 0, 0])[rows // 10 % 10]
    units = np.stack([rows, rows + 1], axis=1)[:, None]
    stream = StateStream(MadeStates(states, [10] * (len(labels) // 10)), units, split == 0)
    task = Task(labels[:, None], labels, CLASSES)
    mixes = [Mix(first + 1) for first in range(LAYERS)]
    found = mixed(stream, task, mixes, split, rows // 10)
    return found.hits, found.weights[-1]


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("layer", [1, 3])
def test_weights_and_the_expected_layer_are_where_the_label_was_written(
    layer: int, kept: bool
) -> None:
    states, labels = drawn(1500, layer, kept=kept)
    hits, weights = ask(states, labels)
    shares = hits.sum(0) / 300
    assert (shares[:layer] < 0.45).all()
    assert (shares[layer:] > 0.9).all()
    found = expected_layer(hits.astype(float), hits.sum(0)[None].repeat(2, 0), range(LAYERS))
    assert found.value == pytest.approx(layer, abs=0.2 if not kept else 0.4)
    if kept:
        assert weights[:layer].sum() < 0.1
        assert weights[layer:] == pytest.approx(1 / (LAYERS - layer), abs=0.15)
    else:
        assert weights[layer] > 0.9
        assert weights @ np.arange(LAYERS) == pytest.approx(layer, abs=0.3)


def test_places_are_those_of_their_formulas() -> None:
    rng = np.random.default_rng(0)
    chances = np.array([0.3, 0.3, 0.5, 0.9])
    hits = rng.binomial(10, chances, size=(400, 4)).astype(float)
    halves = np.stack([hits[rng.permutation(400)[:200]].sum(0) for _ in range(5)])
    layers = [-1, 0, 1, 2]
    found = expected_layer(hits, halves, layers)
    gains = np.diff(hits.sum(0))
    assert found.value == pytest.approx((gains * layers[1:]).sum() / gains.sum())
    # A bootstrap of sentences has the same spread as the influence of each of them.
    draws = []
    for _ in range(2000):
        some = np.diff(hits[rng.integers(400, size=400)].sum(0))
        draws.append((some * layers[1:]).sum() / some.sum())
    alone = Place(found.value, found.influence, np.zeros(5), 400).estimate(level=0.95)
    assert alone.high - alone.value == pytest.approx(1.96 * np.std(draws), rel=0.08)
    both = found.estimate(level=0.95)
    assert both.low < alone.low < both.value < alone.high < both.high
    assert found.estimate(level=0.95, families=10).low < both.low

    weights = np.array([[0.25] * 4, [0, 0, 1, 0], [0, 0.5, 0.5, 0]])
    assert centre_of_gravity(weights, layers, 9).value == pytest.approx(0.5)
    uneven = unevenness(weights, 9)
    assert uneven.value == pytest.approx(0)
    assert uneven.halves == pytest.approx([np.log(4), np.log(2)])


def test_halves_scatter_as_new_samples_would() -> None:
    """Of 400 sentences, random halves tell how far another 400 would move the value."""
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(300, 400))
    told = [
        np.std([rng.choice(row, 200, replace=False).mean() for _ in range(8)], ddof=1)
        for row in truth
    ]
    assert np.mean(np.square(told)) == pytest.approx(np.var(truth.mean(1)), rel=0.15)


def test_without_a_sure_gain_no_layer_is_expected() -> None:
    hits = np.random.default_rng(0).binomial(10, 0.5, size=(100, 4)).astype(float)
    found = expected_layer(hits, hits[:5], range(4))
    assert np.isnan(found.value)
    assert np.isnan(found.estimate(level=0.95).low)
