"""The same sentence as first and as second of a pair: states of its words in each place.

An encoder does not see an order as such: it sees places (position ids) and segments (type ids). So
four readings of the same tokens tell the two apart: early or late places, segment 0 or 1. All are
made with each of two neighbour sentences, which are as long as each other: with a longer one before
it a sentence would stand at other places, and what those do would be taken for the neighbour's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.drawn_states import states_of_words
from bertology.annotated.words import require_offsets
from bertology.arrays import Ints
from bertology.data.corpus import Example
from bertology.data.words.alignment import Span, align
from bertology.data.words.piece_words import known_words
from bertology.errors import DataError

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder

FEWEST = 8
"""Sentences that are needed at the least."""
NEIGHBOURS = 2
_OTHERS = 400  # neighbours at the least, so that two of the same length are among them
_CHUNK = 512  # texts that are looked at together
_FEWEST_WORDS = 3
_RUN = 5  # texts in a row that two pairs are taken from, beginning with the first or the second

Floats = NDArray[np.float32]
Pair = tuple["Sentence", "Sentence"]


@dataclass(frozen=True)
class Sentence:
    """A text that fits into half of what the model reads."""

    text: str
    spans: tuple[Span, ...]
    words: tuple[int, ...]
    """Those that have a letter, and a piece of their own."""
    pieces: int
    """Of the whole text, without special tokens."""

    def kind(self, word: int) -> str:
        """The word itself, in lower case."""
        start, end = self.spans[word]
        return self.text[start:end].lower()


@dataclass(frozen=True)
class MovedWords:
    """States of words of the same sentences in all readings."""

    states: Floats
    """(place 2, segment 1 or 2, neighbour 2, layers + 1, words, width); layer 0 is the input.

    Without a factor of segments the second place has the segment that the family gives it.
    """
    sentence: Ints
    kinds: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many sentences there are."""
        return int(self.sentence.max()) + 1


@dataclass(frozen=True)
class ParityWords:
    """States of words that occur in first and in second sentences of adjacent pairs."""

    states: Floats
    """(layers + 1, words, width)"""
    kinds: tuple[str, ...]
    kind: Ints
    second: NDArray[np.bool_]
    pair: Ints
    """Of no kind are there two words in one pair."""


def has_segments(encoder: Encoder) -> bool:
    """Whether the family tells two texts apart by type ids that can be exchanged."""
    if getattr(encoder.config, "type_vocab_size", 0) < 2:
        return False
    inputs = encoder.encode([("a", "b")]).inputs
    types = inputs.get("token_type_ids")
    return types is not None and bool((types == 1).any()) and bool((types == 0).any())


# What is drawn -----------------------------------------------------------------------------------


def _texts(corpus: Corpus) -> list[tuple[Example, int]]:
    """All texts in their order, those of a pair one after the other."""
    return [(example, k) for example in corpus for k in range(len(example.texts))]


def _fitting(
    encoder: Encoder, some: Sequence[tuple[Example, int]], length: int | None = None
) -> list[Sentence | None]:
    """As sentences; None where two of this length may not fit, or where there are few words."""
    texts = [(example.texts[k], known_words(example)[k]) for example, k in some]
    read = min((n for n in (length, encoder.max_length) if n is not None), default=None)
    limit = None if read is None else (read - 4) // 2
    tokenized = encoder.tokenize([text for text, _ in texts])
    found: list[Sentence | None] = []
    for number, (text, spans) in enumerate(texts):
        encoding = (tokenized.encodings or ())[number]
        pieces = sum(sequence is not None for sequence in encoding.sequence_ids)
        fits = number not in tokenized.cut and (limit is None or pieces <= limit)
        alignment = align(encoding, text, words=[spans])
        words = tuple(
            i
            for i, (start, end) in enumerate(spans)
            if any(c.isalpha() for c in text[start:end]) and alignment.pieces_of(i)
        )
        ok = fits and len(words) >= _FEWEST_WORDS
        found.append(Sentence(text, tuple(spans), words, pieces) if ok else None)
    return found


def pool_size(moved: int) -> int:
    """Sentences to draw where so many are moved: these, and their neighbours."""
    return moved + max(NEIGHBOURS * moved, _OTHERS)


