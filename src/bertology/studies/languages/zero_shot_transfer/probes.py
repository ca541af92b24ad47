"""Probes of frozen states: learnt in one language, asked in all, at every layer.

A probe of classes is least squares on one-hot answers with a penalty on large weights: it has a
closed form, so that all languages may be sources. Runs differ in the sentences that teach, drawn
with replacement. The layer is the one that is best in the source language on sentences that decide;
no target is looked at for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats, Ints
from bertology.studies.languages.zero_shot_transfer.data import DEV, TEST, TRAIN, Taught

if TYPE_CHECKING:
    from bertology.annotated.states import States

Rows = NDArray[np.float32]
KINDS = ("plain", "centred")
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0)  # for each example, in units of a feature's variance
_FLAT = 1e-6


class Features(Protocol):
    """What probes are given: rows (R, width) of each layer, each of one text."""

    @property
    def linear(self) -> bool:
        """Whether taking a mean off changes no more than the middle of all rows."""

    @property
    def layers(self) -> int:
        """With the input of the first layer, which comes first."""

    @property
    def texts(self) -> Ints:
        """The text of each row."""

    def layer(self, number: int, *, language: Ints | None) -> Rows:
        """With the `language` (R,) of each row, less the mean of all states of that language."""


@dataclass(frozen=True)
class WordRows:
    """One row for each word that has a state."""

    states: States
    layers: int
    linear: bool = True

    @property
    def texts(self) -> Ints:
        """The text of each word."""
        return self.states.examples

    def layer(self, number: int, *, language: Ints | None) -> Rows:
        """The words' states."""
        found = self.states.layer(number).astype(np.float32)
        return found if language is None else centred(found, language)


@dataclass(frozen=True)
class TextRows:
    """One row for each text, or for each pair of texts u and v: u, v, |u − v| and u · v."""

    vectors: Rows  # (layers, texts, width)
    first: Ints  # of each row its first text
    pairs: bool
    linear: bool = False

    @property
    def layers(self) -> int:
        """With the input."""
        return len(self.vectors)

    @property
    def texts(self) -> Ints:
        """Each row is a text, or a pair."""
        return np.arange(len(self.first))

    def layer(self, number: int, *, language: Ints | None) -> Rows:
        """Of the means of the texts' states."""
        found = self.vectors[number]
        if language is not None:
            found = centred(found, np.repeat(language, 2) if self.pairs else language)
        u: Rows = found[self.first]
        if not self.pairs:
            return u
        v = found[self.first + 1]
        return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)


def centred(rows: Rows, language: Ints) -> Rows:
    """Rows less the mean of those in the same language."""
    found = rows.copy()
    for one in np.unique(language):
        found[language == one] -= rows[language == one].mean(axis=0, dtype=np.float64)
    return found


@dataclass(frozen=True)
class Transfer:
    """Right answers by text: (seeds, kinds, sources, texts) of the layer that was picked.

    `by_layer` (kinds, sources, languages, layers) are shares; `picked` (kinds, sources).
    """

    hits: NDArray[np.float32]
    by_layer: Floats
    picked: Ints


def transferred(
    features: Features,
    answers: Ints,
    classes: int,
    taught: Taught,
    sources: Sequence[int],
    *,
    seeds: int,
    seed: int,
    beside: int = 0,
) -> Transfer:
    """Of rows whose answers are classes (R,), negative where there is none.

    The last `beside` sources are only set beside the others: one run stands for all.
    """
    texts = features.texts
    language, role = taught.language[texts], np.where(answers < 0, -1, taught.role[texts])
    scored = np.flatnonzero(role == TEST)
    shape = (features.layers, seeds, len(KINDS), len(sources), len(taught.corpus))
    hits = np.zeros(shape, np.float32)
    held = np.zeros(shape[:4])
    starts = np.flatnonzero(np.diff(texts[scored], prepend=-1))
    for number in range(features.layers):
        plain, moved = (features.layer(number, language=one) for one in (None, language))
        for at, source in enumerate(sources):
            own = language == source
            train, dev = (np.flatnonzero(own & (role == part)) for part in (TRAIN, DEV))
            last = at >= len(sources) - beside
            for run in range(1 if last else seeds):
                runs = slice(None) if last else run
                weights = drawn(texts[train], np.random.default_rng([seed, source, run]))
                for kind, rows in enumerate((plain, moved)):
                    if kind == 0 or not features.linear:
                        probe, share = _fitted(
                            rows[train], answers[train], weights, rows[dev], answers[dev], classes
                        )
                        shift = 0.0
                    else:  # a linear probe learns the same of rows about another middle
                        shift = (plain[own] - rows[own]).mean(axis=0)
                    right = probe(rows[scored] + shift) == answers[scored]
                    held[number, runs, kind, at] = share
                    told = np.add.reduceat(right, starts, dtype=np.float32)
                    hits[number, runs, kind, at][..., texts[scored][starts]] = told
    return picked_layers(hits, held, np.bincount(texts[scored], minlength=shape[4]), taught)


