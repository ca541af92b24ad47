"""Repairs of vectors: what each of them does, beside scikit-learn's ways to do it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from bertology.errors import UnknownNameError
from bertology.stats.vector_repairs import REPAIRS, Learnt, dominating, shrinkage


@pytest.fixture
def vectors() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(4000, 12)) @ rng.normal(size=(12, 12)) + rng.normal(size=12)


def learn(name: str, vectors: np.ndarray, **how: int) -> Any:
    return Learnt(vectors, **how).repair(name)


def cosines(x: np.ndarray) -> np.ndarray:
    units = x / np.linalg.norm(x, axis=1, keepdims=True)
    return units @ units.T


def test_centring_undoes_a_common_vector_exactly() -> None:
    rng = np.random.default_rng(1)
    clean = rng.normal(size=(50, 8))
    clean -= clean.mean(axis=0)
    spoilt = clean + 100 * rng.normal(size=8)
    assert cosines(spoilt).mean() > 0.99
    assert cosines(learn("centred", spoilt)(spoilt)) == pytest.approx(cosines(clean), abs=1e-9)
    assert learn("none", spoilt)(spoilt) is spoilt


def test_dominating_dimensions_are_found_and_gone() -> None:
    rng = np.random.default_rng(2)
    clean = rng.normal(size=(100, 20))
    spoilt = clean.copy()
    spoilt[:, 7] += 60
    spoilt[:, 3] -= 40
    assert dominating(spoilt)[:2].tolist() == [7, 3]
    found = learn("dominating-removed", spoilt, dimensions=2)(spoilt)
    assert cosines(found) == pytest.approx(cosines(np.delete(clean, [3, 7], axis=1)), abs=1e-9)
    units = spoilt / np.linalg.norm(spoilt, axis=1, keepdims=True)
    pairs = units[:, None, :] * units[None, :, :]
    pairs[np.arange(100), np.arange(100)] = 0
    assert dominating(spoilt).tolist() == np.argsort(-pairs.sum((0, 1))).tolist()


def test_whitening_gives_the_identity() -> None:
    rng = np.random.default_rng(3)
    turned = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    vectors = rng.normal(size=(20000, 12)) * np.linspace(1, 2, 12) @ turned + 5
    found = learn("whitened", vectors)(vectors)
    assert np.cov(found.T, bias=True) == pytest.approx(np.eye(12), abs=0.01)
    assert found.mean(axis=0) == pytest.approx(0, abs=1e-9)
    few = vectors[:6]  # fewer than dimensions: the plain covariance has no inverse
    assert np.isfinite(learn("whitened", few)(vectors)).all()


def test_others_do_the_same(vectors: np.ndarray) -> None:
    learnt, scored = vectors[:300], vectors[300:]
    top = PCA(n_components=2).fit(learnt)
    expected = (scored - top.mean_) - top.inverse_transform(top.transform(scored)) + top.mean_
    assert learn("top-removed", learnt, components=2)(scored) == pytest.approx(expected, abs=1e-9)
    expected = StandardScaler().fit(learnt).transform(scored)
    assert learn("standardised", learnt)(scored) == pytest.approx(expected, abs=1e-9)
    for size in (8, 300):
        some = vectors[:size]
        covariance, expected = ledoit_wolf(some)
        share, sphere = shrinkage(some)
        assert share == pytest.approx(expected, abs=1e-9)
        plain = np.cov(some.T, bias=True)
        shrunk = (1 - share) * plain + share * sphere * np.eye(12)
        assert shrunk == pytest.approx(covariance, abs=1e-9)
        white = learn("whitened", some)(some)
        inverse = (some - some.mean(0)) @ np.linalg.inv(covariance) @ (some - some.mean(0)).T
        assert white @ white.T == pytest.approx(inverse, rel=1e-6, abs=1e-6)


def test_dimensions_without_a_spread_are_no_trouble(vectors: np.ndarray) -> None:
    vectors = vectors.copy()
    vectors[:, 4] = 2.0
    for name in REPAIRS:
        found = learn(name, vectors, components=50, dimensions=50)(vectors)
        assert np.isfinite(found).all()
        assert np.abs(found).max() > 0
    assert np.abs(learn("standardised", vectors)(vectors)[:, 4]).max() == 0
    with pytest.raises(UnknownNameError, match="whitened"):
        learn("whitend", vectors)
