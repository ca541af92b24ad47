"""How text becomes rows, and which relation between two parts is to be predicted.

    full-sentences   one part: sentences, across documents if need be      (RoBERTa)
    stream           one part: the running text from any token on          (XLM)
    nsp              does the second part follow the first?                (BERT)
    sop              are the two parts in their order?                     (ALBERT)
    three-way        is the second part the next, the previous, or neither? (StructBERT)
    translation      a sentence and its translation                        (XLM's TLM)
    labelled         a text whose label takes the place of segments        (conditional MLM)

Every pairing makes a `RowPlan` for one pass over a shard; all randomness comes from the given
generator. Rows of the first three have no padding. In `sop` and `three-way` both parts are whole
sentences of one document, because a sentence that is cut off would show which part comes second;
so rows have a little padding. Both parts are about equally long, so that length does not show the
order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Ints
from bertology.errors import DataError, UnknownNameError
from bertology.train.pretrain.rows import RowPlan
from bertology.train.pretrain.shards import Shard


@dataclass(frozen=True)
class Pairing:
    """A way to make rows; `relations` names the classes of `RowPlan.relation`."""

    name: str
    relations: tuple[str, ...]
    plan: Callable[[Shard, int, np.random.Generator], RowPlan]


def find_pairing(name: str) -> Pairing:
    """The pairing of this name."""
    try:
        return PAIRINGS[name]
    except KeyError:
        raise UnknownNameError("pairing", name, PAIRINGS) from None


@dataclass(frozen=True)
class _Halves:
    """Stretches of whole sentences of one document, cut in two; given as sentence indices."""

    first: Ints
    middle: Ints  # the first sentence of the second part
    last: Ints  # the sentence after the second part
    document: Ints


def _full_sentences(shard: Shard, length: int, draw: np.random.Generator) -> RowPlan:
    room = length - 2
    starts = _grid(shard, room, draw)
    snapped = shard.sentences[np.searchsorted(shard.sentences, starts, "right") - 1]
    return _single(_fitting(shard, np.unique(snapped), room), room)


def _stream(shard: Shard, length: int, draw: np.random.Generator) -> RowPlan:
    room = length - 2
    return _single(_fitting(shard, _grid(shard, room, draw), room), room)


def _single(starts: Ints, room: int) -> RowPlan:
    nothing = np.zeros_like(starts)
    return RowPlan(starts, np.full_like(starts, room), nothing, nothing)


def _nsp(shard: Shard, length: int, draw: np.random.Generator) -> RowPlan:
    room = length - 3
    start, middle, document = _cuts(shard, room, draw)
    a, b = middle - start, room - (middle - start)
    other = draw.random(len(a)) < 0.5
    unrelated = middle[_strangers(shard, document, draw)]
    # Text of another document must not run into the document of the first part.
    own = shard.document_starts[document]
    apart = (unrelated > own) | (unrelated + b <= own)
    # Rows of both classes are left out alike; otherwise one class would become rarer.
    kept = apart & (np.maximum(unrelated, middle) + b <= len(shard.tokens))
    second = np.where(other, unrelated, middle)
    return RowPlan(start, a, second, b, relation=other.astype(np.int64)).take(kept)


def _sop(shard: Shard, length: int, draw: np.random.Generator) -> RowPlan:
    halves = _halves(shard, length - 3, draw, full=True)
    swapped = draw.random(len(halves.first)) < 0.5
    return _ordered(shard, halves, swapped, swapped.astype(np.int64))


def _three_way(shard: Shard, length: int, draw: np.random.Generator) -> RowPlan:
    room = length - 3
    halves = _halves(shard, room, draw)
    kind = draw.integers(0, 3, len(halves.first))  # 0 next, 1 previous, 2 of another document
    plan = _ordered(shard, halves, kind == 1, kind)
    # As many sentences as could have followed, if they fit: length must not show the class.
    count = shard.documents[halves.document + 1] - halves.middle
    document = halves.document[_strangers(shard, halves.document, draw)]
    # A random sentence of each document, where possible with `count` sentences from there on.
    # Never the first sentence: a part that really follows another never begins a document, so the
    # model would know that one which does is unrelated
    size = np.diff(shard.documents)[document]
    place = np.minimum(1 + draw.integers(0, np.maximum(size - count, 1)), size - 1)
    sentence: Ints = shard.documents[document] + place
    other = shard.sentences[sentence]
    last = np.minimum(sentence + count, shard.documents[document + 1])
    fits = np.searchsorted(shard.sentences, other + room - plan.first_length, "right") - 1
    end = _unmarked(shard, np.minimum(last, fits))
    unrelated = kind == 2
    # Rows of all three classes are left out alike; otherwise one would become rarer.
    one = shard.sentences[sentence + 1] - other
    kept = one <= room - np.maximum(plan.first_length, plan.second_length)
    return RowPlan(
        plan.first,
        plan.first_length,
        np.where(unrelated, other, plan.second),
        np.where(unrelated, end - other, plan.second_length),
        relation=kind,
    ).take(kept)


def _ordered(shard: Shard, halves: _Halves, swapped: NDArray[np.bool_], relation: Ints) -> RowPlan:
    start, middle = shard.sentences[halves.first], shard.sentences[halves.middle]
    a, b = middle - start, _unmarked(shard, halves.last) - middle
    return RowPlan(
        np.where(swapped, middle, start),
        np.where(swapped, b, a),
        np.where(swapped, start, middle),
        np.where(swapped, a, b),
        relation=relation,
    )


def _translation(shard: Shard, length: int, draw: np.random.Generator) -> RowPlan:
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
    return RowPlan(
        starts[rows, order],
        lengths[rows, order],
        starts[rows, 1 - order],
        lengths[rows, 1 - order],
        restart=True,
    )


def _labelled(shard: Shard, length: int, draw: np.random.Generator) -> RowPlan:
    if shard.labels is None:
        raise DataError(
            "Conditional MLM needs labelled documents.",
            hint='Give JSON lines: {"text": "A fine film.", "label": "positive"}.',
        )
    bounds = shard.document_starts
    lengths = np.minimum(np.diff(bounds) - 1, length - 2)  # without the [SEP] of the document
    kept = lengths > 0
    nothing = np.zeros(int(kept.sum()), np.int64)
    return RowPlan(bounds[:-1][kept], lengths[kept], nothing, nothing, label=shard.labels[kept])


def _grid(shard: Shard, room: int, draw: np.random.Generator) -> Ints:
    """Every `room`-th token, from another one each pass, so that rows are cut differently."""
    return np.arange(draw.integers(0, room), len(shard.tokens), room, dtype=np.int64)


def _fitting(shard: Shard, starts: Ints, room: int) -> Ints:
    return starts[starts + room <= len(shard.tokens)]


def _cuts(shard: Shard, room: int, draw: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Where the first and the second part begin, as token positions; and their document."""
    starts = _grid(shard, room, draw)
    sentence = np.unique(np.searchsorted(shard.sentences, starts, "right") - 1)
    document = np.searchsorted(shard.documents, sentence, "right") - 1
    after = shard.documents[document + 1]  # the sentence after the document's last
    start = shard.sentences[sentence]
    wanted = start + (draw.uniform(0.1, 0.9, len(start)) * room).astype(np.int64)
    middle = np.clip(np.searchsorted(shard.sentences, wanted), sentence + 1, None)
    # No room for a second part: take the boundary after the first sentence instead.
    far = (middle >= after) | (shard.sentences[np.minimum(middle, after)] - start > room * 0.9)
    middle = np.where(far, sentence + 1, middle)
    kept = (middle < after) & (shard.sentences[middle] - start <= room * 0.9)
    return start[kept], shard.sentences[middle][kept], document[kept]


