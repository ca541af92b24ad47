"""Contexts and their completions: what was preferred, by layer, and which versions belong together.

An example is a context without a word. Its completions are CANDIDATES, those in ANSWER the good
ones; `kinds` may call wrong ones related or unrelated. A `target` is one completion that fits the
canonical version of an item and not the reversed one. ITEM and CONDITION tell versions apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.stats.balanced import fair_weights

if TYPE_CHECKING:
    import xarray as xr

Floats = NDArray[np.float64]

AFFIRMATIVE, NEGATIVE = "affirmative", "negative"
CANONICAL, REVERSED = "canonical", "reversed"
RELATED, UNRELATED = "related", "unrelated"
_WORDS = ("id", "group", "condition", "item", "guesses")
_NUMBERS = ("rank", "score", "target", "good", "human", "human_target")


@dataclass(frozen=True)
class Completions:
    """What the model said of N contexts with up to C completions, by layer (R)."""

    words: Mapping[str, NDArray[np.str_]]  # (N,) id, group, condition, item, guesses
    candidates: NDArray[np.str_]  # (N, C)
    kinds: NDArray[np.str_]  # (N, C)
    rank: Floats  # (N, R) of the best expected word; NaN: none is a single piece
    score: Floats  # (N, C, R) log-probabilities
    target: Floats  # (N, R) log-probability of the target
    good: Floats  # (N, C) 1: good, 0: bad, NaN: no completion
    human: Floats  # (N,) share of people who gave the expected word
    human_target: Floats  # (N,) and the target

    @classmethod
    def of(cls, parts: Sequence[xr.Dataset]) -> Completions:
        """From the parts of the study, in their order."""

        def joined(name: str, kind: Callable[[Any], Any]) -> NDArray[Any]:
            return np.concatenate([kind(part[name].to_numpy()) for part in parts])

        words = {name: joined(name, np.char.asarray).astype(str) for name in _WORDS}
        candidates, kinds = (joined(n, np.asarray).astype(str) for n in ("candidates", "kinds"))
        numbers: dict[str, Any] = {n: joined(n, np.asarray).astype(np.float64) for n in _NUMBERS}
        return cls(words, candidates, kinds, **numbers)

    @property
    def layers(self) -> int:
        """How many readings there are, the last being the model itself."""
        return int(self.rank.shape[1])

    @property
    def chance(self) -> Floats:
        """(N,) the share of right choices by chance; NaN without good and bad completions."""
        there = np.isfinite(self.good)
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = np.nansum(self.good, axis=1) / there.sum(axis=1)
        return np.where((found > 0) & (found < 1), found, np.nan)

    def within(self, k: int) -> Floats:
        """(N, R) whether an expected word is among the first k; ranks that are shared count so."""
        return np.where(np.isnan(self.rank), np.nan, (self.rank <= k).astype(float))

    def preferred(self) -> Floats:
        """(N, R) whether a good completion is the likeliest; those that are equal share it."""
        best = np.where(np.isnan(self.score), -np.inf, self.score).max(axis=1, keepdims=True)
        tied = self.score == best  # (N, C, R)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (tied * np.nan_to_num(self.good)[..., None]).sum(axis=1) / tied.sum(axis=1)
        return np.where(np.isnan(self.chance)[:, None], np.nan, share)

    def margins(self) -> Floats:
        """(N, R) by how much the best good completion is more probable than the best bad one."""
        sides = []
        for good in (1.0, 0.0):
            chosen = (self.good == good)[..., None]
            sides.append(np.where(chosen, np.exp(self.score), -np.inf).max(axis=1))
        known = ~np.isnan(self.chance)[:, None]
        return np.where(known, np.where(known, sides[0], 0) - np.where(known, sides[1], 0), np.nan)

    def related(self) -> Floats:
        """(N, R) whether the related wrong completion is likelier than the unrelated one."""
        found = np.full(self.rank.shape, np.nan)
        for n, kinds in enumerate(self.kinds):
            near, far = (np.flatnonzero(kinds == kind) for kind in (RELATED, UNRELATED))
            if near.size and far.size:
                found[n] = _likelier(self.score[n, near[0]], self.score[n, far[0]])
        return found

    def weights(self, one: str = "", other: str = "") -> Floats:
        """(N,) how much a context counts, so that liking some words everywhere gains nothing.

        Choices are between kinds where they are named, between good and bad where not. Words of
        affirmative and of negative contexts are weighed apart, since a negation turns good into
        bad. See `stats.balanced.fair_weights`.
        """
        up = (self.kinds == one) if one else (self.good == 1)
        down = (self.kinds == other) if one else (self.good == 0)
        negated = np.isin(self.words["condition"], (AFFIRMATIVE, NEGATIVE))
        keys = np.where(negated, self.words["condition"], "")

        def named(some: NDArray[np.bool_]) -> list[list[str]]:
            return [
                [f"{key} {word}" for word in words[there]]
                for key, words, there in zip(keys, self.candidates, some, strict=True)
            ]

        return fair_weights(named(up), named(down))

    def pairs(self, one: str, other: str) -> NDArray[np.int64]:
        """(P, 2) places of both versions of every item that has both, once each."""
        found: dict[str, dict[str, int]] = {}
        for n, (item, condition) in enumerate(
            zip(self.words["item"], self.words["condition"], strict=True)
        ):
            if item and condition in (one, other):
                found.setdefault(str(item), {}).setdefault(str(condition), n)
        both = [(at[one], at[other]) for at in found.values() if len(at) == 2]
        return np.array(both, np.int64).reshape(-1, 2)

    def roles(self) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
        """Of P pairs: whether the target is likelier where it fits (P, R), by how much (P, R).

        Then by how much more people gave it there (P,), and the places of both versions (P, 2).
        """
        places = self.pairs(CANONICAL, REVERSED)
        places = places[np.isfinite(self.target[places, -1]).all(axis=1)]
        fits, other = self.target[places[:, 0]], self.target[places[:, 1]]
        people = self.human_target[places[:, 0]] - self.human_target[places[:, 1]]
        return _likelier(fits, other), np.exp(fits) - np.exp(other), people, places


def _likelier(one: Floats, other: Floats) -> Floats:
    found = np.where(one == other, 0.5, (one > other).astype(float))
    return np.where(np.isnan(one) | np.isnan(other), np.nan, found)
