"""Which word is the head of a word? Trained from what pairs of words have, by conditional logits.

The probability that word i is the head of word j grows with a weighted sum of the pair's features
(attention of each head from j to i and from i to j, or their distance); with word vectors, each
feature's weight depends linearly on the vectors of both words (Clark et al. 2019, section 5), and
where the relation of j is told, on that. The logits are linear in all weights, so the loss is
convex and needs no seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from bertology.annotated.trees.arc_sentences import PairBlock, Sentences
from bertology.arrays import Ints

Floats = NDArray[np.float32]
FARTHEST = 10  # words; all that lie farther away are alike
_PENALTIES = (1.0, 0.1, 0.01, 1e-3, 1e-4)  # strong ones first: each fit starts from the one before
_STEPS = 40  # of one fit, at most


@dataclass(frozen=True)
class ArcModel:
    """What the logit of a pair is made of."""

    feature: str
    """`attention` (both directions) or `distance`."""
    vectors: Floats | None = None
    """(words of all sentences, d), on which weights depend."""
    told: int = 0
    """The number of relations, if weights depend on that of the word."""

    def features(self, block: PairBlock) -> Floats:
        """(P, K) of the pair; of attention only that from the word to its possible head."""
        if self.feature == "attention":
            return block.attention
        far = np.clip(block.away, -FARTHEST - 1, FARTHEST + 1)
        found: Floats = (far[:, None] == np.arange(-FARTHEST - 1, FARTHEST + 2)).astype(np.float32)
        return found

    @property
    def ways(self) -> int:
        """Attention counts in both directions."""
        return 2 if self.feature == "attention" else 1

    def of_words(self, block: PairBlock) -> Floats:
        """(P, D): one, and the vectors of both words or the relation of the word."""
        found = [np.ones((len(block.words), 1), np.float32)]
        if self.vectors is not None:
            found += [self.vectors[word] for word in block.words.T]
        if self.told:
            same = block.relations[:, None] == np.arange(self.told)
            found.append(np.repeat(same.astype(np.float32), block.sizes, axis=0))
        return np.concatenate(found, axis=1)


@dataclass(frozen=True)
class ArcFit:
    """Trained weights (ways, K, D) of features that are divided by `scale` (ways, K)."""

    model: ArcModel
    weights: Floats
    scale: Floats
    penalty: float

    def heads(self, sentences: Sentences, which: Sequence[int] | Ints) -> list[Ints]:
        """The likeliest head of each word of the sentences `which`."""
        found: list[Ints] = []
        for block in sentences.blocks(which):
            logits, at = _logits(self.model, block, self.weights / self.scale[..., None]), 0
            while at < len(block.starts):
                n, first = int(block.sizes[at]), int(block.starts[at])
                found.append(logits[first : first + n * n].reshape(n, n).argmax(axis=1))
                at += n
        return found


def fit_arcs(model: ArcModel, sentences: Sentences, which: Sequence[int] | Ints) -> ArcFit:
    """Train on the sentences `which`.

    The penalty on large weights is chosen on every fifth sentence, after training on the others;
    weaker ones are not tried once that gets worse.
    """
    held = set(map(int, which[4::5]))
    others, tried = (
        sentences.blocks([s for s in which if (int(s) in held) == chosen])
        for chosen in (False, True)
    )
    scale, width = _scale(model, others)
    weights = np.zeros((*scale.shape, width), np.float32)
    best, least = _PENALTIES[0], np.inf
    start = weights
    for penalty in _PENALTIES:
        weights = _fit(model, others, scale, weights, penalty)
        loss, _ = _loss(model, tried, scale, weights, gradient=False)
        if loss >= least:
            break
        best, least, start = penalty, loss, weights
    weights = _fit(model, sentences.blocks(which), scale, start, best)
    return ArcFit(model, weights, scale, best)


def _fit(
    model: ArcModel,
    blocks: Iterable[PairBlock],
    scale: Floats,
    start: Floats,
    penalty: float,
) -> Floats:
    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = flat.astype(np.float32).reshape(start.shape)
        value, slope = _loss(model, blocks, scale, weights)
        size = float((flat**2).sum())
        return value + penalty / 2 * size, slope.ravel() + penalty * flat

    found = minimize(
        loss,
        start.ravel().astype(np.float64),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _STEPS, "ftol": 1e-5},
    )
    return np.asarray(found.x, np.float32).reshape(start.shape)


def _loss(
    model: ArcModel,
    blocks: Iterable[PairBlock],
    scale: Floats,
    weights: Floats,
    *,
    gradient: bool = True,
) -> tuple[float, NDArray[np.float64]]:
    """The mean over words of -log p(head), and its slope (K, D)."""
    total, arcs, slope = 0.0, 0, np.zeros(weights.shape)
    for block in blocks:
        words, counted = model.of_words(block), block.gold >= 0
        logits = _logits(model, block, weights / scale[..., None], words)
        top = np.maximum.reduceat(logits, block.starts)
        share = np.exp(logits - np.repeat(top, block.sizes))
        sums = np.add.reduceat(share, block.starts)
        gold = block.gold[counted]
        total += float((np.log(sums) + top)[counted].sum() - logits[gold].sum())
        arcs += len(gold)
        if gradient:
            share *= np.repeat(counted / sums, block.sizes).astype(np.float32)
            share[gold] -= 1
            moved, features = share[:, None] * words, model.features(block)
            for way, of in enumerate((moved, moved[block.turned])[: model.ways]):
                slope[way] += features.T @ of
    arcs = max(arcs, 1)
    return total / arcs, slope / scale[..., None] / arcs


def _logits(
    model: ArcModel, block: PairBlock, weights: Floats, words: Floats | None = None
) -> Floats:
    """(P,): -inf where a word would be its own head."""
    words = model.of_words(block) if words is None else words
    features = model.features(block)
    given = features @ weights[0]
    if model.ways > 1:  # what the possible head gives the word is that of the pair turned round
        given += (features @ weights[1])[block.turned]
    found: Floats = (given * words).sum(axis=1)
    found[block.away == 0] = -np.inf
    return found


def _scale(model: ArcModel, blocks: Iterable[PairBlock]) -> tuple[Floats, int]:
    """The spread of each feature among the possible heads of a word, and the width of words.

    Only differences between them matter. 1 where there are none.
    """
    squares, count, width = np.zeros(()), 0, 1
    for block in blocks:
        features = model.features(block).astype(np.float64)
        both = np.stack([features, features[block.turned]][: model.ways])
        means = np.add.reduceat(both, block.starts, axis=1) / block.sizes[:, None]
        squares = squares + ((both - np.repeat(means, block.sizes, axis=1)) ** 2).sum(axis=1)
        count += len(features)
        width = model.of_words(block).shape[1]
    size = np.sqrt(squares / max(count, 1))
    return np.where(size > 1e-6, size, 1.0).astype(np.float32), width


def principal_vectors(vectors: NDArray[Any], train: Ints, size: int) -> Floats:
    """Word vectors (W, hidden) on their `size` main axes, found on the words `train`; about 1."""
    values = vectors.astype(np.float64)
    centre = values[train].mean(axis=0)
    _, spread, axes = np.linalg.svd(values[train] - centre, full_matrices=False)
    found = (values - centre) @ axes[:size].T
    unit = np.sqrt((spread[:size] ** 2).mean() / len(train))
    scaled: Floats = (found / max(unit, 1e-12)).astype(np.float32)
    return scaled
