"""Projective trees are the best of all that there are; those of a batch keep to their sentences."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from bertology.annotated.trees.extraction import PROJECTIVE, all_trees
from bertology.annotated.trees.projective import ProjectiveTrees
from bertology.errors import ParameterError

Heads = tuple[int, ...]


def leads_to_root(heads: Heads, word: int) -> bool:
    for _ in heads:
        word = heads[word] if heads[word] >= 0 else word
    return heads[word] < 0


def projective(n: int) -> Iterator[Heads]:
    """All trees over n words in which no arcs cross, that from before the sentence included."""
    for heads in product(range(-1, n), repeat=n):
        if heads.count(-1) != 1 or not all(leads_to_root(heads, w) for w in range(n)):
            continue
        ends = [tuple(sorted(arc)) for arc in enumerate(heads)]
        if not any(a < c < b < d for a, b in ends for c, d in ends):
            yield heads


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_the_best_of_all_is_found(n: int) -> None:
    rng = np.random.default_rng(n)
    scores, roots = rng.normal(size=(6, n, n)), rng.integers(0, n, 6)
    trees, every = ProjectiveTrees(scores), list(projective(n))
    for own, free, rooted, root in zip(
        scores, trees.free(), trees.rooted(roots), roots, strict=True
    ):

        def total(heads: Heads) -> float:
            return sum(own[w, h] for w, h in enumerate(heads) if h >= 0)  # noqa: B023

        assert tuple(free) == max(every, key=total)
        assert tuple(rooted) == max((t for t in every if t[root] < 0), key=total)


def test_padding_changes_no_tree() -> None:
    rng = np.random.default_rng(0)
    sizes, roots = np.array([4, 6, 4]), np.array([1, 5, 0])
    maps = rng.random((3, 2, 6, 6))
    found = all_trees(maps, sizes, roots, PROJECTIVE)
    for i, n in enumerate(sizes):
        alone = ProjectiveTrees(maps[i, :, :n, :n])
        assert found["projective"][i, :, :n].tolist() == alone.free().tolist()
        rooted = alone.rooted([roots[i]] * 2)
        assert found["projective-rooted"][i, :, :n].tolist() == rooted.tolist()
        assert (found["projective"][i, :, n:] == -1).all()


def test_what_is_no_score_is_refused() -> None:
    with pytest.raises(ParameterError, match="scores"):
        ProjectiveTrees(np.zeros((2, 3)))
