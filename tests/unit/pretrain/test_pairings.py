"""Pairings: which text stands beside which, and what is said about it, by plain loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from bertology.errors import DataError, UnknownNameError
from bertology.train.pretrain.pairings import PAIRINGS, find_pairing
from bertology.train.pretrain.rows import RowPlan
from bertology.train.pretrain.shards import Shard, Shards

NAME = "shard-00000"
PASSES = 12


@dataclass(frozen=True)
class Places:
    """A shard as a reader would note it down, token by token."""

    tokens: list[int]
    begins: set[int]  # where a sentence begins
    ends: set[int]  # where one ends, without the [SEP] of its document
    document: list[int]  # of every token

    @classmethod
    def of(cls, shard: Shard, sep: int) -> Places:
        tokens, document, ends = shard.tokens.tolist(), [], set()
        number = 0
        for token in tokens:
            document.append(number)
            number += token == sep
        begins = shard.sentences[:-1].tolist()
        for end in shard.sentences[1:].tolist():
            ends.add(end - (tokens[end - 1] == sep))
        return cls(tokens, set(begins), ends, document)


@dataclass(frozen=True)
class Pair:
    a: range
    b: range
    relation: int


def _pairs(plan: RowPlan) -> list[Pair]:
    relation = plan.relation if plan.relation is not None else np.zeros(len(plan), np.int64)
    columns = (plan.first, plan.first_length, plan.second, plan.second_length, relation)
    return [
        Pair(range(f, f + a), range(s, s + b), r)
        for f, a, s, b, r in zip(*(c.tolist() for c in columns), strict=True)
    ]


def _passes(shard: Shard, name: str, length: int) -> list[Pair]:
    plan = find_pairing(name).plan
    return [p for k in range(PASSES) for p in _pairs(plan(shard, length, np.random.default_rng(k)))]


@pytest.fixture(scope="module")
def shard(shards: Shards) -> Shard:
    return shards.open(NAME)


@pytest.fixture(scope="module")
def places(shards: Shards, shard: Shard) -> Places:
    return Places.of(shard, shards.special["sep"])


def _even(pairs: list[Pair], classes: int) -> None:
    n = len(pairs)
    for k in range(classes):
        count = sum(p.relation == k for p in pairs)
        assert abs(count - n / classes) < 4 * np.sqrt(n / classes * (1 - 1 / classes)), (k, n)


@pytest.mark.parametrize("length", [16, 32, 64])
def test_nsp(shard: Shard, places: Places, length: int) -> None:
    pairs = _passes(shard, "nsp", length)
    assert find_pairing("nsp").relations == ("next", "random")
    for p in pairs:
        mine = {places.document[i] for i in p.a}
        assert len(p.a) + len(p.b) + 3 == length
        assert len(p.a) > 0
        assert len(p.b) > 0
        assert p.a.start in places.begins
        assert p.a.stop in places.ends
        assert p.b.start in places.begins
        assert len(mine) == 1
        if p.relation == 0:
            assert p.b.start == p.a.stop
            assert places.document[p.b.start] in mine
        else:
            assert not mine & {places.document[i] for i in p.b}
    assert len(pairs) > 200
    _even(pairs, 2)


@pytest.mark.parametrize("length", [24, 64])
def test_sop(shard: Shard, shards: Shards, places: Places, length: int) -> None:
    pairs = _passes(shard, "sop", length)
    assert find_pairing("sop").relations == ("in order", "swapped")
    for p in pairs:
        early, late = (p.b, p.a) if p.relation else (p.a, p.b)
        assert early.stop == late.start
        assert len(p.a) + len(p.b) + 3 <= length
        for part in (p.a, p.b):
            assert part.start in places.begins
            assert part.stop in places.ends
            assert shards.special["sep"] not in {places.tokens[i] for i in part}
        assert len({places.document[i] for part in (p.a, p.b) for i in part}) == 1
    assert len(pairs) > 200
    _even(pairs, 2)


@pytest.mark.parametrize("length", [24, 64])
def test_three_way(shard: Shard, shards: Shards, places: Places, length: int) -> None:
    pairs = _passes(shard, "three-way", length)
    assert find_pairing("three-way").relations == ("next", "previous", "random")
    for p in pairs:
        first, second = ({places.document[i] for i in part} for part in (p.a, p.b))
        assert len(p.a) + len(p.b) + 3 <= length
        assert len(first) == len(second) == 1
        for part in (p.a, p.b):
            assert part.start in places.begins
            assert part.stop in places.ends
            assert shards.special["sep"] not in {places.tokens[i] for i in part}
        assert (first == second) == (p.relation != 2)
        if p.relation == 0:
            assert p.a.stop == p.b.start
        if p.relation == 1:
            assert p.b.stop == p.a.start
    assert len(pairs) > 200
    _even(pairs, 3)


@pytest.mark.parametrize("sentences", [5, 60])
@pytest.mark.parametrize("name", ["sop", "three-way"])
def test_lengths_do_not_tell_the_relation(name: str, sentences: int) -> None:
    draw = np.random.default_rng(1)
    lengths = draw.integers(8, 45, 60000)
    shard = Shard(
        np.zeros(lengths.sum(), np.uint16),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.arange(0, 60001, sentences),
    )
    plan = find_pairing(name).plan(shard, 128, draw)
    assert plan.relation is not None
    for values in (plan.first_length, plan.second_length, plan.first_length + plan.second_length):
        groups = [values[plan.relation == k] for k in range(plan.relation.max() + 1)]
        error = max(g.std() / np.sqrt(len(g)) for g in groups)
        for group in groups:
            assert abs(group.mean() - values.mean()) < 4 * error


def test_short_documents_fill_the_rows_of_sentence_order() -> None:
    lengths = np.random.default_rng(3).integers(5, 12, 8000)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    shard = Shard(np.zeros(ends[-1], np.uint16), ends, np.arange(0, 8001, 8))
    plan = find_pairing("sop").plan(shard, 64, np.random.default_rng(0))
    assert (plan.first_length + plan.second_length).mean() > 0.9 * 61


@pytest.mark.parametrize("sizes", ["even", "mixed"])
@pytest.mark.parametrize("name", ["nsp", "three-way"])
def test_where_a_part_stands_in_its_document_does_not_tell_the_relation(
    name: str, sizes: str
) -> None:
    draw = np.random.default_rng(2)
    lengths = draw.integers(5, 12, 60000)
    several = np.full(8000, 8) if sizes == "even" else draw.choice([3, 6, 90], 8000)
    bounds = np.concatenate([[0], np.cumsum(several)])
    shard = Shard(
        np.zeros(lengths.sum(), np.uint16),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.append(bounds[bounds < 60000], 60000),
    )
    plan = find_pairing(name).plan(shard, 64, draw)
    assert plan.relation is not None
    after, unrelated = plan.relation == 0, plan.relation == plan.relation.max()
    starts = shard.document_starts
    assert not np.isin(plan.second[after | unrelated], starts).any()
    # Where a document ends within the second part, and how long that document is.
    own = np.searchsorted(starts, plan.second, "right")
    crosses = starts[own] < plan.second + plan.second_length
    short = np.diff(starts)[own - 1] < 200
    for told in (crosses, short):
        assert abs(told[after].mean() - told[unrelated].mean()) < 0.04


def test_full_sentences_begin_with_one_and_cross_documents(
    shard: Shard, shards: Shards, places: Places
) -> None:
    pairs = _passes(shard, "full-sentences", 64)
    crossing = 0
    for p in pairs:
        assert p.a.start in places.begins
        assert (len(p.a), len(p.b)) == (62, 0)
        inside = [places.document[i] for i in p.a]
        # Where the document changes, and only there, a [SEP] stands before.
        for i, here, after in zip(p.a, inside, inside[1:], strict=False):
            assert (here != after) == (places.tokens[i] == shards.special["sep"])
        crossing += inside[0] != inside[-1]
    assert crossing > len(pairs) / 2
    # Nearly all text is seen in one pass, and other cuts are made in the next one.
    plans = [
        find_pairing("full-sentences").plan(shard, 64, np.random.default_rng(k)) for k in (0, 1)
    ]
    seen = {i for p in _pairs(plans[0]) for i in p.a}
    assert len(seen) > 0.85 * len(places.tokens)
    assert set(plans[0].first.tolist()) != set(plans[1].first.tolist())


def test_a_stream_begins_anywhere_and_leaves_nothing_out(shard: Shard, places: Places) -> None:
    starts = set()
    for k in range(PASSES):
        pairs = _pairs(find_pairing("stream").plan(shard, 32, np.random.default_rng(k)))
        assert all((len(p.a), len(p.b)) == (30, 0) for p in pairs)
        assert [p.a.start for p in pairs[1:]] == [p.a.stop for p in pairs[:-1]]
        assert pairs[0].a.start < 30
        assert pairs[-1].a.stop > len(places.tokens) - 30
        starts |= {p.a.start for p in pairs}
    assert len(starts & places.begins) < len(starts) / 2


@pytest.mark.parametrize("length", [21, 128])
def test_translations_are_those_of_their_sentences(translation_shards: Shards, length: int) -> None:
    shard = translation_shards.open(NAME)
    plan = find_pairing("translation").plan(shard, length, np.random.default_rng(0))
    assert plan.restart
    assert len(plan) == len(shard.documents) - 1
    half, first = (length - 3) // 2, 0
    for d, p in enumerate(_pairs(plan)):
        i = int(shard.documents[d])
        text = range(shard.sentences[i], shard.sentences[i + 1])
        other = range(shard.sentences[i + 1], shard.sentences[i + 2] - 1)
        assert sorted((p.a, p.b), key=lambda r: r.start) == [text[:half], other[:half]]
        first += p.a.start == text.start
    assert 0.2 < first / len(plan) < 0.8


def test_labelled_documents_each_with_its_label(labelled_shards: Shards) -> None:
    shard = labelled_shards.open(NAME)
    assert shard.labels is not None
    plan = find_pairing("labelled").plan(shard, 20, np.random.default_rng(0))
    assert plan.label is not None
    for d, p in enumerate(_pairs(plan)):
        start, end = (int(shard.sentences[shard.documents[k]]) for k in (d, d + 1))
        assert p.a == range(start, end - 1)[:18]
        assert len(p.b) == 0
    assert plan.label.tolist() == shard.labels.tolist()
    assert len(set(plan.first_length.tolist())) > 1


@pytest.mark.parametrize("name", [n for n in PAIRINGS if n not in ("translation", "labelled")])
def test_the_generator_alone_decides(shard: Shard, name: str) -> None:
    plan = find_pairing(name).plan
    first, again, other = (_pairs(plan(shard, 32, np.random.default_rng(k))) for k in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("name", [n for n in PAIRINGS if n not in ("translation", "labelled")])
def test_a_shard_that_is_too_short_gives_no_rows(shards: Shards, name: str) -> None:
    assert len(find_pairing(name).plan(shards.open(NAME), 20000, np.random.default_rng(0))) <= 1


def test_what_the_text_lacks_is_said(shards: Shards, shard: Shard) -> None:
    draw = np.random.default_rng(0)
    with pytest.raises(DataError, match="documents of two sentences"):
        find_pairing("translation").plan(shard, 32, draw)
    with pytest.raises(DataError, match="labelled documents"):
        find_pairing("labelled").plan(shard, 32, draw)
    alone = Shard(shard.tokens[:90], np.arange(0, 91, 9), np.array([0, 10]))
    for name in ("nsp", "three-way"):
        with pytest.raises(DataError, match="only one document"):
            find_pairing(name).plan(alone, 32, draw)
    with pytest.raises(UnknownNameError, match="'nsp'"):
        find_pairing("nps")
