"""Which words of two sentences correspond, of how alike they are; NumPy and SciPy only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Bools, Floats, Ints

METHODS = ("argmax", "itermax", "assignment")
"""Pairs that choose each other; the same again for words that are left; each word once at most, so
that the sum is the largest (optimal transport of whole words)."""
BASELINES = ("places", "pieces and places")
_AGAIN = 0.9  # what one that has a partner already counts, in a second round (itermax)


def argmax(alike: Floats) -> Bools:
    """(words, words of the other): where each is the most alike of all to the other."""
    rows, columns = np.indices(alike.shape)
    found: Bools = (columns == alike.argmax(axis=1)[:, None]) & (
        rows == alike.argmax(axis=0)[None, :]
    )
    return found


def itermax(alike: Floats, rounds: int = 2) -> Bools:
    """Argmax, and again among words without a partner (Jalili Sabet et al. 2020).

    A word that has one may get a second one, which counts a little less; `alike` are cosines.
    """
    positive = (alike + 1) / 2
    found = argmax(positive)
    for _ in range(rounds - 1):
        free_row, free_column = np.sum(found, axis=1) == 0, np.sum(found, axis=0) == 0
        if not free_row.any() or not free_column.any():
            break
        both = free_row[:, None] & free_column[None, :]
        either = free_row[:, None] | free_column[None, :]
        more = argmax(positive * np.where(both, 1.0, np.where(either, _AGAIN, 0.0))) & either
        if not (more & ~found).any():
            break
        found = found | more
    return found


def assignment(alike: Floats) -> Bools:
    """Each word of the shorter sentence has one partner, so that the sum is the largest."""
    from scipy.optimize import linear_sum_assignment

    found = np.zeros(alike.shape, bool)
    found[linear_sum_assignment(alike, maximize=True)] = True
    return found


_ALIGNERS = {"argmax": argmax, "itermax": itermax, "assignment": assignment}


def aligned(alike: Floats) -> list[Bools]:
    """By every method, in their order."""
    return [_ALIGNERS[name](alike) for name in METHODS]


def cosines(one: NDArray[np.floating], other: NDArray[np.floating]) -> Floats:
    """(words, words of the other)"""
    a, b = (x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12) for x in (one, other))
    found: Floats = (a @ b.T).astype(np.float64)
    return found


def by_place(rows: int, columns: int) -> Floats:
    """How near the diagonal each pair of words is: 0 on it, -1 in the far corners."""
    i, j = ((np.arange(n) + 0.5) / n for n in (rows, columns))
    found: Floats = -np.abs(i[:, None] - j[None, :])
    return found


def by_pieces(one: Sequence[Sequence[int]], other: Sequence[Sequence[int]]) -> Floats:
    """The cosine of the pieces of each pair of words, and a little for their places."""
    kinds = {piece: at for at, piece in enumerate({p for of in (*one, *other) for p in of})}
    bags = [np.zeros((len(of), max(len(kinds), 1))) for of in (one, other)]
    for bag, of in zip(bags, (one, other), strict=True):
        for word, pieces in enumerate(of):
            for piece in pieces:
                bag[word, kinds[piece]] += 1
    return cosines(bags[0], bags[1]) + 1e-3 * by_place(len(one), len(other))


def counts_of(links: Bools, sure: Bools, possible: Bools) -> Ints:
    """Links that were made, those of them that are sure, those that are possible; all sure ones.

    What is sure is possible, too.
    """
    return np.array([links.sum(), (links & sure).sum(), (links & possible).sum(), sure.sum()])


def error_rate(counts: Floats) -> Floats:
    """The alignment error rate (Och and Ney 2003) of summed counts (…, 4)."""
    made, sure, possible, all_sure = np.moveaxis(np.asarray(counts, np.float64), -1, 0)
    found: Floats = 1 - (sure + possible) / np.maximum(made + all_sure, 1e-12)
    return found
