"""How alike two sets of states of the same words are: linear CKA without its bias, RV, and CCA.

States are (layers, words, width); the widths of the two sides may differ. **CKA** is the HSIC of
two sets by their inner products, over the root of the product of those of each with itself. The
plain HSIC of few words in many dimensions is far above that of the population, so the unbiased one
is taken (Song et al. 2012), as a sum over samples (Nguyen et al. 2021): each sample has at most one
word of a text, since words of one text are no independent draws, and is centred by itself. Sums
over samples need no product of all words with all others. **RV** (Robert and Escoufier 1976) is CKA
with the plain HSIC; its modified form (Smilde et al. 2009) leaves out products of a word with
itself. **CCA** is computed between the first principal components (SVCCA) of one half of the texts,
and what the directions that were found are worth is the correlation in the other half.

Intervals are over texts: every number comes with its value for each text (influence), whose mean is
the number and whose spread tells its error (the infinitesimal jackknife).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats

Places = NDArray[np.int64]

FEWEST = 4  # words of a sample: the unbiased HSIC divides by n - 3
_WORDS_PER_COMPONENT = 5  # of the half that directions are found on
_TINY = 1e-12


@dataclass(frozen=True)
class Alikeness:
    """What is kept of a block of texts; sums, so that blocks are added up."""

    products: Floats
    """(text, layer, other layer): the part that each text has in the unbiased HSIC."""
    shuffled: Floats
    """(layer, other layer): the same in all, with the words of one side in another order."""
    plain: Floats
    """(kind, layer, other layer): products as RV takes them: all, and those of different words."""


def samples_of(texts: Places, *, seed: tuple[int, ...] = (0,)) -> list[Places]:
    """Places of words in samples with at most one word of a text; `texts` is the text of each.

    Words of a text are dealt in random order; a rest of fewer than four is left out.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(texts.size)
    by_text = order[np.argsort(texts[order], kind="stable")]
    _, first, counts = np.unique(texts[by_text], return_index=True, return_counts=True)
    turn = np.arange(texts.size) - np.repeat(first, counts)
    found = [np.sort(by_text[turn == i]) for i in range(int(counts.max(initial=0)))]
    return [sample for sample in found if sample.size >= FEWEST]


def alikeness_of(
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    texts: Places,
    *,
    samples: Sequence[Places],
    seed: tuple[int, ...] = (0,),
) -> Alikeness:
    """Products of all layers of `x` with all layers of `y`, (layers, words, width) each.

    `texts` says the text of each word, from 0, or the group of texts that have one number.
    """
    shape, size = (len(x), len(y)), int(texts.max(initial=-1)) + 1
    products = np.zeros((size, *shape))
    shuffled, plain = np.zeros(shape), np.zeros((2, *shape))
    rng = np.random.default_rng(seed)
    for sample in samples:
        n = sample.size
        ours, theirs = _gram(x, sample), _gram(y, sample)
        a, b = _u_centred(ours), _u_centred(theirs)
        np.add.at(products, texts[sample], _by_word(a, b) / (n - 3))  # groups may be there twice
        order = rng.permutation(n)
        shuffled += _inner(a, b[:, order[:, None], order[None]]) / (n - 3)
        for kind, (one, two) in enumerate(_plain(ours, theirs)):
            plain[kind] += _inner(one, two) / n
    return Alikeness(products, shuffled, plain)


def own_products(
    x: NDArray[np.floating], texts: Places, *, samples: Sequence[Places]
) -> tuple[Floats, Floats]:
    """(text, layer) and (kind, layer): products of each layer with itself."""
    size = int(texts.max(initial=-1)) + 1
    products, plain = np.zeros((size, len(x))), np.zeros((2, len(x)))
    for sample in samples:
        n, gram = sample.size, _gram(x, sample)
        a = _u_centred(gram)
        np.add.at(products, texts[sample], np.einsum("lij,lij->il", a, a) / (n - 3))
        for kind, (one, _) in enumerate(_plain(gram, gram)):
            plain[kind] += np.einsum("lij,lij->l", one, one) / n
    return products, plain


def paired_products(
    sides: Sequence[NDArray[np.floating]],
    pairs: Sequence[tuple[int, int]],
    texts: Places,
    *,
    samples: Sequence[Places],
    size: int,
) -> Floats:
    """(text, pair, layer): products of layers of the same number of two of the `sides`.

    `texts` says the text of each word, below `size`.
    """
    found = np.zeros((size, len(pairs), len(sides[0])))
    for sample in samples:
        for at in range(len(sides[0])):  # one layer at a time: they need no room for all
            centred = [_u_centred(_gram(side[at : at + 1], sample))[0] for side in sides]
            for number, (one, two) in enumerate(pairs):
                rows = np.einsum("ij,ij->i", centred[one], centred[two]) / (sample.size - 3)
                np.add.at(found[:, number, at], texts[sample], rows)
    return found


