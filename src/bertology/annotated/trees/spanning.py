"""Maximum spanning trees of many score matrices at once.

All matrices take the same steps together, so that each step is one operation on arrays: 144 heads
of a batch of sentences cost about as many Python calls as one head of one sentence. Sentences of
different lengths share a batch; `sizes` says how many words each has, and what lies beyond is
padding.

Undirected trees: Prim's algorithm. Directed ones: Chu–Liu/Edmonds as Tarjan (1977) and Camerini et
al. (1979) do it. A path grows backwards along the best arc into its end; where it meets itself, the
cycle becomes one node. Once all words are one node, it is taken apart again from the root down.
Only the taking apart knows the root, so that one contraction serves every root.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats, Ints
from bertology.errors import ParameterError

_NEVER = -1e3  # scores are at most 1 in size, so that one such arc outweighs a whole sentence


def undirected_trees(scores: ArrayLike, sizes: ArrayLike | None = None) -> Ints:
    """For each word its neighbour on the way to the first word, which has -1: (M, n).

    `scores` (M, n, n): a pair counts with the sum of both directions. Padding has -1, too.
    """
    given, there = _checked(scores, sizes)
    weights = np.where(there[:, :, None] & there[:, None, :], given, -np.inf)
    weights = weights + weights.transpose(0, 2, 1)
    count, n, _ = weights.shape
    every = np.arange(count)
    near, parents = weights[:, 0].copy(), np.zeros((count, n), np.int64)
    outside = there.copy()
    outside[:, 0] = False
    for _ in range(n - 1):
        # What is padding comes last, and then changes nothing.
        at = np.where(outside, near, -np.inf).argmax(axis=1)
        outside[every, at] = False
        closer = outside & (weights[every, at] > near)
        near = np.where(closer, weights[every, at], near)
        parents = np.where(closer, at[:, None], parents)
    parents[:, 0] = -1
    return np.where(there, parents, -1)


class Arborescences:
    """The best directed trees of `scores` (M, n, n), which score [dependent, head].

    Where several trees are equally good, which one is found depends on the order of the words.
    """

    def __init__(self, scores: ArrayLike, sizes: ArrayLike | None = None) -> None:
        given, self._there = _checked(scores, sizes)
        size = np.abs(np.where(self._pairs, given, 0.0)).max(axis=(1, 2), initial=0.0)
        scaled = given / np.where(size > 0, size, 1.0)[:, None, None]
        # Padding hangs from any word and nothing from it.
        scaled = np.where(self._there[:, :, None], scaled, 0.0)
        self._contract(np.where(self._there[:, None, :], scaled, _NEVER))

    @property
    def _pairs(self) -> NDArray[np.bool_]:
        """(M, n, n): pairs of different words."""
        both = self._there[:, :, None] & self._there[:, None, :]
        return np.asarray(both & ~np.eye(both.shape[-1], dtype=bool))

    def rooted(self, roots: ArrayLike) -> Ints:
        """The best tree with a given root: the head of each word (M, n); -1 for root and padding.

        An arc that enters a node of several words replaces the arc into the one that it reaches.
        """
        count, n = self._there.shape
        every, top = np.arange(count), 2 * n - 2
        source, target = self._source.copy(), self._target.copy()
        source[:, top], target[:, top] = -1, np.asarray(roots, np.int64)
        for node in range(top - 1, -1, -1):
            above = self._above[:, node]
            reached = target[every, above]
            inside = self._members[every, node, reached]
            source[:, node] = np.where(inside, source[every, above], source[:, node])
            target[:, node] = np.where(inside, reached, target[:, node])
        return np.where(self._there, source[:, :n], -1)

    def free(self) -> Ints:
        """The best tree with whichever root is best, as in `rooted`."""
        return self.rooted(self.best_roots)

    @cached_property
    def best_roots(self) -> Ints:
        """(M,): a root saves the arcs into all nodes that it is in; the least sum is best."""
        count, n = self._there.shape
        every, lost = np.arange(count), self._weight.copy()
        for node in range(2 * n - 3, -1, -1):
            lost[:, node] += lost[every, self._above[:, node]]
        roots: Ints = np.where(self._there, lost[:, :n], np.inf).argmin(axis=1)
        return roots

    def _contract(self, rows: Floats) -> None:
        """Grow paths and merge cycles until one node is left in each matrix.

        A node of several words lies in the row of one of them. A cycle of k nodes is merged pair by
        pair; nodes in between have no arc of their own (their target is n: no word).
        """
        count, n, _ = rows.shape
        every, words, nodes = np.arange(count), np.arange(n), 2 * n - 1
        self._source = np.full((count, nodes), -1)
        self._target = np.full((count, nodes), n)
        self._weight = np.zeros((count, nodes))
        self._above = np.full((count, nodes), nodes - 1)
        self._members = np.zeros((count, nodes, n + 1), dtype=bool)
        self._members[:, words, words] = True
        enters = np.broadcast_to(words[None, :, None], rows.shape).astype(np.int32)
        row_of, node_of = (np.broadcast_to(words, (count, n)).copy() for _ in range(2))
        path = np.zeros((count, n), np.int64)  # the rows of its nodes, from its start
        place = np.full((count, n), -1)  # where in the path a row is
        place[:, 0] = 0
        end, goal, made = np.zeros(count, np.int64), np.full(count, -1), np.full(count, n)
        while (made < nodes).any():
            at = every[(goal < 0) & (made < nodes)]
            top = path[at, end[at]]
            outside = np.where(row_of[at] == top[:, None], -np.inf, rows[at, top])
            best = outside.argmax(axis=1)
            weight, node = outside[np.arange(at.size), best], node_of[at, top]
            self._source[at, node], self._weight[at, node] = best, weight
            self._target[at, node] = enters[at, top, best]
            rows[at, top] -= weight[:, None]
            found = row_of[at, best]
            goal[at] = place[at, found]
            longer = at[goal[at] < 0]
            end[longer] += 1
            place[longer, found[goal[at] < 0]] = end[longer]
            path[longer, end[longer]] = found[goal[at] < 0]

            at = every[goal >= 0]
            last, before, new = path[at, end[at]], path[at, end[at] - 1], made[at]
            better = rows[at, last] > rows[at, before]
            rows[at, before] = np.where(better, rows[at, last], rows[at, before])
            enters[at, before] = np.where(better, enters[at, last], enters[at, before])
            one, other = node_of[at, last], node_of[at, before]
            self._above[at, one] = self._above[at, other] = new
            self._members[at, new] = self._members[at, one] | self._members[at, other]
            row_of[at] = np.where(row_of[at] == last[:, None], before[:, None], row_of[at])
            node_of[at, before], place[at, last] = new, -1
            end[at] -= 1
            made[at] += 1
            goal[at] = np.where(goal[at] == end[at], -1, goal[at])


def _checked(scores: ArrayLike, sizes: ArrayLike | None) -> tuple[Floats, NDArray[np.bool_]]:
    """Scores as (M, n, n), and (M, n) where there are words."""
    given = np.asarray(scores, np.float64)
    if given.ndim != 3 or given.shape[1] != given.shape[2] or not given.size:
        must = "be (matrices, words, words), of one word or more"
        raise ParameterError("scores", "trees", must, given.shape)
    n = given.shape[1]
    counts = np.full(len(given), n) if sizes is None else np.asarray(sizes)
    if counts.shape != (len(given),) or counts.min() < 1 or counts.max() > n:
        raise ParameterError("sizes", "trees", f"be {len(given)} numbers from 1 to {n}", counts)
    there = np.arange(n) < counts[:, None]
    if not np.isfinite(given[there[:, :, None] & there[:, None, :]]).all():
        raise ParameterError("scores", "trees", "be finite numbers", "NaN or infinity")
    return given, there
