"""Map types: planted heads get their type, a random model bears out no claim."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf
import xarray as xr

import bertology as bt
import planted_links
import tiny
from bertology.annotated.map_types.mistakes import bundled_mistakes
from bertology.data.corpus import Corpus
from bertology.data.map_labels import MAP_TYPES
from bertology.errors import CapabilityError, DataError
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import prune_heads
from bertology.results.claims import Outcome, Relation, Rule
from bertology.results.result import Result
from bertology.studies.attention.map_types import HETEROGENEOUS, MapTypes, MapTypesResult
from planted_maps import POSITIONS, PREVIOUS, STRIPE, WORDS, corpus, planted
from result_conformance import ResultConformance


def fresh() -> Encoder:
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=32, max_position_embeddings=POSITIONS,
    )  # fmt: skip
    torch.manual_seed(0)
    model = hf.BertModel(config).eval()
    return Encoder(model, tiny.tokenizer(WORDS, max_length=POSITIONS), name="random")


def look(encoder: Encoder, store: Path, of: Corpus, **how: object) -> MapTypesResult:
    found = bt.run("map-types", encoder, corpus=of, store=str(store), progress=False, **how)
    assert isinstance(found, MapTypesResult)
    return found


class TestResult(ResultConformance):
    measures = frozenset({"map-type", "share-vertical-diagonal", "form-entropy"})

    @staticmethod
    def make() -> Result:
        found: Result = planted_links.ask(MapTypes(), planted(), corpus(12))
        return found

    def test_kinds_are_the_types(self, result: Result) -> None:
        assert result.measure("map-type").kinds == MAP_TYPES


def test_planted_heads_have_their_type_and_no_other_head_has(tmp_path: Path) -> None:
    heads = look(planted(), tmp_path, corpus()).table("heads").set_index(["layer", "head"])
    assert heads.loc[PREVIOUS, "type"] == "diagonal"
    assert heads.loc[STRIPE, "type"] == "vertical"
    assert heads.loc[PREVIOUS, "share"] > 0.9
    assert heads.loc[STRIPE, "share"] > 0.9
    assert heads.loc[PREVIOUS, "near"] > 0.9
    assert heads.loc[STRIPE, "stripes"] > 0.9
    others = heads.drop(index=[PREVIOUS, STRIPE])
    assert (others["type"] == "heterogeneous").all()


def test_shares_add_up_and_lie_in_their_intervals(tmp_path: Path) -> None:
    result = look(planted(), tmp_path, corpus(), measures=False)
    shares = result.table("shares")
    assert np.allclose(shares.groupby("layer")[["share", "named"]].sum(), 1)
    assert ((shares["low"] <= shares["share"]) & (shares["share"] <= shares["high"])).all()
    assert "entropy" not in result.table("heads")
    for estimate in result.evidence().values():
        assert 0 <= estimate.low < estimate.value < estimate.high <= 1
    # One share has one interval, wherever it is shown.
    row = shares[(shares["layer"] == "all") & (shares["type"] == "heterogeneous")].iloc[0]
    mixed = result.evidence()["heterogeneous_share"]
    assert (row["share"], row["low"], row["high"]) == (mixed.value, mixed.low, mixed.high)


def conclude(share: float, count: int = 300) -> Result:
    """Of heads whose maps the network names heterogeneous so often, and vertical otherwise."""
    chance = np.random.default_rng(0)
    mixed = chance.random((count, 2, 4)) < share
    types = np.where(mixed, HETEROGENEOUS, 0).astype(np.uint8)
    part = xr.Dataset({"type": (("example", "layer", "head"), types)}, attrs={"first": 0})
    study = MapTypes(measures=False)
    of = planted_links.ask(study, planted(), corpus(2)).provenance
    return study.conclude({"block-0": part}, of)


def test_the_share_is_what_the_network_names_less_its_mistakes() -> None:
    """The table of mistakes is the bundled one: names are planted, shares follow."""
    table = bundled_mistakes().table
    for true in (0.0, 0.2, 0.5):
        named = true * table[HETEROGENEOUS, HETEROGENEOUS] + (1 - true) * table[0, HETEROGENEOUS]
        found = conclude(named).evidence()["heterogeneous_share"]
        assert found.low <= true <= found.high
        assert found.high - found.low > 0.04  # three hundred examples alone would give half of it
        assert found.unit == "labelled maps"
        assert found.n == len(bundled_mistakes().seen)


def test_nothing_holds_for_a_random_model(tmp_path: Path) -> None:
    evidence = look(fresh(), tmp_path, corpus()).evidence()
    mixed = Rule("heterogeneous_share", Relation.BETWEEN, values=(0.32, 0.61))
    formed = Rule("first_three_share", Relation.ABOVE, value=1 / 3)
    assert mixed.judge(evidence["heterogeneous_share"]) is not Outcome.HOLDS
    assert formed.judge(evidence["first_three_share"]) is not Outcome.HOLDS


def test_batches_and_limits_change_no_type(tmp_path: Path) -> None:
    result = look(fresh(), tmp_path, corpus(30, pairs=True))
    alone = [look(fresh(), tmp_path, corpus(30, pairs=True)[i : i + 2]) for i in (0, 2)]
    assert result.arrays.attrs["examples"] == 30
    assert alone[0].arrays.attrs["examples"] == 2
    few = look(fresh(), tmp_path, corpus(30, pairs=True), examples=7)
    assert few.arrays.attrs["examples"] == 7


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_does_not_change_the_shares(tmp_path: Path, side: str) -> None:
    from bertology.annotated.map_types.reading import read_maps

    encoder, texts = planted(), corpus(6, pairs=True).texts
    encoder.tokenizer.padding_side = side
    if side == "left":  # absolute positions move with the padding: only the types may stay
        texts = [texts[0]] * 2
    together = read_maps(encoder, encoder.encode(texts)).types
    alone = [read_maps(encoder, encoder.encode(text)).types[0] for text in texts]
    assert together.equal(torch.stack(alone))


def test_a_pruned_model_is_refused_before_any_work() -> None:
    smaller = Encoder(prune_heads(tiny.model("bert"), [(1, 0)]), tiny.tokenizer(WORDS))
    with pytest.raises(CapabilityError, match="were pruned"):
        MapTypes().check(smaller, None)


def test_one_example_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="two examples or more"):
        look(fresh(), tmp_path, corpus()[:1])