def picked_layers(
    hits: NDArray[np.float32], held: Floats, counts: Ints, taught: Taught
) -> Transfer:
    """Of (layers, seeds, kinds, sources, texts): the layer that is best on what decides.

    The input of the first layer is no layer; a model has one at least.
    """
    picked = 1 + held[1:].mean(axis=1).argmax(axis=0)  # (kinds, sources)
    whole = np.stack(
        [hits[:, ..., taught.of(code, TEST)].sum(axis=-1).mean(axis=1)
         / max(counts[taught.of(code, TEST)].sum(), 1) for code in range(len(taught.codes))],
        axis=-1,
    )  # fmt: skip
    kept = np.take_along_axis(hits, picked[None, None, :, :, None], axis=0)[0]
    return Transfer(kept, np.moveaxis(whole, 0, -1), picked)


def drawn(texts: Ints, rng: np.random.Generator) -> Floats:
    """How often the text of each row is drawn with replacement."""
    names, row = np.unique(texts, return_inverse=True)
    times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)))
    found: Floats = times[row].astype(np.float64)
    return found


def _fitted(
    rows: Rows, answers: Ints, weights: Floats, dev: Rows, wanted: Ints, classes: int
) -> tuple[Callable[[Rows], Ints], float]:
    """A probe, and the share of right answers on what decides, by the penalty that is best."""
    kept = weights > 0
    rows, answers, weights = rows[kept], answers[kept], weights[kept].astype(np.float32)
    whole = float(weights.sum())
    mean = (weights @ rows) / whole
    away = rows - mean
    spread = np.sqrt((weights @ np.square(away)) / whole)
    spread[spread < _FLAT] = np.inf  # what does not vary tells nothing
    away /= spread
    told = np.zeros((len(rows), classes), np.float32)
    told[np.arange(len(rows)), answers] = 1.0
    share = (weights @ told) / whole
    heavy = away * weights[:, None]
    products = (heavy.T @ away).astype(np.float64) / whole
    pulled = (heavy.T @ (told - share)).astype(np.float64) / whole
    unseen = np.where(share > 0, 0.0, -np.inf).astype(np.float32)
    judges = (dev - mean) / spread
    best, found = -1.0, np.zeros((0, 0), np.float32)
    for penalty in PENALTIES:
        ridge = products + penalty * np.eye(len(products))
        map_ = np.linalg.solve(ridge, pulled).astype(np.float32)
        right = float(((judges @ map_ + share + unseen).argmax(axis=1) == wanted).mean())
        if right > best:
            best, found = right, map_

    def probe(asked: Rows) -> Ints:
        said: Ints = ((asked - mean) / spread @ found + share + unseen).argmax(axis=1)
        return said

    return probe, best


@dataclass(frozen=True)
class Replaced:
    """Rows of which those of some texts are another model's."""

    base: Features
    other: Features
    own: NDArray[np.bool_]  # (texts,)
    linear: bool = False

    @property
    def layers(self) -> int:
        return self.base.layers

    @property
    def texts(self) -> Ints:
        return self.base.texts

    @property
    def states(self) -> Any:
        return self.base.states  # type: ignore[attr-defined]

    def layer(self, number: int, *, language: Ints | None) -> Rows:
        found = self.base.layer(number, language=None).copy()
        found[self.own[self.texts]] = self.other.layer(number, language=None)
        return found if language is None else centred(found, language)
