"""Attention maps made by chance, of a type that is known because it was planned.

Every map is a mixture: what its type asks for, plus some even noise. What varies: the length, the
boundary of a pair, where stripes stand ([CLS], [SEP], full stops), offsets and widths of diagonals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.data.map_labels import MAP_TYPES
from bertology.errors import UnknownNameError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MadeMap:
    """One map, with the sentence that each token belongs to (all 0: a single sentence)."""

    weights: Floats  # (L, L), rows sum to 1
    segments: NDArray[np.int64]  # (L,)
    label: str


def make_maps(count: int, *, seed: int, shortest: int = 8, longest: int = 128) -> list[MadeMap]:
    """`count` maps, all types in turn, the same ones for the same arguments."""
    chance = np.random.default_rng(seed)
    kinds = [MAP_TYPES[i % len(MAP_TYPES)] for i in range(count)]
    # Short texts are more common than long ones: lengths are even on a logarithmic scale.
    lengths = np.exp(chance.uniform(np.log(shortest), np.log(longest + 1), size=count))
    return [make_map(k, int(n), chance) for k, n in zip(kinds, lengths, strict=True)]


def make_map(label: str, length: int, chance: np.random.Generator) -> MadeMap:
    """One map of the type `label` over `length` tokens."""
    if label not in _MAKERS:
        raise UnknownNameError("map type", label, _MAKERS)
    paired = label == "block" or chance.random() < 0.5
    boundary = int(np.clip(chance.uniform(0.25, 0.8) * length, 3, length - 3))
    segments = (np.arange(length) >= (boundary if paired else length)).astype(np.int64)
    weights = _MAKERS[label](length, segments, chance)
    if chance.random() < 0.3:  # [CLS] often looks elsewhere than the others
        weights[0] = _even(chance, length, 0.2)
    return MadeMap(weights / weights.sum(-1, keepdims=True), segments, label)


# The types --------------------------------------------------------------------------------------


def _vertical(length: int, segments: NDArray[np.int64], chance: np.random.Generator) -> Floats:
    stripes = _stripes(length, segments, chance)
    if segments.any() and chance.random() < 0.2:  # each sentence looks at its own last token
        ends = np.array([np.flatnonzero(segments == s)[-1] for s in (0, 1)])
        own = np.zeros((length, length))
        own[np.arange(length), ends[segments]] = 1
        stripes = _jitter(chance, own, 0.4)
    elif chance.random() < 0.4:  # all rows alike, and many columns in them
        columns = chance.gamma(chance.uniform(0.15, 0.6), size=length) + 1e-3
        alike = np.broadcast_to(columns / columns.sum(), (length, length))
        stripes = _jitter(chance, alike, chance.uniform(0.2, 0.6))
    faint = chance.uniform(0, 0.12) * _diagonal_part(length, segments, chance)
    return _mix(chance, stripes + faint, least=0.45)


def _diagonal(length: int, segments: NDArray[np.int64], chance: np.random.Generator) -> Floats:
    lines = _diagonal_part(length, segments, chance)
    if segments.any() and chance.random() < 0.25:  # the same words in the other sentence
        lines = lines + _parallel_lines(length, segments, chance)
    faint = chance.uniform(0, 0.1) * _stripes(length, segments, chance)
    return _mix(chance, lines + faint, least=0.5)


def _both(length: int, segments: NDArray[np.int64], chance: np.random.Generator) -> Floats:
    share = chance.uniform(0.35, 0.65)
    lines = _diagonal_part(length, segments, chance, narrow=True)
    if segments.any() and chance.random() < 0.25:
        lines = lines + _parallel_lines(length, segments, chance)
        lines /= lines.sum(-1, keepdims=True)
    stripes = _stripes(length, segments, chance, most=2)
    # Where a diagonal fades, the stripe takes over: both break a little.
    tilt = np.clip(share + chance.normal(0, 0.15, (length, 1)), 0.1, 0.9)
    return _mix(chance, tilt * stripes + (1 - tilt) * lines, least=0.65)


def _block(length: int, segments: NDArray[np.int64], chance: np.random.Generator) -> Floats:
    same = (segments[:, None] == segments).astype(float)
    columns = chance.gamma(chance.uniform(0.5, 4), size=length) + 0.05
    if chance.random() < 0.25:  # several words of each sentence take what there is
        columns = columns**2
    texture = chance.gamma(chance.uniform(1, 6), size=(length, length))
    inside = same * columns * texture
    inside /= inside.sum(-1, keepdims=True)
    near = chance.uniform(0, 0.15) * same * _band(length, chance) / 3
    leak = chance.uniform(0, 0.3)
    if chance.random() < 0.25:  # only one sentence keeps to itself
        loose = segments == chance.integers(2)
        inside[loose] = (1 - leak) * 0.5 * inside[loose] + 0.5 * _even(chance, length, 0.3)
    return np.asarray((1 - leak) * (inside + near) + leak * _texture(length, chance))


def _heterogeneous(length: int, segments: NDArray[np.int64], chance: np.random.Generator) -> Floats:
    kind = chance.integers(7)
    if kind >= 5:  # no form but for a column or two that are no darker than the rest
        return _with_faint_columns(length, segments, chance)
    if kind == 0:  # even, with a texture
        return _texture(length, chance) + 0.2 / length
    if kind == 1:  # a few spots in each row
        spots = chance.gamma(0.15, size=(length, length)) + 1e-4
        return np.asarray(spots / spots.sum(-1, keepdims=True) + 0.5 * _texture(length, chance))
    if kind == 2:  # stripes that break off again and again
        broken = _stripes(length, segments, chance, most=6)
        # In pieces, so that few rows share a column.
        pieces = np.repeat(chance.random((length // 3 + 1, length)) < 0.3, 3, axis=0)[:length]
        return np.asarray(broken * pieces + 0.6 * _texture(length, chance))
    if kind == 3:  # clouds
        return _clouds(length, chance) + 0.3 * _texture(length, chance)
    band = np.abs(np.subtract.outer(np.arange(length), np.arange(length))) / length
    wide = np.exp(-((band / chance.uniform(0.3, 0.6)) ** 2)) * chance.gamma(1.0, size=band.shape)
    return np.asarray(wide / wide.sum(-1, keepdims=True))


def _with_faint_columns(
    length: int, segments: NDArray[np.int64], chance: np.random.Generator
) -> Floats:
    """Even or spotted, with columns at [CLS] or elsewhere that the eye does not find strongest."""
    rest = _texture(length, chance)
    if chance.random() < 0.6:
        spots = chance.gamma(chance.uniform(0.1, 0.5), size=(length, length)) + 1e-4
        rest = 0.3 * rest + 0.7 * spots / spots.sum(-1, keepdims=True)
    elif chance.random() < 0.3:
        rest = 0.5 * rest + 0.5 * _clouds(length, chance)
    darkest = rest.max(-1, keepdims=True)
    shares = np.zeros(length)
    ends = [0, 0, 0, length - 1, int((segments == 0).sum()) - 1]
    for _ in range(int(chance.integers(1, 3))):
        shares[ends[chance.integers(len(ends))]] = chance.uniform(0.3, 1.0)
    columns = shares * darkest * np.exp(chance.normal(0, 0.5, (length, length)))
    return np.asarray(np.maximum(rest, columns))


_MAKERS: dict[str, Callable[[int, NDArray[np.int64], np.random.Generator], Floats]] = {
    "vertical": _vertical,
    "diagonal": _diagonal,
    "vertical+diagonal": _both,
    "block": _block,
    "heterogeneous": _heterogeneous,
}


# What they are made of --------------------------------------------------------------------------


def _stripes(
    length: int, segments: NDArray[np.int64], chance: np.random.Generator, *, most: int = 8
) -> Floats:
    """Columns that take the same share of every row, up to a jitter."""
    special = [0, length - 1, length - 2, int((segments == 0).sum()) - 1]
    count = int(chance.integers(1, 1 + min(most, max(2, length // 3))))
    places = chance.choice(length, size=count, replace=False)
    for i in range(count):
        if chance.random() < 0.6:
            places[i] = special[chance.integers(len(special))]
    shares = np.zeros(length)
    for place in places:
        shares[place] += chance.uniform(0.3, 1)
        if chance.random() < 0.3 and place > 0:  # [SEP] and the full stop before it
            shares[place - 1] += chance.uniform(0.2, 0.6)
    columns = np.broadcast_to(shares / shares.sum(), (length, length))
    return _jitter(chance, columns, chance.uniform(0.1, 0.5))


def _diagonal_part(
    length: int, segments: NDArray[np.int64], chance: np.random.Generator, *, narrow: bool = False
) -> Floats:
    """One line or a narrow band around an offset of up to three tokens."""
    offset = int(
        chance.choice([-3, -2, -1, 0, 1, 2, 3], p=[0.04, 0.06, 0.27, 0.26, 0.27, 0.06, 0.04])
    )
    sharp = narrow or chance.random() < 0.6
    width = chance.uniform(0.15, 0.5) if sharp else chance.uniform(0.5, max(0.8, length / 16))
    where = np.arange(length)
    drift = chance.normal(0, 0.3 if sharp else 0.6, length)  # each row's own offset
    away = (
        where[None]
        - np.clip(where + offset + np.round(drift * (width > 0.4)), 0, length - 1)[:, None]
    )
    line = np.exp(-0.5 * (away / width) ** 2) + 1e-9
    if segments.any() and chance.random() < 0.3:  # it stays in its sentence
        line = line * (segments[:, None] == segments) + 1e-9
    line = line * chance.gamma(4, 0.25, size=line.shape)
    return np.asarray(line / line.sum(-1, keepdims=True))


def _parallel_lines(
    length: int, segments: NDArray[np.int64], chance: np.random.Generator
) -> Floats:
    """Fainter diagonals between the sentences, as of words that occur in both."""
    boundary = int((segments == 0).sum())
    away = np.subtract.outer(np.arange(length), np.arange(length))
    lines = (np.abs(away) == boundary) * (chance.random((length, 1)) < 0.7)
    return np.asarray(lines * chance.uniform(0.1, 0.6))


def _band(length: int, chance: np.random.Generator) -> Floats:
    away = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    return np.asarray((away <= chance.integers(1, 4)) / 3.0)


def _clouds(length: int, chance: np.random.Generator) -> Floats:
    """Smooth hills at random places."""
    rows, columns = np.mgrid[0:length, 0:length] / length
    hills = np.full((length, length), 1e-3)
    for _ in range(int(chance.integers(3, 12))):
        y, x = chance.random(2)
        tall, wide = chance.uniform(0.03, 0.15, 2)
        hills += chance.uniform(0.3, 1) * np.exp(
            -(((rows - y) / tall) ** 2 + ((columns - x) / wide) ** 2)
        )
    return np.asarray(hills / hills.sum(-1, keepdims=True))


def _texture(length: int, chance: np.random.Generator) -> Floats:
    """Even attention, more or less rough."""
    rough = chance.gamma(chance.uniform(0.7, 20), size=(length, length)) + 1e-6
    return np.asarray(rough / rough.sum(-1, keepdims=True))


def _even(chance: np.random.Generator, length: int, concentration: float) -> Floats:
    draw = chance.gamma(concentration, size=length) + 1e-6
    return np.asarray(draw / draw.sum())


def _jitter(chance: np.random.Generator, weights: Floats, spread: float) -> Floats:
    shaken = weights * np.exp(chance.normal(0, spread, weights.shape))
    return np.asarray(shaken / shaken.sum(-1, keepdims=True))


def _mix(chance: np.random.Generator, form: Floats, *, least: float) -> Floats:
    """The form with noise, which gets at most 1 - `least` of the attention."""
    share = chance.uniform(least, 1)
    return np.asarray(share * form + (1 - share) * _texture(len(form), chance))
