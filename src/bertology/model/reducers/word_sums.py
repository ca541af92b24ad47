"""Sums over states of words: what similarities of all pairs are made of, without any pair.

The mean cosine of all pairs is a matter of sums of unit vectors: |Σ u|² has every pair in it. So
one pass is enough, whatever the number of words, and what is held does not grow with them. Sums of
one block of texts are taken off by `taken`, and the next block begins at zero.

Several layers lie side by side, as (words, layers, width), and are summed at once, so that a device
is asked for few operations; and nothing here waits for it: what depends on texts alone is found
before, and no result decides what is asked next. Words of one text, sentence or kind are one run of
rows, which `embedding_bag` sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from bertology.model.site_context import SiteContext
from bertology.model.sites import Kind

_TOGETHER = 2**28  # bytes of the layers that are summed at once


def number_of(at: SiteContext) -> int:
    """0 is the input of the first layer, then layers."""
    return 0 if at.kind is Kind.EMBEDDINGS else at.layer + 1


class Pooled:
    """The words of a batch: the mean of the states of their pieces.

    `rows` are places of pieces in the batch (B × T), flat; each word is a run of them that begins
    at one of `starts`.
    """

    def __init__(self, rows: Tensor, starts: Tensor) -> None:
        self._rows, self._starts = rows, starts
        self.every = torch.arange(len(starts), device=rows.device)

    def of(self, value: Tensor) -> Tensor:
        """(words, width) of one layer: (B, T, width)."""
        flat = value.flatten(0, 1).float()
        if len(self._rows) == len(self._starts):  # each word is one piece
            return flat.index_select(0, self._rows)
        return embedding_bag(self._rows, flat, self._starts, mode="mean")


def _run_sums(states: Tensor, rows: Tensor, starts: Tensor) -> Tensor:
    """(runs, layers, width): the sums of runs of `rows` of the states, which begin at `starts`."""
    if not len(starts):
        return states.new_zeros(0, *states.shape[1:])
    found = embedding_bag(rows, states.flatten(1), starts, mode="sum")
    return found.reshape(len(starts), *states.shape[1:])


def _made_units(states: Tensor) -> Tensor:
    """The same memory: states are not needed again."""
    lengths: Tensor = torch.linalg.vector_norm(states, dim=-1, keepdim=True)
    return states.div_(lengths.clamp_min_(1e-30))


class _LayersTogether:
    """Holds the words of some layers, which come in order, until they are summed at once."""

    def __init__(self, layers: int) -> None:
        self._last, self._held = layers, list[Tensor]()

    def _begin(self, words: Pooled) -> None:
        self._words = words
        self._held.clear()

    def update(self, value: Tensor, at: SiteContext) -> None:
        """See one layer: (B, T, width)."""
        number, held = number_of(at), self._held
        held.append(self._words.of(value))
        # Deep or wide models: fewer layers at once, so that memory stays what a layer needs.
        if number < self._last and (len(held) + 1) * held[0].nbytes <= _TOGETHER:
            return
        states = torch.stack(held, dim=1)
        layers = slice(number + 1 - len(held), number + 1)
        held.clear()
        self._add(states, layers)

    def _add(self, states: Tensor, layers: slice) -> None:
        """Add some layers (words, layers, width), which may be overwritten."""
        raise NotImplementedError


@dataclass(frozen=True)
class DirectionPlaces:
    """The texts of a batch, and which of its words are frequent ones: these are told apart."""

    texts: Tensor
    """Where among the words of the batch each text begins."""
    frequent: Tensor
    """Words of the batch that are frequent, in runs of one word of one text."""
    groups: Tensor
    """Where each of these runs begins."""
    kinds: Tensor
    """Which frequent word each run is."""
    keep: Tensor | None = None
    """Words whose states are kept."""


class DirectionSums(_LayersTogether):
    """Sums of unit vectors and of their squares by text; of states, and their outer products.

    Arrays begin with the layer: `units` is (L + 1, width); `squares` too, of the sum of each text,
    added up, less those of one frequent word in one text; `kinds` (L + 1, frequent, width) are sums
    by frequent word; `states` is as `units`, and `moments` (L + 1, width, width). For sites
    `embeddings` and `layer.*.residual`. Say `start` before each batch.
    """

    def __init__(
        self, layers: int, width: int, device: torch.device, *, frequent: int, moments: bool
    ) -> None:
        super().__init__(layers)
        self._shape, self._device, self._moments = (layers + 1, width), device, moments
        self._frequent = frequent
        self.kept: list[Tensor] = []
        """Of each batch (L + 1, kept words, width)."""
        self._clear()

    def _clear(self) -> None:
        layers, width = self._shape
        shapes: dict[str, tuple[int, ...]] = {
            "units": (layers, width),
            "squares": (layers, width),
            "kinds": (layers, self._frequent, width),
        }
        if self._moments:
            shapes |= {"states": (layers, width), "moments": (layers, width, width)}
        self._sums = {name: torch.zeros(s, device=self._device) for name, s in shapes.items()}

    def start(self, words: Pooled, places: DirectionPlaces) -> None:
        """The next batch."""
        self._begin(words)
        self._places = places
        if places.keep is not None:
            layers, width = self._shape
            self.kept.append(torch.empty(layers, len(places.keep), width, device=self._device))

    def _add(self, states: Tensor, layers: slice) -> None:
        of = self._places
        sums = {name: one[layers] for name, one in self._sums.items()}
        if self._moments:
            sums["states"] += states.sum(0)
            sums["moments"].baddbmm_(states.permute(1, 2, 0), states.transpose(0, 1))
        if of.keep is not None:
            self.kept[-1][layers] = states.index_select(0, of.keep).transpose(0, 1)
        units = _made_units(states)
        by_text = _run_sums(units, self._words.every, of.texts)
        both = _run_sums(units, of.frequent, of.groups)
        sums["units"] += by_text.sum(0)
        sums["squares"] += by_text.square_().sum(0)
        sums["kinds"].index_add_(1, of.kinds, both.transpose(0, 1))
        sums["squares"] -= both.square_().sum(0)

    def taken(self) -> dict[str, Tensor]:
        """The sums since the last time, off the device; what follows begins at zero."""
        found = {name: one.cpu() for name, one in self._sums.items()}
        self._clear()
        return found


@dataclass(frozen=True)
class RecurringPlaces:
    """Which words of a batch are occurrences of chosen ones, and its sentences."""

    places: Tensor
    """Words of the batch that are occurrences, in runs of one chosen word."""
    runs: Tensor
    """Where each run begins."""
    chosen: Tensor
    """Which chosen word each run is."""
    sentences: Tensor
    """Where among the words of the batch each sentence begins."""
    sizes: Tensor
    """How many words each sentence has."""
    stored: Tensor
    """Occurrences whose state is stored, by their place among the words of the batch."""
    slots: Tensor
    """Where."""


class RecurringSums(_LayersTogether):
    """Sums of unit vectors by chosen word; similarity of words to their sentence; stored states.

    `within` (L + 1,) adds up the mean cosine of each sentence of two words or more with its mean.
    With `slots`, so many states are stored; none: sentences are not looked at either.
    """

    def __init__(
        self, layers: int, chosen: int, width: int, device: torch.device, *, slots: int = 0
    ) -> None:
        super().__init__(layers)
        self._size, self._device = (layers + 1, chosen, width), device
        self.rows = torch.zeros(layers + 1, slots, width, device=device)
        self._clear()

    def _clear(self) -> None:
        self._units = torch.zeros(self._size, device=self._device)
        self._within = torch.zeros(self._size[0], device=self._device)

    def start(self, words: Pooled, places: RecurringPlaces) -> None:
        """The next batch."""
        self._begin(words)
        self._places = places

    def _add(self, states: Tensor, layers: slice) -> None:
        of, every = self._places, self._words.every
        looked_at = self.rows.shape[1] > 0
        if looked_at:
            stored = states.index_select(0, of.stored).transpose(0, 1)
            self.rows[layers].index_copy_(1, of.slots, stored)
            whole = _made_units(_run_sums(states, every, of.sentences))
        units = _made_units(states)
        by_word = _run_sums(units, of.places, of.runs)
        self._units[layers].index_add_(1, of.chosen, by_word.transpose(0, 1))
        if looked_at:
            of_sentences = _run_sums(units, every, of.sentences)
            cosines = of_sentences.mul_(whole).sum(-1) / of.sizes[:, None]
            # Not chosen by a mask: how many there are would have to be known here first.
            self._within[layers].add_((cosines * (of.sizes[:, None] > 1)).sum(0))

    def taken(self) -> tuple[Tensor, Tensor]:
        """Units (L + 1, chosen, width) and `within` since the last time, off the device."""
        found = self._units.cpu(), self._within.cpu()
        self._clear()
        return found
