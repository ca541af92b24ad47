"""Batches: every row once, the same for a seed, shared out, and found again after a stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import torch

from bertology.errors import DataError
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.config import Masking
from bertology.train.pretrain.feed import Feed, FeedPosition, Library, RowBatch
from bertology.train.pretrain.masking import MaskableVocabulary, hide
from bertology.train.pretrain.pairings import find_pairing
from bertology.train.pretrain.shards import Dealing, Shards, prepare

LENGTH, ROWS = 32, 6
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def three(documents, tokenizer, tmp_path_factory) -> Shards:
    """The same documents in three shards."""
    return prepare(
        tmp_path_factory.mktemp("three") / "shards",
        documents,
        tokenizer,
        dealing=Dealing(held_out=0.1, shards=3),
    )


def feed(shards: Shards, pairing: str = "nsp", *, seed: int = 0, **options: Any) -> Feed:
    return Feed(Library(shards, CPU), find_pairing(pairing), Chance(seed)("feed", 0), **options)


def batches(shards: Shards, count: int, pairing: str = "nsp", **options: Any) -> list[RowBatch]:
    with closing(feed(shards, pairing, **options)) as made:
        return [made.next(ROWS, LENGTH) for _ in range(count)]


def turn(source: Feed, number: int) -> Iterator[tuple[str, RowBatch]]:
    """The batches of one pass over all shards, each with the name of its shard."""
    while True:
        batch = source.next(ROWS, LENGTH)
        if source.place.turn > number:
            return
        yield source._shard(source.place), batch


def masks(shards: Shards, batch: RowBatch) -> torch.Tensor:
    return hide(batch.rows, Masking(), MaskableVocabulary.of(shards, CPU), batch.chance("hide")).ids


def assert_same(one: RowBatch, other: RowBatch) -> None:
    assert torch.equal(one.rows.ids, other.rows.ids)
    assert torch.equal(one.rows.index, other.rows.index)
    assert one.chance == other.chance


@pytest.mark.parametrize("pairing", ["full-sentences", "nsp", "sop"])
def test_a_pass_gives_every_row_exactly_once(shards, three, pairing):
    """But for the last few of a shard, which are no whole batch."""
    for given in (shards, three):
        with closing(feed(given, pairing)) as source:
            seen: dict[str, list[int]] = {}
            planned: dict[str, int] = {}
            for name, batch in turn(source, 0):
                seen.setdefault(name, []).extend(batch.rows.index.tolist())
                planned[name] = len(source._current()[0])
        assert set(seen) == set(given.names)
        for name, rows in seen.items():
            assert len(set(rows)) == len(rows), "no row twice"
            assert set(rows) <= set(range(planned[name]))
            assert len(rows) == planned[name] // ROWS * ROWS


def test_passes_differ_in_their_order_and_their_rows(shards):
    with closing(feed(shards)) as source:
        first = [b.rows.index.tolist() for _, b in turn(source, 0)]
        second = [b.rows.index.tolist() for _, b in turn(source, 1)]
    assert first != second


def test_equal_seeds_give_equal_batches_and_others_do_not(three):
    for one, other in zip(batches(three, 20), batches(three, 20), strict=True):
        assert_same(one, other)
    assert not torch.equal(batches(three, 1)[0].rows.ids, batches(three, 1, seed=1)[0].rows.ids)


@pytest.mark.parametrize("count", [2, 3])
def test_processes_share_every_batch_out(three, count):
    whole = batches(three, 15)
    shares = [batches(three, 15, share=(rank, count)) for rank in range(count)]
    for batch, *parts in zip(whole, *shares, strict=True):
        assert all(len(p.rows) == ROWS // count for p in parts)
        together = [i for p in parts for i in p.rows.index.tolist()]
        assert sorted(together) == sorted(batch.rows.index.tolist())
        assert all(p.chance == batch.chance for p in parts)
        # A row is the same row, with the same mask, in whichever process it is.
        known = dict(zip(batch.rows.index.tolist(), masks(three, batch), strict=True))
        for p in parts:
            for index, ids in zip(p.rows.index.tolist(), masks(three, p), strict=True):
                assert torch.equal(known[index], ids)


@pytest.mark.parametrize("after", [0, 1, 7, 25])
@pytest.mark.parametrize("copies", [0, 2])
def test_a_feed_goes_on_from_a_place(three, after, copies):
    with closing(feed(three, copies=copies)) as source:
        for _ in range(after):
            source.next(ROWS, LENGTH)
        kept = source.place.as_dict()
        expected = [source.next(ROWS, LENGTH) for _ in range(12)]
    with closing(feed(three, copies=copies)) as other:
        other.place = FeedPosition(**kept)
        for batch in expected:
            assert_same(other.next(ROWS, LENGTH), batch)


def test_another_length_begins_another_pass(shards):
    with closing(feed(shards)) as source:
        source.next(ROWS, LENGTH)
        source.next(ROWS, LENGTH)
        batch = source.next(ROWS, 16)
        assert batch.rows.ids.shape == (ROWS, 16)
        assert source.place == FeedPosition(turn=1, shard=0, row=ROWS, length=16)


def hidden_by_turn(shards: Shards, turns: int, **options: Any) -> list[Counter[Any]]:
    """For each pass: the shard, number and masked tokens of all its rows."""
    found = []
    with closing(feed(shards, **options)) as source:
        for number in range(turns):
            rows: Counter[Any] = Counter()
            for name, batch in turn(source, number):
                ids = masks(shards, batch)
                for index, row in zip(batch.rows.index.tolist(), ids.tolist(), strict=True):
                    rows[name, index, tuple(row)] += 1
            found.append(rows)
            source.place = FeedPosition(turn=number + 1, length=LENGTH)
    return found


def overlap(one: Counter[Any], other: Counter[Any]) -> float:
    return (one & other).total() / min(one.total(), other.total())


def test_static_masks_come_again_and_dynamic_ones_do_not(three):
    """Rows are used in another order each time, so the last, incomplete batch loses others."""
    static = hidden_by_turn(three, 4, copies=2)
    assert overlap(static[0], static[2]) > 0.5
    assert overlap(static[1], static[3]) > 0.5
    assert overlap(static[0], static[1]) < 0.05
    dynamic = hidden_by_turn(three, 4)
    for i in range(4):
        for j in range(i):
            assert overlap(dynamic[i], dynamic[j]) < 0.05


def test_static_rows_and_masks_are_the_same_to_the_token(three):
    """Every row that two passes of one copy share is the same in both."""
    first, _, third = hidden_by_turn(three, 3, copies=2)
    one = {(name, index): ids for name, index, ids in first}
    other = {(name, index): ids for name, index, ids in third}
    both = one.keys() & other.keys()
    assert both
    assert all(one[key] == other[key] for key in both)


def test_too_little_text_is_said_clearly(shards, three):
    for given in (shards, three):
        with (
            closing(feed(given)) as source,
            pytest.raises(DataError, match=r"no batch of 5000 rows of 32 tokens \(nsp: \d+ rows"),
        ):
            source.next(5000, LENGTH)
    with closing(feed(shards)) as source, pytest.raises(DataError, match="no batch of 1 rows"):
        source.next(1, 100_000)


def test_planning_ahead_changes_nothing(three, monkeypatch):
    expected = batches(three, 30)

    class Never:
        """A planner that never has a plan in time for it to be used."""

        def submit(self, *_: Any) -> None:
            return None

        def shutdown(self, **_: Any) -> None:
            pass

    with closing(feed(three)) as source:
        source._planner.shutdown()
        monkeypatch.setattr(source, "_planner", Never())
        for batch in expected:
            source._ahead = None
            assert_same(source.next(ROWS, LENGTH), batch)


def test_a_closed_feed_leaves_no_thread(shards):
    source = feed(shards)
    source.next(ROWS, LENGTH)
    source.close()
    assert not any(t.is_alive() for t in source._planner._threads)


def test_only_the_last_shard_is_kept(three):
    library = Library(three, CPU)
    first = library.text(three.names[0])
    assert library.text(three.names[0]) is first
    library.text(three.names[1])
    assert library.text(three.names[0]) is not first
    assert torch.equal(library.text(three.names[0]).tokens, first.tokens)


def test_rows_may_stay_while_masks_change(shards):
    """What sets static and dynamic masking apart, and nothing else."""
    library = Library(shards, torch.device("cpu"))
    feed = Feed(library, find_pairing("nsp"), Chance(0), cuts=1)
    passes: dict[int, dict[int, tuple[list[int], float]]] = {}
    while len(passes) < 3:
        turn = feed.place.turn
        batch = feed.next(4, 16)
        seen = passes.setdefault(feed.place.turn if feed.place.turn != turn else turn, {})
        drawn = batch.chance.uniform(*batch.rows.at)
        for i, row in enumerate(batch.rows.index.tolist()):
            seen[row] = batch.rows.ids[i].tolist(), float(drawn[i, 1])
    feed.close()
    first, second = passes[0], passes[1]
    both = first.keys() & second.keys()
    assert both
    assert all(first[r][0] == second[r][0] for r in both)
    assert all(first[r][1] != second[r][1] for r in both)