def drawn_sentences(
    encoder: Encoder, corpus: Corpus, count: int, *, seed: int, length: int | None = None
) -> list[Sentence]:
    """So many different sentences, drawn at random; fewer if there are no more.

    Two of them fit into `length` tokens, or into what the model reads. Refused are too few.
    """
    require_offsets(encoder)
    texts = _texts(corpus)
    order = np.random.default_rng([seed, 0]).permutation(len(texts))
    found: dict[str, Sentence] = {}
    for start in range(0, len(order), _CHUNK):
        some = _fitting(encoder, [texts[i] for i in order[start : start + _CHUNK]], length)
        found |= {s.text: s for s in some if s is not None and s.text not in found}
        if len(found) >= count:
            break
    if len(found) < FEWEST:
        reads = f"{length} tokens" if length else f"what {encoder.name!r} reads"
        raise DataError(
            f"Sentences are moved beside others: {FEWEST} or more are needed that are not the "
            f"same, have three words with letters, and fit twice into {reads}. {corpus.name!r} "
            f"has {len(found)}.",
            hint="Give more text, sentence by sentence.",
        )
    return list(found.values())[:count]


def adjacent_pairs(encoder: Encoder, corpus: Corpus, count: int, *, seed: int) -> list[Pair]:
    """Texts that follow each other, read as pairs, none twice, also where the corpus repeats texts.

    Whether a run of five begins with its first or its second text is drawn, so that what is said
    earlier in a document is not more often a first sentence.
    """
    require_offsets(encoder)
    texts, rng = _texts(corpus), np.random.default_rng([seed, 1])
    starts = np.arange(0, max(len(texts) - _RUN + 1, 0), _RUN)
    phases = rng.integers(0, 2, len(starts))
    firsts = np.sort(np.concatenate([starts + phases, starts + phases + 2]))
    firsts = rng.permutation(firsts)
    found: list[Pair] = []
    taken: set[str] = set()
    for at in range(0, len(firsts), _CHUNK):
        some = firsts[at : at + _CHUNK]
        one, other = (_fitting(encoder, [texts[i + k] for i in some]) for k in (0, 1))
        for a, b in zip(one, other, strict=True):
            if a is None or b is None or a.text == b.text or {a.text, b.text} & taken:
                continue
            taken |= {a.text, b.text}
            found.append((a, b))
        if len(found) >= count:
            break
    return found[:count]


# Passes ------------------------------------------------------------------------------------------


def moved_words(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    neighbours: Sequence[Sentence],
    *,
    words: int,
    seed: int,
    batch_tokens: int = 4096,
    advance: Callable[[int], None] = lambda sentences: None,
) -> MovedWords:
    """States of at most `words` words of each sentence, beside two neighbours that are drawn."""
    rng = np.random.default_rng([seed, 2])
    chosen = [sorted(rng.permutation(s.words)[:words].tolist()) for s in sentences]
    beside = _beside(sentences, neighbours, rng)
    segments = (False, True) if has_segments(encoder) else (False,)
    shape = (2, len(segments), NEIGHBOURS, encoder.shape.layers + 1, sum(map(len, chosen)))
    states = np.zeros((*shape, encoder.shape.hidden), np.float32)
    for place in range(2):
        for k in range(NEIGHBOURS):
            others = [both[k] for both in beside]
            pairs: list[Pair] = list(zip(sentences, others, strict=True))
            pairs = [(b, a) for a, b in pairs] if place else pairs
            at = [[(place, word) for word in some] for some in chosen]
            for exchanged in segments:
                segment = place ^ exchanged if len(segments) > 1 else 0
                states[place, segment, k] = _states(
                    encoder, pairs, at, exchanged=exchanged, batch_tokens=batch_tokens
                )
            advance(len(sentences))
    owner = np.repeat(np.arange(len(sentences)), [len(some) for some in chosen])
    kinds = tuple(s.kind(w) for s, some in zip(sentences, chosen, strict=True) for w in some)
    return MovedWords(states, owner, kinds)


def _beside(
    sentences: Sequence[Sentence], neighbours: Sequence[Sentence], rng: np.random.Generator
) -> list[Pair]:
    """For each sentence two others that are as long as each other, or as nearly as there are.

    So that sentences can be taken for independent, no two of them have the same two neighbours.
    Where there are enough others, none is beside two sentences, nor moved itself.
    """
    moved = {s.text for s in sentences}
    others = [n for n in neighbours if n.text not in moved]
    some = others if len(others) >= NEIGHBOURS * len(sentences) else neighbours
    order = sorted(rng.permutation(len(some)).tolist(), key=lambda i: some[i].pieces)
    by_length = [some[i] for i in order]
    more, waiting, found = _couples(by_length), list[Pair](), list[Pair]()
    for sentence in sentences:
        while all(sentence in couple for couple in waiting):
            batch = next(more)
            waiting += [batch[i] for i in rng.permutation(len(batch))]
        at = next(i for i, couple in enumerate(waiting) if sentence not in couple)
        found.append(waiting.pop(at))
    return found


