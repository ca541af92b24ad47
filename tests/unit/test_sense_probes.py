"""Neighbours and clusters of a word's occurrences are those of scikit-learn, layer by layer."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score, v_measure_score
from sklearn.neighbors import KNeighborsClassifier

from bertology.train.probes import neighbours
from bertology.train.probes.clusters import adjusted_rand, cluster_scores, k_means, v_measure
from bertology.train.probes.neighbours import Occurrences, sense_votes

KS = (1, 3, 7)


def made(n: int = 260, layers: int = 3, *, seed: int = 0) -> tuple[np.ndarray, Occurrences]:
    """States without ties, lemmas from one occurrence to many, three folds."""
    rng = np.random.default_rng(seed)
    lemmas = np.minimum(rng.geometric(0.25, n) - 1, 9)
    of = Occurrences(
        lemmas, rng.integers(0, 3, n), rng.integers(0, 3, n), np.ones(n, bool), np.ones(n, bool)
    )
    return rng.normal(size=(layers, n, 8)).astype(np.float32), of


def expected(states: np.ndarray, of: Occurrences, k: int) -> np.ndarray:
    """By scikit-learn's neighbours, lemma by lemma and fold by fold.

    A counter names what it met first, so the nearest, among senses that are named equally often.
    """
    found = np.full(states.shape[:2], -1)
    for layer, of_layer in enumerate(states):
        for lemma in np.unique(of.lemmas):
            for fold in np.unique(of.folds):
                asked = of.asked & (of.lemmas == lemma) & (of.folds == fold)
                known = of.known & (of.lemmas == lemma) & (of.folds != fold)
                if not asked.any() or not known.any():
                    continue
                near = KNeighborsClassifier(min(k, known.sum()), metric="cosine")
                near.fit(of_layer[known], of.senses[known])
                nearest = near.kneighbors(of_layer[asked], return_distance=False)
                said = of.senses[known][nearest].tolist()
                found[layer, asked] = [Counter(row).most_common(1)[0][0] for row in said]
    return found


@pytest.mark.parametrize("room", [200, 1 << 20], ids=["in pieces", "at once"])
def test_neighbours_are_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    monkeypatch.setitem(neighbours._ROOM, "cpu", room)
    states, of = made()
    votes = sense_votes(states, of, KS)
    for at, k in enumerate(KS):
        np.testing.assert_array_equal(votes[at], expected(states, of, k))


def test_one_part_may_teach_and_another_be_asked() -> None:
    states, of = made(seed=1)
    test = of.folds == 0
    split = Occurrences(of.lemmas, of.senses, (~test).astype(np.int64), test, ~test)
    votes = sense_votes(states, split, (3, 3, 1000))
    np.testing.assert_array_equal(votes[0], expected(states, split, 3))
    np.testing.assert_array_equal(votes[0], votes[1])
    np.testing.assert_array_equal(votes[2], expected(states, split, 1000))
    assert (votes[:, :, ~test] == -1).all()


def test_equally_many_votes_go_to_the_nearest_whatever_senses_are_called() -> None:
    states = np.array([[[1.0, 0], [1, 0.1], [1, 0.5], [1, 0.6], [1, 0.2]]], np.float32)
    folds = np.array([0, 1, 1, 1, 1])
    for senses in ([0, 1, 0, 0, 1], [1, 0, 1, 1, 0]):
        of = Occurrences(
            np.zeros(5, np.int64), np.array(senses), folds, folds == 0, np.ones(5, bool)
        )
        assert sense_votes(states, of, (1, 2, 4))[:, 0, 0].tolist() == [senses[1]] * 3


def test_what_is_equally_near_does_not_go_by_the_order_of_the_file() -> None:
    """As of the input: all occurrences of a word at one place have the same state."""
    n = 2000
    senses = np.repeat([0, 1], n // 2)  # sorted by sense, as files may be
    lemmas, test = np.arange(n) % 100, np.arange(n) % 3 == 0
    of = Occurrences(lemmas, senses, (~test).astype(np.int64), test, ~test)
    votes = sense_votes(np.ones((1, n, 4), np.float32), of, (1,))[0, 0, test]
    said = [votes[lemmas[test] == lemma].mean() for lemma in range(100)]
    assert 0.35 < np.mean(said) < 0.65


def clustered(n: int = 40) -> tuple[torch.Tensor, np.ndarray]:
    """Layer 0 is noise, layer 1 has three senses that are far apart."""
    rng = np.random.default_rng(2)
    senses = np.arange(n) % 3
    middle = np.eye(3, 6)[senses] * 10
    states = np.stack([rng.normal(size=(n, 6)), middle + rng.normal(size=(n, 6))])
    return torch.from_numpy(states), senses


def test_scores_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    for _ in range(5):
        a, b = rng.integers(0, 3, 30), rng.integers(0, 4, 30)
        table = torch.from_numpy(np.eye(3)[a].T @ np.eye(4)[b])
        assert float(adjusted_rand(table)) == pytest.approx(adjusted_rand_score(a, b))
        assert float(v_measure(table)) == pytest.approx(v_measure_score(a, b))
    states, senses = clustered()
    found = cluster_scores(states, senses)
    for layer in range(2):
        exact = silhouette_score(states[layer].numpy(), senses, metric="cosine")
        assert found.own[2, layer] == pytest.approx(exact, abs=1e-5)


def test_clusters_are_those_of_k_means_and_the_best_of_their_starts() -> None:
    states, senses = clustered(60)
    unit = (states / states.norm(dim=-1, keepdim=True)).float()
    labels = k_means(unit, 3, np.random.default_rng(0).random((8, 3))).numpy()
    for layer in range(2):
        points = unit[layer].double().numpy()
        other = KMeans(3, n_init=50, random_state=0).fit(points)
        inertia = sum(
            ((points[labels[layer] == c] - points[labels[layer] == c].mean(0)) ** 2).sum()
            for c in range(3)
        )
        assert inertia <= other.inertia_ * (1 + (0.05 if layer == 0 else 1e-6))
    assert adjusted_rand_score(senses, labels[1]) == 1


def test_planted_senses_are_found_and_noise_scores_as_dealt_senses_do() -> None:
    states, senses = clustered(60)
    found = cluster_scores(states, senses, deals=50)
    np.testing.assert_allclose(found.own[:2, 1], 1)
    assert found.own[2, 1] > 0.6
    excess = found.own - found.dealt
    assert np.abs(excess[:, 0]).max() < 0.15
    assert (excess[:, 1] > 0.5).all()
