"""Map types: planted heads get their type, a random model bears out no claim."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf

import bertology as bt
import tiny
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.map_labels import MAP_TYPES
from bertology.errors import CapabilityError
from bertology.model.encoder import Encoder
from bertology.model.pruning import prune_heads
from bertology.results.claims import Outcome, Relation, Rule
from bertology.results.store import Store
from bertology.studies.map_types import MapTypes, MapTypesResult

WORDS = ["the", "cat", "dog", "sees", "a", "bird", "and", "runs"]
SEP, MARK = 3, 60  # the token's id; the feature that only it has
POSITIONS = 32
PREVIOUS, STRIPE = (0, 1), (1, 0)


def corpus(size: int = 40, *, pairs: bool = False) -> Corpus:
    chance = random.Random(0)

    def text() -> str:
        return " ".join(chance.choice(WORDS) for _ in range(chance.randint(7, 13)))

    examples = [Example(str(i), text(), text() if pairs else None) for i in range(size)]
    fields = {Field.TEXT, Field.TEXT_B} if pairs else {Field.TEXT}
    return Corpus("made up", examples, frozenset(fields))


def planted() -> Encoder:
    """Head 0.1 attends to the previous token, head 1.0 to [SEP], all others to everything."""
    config = hf.BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=POSITIONS,
    )  # fmt: skip
    model = hf.BertModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" not in name:
                parameter.zero_()
        model.embeddings.position_embeddings.weight[:, :POSITIONS] = torch.eye(POSITIONS)
        model.embeddings.word_embeddings.weight[SEP, MARK] = 2.0
        layer, head = PREVIOUS
        attention, rows = (
            model.encoder.layer[layer].attention.self,
            slice(32 * head, 32 * head + 32),
        )
        attention.query.weight[rows, :POSITIONS] = 4 * torch.eye(32)
        # A key says at which position it is the previous one.
        attention.key.weight[rows, :POSITIONS] = 4 * torch.eye(32).roll(1, 0)
        layer, head = STRIPE
        attention = model.encoder.layer[layer].attention.self
        attention.query.bias[32 * head] = 20.0
        attention.key.weight[32 * head, MARK] = 20.0
    return Encoder(model, tiny.tokenizer(WORDS, max_length=POSITIONS), name="planted")


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
    assert np.allclose(shares.groupby("layer")["share"].sum(), 1)
    assert ((shares["low"] <= shares["share"]) & (shares["share"] <= shares["high"])).all()
    assert "entropy" not in result.table("heads")
    for estimate in result.evidence().values():
        assert 0 <= estimate.low < estimate.value < estimate.high <= 1
        assert estimate.n == 40


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
    from bertology.train.map_types.reading import read_maps

    encoder, texts = planted(), corpus(6, pairs=True).texts
    encoder.tokenizer.padding_side = side
    if side == "left":  # absolute positions move with the padding: only the types may stay
        texts = [texts[0]] * 2
    together = read_maps(encoder, encoder.encode(texts)).types
    alone = [read_maps(encoder, encoder.encode(text)).types[0] for text in texts]
    assert together.equal(torch.stack(alone))


def test_a_stored_result_draws_its_figures(tmp_path: Path) -> None:
    result = look(planted(), tmp_path, corpus(10))
    again = Store(str(tmp_path)).load(result.identity)
    assert again.equals(result)
    assert list(again.figures()) == ["layers", "heads"]
    for name in again.figures():
        assert again.plot(name).axes
    assert all(name in again.headline() for name in MAP_TYPES)


def test_a_pruned_model_is_refused_before_any_work() -> None:
    smaller = Encoder(prune_heads(tiny.model("bert"), [(1, 0)]), tiny.tokenizer(WORDS))
    with pytest.raises(CapabilityError, match="pruned away"):
        MapTypes().check(smaller, None)
