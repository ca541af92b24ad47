"""Spanning trees of many matrices at once are those that networkx finds one by one."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bertology.annotated.trees.extraction import SPANNING, spanning_trees
from bertology.annotated.trees.spanning import Arborescences, undirected_trees
from bertology.errors import ParameterError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def total(scores: Floats, heads: Ints) -> float:
    return float(sum(scores[word, head] for word, head in enumerate(heads) if head >= 0))


def directed(scores: Floats, root: int | None = None) -> tuple[float, list[int]]:
    """By networkx: the sum of scores, and the head of each word."""
    n, graph = len(scores), nx.DiGraph()
    graph.add_weighted_edges_from(
        (h, d, scores[d, h]) for d in range(n) for h in range(n) if h != d and d != root
    )
    tree, heads = nx.maximum_spanning_arborescence(graph), [-1] * n
    for head, word in tree.edges:
        heads[word] = head
    return tree.size("weight"), heads


def undirected(scores: Floats) -> set[frozenset[int]]:
    graph = nx.Graph()
    graph.add_weighted_edges_from(
        (i, j, scores[i, j] + scores[j, i]) for i in range(len(scores)) for j in range(i)
    )
    return {frozenset(edge) for edge in nx.maximum_spanning_tree(graph).edges}


def is_tree(heads: Ints) -> bool:
    """One root, which every word leads to."""
    for word in range(len(heads)):
        for _ in heads:
            word = heads[word] if heads[word] >= 0 else word
        if heads[word] >= 0:
            return False
    return int((heads < 0).sum()) == 1


@pytest.mark.parametrize("n", [2, 3, 5, 8, 14])
def test_trees_are_those_of_networkx(n: int) -> None:
    rng = np.random.default_rng(n)
    scores, sizes = rng.random((25, n, n)), rng.integers(max(2, n - 4), n + 1, 25)
    scores[::3] **= 8  # a few large ones, as attention has
    roots = rng.integers(0, sizes)
    best = Arborescences(scores, sizes)
    found = best.rooted(roots), best.free(), undirected_trees(scores, sizes)
    for i, size in enumerate(sizes):
        own = scores[i, :size, :size]
        rooted, free, pairs = (of[i, :size] for of in found)
        assert rooted.tolist() == directed(own, int(roots[i]))[1]
        assert free.tolist() == directed(own)[1]
        assert {frozenset((w, int(h))) for w, h in enumerate(pairs) if h >= 0} == undirected(own)
        assert all((of[i, size:] == -1).all() for of in found)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 7), st.integers(0, 10**6), st.sampled_from([1e-6, 1.0, 300.0]))
def test_trees_are_best_also_where_scores_tie(n: int, seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    scores = scale * rng.integers(-2, 3, (3, n, n)).astype(float)
    roots = rng.integers(0, n, 3)
    best = Arborescences(scores)
    for own, rooted, free, root in zip(scores, best.rooted(roots), best.free(), roots, strict=True):
        assert is_tree(rooted)
        assert is_tree(free)
        assert rooted[root] == -1
        assert total(own, rooted) == pytest.approx(directed(own, int(root))[0])
        assert total(own, free) == pytest.approx(directed(own)[0])


def test_a_map_may_be_read_either_way() -> None:
    """Every word attends to the one before it: the first is the root of all, or the last is."""
    maps = np.zeros((1, 1, 4, 4))
    maps[0, 0, [1, 2, 3], [0, 1, 2]] = 1.0
    sizes, roots = np.array([4]), np.array([0])
    trees = spanning_trees(maps, sizes, roots)
    assert list(trees) == list(SPANNING)
    assert trees["to-head"][0, 0].tolist() == [-1, 0, 1, 2]
    assert trees["to-dependent"][0, 0].tolist() == [1, 2, 3, -1]
    assert trees["to-dependent-rooted"][0, 0, 0] == -1
    assert trees["undirected"][0, 0].tolist() == [-1, 0, 1, 2]


@pytest.mark.parametrize(
    ("scores", "sizes"),
    [
        (np.zeros((2, 3, 4)), None),
        (np.zeros((0, 3, 3)), None),
        (np.full((1, 3, 3), np.nan), None),
        (np.zeros((2, 3, 3)), [3, 4]),
    ],
)
def test_what_is_no_score_is_refused(scores: Floats, sizes: list[int] | None) -> None:
    with pytest.raises(ParameterError, match="of trees must be"):
        Arborescences(scores, sizes)
