"""States from disk as examples of probes: block by block, so that words take no more memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.annotated.states import States
from bertology.train.probes.classifiers import Examples

__all__ = ["StateStream", "mean_states", "padded_words"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
_NUMBERS = 2**25  # of words that come at a time, 128 MiB


class StateStream:
    """Examples made of states: `units` (R, 1, 2) are spans of words, (R, 2, 2) pairs of one text.

    A span is the mean of its states, from the first to the one before the last number. A pair is
    its two spans and their product, side by side. Spans are standardised by what they are in the
    rows `train`.
    """

    def __init__(
        self,
        states: States,
        units: Ints,
        train: Mask,
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        self._states, self._units = states, units
        self._device = device
        self._last: tuple[int, Tensor] | None = None  # the block that was read last
        ends = np.cumsum([0, *states.block_sizes])
        self._starts = ends[:-1]
        # Rows of each block; both spans of a pair stand in one text, and a text in one block.
        self._rows = [
            np.flatnonzero((units[:, 0, 0] >= first) & (units[:, 0, 0] < end))
            for first, end in pairwise(ends)
        ]
        self._mean, self._scale = self._moments(train)

    @property
    def width(self) -> int:
        """Dimensions of an example."""
        return self._mean.shape[-1] * (1 if self._units.shape[1] == 1 else 3)

    @property
    def layers(self) -> int:
        """Layers, that of the input counted too."""
        return len(self._mean)

    @property
    def lengths(self) -> Ints:
        """(R, S): words of spans."""
        found: Ints = self._units[..., 1] - self._units[..., 0]
        return found

    def examples(
        self,
        chosen: Mask,
        labels: Tensor,
        size: int,
        *,
        words: bool = False,
        mix: torch.Generator | None = None,
    ) -> Iterator[tuple[Ints, Examples]]:
        """The chosen rows with their `labels` (R, P), `size` at a time; `mix` draws their order.

        With `words`, they come as the words of their spans, padded to the longest: the longer that
        is, the fewer rows come at a time, so that spans of any length take no more memory.
        """
        blocks = list(range(len(self._rows)))
        if mix is not None:
            blocks = torch.randperm(len(blocks), generator=mix).tolist()
        for block in blocks:
            rows = self._rows[block][chosen[self._rows[block]]]
            if not len(rows):
                continue
            if mix is not None:
                rows = rows[torch.randperm(len(rows), generator=mix).numpy()]
            elif words:  # little is padded where spans of one length meet
                rows = rows[self.lengths[rows].max(axis=1).argsort(kind="stable")]
            states = self._block(block)
            for some in self._groups(rows, size) if words else _cut(rows, size):
                own = torch.from_numpy(self._units[some] - self._starts[block]).to(self._device)
                answers = labels[some].to(self._device)
                if words:
                    yield some, self._words(states, own, answers)
                else:
                    yield some, Examples(self._features(states, own), answers)

    def _groups(self, rows: Ints, size: int) -> Iterator[Ints]:
        """Rows of which `size` at most, and not too many words with their padding, come at once."""
        each = self.layers * self._mean.shape[-1] * self._units.shape[1]
        for some in _cut(rows, size):
            longest = int(self.lengths[some].max())
            pieces = -(-len(some) * longest * each // _NUMBERS)
            yield from np.array_split(some, min(pieces, len(some)))

    def _block(self, number: int) -> Tensor:
        if self._last is None or self._last[0] != number:
            self._last = None  # before the next is read: there is room for one
            self._last = number, torch.from_numpy(self._states.block(number)).to(self._device)
        return self._last[1]

    def _words(self, states: Tensor, units: Tensor, answers: Tensor) -> Examples:
        """The words of spans, standardised."""
        padded, there = padded_words(states, units)
        mean, scale = self._mean[:, None, None], self._scale[:, None, None]
        return Examples(((padded - mean) / scale).mul_(there[..., None]), answers, there)

    def _features(self, states: Tensor, units: Tensor) -> Tensor:
        """(L, n, D) of spans, (L, n, 3 D) of pairs, standardised."""
        spans = [
            (mean_states(states, units[:, at]) - self._mean) / self._scale
            for at in range(units.shape[1])
        ]
        if len(spans) == 1:
            return spans[0]
        return torch.cat([*spans, spans[0] * spans[1]], dim=-1)

    def _moments(self, train: Mask) -> tuple[Tensor, Tensor]:
        """(L, 1, D): mean and spread over the spans of the training examples, each once."""
        sums, squares, count = torch.zeros(()), torch.zeros(()), 0
        for number, rows in enumerate(self._rows):
            spans = np.unique(self._units[rows[train[rows]]].reshape(-1, 2), axis=0)
            own = torch.from_numpy(spans - self._starts[number])
            if len(own):
                read = torch.from_numpy(self._states.block(number)).double()
                pooled = mean_states(read, own)
                sums, squares = sums + pooled.sum(1), squares + (pooled**2).sum(1)
                count += len(own)
        mean = sums / max(count, 1)
        spread = (squares / max(count, 1) - mean**2).clamp_min(0).sqrt()
        spread = torch.where(spread > 1e-6, spread, torch.ones_like(spread))
        return mean[:, None].float().to(self._device), spread[:, None].float().to(self._device)


def mean_states(states: Tensor, spans: Tensor) -> Tensor:
    """(L, n, D): means of states (L, units, D) over spans (n, 2), single precision at least."""
    first, lengths = spans[:, 0], spans[:, 1] - spans[:, 0]
    found = _precise(states[:, first])
    for place in range(1, int(lengths.max())):  # as many numbers at once as there are spans
        longer = (lengths > place).nonzero()[:, 0]
        found[:, longer] += _precise(states[:, first[longer] + place])
    return found / lengths[:, None] if int(lengths.max()) > 1 else found


def padded_words(states: Tensor, units: Tensor) -> tuple[Tensor, Tensor]:
    """(L, n, S, T, D) of states (L, units, D) in spans (n, S, 2); where words are (n, S, T)."""
    first, end = units[..., 0, None], units[..., 1, None]
    at = first + torch.arange(int((end - first).max()), device=units.device)  # (n, S, T)
    there = at < end
    found = _precise(states[:, torch.where(there, at, first)])
    return found.mul_(there[..., None]), there


def _precise(states: Tensor) -> Tensor:
    return states.float() if states.dtype == torch.float16 else states


def _cut(rows: Ints, size: int) -> Iterator[Ints]:
    """So many at a time."""
    for at in range(0, len(rows), size):
        yield rows[at : at + size]
