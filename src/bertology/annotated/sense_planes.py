"""Occurrences of a word in a plane: their states in two dimensions, and the text around each.

Directions are what is compared (cosines), so states are brought to length 1 first. The senses are
not looked at: what is apart in the plane was apart in the states. The same states give the same
plane.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import CapabilityError, UnknownNameError

Shown = tuple[str, int, int]
"""A text, and the first and the last + 1 of the characters that are meant."""
METHODS = ("pca", "t-sne", "umap")
_AROUND = 60  # characters that are shown on either side of a word
_FEW = 4  # occurrences; fewer have no neighbourhood to keep, so that PCA takes the others' place


def available_methods() -> tuple[str, ...]:
    """The methods that work here: UMAP needs a package of its own."""
    return METHODS if find_spec("umap") is not None else METHODS[:2]


def unit_states(states: NDArray[np.generic]) -> Floats:
    """States (…, width) of length 1; those of length 0 stay as they are."""
    found = states.astype(np.float64)
    lengths = np.linalg.norm(found, axis=-1, keepdims=True)
    return np.asarray(found / np.where(lengths > 0, lengths, 1.0))


def plane_of(states: NDArray[np.generic], method: str = "pca", *, seed: int = 0) -> Floats:
    """(N, 2): where N states (N, width) lie in a plane, by one of METHODS.

    PCA keeps large distances and is exact; t-SNE and UMAP keep neighbours, and distances between
    groups say little there.
    """
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    unit = unit_states(states)
    if method == "pca" or len(unit) < _FEW:
        return _principal(unit)
    if method == "t-sne":
        from sklearn.manifold import TSNE

        near = min(30.0, (len(unit) - 1) / 3)  # as many neighbours as a few points can have
        start = _principal(unit)
        start = start / max(float(start[:, 0].std()), 1e-12) * 1e-4
        made = TSNE(perplexity=near, init=start.astype(np.float32), random_state=seed)
        return np.asarray(made.fit_transform(unit.astype(np.float32)), np.float64)
    return _umap(unit, seed)


def shortened(text: str, start: int, end: int, *, around: int = _AROUND) -> Shown:
    """The text near some of its characters, cut between words, and where they are in it."""
    first, last = max(0, start - around), min(len(text), end + around)
    if first > 0:
        space = text.find(" ", first, start)
        first = space + 1 if space >= 0 else first
    if last < len(text):
        space = text.rfind(" ", end, last)
        last = space if space >= 0 else last
    before, after = "… " if first > 0 else "", " …" if last < len(text) else ""
    shift = len(before) - first
    return before + text[first:last] + after, start + shift, end + shift


def _principal(unit: Floats) -> Floats:
    """The first two principal components; the largest deviation of each counts as above zero."""
    away = unit - unit.mean(axis=0)
    found = np.zeros((len(unit), 2))
    left, sizes, _ = np.linalg.svd(away, full_matrices=False)
    kept = min(2, len(sizes))
    found[:, :kept] = left[:, :kept] * sizes[:kept]
    signs = np.sign(found[np.abs(found).argmax(axis=0), [0, 1]])
    return found * np.where(signs == 0, 1.0, signs)


def _umap(unit: Floats, seed: int) -> Floats:
    try:
        from umap import UMAP
    except ImportError as error:
        raise CapabilityError(
            "UMAP needs the package umap-learn, which is not installed.",
            hint="Install it with: pip install umap-learn; or choose pca or t-sne.",
        ) from error
    made = UMAP(n_neighbors=min(15, len(unit) - 1), metric="cosine", random_state=seed, n_jobs=1)
    return np.asarray(made.fit_transform(unit), np.float64)