def _halves(shard: Shard, room: int, draw: np.random.Generator, *, full: bool = False) -> _Halves:
    """`full`: begin earlier in the document where its end would leave the row half empty."""
    # From the next sentence on: a sentence that covers a grid point is longer than average.
    first = np.unique(np.searchsorted(shard.sentences, _grid(shard, room, draw)))
    first = first[first < len(shard.sentences) - 1]
    document, last = _stretch(shard, first, room)
    if full:
        back = np.searchsorted(shard.sentences, shard.sentences[last] - room)
        first = np.unique(np.maximum(back, shard.documents[document]))
        document, last = _stretch(shard, first, room)
    kept = last - first >= 2
    first, last, document = first[kept], last[kept], document[kept]
    return _Halves(first, draw.integers(first + 1, last), last, document)


def _stretch(shard: Shard, first: Ints, room: int) -> tuple[Ints, Ints]:
    """The document of a sentence; and the first sentence that no longer fits or belongs to it."""
    document = np.searchsorted(shard.documents, first, "right") - 1
    fits = np.searchsorted(shard.sentences, shard.sentences[first] + room, "right") - 1
    return document, np.minimum(fits, shard.documents[document + 1])


def _unmarked(shard: Shard, sentence: Ints) -> Ints:
    """Where the text before this sentence ends, without the [SEP] that ends a document."""
    last = shard.documents[np.searchsorted(shard.documents, sentence)] == sentence
    ends: Ints = shard.sentences[sentence] - last
    return ends


def _strangers(shard: Shard, document: Ints, draw: np.random.Generator) -> Ints:
    """For each row the index of a row from another document; `document` must be sorted.

    Unrelated text is drawn from the rows' own second parts, so that it looks like text that
    follows. Random sentences of random documents would not: more of them would come from short
    documents, or from a document's beginning or end, and the model could notice that.
    """
    if len(shard.documents) < 3:
        raise DataError(
            "There is only one document; pairs of unrelated text need at least two.",
            hint="An empty line ends a document. The held-out text needs two documents as well.",
        )
    first, after = (np.searchsorted(document, document, side) for side in ("left", "right"))
    others = len(document) - (after - first)
    if not others.all():
        raise DataError(
            "Only one document is long enough for two parts; pairs of unrelated text need two.",
            hint="Give more text, a larger held-out share, or shorter rows.",
        )
    drawn = draw.integers(0, others)
    return np.where(drawn < first, drawn, drawn + (after - first)).astype(np.int64)


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
