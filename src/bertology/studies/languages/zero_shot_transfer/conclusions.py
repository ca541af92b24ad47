"""What is concluded of right answers by language: gains, gates, relations, variants."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from bertology.arrays import Bools, Floats, Ints
from bertology.stats import Estimate
from bertology.stats.crossed import bounds_over, together
from bertology.stats.language_pairs import Pairs, over_languages
from bertology.studies.designs.probe_scores import among_copies
from bertology.studies.designs.shares import per_item
from bertology.studies.languages.zero_shot_transfer.data import distances

if TYPE_CHECKING:
    import xarray as xr

COPIES_OF = "shuffled weights"
_ENDS = (-1.0, 1.0)  # of a difference of shares


def of_runs(values: Floats, level: float) -> Estimate:
    """The mean over runs and sentences of values (runs, sentences) whose mean is a share."""
    influence = values.mean(axis=0)
    ends = min(_ENDS[0], float(influence.min())), max(_ENDS[1], float(influence.max()))
    low, high = bounds_over(influence, ends, level)
    return together(values.mean(axis=1), low, high, len(influence), level=level, within=_ENDS)


def of_pairs(
    values: Floats, sources: Sequence[int], level: float, errors: Floats
) -> Estimate | None:
    """The mean over pairs of languages of (runs, sources, languages), over runs and sentences.

    `errors` (sources, languages) are the standard errors that sentences give. These may be the same
    in all languages, so that a mean over languages has no smaller one.
    """
    found = over_languages(values.mean(axis=0), sources, level)
    if found is None:
        return None
    by_run = np.nanmean(values, axis=(1, 2))
    known = np.isfinite(values[0])
    arm = float(errors[known].mean()) * float(ndtri((1 + level) / 2))
    low, high = (
        found.value + side * math.hypot(end - found.value, arm)
        for side, end in ((-1, found.low), (1, found.high))
    )
    whole = together(by_run, low, high, found.n, level=level, within=_ENDS)
    counted = whole.unit if whole.unit == "seeds" else "languages"
    return replace(whole, value=found.value, unit=counted)


def largest_of(each: Sequence[Estimate]) -> Estimate:
    """The largest of several, whose bounds hold together: above a border if any one is."""
    best = max(each, key=lambda one: one.low)
    return replace(best, high=max(one.high for one in each))


@dataclass(frozen=True)
class Answers:
    """What a part has: right answers (runs, kinds, sources, texts), and what was asked."""

    part: xr.Dataset

    @cached_property
    def codes(self) -> tuple[str, ...]:
        return tuple(str(one) for one in self.part["language"].to_numpy())

    @cached_property
    def sources(self) -> list[int]:
        """Their places among the languages."""
        return [self.codes.index(str(one)) for one in self.part["source"].to_numpy()]

    @cached_property
    def spoken(self) -> Ints:
        return self.part["spoken"].to_numpy()

    @cached_property
    def counts(self) -> Ints:
        return self.part["counts"].to_numpy()

    @cached_property
    def hits(self) -> Floats:
        return self.part["hits"].to_numpy().astype(np.float64)

    def asked(self, code: int) -> Bools:
        """The texts of a language."""
        found: Bools = self.spoken == code
        return found

    def values(self, hits: Floats, code: int) -> Floats:
        """Right answers (…, texts) as values of the texts of a language; their mean is a share."""
        own = self.asked(code) & (self.counts > 0)
        return per_item(hits[..., own], self.counts[own])

    def shares(self, kind: int = 0) -> Floats:
        """(runs, sources, languages)."""
        return self.of(self.hits[:, kind])

    def errors(self, hits: Floats) -> Floats:
        """(sources, languages): standard errors over texts of (runs, sources, texts)."""
        each = [self.values(hits.mean(axis=0), code) for code in range(len(self.codes))]
        return np.stack(
            [one.std(axis=1, ddof=1) / math.sqrt(one.shape[1]) if one.shape[1] > 1
             else np.full(len(one), np.nan) for one in each], axis=1,
        )  # fmt: skip

    def of(self, hits: Floats) -> Floats:
        totals = [
            hits[..., self.asked(code)].sum(axis=-1) / max(self.counts[self.asked(code)].sum(), 1)
            for code in range(len(self.codes))
        ]
        return np.stack(totals, axis=-1)

    @cached_property
    def baseline(self) -> Floats:
        """(sources, texts): right answers of the better baseline for each language.

        Of the most frequent answer for a word's pieces, and of one answer for all.
        """
        both = [self.part[name].to_numpy().astype(np.float64) for name in ("frequent", "constant")]
        shares = [self.of(one) for one in both]  # (sources, languages)
        better = (shares[0] >= shares[1])[:, self.spoken]
        found: Floats = np.where(better, *both)
        return found

    @cached_property
    def gains(self) -> Floats:
        """(runs, sources, languages) beyond the baseline."""
        found: Floats = self.shares() - self.of(self.baseline)[None]
        return found

    def beyond_constant(self, source: int, level: float) -> Estimate:
        """What is told in the language that was learnt in, beyond one answer for all.

        There a table of words may know as much: that the task was learnt needs no more than this.
        """
        beyond = self.hits[:, 0, source] - self.part["constant"].to_numpy()[source]
        return of_runs(self.values(beyond, self.sources[source]), level)

    def gain(self, source: int, code: int, level: float, kind: int = 0) -> Estimate:
        """Of a pair: the row of a source, and a language."""
        beyond = self.hits[:, kind, source] - self.baseline[source]
        return of_runs(self.values(beyond, code), level)


def _padded(hits: Floats, sources: int) -> Floats:
    """Rows for sources of which copies were not asked, since they are only set beside others."""
    return np.pad(hits, ((0, sources - len(hits)), (0, 0)))


@dataclass(frozen=True)
class Transfers:
    """The model's answers, and those of copies with shuffled weights; none where it was tuned."""

    answers: Answers
    copies: Sequence[Answers]
    level: float
    asked: Sequence[int]
    """The rows of sources that were asked for."""

    @cached_property
    def learnt(self) -> list[int]:
        """Rows of sources in which the task is surely told beyond one answer for all."""
        level = 1 - (1 - self.level) / max(len(self.asked), 1)
        return [row for row in self.asked if self.answers.beyond_constant(row, level).low > 0]

    @property
    def places(self) -> list[int]:
        """The languages of these sources."""
        return [self.answers.sources[row] for row in self.learnt]

    def others(self, values: Floats) -> Floats:
        """(runs, sources, languages) of learnt sources, NaN for a language and itself."""
        found = values[:, self.learnt].copy()
        for row, place in enumerate(self.places):
            found[:, row, place] = np.nan
        return found

    def mean(self, hits: Floats, of_copies: Sequence[Floats]) -> Estimate | None:
        """Over pairs of languages, of answers (runs, sources, texts) less others.

        Those of copies are a control.
        """
        if not self.learnt:
            return None
        found = self._over_pairs(hits)
        if found is None or not of_copies:
            return found
        copied = [_padded(one.mean(axis=0), hits.shape[1]) for one in of_copies]
        beyond = self._over_pairs(hits - np.mean(copied, axis=0)[None])
        means = [float(np.nanmean(self.others(self.answers.of(one[None])))) for one in copied]
        return found.with_controls({COPIES_OF: beyond and among_copies(beyond, means)})

    def _over_pairs(self, hits: Floats) -> Estimate | None:
        errors = self.answers.errors(hits)[self.learnt]
        return of_pairs(self.others(self.answers.of(hits)), self.places, self.level, errors)

    def transfer(self) -> Estimate | None:
        """How far the task is told in other languages beyond the baseline."""
        each = [one.hits[:, 0] - one.baseline[None] for one in (self.answers, *self.copies)]
        return self.mean(each[0], each[1:])

    def centring(self) -> Estimate | None:
        """How much more is told when each language's mean is taken off."""
        if self.answers.hits.shape[1] < 2:
            return None
        each = [one.hits[:, 1] - one.hits[:, 0] for one in (self.answers, *self.copies)]
        return self.mean(each[0], each[1:])

    def beyond_copies(self, row: int, code: int, level: float) -> Estimate | None:
        """Of one pair: right answers less those of copies."""
        if not self.copies:
            return None
        copied = [one.hits[:, 0, row] for one in self.copies]
        less = self.answers.hits[:, 0, row] - np.mean([one.mean(axis=0) for one in copied], axis=0)
        found = of_runs(self.answers.values(less, code), level)
        means = [float(self.answers.values(one, code).mean()) for one in copied]
        return among_copies(found, means)

    def pair(self, row: int, code: int, level: float) -> Estimate:
        """The gain of one pair, with the copies as a control."""
        found = self.answers.gain(row, code, level)
        beyond = self.beyond_copies(row, code, level)
        return found if beyond is None else found.with_controls({COPIES_OF: beyond})

    def other_script(self) -> Estimate | None:
        """The largest gain of a pair whose languages are written in other scripts."""
        same = distances(self.answers.codes)["script"]
        pairs = [
            (row, code)
            for row, place in zip(self.learnt, self.places, strict=True)
            for code in range(len(self.answers.codes))
            if same[place, code] == 0 and self.answers.asked(code).any()
        ]
        level = 1 - (1 - self.level) / max(len(pairs), 1)
        each = [self.pair(*one, level) for one in pairs]
        sure = [one for one in each if one.surely_there]
        found = largest_of(sure or each) if each else None
        return found and replace(found, level=self.level)

    def relations(
        self, transfer: Estimate | None, seed: int
    ) -> dict[str, tuple[Estimate | None, Estimate | None]]:
        """How transfer goes with each thing that is known of pairs; and beyond the others."""
        known = self.known()
        others = {"shared": ["order"], "order": ["shared"], "data": ["shared", "order"]}
        found = {}
        for name, values in known.items():
            beside = [known[other] for other in others.get(name, ["shared"])]
            raw, partial = (
                self._relation(values, of, seed) if self.learnt else None for of in ([], beside)
            )
            # What rises where nothing is transferred is the baseline.
            there = transfer and transfer.beyond_all()
            raw, partial = (
                one and one.with_controls({"transfer": there}) for one in (raw, partial)
            )
            found[name] = raw, partial
        return found

    def known(self) -> dict[str, Floats]:
        """Of each pair (languages, languages): shared pieces, order, family; data of the target."""
        part = self.answers.part
        of = distances(self.answers.codes)
        sizes = part["size"].to_numpy()
        return {
            "shared": part["shared"].to_numpy(),
            "order": of["order"],
            "family": of["family"],
            "data": np.broadcast_to(sizes, (len(sizes), len(sizes))).copy(),
        }

    def _relation(self, known: Floats, others: list[Floats], seed: int) -> Estimate | None:
        def of(one: Answers) -> Pairs:
            return Pairs(self.others(one.shares()).mean(axis=0), self.places)

        found = of(self.answers).relation(known, others, level=self.level, seed=seed)
        if found is None or not self.copies:
            return found
        copied = [of(one).value(known, others) for one in self.copies]
        if not np.isfinite(copied).all():
            return found
        middle = float(np.mean(copied))
        less = Estimate(
            found.value - middle, found.low - middle, found.high - middle, found.n, found.level,
            "languages", freedom=found.freedom,
        )  # fmt: skip
        return found.with_controls({COPIES_OF: among_copies(less, copied)})


