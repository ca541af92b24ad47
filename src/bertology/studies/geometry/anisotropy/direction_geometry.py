"""The geometry of states from sums over blocks of texts, and from a sample of words.

What is linear or quadratic in states follows from sums of all words. What must be normalised again
after a change (cosines without some dimensions, or after a repair) is measured on a sample of
words. Dimensions and repairs are found on one half of the blocks and measured on the other, and the
other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats, Ints
from bertology.stats.isotropy import (
    cosine_by_dimension,
    covariance,
    isoscore,
    participation,
    partition,
)

REMOVED = (1, 3, 5)
SHARES = (1, 3, 10)
REPAIRS = ("as it is", "centred", "without top components", "standardised", "whitened")


@dataclass(frozen=True)
class LayerSums:
    """Sums of one layer by block: (blocks, …)."""

    units: Floats
    squares: Floats
    counts: Floats
    """(blocks,) words."""
    pairs: Floats
    """(blocks,) Σ n² over texts of n words, less Σ m² over m times one frequent word in one."""
    kinds: Floats
    """(blocks, frequent, width) sums of unit vectors by frequent word."""
    kind_counts: Floats
    """(blocks, frequent)"""
    states: Floats | None = None
    moments: Floats | None = None

    def contributions(self, blocks: Sequence[int]) -> Floats:
        """What each dimension adds to the mean cosine of different words of different texts."""
        of = list(blocks)
        of_kinds, number = self.kinds[of].sum(axis=0), self.kind_counts[of].sum(axis=0)
        return cosine_by_dimension(
            self.units[of].sum(axis=0),
            self.squares[of].sum(axis=0) + (of_kinds**2).sum(axis=0),
            float(self.counts[of].sum()),
            float(self.pairs[of].sum() + (number**2).sum()),
        )

    def cosines(self) -> Floats:
        """(1 + blocks,): of all texts, then with each block left out."""
        every = range(len(self.counts))
        kept = [list(every), *([b for b in every if b != left] for left in every)]
        return np.array([self.contributions(blocks).sum() for blocks in kept])

    def moments_of(self, blocks: Sequence[int]) -> tuple[Floats, Floats]:
        """Mean and covariance of the words of some blocks."""
        assert self.states is not None
        assert self.moments is not None
        of, n = list(blocks), float(self.counts[list(blocks)].sum())
        states = self.states[of].sum(axis=0)
        return states / n, covariance(states, self.moments[of].sum(axis=0), n)


@dataclass(frozen=True)
class SampledWords:
    """Some words: their states after one layer, their texts and blocks."""

    states: Floats
    texts: Ints
    blocks: Ints
    kinds: Ints
    """Which frequent word each is; -1: none."""

    def of(self, chosen: NDArray[np.bool_]) -> SampledWords:
        """Some of them."""
        return SampledWords(
            self.states[chosen], self.texts[chosen], self.blocks[chosen], self.kinds[chosen]
        )

    def sums(self, states: Floats, size: int) -> LayerSums:
        """Of these words with other states, in `size` blocks."""
        units = states / np.maximum(np.linalg.norm(states, axis=1, keepdims=True), 1e-30)
        frequent = self.kinds >= 0
        kinds = int(self.kinds.max(initial=0)) + 1
        by_text, counts, block = _grouped(self.texts, units, self.blocks)
        both = _grouped(
            self.texts[frequent] * kinds + self.kinds[frequent],
            units[frequent],
            self.blocks[frequent],
        )
        by_kind, kind_counts, place = _grouped(
            self.blocks[frequent] * kinds + self.kinds[frequent],
            units[frequent],
            self.blocks[frequent] * kinds + self.kinds[frequent],
        )
        of_kinds = np.zeros((size * kinds, units.shape[1]))
        of_kinds[place] = by_kind
        numbers = np.zeros(size * kinds)
        numbers[place] = kind_counts
        sums, squares, pairs = (
            _added(block, rows, size) for rows in (by_text, by_text**2, counts[:, None] ** 2)
        )
        return LayerSums(
            sums,
            squares - _added(both[2], both[0] ** 2, size),
            np.bincount(self.blocks, minlength=size).astype(np.float64),
            (pairs - _added(both[2], both[1][:, None] ** 2, size))[:, 0],
            of_kinds.reshape(size, kinds, -1),
            numbers.reshape(size, kinds),
        )

    def cosines(
        self, transform: Callable[[Floats, Ints], Floats], halves: Sequence[Sequence[int]]
    ) -> Floats:
        """(1 + blocks,): the mean of both halves after `transform(states, half of each)`.

        First of all texts, then with each block left out of its half.
        """
        half = np.isin(self.blocks, list(halves[1])).astype(np.int64)
        size = sum(map(len, halves))
        of = self.sums(transform(self.states, half), size)
        whole = [float(of.contributions(one).sum()) for one in halves]
        found = [float(np.mean(whole))]
        for left in range(size):
            rest = [
                float(of.contributions([b for b in one if b != left]).sum()) if left in one else at
                for one, at in zip(halves, whole, strict=True)
            ]
            found.append(float(np.mean(rest)))
        return np.array(found)


def _grouped(groups: Ints, rows: Floats, blocks: Ints) -> tuple[Floats, Floats, Ints]:
    """Sums of rows by group, how many there are, and the block of each group."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    if not len(starts):
        return np.zeros((0, rows.shape[1])), np.zeros(0), np.zeros(0, np.int64)
    counts = np.diff(np.append(starts, len(order))).astype(np.float64)
    return np.add.reduceat(rows[order], starts, axis=0), counts, blocks[order][starts]


