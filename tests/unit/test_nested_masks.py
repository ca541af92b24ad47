"""Masks of all steps in a few bits for each weight: each step's mask comes back as it was."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.model.nested_masks import NestedParts, NestedWeights
from bertology.model.part_masks import PartMask
from bertology.model.weight_masks import WeightMask
from bertology.stats.survivors import bits_at_step


@pytest.mark.parametrize("steps", [1, 2, 5, 17])
def test_every_mask_comes_back(steps: int) -> None:
    rng = np.random.default_rng(steps)
    arrays = {"a": np.ones((5, 7), bool), "b": np.ones((3, 3), bool)}
    masks = [WeightMask.of(arrays)]
    for _ in range(steps - 1):
        arrays = {name: kept & (rng.random(kept.shape) < 0.8) for name, kept in arrays.items()}
        masks.append(WeightMask.of(arrays))
    nested = NestedWeights.begin(masks[0])
    for mask in masks[1:]:
        nested = nested.then(mask)
    assert len(nested.planes) == (steps - 1).bit_length()
    again = NestedWeights.of(nested.planes, masks[-1], steps)
    for step, mask in enumerate(masks):
        assert nested.at(step).digest == again.at(step).digest == mask.digest
    if steps > 1:
        planes = [plane.joined() for plane in nested.planes]
        assert np.array_equal(bits_at_step(planes, steps - 1), masks[-1].joined())
        assert not bits_at_step(planes, 1 << len(planes)).any()


def test_parts_are_kept_as_they_are() -> None:
    first = PartMask(np.ones((2, 3), bool), np.ones(2, bool))
    less = PartMask(np.eye(2, 3, dtype=bool), np.array([True, False]))
    nested = NestedParts.begin(first).then(less)
    assert nested.at(0).equals(first)
    assert nested.at(1).equals(less)
