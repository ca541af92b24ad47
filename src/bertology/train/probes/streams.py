"""States from disk as examples of probes: block by block, so that words take no more memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.annotated.states import States
from bertology.arrays import Ints
from bertology.train.probes.classifiers import Examples

Mask = NDArray[np.bool_]
_NUMBERS = 2**25  # of words that come at a time, 128 MiB
_MIXED = 2**25  # numbers of rows that are mixed


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
        if words:
            yield from self._word_examples(chosen, labels, size, mix)
            return
        if mix is not None:
            for rows, states in self._mixed(chosen, mix):
                given = Examples(states, labels[rows].to(self._device))
                yield from ((rows[at], part) for at, part in equal_batches(given, size))
            return
        for block, every in enumerate(self._rows):
            rows = every[chosen[every]]
            for start in range(0, len(rows), size):
                some = rows[start : start + size]
                yield some, Examples(self._features(block, some), labels[some].to(self._device))

    def _mixed(self, chosen: Mask, mix: torch.Generator) -> Iterator[tuple[Ints, Tensor]]:
        """Rows and features of as many blocks as there is room for, mixed.

        Texts of one block are alike: steps that see them alone would go astray.
        """
        room, held = _MIXED // (self.layers * self.width), list[tuple[Ints, Tensor]]()
        for block in torch.randperm(len(self._rows), generator=mix).tolist():
            rows = self._rows[block][chosen[self._rows[block]]]
            if not len(rows):
                continue
            if held and len(rows) + sum(len(own) for own, _ in held) > room:
                yield _shuffled(held, mix)
                held = []
            held.append((rows, self._features(block, rows)))
        if held:
            yield _shuffled(held, mix)

    def _word_examples(
        self, chosen: Mask, labels: Tensor, size: int, mix: torch.Generator | None
    ) -> Iterator[tuple[Ints, Examples]]:
        blocks = list(range(len(self._rows)))
        if mix is not None:
            blocks = torch.randperm(len(blocks), generator=mix).tolist()
        for block in blocks:
            rows = self._rows[block][chosen[self._rows[block]]]
            if not len(rows):
                continue
            if mix is not None:
                rows = rows[torch.randperm(len(rows), generator=mix).numpy()]
            else:  # little is padded where spans of one length meet
                rows = rows[self.lengths[rows].max(axis=1).argsort(kind="stable")]
            for some in self._groups(rows, size):
                yield some, self._words(block, some, labels[some].to(self._device))

    def _groups(self, rows: Ints, size: int) -> Iterator[Ints]:
        """Rows of which `size` at most, and not too many words with their padding, come at once."""
        each = self.layers * self._mean.shape[-1] * self._units.shape[1]
        for some in np.array_split(rows, -(-len(rows) // size)):
            longest = int(self.lengths[some].max())
            pieces = -(-len(some) * longest * each // _NUMBERS)
            yield from np.array_split(some, min(pieces, len(some)))

    def _block(self, number: int) -> Tensor:
        if self._last is None or self._last[0] != number:
            self._last = None  # before the next is read: there is room for one
            self._last = number, torch.from_numpy(self._states.block(number)).to(self._device)
        return self._last[1]

    def _at(self, block: int, rows: Ints) -> Tensor:
        """Spans of rows, by the numbers of their block."""
        return torch.from_numpy(self._units[rows] - self._starts[block]).to(self._device)

    def _words(self, block: int, rows: Ints, answers: Tensor) -> Examples:
        """The words of spans, standardised."""
        padded, there = padded_words(self._block(block), self._at(block, rows))
        mean, scale = self._mean[:, None, None], self._scale[:, None, None]
        return Examples(((padded - mean) / scale).mul_(there[..., None]), answers, there)

    def _features(self, block: int, rows: Ints) -> Tensor:
        """(L, n, D) of spans, (L, n, 3 D) of pairs, standardised."""
        states, units = self._block(block), self._at(block, rows)
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


def equal_batches(given: Examples, size: int) -> Iterator[tuple[slice, Examples]]:
    """At most `size` at a time, and as many each time: a few left over would count too much."""
    rows = len(given.labels)
    ends = np.linspace(0, rows, -(-rows // size) + 1).round().astype(int)
    for start, end in pairwise(ends.tolist()):
        at = slice(start, end)
        yield at, Examples(given.states[:, at], given.labels[at])


def _shuffled(held: list[tuple[Ints, Tensor]], mix: torch.Generator) -> tuple[Ints, Tensor]:
    rows = np.concatenate([own for own, _ in held])
    order = torch.randperm(len(rows), generator=mix)
    states = torch.cat([states for _, states in held], dim=1)
    held.clear()  # there is room for them once, not three times
    return rows[order.numpy()], states[:, order.to(states.device)]
