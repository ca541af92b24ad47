"""Similarities of all pairs from sums by word and block: self-similarity, and what chance gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Similarities:
    """Of one layer; the first of 1 + blocks is of all texts, then each block is left out."""

    by_word: Floats
    """(1 + blocks, words): the mean cosine of all pairs of occurrences of a word."""
    random: Floats
    """(1 + blocks,): the mean cosine of occurrences of different words in different blocks."""
    on_random: Floats
    """(words,): what each word does to `random` of all texts; 0 on the mean."""

    @property
    def mean(self) -> Floats:
        """(1 + blocks,): each word counts once."""
        found: Floats = self.by_word.mean(axis=1)
        return found


def similarities(units: Floats, counts: Ints) -> Similarities:
    """From sums of unit vectors (blocks, words, width) and numbers of occurrences (blocks, words).

    |Σ u|² holds the cosine of every pair of occurrences twice, and each with itself once.
    """
    blocks = len(units)
    whole, number = units.sum(axis=0), counts.sum(axis=0)
    by_word, random = [], []
    on_random = np.zeros(units.shape[1])
    for left in (None, *range(blocks)):
        rest = whole if left is None else whole - units[left]
        n = number if left is None else number - counts[left]
        kept = [block for block in range(blocks) if block != left]
        squares = (rest**2).sum(axis=1)
        by_word.append((squares - n) / (n * (n - 1.0)))
        total, pairs = _random(units[kept] / n[:, None], counts[kept] / n)
        random.append(float(total.sum() / pairs.sum()))
        if left is None:
            # A word stands on either side of a pair, so it moves the mean twice as far.
            on_random = 2 * (total - random[0] * pairs) / pairs.mean()
    return Similarities(np.array(by_word), np.array(random), on_random)


def _random(means: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """(words,) sums of cosines with all others in other blocks, and weights; a word counts once."""
    whole, by_block = means.sum(axis=0), means.sum(axis=1)
    of_block = shares.sum(axis=1)
    same = np.einsum("bwd,bwd->w", means, by_block[:, None] - means)
    total = np.einsum("wd,wd->w", whole, whole.sum(axis=0) - whole) - same
    pairs = len(whole) - 1 - (shares * (of_block[:, None] - shares)).sum(axis=0)
    return total, pairs


def explained(rows: Floats) -> Floats:
    """The share of the first principal component of matrices (…, occurrences, width), uncentred.

    Ethayarajh's maximum explainable variance: the squares of singular values, without their mean
    taken off. Those of the small matrix of products are the same.
    """
    products = rows @ rows.swapaxes(-1, -2)
    values = np.linalg.eigvalsh(products)
    found: Floats = values[..., -1] / np.maximum(values.sum(axis=-1), 1e-300)
    return found


def random_matrices(texts: Ints, seed: int) -> Ints:
    """As many matrices of stored occurrences (words, contexts): of different words and texts.

    A row is a place among all stored occurrences. Those for which no draw gave different texts
    are left out.
    """
    words, contexts = texts.shape
    rng, found = np.random.default_rng(seed), []
    for _ in range(words):
        for _ in range(20):
            chosen = rng.choice(words, contexts, replace=False)
            slots = rng.integers(contexts, size=contexts)
            if len(np.unique(texts[chosen, slots])) == contexts:
                found.append(chosen * contexts + slots)
                break
    return np.array(found, np.int64).reshape(-1, contexts)


def shared_error(values: Floats, texts: Ints) -> Floats:
    """The standard error of sums of `values` (rows, …), mean taken off, that share texts (rows, k).

    Rows that have a text in common count as dependent: the products of all such pairs are added.
    It is never less than if all rows were independent.
    """
    _, number = np.unique(texts, return_inverse=True)
    belongs = np.zeros((len(texts), int(number.max()) + 1), np.float32)
    belongs[np.arange(len(texts))[:, None], number.reshape(texts.shape)] = 1
    together = (belongs @ belongs.T > 0).astype(np.float64)
    paired = np.einsum("i...,i...->...", values, np.tensordot(together, values, axes=1))
    found: Floats = np.sqrt(np.maximum(paired, (values**2).sum(axis=0)))
    return found
