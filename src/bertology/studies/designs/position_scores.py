"""From states of moved sentences to numbers by layer and sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.stats.shifts import (
    common_part,
    cosine_distance,
    crossed,
    direction,
    over_groups,
    parity_ratios,
)

if TYPE_CHECKING:
    from bertology.annotated.moved_sentences import MovedWords, ParityWords

GROUPS = 40
"""Groups of pairs of sentences, one of which is left out at a time, for intervals over pairs."""


def relative(part: Floats, spread: Floats) -> Floats:
    """Rows (layers, N) whose means are mean(part) / mean(spread), as the delta method has them."""
    middle = spread.mean(axis=1, keepdims=True)
    scale = np.maximum(middle, 1e-300)
    ratio = part.mean(axis=1, keepdims=True) / scale
    return np.asarray(ratio + (part - ratio * spread) / scale)


def moved_scores(moved: MovedWords) -> dict[str, Floats]:
    """By name (layers + 1, sentences), each the mean over a sentence's words.

    position, place, segment: squared shift beyond another neighbour; neighbour: squared change by
    another neighbour; spread: squared distance from the mean of all words; common: what of position
    lies along the mean shift of the other half of the sentences; told: whether a direction that was
    learnt on the other half tells a first from a second place, of two words of the same kind;
    distances and cosines. Also `mean_shift` (half 2, layers + 1, width).
    """
    sentence, count = moved.sentence, moved.count
    half = np.arange(count) % 2
    partner = _partners(moved, half)
    names = ["position", "neighbour", "spread", "common", "told"]
    names += ["distance", "neighbour_distance", "cosine", "neighbour_cosine"]
    both = moved.states.shape[1] > 1
    names += ["place", "segment"] if both else []
    layers, width = moved.states.shape[3], moved.states.shape[-1]
    found = {name: np.full((layers, count), np.nan) for name in names}
    means = np.zeros((2, layers, width))
    for layer in range(layers):
        x = moved.states[:, :, :, layer].astype(np.float64)
        first, second = x[0, 0], x[1, -1]  # (neighbour, words, width)
        shift = second - first
        values = {
            "position": crossed(shift),
            "neighbour": (np.square(first[0] - first[1]) + np.square(second[0] - second[1])).sum(-1)
            / 2,
            "spread": np.mean(
                [np.square(s - s.mean(0)).sum(-1) for s in (*first, *second)], axis=0
            ),
            "distance": np.linalg.norm(shift, axis=-1).mean(0),
            "neighbour_distance": (
                np.linalg.norm(first[0] - first[1], axis=-1)
                + np.linalg.norm(second[0] - second[1], axis=-1)
            )
            / 2,
            "cosine": cosine_distance(first, second).mean(0),
            "neighbour_cosine": (
                cosine_distance(first[0], first[1]) + cosine_distance(second[0], second[1])
            )
            / 2,
            "common": np.zeros(len(sentence)),
            "told": np.full(len(sentence), np.nan),
        }
        if both:
            place, segment = x[1].mean(0) - x[0].mean(0), (x[:, 1] - x[:, 0]).mean(0)
            values |= {"place": crossed(place), "segment": crossed(segment)}
        for h in (0, 1):
            mine = half[sentence] == h
            means[h, layer] = _mean_of_sentences(shift.mean(0)[mine], sentence[mine], count)
        for h in (0, 1):
            mine, other = half[sentence] == h, half[sentence] != h
            values["common"][mine] = common_part(shift[:, mine], means[1 - h, layer])
            if other.any():
                along = direction(*(s[:, other].reshape(-1, width) for s in (first, second)))
                told = mine & (partner >= 0)
                ahead = (second[1][partner[told]] - first[0][told]) @ along
                values["told"][told] = (ahead > 0) + 0.5 * (ahead == 0)
        for name, of_words in values.items():
            found[name][layer] = over_groups(of_words, sentence, count)
    return {**found, "mean_shift": means}


def _mean_of_sentences(shifts: Floats, sentence: NDArray[np.int64], count: int) -> Floats:
    """The mean over sentences of the mean over their words."""
    sizes = np.bincount(sentence, minlength=count)
    weights = 1 / sizes[sentence]
    return np.asarray(weights @ shifts / max(int((sizes > 0).sum()), 1))


def _partners(moved: MovedWords, half: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each word the next of its kind in another sentence of the same half; -1 for none."""
    found = np.full(len(moved.sentence), -1)
    places: dict[tuple[str, int], list[int]] = {}
    for word, (kind, sentence) in enumerate(zip(moved.kinds, moved.sentence, strict=True)):
        places.setdefault((kind, int(half[sentence])), []).append(word)
    for words in places.values():
        for at, word in enumerate(words):
            others = (words[(at + step) % len(words)] for step in range(1, len(words)))
            fitting = (o for o in others if moved.sentence[o] != moved.sentence[word])
            found[word] = next(fitting, -1)
    return found


