"""Nearest neighbours among the occurrences of the same word, of all layers together.

An occurrence can only have a sense of its own lemma, so it is compared with occurrences of that
lemma alone. Lemmas of about the same size stand side by side in one product of matrices, with all
layers; what does not fit is asked in pieces. Similarities are exact cosines in float32: no index,
no approximation. One search gives the answers for every number of neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.arrays import Ints

_ROOM = {"cpu": 1 << 23, "other": 1 << 28}  # similarities that are held at a time
_PADDED = 1.25  # a lemma may stand beside one that is larger by so much, or by a few occurrences
_FEW = 4


@dataclass(frozen=True)
class Occurrences:
    """What is known of N occurrences: numbers of their lemma, sense (from 0 in it) and fold.

    Neighbours are looked for among those that are `known`, of another fold, for those that are
    `asked`.
    """

    lemmas: Ints
    senses: Ints
    folds: Ints
    asked: NDArray[np.bool_]
    known: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.lemmas)


@dataclass(frozen=True)
class _Lemma:
    asked: Ints  # places of occurrences
    known: Ints


def sense_votes(
    states: NDArray[np.generic],
    of: Occurrences,
    ks: Sequence[int],
    *,
    device: torch.device | str = "cpu",
    advance: Callable[[int], None] = lambda occurrences: None,
) -> NDArray[np.int16]:
    """(ks, layers, N): the sense that most of the k nearest have, of states (layers, N, width).

    Of senses that are named equally often it is that of the nearest neighbour among them: their
    order in the alphabet would mean something where senses are numbered by frequency. -1 where no
    occurrence of the lemma is known, or nothing was asked. Where there are fewer than k neighbours,
    all of them vote.
    """
    place = torch.device(device)
    found = np.full((len(ks), len(states), len(of)), -1, np.int16)
    room = _ROOM["cpu" if place.type == "cpu" else "other"]
    whole = _held(states, place)
    senses = torch.from_numpy(of.senses.astype(np.int64)).to(place)
    folds = torch.from_numpy(of.folds.astype(np.int64)).to(place)
    for group in _groups(of, layers=len(states), room=room):
        asked, there = (_padded([getattr(x, n) for x in group]) for n in ("asked", "known"))
        votes = _votes(whole, asked.to(place), there.to(place), senses, folds, ks)
        own = asked.numpy() >= 0
        found[:, :, asked.numpy()[own]] = votes.cpu().numpy()[:, :, own]
        advance(int(own.sum()))
    return found


def _held(states: NDArray[np.generic], device: torch.device) -> Tensor:
    """On the device as they are (half precision is made single when it is read)."""
    return torch.from_numpy(np.ascontiguousarray(states)).to(device)


def _votes(
    states: Tensor, asked: Tensor, there: Tensor, senses: Tensor, folds: Tensor, ks: Sequence[int]
) -> Tensor:
    """(ks, layers, lemmas, asked) of places (lemmas, asked) and (lemmas, there); -1 is padding."""
    near = _similar(states, asked, there)  # (V, B, q, n)
    barred = folds[asked.clamp_min(0)][:, :, None] == folds[there.clamp_min(0)][:, None, :]
    barred |= (there < 0)[:, None, :]
    if bool(barred.any()):
        near.masked_fill_(barred, -torch.inf)
    most = min(max(ks), near.shape[-1])
    values, at = near.topk(most, dim=-1, sorted=True)  # (V, B, q, k)
    named = senses[there.clamp_min(0)]  # (B, n)
    said = named[None, :, None, :].expand(*at.shape[:-1], -1).gather(-1, at)
    counted = torch.isfinite(values).to(torch.int32)
    classes = int(named.max()) + 1
    tally = torch.zeros((*said.shape[:-1], classes), dtype=torch.int32, device=near.device)
    rank = torch.arange(most, device=near.device, dtype=torch.int32)
    first = torch.full_like(tally, most)  # the rank of the nearest neighbour of each sense
    first.scatter_reduce_(-1, said, torch.where(counted > 0, rank, most), "amin")
    found, done = {}, 0
    for k in sorted({min(k, most) for k in ks}):
        tally.scatter_add_(-1, said[..., done:k], counted[..., done:k])
        found[k], done = (tally * (most + 1) - first).argmax(dim=-1), k
    stacked = torch.stack([found[min(k, most)] for k in ks])
    none = counted[..., 0] == 0
    return stacked.masked_fill(none[None], -1)


def _similar(states: Tensor, asked: Tensor, there: Tensor) -> Tensor:
    """Cosines (layers, lemmas, asked, there); what is padding has any."""
    layers, batch = len(states), len(asked)
    keys = _unit(states, there).reshape(layers * batch, there.shape[1], -1)
    same = asked.shape == there.shape and bool((asked == there).all())
    queries = keys if same else _unit(states, asked).reshape(layers * batch, asked.shape[1], -1)
    return (queries @ keys.mT).reshape(layers, batch, asked.shape[1], there.shape[1])


def _unit(states: Tensor, places: Tensor) -> Tensor:
    picked = states[:, places.clamp_min(0).reshape(-1)].float()
    lengths: Tensor = picked.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    found: Tensor = picked / lengths
    return found


def _groups(of: Occurrences, *, layers: int, room: int) -> Iterator[list[_Lemma]]:
    """Lemmas of similar size together, as many as there is room for; large ones in pieces.

    In a random order: of neighbours that are equally near (the input knows words and places only)
    some are taken, and files may be sorted by sense.
    """
    mixed = np.random.default_rng(0).permutation(len(of))
    order = mixed[np.argsort(of.lemmas[mixed], kind="stable")]
    _, starts = np.unique(of.lemmas[order], return_index=True)
    lemmas = []
    for places in np.split(order, starts[1:]):
        one = _Lemma(places[of.asked[places]], places[of.known[places]])
        if len(one.asked) and len(one.known):
            lemmas.append(one)
    lemmas.sort(key=lambda x: (len(x.known), len(x.asked)))
    group: list[_Lemma] = []
    for one in lemmas:
        rows = max(1, room // (layers * len(one.known)))
        if len(one.asked) > rows:
            for at in range(0, len(one.asked), rows):
                yield [_Lemma(one.asked[at : at + rows], one.known)]
            continue
        widest = max(len(one.asked), *(len(x.asked) for x in group), 0)
        cells = layers * (len(group) + 1) * widest * len(one.known)
        if group and (cells > room or len(one.known) > _PADDED * len(group[0].known) + _FEW):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _padded(rows: Sequence[Ints]) -> Tensor:
    """(rows, longest), -1 where a row is shorter."""
    found = np.full((len(rows), max(len(row) for row in rows)), -1, np.int64)
    for at, row in enumerate(rows):
        found[at, : len(row)] = row
    return torch.from_numpy(found)
