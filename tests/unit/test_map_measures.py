"""Measures of attention maps, on maps made by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import tiny
from bertology.model.batch import Batch
from bertology.model.reducers.map_measures import MAP_MEASURES, map_measures, own_segment
from bertology.model.segments import segments_of

LENGTH = 12
EVEN = torch.full((LENGTH, LENGTH), 1 / LENGTH)
SELF = torch.eye(LENGTH)
STRIPE = torch.eye(LENGTH)[[3] * LENGTH]  # every token attends to token 3
SEGMENTS = torch.tensor([[0] * 6 + [1] * 6])
BLOCKS = own_segment(SEGMENTS)[0].float() / 6


def measured(one: Tensor, segments: Tensor | None = None) -> dict[str, float]:
    if segments is None:
        segments = torch.zeros(1, one.shape[-1], dtype=torch.long)
    found = map_measures(one[None, None], segments)[:, 0, 0]
    return dict(zip(MAP_MEASURES, found.tolist(), strict=True))


def test_even_attention_has_full_entropy_and_no_form() -> None:
    found = measured(EVEN, SEGMENTS)
    assert found["entropy"] == pytest.approx(1)
    assert found["evenness"] == pytest.approx(1)
    assert found["stripes"] == pytest.approx(2 / LENGTH)
    assert found["blockness"] == pytest.approx(0, abs=1e-6)
    assert found["distance"] == pytest.approx((LENGTH**2 - 1) / (3 * LENGTH))


def test_a_diagonal_is_near_or_at_one_offset() -> None:
    found = measured(SELF)
    assert found["entropy"] == pytest.approx(0, abs=1e-6)
    assert found["near"] == found["offset"] == pytest.approx(1)
    assert found["evenness"] == pytest.approx(1 / LENGTH)
    assert found["distance"] == 0
    back = torch.roll(SELF, -2, dims=1)  # two tokens back, but for the first two rows
    back[:2] = EVEN[:2]
    found = measured(back)
    assert found["offset"] > 0.8
    assert found["near"] < 0.1


def test_a_stripe_takes_all_and_from_all() -> None:
    found = measured(STRIPE)
    assert found["stripes"] == pytest.approx(1)
    assert found["evenness"] == pytest.approx(1)
    assert found["offset"] == pytest.approx(1 / LENGTH)


def test_blocks_show_in_pairs_only() -> None:
    assert measured(BLOCKS, SEGMENTS)["blockness"] == pytest.approx(0.5)
    assert measured(BLOCKS)["blockness"] == 0
    assert measured(BLOCKS)["entropy"] == pytest.approx(math.log(6) / math.log(12))


@pytest.mark.parametrize("before", [0, 5])
def test_padding_changes_no_measure(before: int) -> None:
    chance = torch.Generator().manual_seed(0)
    one = torch.rand(LENGTH, LENGTH, generator=chance).softmax(-1)
    size = LENGTH + 5
    padded = torch.rand(size, size, generator=chance)  # rows of padding hold anything
    padded[before : before + LENGTH] = 0
    padded[before : before + LENGTH, before : before + LENGTH] = one
    segments = torch.full((1, size), -1)
    segments[0, before : before + LENGTH] = SEGMENTS
    found = map_measures(padded[None, None], segments)[:, 0, 0]
    plain = map_measures(one[None, None], SEGMENTS)[:, 0, 0]
    assert torch.allclose(found, plain, atol=1e-5)


def test_segments_come_from_ids_or_from_separators() -> None:
    tokenizer = tiny.tokenizer(["a", "b"])
    rows = tokenizer([("a b", "b"), ("a", "b")], padding=True, return_tensors="pt")
    batch = Batch(dict(rows), [0, 1], tokenizer)
    expected = [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, -1]]
    assert segments_of(batch).tolist() == expected
    del batch.inputs["token_type_ids"]
    assert segments_of(batch).tolist() == expected
    single = tokenizer(["a b"], return_tensors="pt")
    assert segments_of(Batch(dict(single), [0], tokenizer)).tolist() == [[0, 0, 0, 0]]
    single.pop("token_type_ids")
    assert segments_of(Batch(dict(single), [0], tokenizer)).tolist() == [[0, 0, 0, 0]]
