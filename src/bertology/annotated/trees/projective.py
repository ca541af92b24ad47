"""The best projective trees of score matrices, by Eisner's algorithm (1996).

All spans of one width, of all matrices of one size, are computed together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bertology.arrays import Ints
from bertology.errors import ParameterError


class ProjectiveTrees:
    """The best trees without crossing arcs of `scores` (M, n, n), which score [dependent, head].

    No arc reaches over the root, either. There is no node before the sentence: a tree with root r
    is what hangs from r to its left and to its right, so that one table serves every root.
    """

    def __init__(self, scores: ArrayLike) -> None:
        given = np.asarray(scores, np.float64)
        if given.ndim != 3 or given.shape[1] != given.shape[2] or not given.size:
            must = "be (matrices, words, words), of one word or more"
            raise ParameterError("scores", "projective trees", must, given.shape)
        n = given.shape[1]
        # Spans [i, j]: headed by their right end (left) or their left end (right); open ones have
        # just got the arc between their ends.
        left, right, open_left, open_right = (np.full(given.shape, -np.inf) for _ in range(4))
        self._split, self._left, self._right = (np.zeros(given.shape, np.int64) for _ in range(3))
        every = np.arange(n)
        left[:, every, every] = right[:, every, every] = 0.0
        for width in range(1, n):
            i = np.arange(n - width)
            j, inside = i + width, i[:, None] + np.arange(width)  # (spans, splits)
            halves = right[:, i[:, None], inside] + left[:, inside + 1, j[:, None]]
            self._split[:, i, j] = halves.argmax(axis=2) + i
            best = halves.max(axis=2)
            open_left[:, i, j], open_right[:, i, j] = best + given[:, i, j], best + given[:, j, i]
            toward = left[:, i[:, None], inside] + open_left[:, inside, j[:, None]]
            self._left[:, i, j], left[:, i, j] = toward.argmax(axis=2) + i, toward.max(axis=2)
            away = open_right[:, i[:, None], inside + 1] + right[:, inside + 1, j[:, None]]
            self._right[:, i, j], right[:, i, j] = away.argmax(axis=2) + i + 1, away.max(axis=2)
        self.best_roots: Ints = (left[:, 0] + right[:, :, -1]).argmax(axis=1)

    def free(self) -> Ints:
        """The best tree with whichever root is best, as in `rooted`."""
        return self.rooted(self.best_roots)

    def rooted(self, roots: ArrayLike) -> Ints:
        """The best tree with a given root: the head of each word (M, n), -1 for the root."""
        heads = np.full(self._split.shape[:2], -1)
        for row, root in enumerate(np.asarray(roots).tolist()):
            tables = (
                self._split[row].tolist(),
                self._left[row].tolist(),
                self._right[row].tolist(),
            )
            self._follow(tables, root, heads[row])
        return heads

    @staticmethod
    def _follow(tables: Sequence[list[list[int]]], root: int, heads: Ints) -> None:
        split, left, right = tables
        spans = [(0, root, False, True), (root, len(heads) - 1, True, True)]
        while spans:
            i, j, headed_left, closed = spans.pop()  # headed by its left end?
            if i == j:
                continue
            if not closed:
                heads[j if headed_left else i] = i if headed_left else j
                at = split[i][j]
                spans += [(i, at, True, True), (at + 1, j, False, True)]
            elif headed_left:
                at = right[i][j]
                spans += [(i, at, True, False), (at, j, True, True)]
            else:
                at = left[i][j]
                spans += [(i, at, False, True), (at, j, False, False)]
