"""Probes: those of scikit-learn, each as if alone; codes as long as theory says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from bertology.annotated.probe_questions import Question
from bertology.annotated.states import States
from bertology.train.probes import battery
from bertology.train.probes.battery import probed
from bertology.train.probes.classifiers import Examples, Probe
from bertology.train.probes.linear import LinearProbes, descended
from bertology.train.probes.streams import StateStream

LAYERS, WIDTH, CLASSES = 4, 16, 5


class Made(States):
    """States that were not computed: (layers, units, width), in blocks of 100 texts of ten."""

    def __init__(self, values: np.ndarray) -> None:
        self._values, texts = values.astype(np.float16), values.shape[1] // 10
        self.counts, self.there = np.full(texts, 10), np.ones(10 * texts, bool)
        self.folder, self._each = Path(), 1000

    @property
    def block_sizes(self) -> list[int]:
        whole, rest = divmod(len(self), self._each)
        return [self._each] * whole + ([rest] if rest else [])

    def block(self, number: int) -> Any:
        return self._values[:, number * self._each : (number + 1) * self._each]


def drawn(
    n: int, *, seed: int = 0, sharp: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States whose layers tell the label more and more, the labels, and log p of each class."""
    rng = np.random.default_rng(seed)
    told, weights = rng.normal(size=(n, WIDTH)), rng.normal(size=(WIDTH, CLASSES)) * sharp
    logits = told @ weights
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    labels = np.array([rng.choice(CLASSES, p=np.exp(row)) for row in log_p])
    clear = np.array([0.0, 0.3, 0.6, 1.0])[:, None, None]
    noise = rng.normal(size=(LAYERS, n, WIDTH))
    return clear * told + (1 - clear) * noise, labels, log_p


def _words(rows: np.ndarray) -> np.ndarray:
    """Spans of one word."""
    return np.stack([rows, rows + 1], axis=1)[:, None]


