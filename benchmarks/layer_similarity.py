"""Speed of CKA and CCA of all pairs of layers, beside the obvious ways.

CKA: sums over samples, against the full matrix of all words by all words, made for each pair of
layers (one pair is timed and multiplied). CCA: all pairs from one set of principal components,
against scikit-learn's CCA for each pair (one pair, multiplied). Also: what a pass of the model
over the same texts takes, since states have to be computed in any case.

    python benchmarks/layer_similarity.py [--texts 256] [--words 8] [--layers 13] [--width 768]
        [--device cpu]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from machine import describe
from numpy.typing import NDArray

import bertology as bt
from bertology.annotated.drawn_states import drawn_words, states_of_words
from bertology.stats.similarity import (
    alikeness_of,
    cka,
    held_out_cca,
    own_products,
    samples_of,
)

Floats = NDArray[np.float64]
T = TypeVar("T")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("texts", 256), ("words", 8), ("layers", 13), ("width", 768)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    texts = np.repeat(np.arange(given.texts), given.words)
    steps = rng.standard_normal((given.layers, texts.size, given.width)).astype(np.float32)
    states = np.cumsum(steps, axis=0)  # layers that share more the nearer they are
    pairs, samples = given.layers**2, samples_of(texts)
    print(f"{describe()}; {texts.size} words of {given.texts} texts, {given.layers} layers of "
          f"{given.width}: {pairs} pairs")  # fmt: skip

    ours, found = timed(lambda: all_pairs(states, texts, samples))
    plain, full = timed(lambda: full_matrix(states[1], states[-1]))
    print(f"CKA: all pairs {ours:.2f} s; one pair by full matrices {plain:.2f} s, all "
          f"{pairs * plain:.0f} s: {pairs * plain / ours:.0f} ×; {found[1, -1]:.4f} and "
          f"{full:.4f}")  # fmt: skip
    ours, _ = timed(lambda: held_out_cca(states, states, texts, components=20))
    half = texts % 2 == 0
    theirs, _ = timed(lambda: scikit_learn(states[1], states[-1], half))
    print(f"CCA: all pairs {ours:.2f} s; one pair by scikit-learn {theirs:.2f} s, all "
          f"{pairs * theirs:.0f} s: {pairs * theirs / ours:.0f} ×")  # fmt: skip
    encoder = bt.load("bertology-mini", device=given.device)
    corpus = bt.load_corpus("grammar", limit=given.texts)
    words = drawn_words([encoder], corpus, most=given.words, seed=0)
    passed, read = timed(lambda: states_of_words(encoder, corpus, words))
    at = np.repeat(np.arange(len(corpus)), list(map(len, words)))
    some = samples_of(at)
    compared, _ = timed(lambda: all_pairs(read, at, some))
    print(f"bertology-mini on {given.device}: pass over {len(corpus)} texts {passed:.2f} s, CKA of "
          f"all pairs {compared:.2f} s")  # fmt: skip


def timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def all_pairs(
    states: NDArray[np.float32], texts: NDArray[np.int64], samples: list[NDArray[np.int64]]
) -> Floats:
    products = alikeness_of(states, states, texts, samples=samples).products.sum(0)
    own = own_products(states, texts, samples=samples)[0].sum(0)
    return cka(products, own, own)


def full_matrix(x: NDArray[np.float32], y: NDArray[np.float32]) -> float:
    """Debiased CKA of one pair by the formula: three products of all words with all words."""
    k, o = (side.astype(np.float64) @ side.astype(np.float64).T for side in (x, y))
    for gram in (k, o):
        np.fill_diagonal(gram, 0)
    n = len(k)

    def hsic(a: Floats, b: Floats) -> float:
        whole = (a * b).sum() + a.sum() * b.sum() / ((n - 1) * (n - 2))
        return float(whole - 2 / (n - 2) * (a.sum(0) @ b.sum(1)))

    return hsic(k, o) / float(np.sqrt(hsic(k, k) * hsic(o, o)))


def scikit_learn(x: NDArray[np.float32], y: NDArray[np.float32], half: NDArray[np.bool_]) -> None:
    """Both halves once: 20 components of each side, then scikit-learn's CCA of these."""
    from sklearn.cross_decomposition import CCA
    from sklearn.decomposition import PCA

    for fit in (half, ~half):
        sides = [PCA(20).fit(side[fit]) for side in (x, y)]
        a, b = (pca.transform(side) for pca, side in zip(sides, (x, y), strict=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it may stop before it converges
            model = CCA(20, scale=False).fit(a[fit], b[fit])
        model.transform(a[~fit], b[~fit])


if __name__ == "__main__":
    main()
