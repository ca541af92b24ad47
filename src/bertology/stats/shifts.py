"""How far states move between two conditions, beyond what chance neighbours move them.

Each word is seen in both conditions twice, with two neighbours drawn apart. What the condition
alone does to a word is the mean shift over all neighbours; the product of the shifts with one and
with the other neighbour has its squared length as its mean, whatever neighbours do. It is exactly
by how much the squared distance of states is larger when condition and neighbour change than when
the neighbour alone does. A squared mean of two shifts would be too large by what neighbours do.
"""

from __future__ import annotations

import numpy as np

from bertology.arrays import Floats, Ints

_SHRUNK = 0.1  # of a covariance, towards one that is the same in all directions


def crossed(shifts: Floats) -> Floats:
    """(words,) of shifts (2 neighbours, words, width): the squared shift that both share."""
    return np.asarray(np.einsum("wd,wd->w", shifts[0], shifts[1]))


def common_part(shifts: Floats, along: Floats) -> Floats:
    """(words,) the same along one direction (width,); 0 where there is none."""
    length = np.linalg.norm(along)
    if length == 0:
        return np.zeros(shifts.shape[1])
    first, second = shifts @ (along / length)
    return np.asarray(first * second)


def cosine_distance(one: Floats, other: Floats) -> Floats:
    """1 - cosine, by the last axis."""
    lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    return np.asarray(1 - (one * other).sum(-1) / np.maximum(lengths, 1e-300))


def over_groups(values: Floats, group: Ints, count: int) -> Floats:
    """(count,) means of the values of each group; NaN where it has none, or only NaN."""
    known = np.isfinite(values)
    sums = np.bincount(group[known], values[known], minlength=count)
    sizes = np.bincount(group[known], minlength=count)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums / sizes)


def direction(first: Floats, second: Floats) -> Floats:
    """(width,) along which a linear discriminant tells two samples (n, width) apart."""
    rest = np.concatenate([first - first.mean(0), second - second.mean(0)])
    spread = rest.T @ rest / len(rest)
    width = len(spread)
    spread = (1 - _SHRUNK) * spread + np.eye(width) * (
        _SHRUNK * np.trace(spread) / width + np.finfo(np.float64).tiny
    )
    return np.asarray(np.linalg.solve(spread, second.mean(0) - first.mean(0)))


def parity_ratios(distances: list[Floats], first: list[Floats], second: list[Floats]) -> Floats:
    """How much farther words are across two groups than within, as a share: one for each draw.

    `distances` are squared ones between the words of one kind (n, n), `first` and `second` say
    for each draw which of them are in which group, as 0 and 1 (draws, n). Across less the mean of
    both within has the squared distance between the groups' means as its own mean. A kind counts
    in a draw where each group has two or more of its words.
    """
    excess = np.zeros(len(first[0]))
    within = np.zeros(len(first[0]))
    for apart, a, b in zip(distances, first, second, strict=True):
        many_a, many_b = a.sum(1), b.sum(1)
        counts = (many_a > 1) & (many_b > 1)
        of_a, of_b = a @ apart, b @ apart
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = (of_a * a).sum(1) / (many_a * (many_a - 1)) / 2
            inside += (of_b * b).sum(1) / (many_b * (many_b - 1)) / 2
            across = (of_a * b).sum(1) / (many_a * many_b)
        excess += np.where(counts, across - inside, 0.0)
        within += np.where(counts, inside, 0.0)
    return np.asarray(np.where(within > 0, excess / np.maximum(within, 1e-300), np.nan))
