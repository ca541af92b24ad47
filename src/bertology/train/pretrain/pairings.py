"""How text becomes rows, and which relation between two parts is to be told.

    full-sentences   one part: sentences, across documents if need be      (RoBERTa)
    stream           one part: the running text from any token on          (XLM)
    nsp              does the second part follow the first?                (BERT)
    sop              are the two parts in their order?                     (ALBERT)
    three-way        is the second part the next, the previous, or neither? (StructBERT)
    translation      a sentence and its translation                        (XLM's TLM)
    labelled         a text whose label takes the place of segments        (conditional MLM)

Every pairing makes a `Plan` for one pass over a shard: vectorised, and by the given generator only.
Rows of the first three are full to the last token. In `sop` and `three-way` both parts must end
with a sentence, or the cut end would give the order away; they are padded a little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.errors import DataError, UnknownNameError
from bertology.train.pretrain.rows import Ints, Plan
from bertology.train.pretrain.shards import Shard

__all__ = ["PAIRINGS", "Pairing", "find_pairing"]


@dataclass(frozen=True)
class Pairing:
    """A way to make rows; `relations` names the classes of `Plan.relation`."""

    name: str
    relations: tuple[str, ...]
    plan: Callable[[Shard, int, np.random.Generator], Plan]


def find_pairing(name: str) -> Pairing:
    """The pairing of this name."""
    try:
        return PAIRINGS[name]
    except KeyError:
        raise UnknownNameError("pairing", name, PAIRINGS) from None


@dataclass(frozen=True)
class _Split:
    """Stretches of whole sentences, each cut in two at a sentence boundary of one document."""

    start: Ints  # of the first part, in tokens
    middle: Ints  # where the second part begins
    end: Ints  # where the last sentence of the document that fits ends
    document: Ints

    def whole(self) -> _Split:
        """Those in which the second part has at least one sentence."""
        kept = self.end > self.middle
        return _Split(self.start[kept], self.middle[kept], self.end[kept], self.document[kept])


def _full_sentences(shard: Shard, length: int, draw: np.random.Generator) -> Plan:
    room = length - 2
    starts = _grid(shard, room, draw)
    snapped = shard.sentences[np.searchsorted(shard.sentences, starts, "right") - 1]
    return _single(_fitting(shard, np.unique(snapped), room), room)


def _stream(shard: Shard, length: int, draw: np.random.Generator) -> Plan:
    room = length - 2
    return _single(_fitting(shard, _grid(shard, room, draw), room), room)


def _single(starts: Ints, room: int) -> Plan:
    nothing = np.zeros_like(starts)
    return Plan(starts, np.full_like(starts, room), nothing, nothing)


def _nsp(shard: Shard, length: int, draw: np.random.Generator) -> Plan:
    room = length - 3
    split = _splits(shard, room, draw)
    a = split.middle - split.start
    other = draw.random(len(a)) < 0.5
    unrelated = shard.sentences[_elsewhere(shard, split.document, draw)]
    second = np.where(other, unrelated, split.middle)
    kept = second + room - a <= len(shard.tokens)
    plan = Plan(split.start, a, second, room - a, relation=other.astype(np.int64))
    return plan.take(kept)


def _sop(shard: Shard, length: int, draw: np.random.Generator) -> Plan:
    split = _splits(shard, length - 3, draw).whole()
    swapped = draw.random(len(split.start)) < 0.5
    return _ordered(split, swapped, swapped.astype(np.int64))


def _three_way(shard: Shard, length: int, draw: np.random.Generator) -> Plan:
    split = _splits(shard, length - 3, draw).whole()
    kind = draw.integers(0, 3, len(split.start))  # 0 next, 1 previous, 2 of another document
    plan = _ordered(split, kind == 1, kind)
    sentence = _elsewhere(shard, split.document, draw)
    other = shard.sentences[sentence]
    # As many whole sentences of the other document as fit; one that is too long is cut.
    room = length - 3 - plan.first_length
    document = np.searchsorted(shard.documents, sentence, "right") - 1
    last = np.searchsorted(shard.sentences, other + room, "right") - 1
    last = np.minimum(last, shard.documents[document + 1])
    end = np.where(last > sentence, _unmarked(shard, last), other + room)
    unrelated = kind == 2
    return Plan(
        plan.first,
        plan.first_length,
        np.where(unrelated, other, plan.second),
        np.where(unrelated, np.minimum(end, len(shard.tokens)) - other, plan.second_length),
        relation=kind,
    )


def _ordered(split: _Split, swapped: NDArray[np.bool_], relation: Ints) -> Plan:
    a, b = split.middle - split.start, split.end - split.middle
    return Plan(
        np.where(swapped, split.middle, split.start),
        np.where(swapped, b, a),
        np.where(swapped, split.start, split.middle),
        np.where(swapped, a, b),
        relation=relation,
    )


def _translation(shard: Shard, length: int, draw: np.random.Generator) -> Plan:
    if np.any(np.diff(shard.documents) != 2):
        raise DataError(
            "Translation LM needs documents of two sentences each, a text and its translation.",
            hint='Give JSON lines: {"text": "Guten Tag.", "translation": "Good day."}.',
        )
    starts = shard.sentences[:-1].reshape(-1, 2)
    ends = shard.sentences[1:].reshape(-1, 2) - [0, 1]  # without the [SEP] of the document
    half = (length - 3) // 2
    lengths = np.minimum(ends - starts, half)
    order = draw.integers(0, 2, len(starts))  # either language may come first
    rows = np.arange(len(starts))
    return Plan(
        starts[rows, order],
        lengths[rows, order],
        starts[rows, 1 - order],
        lengths[rows, 1 - order],
        restart=True,
    )


def _labelled(shard: Shard, length: int, draw: np.random.Generator) -> Plan:
    if shard.labels is None:
        raise DataError(
            "Conditional MLM needs labelled documents.",
            hint='Give JSON lines: {"text": "A fine film.", "label": "positive"}.',
        )
    bounds = shard.document_starts
    lengths = np.minimum(np.diff(bounds) - 1, length - 2)  # without the [SEP] of the document
    kept = lengths > 0
    nothing = np.zeros(int(kept.sum()), np.int64)
    return Plan(bounds[:-1][kept], lengths[kept], nothing, nothing, label=shard.labels[kept])


def _grid(shard: Shard, room: int, draw: np.random.Generator) -> Ints:
    """Every `room`-th token, from another one each pass, so that rows are cut differently."""
    return np.arange(draw.integers(0, room), len(shard.tokens), room, dtype=np.int64)


def _fitting(shard: Shard, starts: Ints, room: int) -> Ints:
    return starts[starts + room <= len(shard.tokens)]


def _splits(shard: Shard, room: int, draw: np.random.Generator) -> _Split:
    starts = _grid(shard, room, draw)
    sentence = np.unique(np.searchsorted(shard.sentences, starts, "right") - 1)
    document = np.searchsorted(shard.documents, sentence, "right") - 1
    after = shard.documents[document + 1]  # the sentence after the document's last
    start = shard.sentences[sentence]
    wanted = start + (draw.uniform(0.1, 0.9, len(start)) * room).astype(np.int64)
    middle = np.clip(np.searchsorted(shard.sentences, wanted), sentence + 1, None)
    # Too far for anything to follow: take the boundary after the first sentence instead.
    far = (middle >= after) | (shard.sentences[np.minimum(middle, after)] - start > room * 0.9)
    middle = np.where(far, sentence + 1, middle)
    last = np.searchsorted(shard.sentences, start + room, "right") - 1
    end = _unmarked(shard, np.minimum(last, after))
    kept = (middle < after) & (shard.sentences[middle] - start <= room * 0.9)
    return _Split(start[kept], shard.sentences[middle][kept], end[kept], document[kept])


def _unmarked(shard: Shard, sentence: Ints) -> Ints:
    """Where the text before this sentence ends, without the [SEP] that ends a document."""
    last = shard.documents[np.searchsorted(shard.documents, sentence)] == sentence
    ends: Ints = shard.sentences[sentence] - last
    return ends


def _elsewhere(shard: Shard, document: Ints, draw: np.random.Generator) -> Ints:
    """A random sentence of another document for each of these."""
    count = len(shard.documents) - 1
    if count < 2:
        raise DataError(
            "There is only one document; pairs of unrelated text need at least two.",
            hint="An empty line ends a document.",
        )
    other = (document + draw.integers(1, count, len(document))) % count
    size = np.diff(shard.documents)[other]
    sentence: Ints = shard.documents[other] + (draw.random(len(other)) * size).astype(np.int64)
    return sentence


PAIRINGS = {
    p.name: p
    for p in (
        Pairing("full-sentences", (), _full_sentences),
        Pairing("stream", (), _stream),
        Pairing("nsp", ("next", "random"), _nsp),
        Pairing("sop", ("in order", "swapped"), _sop),
        Pairing("three-way", ("next", "previous", "random"), _three_way),
        Pairing("translation", (), _translation),
        Pairing("labelled", (), _labelled),
    )
}
