"""Random sets of heads: the planted head is missed in every set that holds it, and in no other."""

from __future__ import annotations

from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
import xarray as xr

import bertology as bt
import planted
from bertology.errors import ParameterError, UnknownNameError
from bertology.model.encoder import Encoder
from bertology.model.interventions import UniformAttention
from bertology.model.shape import Shape
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.store import Store
from bertology.studies.ablation.head_sets import HeadSets, HeadSetsResult
from bertology.studies.study import Context
from result_conformance import ResultConformance


def encoder(model: Any) -> Encoder:
    return Encoder(model, planted.tokenizer(), head="classification", name="planted")


def disable(enc: Encoder, size: int = 200, **parameters: Any) -> HeadSetsResult:
    """The study without a store, which would draw its figures each time."""
    study, corpus = HeadSets(resamples=500, **parameters), planted.corpus(size)
    study.check(enc, corpus)
    parts = study.parts(enc.shape, corpus)
    measured = {part: study.measure(enc, corpus, part, Context()) for part in parts}
    model = {"name": enc.name, "fingerprint": "1"}
    return study.conclude(measured, Provenance("head-sets", 1, study.parameters, model))


def drawn(study: HeadSets, shape: Shape) -> list[str]:
    return [one.name for one in study.variants(shape)]


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return disable(encoder(planted.model()), 40, sizes=(1, 2), sets=3)


def test_sets_are_different_of_the_right_size_and_drawn_by_the_seed() -> None:
    shape = Shape(layers=3, heads=4, hidden=16, head_size=4, mlp=8)
    sets = drawn(HeadSets(sets=15), shape)
    assert len(set(sets)) == len(sets)
    sizes = [s.count("+") + 1 for s in sets]
    assert {n: sizes.count(n) for n in sizes} == {1: 12, 2: 15, 4: 15}  # there are 12 heads
    heads = {tuple(map(int, h.split("."))) for s in sets for h in s.split("+")}
    assert heads == {(layer, head) for layer in range(3) for head in range(4)}
    assert drawn(HeadSets(sets=15), shape) == sets
    assert drawn(HeadSets(sets=15, seed=1), shape) != sets
    everything = drawn(HeadSets(sizes=(12, 2), sets=100), shape)
    assert len(everything) == comb(12, 2) + 1


def test_exactly_the_sets_with_the_planted_head_are_missed() -> None:
    result = disable(encoder(planted.model()), sizes=(1, 2, 4), sets=8)
    sets = result.table("sets")
    holds = sets["set"].str.contains("0.2", regex=False)
    assert holds.any()
    assert (sets["difference"][~holds] == 0).all()
    assert (sets["difference"][holds] < -0.1).all()
    sizes = result.table("sizes")
    assert list(sizes["heads"]) == [1, 2, 4]
    lies = (sizes["simultaneous_low"] <= sizes["examples_low"]) & (
        sizes["examples_high"] <= sizes["simultaneous_high"]
    )
    assert lies.all()
    # All 8 single heads were tried: which of them were drawn is no source of error.
    assert sizes["simultaneous_low"][0] == pytest.approx(sizes["examples_low"][0])
    assert sizes["simultaneous_low"][1] < sizes["examples_low"][1]
    evidence = result.evidence()
    assert evidence["largest_loss_of_several_heads"].value > 0.1
    assert not evidence["largest_loss_of_several_heads"].high < 0.01
    assert not evidence["best_set_gain"].low > 0


def test_each_size_alone_must_cost_less() -> None:
    """From above the largest loss is bounded without a correction for how many sizes are tried."""
    result = disable(encoder(planted.model()), sizes=(2, 3, 4), sets=8)
    sizes, loss = result.table("sizes"), result.evidence()["largest_loss_of_several_heads"]
    assert loss.high == pytest.approx(-sizes["alone_low"].min())
    assert loss.high < -sizes["simultaneous_low"].min()
    worst = sizes["difference"].argmin()
    assert loss.low == pytest.approx(-sizes["simultaneous_high"][worst])