def _couples(by_length: Sequence[Sentence]) -> Iterator[list[Pair]]:
    """All couples, none twice: those next to each other first, and of these each sentence once."""
    for apart in range(1, len(by_length)):
        couples = list(zip(by_length, by_length[apart:], strict=False))
        yield from [couples[::2], couples[1::2]] if apart == 1 else [couples]


def parity_words(
    encoder: Encoder,
    pairs: Sequence[Pair],
    *,
    kinds: int,
    each: int,
    seed: int,
    batch_tokens: int = 4096,
) -> ParityWords | None:
    """States of `kinds` words that first and second sentences have, at most `each` times in each.

    None where no word occurs in three first and three second sentences.
    """
    rng = np.random.default_rng([seed, 3])
    places = _places_of_kinds(pairs, rng)
    least = 3
    eligible = sorted(
        kind
        for kind, found in places.items()
        if min(sum(s == k for _, s, _ in found) for k in (0, 1)) >= least
    )
    if not eligible:
        return None
    named = [eligible[i] for i in sorted(rng.permutation(len(eligible))[:kinds])]
    taken = [
        (pair, second, word, number)
        for number, kind in enumerate(named)
        for k in (0, 1)
        for pair, second, word in _some([p for p in places[kind] if p[1] == k], each, rng)
    ]
    taken.sort()
    at: dict[int, list[tuple[int, int]]] = {}
    for pair, second, word, _ in taken:
        at.setdefault(pair, []).append((second, word))
    read = [pairs[i] for i in at]
    states = _states(encoder, read, list(at.values()), batch_tokens=batch_tokens)
    columns = np.array(taken, np.int64).T
    return ParityWords(states, tuple(named), columns[3], columns[1].astype(bool), columns[0])


def _places_of_kinds(
    pairs: Sequence[Pair], rng: np.random.Generator
) -> dict[str, list[tuple[int, int, int]]]:
    """Where each word stands, once for each pair: (pair, 0 for first or 1 for second, word)."""
    places: dict[str, list[tuple[int, int, int]]] = {}
    for number, pair in enumerate(pairs):
        own: dict[str, list[tuple[int, int, int]]] = {}
        for second, sentence in enumerate(pair):
            for word in sentence.words:
                own.setdefault(sentence.kind(word), []).append((number, second, word))
        for kind, found in own.items():
            places.setdefault(kind, []).append(found[int(rng.integers(len(found)))])
    return places


def _some(
    found: list[tuple[int, int, int]], most: int, rng: np.random.Generator
) -> Iterator[tuple[int, int, int]]:
    return (found[i] for i in rng.permutation(len(found))[:most])


def _states(
    encoder: Encoder,
    pairs: Sequence[Pair],
    wanted: Sequence[Sequence[tuple[int, int]]],
    *,
    exchanged: bool = False,
    batch_tokens: int = 4096,
) -> Floats:
    """(layers + 1, words, width) of the wanted words (text of the pair, word) of each pair."""
    examples = [Example(str(i), a.text, b.text) for i, (a, b) in enumerate(pairs)]
    spans: Mapping[str, list[list[Span]]] = {
        str(i): [list(a.spans), list(b.spans)] for i, (a, b) in enumerate(pairs)
    }
    # Words are numbered through both texts of a pair.
    words = [
        [word + (len(pair[0].spans) if text else 0) for text, word in some]
        for pair, some in zip(pairs, wanted, strict=True)
    ]
    return states_of_words(
        encoder,
        examples,
        words,
        batch_tokens=batch_tokens,
        find=lambda example: spans[example.id],
        changed=partial(_exchanged, encoder=encoder) if exchanged else lambda batch: batch,
    )


def _exchanged(batch: Batch, encoder: Encoder) -> Batch:
    """The same tokens at the same places, with segments exchanged; [CLS] keeps its own."""
    import torch

    types, ids = batch.inputs["token_type_ids"], batch.inputs["input_ids"]
    stays = (ids == encoder.tokenizer.cls_token_id) | ~batch.real.to(ids.device)
    other = torch.where(stays, types, 1 - types)
    return replace(batch, inputs={**batch.inputs, "token_type_ids": other})
