"""Planes of a word's occurrences: exact, the same each time, and senses that are apart stay so."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from bertology.annotated import sense_planes as planes
from bertology.errors import CapabilityError, UnknownNameError


def two_senses(n: int = 40, width: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """States around two directions."""
    rng = np.random.default_rng(0)
    middle = rng.normal(size=(2, width))
    senses = np.arange(n) % 2
    states = middle[senses] + 0.2 * rng.normal(size=(n, width))
    return states * rng.uniform(0.5, 5, (n, 1)), senses


def test_principal_components_are_those_of_directions() -> None:
    states, _ = two_senses()
    unit = states / np.linalg.norm(states, axis=1, keepdims=True)
    expected = PCA(2).fit_transform(unit)
    found = planes.plane_of(states)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)
    # The side of an axis does not depend on the order of the occurrences.
    np.testing.assert_allclose(planes.plane_of(states[::-1])[::-1], found, atol=1e-9)


@pytest.mark.parametrize("method", ["pca", "t-sne"])
def test_senses_that_are_apart_are_apart_in_the_plane_each_time(method: str) -> None:
    states, senses = two_senses()
    found = planes.plane_of(states, method)
    np.testing.assert_array_equal(found, planes.plane_of(states, method))
    distances = np.linalg.norm(found[:, None] - found[None], axis=-1) + 1e9 * np.eye(len(found))
    assert (senses[distances.argmin(axis=1)] == senses).all()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_occurrences_have_a_plane_too(n: int) -> None:
    states, _ = two_senses()
    for method in ("pca", "t-sne"):
        found = planes.plane_of(states[:n], method)
        assert found.shape == (n, 2)
        assert np.isfinite(found).all()


def test_methods_that_are_not_there_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    states, _ = two_senses()
    with pytest.raises(UnknownNameError, match="pca"):
        planes.plane_of(states, "mds")
    monkeypatch.setitem(__import__("sys").modules, "umap", None)
    with pytest.raises(CapabilityError, match="umap-learn"):
        planes.plane_of(states, "umap")
    monkeypatch.setattr(planes, "find_spec", lambda name: None)
    assert planes.available_methods() == ("pca", "t-sne")


def test_long_texts_are_cut_between_words_around_the_word() -> None:
    text = "one two three four five bank six seven eight nine ten"
    at = text.index("bank")
    short, start, end = planes.shortened(text, at, at + 4, around=11)
    assert short == "… four five bank six seven …"
    assert short[start:end] == "bank"
    assert planes.shortened("the bank", 4, 8) == ("the bank", 4, 8)
    whole, start, end = planes.shortened("x" * 300 + "bank", 300, 304)
    assert whole[start:end] == "bank"
