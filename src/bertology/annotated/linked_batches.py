"""The links of a batch's examples in the pieces a model sees, and what offsets make of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.annotated.words import WordBatch
from bertology.data.words.links import links_of

if TYPE_CHECKING:
    from bertology.model.reducers.link_hits import MostAttended

__all__ = ["Ends", "Followed", "followed", "offset_hits", "offsets_of"]

Ends = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Followed:
    """What will see which links heads follow, and the links of each example, in words."""

    reducer: MostAttended
    links: Sequence[Sequence[Ends]]


def followed(read: WordBatch, relation: str) -> Followed:
    """The links of `relation` in a batch; those that truncation cut off do not count."""
    from bertology.model.reducers.link_hits import LinkedWords, MostAttended

    words, links = [], []
    for one in read.examples:
        pieces = [one.alignment.pieces_of(word) for word in range(len(one.alignment))]
        ends = [
            tuple(tuple(w for w in end if pieces[w]) for end in (link.source, link.target))
            for link in links_of(one.example, relation)
        ]
        words.append(pieces)
        links.append([(source, target) for source, target in ends if source and target])
    return Followed(MostAttended(LinkedWords.over(read.batch, words, links)), links)


def offsets_of(links: Iterable[Ends]) -> set[int]:
    """All fixed offsets that find the target of some link; see `offset_hits`."""
    ends = [(min(s), max(s), at) for s, t in links for at in t]
    left = {at - first for first, _, at in ends if at < first}
    return left | {at - last for _, last, at in ends if at > last}


def offset_hits(links: Sequence[Ends], offsets: Sequence[int]) -> list[float]:
    """The share of links whose target the word `offset` words away belongs to; NaN without links.

    It is counted from the first word of the source to the left, from the last to the right.
    """
    if not links:
        return [float("nan")] * len(offsets)
    return [
        sum((max(s) if k > 0 else min(s)) + k in t for s, t in links) / len(links) for k in offsets
    ]