def ask(states: np.ndarray, labels: np.ndarray, **how: Any) -> Any:
    n = states.shape[1]
    shifts = range(7, 7 + how.get("seeds", 1))
    control = np.stack([np.roll(labels, shift) for shift in shifts])
    question = Question("planted", labels, control, CLASSES)
    rows = np.arange(n)
    split = np.array([0, 0, 2, 0, 0, 1, 0, 2, 0, 0])[rows // 10 % 10]
    found = probed(Made(states), _words(rows), rows // 10, [question], split, **how)
    return found, split


@pytest.mark.parametrize("layer", range(1, LAYERS))
def test_linear_probes_are_those_of_scikit_learn(layer: int, planted: Any) -> None:
    states, labels, found, split = planted
    rounded = states[layer].astype(np.float16).astype(np.float64)
    scaler = StandardScaler().fit(rounded[split == 0])
    train, test = (scaler.transform(rounded[split == part]) for part in (0, 2))
    alone = LogisticRegression(C=1 / (1e-3 * len(train)), max_iter=1000)
    score = alone.fit(train, labels[split == 0]).score(test, labels[split == 2])
    assert found.hits[:, 0, layer].sum() / (split == 2).sum() == pytest.approx(score, abs=0.012)


@pytest.fixture(scope="module")
def planted() -> Any:
    states, labels, _ = drawn(3000)
    found, split = ask(states, labels)
    return states, labels, found, split


def test_a_layer_that_tells_nothing_is_at_chance_and_controls_are(planted: Any) -> None:
    _, labels, found, split = planted
    tested = (split == 2).sum()
    usual = np.bincount(labels[split == 2]).max() / tested
    shares = found.hits[:, 0].sum(0) / tested
    assert shares[0] < usual + 0.05
    assert (np.diff(shares) > 0.05).all()
    assert (found.control[:, 0].sum(0) / tested < usual + 0.05).all()


def test_codes_are_as_long_as_theory_says() -> None:
    """Where states tell the labels' distribution, a label takes its entropy; else the prior's."""
    states, labels, log_p = drawn(20_000, sharp=0.8)
    found, split = ask(states[[0, 3]], labels)
    train = split == 0
    told = -log_p[np.arange(len(labels)), labels][train].sum() / np.log(2)
    shares = np.bincount(labels[train]) / train.sum()
    nothing = -(np.log2(shares) * shares).sum() * train.sum()
    assert found.code[0, 1] == pytest.approx(told, rel=0.05)
    assert found.code[0, 0] == pytest.approx(nothing, rel=0.05)


def test_hidden_units_tell_what_lines_cannot() -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(1, 1000, 2))
    labels = ((states[0, :, 0] > 0) ^ (states[0, :, 1] > 0)).astype(np.int64)
    line, split = ask(states, labels, whole=False)
    bent, _ = ask(states, labels, whole=False, hidden=16)
    shares = [of.hits.sum() / (split == 2).sum() for of in (line, bent)]
    assert shares[0] < 0.7 < 0.9 < shares[1]


def fit(
    states: np.ndarray, columns: list[np.ndarray], precisions: list[float], probe: Probe
) -> torch.Tensor:
    """Outputs (L, n, P, K) of linear probes with these labels and penalties."""
    x, labels = torch.from_numpy(states).float(), torch.from_numpy(np.stack(columns, 1))
    given = Examples(x, labels)
    shape = (len(x), x.shape[2])
    made = LinearProbes([probe] * len(columns), range(len(columns)), shape=shape)
    going = torch.ones(len(x), len(columns), dtype=torch.bool)
    sizes = torch.tensor(precisions).expand(len(x), -1)
    counts = torch.from_numpy((np.stack(columns, 1) >= 0).sum(0))
    descended([made], [sizes], [going], lambda: [given], steps=800, counts=counts)
    return made.outputs(given)


def test_each_probe_is_as_if_it_were_alone() -> None:
    """Other tasks, penalties and labels beside it change nothing."""
    states, labels, _ = drawn(400)
    states = states[2:]
    alone = fit(states, [labels], [1.0], Probe(CLASSES))
    others = [np.where(labels > 2, -1, labels), labels % 2]
    beside = fit(states, [labels, *others], [1.0, 40.0, 0.1], Probe(CLASSES))
    assert torch.allclose(alone[:, :, 0], beside[:, :, 0], atol=1e-3)


def test_what_is_told_is_what_scikit_learn_tells() -> None:
    """Probabilities of the same penalty, and numbers; not only their share of right answers."""
    states, labels, _ = drawn(600)
    precisions = [1000.0, 10.0, 0.1]
    found = fit(states, [labels] * 3, precisions, Probe(CLASSES)).softmax(3).numpy()
    numbers = (states[3, :, :2].sum(1) + 5).astype(np.float32)
    told = fit(states, [numbers] * 3, precisions, Probe(0, numbers=True))[..., 0].numpy()
    for probe, precision in enumerate(precisions):
        for layer, x in enumerate(states):
            alone = LogisticRegression(C=1 / precision, max_iter=1000).fit(x, labels)
            assert np.abs(found[layer, :, probe] - alone.predict_proba(x)).mean() < 0.005
            line = Ridge(alpha=precision).fit(x, numbers)
            assert np.abs(told[layer, :, probe] - line.predict(x)).max() < 0.01


def test_numbers_are_scored_by_the_variance_that_is_told() -> None:
    states, *_ = drawn(3000)
    rng = np.random.default_rng(1)
    numbers = 40 + 3 * states[3, :, 0] + 3 * rng.normal(size=3000)  # half of it is noise
    numbers[::7] = np.nan  # not asked
    found, split = ask(states, numbers)
    asked = (split == 2) & ~np.isnan(numbers)
    shares = found.hits[:, 0].sum(0) / asked.sum()
    assert abs(shares[0]) < 0.12  # the variance is that of other sentences
    assert shares[3] == pytest.approx(0.5, abs=0.1)
    assert np.isnan(found.code).all()


@pytest.mark.parametrize("seed", range(5))
def test_shuffled_labels_are_told_by_no_layer(seed: int) -> None:
    states, labels, _ = drawn(1000, seed=seed)
    mixed = np.random.default_rng(seed).permutation(labels)
    found, split = ask(states, mixed, whole=False)
    tested = (split == 2).sum()
    usual = np.bincount(mixed[split == 0]).argmax()
    base = (mixed[split == 2] == usual).mean()
    assert (found.hits[:, 0].sum(0) / tested < base + 3 * np.sqrt(base * (1 - base) / tested)).all()


def test_seeds_differ_in_control_tasks_and_orders_not_in_the_best_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(battery, "_STEPS", (20, 80))  # how good probes are is not asked
    states, labels, _ = drawn(400)
    states = states[1:3]
    one, _ = ask(states, labels)
    two, _ = ask(states, labels, seeds=2)
    assert (one.hits == two.hits).all()
    assert two.by_seed.shape == (2, 1, len(states), 2)
    assert (two.by_seed[0] == one.by_seed[0]).all()
    assert (two.by_seed.std(0) > 0).all()
    assert two.code == pytest.approx(two.by_seed[..., 1].mean(0))
    again, _ = ask(states, labels, seeds=2)
    assert (again.control == two.control).all()


def test_pairs_are_both_words_and_their_product() -> None:
    states, *_ = drawn(40)
    units = np.array([[[0, 1], [3, 4]], [[12, 13], [15, 16]]])
    stream = StateStream(Made(states), units, np.array([True, True]))
    labels = torch.tensor([[1], [0]])
    ((rows, examples),) = stream.examples(np.array([True, True]), labels, 8)
    assert rows.tolist() == [0, 1]
    assert examples.states.shape == (LAYERS, 2, 3 * WIDTH) == (stream.layers, 2, stream.width)
    a, b, product = examples.states[2, 1].split(WIDTH)
    assert torch.allclose(a * b, product)


def test_a_span_is_the_mean_of_its_words_and_standardised() -> None:
    states, *_ = drawn(200)
    made = Made(states)
    rng = np.random.default_rng(1)
    first = rng.integers(0, 7, 60) + 10 * rng.integers(0, 20, 60)  # none leaves its text
    units = np.stack([first, first + rng.integers(1, 4, 60)], axis=1)[:, None]
    train = np.arange(60) < 40
    stream = StateStream(made, units, train)
    values = made.block(0).astype(np.float64)
    pooled = np.stack([values[:, a:b].mean(1) for a, b in units[:, 0]], axis=1)
    known = np.unique(units[train][:, 0], axis=0)
    own = np.stack([values[:, a:b].mean(1) for a, b in known], axis=1)
    expected = (pooled - own.mean(1, keepdims=True)) / own.std(1, keepdims=True)
    ((rows, examples),) = stream.examples(np.ones(60, bool), torch.zeros(60, 1), 60)
    assert np.allclose(examples.states, expected[:, rows], atol=1e-4)
