"""Attention maps: what was planted is seen, random heads look like nothing in particular."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bertology as bt
import planted
from bertology.model.encoder import Encoder
from bertology.results.store import Store
from bertology.studies.attention_maps import AttentionMapsResult


def look(encoder: Encoder, store: Path, size: int = 60, **how: object) -> AttentionMapsResult:
    corpus = replace(planted.corpus(size), task=None)
    found = bt.run(
        "attention-maps", encoder, corpus=corpus, store=str(store), progress=False, **how
    )
    assert isinstance(found, AttentionMapsResult)
    return found


@pytest.fixture
def encoder() -> Encoder:
    return Encoder(planted.model().bert, planted.tokenizer(), name="planted")


def test_the_planted_head_is_sharp_and_all_others_are_even(
    encoder: Encoder, tmp_path: Path
) -> None:
    result = look(encoder, tmp_path)
    table = result.table().set_index(["layer", "head"])
    lengths = np.array([len(str(t).split()) + 2 for t in planted.corpus(60).texts])
    others = table.drop(index=planted.CARRIER)
    assert table.loc[planted.CARRIER, "entropy"] < 0.1
    assert np.allclose(others["entropy"], np.log(lengths).mean(), atol=1e-4)
    assert np.allclose(others["first"], (1 / lengths).mean(), atol=1e-4)
    assert np.allclose(others["last"], (1 / lengths).mean(), atol=1e-4)
    middle = table.loc[planted.CARRIER]
    assert middle["entropy_low"] <= middle["entropy"] <= middle["entropy_high"]


def test_kept_maps_are_those_of_a_plain_run(encoder: Encoder, tmp_path: Path) -> None:
    result = look(encoder, tmp_path, keep=3)
    text = planted.corpus(60).texts[1]
    trace = encoder.run(text, record="layer.*.head.*.pattern")
    kept = result.arrays["map_1"]
    assert np.allclose(kept.to_numpy(), trace["layer.*.head.*.pattern"][:, 0], atol=1e-6)
    assert list(kept.attrs["tokens"]) == trace.tokens[0]
    assert sorted(result.arrays.data_vars) == ["map_0", "map_1", "map_2"]


def test_parts_and_batches_change_no_number(encoder: Encoder, tmp_path: Path) -> None:
    result = look(encoder, tmp_path, 300, keep=0)
    assert result.arrays.attrs["examples"] == 300
    texts = planted.corpus(300).texts
    entropies = []
    for text in texts[:40]:
        p = encoder.run(text, record="layer.1.head.3.pattern")["layer.1.head.3.pattern"][0]
        entropies.append(float(-(p * p.log()).sum(-1).mean()))
    short = look(encoder, tmp_path, 40, keep=0).table().set_index(["layer", "head"])
    assert short.loc[(1, 3), "entropy"] == pytest.approx(np.mean(entropies), abs=1e-4)


def test_a_stored_result_draws_every_figure(encoder: Encoder, tmp_path: Path) -> None:
    result = look(encoder, tmp_path, 10)
    again = Store(str(tmp_path)).load(result.identity)
    assert again.equals(result)
    assert list(again.figures())[:3] == ["map-0", "map-1", "previous"]
    for name in ("map-0", "entropy"):
        assert again.plot(name).axes
