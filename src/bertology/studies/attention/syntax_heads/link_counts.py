"""Which words heads attend to most, and how many links they so find, sentence by sentence.

A part keeps one number for each word and head: the word that gets most. All relations, both
directions, and how often a word is found from elsewhere follow from these when a study concludes.
They are counted part by part; counts of each sentence lie in temporary files, one relation of which
is read at a time, so that memory hardly grows with sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Ints
from bertology.data.words.links import PLAIN, UNIVERSAL
from bertology.studies.designs.parts import SpooledRows, in_order, start_of

if TYPE_CHECKING:
    import xarray as xr

    from bertology.annotated.linked_batches import LinkedExample


ALL, PREP, PUNCTUATION = "all", "prep", "punct"
FEWEST = 10
"""Sentences with a relation, for it to be looked at when all are."""


@dataclass(frozen=True)
class Question:
    """A relation, the names of the links that it is made of, and the names of its directions."""

    relation: str
    names: tuple[str, ...]

    @property
    def of_trees(self) -> bool:
        """Whether links lead from the head of a word to the word."""
        base = self.relation.removeprefix("dependency:").partition(":")[0]
        universal = base in UNIVERSAL or base in (ALL, PREP)
        return universal or self.relation.startswith("dependency:")

    @property
    def directions(self) -> tuple[str, str]:
        """From the source to the target, and back."""
        return ("to-dependent", "to-head") if self.of_trees else ("forward", "backward")


def questions_of(counts: LinkCounts, asked: Sequence[str]) -> list[Question]:
    """The relations that were asked for; or every dependency that is in ten sentences or more.

    Of these: a relation with its subtypes, each subtype, and those without a subtype (`:plain`).
    """
    if asked:
        return [Question(name, (name,)) for name in asked]
    labels = [name for name in counts.names if name != PREP]
    by_base: dict[str, list[str]] = {}
    for label in labels:
        by_base.setdefault(label.partition(":")[0], []).append(label)
    found = []
    for base, of_base in sorted(by_base.items()):
        known = base if base in UNIVERSAL else f"dependency:{base}"
        found.append(Question(known, tuple(of_base)))
        if len(of_base) > 1:
            found += [
                Question(f"{known}:{label.partition(':')[2] or PLAIN}", (label,))
                for label in of_base
            ]
    if PREP in counts.names:
        found.append(Question(PREP, (PREP,)))
    every = tuple(x for x in labels if x.partition(":")[0] != PUNCTUATION)
    return [
        Question(ALL, every),
        *(q for q in found if counts.sentences(q.names) >= FEWEST),
    ]


def quantity_of(relation: str) -> str:
    """A relation as part of a quantity's name."""
    return "".join(c if c.isalnum() else "_" for c in relation)


Floats = NDArray[np.float32]
_NONE = -1


class LinkParts:
    """What is kept of the examples of one part."""

    def __init__(self, examples: int) -> None:
        self._linked: list[tuple[LinkedExample, NDArray[np.int16]] | None] = [None] * examples

    def take(
        self, at: Sequence[int], linked: Sequence[LinkedExample], best: Sequence[NDArray[np.int16]]
    ) -> None:
        """Some examples, and of each row the most attended word: see `MostAttendedWords.value`."""
        for example, links, words in zip(at, linked, best, strict=True):
            self._linked[example] = (links, words)

    def part(self, part: str, shape: tuple[int, int]) -> xr.Dataset:
        """All of it, to be stored; `shape` is the number of layers and of heads."""
        import xarray as xr

        words, examples, sizes, phrases, links = [], [], [], [], []
        best = [np.zeros((0, *shape), np.int16)]
        first = 0
        for example, known in enumerate(self._linked):
            if known is None:
                continue
            linked, of_rows = known
            best.append(of_rows)
            words += [*linked.words, *[_NONE] * len(linked.phrases)]
            examples += [example] * len(of_rows)
            sizes.append(len(of_rows))
            for at, phrase in enumerate(linked.phrases, start=first + len(linked.words)):
                phrases += [(at, first + word) for word in phrase]
            links += [(name, first + s, first + t) for name, s, t in linked.links]
            first += len(of_rows)
        names = sorted({name for name, _, _ in links})
        number = {name: i for i, name in enumerate(names)}
        ends = np.array([(number[n], s, t) for n, s, t in links], np.int32).reshape(-1, 3)
        return xr.Dataset(
            {
                "best": (("row", "layer", "head"), np.concatenate(best)),
                "word": ("row", np.array(words, np.int32)),
                "example": ("row", np.array(examples, np.int32)),
                "phrases": (("member", "of"), np.array(phrases, np.int32).reshape(-1, 2)),
                "links": (("link", "end"), ends),
            },
            coords={"relation": names},
            attrs={"first": start_of(part), "examples": len(self._linked)},
        )


