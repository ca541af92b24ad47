"""Attentive probes: a word that tells is found among others; each as if alone; else the mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bertology.annotated.probe_questions import Question
from bertology.annotated.states import States
from bertology.train.probes import stepwise
from bertology.train.probes.attentive import AttentiveProbes
from bertology.train.probes.battery import Scores, probed
from bertology.train.probes.classifiers import Examples, Probe
from bertology.train.probes.stepwise import trained
from bertology.train.probes.streams import StateStream

LAYERS, WIDTH, CLASSES, EACH = 2, 12, 3, 8
MARK = CLASSES  # the dimension of marked words


class Made(States):
    """States that were not computed (layers, units, width): texts of eight words, in two blocks."""

    def __init__(self, values: np.ndarray) -> None:
        self._values, texts = values.astype(np.float16), values.shape[1] // EACH
        self.counts, self.there, self.folder = np.full(texts, EACH), np.ones(0, bool), Path()

    @property
    def block_sizes(self) -> list[int]:
        half = len(self.counts) // 2 * EACH
        return [half, len(self) - half]

    def block(self, number: int) -> Any:
        half = self.block_sizes[0]
        return self._values[:, half:] if number else self._values[:, :half]


def planted(texts: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A marked word of each text tells its label in the last layer; the others are large noise.

    One label of six is wrong, so that training has an end.
    """
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(LAYERS, texts, EACH, WIDTH))
    states[..., :CLASSES] *= 3
    states[-1, ..., MARK] *= 0.3
    labels, at, rows = rng.integers(0, CLASSES, texts), rng.integers(0, EACH, texts), range(texts)
    told = np.eye(CLASSES)[labels] * 3
    states[-1, rows, at, :CLASSES] = told
    states[-1, rows, at, MARK] += 3
    labels[::6] = rng.integers(0, CLASSES, len(labels[::6]))
    return states.reshape(LAYERS, -1, WIDTH), labels


def ask(states: np.ndarray, units: np.ndarray, labels: np.ndarray, **how: Any) -> Scores:
    rows = np.arange(len(labels))
    question = Question("planted", labels, np.roll(labels, 7)[None], CLASSES)
    return probed(Made(states), units, rows, [question], parts(labels), **how)


def parts(labels: np.ndarray) -> np.ndarray:
    return np.array([0, 0, 2, 0, 0, 1, 0, 2, 0, 0])[np.arange(len(labels)) % 10]


def share(found: Scores, labels: np.ndarray) -> np.ndarray:
    right: np.ndarray = found.hits[:, 0].sum(0) / (parts(labels) == 2).sum()
    return right


def spans(labels: np.ndarray, *, first: int = 0, end: int = EACH) -> np.ndarray:
    """Of each text, from one word to another."""
    start = EACH * np.arange(len(labels))
    return np.stack([start + first, start + end], axis=1)[:, None]


def test_the_word_that_tells_is_found_among_others() -> None:
    states, labels = planted(600)
    mean = share(ask(states, spans(labels), labels, whole=False), labels)
    found = ask(states, spans(labels), labels, attentive=True)
    own = share(found, labels)
    assert own[-1] > 0.75 > mean[-1] + 0.2
    assert max(own[0], mean[0]) < 0.52  # the other layer tells nothing
    assert found.code[0, 1] < 0.85 * found.code[0, 0]


def test_each_of_two_spans_has_its_own_weights() -> None:
    """The label is that of the first span's marked word; the second span has one too."""
    states, labels = planted(400)
    units = np.concatenate([spans(labels), np.roll(spans(labels), 1, axis=0)], axis=1)
    units[0, 1] = units[0, 0]
    half = len(labels) // 2
    units[half, 1] = units[half, 0]  # both spans of a pair are in one block
    mean = share(ask(states[1:], units, labels, whole=False), labels)
    own = share(ask(states[1:], units, labels, whole=False, attentive=True), labels)
    assert own[0] > 0.75 > mean[0] + 0.2


@pytest.mark.parametrize("seed", range(3))
def test_shuffled_labels_are_not_told(seed: int) -> None:
    states, labels = planted(400, seed=seed)
    mixed = np.random.default_rng(seed).permutation(labels)
    own = share(ask(states, spans(mixed), mixed, whole=False, attentive=True), mixed)
    assert (own < 1 / CLASSES + 3 * np.sqrt(2 / 9 / 80)).all()


