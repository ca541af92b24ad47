"""Scores of facts parted by what names give away: sets, filters with their control, and pulls."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.stats import Estimate, percentile_interval

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Named:
    """Facts (N) with what the model says to them and to their names."""

    TEXTS: ClassVar[tuple[str, ...]] = ("relation", "noun", "subject", "gold", "word", "words")
    COLUMNS: ClassVar[tuple[str, ...]] = (
        *TEXTS, "rank", "excess", "in_name", "word_in_name", "guessable", "followed",
        "name_right", "name_excess",
    )  # fmt: skip

    columns: dict[str, NDArray[Any]]

    @classmethod
    def of(cls, whole: xr.Dataset) -> Named:
        """What all parts measured."""
        return cls({name: whole[name].to_numpy() for name in cls.COLUMNS})

    def __getitem__(self, name: str) -> Floats:
        found: Floats = self.columns[name].astype(float)
        return found

    def texts(self, name: str) -> NDArray[np.str_]:
        """A column of words."""
        found: NDArray[np.str_] = self.columns[name].astype(str)
        return found

    def those(self, chosen: Bools) -> Named:
        """Some of the facts."""
        return Named({name: v[chosen] for name, v in self.columns.items()})

    @property
    def hits(self) -> Floats:
        """Whether the right answer comes first, other right ones left out."""
        return (self["rank"] <= 1).astype(float)

    @property
    def people(self) -> Bools:
        """Whether names were asked about."""
        found: Bools = self.texts("noun") != ""
        return found

    @property
    def removed(self) -> Bools:
        """Facts that either filter takes away."""
        return (self["in_name"] + self["guessable"]) > 0

    @property
    def given(self) -> Bools:
        """Answers that are in the name, or among what a part of the name gives."""
        return (self["word_in_name"] + self["followed"]) > 0


def set_table(whole: Named, mean: Callable[[Named, Floats], Estimate]) -> pd.DataFrame:
    """Scores of all facts, of those that are left, and of those that were taken away."""
    import pandas as pd

    guessed = (whole["guessable"] == 1) & (whole["in_name"] == 0)
    sets = {
        "all": np.ones(len(whole.hits), bool),
        "left by both filters": ~whole.removed,
        "answer in the name": whole["in_name"] == 1,
        "guessed from a part of the name": guessed,
    }
    rows = []
    for name, chosen in sets.items():
        row: dict[str, object] = {"facts": name, "n": int(chosen.sum())}
        if chosen.any():
            some = whole.those(chosen)
            found, rank = mean(some, some.hits), some["rank"]
            row |= {"p_at_1": found.value, "low": found.low, "high": found.high}
            row |= {"p_at_10": float((rank <= 10).mean()), "mrr": float((1 / rank).mean())}
        rows.append(row)
    return pd.DataFrame(rows)


def control_table(
    whole: Named, *, level: float, resamples: int, seed: int
) -> list[tuple[str, Estimate]]:
    """What the filters cost, what as many facts of the same relations and answers cost, and more.

    The control takes, for each fact that was taken away, one of the same relation and answer by
    chance; its cost is what that is expected to be. Subjects are drawn with all their facts.
    """
    hits, gone = whole.hits, whole.removed.astype(float)
    _, at = np.unique(
        np.char.add(np.char.add(whole.texts("relation"), "\t"), whole.texts("gold")),
        return_inverse=True,
    )
    # Settled once: in a resample, a fact that is drawn twice would stand for itself.
    by_chance = (np.bincount(at, weights=hits) / np.bincount(at))[at]
    _, subject = np.unique(whole.texts("subject"), return_inverse=True)
    count = int(subject.max()) + 1
    rng = np.random.default_rng(seed)

    def lost(times: NDArray[np.int64]) -> tuple[float, float]:
        left, every = (times * (1 - gone)).sum(), (times * hits).sum()
        if not left:
            return np.nan, np.nan
        own, others = ((times * gone * right).sum() for right in (hits, by_chance))
        mean = every / times.sum()
        return mean - (every - own) / left, mean - (every - others) / left

    value = np.array(lost(np.ones(len(hits), np.int64)))
    drawn = np.array(
        [
            lost(np.bincount(rng.integers(count, size=count), minlength=count)[subject])
            for _ in range(resamples)
        ]
    )
    names = ("both filters", "as many facts of the same relations and answers", "the difference")
    values = (*value, value[0] - value[1])
    samples = (drawn[:, 0], drawn[:, 1], drawn[:, 0] - drawn[:, 1])
    found = []
    for name, mean, some in zip(names, values, samples, strict=True):
        some = some[np.isfinite(some)]
        low, high = percentile_interval(some, level) if len(some) else (np.nan, np.nan)
        # The middle of few resamples may miss the value by a hair.
        bounds = min(float(low), float(mean)), max(float(high), float(mean))
        found.append((name, Estimate(float(mean), *bounds, count, level, "subjects")))
    return found


def pulled_by_names(whole: Named) -> tuple[Bools, Floats]:
    """Of facts whose name does not give the right answer: whether the name gives the model's.

    Less the share of other subjects of the relation whose names give the same answer.
    """
    misled = whole.people & (whole["guessable"] == 0)
    said: dict[str, Counter[str]] = defaultdict(Counter)
    names: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    columns = [whole.texts(n) for n in ("relation", "subject", "words", "word")]
    for relation, subject, words, _ in zip(*columns, strict=True):
        names[relation].setdefault(subject, frozenset(words.split()))
    for relation, of in names.items():
        for words in of.values():
            said[relation].update(words)
    pull = []
    for i in np.flatnonzero(misled):
        relation, subject, _, word = (str(column[i]) for column in columns)
        own, others = word in names[relation][subject], len(names[relation]) - 1
        pull.append(own - (said[relation][word] - own) / others if others else 0.0)
    return misled, np.array(pull)


def sums_of(some: Named) -> dict[str, float]:
    """Of one relation: what filters take away and leave, and what names alone get right."""
    left, alone = ~some.removed, some["name_right"]
    alone = alone[np.isfinite(alone)]
    return {
        "in_name": float(some["in_name"].mean()),
        "guessable": float(some["guessable"].mean()),
        "filtered": float(some.hits[left].mean()) if left.any() else np.nan,
        "name_alone": float(alone.mean()) if len(alone) else np.nan,
    }