@dataclass(frozen=True)
class Counts:
    """What was found of the links of one relation, in the n sentences that have one.

    The axis of two is the direction: from the source to the target, and back. Heads C are numbered
    layer by layer; those that are gone have NaN.
    """

    examples: Ints  # (n,)
    links: Ints  # (n,)
    hits: Floats  # (n, 2, C)
    with_special: Floats  # (n, 2, C): with special tokens in the running
    elsewhere: Floats  # (n, 2, C): the same targets found from other words, as shares of these
    offsets: Floats  # (n, 2, O)
    distances: Ints  # (O,): what the offsets are, in words


class LinkCounts:
    """All parts, counted."""

    def __init__(self, measured: Mapping[str, xr.Dataset]) -> None:
        self.examples = 0
        self.facts: dict[str, Any] = {}
        self._hits, self._special = SpooledRows(np.uint16), SpooledRows(np.uint16)
        self._elsewhere = SpooledRows(np.float32)
        self._where: dict[str, list[tuple[Ints, Ints]]] = {}  # examples, and links of each
        self._away: dict[str, list[Ints]] = {}  # (links, 3): example, direction, offset
        self.gone: NDArray[np.bool_] = np.ones(1, bool)  # heads of which nothing was seen
        for part in in_order(measured):
            self._add(part)

    @property
    def names(self) -> list[str]:
        """The names of links, as the parts have them."""
        return sorted(self._where)

    def sentences(self, names: Sequence[str]) -> int:
        """In how many sentences there is a link of one of these names."""
        found = [examples for name in names for examples, _ in self._where.get(name, ())]
        return len(np.unique(np.concatenate(found))) if found else 0

    def of(self, names: Sequence[str]) -> Counts:
        """The counts of links of all these names together."""
        known = [name for name in names if name in self._where]
        width = self.gone.size
        where = {name: [np.concatenate(w) for w in zip(*self._where[name], strict=True)]
                 for name in known}  # fmt: skip
        every = [where[name][0] for name in known]
        examples = np.unique(np.concatenate(every)) if every else np.zeros(0, np.int64)
        links = np.zeros(len(examples), np.int64)
        spools = (self._hits, self._special, self._elsewhere)
        sums = [np.zeros((len(examples), 2, width), np.float32) for _ in spools]
        for name in known:
            at = np.searchsorted(examples, where[name][0])
            links[at] += where[name][1]
            for total, spool in zip(sums, spools, strict=True):
                total[at] += spool[name]
        for total in sums:
            total[..., self.gone] = np.nan
        hits, special, elsewhere = sums
        offsets, distances = self._offsets(known, examples)
        return Counts(examples, links, hits, special, elsewhere, offsets, distances)

    def _offsets(self, names: Sequence[str], examples: Ints) -> tuple[Floats, Ints]:
        away = [piece for name in names for piece in self._away[name]]
        every = np.concatenate(away) if away else np.zeros((0, 3), np.int64)
        distances, at = np.unique(every[:, 2], return_inverse=True)
        found = np.zeros((len(examples), 2, len(distances)), np.float32)
        np.add.at(found, (np.searchsorted(examples, every[:, 0]), every[:, 1], at), 1)
        return found, distances

    def _add(self, part: xr.Dataset) -> None:
        read = _Part(part)
        self.facts = dict(part.attrs)
        self.examples = max(self.examples, read.first + int(part.attrs["examples"]))
        self.gone = self.gone & read.gone
        names = [str(name) for name in part["relation"].to_numpy()]
        if not len(read.links):
            return
        size = int(read.example.max()) + 1  # there may be fewer rows than examples
        key = read.links[:, 0] * size + read.example[read.links[:, 1]]
        order = np.argsort(key, kind="stable")
        keys, starts, counts = np.unique(key[order], return_index=True, return_counts=True)
        of_name, example = np.divmod(keys, size)
        both = [read.found(*ends) for ends in ((1, 2), (2, 1))]
        sums = [
            np.stack([np.add.reduceat(side[order], starts, axis=0) for side in sides], axis=1)
            for sides in zip(*both, strict=True)
        ]  # (K, 2, C) each
        for number, name in enumerate(names):
            some = of_name == number
            for spool, total in zip(
                (self._hits, self._special, self._elsewhere), sums, strict=True
            ):
                spool.append(name, total[some])
            where = (read.first + example[some], counts[some])
            self._where.setdefault(name, []).append(where)
            self._away.setdefault(name, []).extend(read.away(number))