def test_sizes_that_lose_the_margin_are_not_said_to_lose_less() -> None:
    """All sizes truly lose one point, on examples that they share: "less" would be false."""
    false, rng = 0, np.random.default_rng(0)
    study = HeadSets(resamples=100, sizes=(2, 4, 8), sets=6)
    for _ in range(40):
        n, sizes = 600, np.repeat([2, 4, 8], 6)
        lot, own = rng.random(n), rng.random((sizes.size, n))
        intact = lot < 0.9
        # One in a hundred turns wrong without any set; others turn wrong and right as often.
        right = np.where(lot < 0.01, False, intact ^ (own < np.where(intact, 0.05 / 9, 0.05)))
        labels = rng.integers(0, 2, n)
        given = np.where(np.concatenate([intact[None], right]), labels, 1 - labels)
        logits = 4 * np.eye(2)[given]
        part = xr.Dataset(
            {
                "logits": (("variant", "example", "output"), logits.astype(np.float32)),
                "label": ("example", labels.astype(float)),
            },
            coords={
                "variant": ["intact", *(f"{s}-{i}" for i, s in enumerate(sizes))],
                "table": ("variant", ["", *["sets"] * sizes.size]),
                "size": ("variant", [0, *sizes]),
                "example": range(n),
            },
            attrs={"kind": "classification", "metric": "accuracy", "heads_of_a_layer": 12,
                   "heads_in_all": 144},
        )  # fmt: skip
        model = {"name": "simulated", "fingerprint": "1"}
        about = Provenance("head-sets", 1, study.parameters, model)
        found = study.conclude({f"examples-0-{n}": part}, about)
        false += found.evidence()["largest_loss_of_several_heads"].high < 0.01
    assert false <= 40 * 0.025 + 3


def test_a_set_that_frees_the_model_of_a_spoiler_gains() -> None:
    result = disable(encoder(planted.model(spoil=2.0)), sizes=(2,), sets=28, method="zero")
    assert len(result.table("sets")) == 28
    assert result.evidence()["best_set_gain"].low > 0
    best = result.table("sets").sort_values("difference").iloc[-1]["set"]
    assert "1.1" in best


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_nothing_is_claimed_of_a_random_model(seed: int) -> None:
    torch.manual_seed(seed)
    config = hf.BertConfig(
        vocab_size=11, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=32, max_position_embeddings=40, initializer_range=0.4,
    )  # fmt: skip
    result = disable(encoder(hf.BertForSequenceClassification(config)), 100, sets=4)
    assert result.evidence() == {}
    assert "constant answer" in result.reasons()[""]


def test_the_answers_are_those_of_a_plain_loop() -> None:
    enc, corpus = encoder(planted.model(spoil=1.0)), planted.corpus(20)
    study = HeadSets(sizes=(3,), sets=4)
    found = study.measure(enc, corpus, study.parts(enc.shape, corpus)[0], Context())
    for name in found["variant"].to_numpy()[1:]:
        pairs = [h.split(".") for h in str(name).split("+")]
        heads = [(int(a), int(b)) for a, b in pairs]
        plain = enc.run(corpus.texts, do=UniformAttention(heads)).logits
        logits = found["logits"].sel(variant=name).to_numpy()
        assert np.allclose(logits, plain.detach().numpy(), atol=1e-4)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ParameterError, match="different numbers"):
        HeadSets(sizes=(2, 2))
    with pytest.raises(ParameterError, match="different numbers"):
        HeadSets(sizes=(0,))
    with pytest.raises(UnknownNameError, match="metric"):
        HeadSets(metric="f11")
    with pytest.raises(ParameterError, match="at most 8"):
        HeadSets(sizes=(9,)).check(encoder(planted.model()), planted.corpus(40))


def test_a_stored_result_draws_its_figure(tmp_path: Path) -> None:
    result = bt.run(
        "head-sets", encoder(planted.model()), task=planted.corpus(40), store=str(tmp_path),
        sizes=(1, 4), sets=3, resamples=100,
    )  # fmt: skip
    again = Store(str(tmp_path)).load(result.identity)
    assert again.equals(result)
    assert again.answer.startswith("No number of heads is surely harmless: without 1 head ")
    axes = again.plot("sizes").axes[0]
    assert axes.get_ylabel() == "accuracy (%)"
    assert [t.get_text() for t in axes.get_xticklabels()] == ["1", "4"]
