"""Links as pairs of wordpieces, and the same links moved to where no relation is annotated.

A head that looks at the previous token has a large weight wherever linked words happen to be
neighbours, one that looks at pronouns wherever a link ends in a pronoun, one that looks at words
only where it stands at a verb wherever a link starts in a verb, and one that looks at the first
words of a sentence wherever subjects stand first. None of them knows the relation. So linked pairs
are compared with four kinds of pairs that are not linked:

- `distance`: the link moved along its own sentence: as many pairs, as far apart, elsewhere;
- `key`: the same attended pieces, seen from other pieces of the sentence;
- `query`: the same attending pieces, looking at other pieces of the sentence;
- `place`: the same places, in other sentences that have as many pieces (long ones: about as many).

A moved link keeps its shape, piece by piece, and never falls on a linked pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from random import Random

from bertology.data.corpus import Example
from bertology.data.words.alignment import Alignment
from bertology.data.words.links import Link, links_of

# Which sentences a study of links looks at, and how many each limit leaves.
#
# The limits are those of Kovaleva et al. (2019, section 4.2): elements of at most three tokens,
# sentences of at most twelve, linked words at least two tokens apart. Tokens are the words of the
# corpus, punctuation included; neighbours are one token apart, so a distance of at least two leaves
# out what a head that looks at the previous or the next token would find.


@dataclass(frozen=True)
class LinkedSentence:
    """A sentence that is looked at: where it stands in the corpus, and its links."""

    index: int
    example: Example
    links: tuple[Link, ...]


@dataclass(frozen=True)
class LinkLimits:
    """Limits on elements, sentences and distances; 0 stands for none.

    With `every`, a sentence is left out when one of its links is outside the limits; without it,
    only that link is.
    """

    relation: str
    max_element: int = 3
    max_tokens: int = 12
    min_distance: int = 2
    every: bool = True

    @property
    def stages(self) -> list[str]:
        """What is counted, in the order in which it is applied."""
        return [
            "all sentences",
            f"with a link ({self.relation})",
            f"elements of at most {self.max_element} tokens" if self.max_element else "any element",
            f"at most {self.max_tokens} tokens" if self.max_tokens else "any length",
            f"linked words at least {self.min_distance} tokens apart",
        ]

    def passing(
        self, examples: Iterable[Example], *, first: int = 0
    ) -> tuple[list[LinkedSentence], list[int]]:
        """The sentences within the limits, and how many are left after each of `stages`.

        `first` is the position in the corpus of the first example.
        """
        kept, reached = list[LinkedSentence](), Counter[int]()
        for index, example in enumerate(examples, start=first):
            links, stage = self._passing(example)
            reached[stage] += 1
            if links:
                kept.append(LinkedSentence(index, example, tuple(links)))
        last = len(self.stages)
        return kept, [sum(reached[s] for s in range(at, last)) for at in range(last)]

    def _passing(self, example: Example) -> tuple[list[Link], int]:
        """The links that are left, and the last stage with any."""
        stage, links = 0, links_of(example, self.relation)
        short = self.max_tokens == 0 or len(example.get("words")) <= self.max_tokens
        within = (
            [True] * len(links),
            [not self.max_element or link.longest <= self.max_element for link in links],
            [short] * len(links),
            [link.distance >= self.min_distance for link in links],
        )
        left = [True] * len(links)
        for stage, fits in enumerate(within):
            left = [a and b for a, b in zip(left, fits, strict=True)]
            if not any(left) or (self.every and not all(left)):
                return [], stage
        return [link for link, stays in zip(links, left, strict=True) if stays], stage + 1


DIRECTIONS = ("both", "forward", "backward")
COMPARISONS = ("distance", "key", "query", "place")
Pairs = tuple[tuple[int, int], ...]
"""Query and key, as positions among the pieces of a sentence, special tokens counted."""

_SHORT = 24  # pieces; of longer texts seldom two are equally long
_Side = tuple[int, ...]


@dataclass(frozen=True)
class LinkedPieces:
    """The links of one sentence as positions of pieces."""

    id: str
    text: str | tuple[str, str]  # what the model reads; links are in the first text of a pair
    links: tuple[tuple[_Side, _Side], ...]  # source and target of each
    free: frozenset[int]  # pieces of words: where a moved link may fall
    length: int  # pieces, special tokens counted
    words: tuple[str, str]  # that links start from and end in, in small letters
    direction: str = "both"
    pieces: tuple[_Side, ...] = ()  # of each word
    between: tuple[tuple[_Side, _Side], ...] = ()  # the links, as positions of words

    @property
    def asked(self) -> list[tuple[_Side, _Side]]:
        """The links between words in the directions that are asked for."""
        forward = [*self.between] if self.direction != "backward" else []
        return forward + ([(t, s) for s, t in self.between] if self.direction != "forward" else [])

    @cached_property
    def pairs(self) -> Pairs:
        """All linked pairs, in the directions that are asked for."""
        return tuple(p for link in self.links for p in _directed(link, self.direction))

    @cached_property
    def linked(self) -> frozenset[tuple[int, int]]:
        """All linked pairs in both directions: where a moved link may not fall."""
        return frozenset(p for link in self.links for p in _directed(link, "both"))


def pieces_of(
    sentence: LinkedSentence, alignment: Alignment, direction: str
) -> LinkedPieces | None:
    """The sentence's links in pieces; None where truncation or a shared piece leaves no pair."""
    links = []
    for link in sentence.links:
        source, target = (_side(words, alignment) for words in (link.source, link.target))
        if not source or not target or set(source) & set(target):
            return None
        links.append((source, target))
    words = alignment.words
    free = frozenset(piece for piece, word in enumerate(words) if word is not None)
    example = sentence.example
    return LinkedPieces(
        example.id,
        example.given,
        tuple(links),
        free,
        len(words),
        end_words(sentence),
        direction,
        tuple(tuple(alignment.pieces_of(word)) for word in range(len(alignment))),
        tuple((link.source, link.target) for link in sentence.links),
    )


