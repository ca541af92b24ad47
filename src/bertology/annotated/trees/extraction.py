"""The trees that are read off scores of pairs of words, by their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.trees.projective import ProjectiveTrees
from bertology.annotated.trees.spanning import Arborescences, undirected_trees

UNDIRECTED = "undirected"
DIRECTED = ("to-head", "to-head-rooted", "to-dependent", "to-dependent-rooted")
ROOTED = tuple(name for name in DIRECTED if name.endswith("-rooted"))
SPANNING = (*DIRECTED, UNDIRECTED)
"""`to-head`: a word attends to its head, or is changed by it; `to-dependent`: it attends to what
hangs from it. `-rooted`: the annotated root is given."""
PROJECTIVE = ("projective", "projective-rooted")
"""The same without arcs that cross, words attending to their head."""
_TOGETHER = 2**17  # scores: 1 MiB


def spanning_trees(
    maps: NDArray[np.floating],
    sizes: NDArray[np.int64],
    roots: NDArray[np.int64],
    names: Sequence[str] = SPANNING,
) -> dict[str, NDArray[np.int64]]:
    """Trees of `maps` (B, C, n, n), whose rows attend to columns: the head of each word, (B, C, n).

    `sizes` and `roots` (B,) are those of the sentences. The head is -1 for the root and padding.
    """
    shape = maps.shape[:3]
    found = {name: np.full(shape, -1) for name in names}
    for group in _alike(sizes, maps.shape[1]):
        n = int(sizes[group].max())
        some = np.asarray(maps[group, :, :n, :n], np.float64)
        trees = _of_group(some, sizes[group], roots[group], names)
        for name, heads in trees.items():
            found[name][group, :, :n] = heads
    return found


def all_trees(
    maps: NDArray[np.floating],
    sizes: NDArray[np.int64],
    roots: NDArray[np.int64],
    names: Sequence[str] = (*SPANNING, *PROJECTIVE),
) -> dict[str, NDArray[np.int64]]:
    """`spanning_trees`, and projective ones."""
    found = spanning_trees(maps, sizes, roots, [name for name in names if name in SPANNING])
    asked = [name for name in names if name in PROJECTIVE]
    found |= {name: np.full(maps.shape[:3], -1) for name in asked}
    for n in np.unique(sizes) if asked else ():
        some = np.flatnonzero(sizes == n)
        best = ProjectiveTrees(maps[some, :, :n, :n].reshape(-1, n, n))
        starts = np.repeat(roots[some], maps.shape[1])
        for name in asked:
            heads = best.free() if name == PROJECTIVE[0] else best.rooted(starts)
            found[name][some, :, :n] = heads.reshape(len(some), -1, n)
    return {name: found[name] for name in names}


def _alike(sizes: NDArray[np.int64], maps: int) -> Iterator[NDArray[np.int64]]:
    """Sentences of about one length, so that little padding is searched, and few of them at a time.

    Steps of the algorithms touch all matrices: those should lie in the processor's cache.
    """
    order = np.argsort(sizes, kind="stable")
    start = 0
    while start < len(order):
        n = int(sizes[order[start]])
        most = max(1, _TOGETHER // (maps * n * n))
        alike = int(np.searchsorted(sizes[order], n + n // 8, side="right"))
        stop = min(start + most, alike)
        yield order[start:stop]
        start = stop


def _of_group(
    maps: NDArray[np.float64],
    sizes: NDArray[np.int64],
    roots: NDArray[np.int64],
    names: Sequence[str],
) -> dict[str, NDArray[np.int64]]:
    """`spanning_trees` of sentences that share a padded shape."""
    sentences, maps_of_each, n, _ = maps.shape
    flat = maps.reshape(-1, n, n)
    counts, starts = (np.repeat(of, maps_of_each) for of in (sizes, roots))
    found: dict[str, NDArray[np.int64]] = {}
    for name in ("to-head", "to-dependent"):
        asked = [tree for tree in names if tree.startswith(name)]
        if asked:
            best = Arborescences(flat if name == "to-head" else flat.transpose(0, 2, 1), counts)
            found |= {t: best.rooted(starts) if t in ROOTED else best.free() for t in asked}
    if UNDIRECTED in names:
        found[UNDIRECTED] = undirected_trees(flat, counts)
    return {name: found[name].reshape(sentences, maps_of_each, n) for name in names}
