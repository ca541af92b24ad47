"""Stored attention maps: what is read is what was written, almost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from map_type_training.procedural import make_maps

from bertology.data.map_labels import MAP_TYPES, MapLabel, MapRecipe
from bertology.data.map_store import (
    StoredMap,
    read_maps,
    read_stored_labels,
    write_labels,
    write_maps,
)
from bertology.errors import DataError


def test_what_is_read_is_what_was_written_up_to_a_step(tmp_path: Path) -> None:
    made = make_maps(30, seed=1, longest=60)
    maps = [
        StoredMap(("model", "corpus", "split", str(i), i % 12, 11 - i % 12), m.weights, m.segments)
        for i, m in enumerate(made)
    ]
    write_maps(tmp_path / "maps.parquet", maps)
    read = {m.key: m for m in read_maps(tmp_path / "maps.parquet")}
    assert set(read) == {m.key for m in maps}
    for one in maps:
        again = read[one.key]
        assert np.array_equal(again.segments, one.segments)
        assert np.allclose(again.weights.sum(-1), 1)
        assert np.abs(again.weights - one.weights).max() < 2e-3
        faint = one.weights < 1e-3
        assert np.abs(again.weights - one.weights)[faint].max(initial=0) < 5e-5


def test_extreme_maps_survive(tmp_path: Path) -> None:
    maps = [
        StoredMap(("m", "c", "s", "one token", 0, 0), np.ones((1, 1)), np.zeros(1, np.int64)),
        StoredMap(("m", "c", "s", "a line", 0, 0), np.eye(300), np.zeros(300, np.int64)),
        StoredMap(
            ("m", "c", "s", "even", 0, 0), np.full((300, 300), 1 / 300), np.arange(300) // 150
        ),
    ]
    write_maps(tmp_path / "maps.parquet", maps)
    read = {m.key: m for m in read_maps(tmp_path / "maps.parquet")}
    for one in maps:
        assert np.allclose(read[one.key].weights, one.weights, atol=1e-9)
        assert np.array_equal(read[one.key].segments, one.segments)


def test_labels_come_back_in_their_order(tmp_path: Path) -> None:
    recipes = [MapRecipe("m", "c", "s", str(i % 2), "Größe\n", None, 1, i % 3) for i in range(12)]
    labels = [
        MapLabel(recipe, MAP_TYPES[i % 5], "ann", 1 + i // 6) for i, recipe in enumerate(recipes)
    ]
    write_labels(tmp_path / "labels.parquet", labels)
    assert read_stored_labels(tmp_path / "labels.parquet") == labels


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "maps.parquet").write_bytes(b"not a table")
    for name in ("maps.parquet", "none.parquet"):
        with pytest.raises(DataError, match=name):
            list(read_maps(tmp_path / name))
        with pytest.raises(DataError, match=name):
            read_stored_labels(tmp_path / name)