def _added(blocks: Ints, rows: Floats, size: int) -> Floats:
    """(size, …): rows added up by block."""
    found = np.zeros((size, rows.shape[1]))
    np.add.at(found, blocks, rows)
    return found


def geometry(sums: LayerSums, sample: SampledWords) -> dict[str, Floats]:
    """All that is told of one layer but its mean cosine, by name; see `studies/geometry`."""
    blocks = range(len(sums.counts))
    every, halves = list(blocks), ([b for b in blocks if b % 2 == 0], [b for b in blocks if b % 2])
    kept = [every, *([b for b in every if b != left] for left in every)]
    covariances = np.stack([sums.moments_of(some)[1] for some in kept])
    variances = np.linalg.eigvalsh(covariances[0])[::-1]
    found = {
        "isoscore": isoscore(covariances),
        "participation": participation(covariances),
        "shares": np.array([variances[:k].sum() for k in SHARES]) / variances.sum(),
        "contributions": sums.contributions(every),
        **_partitions(sums, sample),
        "without": _without(sums, sample, halves),
    }
    return found | _repaired(sums, sample, halves)


def _partitions(sums: LayerSums, sample: SampledWords) -> dict[str, Floats]:
    """Of states as they are, and of the same with a mean squared length of 1."""
    assert sums.moments is not None
    moments = sums.moments.sum(axis=0) / sums.counts.sum()
    directions = np.linalg.eigh(moments)[1]
    plain = partition(sample.states, directions)
    scaled = partition(sample.states / np.sqrt(np.trace(moments)), directions)
    return {
        "partition": np.array([plain.ratio, scaled.ratio]),
        "partition_spread": np.array([plain.spread, scaled.spread]),
    }


def _without(sums: LayerSums, sample: SampledWords, halves: Sequence[Sequence[int]]) -> Floats:
    """(removed, 1 + blocks): mean cosine without the dimensions that add most on the other half.

    Where a block is left out, dimensions are found without it, too.
    """
    # A word of the first half is measured without what the second half says, and the other way.
    order = [_largest(sums, half) for half in reversed(halves)]
    size = sum(map(len, halves))
    found = []
    for count in REMOVED:
        kept = np.ones((2, sample.states.shape[1]))
        for half in range(2):
            kept[half, order[half][:count]] = 0
        cosines = sample.cosines(partial(_scaled, scale=kept), halves)
        for left in range(size):
            finding = int(left in halves[1])
            measured = 1 - finding
            others = _largest(sums, [b for b in halves[finding] if b != left])[:count]
            if set(others.tolist()) != set(order[measured][:count].tolist()):
                some = sample.of(np.isin(sample.blocks, list(halves[measured])))
                again = np.ones(sample.states.shape[1])
                again[others] = 0
                new, old = (
                    some.sums(some.states * mask, size).contributions(halves[measured]).sum()
                    for mask in (again, kept[measured])
                )
                cosines[1 + left] += float(new - old) / 2
        found.append(cosines)
    return np.array(found)


def _largest(sums: LayerSums, blocks: Sequence[int]) -> Ints:
    """Dimensions, those that add most to the mean cosine first."""
    return np.argsort(-sums.contributions(blocks), kind="stable")


def _scaled(states: Floats, half: Ints, *, scale: Floats) -> Floats:
    found: Floats = states * scale[half]
    return found


def _repaired(
    sums: LayerSums, sample: SampledWords, halves: Sequence[Sequence[int]]
) -> dict[str, Floats]:
    """Each repair is found on the other half: cosines, and what covariances give."""
    fitted = [_maps(*sums.moments_of(half)) for half in reversed(halves)]
    own = [sums.moments_of(half)[1] for half in halves]
    cosines, scores = [], []
    for name in REPAIRS:
        pairs = [one[name] for one in fitted]

        def changed(states: Floats, half: Ints, pairs: Sequence[_Map] = pairs) -> Floats:
            both = [(states - middle) @ matrix for middle, matrix in pairs]
            return np.where(half[:, None] == 0, *both)

        cosines.append(sample.cosines(changed, halves))
        after = np.stack([m.T @ c @ m for (_, m), c in zip(pairs, own, strict=True)])
        first = np.linalg.eigvalsh(after)[:, -1] / np.trace(after, axis1=1, axis2=2)
        scores.append([isoscore(after).mean(), participation(after).mean(), first.mean()])
    return {"repaired": np.array(cosines), "repaired_scores": np.array(scores)}


_Map = tuple[Floats, Floats]


def _maps(mean: Floats, cov: Floats) -> Mapping[str, _Map]:
    """What is taken off, and the matrix that comes after it, for each repair."""
    width = len(mean)
    values, vectors = np.linalg.eigh(cov)
    top = vectors[:, -max(1, round(width / 100)) :]
    one = np.eye(width)
    # Directions without variance stay without: they would be noise alone.
    flat = values > 1e-10 * values[-1]
    scale = np.where(flat, 1 / np.sqrt(np.where(flat, values, 1.0)), 0.0)
    spread = np.sqrt(np.maximum(np.diag(cov), 1e-30))
    return {
        "as it is": (np.zeros(width), one),
        "centred": (mean, one),
        "without top components": (mean, one - top @ top.T),
        "standardised": (mean, np.diag(1 / spread)),
        "whitened": (mean, vectors * scale),
    }
