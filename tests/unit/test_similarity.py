"""CKA, RV and CCA: equal to plain formulas, exact where the answer is known, 0 where it is 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bertology.stats import mean_interval
from bertology.stats.similarity import (
    alikeness_of,
    cka,
    cka_of_texts,
    held_out_cca,
    own_products,
    paired_cka,
    paired_products,
    samples_of,
)

Floats = NDArray[np.float64]
SEEDS = 100


def of_texts(x: Floats, y: Floats, texts: Any = None, *, seed: int = 0) -> Floats:
    """(text, layer, other layer) of two sets of states; each word is a text if nothing is said."""
    texts = np.arange(x.shape[1]) if texts is None else texts
    samples = samples_of(texts, seed=(seed,))
    found = alikeness_of(x, y, texts, samples=samples, seed=(seed,))
    own = (own_products(side, texts, samples=samples)[0] for side in (x, y))
    return cka_of_texts(found.products, *own)


def plain_hsic(x: Floats, y: Floats) -> float:
    """Song et al. (2012), formula 5, term by term."""
    k, o = x @ x.T, y @ y.T
    np.fill_diagonal(k, 0)
    np.fill_diagonal(o, 0)
    n, one = len(k), np.ones(len(k))
    whole = np.trace(k @ o) + (one @ k @ one) * (one @ o @ one) / ((n - 1) * (n - 2))
    return float((whole - 2 / (n - 2) * (one @ k @ o @ one)) / (n * (n - 3)))


def test_cka_is_the_full_formula() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 50, 12)) + 2.0
    y = rng.standard_normal((2, 50, 7)) + x[:2, :, :7]
    expected = [
        [plain_hsic(a, b) / np.sqrt(plain_hsic(a, a) * plain_hsic(b, b)) for b in y] for a in x
    ]
    assert np.allclose(of_texts(x, y).mean(0), expected, atol=1e-10)
    texts = np.arange(50)
    rows = paired_products(
        (x[:2], y), ((0, 1), (0, 0), (1, 1)), texts, samples=samples_of(texts), size=50
    )
    assert rows.sum(0)[0, 1] == pytest.approx(50 * plain_hsic(x[1], y[1]))
    assert rows.sum(0)[1, 1] == pytest.approx(50 * plain_hsic(x[1], x[1]))
    value, influence = paired_cka(*np.moveaxis(rows, 1, 0))
    assert np.allclose(value, np.diagonal(expected))
    assert np.allclose(influence + value, np.diagonal(of_texts(x[:2], y), axis1=1, axis2=2))


def test_groups_of_texts_lose_no_word() -> None:
    """Two texts of a group that stand in one sample are both counted."""
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, 40, 6)), rng.standard_normal((2, 40, 6))
    texts = np.arange(40)
    samples = samples_of(texts)
    alone, grouped = (
        alikeness_of(x, y, of, samples=samples).products for of in (texts, texts // 4)
    )
    assert np.allclose(grouped, alone.reshape(10, 4, 2, 2).sum(1))
    alone, grouped = (own_products(x, of, samples=samples)[0] for of in (texts, texts // 4))
    assert np.allclose(grouped, alone.reshape(10, 4, 2).sum(1))


def test_rv_is_that_of_the_literature() -> None:
    """Robert and Escoufier (1976) by covariances, Smilde et al. (2009) without diagonals."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, 30, 8))
    y = rng.standard_normal((1, 30, 5)) + x[:, :, :5]
    texts = np.arange(30)
    samples = samples_of(texts)
    found = alikeness_of(x, y, texts, samples=samples).plain
    ours, theirs = (own_products(side, texts, samples=samples)[1] for side in (x, y))
    a, b = (side[0] - side[0].mean(0) for side in (x, y))
    sizes = [np.square(m).sum() for m in (a.T @ b, a.T @ a, b.T @ b)]
    rv = sizes[0] / np.sqrt(sizes[1] * sizes[2])
    assert cka(found[0], ours[0], theirs[0])[0, 0] == pytest.approx(rv)
    k, o = a @ a.T, b @ b.T
    np.fill_diagonal(k, 0)
    np.fill_diagonal(o, 0)
    modified = (k * o).sum() / np.sqrt((k * k).sum() * (o * o).sum())
    assert cka(found[1], ours[1], theirs[1])[0, 0] == pytest.approx(modified)
    assert rv > modified + 0.05  # few words in many dimensions: the plain one is too high


def test_samples_have_one_word_of_a_text() -> None:
    texts = np.repeat(np.arange(9), [3, 1, 4, 2, 3, 3, 5, 3, 0])
    samples = samples_of(texts, seed=(3,))
    assert all(np.unique(texts[s]).size == s.size >= 4 for s in samples)
    used = np.concatenate(samples)
    assert np.unique(used).size == used.size  # no word twice; three samples are large enough
    assert [s.size for s in samples] == [8, 7, 6]