def parity_scores(words: ParityWords, *, draws: int, seed: int) -> dict[str, Floats]:
    """How words of the same kind differ between first and second sentences, by layer.

    parity: across over within, less 1; parity_left_out: the same without a group of pairs
    (layers + 1, groups); parity_p: the share of draws that exchange first and second within pairs
    and come as far from 0; same_silhouette, other_silhouette (layers + 1, pairs): how well words
    of a kind keep together among sentences of the same and of the other place; apart
    (kinds, 3): mean squared distances in the last layer within first, within second, across.
    """
    rng = np.random.default_rng([seed, 4])
    pairs, number = np.unique(words.pair, return_inverse=True)
    flips = rng.integers(0, 2, (draws, len(pairs))).astype(bool)
    group = np.arange(len(pairs)) % min(GROUPS, len(pairs))
    left = np.stack([group != g for g in range(group.max() + 1)])
    members = [np.flatnonzero(words.kind == k) for k in range(len(words.kinds))]
    masks = _masks(words, number, members, flips, left)
    layers = len(words.states)
    found = {name: np.zeros(layers) for name in ("parity", "parity_p")}
    found["parity_left_out"] = np.zeros((layers, len(left)))
    for name in ("same_silhouette", "other_silhouette"):
        found[name] = np.full((layers, len(pairs)), np.nan)
    for layer in range(layers):
        x = words.states[layer].astype(np.float64)
        apart = _squared_distances(x)
        distances = [apart[np.ix_(some, some)] for some in members]
        ratios = parity_ratios(distances, *masks)
        found["parity"][layer] = ratios[0]
        found["parity_left_out"][layer] = ratios[1 : 1 + len(left)]
        drawn = ratios[1 + len(left) :]
        as_far = (np.abs(drawn) >= abs(ratios[0]) - 1e-15).sum()
        found["parity_p"][layer] = (1 + as_far) / (1 + draws)
        lengths = np.sqrt(apart)
        for name, same in (("same_silhouette", True), ("other_silhouette", False)):
            values = _silhouettes(lengths, words, same=same)
            found[name][layer] = over_groups(values, number, len(pairs))
    found["apart"] = np.stack(
        [_apart(d, words.second[m]) for d, m in zip(distances, members, strict=True)]
    )
    return found


def _masks(
    words: ParityWords,
    number: NDArray[np.int64],
    members: list[NDArray[np.int64]],
    flips: NDArray[np.bool_],
    left: NDArray[np.bool_],
) -> tuple[list[Floats], list[Floats]]:
    """Which words are in first and second sentences: as it is, without groups, and exchanged."""
    first, second = [], []
    for some in members:
        is_second, pair = words.second[some], number[some]
        kept = np.concatenate([np.ones((1, len(some)), bool), left[:, pair]])
        exchanged = flips[:, pair] ^ is_second
        first.append(np.concatenate([kept & ~is_second, ~exchanged]).astype(np.float64))
        second.append(np.concatenate([kept & is_second, exchanged]).astype(np.float64))
    return first, second


def _squared_distances(x: Floats) -> Floats:
    centred = x - x.mean(0)
    squares = np.square(centred).sum(1)
    found = np.maximum(squares[:, None] + squares[None] - 2 * centred @ centred.T, 0.0)
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def _silhouettes(lengths: Floats, words: ParityWords, *, same: bool) -> Floats:
    """(words,) silhouettes of kinds, where all others are in sentences of the same place, or not.

    NaN where a word's kind has no other word there.
    """
    agree = words.second[:, None] == words.second[None]
    there = (agree if same else ~agree).astype(np.float64)
    np.fill_diagonal(there, 0.0)
    kinds = np.eye(len(words.kinds))[words.kind]
    sizes = there @ kinds
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (lengths * there) @ kinds / sizes
    rows = np.arange(len(words.kind))
    own = means[rows, words.kind]
    means[rows, words.kind] = np.nan
    if len(words.kinds) < 2:
        return np.full(len(rows), np.nan)
    nearest = np.min(np.where(np.isnan(means), np.inf, means), axis=1)
    found = (nearest - own) / np.maximum(np.maximum(nearest, own), 1e-300)
    return np.asarray(np.where(np.isfinite(nearest), found, np.nan))


def _apart(distances: Floats, second: NDArray[np.bool_]) -> Floats:
    """Mean squared distances within first, within second, and across."""

    def within(some: NDArray[np.bool_]) -> float:
        size = int(some.sum())
        return float(distances[np.ix_(some, some)].sum() / (size * (size - 1)))

    return np.array([within(~second), within(second), distances[np.ix_(~second, second)].mean()])
