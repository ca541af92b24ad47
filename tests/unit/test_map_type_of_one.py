"""`bt.map_type`: the type of one map, what it refuses, and diagonals between sentences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from map_type_training.procedural import make_maps

import bertology as bt
from bertology.annotated.map_types.crossing import crossing, has_crossing
from bertology.annotated.map_types.labelled import bundled_labels, bundled_maps
from bertology.data.map_labels import MAP_TYPES
from bertology.errors import ParameterError


def line(size: int, offset: int) -> np.ndarray:
    """Each token attends to the one `offset` further on, and to the last one at the end."""
    where = np.minimum(np.arange(size) + offset, size - 1)
    return 0.9 * np.eye(size)[where] + 0.1 / size


def stripe(size: int, column: int) -> np.ndarray:
    return 0.9 * np.eye(size)[np.full(size, column)] + 0.1 / size


def across(size: int, strength: float) -> np.ndarray:
    """Two sentences of `size` tokens; each token attends to its counterpart and to all others."""
    even = np.full((2 * size, 2 * size), 0.5 / size)
    counterpart = np.roll(np.eye(2 * size), size, axis=1)
    return strength * counterpart + (1 - strength) * even


def test_plain_maps_have_their_type() -> None:
    assert bt.map_type(line(20, 1)).name == "diagonal"
    found = bt.map_type(torch.from_numpy(stripe(20, 19)).half())
    assert found.name == "vertical"
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert max(found.probabilities, key=found.probabilities.__getitem__) == found.name
    assert str(found).startswith("vertical (")
    assert not found.notes


def test_only_a_pair_can_be_a_block() -> None:
    pair = np.kron(np.eye(2), np.full((10, 10), 0.1))
    assert bt.map_type(pair, second=10).name == "block"
    assert bt.map_type(pair).probabilities["block"] == 0


def test_a_map_is_needed() -> None:
    with pytest.raises(ParameterError, match=r"shape \(tokens, tokens\)"):
        bt.map_type(np.ones((3, 4)) / 4)
    with pytest.raises(ParameterError, match="sum to 1"):
        bt.map_type(np.ones((4, 4)))
    padded = np.zeros((6, 6))
    padded[:4, :4] = 0.25
    with pytest.raises(ParameterError, match="without padding"):
        bt.map_type(padded)
    with pytest.raises(ParameterError, match="from 1 to 3"):
        bt.map_type(np.full((4, 4), 0.25), second=4)


@pytest.mark.parametrize("size", [5, 12, 40])
def test_a_diagonal_between_the_sentences_is_noted(size: int) -> None:
    found = bt.map_type(across(size, 0.5), second=size)
    assert found.notes == ("diagonal between the sentences",)
    assert not bt.map_type(across(size, 0.5)).notes  # one sentence
    assert not bt.map_type(across(size, 0.03), second=size).notes


def test_a_word_more_in_one_sentence_does_not_hide_the_line() -> None:
    weights = across(12, 0.5)
    first = np.insert(weights, 6, 1 / 24, axis=0)
    both = np.insert(first, 6, 0.0, axis=1)
    segments = (np.arange(25) >= 13).astype(np.int64)
    assert has_crossing(both / both.sum(-1, keepdims=True), segments)


def test_stripes_blocks_and_lines_within_a_sentence_are_no_crossing() -> None:
    segments = (np.arange(24) >= 12).astype(np.int64)
    for column in (0, 11, 12, 23):
        assert crossing(stripe(24, column), segments) < 0.02
    assert crossing(np.kron(np.eye(2), np.full((12, 12), 1 / 12)), segments) == 0
    assert crossing(line(24, 1), segments) < 0.1
    made = make_maps(200, seed=3)
    noted = [m.label for m in made if has_crossing(m.weights, m.segments)]
    assert len(noted) < 0.1 * len(made)  # some diagonal maps are made with such lines


def test_labelled_maps_are_asked_one_by_one_too() -> None:
    stored = list(bundled_maps().values())[::150]
    given: dict[object, list[str]] = {}
    for label in bundled_labels():
        given.setdefault(label.recipe.key, []).append(label.label)
    right = []
    for one in stored:
        second = int((one.segments == 0).sum())
        found = bt.map_type(one.weights, second if second < len(one.segments) else None)
        assert found.name in MAP_TYPES
        right.append(found.name in given[one.key])
    assert np.mean(right) > 0.8