def test_spans_of_one_word_give_what_means_give() -> None:
    states, labels = planted(200)
    units = spans(labels, end=1)
    states.reshape(LAYERS, -1, EACH, WIDTH)[1, range(200), 0, labels] += 2
    mean, own = (ask(states, units, labels, attentive=which) for which in (False, True))
    assert share(mean, labels)[-1] > 0.5
    assert (mean.hits == own.hits).all()
    assert (mean.control == own.control).all()
    assert own.code == pytest.approx(mean.code, rel=1e-4)


def test_each_probe_is_a_plain_one_trained_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights after some steps are those that PyTorch's own slopes and Adam give."""
    monkeypatch.setattr(stepwise, "_EPOCHS", 6)
    torch.manual_seed(0)
    n, longest, decay = 40, 5, 1e-3
    there = torch.arange(longest) < torch.randint(1, longest + 1, (n, 2, 1))
    states = torch.randn(LAYERS, n, 2, longest, WIDTH) * there[..., None]
    labels = torch.randint(-1, CLASSES, (n, 2))  # not all are asked
    given = Examples(states, labels, there)
    made = AttentiveProbes(
        [Probe(CLASSES)] * 2, [0, 1], shape=(LAYERS, 3 * WIDTH), spans=2, weighed=[True, True]
    )
    for weight in made.weights[1:]:
        weight.normal_().mul_(0.3)
    start = [weight.clone() for weight in made.weights]
    going, decays = torch.ones(LAYERS, 2, dtype=torch.bool), torch.full((LAYERS, 2), decay)
    trained([made], [decays], [going], lambda: [given], lambda: [given])
    assert all((weight != of).any() for weight, of in zip(made.weights, start, strict=True))
    for layer in range(LAYERS):
        for probe in range(2):
            own = [weight[layer, probe].clone().requires_grad_() for weight in start]
            vectors, weights, bias = own
            adam = torch.optim.Adam(own, lr=made.rate)
            for _ in range(6):
                scores = (states[layer] * vectors[:, None]).sum(-1)
                shares = scores.masked_fill(~there, -torch.inf).softmax(-1)
                one, other = (shares[..., None] * states[layer]).sum(2).unbind(1)
                outputs = torch.cat([one, other, one * other], 1) @ weights + bias
                loss = torch.nn.functional.cross_entropy(
                    outputs, labels[:, probe], ignore_index=-1
                ) + decay / 2 * (vectors.square().sum() + weights.square().sum())
                adam.zero_grad()
                loss.backward()
                adam.step()
            for weight, alone in zip(made.weights, own, strict=True):
                assert torch.allclose(weight[layer, probe], alone, atol=1e-4)


def test_words_are_padded_and_long_spans_come_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states, labels = planted(20)
    made, rng = Made(states), np.random.default_rng(0)
    units = spans(labels)
    units[..., 1] -= rng.integers(0, EACH, (20, 1))
    stream = StateStream(made, units, np.ones(20, bool))
    monkeypatch.setattr("bertology.train.probes.streams._NUMBERS", 3 * EACH * LAYERS * WIDTH)
    means = torch.zeros(LAYERS, 20, WIDTH)
    for rows, one in stream.examples(np.ones(20, bool), torch.zeros(20, 1), 20):
        means[:, rows] = one.states
    seen = []
    for mix in (None, torch.Generator().manual_seed(0)):
        for rows, one in stream.examples(
            np.ones(20, bool), torch.zeros(20, 1), 16, words=True, mix=mix
        ):
            seen += rows.tolist()
            values, _, there = one
            assert there is not None
            assert values.numel() <= 3 * EACH * LAYERS * WIDTH
            assert (there.sum(2).numpy() == stream.lengths[rows]).all()
            assert there.shape[2] == stream.lengths[rows].max()
            mean = values.sum(3) / there.sum(2)[..., None]
            assert torch.allclose(mean[:, :, 0], means[:, rows], atol=1e-5)
    assert sorted(seen) == sorted([*range(20)] * 2)


def test_hidden_units_take_means() -> None:
    states, labels = planted(20)
    with pytest.raises(ValueError, match="means of spans"):
        ask(states, spans(labels), labels, hidden=4, attentive=True)
