"""Sums over states of words: what similarities of all pairs are made of, without any pair.

The mean cosine of all pairs is a matter of sums of unit vectors: |Σ u|² has every pair in it. So
one pass is enough, whatever the number of words, and what is held does not grow with them. Sums of
one block of texts are taken off by `taken`, and the next block begins at zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from bertology.model.site_context import SiteContext
from bertology.model.sites import Kind

__all__ = ["DirectionSums", "Pooled", "RecurringPlaces", "RecurringSums", "SameWords", "number_of"]


def number_of(at: SiteContext) -> int:
    """0 is the input of the first layer, then layers."""
    return 0 if at.kind is Kind.EMBEDDINGS else at.layer + 1


class Pooled:
    """The words of a batch: the mean of the states of their pieces.

    `rows` are places of pieces in the batch (B × T), flat; `words` the word of each, in order.
    """

    def __init__(self, rows: Tensor, words: Tensor, count: int) -> None:
        self._rows, self._words = rows, words
        sizes = torch.bincount(words, minlength=count)[:, None]
        self._sizes = sizes if count < len(rows) else None  # None: each word is one piece

    def of(self, value: Tensor) -> Tensor:
        """(words, width) of one layer: (B, T, width)."""
        found = value.flatten(0, 1)[self._rows].float()
        if self._sizes is None:
            return found
        sums = torch.zeros(len(self._sizes), found.shape[1], device=value.device)
        return sums.index_add_(0, self._words, found) / self._sizes


def _units(states: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(states, dim=1, keepdim=True)
    return states / lengths.clamp_min(1e-30)


@dataclass(frozen=True)
class SameWords:
    """Which words of a batch are frequent ones: pairs of these and of one text are told apart."""

    places: Tensor
    """Words of the batch that are frequent."""
    kinds: Tensor
    """Which frequent word each of them is."""
    groups: Tensor
    """Equal where word and text are the same, from 0."""
    number: int
    """How many groups there are."""


class DirectionSums:
    """Sums of unit vectors and of their squares by text; of states, and their outer products.

    Arrays begin with the layer: `units` is (L + 1, width); `squares` too, of the sum of each text,
    added up, less those of one frequent word in one text; `kinds` (L + 1, frequent, width) are sums
    by frequent word; `states` is as `units`, and `moments` (L + 1, width, width). For sites
    `embeddings` and `layer.*.residual`. Say `start` before each batch.
    """

    def __init__(
        self, layers: int, width: int, device: torch.device, *, frequent: int, moments: bool
    ) -> None:
        self._shape, self._device, self._moments = (layers + 1, width), device, moments
        self._frequent = frequent
        self.kept: list[list[Tensor]] = [[] for _ in range(layers + 1)]
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

    def start(
        self,
        words: Pooled,
        texts: Tensor,
        rows: int,
        same: SameWords,
        keep: Tensor | None = None,
    ) -> None:
        """The next batch: its words, the text of each, how many texts, and words to be kept."""
        self._words, self._texts, self._rows, self._keep = words, texts, rows, keep
        self._same = same

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Add one layer: (B, T, width)."""
        number, states = number_of(at), self._words.of(value)
        units, same = _units(states), self._same
        by_text = torch.zeros(self._rows, states.shape[1], device=states.device)
        by_text.index_add_(0, self._texts, units)
        frequent = units[same.places]
        both = torch.zeros(same.number, states.shape[1], device=states.device)
        both.index_add_(0, same.groups, frequent)
        self._sums["units"][number] += by_text.sum(0)
        self._sums["squares"][number] += by_text.square().sum(0) - both.square().sum(0)
        self._sums["kinds"][number].index_add_(0, same.kinds, frequent)
        if self._moments:
            self._sums["states"][number] += states.sum(0)
            self._sums["moments"][number].addmm_(states.T, states)
        if self._keep is not None:
            self.kept[number].append(states[self._keep])

    def taken(self) -> dict[str, Tensor]:
        """The sums since the last time, off the device; what follows begins at zero."""
        found = {name: one.cpu() for name, one in self._sums.items()}
        self._clear()
        return found


@dataclass(frozen=True)
class RecurringPlaces:
    """Which words of a batch are occurrences of chosen ones, and the sentence of every word."""

    places: Tensor
    """Words of the batch that are occurrences."""
    chosen: Tensor
    """Which chosen word each of them is."""
    sentences: Tensor
    """The sentence of every word of the batch, from 0."""
    sizes: Tensor
    """How many words each sentence has."""
    stored: Tensor
    """Occurrences whose state is stored, by their place among the words of the batch."""
    slots: Tensor
    """Where."""


@dataclass
class RecurringSums:
    """Sums of unit vectors by chosen word; similarity of words to their sentence; stored states.

    `within` (L + 1,) adds up the mean cosine of each sentence of two words or more with its mean.
    """

    layers: int
    chosen: int
    width: int
    device: torch.device
    slots: int = 0
    """How many states are stored; none: sentences are not looked at either."""
    rows: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.rows = torch.zeros(self.layers + 1, self.slots, self.width, device=self.device)
        self._clear()

    def _clear(self) -> None:
        size = (self.layers + 1, self.chosen, self.width)
        self._units = torch.zeros(size, device=self.device)
        self._within = torch.zeros(self.layers + 1, device=self.device)

    def start(self, words: Pooled, places: RecurringPlaces) -> None:
        """The next batch."""
        self._words, self._places = words, places

    def update(self, value: Tensor, at: SiteContext) -> None:
        """Add one layer: (B, T, width)."""
        number, states, of = number_of(at), self._words.of(value), self._places
        units = _units(states)
        self._units[number].index_add_(0, of.chosen, units[of.places])
        if not self.slots:
            return
        self.rows[number][of.slots] = states[of.stored]
        empty = torch.zeros(len(of.sizes), states.shape[1], device=states.device)
        whole = _units(empty.index_add(0, of.sentences, states))
        cosines = (empty.index_add(0, of.sentences, units) * whole).sum(1) / of.sizes
        self._within[number] += cosines[of.sizes > 1].sum()

    def taken(self) -> tuple[Tensor, Tensor]:
        """Units (L + 1, chosen, width) and `within` since the last time, off the device."""
        found = self._units.cpu(), self._within.cpu()
        self._clear()
        return found