def test_a_rotated_and_scaled_copy_is_the_same() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((2, 120, 6)) * np.linspace(3, 0.5, 6)
    turned = 3.0 * x @ np.linalg.qr(rng.standard_normal((6, 6)))[0] - 5.0
    texts = np.repeat(np.arange(40), 3)
    assert np.allclose(np.diag(of_texts(x, turned, texts).mean(0)), 1, atol=1e-12)
    found, k = held_out_cca(x, turned, texts, components=4)
    assert k == 4
    assert np.allclose(np.diag(found.mean(0)), 1, atol=1e-9)
    mixed = x @ rng.standard_normal((6, 6))  # CCA asks for any invertible map, CKA does not
    assert np.allclose(np.diag(held_out_cca(x, mixed, texts, components=6)[0].mean(0)), 1)
    assert of_texts(x, mixed, texts).mean(0)[0, 0] < 0.9


def test_unrelated_states_have_nothing_in_common() -> None:
    """Of 100 seeds at least 95 have 0 in their intervals; RV of the same words is near a half."""
    misses, plain, k = np.zeros(2), [], 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        texts = np.repeat(np.arange(40), 3)
        x, y = (rng.standard_normal((1, 120, width)) for width in (48, 32))
        values = [of_texts(x, y, texts, seed=seed)]
        found, k = held_out_cca(x, y, texts, components=6)
        values.append(found)
        misses += [not _around(v[:, 0, 0], 0.0) for v in values]
        samples = samples_of(texts)
        rv = alikeness_of(x, y, texts, samples=samples).plain[0]
        ours, theirs = (own_products(side, texts, samples=samples)[1][0] for side in (x, y))
        plain.append(cka(rv, ours, theirs)[0, 0])
    assert k == 6
    assert (misses <= 5).all()
    assert np.mean(plain) > 0.4


def test_a_known_mix_has_its_known_value() -> None:
    spread = np.linspace(2, 0.3, 20) ** 2
    truth = (0.25 * spread**2).sum() / np.sqrt((spread**2).sum() * ((0.25 * spread + 1) ** 2).sum())
    found, covered = [], 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((1, 200, 20)) * np.sqrt(spread)
        y = 0.5 * x + rng.standard_normal((1, 200, 20))
        values = of_texts(x, y, np.repeat(np.arange(100), 2), seed=seed)[:, 0, 0]
        found.append(values.mean())
        covered += _around(values, truth)
    assert np.mean(found) == pytest.approx(truth, abs=0.01)
    assert covered >= 90


def test_canonical_correlations_of_a_known_mix() -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((1, 4000, 4))
    y = 0.75 * x + np.sqrt(1 - 0.75**2) * rng.standard_normal((1, 4000, 4))
    found, _ = held_out_cca(x, y, np.arange(4000), components=4)
    assert found.mean() == pytest.approx(0.75, abs=0.02)


def test_words_in_another_order_have_nothing_in_common() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 60, 10))
    texts, sums = np.arange(60), []
    for seed in range(200):
        found = alikeness_of(x, x, texts, samples=[texts], seed=(seed,))
        sums.append(found.shuffled[0, 0] / found.products.sum())
    assert np.mean(sums) == pytest.approx(0, abs=4 * np.std(sums) / np.sqrt(200))
    assert np.std(sums) < 0.05


def test_cca_is_that_of_scikit_learn() -> None:
    """Directions found on one half and correlated on the other, by another implementation."""
    cross = pytest.importorskip("sklearn.cross_decomposition")
    rng = np.random.default_rng(4)
    x = rng.standard_normal((1, 400, 4)) @ rng.standard_normal((4, 4))
    y = x @ rng.standard_normal((4, 4)) + 0.7 * rng.standard_normal((1, 400, 4))
    texts, worth = np.arange(400), []
    for half in (0, 1):
        scored = texts % 2 == half
        model = cross.CCA(n_components=4, scale=False, max_iter=5000, tol=1e-12)
        model.fit(x[0, ~scored], y[0, ~scored])
        a, b = model.transform(x[0, scored], y[0, scored])
        worth.append(np.mean([np.corrcoef(a[:, i], b[:, i])[0, 1] for i in range(4)]))
    found, k = held_out_cca(x, y, texts, components=4)
    assert k == 4
    assert found.mean() == pytest.approx(np.mean(worth), abs=1e-4)


def test_few_words_have_fewer_components_or_none() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 32, 30))
    assert held_out_cca(x, x, np.arange(32), components=20)[1] == 3
    few, k = held_out_cca(x[:, :8], x[:, :8], np.arange(8), components=20)
    assert k == 0
    assert np.isnan(few).all()


def _around(values: Floats, truth: float) -> bool:
    found = mean_interval(values)
    return found.low <= truth <= found.high