def cka(xy: Floats, xx: Floats, yy: Floats) -> Floats:
    """(layer, other layer): the ratio of summed products; NaN where one side does not vary."""
    spread = np.maximum(xx, 0)[..., :, None] * np.maximum(yy, 0)[..., None, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.where(spread > 0, xy / np.sqrt(spread), np.nan)
    return found


def cka_of_texts(xy: Floats, xx: Floats, yy: Floats) -> Floats:
    """(text, layer, other layer): values whose mean is CKA, and whose spread tells its error.

    HSIC is the square of a covariance, so a text moves it twice as far as it moves the covariance.
    """
    whole = cka(xy.sum(0), xx.sum(0), yy.sum(0))
    ours, theirs = xx.sum(0), yy.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        part = xy / np.sqrt(np.maximum(ours[:, None] * theirs[None], 0))
        own = (xx / ours)[:, :, None] + (yy / theirs)[:, None, :]
    found: Floats = whole + 2 * len(xy) * (part - whole * own / 2)
    return found


def paired_cka(xy: Floats, xx: Floats, yy: Floats) -> tuple[Floats, Floats]:
    """CKA of products by text (text, …), and what each text does to it (text, …); as above."""
    whole, ours, theirs = (rows.sum(0) for rows in (xy, xx, yy))
    with np.errstate(invalid="ignore", divide="ignore"):
        length = np.sqrt(np.maximum(ours * theirs, 0))
        found = whole / length
        influence = 2 * len(xy) * (xy / length - found * (xx / ours + yy / theirs) / 2)
    return found, influence


def held_out_cca(
    x: NDArray[np.floating], y: NDArray[np.floating], texts: Places, *, components: int
) -> tuple[Floats, int]:
    """(text, layer, other layer): values whose mean is the mean canonical correlation.

    Every second text finds the principal components and the directions, the others are correlated
    along them, and the other way round. Also given: the number of components, less than asked for
    where there are few words or dimensions. Texts without a word are NaN.
    """
    size = int(texts.max(initial=-1)) + 1
    found = np.full((size, len(x), len(y)), np.nan)
    halves = [texts % 2 == half for half in (0, 1)]
    fewest = min(int(half.sum()) for half in halves)
    k = min(components, x.shape[2], y.shape[2], fewest // _WORDS_PER_COMPONENT)
    if k < 1:
        return found, 0
    for scored in halves:
        sides = [_components(side, ~scored, scored, k) for side in (x, y)]
        here = np.unique(texts[scored])
        at = np.searchsorted(here, texts[scored])
        for layer in range(len(x)):
            worth = _correlations(sides, layer, at, here.size)
            found[here, layer] = worth
    return found, k


def _correlations(
    sides: Sequence[tuple[Floats, Floats]], layer: int, text: Places, texts: int
) -> Floats:
    """(text, other layer): the mean correlation along directions found on the other half."""
    (fit, scored), (other_fit, other_scored) = sides
    cross = np.einsum("wi,lwj->lij", fit[layer], other_fit) / fit.shape[1]
    ours, _, theirs = np.linalg.svd(cross)
    a = _standard(scored[layer][None] @ ours)  # (other layer, word, component)
    b = _standard(other_scored @ np.swapaxes(theirs, 1, 2))
    value = (a * b).mean(1, keepdims=True)
    moved = (a * b - value * (a * a + b * b) / 2).mean(2)  # (other layer, word)
    sums = np.zeros((texts, len(moved)))
    np.add.at(sums, text, moved.T)
    # Where nothing is in common both halves tell the same (how near their covariances happen to
    # be), and two of them are worth one: without the root of 2, 9 of 100 intervals missed 0.
    found: Floats = value.mean((1, 2)) + np.sqrt(2) * sums * (texts / text.size)
    return found


def _components(
    states: NDArray[np.floating], fit: NDArray[np.bool_], scored: NDArray[np.bool_], k: int
) -> tuple[Floats, Floats]:
    """(layer, word, component) of both halves: principal components of the first, of spread 1."""
    from scipy.linalg import eigh

    found: tuple[list[Floats], list[Floats]] = ([], [])
    for layer in states:
        known, other = (layer[half].astype(np.float64) for half in (fit, scored))
        centre = known.mean(0)
        known, other = known - centre, other - centre
        width = known.shape[1]
        spread, axes = eigh(known.T @ known / len(known), subset_by_index=(width - k, width - 1))
        axes = axes / np.sqrt(np.maximum(spread, _TINY * max(float(spread[-1]), _TINY)))
        for half, values in zip(found, (known, other), strict=True):
            half.append(values @ axes)
    return np.stack(found[0]), np.stack(found[1])


def _standard(values: Floats) -> Floats:
    """Mean 0 and spread 1 over words, the second dimension."""
    centred = values - values.mean(1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(1, keepdims=True))
    found: Floats = centred / np.maximum(spread, _TINY)
    return found


def _gram(states: NDArray[np.floating], sample: Places) -> Floats:
    """(layer, word, word): inner products of states, less the mean of the sample.

    The unbiased HSIC is the same without that; RV needs it, and fewer digits are lost.
    """
    taken = states[:, sample].astype(np.float64)
    taken -= taken.mean(1, keepdims=True)
    found: Floats = taken @ np.swapaxes(taken, 1, 2)
    return found


def _u_centred(gram: Floats) -> Floats:
    """Székely and Rizzo's centring, whose products make the unbiased HSIC; diagonals are 0."""
    n = gram.shape[-1]
    away = gram * (1 - np.eye(n))
    rows = away.sum(-1)
    found: Floats = (
        away
        - (rows[:, :, None] + rows[:, None, :]) / (n - 2)
        + (rows.sum(-1) / ((n - 1) * (n - 2)))[:, None, None]
    )
    found *= 1 - np.eye(n)
    return found


def _plain(ours: Floats, theirs: Floats) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Both as RV takes them (they are centred already), and without their diagonals."""
    away = 1 - np.eye(ours.shape[-1])
    return (ours, theirs), (ours * away, theirs * away)


def _by_word(a: Floats, b: Floats) -> Floats:
    """(word, layer, other layer): sums over the other words."""
    found: Floats = a.transpose(1, 0, 2) @ b.transpose(1, 2, 0)
    return found


def _inner(a: Floats, b: Floats) -> Floats:
    """(layer, other layer)."""
    found: Floats = a.reshape(len(a), -1) @ b.reshape(len(b), -1).T
    return found
