"""Maps as they are sent to the page: a short description in JSON, then a byte for each weight."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray

from bertology.data.words.alignment import pool
from bertology.errors import BertologyError
from bertology.server.map_pictures import in_16_bits
from bertology.server.reading import Reading

Floats = NDArray[np.floating]
_WORD = 4  # bytes; the weights must begin at a multiple, so that JavaScript reads them in place


def maps_at(reading: Reading, maps: Floats, level: str) -> Floats:
    """The maps between pieces, or between words."""
    if level == "pieces":
        return maps
    assert reading.sentence.units  # raises an error if no words are known
    assert reading.sentence.alignment is not None
    return pool(maps, reading.sentence.alignment, special=True)


def mean_of(maps: Floats, layer: int | None, head: int | None) -> Floats:
    """One map of all (layers, heads, …), or a mean; heads that were pruned do not count."""
    some = maps if layer is None else maps[layer : layer + 1]
    some = some if head is None else some[:, head : head + 1]
    there = ~np.isnan(some).any(axis=(-2, -1))
    if not there.any():
        raise BertologyError("All of these heads were pruned: they have no map.")
    found: Floats = some[there].mean(axis=0)
    return found


def described(reading: Reading, level: str) -> dict[str, object]:
    """The tokens of the rows and columns of the maps."""
    sentence = reading.sentence
    alignment = sentence.alignment
    if level == "pieces":
        groups: list[tuple[int, ...]] = [(i,) for i in range(len(sentence))]
        tokens, originals = list(sentence.pieces), list(sentence.originals)
    else:
        groups = sentence.units
        tokens = [sentence.word_at(group) for group in groups]
        originals = [sentence.original_at(group) for group in groups]
    start = sentence.boundary
    return {
        "size": len(groups),
        "tokens": tokens,
        "originals": originals,
        "pieces": [list(group) for group in groups],
        "words": [None if alignment is None else alignment.word_of(g[0]) for g in groups],
        "special": [sentence.special[g[0]] for g in groups],
        "masked": [i for i, group in enumerate(groups) if set(group) <= set(sentence.masked)],
        "boundary": None
        if start is None
        else next(i for i, group in enumerate(groups) if group[0] >= start),
    }


def pack(about: dict[str, object], maps: Floats) -> bytes:
    """`about`, with the maps' shape and peaks, and each weight as a share of its map's peak.

    Heads that were pruned, whose weights are NaN, have a peak and weights of 0.
    """
    layers, heads = maps.shape[:2]
    steps = np.empty(maps.shape, np.uint8)
    peaks: list[float] = []
    for layer, own in enumerate(maps):  # one by one: a layer stays in the processor's cache
        most = np.nan_to_num(own.max(axis=(-2, -1)))  # (heads,)
        scale = np.divide(255.0, most, out=np.zeros_like(most), where=most > 0)
        scaled = np.nan_to_num(own * scale[:, None, None], copy=False)
        steps[layer] = np.rint(scaled, out=scaled)
        peaks += [float(f"{peak:.6g}") for peak in most.tolist()]
    about = {**about, "layers": layers, "heads": heads, "peaks": peaks}
    text = json.dumps(about, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _WORD)
    return b"".join([len(text).to_bytes(4, "little"), text, steps.tobytes()])


def single(about: dict[str, object], weights: Floats) -> dict[str, object]:
    """One map in 16 bits for each weight, as on the labelling page."""
    packed, peak = in_16_bits(weights)
    return {**about, "weights": packed, "peak": peak}