def swapped_gains(
    parts: Mapping[str, Answers], level: float
) -> tuple[Estimate | None, dict[str, tuple[Estimate, Estimate]]]:
    """What a new vocabulary gives beyond the baseline: the mean, and by language.

    Kinds of these parts are rows of pieces that were learnt, and rows of chance.
    """
    each = {}
    rows = []
    for code, one in parts.items():
        place = one.codes.index(code)
        strict = 1 - (1 - level) / len(parts)
        chance = one.hits[:, 0, 0] - one.hits[:, 1, 0]
        beyond = of_runs(one.values(chance, place), strict)
        each[code] = one.gain(0, place, strict), beyond
        rows.append((one.gains[:, 0, place], one.values(chance, place).mean(axis=1)))
    if not each:
        return None, {}
    if len(each) == 1:
        gain, beyond = next(iter(each.values()))
        return gain.with_controls({"rows of chance": beyond}), each
    both = [np.stack([row[at] for row in rows], axis=1)[:, None] for at in (0, 1)]
    errors = np.array([[_error(one) for one in pair] for pair in each.values()]).T
    mean, less = (
        of_pairs(one, [-1], level, of[None]) for one, of in zip(both, errors, strict=True)
    )
    return mean and mean.with_controls({"rows of chance": less}), each


def _error(found: Estimate) -> float:
    """A standard error that makes an interval as wide as this one."""
    return (found.high - found.low) / 2 / float(ndtri((1 + found.level) / 2))
