"""Attention maps: what was planted is seen, random heads look like nothing in particular."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import bertology as bt
import planted
import planted_links
from bertology.model.encoder import Encoder
from bertology.model.reducers.mean_maps import RelativeMaps
from bertology.model.shape import Shape
from bertology.model.site_context import SiteContext
from bertology.model.sites import Kind
from bertology.report.intervals import with_intervals
from bertology.results.result import Result
from bertology.stats import mean_interval
from bertology.studies.attention.attention_maps import AttentionMaps, AttentionMapsResult
from result_conformance import ResultConformance


def look(encoder: Encoder, store: Path, size: int = 60, **how: object) -> AttentionMapsResult:
    corpus = replace(planted.corpus(size), task=None)
    found = bt.run(
        "attention-maps", encoder, corpus=corpus, store=str(store), progress=False, **how
    )
    assert isinstance(found, AttentionMapsResult)
    return found


class TestResult(ResultConformance):
    measures = frozenset({"attention-previous", "attention-entropy", "layer-attention-self"})
    begins_with_named = False  # no weight is tested: one sure row among others cannot be

    @staticmethod
    def make() -> Result:
        planted_model = Encoder(planted.model().bert, planted.tokenizer(), name="planted")
        found: Result = planted_links.ask(AttentionMaps(), planted_model, planted.corpus(12))
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


def test_intervals_are_students_and_one_example_has_none(encoder: Encoder, tmp_path: Path) -> None:
    few = look(encoder, tmp_path, size=5).table().iloc[0]
    texts = planted.corpus(5).texts
    lengths = np.array([len(str(t).split()) + 2 for t in texts])
    wanted = mean_interval(1 / lengths)  # an even head gives each token as much
    assert (few["first"], few["first_low"]) == pytest.approx((wanted.value, wanted.low), abs=1e-5)
    alone = look(encoder, tmp_path, size=1)
    assert alone.table()[["first_low", "entropy_high"]].isna().all(axis=None)
    _, rows = with_intervals(alone.table())
    assert "[" not in "".join(map(str, rows[0]))


def test_kept_maps_are_those_of_a_plain_run(encoder: Encoder, tmp_path: Path) -> None:
    result = look(encoder, tmp_path, keep=3)
    text = planted.corpus(60).texts[1]
    trace = encoder.run(text, record="layer.*.head.*.pattern")
    kept = result.arrays["map_1"]
    assert np.allclose(kept.to_numpy(), trace["layer.*.head.*.pattern"][:, 0], atol=1e-6)
    assert list(kept.attrs["tokens"]) == trace.tokens[0]
    assert {"map_0", "map_1", "map_2", "mean_map"} <= set(result.arrays.data_vars)
    assert "map_3" not in result.arrays


def test_a_head_that_looks_back_has_a_diagonal_in_its_mean_map() -> None:
    """Planted by hand, for texts of 33 to 40 tokens, padded on either side."""
    maps = RelativeMaps(Shape(1, 2, 4, 2, 8), 16)
    for length in range(33, 41):
        real = torch.zeros(2, 48, dtype=torch.bool)
        real[0, :length] = real[1, 48 - length :] = True
        weights = torch.zeros(2, 2, 48, 48)
        weights[:, 1] = real[:, None].float() / length  # the other head is even
        for row, first in enumerate((0, 48 - length)):
            before = [first, *range(first, first + length - 1)]
            weights[row, 0, range(first, first + length), before] = 1.0
        maps.update(weights, SiteContext("encoder", 0, Kind.PATTERN, real, 2))
    back, even = maps.mean[0]
    assert torch.allclose(maps.mean.sum(-1), torch.ones(1, 2, 16).double(), atol=1e-6)
    near = back.diagonal() + torch.cat([torch.zeros(1), back.diagonal(-1)])
    assert (near > 0.95).all()  # one token back is less than half a cell
    assert torch.allclose(even, torch.full((16, 16), 1 / 16).double(), atol=1e-6)


def test_the_mean_map_of_an_even_head_is_even(encoder: Encoder, tmp_path: Path) -> None:
    result = look(encoder, tmp_path, 300, keep=0)  # two parts
    mean = result.arrays["mean_map"].to_numpy()
    assert np.allclose(mean.sum(-1), 1, atol=1e-4)
    assert np.allclose(mean[1, 3], 1 / 16, atol=1e-4)
    assert np.ptp(mean[planted.CARRIER]) > 0.1


def test_measures_are_those_of_the_table(encoder: Encoder, tmp_path: Path) -> None:
    result = look(encoder, tmp_path, 10)
    names = [m.name for m in result.measures()]
    assert names[0] == "attention-previous"
    assert "attention-entropy" in names
    entropy = next(m for m in result.measures() if m.name == "attention-entropy")
    assert entropy.unit == "nats"
    row = result.table().set_index(["layer", "head"]).loc[planted.CARRIER]
    assert entropy.values[planted.CARRIER] == row["entropy"]
    assert entropy.low is not None
    assert entropy.low[planted.CARRIER] == row["entropy_low"]


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
