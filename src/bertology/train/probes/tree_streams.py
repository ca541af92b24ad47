"""Sentences with their trees and states from disk: block by block, so that memory stays the same.

Sentences of about one length share a batch, so that little is padded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bertology.annotated.states import States
from bertology.annotated.trees.distances import TreeSentence
from bertology.arrays import Ints

_BATCH = 20  # sentences, as Hewitt and Manning have it
_WORDS = 2**11  # and no more words than these, padding counted


class TreeBatch(NamedTuple):
    """b sentences of n words at most: their numbers, states (L, b, n, D), and trees."""

    rows: Sequence[int]
    states: Tensor
    distances: Tensor  # (b, n, n)
    depths: Tensor  # (b, n)
    there: Tensor  # (b, n): 1 where there is a word

    @property
    def sizes(self) -> Tensor:
        """(b,): words."""
        return self.there.sum(1)


class TreeStream:
    """Batches of sentences; each dimension is scaled by its size in the sentences that train.

    States are not centred: the depth of a word is the length of its state, from 0.
    """

    def __init__(
        self,
        states: States,
        sentences: Sequence[TreeSentence],
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        self._states, self._sentences, self._device = states, sentences, device
        ends = np.cumsum(states.block_sizes)
        self._starts = ends - states.block_sizes
        first = np.array([one.units[0] for one in sentences], np.int64)
        self._block_of = np.searchsorted(ends, first, side="right")
        self.scale = self._sizes()  # (L, D)

    def batches(
        self, rows: Sequence[int], *, mix: torch.Generator | None = None
    ) -> Iterator[TreeBatch]:
        """The sentences `rows`, all of one block after the other; `mix` draws their order."""
        every = np.asarray(rows, np.int64)
        blocks = np.unique(self._block_of[every])
        if mix is not None:
            blocks = blocks[torch.randperm(len(blocks), generator=mix).numpy()]
        for block in blocks:
            read = torch.from_numpy(self._states.block(int(block)))
            groups = self._groups(every[self._block_of[every] == block], mix)
            for group in groups:
                yield self._batch(read, int(self._starts[block]), group)

    def _groups(self, rows: Ints, mix: torch.Generator | None) -> list[Ints]:
        """Sentences of about one length, few at a time; which ones meet differs with `mix`."""
        lengths = np.array([len(self._sentences[row]) for row in rows], np.float64)
        if mix is not None:
            lengths = lengths * (1 + 0.2 * torch.rand(len(rows), generator=mix).numpy())
        order, found, start = rows[np.argsort(lengths, kind="stable")], [], 0
        while start < len(order):
            stop = start + 1
            longest = len(self._sentences[order[start]])
            while stop < min(start + _BATCH, len(order)):
                longest = max(longest, len(self._sentences[order[stop]]))
                if longest * (stop - start + 1) > _WORDS:
                    break
                stop += 1
            found.append(order[start:stop])
            start = stop
        if mix is not None:
            found = [found[at] for at in torch.randperm(len(found), generator=mix).tolist()]
        return found

    def _batch(self, block: Tensor, start: int, rows: Ints) -> TreeBatch:
        some = [self._sentences[row] for row in rows]
        n = max(len(one) for one in some)
        units = np.zeros((len(some), n), np.int64)
        there, depths = (np.zeros((len(some), n), np.float32) for _ in range(2))
        distances = np.zeros((len(some), n, n), np.float32)
        for at, one in enumerate(some):
            size = len(one)
            units[at, :size] = one.units - start
            there[at, :size], depths[at, :size] = 1, one.depths
            distances[at, :size, :size] = one.distances
        states = block[:, torch.from_numpy(units.ravel())].to(self._device).float()
        states /= self.scale[:, None]
        labels = [torch.from_numpy(of).to(self._device) for of in (distances, depths, there)]
        shape = (len(states), *units.shape, states.shape[-1])
        return TreeBatch(rows.tolist(), states.reshape(shape), *labels)

    def _sizes(self) -> Tensor:
        """(L, D): the root of the mean square of each dimension."""
        squares, count = torch.zeros(()), 0
        train = [i for i, one in enumerate(self._sentences) if one.part == 0]
        for block in np.unique(self._block_of[train]):
            own = [self._sentences[i].units for i in train if self._block_of[i] == block]
            at = np.concatenate(own) - self._starts[block]
            read = torch.from_numpy(self._states.block(int(block)))[:, torch.from_numpy(at)]
            squares, count = squares + read.double().square().sum(1), count + len(at)
        found = (squares / max(count, 1)).sqrt().float()
        return torch.where(found > 1e-6, found, torch.ones_like(found)).to(self._device)
