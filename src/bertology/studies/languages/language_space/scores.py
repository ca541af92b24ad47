"""What was measured of one model, by item: shares, and the best layer picked on other items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import Bools, Floats, Ints
from bertology.stats import Estimate, mean_interval
from bertology.stats.rank_agreement import Agreement, PairLinks
from bertology.studies.designs.probe_scores import among_copies, least_mean
from bertology.studies.languages.language_space.space import HOW, LEXICAL, PROBES

if TYPE_CHECKING:
    import xarray as xr

_FEW_PAIRS = 5


class Scores:
    """Retrieval and languages of one model over some texts; `small`: over those copies read."""

    def __init__(
        self, part: xr.Dataset, *, small: bool = False, pairs: Bools | None = None
    ) -> None:
        of = "_small" if small else ""
        rows = part[f"rows{of}"].to_numpy()
        kept = slice(None) if pairs is None else pairs[rows[0], rows[1]]
        self.asked, self.wanted, item, candidates = rows[:, kept]
        self.hits: Floats = part[f"hits{of}"].to_numpy()[:, :, kept]  # (how, layers, rows)
        self.words: Floats = part[f"words{of}"].to_numpy()[:, kept]
        self.chance: Floats = 1.0 / candidates
        self.item_of: Ints = item
        self.items, self._item = np.unique(item, return_inverse=True)
        self._texts: tuple[Ints, Ints] = tuple(part[f"texts{of}"].to_numpy())
        self.languages = len(np.unique(self._texts[0]))
        self.told = part[f"told{of}"].to_numpy()  # (probes, layers, texts)

    @cached_property
    def _weights(self) -> Floats:
        """(rows,): so that each pair of languages counts alike, and the mean is over items."""
        pair = self.asked * (self.wanted.max() + self.asked.max() + 1) + self.wanted
        _, number, size = np.unique(pair, return_inverse=True, return_counts=True)
        return np.asarray(len(self.items) / (len(size) * size[number]), np.float64)

    def by_item(self, values: Floats) -> Floats:
        """(…, items) of values (…, rows): their mean is that over pairs of languages."""
        weighed = values * self._weights
        flat = weighed.reshape(-1, weighed.shape[-1])
        summed = np.stack([np.bincount(self._item, row, len(self.items)) for row in flat])
        return summed.reshape(*values.shape[:-1], len(self.items)).astype(np.float64)

    def layers(self, how: str) -> Floats:
        """(layers, items), the input first."""
        return self.by_item(self.hits[HOW.index(how)])

    def best(self, how: str) -> tuple[int, Floats]:
        """The best layer on all items, and the hits (rows,) of the one picked on the other half."""
        hits = self.hits[HOW.index(how), 1:]
        values = self.by_item(hits)
        second = self.items % 2 == 1
        picked = np.empty(len(self.items), np.int64)
        for half in (second, ~second):
            picked[half] = values[:, ~half].mean(axis=1).argmax()
        chosen = np.take_along_axis(hits, picked[self._item][None], axis=0)[0].astype(np.float64)
        return int(values.mean(axis=1).argmax()), chosen

    def lexical(self) -> dict[str, Floats]:
        """Hits (rows,) by shared pieces, and by shared characters."""
        return dict(zip(LEXICAL, self.words, strict=True))

    def probe(self, which: str) -> Floats:
        """(layers, items): the share of an item's texts whose language is told; input first."""
        language, item = self._texts
        items, number = np.unique(item, return_inverse=True)
        size = np.bincount(language)
        weights = len(items) / (np.count_nonzero(size) * size[language])
        told = self.told[PROBES.index(which)] * weights
        return np.stack([np.bincount(number, row, len(items)) for row in told]).astype(np.float64)

    def over(self, values: Floats, level: float) -> Estimate:
        """The mean of rows, with bounds over items, and over languages where these are wider.

        The languages are a dozen at most: what is said of a mean over them must not hang on one.
        """
        found = least_mean([self.by_item(values)], level=level)
        found = replace(found, unit="items")
        pairs = np.stack([self.asked, self.wanted])
        kinds, number = np.unique(np.sort(pairs, axis=0), axis=1, return_inverse=True)
        means = np.bincount(number.ravel(), values) / np.bincount(number.ravel())
        return wider(found, over_pairs(kinds.T, means, level))

    def beyond(self, copies: Sequence[Scores], values: Sequence[Floats], level: float) -> Estimate:
        """Values of this model (first) less the mean of copies on the same rows, over both."""
        own, *others = values
        found = least_mean([self.by_item(own - np.mean(others, axis=0))], level=level)
        each = [float(of.by_item(value).mean()) for of, value in zip(copies, others, strict=True)]
        return among_copies(replace(found, unit="items"), each)


def over_pairs(pairs: Ints, means: Floats, level: float) -> Estimate | None:
    """The mean over pairs of languages; None of so few that it says nothing of others.

    A language that is in all pairs (English, in most corpora) is taken as given.
    """
    if len(means) < _FEW_PAIRS:
        return None
    everywhere = np.intersect1d(pairs[0], pairs[1])
    hub = [one for one in everywhere if (pairs == one).any(axis=1).all()]
    if hub:
        return mean_interval(means, level).counting("languages")
    links = PairLinks.of([(int(a), int(b)) for a, b in pairs])
    row = Agreement(means.mean(keepdims=True), (means - means.mean())[None])
    found = links.estimate(row, level=level, unit="languages")
    return replace(found, n=len(np.unique(pairs)))


def wider(one: Estimate, other: Estimate | None) -> Estimate:
    """The interval of the two that is wider on the side where 0 is; it says what it is over."""
    if other is None or np.isnan(other.low):
        return one
    first = one if one.high - one.low >= other.high - other.low else other
    low, high = min(one.low, other.low), max(one.high, other.high)
    return replace(first, value=one.value, low=min(low, one.value), high=max(high, one.value))
