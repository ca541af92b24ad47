"""Rows: every token, segment and mark of a filled row, against a plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bertology.train.pretrain.pairings import find_pairing
from bertology.train.pretrain.rows import RowPlan, Rows, ShardText, fill
from bertology.train.pretrain.shards import Shards

SHARD = "shard-00000"
FORMS = [
    ("full-sentences", "shards"),
    ("stream", "shards"),
    ("nsp", "shards"),
    ("sop", "shards"),
    ("three-way", "shards"),
    ("stream", "entity_shards"),
    ("nsp", "entity_shards"),
    ("translation", "translation_shards"),
    ("labelled", "labelled_shards"),
]


def _reference(shards: Shards, plan: RowPlan, i: int, length: int) -> dict[str, list[int]]:
    """One row, token by token."""
    special, shard = shards.special, shards.open(SHARD)
    parts = [range(plan.first[i], plan.first[i] + plan.first_length[i])]
    if plan.second_length[i]:
        parts.append(range(plan.second[i], plan.second[i] + plan.second_length[i]))
    row: list[tuple[int, int, int, int, int]] = [(special["cls"], 0, 1, 0, 0)]
    for segment, part in enumerate(parts):
        for place, where in enumerate(part):
            token = int(shard.tokens[where])
            mark = 0 if shard.entities is None else int(shard.entities[where])
            position = place if segment and plan.restart else len(row)
            row.append((token, segment, int(token == special["sep"]), mark, position))
        position = len(part) if segment and plan.restart else len(row)
        row.append((special["sep"], segment, 1, 0, position))
    used = len(row)
    for _ in range(length - used):
        row.append((special["pad"], 0, 1, 0, row[-1][4] + 1))
    ids, segments, fixed, marks, positions = (list(column) for column in zip(*row, strict=True))
    if plan.label is not None:
        segments = [int(plan.label[i])] * used + [0] * (length - used)
    starts = [
        int(bool(f) or bool(j and fixed[j - 1]) or token not in shards.continues)
        for j, (f, token) in enumerate(zip(fixed, ids, strict=True))
    ]
    real = [1] * used + [0] * (length - used)
    return {
        "ids": ids, "segments": segments, "fixed": fixed, "starts": starts,
        "real": real, "positions": positions, "entities": marks,
    }  # fmt: skip


@pytest.mark.parametrize(("pairing", "source"), FORMS)
def test_rows_are_what_the_plan_says(
    pairing: str, source: str, request: pytest.FixtureRequest
) -> None:
    shards: Shards = request.getfixturevalue(source)
    shard, length = shards.open(SHARD), 40
    plan = find_pairing(pairing).plan(shard, length, np.random.default_rng(3))
    rows = fill(ShardText.of(shard, shards, "cpu"), plan, np.arange(len(plan)), length)
    assert len(rows) == len(plan) > 20
    given: dict[str, Any] = {
        "real": torch.ones_like(rows.fixed) if rows.real is None else rows.real,
        "positions": rows.positions,
        "entities": rows.entities,
    }
    if rows.positions is None:
        given["positions"] = torch.arange(length).expand_as(rows.ids)
    if rows.entities is None:
        given["entities"] = torch.zeros_like(rows.ids)
    for i in range(len(plan)):
        for name, expected in _reference(shards, plan, i, length).items():
            values = given.get(name)
            values = getattr(rows, name) if values is None else values
            assert values[i].long().tolist() == expected, (name, i)
    assert (rows.positions is None) == (pairing != "translation")
    assert (rows.entities is None) == (source != "entity_shards")
    if plan.relation is not None:
        assert rows.relation is not None
        assert rows.relation.tolist() == plan.relation.tolist()


@pytest.mark.parametrize("pairing", ["full-sentences", "stream", "nsp"])
def test_nothing_is_padded_where_nothing_need_be(shards: Shards, pairing: str) -> None:
    shard = shards.open(SHARD)
    for length in (8, 16, 33, 64):
        plan = find_pairing(pairing).plan(shard, length, np.random.default_rng(0))
        rows = fill(ShardText.of(shard, shards, "cpu"), plan, np.arange(len(plan)), length)
        assert rows.real is None
        assert not bool((rows.ids == shards.special["pad"]).any())
        assert bool((rows.ids[:, -1] == shards.special["sep"]).all())


def test_a_chosen_part_of_a_plan_is_the_same_rows(entity_shards: Shards) -> None:
    shard = entity_shards.open(SHARD)
    text = ShardText.of(shard, entity_shards, "cpu")
    plan = find_pairing("sop").plan(shard, 48, np.random.default_rng(0))
    chosen = np.array([7, 2, 11])
    some, every = (
        fill(text, plan.take(chosen), chosen, 48),
        fill(text, plan, np.arange(len(plan)), 48),
    )
    assert some.index.tolist() == chosen.tolist()
    for name in ("ids", "segments", "fixed", "starts", "relation", "entities"):
        assert torch.equal(getattr(some, name), getattr(every, name)[chosen]), name
    row, column = some.at
    assert row.tolist() == [[7], [2], [11]]
    assert column.tolist() == [list(range(48))]


def test_a_word_that_a_row_begins_inside_begins_there(shards: Shards) -> None:
    shard = shards.open(SHARD)
    inside = next(i for i, t in enumerate(shard.tokens.tolist()) if t in shards.continues)
    one = np.array([inside])
    plan = RowPlan(one, np.array([6]), np.array([0]), np.array([0]))
    rows: Rows = fill(ShardText.of(shard, shards, "cpu"), plan, np.array([0]), 8)
    assert rows.starts[0, :2].tolist() == [True, True]
