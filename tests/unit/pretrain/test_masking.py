"""Masking: exactly which tokens are hidden, in what order of units, and by what; by plain loops."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bertology.errors import DataError
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.config import UNITS, Masking
from bertology.train.pretrain.masking import Hidden, MaskableVocabulary, gathered, hide
from bertology.train.pretrain.pairings import find_pairing
from bertology.train.pretrain.rows import RowPlan, Rows, ShardText, fill
from bertology.train.pretrain.shards import Shards

NAME = "shard-00000"
CHANCE = Chance(11)("test")
LENGTH = 48


def _rows(shards: Shards, pairing: str, *, passes: int = 1, length: int = LENGTH) -> Rows:
    shard = shards.open(NAME)
    make = find_pairing(pairing).plan
    plans = [make(shard, length, np.random.default_rng(k)) for k in range(passes)]
    names = ("first", "first_length", "second", "second_length")
    joined = RowPlan(*(np.concatenate([getattr(p, n) for p in plans]) for n in names))
    return fill(ShardText.of(shard, shards, "cpu"), joined, np.arange(len(joined)), length)


def _every(rows: Rows, times: int) -> Rows:
    """The rows again and again, each with a number of its own, so that it is masked anew."""
    tensors = {
        name: getattr(rows, name).repeat(times, 1)
        for name in ("ids", "segments", "fixed", "starts", "entities")
        if getattr(rows, name) is not None
    }
    return replace(rows, **tensors, index=torch.arange(len(rows) * times))


@pytest.fixture(scope="module")
def rows(shards: Shards) -> Rows:
    return _rows(shards, "stream", passes=2)


@pytest.fixture(scope="module")
def entity_rows(entity_shards: Shards) -> Rows:
    return _rows(entity_shards, "stream", passes=2)


@pytest.fixture(scope="module")
def padded(shards: Shards) -> Rows:
    return _rows(shards, "sop", passes=2)


@pytest.fixture(scope="module")
def pieces(shards: Shards) -> MaskableVocabulary:
    return MaskableVocabulary.of(shards, "cpu")


def _budget(fixed: list[bool], share: float) -> int:
    exact = Fraction(str(share))
    return min(math.ceil(exact * fixed.count(False)), math.ceil(exact * len(fixed)))


def _uniform(rows: Rows, *names: str) -> list[list[float]]:
    values: list[list[float]] = CHANCE(*names).uniform(*rows.at).tolist()
    return values


# Which tokens make up a unit, by plain loops.


def _words(starts: list[bool], fixed: list[bool]) -> list[list[int]]:
    units: list[list[int]] = []
    for j, (begins, still) in enumerate(zip(starts, fixed, strict=True)):
        if still:
            continue
        if begins or not units or fixed[j - 1]:
            units.append([])
        units[-1].append(j)
    return units


def _stretches(starts: list[bool], fixed: list[bool], lengths: list[int]) -> list[list[int]]:
    """One length after the other is used up by words; what is fixed counts, and ends a unit."""
    units: list[list[int]] = []
    k, left, new = 0, lengths[0], True
    for j, (begins, still) in enumerate(zip(starts, fixed, strict=True)):
        if begins and j:
            left -= 1
            if left == 0:
                k, new = k + 1, True
                left = lengths[k]
        if still:
            new = True
            continue
        if new:
            units.append([])
        units[-1].append(j)
        new = False
    return units


def _entities(starts: list[bool], fixed: list[bool], marks: list[int]) -> list[list[int]]:
    units: list[list[int]] = []
    for j, mark in enumerate(marks):
        if fixed[j]:
            continue
        goes_on = mark == 2 or (mark == 0 and marks[j - 1] == 0 and not starts[j])
        if not goes_on or fixed[j - 1]:
            units.append([])
        units[-1].append(j)
    return units


def _taken(units: list[list[int]], keys: list[Any], room: int, *, trim: bool) -> set[int]:
    """In the order of their keys, until one does not fit: it is trimmed, or left out."""
    taken: set[int] = set()
    for _, unit in sorted(zip(keys, units, strict=True)):
        left = room - len(taken)
        if len(unit) > left:
            return taken | set(unit[:left]) if trim else taken
        taken |= set(unit)
    return taken


def _geometric(u: float, ends: float, longest: int) -> int:
    total = sum((1 - ends) ** k for k in range(longest))
    below = 0.0
    for k in range(longest):
        below += (1 - ends) ** k / total
        if u < below:
            return k + 1
    return longest


def _expected(rows: Rows, masking: Masking) -> tuple[list[list[list[int]]], list[set[int]]]:
    """The units of every row, and what is hidden of it."""
    cuts, order = _uniform(rows, "units"), _uniform(rows, "choose")
    all_units, all_taken = [], []
    for i in range(len(rows)):
        starts, fixed = rows.starts[i].tolist(), rows.fixed[i].tolist()
        keys: list[Any] = []
        if masking.units == "tokens":
            units = [[j] for j, still in enumerate(fixed) if not still]
        elif masking.units == "words":
            units = _words(starts, fixed)
        elif masking.units == "entities":
            assert rows.entities is not None
            marks = rows.entities[i].tolist()
            units = _entities(starts, fixed, marks)
            keys = [(marks[u[0]] == 0, order[i][u[0]]) for u in units]
        else:
            ngrams = masking.units == "ngrams"
            lengths = [
                1 + int(3 * u) if ngrams else _geometric(u, masking.ends, masking.longest)
                for u in cuts[i]
            ]
            units = _stretches(starts, fixed, lengths)
        keys = keys or [order[i][u[0]] for u in units]
        trim = masking.units in ("spans", "ngrams")
        all_units.append(units)
        all_taken.append(_taken(units, keys, _budget(fixed, masking.share), trim=trim))
    return all_units, all_taken


@pytest.mark.parametrize("share", [0.15, 0.3])
@pytest.mark.parametrize(
    ("units", "source"),
    [(u, s) for u in UNITS for s in ("rows", "padded", "entity_rows") if u != "entities"]
    + [("entities", "entity_rows")],
)
def test_exactly_these_tokens_are_hidden(
    units: str,
    source: str,
    share: float,
    pieces: MaskableVocabulary,
    request: pytest.FixtureRequest,
) -> None:
    rows: Rows = request.getfixturevalue(source)
    masking = Masking(units=units, share=share)
    hidden = hide(rows, masking, pieces, CHANCE)
    expected, taken = _expected(rows, masking)
    for i in range(len(rows)):
        chosen = set(hidden.chosen[i].nonzero()[:, 0].tolist())
        assert chosen == taken[i], i
        for unit in expected[i]:
            assert {int(hidden.unit[i, j]) for j in unit} == {unit[0]}
        free = {j for unit in expected[i] for j in unit}
        assert free == set((~rows.fixed[i]).nonzero()[:, 0].tolist())
    if units in ("tokens", "spans", "ngrams"):  # these use all of their room
        budgets = [_budget(f, share) for f in rows.fixed.tolist()]
        assert hidden.chosen.sum(1).tolist() == budgets


def _check(hidden: Hidden, rows: Rows) -> None:
    """What the model is given and asked agrees with what was chosen."""
    assert not bool((hidden.chosen & rows.fixed).any())
    assert torch.equal(torch.where(hidden.chosen, rows.ids, hidden.ids), rows.ids)
    for i in range(len(rows)):
        places = hidden.chosen[i].nonzero()[:, 0].tolist()
        n, room = len(places), hidden.positions.shape[1]
        assert hidden.positions[i].tolist() == places + [0] * (room - n)
        assert hidden.weights[i].tolist() == [1.0] * n + [0.0] * (room - n)
        assert hidden.targets[i, :n].tolist() == rows.ids[i, places].tolist()


@pytest.mark.parametrize("units", UNITS)
def test_positions_targets_and_weights_agree(
    units: str, entity_rows: Rows, pieces: MaskableVocabulary
) -> None:
    hidden = hide(entity_rows, Masking(units=units), pieces, CHANCE)
    assert hidden.positions.shape == (len(entity_rows), math.ceil(0.15 * LENGTH))
    _check(hidden, entity_rows)


def test_padding_and_marks_are_never_hidden(
    padded: Rows, shards: Shards, pieces: MaskableVocabulary
) -> None:
    assert padded.real is not None
    assert not bool(padded.real.all())
    special = {shards.special[n] for n in ("cls", "sep", "pad")}
    for units in ("tokens", "words", "ngrams", "spans"):
        hidden = hide(padded, Masking(units=units, share=0.9), pieces, CHANCE)
        _check(hidden, padded)
        assert not special & set(padded.ids[hidden.chosen].tolist())
        assert bool(padded.real[hidden.chosen].all())


def test_eight_tenths_are_masked_one_is_random_one_is_left(
    rows: Rows, pieces: MaskableVocabulary
) -> None:
    many = _every(rows, 20)
    hidden = hide(many, Masking(), pieces, CHANCE)
    seen, true = hidden.ids[hidden.chosen], many.ids[hidden.chosen]
    n = len(seen)
    # A random piece is the true one now and then.
    same = 1 / len(pieces.ordinary)
    for count, p in (
        (int((seen == pieces.mask).sum()), 0.8),
        (int((seen == true).sum()), 0.1 + 0.1 * same),
        (int(((seen != true) & (seen != pieces.mask)).sum()), 0.1 * (1 - same)),
    ):
        assert abs(count - n * p) < 4 * math.sqrt(n * p * (1 - p))
    assert not {pieces.mask, pieces.unk, 0} & set(pieces.ordinary.tolist())
    put = seen[(seen != true) & (seen != pieces.mask)]
    assert set(put.tolist()) <= set(pieces.ordinary.tolist())
    counts = torch.bincount(put, minlength=len(pieces.frequency))[pieces.ordinary]
    assert int((counts > 0).sum()) > 0.9 * len(pieces.ordinary)


@pytest.mark.parametrize("share", [0.15, 0.3])
def test_the_number_of_hidden_tokens_is_not_rounded_up(
    pieces: MaskableVocabulary, share: float
) -> None:
    # 0.15 × 100 may be a little above 15; row n has n tokens that may be hidden.
    fixed = torch.ones(200, 200).triu().bool()
    ids = torch.full((200, 200), 9)
    hidden = hide(
        Rows(ids, ids, fixed, fixed, torch.arange(200)), Masking(share=share), pieces, CHANCE
    )
    expected = [math.ceil(Fraction(str(share)) * n) for n in range(200)]
    assert hidden.chosen.sum(1).tolist() == expected


@pytest.mark.parametrize(("masked", "random"), [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0)])
def test_other_shares_of_masks(
    rows: Rows, pieces: MaskableVocabulary, masked: float, random: float
) -> None:
    hidden = hide(rows, Masking(masked=masked, random=random), pieces, CHANCE)
    seen, true = hidden.ids[hidden.chosen], rows.ids[hidden.chosen]
    kept = float((seen == true).float().mean())
    assert float((seen == pieces.mask).float().mean()) == masked
    assert kept < 0.05 if masked or random else kept == 1


def test_unknown_in_the_place_of_the_mask(rows: Rows, pieces: MaskableVocabulary) -> None:
    usual = hide(rows, Masking(), pieces, CHANCE)
    unknown = hide(rows, Masking(token="unk"), pieces, CHANCE)
    assert torch.equal(usual.chosen, unknown.chosen)
    swapped = torch.where(usual.ids == pieces.mask, pieces.unk, usual.ids)
    assert torch.equal(unknown.ids, swapped)
    assert not bool((unknown.ids == pieces.mask).any())


def test_a_span_is_replaced_as_one_and_words_piece_by_piece(
    rows: Rows, pieces: MaskableVocabulary
) -> None:
    def kinds(units: str) -> list[set[str]]:
        masking = Masking(units=units, masked=0.5, random=0.0)
        hidden = hide(_every(rows, 5), masking, pieces, CHANCE)
        marked = hidden.ids == pieces.mask
        found: dict[tuple[int, int], set[str]] = {}
        for i, j in hidden.chosen.nonzero().tolist():
            key = i, int(hidden.unit[i, j])
            found.setdefault(key, set()).add("mask" if marked[i, j] else "kept")
        return list(found.values())

    assert {len(k) for k in kinds("spans")} == {1}
    assert {len(k) for k in kinds("words")} == {1, 2}


def _lengths(rows: Rows, units: list[list[list[int]]], longest: int) -> Counter[int]:
    """Words in a unit, of those with room for the longest: their lengths are as they were drawn."""
    counts: Counter[int] = Counter()
    for row, starts, fixed in zip(units, rows.starts.tolist(), rows.fixed.tolist(), strict=True):
        for unit in row:
            begin = unit[0]
            end = fixed.index(True, begin)
            # The one after [CLS] or [SEP] may be what is left of a stretch.
            if sum(starts[begin:end]) >= longest and not fixed[begin - 1]:
                counts[sum(starts[j] for j in unit)] += 1
    return counts


def _units_of(hidden: Hidden, rows: Rows) -> list[list[list[int]]]:
    found: list[list[list[int]]] = []
    for unit, fixed in zip(hidden.unit.tolist(), rows.fixed.tolist(), strict=True):
        groups: dict[int, list[int]] = {}
        for j, (begin, still) in enumerate(zip(unit, fixed, strict=True)):
            if not still:
                groups.setdefault(begin, []).append(j)
        found.append(list(groups.values()))
    return found


@pytest.mark.parametrize(("ends", "longest"), [(0.2, 10), (0.5, 4), (1.0, 10), (0.2, 1)])
def test_span_lengths_are_geometric(
    rows: Rows, pieces: MaskableVocabulary, ends: float, longest: int
) -> None:
    many = _every(rows, 4)
    hidden = hide(many, Masking(units="spans", ends=ends, longest=longest), pieces, CHANCE)
    counts = _lengths(many, _units_of(hidden, many), longest)
    weights = [ends * (1 - ends) ** (k - 1) for k in range(1, longest + 1)]
    n = counts.total()
    assert n > 500
    assert set(counts) <= set(range(1, longest + 1))
    likely = [k for k, w in enumerate(weights, 1) if w > 0]
    expected = [n * weights[k - 1] / sum(weights) for k in likely]
    if len(likely) > 1:
        assert stats.chisquare([counts[k] for k in likely], expected).pvalue > 1e-3
    else:
        assert counts == {1: n}


def test_ngrams_have_one_to_three_words(rows: Rows, pieces: MaskableVocabulary) -> None:
    many = _every(rows, 8)
    hidden = hide(many, Masking(units="ngrams"), pieces, CHANCE)
    counts = _lengths(many, _units_of(hidden, many), 3)
    assert set(counts) == {1, 2, 3}
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_only_the_last_span_is_trimmed(rows: Rows, pieces: MaskableVocabulary) -> None:
    hidden = hide(rows, Masking(units="spans", share=0.3), pieces, CHANCE)
    for i, units in enumerate(_units_of(hidden, rows)):
        chosen = hidden.chosen[i].tolist()
        parts = [[chosen[j] for j in unit] for unit in units]
        cut = [p for p in parts if any(p) and not all(p)]
        assert len(cut) <= 1
        for part in cut:  # its beginning is hidden
            assert part == sorted(part, reverse=True)


def test_entities_go_first_and_whole(entity_rows: Rows, pieces: MaskableVocabulary) -> None:
    assert entity_rows.entities is not None
    hidden = hide(entity_rows, Masking(units="entities", share=0.4), pieces, CHANCE)
    beside = 0
    for i, units in enumerate(_units_of(hidden, entity_rows)):
        chosen, marks = hidden.chosen[i].tolist(), entity_rows.entities[i].tolist()
        for unit in units:
            assert len({chosen[j] for j in unit}) == 1
            assert len({marks[j] > 0 for j in unit}) == 1
        left = [u for u in units if marks[u[0]] and not chosen[u[0]]]
        words = [u for u in units if not marks[u[0]] and chosen[u[0]]]
        assert not (left and words)
        beside += bool(words)
    assert beside > 0


def test_without_entities_there_is_an_error(rows: Rows, pieces: MaskableVocabulary) -> None:
    with pytest.raises(DataError, match="needs text with entities"):
        hide(rows, Masking(units="entities"), pieces, CHANCE)


def test_the_rest_of_a_word_after_a_cut_can_be_hidden(
    shards: Shards, pieces: MaskableVocabulary
) -> None:
    many = _every(_rows(shards, "stream", passes=4), 10)
    cut = torch.isin(many.ids[:, 1], torch.tensor(shards.continues))
    hidden = hide(many, Masking(units="words"), pieces, CHANCE)
    assert 0.05 < float(hidden.chosen[cut, 1].float().mean()) < 0.25


def test_frequent_pieces_are_hidden_less_often_by_the_root_of_their_share(
    rows: Rows, pieces: MaskableVocabulary
) -> None:
    threshold = 0.004
    many = _every(rows, 40)
    # One token of a row: the chance of each is its weight among the weights of the row.
    masking = Masking(share=0.5 / LENGTH, subsample=threshold)
    hidden = hide(many, masking, pieces, CHANCE)
    assert hidden.chosen.sum(1).tolist() == [1] * len(many)
    size = len(pieces.frequency)
    weight = (threshold / pieces.frequency.clamp(min=1e-12)).sqrt().clamp(max=1.0)
    assert float(weight[pieces.frequency > 0].min()) < 0.4
    w = torch.where(rows.fixed, 0.0, weight[rows.ids]).double()
    p = w / w.sum(1, keepdim=True)
    expected = torch.zeros(size, dtype=torch.float64)
    expected.scatter_add_(0, rows.ids.flatten(), p.flatten())
    expected *= 40
    counts = torch.bincount(many.ids[hidden.chosen], minlength=size)
    used = expected > 5
    share = (expected[used] / expected[used].sum()).numpy()

    def fit(counts: torch.Tensor) -> float:
        value: float = stats.chisquare(counts.numpy(), share * int(counts.sum())).pvalue
        return value

    assert fit(counts[used]) > 1e-3
    # And it makes a difference: without subsampling this is far off.
    plain = hide(many, replace(masking, subsample=0.0), pieces, CHANCE)
    assert fit(torch.bincount(many.ids[plain.chosen], minlength=size)[used]) < 1e-6


@pytest.mark.parametrize("units", UNITS)
def test_a_row_is_masked_alike_in_every_batch(
    units: str, entity_rows: Rows, pieces: MaskableVocabulary
) -> None:
    masking = Masking(units=units, subsample=0.01)
    whole = hide(entity_rows, masking, pieces, CHANCE)
    for order in (torch.tensor([5, 0, 17]), torch.arange(len(entity_rows) - 1, -1, -1)):
        tensors = {
            name: getattr(entity_rows, name)[order]
            for name in ("ids", "segments", "fixed", "starts", "index", "entities")
        }
        some = hide(replace(entity_rows, **tensors), masking, pieces, CHANCE)
        for name in ("ids", "chosen", "unit", "positions", "targets", "weights"):
            assert torch.equal(getattr(some, name), getattr(whole, name)[order]), name


def test_the_chance_decides_which_and_by_what(rows: Rows, pieces: MaskableVocabulary) -> None:
    first, again, other = (hide(rows, Masking(units="spans"), pieces, Chance(k)) for k in (0, 0, 1))
    assert torch.equal(first.ids, again.ids)
    assert torch.equal(first.chosen, again.chosen)
    assert not torch.equal(first.chosen, other.chosen)
    assert not torch.equal(first.unit, other.unit)


@given(
    st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=4),
    st.integers(1, 6),
)
def test_gathering_keeps_order_and_fills_up_with_nothing(
    chosen: list[list[bool]], room: int
) -> None:
    positions, weights = gathered(torch.tensor(chosen), room)
    for row, places, counts in zip(chosen, positions.tolist(), weights.tolist(), strict=True):
        there = [j for j, c in enumerate(row) if c][:room]
        assert places == there + [0] * (room - len(there))
        assert counts == [1.0] * len(there) + [0.0] * (room - len(there))