def comparisons(
    sentences: Sequence[LinkedPieces], *, draws: int, seed: int
) -> list[dict[str, list[tuple[int, Pairs]]]]:
    """For each sentence and kind: up to `draws` of (sentence that is looked at, pairs).

    A kind is empty where it cannot be had: the link fills the sentence, or no other sentence is
    as long. The choice depends on the seed and the sentences alone.
    """
    by_length: dict[int, list[int]] = {}
    for at, sentence in enumerate(sentences):
        by_length.setdefault(sentence.length, []).append(at)

    def about_as_long(length: int) -> list[int]:
        """Few long texts have exactly as many pieces, so a tenth more or fewer will do."""
        slack = length // 10 if length > _SHORT else 0
        return [h for n in range(length - slack, length + slack + 1) for h in by_length.get(n, ())]

    found = []
    for at, own in enumerate(sentences):
        rng = Random(f"{seed}/{own.id}/{own.text}")
        hosts = [h for h in about_as_long(own.length) if _may_host(sentences[h], own)]
        rng.shuffle(hosts)
        found.append(
            {
                "distance": [(at, pairs) for pairs in _along(own, draws, rng)],
                "key": [(at, pairs) for pairs in _half_moved(own, "queries", draws, rng)],
                "query": [(at, pairs) for pairs in _half_moved(own, "keys", draws, rng)],
                "place": [(host, own.pairs) for host in hosts[:draws]],
            }
        )
    return found


def _side(words: Sequence[int], alignment: Alignment) -> _Side:
    pieces = [alignment.spelling(word) for word in words]
    return tuple(sorted({p for of_word in pieces for p in of_word})) if all(pieces) else ()


def end_words(sentence: LinkedSentence) -> tuple[str, str]:
    """The words that the links of a sentence start from and end in, in small letters."""
    return _spelt(sentence, "source"), _spelt(sentence, "target")


def _spelt(sentence: LinkedSentence, side: str) -> str:
    words = sentence.example.get("words")
    chosen = dict.fromkeys(w for link in sentence.links for w in getattr(link, side))
    return " ".join(str(words[w]).lower() for w in chosen)


def _directed(link: tuple[_Side, _Side], direction: str) -> list[tuple[int, int]]:
    source, target = link
    forward = list(product(source, target)) if direction != "backward" else []
    backward = list(product(target, source)) if direction != "forward" else []
    return forward + backward


def _may_host(host: LinkedPieces, guest: LinkedPieces) -> bool:
    return (
        host.text != guest.text
        and guest.linked.isdisjoint(host.linked)
        and all(a in host.free and b in host.free for a, b in guest.pairs)
    )


def _along(own: LinkedPieces, draws: int, rng: Random) -> list[Pairs]:
    """Each link moved as a whole."""
    options = []
    for source, target in own.links:
        moved = [
            _directed((_shifted(source, by), _shifted(target, by)), own.direction)
            for by in range(-own.length, own.length)
        ]
        options.append([tuple(pairs) for pairs in moved if _is_free(pairs, own)])
    return _dealt(options, draws, rng)


def _half_moved(own: LinkedPieces, moving: str, draws: int, rng: Random) -> list[Pairs]:
    """One end of each link stays where it is; its queries or its keys move."""
    ends = [
        end
        for source, target in own.links
        for end, wanted in (((source, target), "forward"), ((target, source), "backward"))
        if own.direction in ("both", wanted)
    ]
    options = []
    for queries, keys in ends:
        moved = [
            tuple(product(_shifted(queries, by), keys))
            if moving == "queries"
            else tuple(product(queries, _shifted(keys, by)))
            for by in range(-own.length, own.length)
        ]
        # What a piece gives to itself is no measure of what it gives to another.
        options.append([p for p in moved if _is_free(p, own) and all(a != b for a, b in p)])
    return _dealt(options, draws, rng)


def _shifted(side: _Side, by: int) -> _Side:
    return tuple(piece + by for piece in side)


def _is_free(pairs: Sequence[tuple[int, int]], own: LinkedPieces) -> bool:
    return all(a in own.free and b in own.free and (a, b) not in own.linked for a, b in pairs)


def _dealt(options: list[list[Pairs]], draws: int, rng: Random) -> list[Pairs]:
    """One option of each list at a time; each list is gone through in a random order of its own."""
    if not all(options):
        return []
    for one in options:
        rng.shuffle(one)
    rounds = min(draws, max(map(len, options)))
    return [tuple(p for one in options for p in one[at % len(one)]) for at in range(rounds)]