class _Part:
    """The rows and links of one part, as arrays; rows are numbered through."""

    def __init__(self, part: xr.Dataset) -> None:
        heads = part.sizes["layer"] * part.sizes["head"]
        best = part["best"].to_numpy().reshape(-1, heads).astype(np.int32)
        self.first = int(part.attrs["first"])
        self.example = part["example"].to_numpy().astype(np.int64)
        self.word = part["word"].to_numpy().astype(np.int64)
        self.links = part["links"].to_numpy().astype(np.int64)
        missing = best == _NONE
        self.gone = missing.all(axis=0)
        # The first row of the same example.
        starts = np.searchsorted(self.example, self.example).astype(np.int32)
        self._special = best < _NONE
        local = np.where(self._special, -2 - best, best)
        self._best = np.where(missing, np.int32(_NONE), local + starts[:, None])
        single = self.word >= 0
        self._words = np.bincount(self.example[single])
        # How often each row is the most attended one.
        flat = self._best[single] * np.int64(heads) + np.arange(heads)
        counted = np.bincount(flat[self._best[single] >= 0], minlength=best.size)
        self._received = counted.reshape(best.shape)
        self._members = self._membership(part["phrases"].to_numpy())

    def _membership(self, phrases: NDArray[np.int32]) -> Ints:
        """(row, m): the rows of the words of each row; -1 beyond them."""
        rows = np.arange(len(self.word))
        if not len(phrases):
            return rows[:, None]
        of, words = phrases.T
        place = np.arange(len(of)) - np.searchsorted(of, of)
        members = np.full((len(rows), int(place.max()) + 1), _NONE)
        members[:, 0] = rows
        members[of, place] = words
        return members

    def found(self, source: int, target: int) -> tuple[NDArray[Any], ...]:
        """(links, C) each: hits, hits with special tokens in the running, share from elsewhere.

        `source` and `target` say in which columns of `links` they stand.
        """
        s, t = self.links[:, source], self.links[:, target]
        hit = self._hits(self._best[s], t)
        special = hit & ~self._special[s]
        received, own = np.zeros(hit.shape, np.float32), np.zeros(hit.shape, np.float32)
        sizes = np.zeros(len(s), np.int64)
        for words in self._members[t].T:
            received += np.where((words >= 0)[:, None], self._received[words], 0)
        # Other words are those of neither end.
        for words in (*self._members[s].T, *self._members[t].T):
            there = words >= 0
            own += self._hits(self._best[words], t) & there[:, None]
            sizes += there
        others = (self._words[self.example[s]] - sizes)[:, None]
        share = (received - own) / np.maximum(others, 1)
        return (
            hit.astype(np.uint16),
            special.astype(np.uint16),
            # Without any other word nothing tells a link from a place.
            np.where(others > 0, share, hit).astype(np.float32),
        )

    def _hits(self, best: NDArray[np.int32], target: Ints) -> NDArray[np.bool_]:
        """(links, C): whether a word of the target is the most attended one."""
        hit = np.zeros(best.shape, bool)
        for words in self._members[target].T:
            hit |= (best == words[:, None]) & (words >= 0)[:, None]
        return hit

    def away(self, number: int) -> Iterator[Ints]:
        """(…, 3): example, direction and offset of what finds the links of a name.

        It is counted from the first word of a source to the left, from the last to the right.
        """
        links = self.links[self.links[:, 0] == number]
        for direction, (source, target) in enumerate(((1, 2), (2, 1))):
            s, t = links[:, source], links[:, target]
            of_source = self.word[self._members[s]]
            inside = self._members[s] >= 0
            first = np.where(inside, of_source, np.iinfo(np.int64).max).min(axis=1)
            last = np.where(inside, of_source, -1).max(axis=1)
            for words in self._members[t].T:
                at = self.word[words]
                offset = np.where(at < first, at - first, np.where(at > last, at - last, 0))
                kept = (words >= 0) & (offset != 0)
                example = self.first + self.example[s[kept]]
                yield np.column_stack([example, np.full(len(example), direction), offset[kept]])
