"""Words that occur in several texts: which there are, and in which texts each is looked at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Ints
from bertology.data.words.piece_words import Keys, TokenWords, mixed, run_starts

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder


@dataclass(frozen=True)
class RecurringWords:
    """Chosen words, in the order of their `kinds`."""

    names: list[str]
    kinds: Keys
    texts: Ints
    """(words,) in how many texts each is."""
    stored: Ints
    """(words, contexts) some texts of each."""
    known: int
    """How many words could have been chosen."""
    tokens: int
    """All pieces of all texts, special ones too."""
    occurring: int
    """All words of all texts."""


@dataclass(frozen=True)
class Occurrences:
    """One occurrence of each chosen word in each text of a batch, in the order of chosen words."""

    places: Ints
    """Which word of the batch it is."""
    chosen: Ints
    """Which of the chosen words."""
    texts: Ints
    """In which text."""
    slots: Ints
    """Where its state is stored; -1 where it is not."""


def recurring_words(
    encoder: Encoder,
    seen: Iterable[tuple[TokenWords, Ints]],
    *,
    contexts: int,
    most: int,
    seed: int,
) -> RecurringWords:
    """Words with a letter in `contexts` texts or more; `most` of them, drawn at random.

    `seen` are the words of some texts and the numbers of these texts, a few at a time. What is held
    grows with the number of different words, not with the number of texts.
    """
    counts: dict[int, int] = {}
    spelt: dict[int, tuple[int, ...]] = {}
    kept = (np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int64))
    tokens = occurring = 0
    for words, numbers in seen:
        tokens, occurring = tokens + int(words.lengths.sum()), occurring + len(words)
        first = _firsts(words.kinds, words.texts, np.arange(len(words)))
        kinds, texts = words.kinds[first], numbers[words.texts[first]]
        starts = np.append(words.starts, len(words.ids))
        for kind, at, count in zip(*(a.tolist() for a in _counted(kinds)), strict=True):
            counts[kind] = counts.get(kind, 0) + count
            if kind not in spelt:
                word = int(first[at])
                spelt[kind] = tuple(words.ids[starts[word] : starts[word + 1]].tolist())
        kept = _smallest(kept, (kinds, mixed(kinds, texts, seed), texts), contexts)
    enough = sorted(kind for kind, count in counts.items() if count >= contexts)
    named = {kind: name for kind in enough if (name := _name(encoder, spelt[kind]))}
    drawn = np.random.default_rng(seed).permutation(len(named))[:most]
    chosen = np.array(sorted(np.array(list(named), np.uint64)[drawn].tolist()), np.uint64)
    at = np.searchsorted(kept[0], chosen)[:, None] + np.arange(contexts)
    return RecurringWords(
        [named[int(kind)] for kind in chosen],
        chosen,
        np.array([counts[int(kind)] for kind in chosen], np.int64),
        kept[2][at] if len(chosen) else np.zeros((0, contexts), np.int64),
        len(named),
        tokens,
        occurring,
    )


def occurrences(words: TokenWords, numbers: Ints, of: RecurringWords, *, seed: int) -> Occurrences:
    """Chosen words in a batch, each once in a text: at a place that is drawn at random."""
    at = number_among(of.kinds, words.kinds)
    places = np.flatnonzero(at >= 0)
    texts = numbers[words.texts[places]]
    turn = np.arange(len(words)) - np.searchsorted(words.texts, words.texts)  # place in its text
    keys = mixed(texts, turn[places], seed)
    first = _smallest_of_each(at[places] * len(numbers) + words.texts[places], keys)
    places, texts = places[first], texts[first]
    chosen = at[places]
    slot = of.stored[chosen] == texts[:, None]
    found = np.where(slot.any(axis=1), chosen * of.stored.shape[1] + slot.argmax(axis=1), -1)
    return Occurrences(places, chosen, texts, found)


def frequent_kinds(seen: Iterable[tuple[TokenWords, Ints]], most: int) -> Keys:
    """The kinds of the `most` frequent words, punctuation too, in the order of their numbers."""
    kinds, counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    for words, _ in seen:
        kinds, number = np.unique(np.concatenate([kinds, words.kinds]), return_inverse=True)
        weights = np.concatenate([counts, np.ones(len(words), np.int64)])
        counts = np.bincount(number, weights, minlength=len(kinds)).astype(np.int64)
    return np.sort(kinds[np.argsort(-counts, kind="stable")[:most]])


def number_among(known: Keys, kinds: Keys) -> Ints:
    """The place of each kind among `known` ones, which are in order; -1 where it is not there."""
    at = np.searchsorted(known, kinds)
    there = known[np.minimum(at, len(known) - 1)] == kinds if len(known) else np.zeros(at.shape)
    return np.where(there, at, -1)


def _smallest_of_each(groups: Ints, keys: Keys) -> Ints:
    """The row with the smallest key of each group, in the order of groups: one short sort."""
    if not len(groups):
        return groups
    order = np.argsort(groups, kind="stable")
    starts = run_starts(groups[order])
    sizes = np.diff(starts, append=len(order))
    smallest = np.minimum.reduceat(keys[order], starts)
    found = np.flatnonzero(keys[order] == np.repeat(smallest, sizes))
    return order[found[np.searchsorted(found, starts)]]


def _firsts(groups: NDArray[np.generic], others: Ints, keys: NDArray[np.generic]) -> Ints:
    """The row with the smallest key among those that agree in both."""
    order = np.lexsort((keys, others, groups))
    new = np.ones(len(order), bool)
    new[1:] = (groups[order][1:] != groups[order][:-1]) | (np.diff(others[order]) != 0)
    return order[new]


def _counted(kinds: Keys) -> tuple[Keys, Ints, Ints]:
    return np.unique(kinds, return_index=True, return_counts=True)


def _smallest(
    one: tuple[Keys, Keys, Ints], other: tuple[Keys, Keys, Ints], most: int
) -> tuple[Keys, Keys, Ints]:
    """Of each kind the rows with the `most` smallest keys, in the order of kinds."""
    kinds, keys, texts = (np.concatenate(pair) for pair in zip(one, other, strict=True))
    order = np.lexsort((keys, kinds))
    kinds, keys, texts = kinds[order], keys[order], texts[order]
    rank = np.arange(len(kinds)) - np.searchsorted(kinds, kinds)
    kept = rank < most
    return kinds[kept], keys[kept], texts[kept]


def _name(encoder: Encoder, ids: tuple[int, ...]) -> str:
    """How the pieces are spelt; nothing where no letter is known."""
    unknown = encoder.tokenizer.unk_token_id
    if unknown in ids and encoder.tokenizer.unk_token not in (None, encoder.tokenizer.eos_token):
        return ""
    name = str(encoder.tokenizer.decode(list(ids))).replace(" ##", "").strip()
    return name if any(letter.isalpha() for letter in name) else ""
