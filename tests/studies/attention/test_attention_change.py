"""Attention change: none between equals, exactly the planted one, and no claim about strangers."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

import bertology as bt
import planted
import tiny
from bertology.errors import CapabilityError, DataError
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import prune_heads
from bertology.model.reducers.map_comparison import compare_maps
from bertology.model.weight_noise import noisy_copies
from bertology.results.known_claims import judge
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.rules import Outcome, Relation, Rule
from bertology.results.store import Store
from bertology.stats import Estimate, mean_interval
from bertology.stats.partial_means import partial_means
from bertology.studies.attention.attention_change import AttentionChange
from bertology.studies.designs.noise import beyond_noise, last_layers
from bertology.studies.designs.parts import start_of
from bertology.studies.study import Context
from planted_changes import encoder, with_noise, with_other_queries
from result_conformance import ResultConformance

QUANTITIES = {"last_two_over_mean", "last_two_over_largest", "each_of_last_two_over_largest"}


def compare(one: Encoder, before: Encoder, size: int = 24, **how: Any) -> Result:
    """The study without a store, which would draw its figures each time."""
    corpus, study = planted.corpus(size), AttentionChange(before=before.name, **how)
    context = Context(others={"before": before})
    measured = {
        part: study.measure(one, corpus, part, context) for part in study.parts(one.shape, corpus)
    }
    model = {"name": one.name, "fingerprint": "1"}
    return study.conclude(
        measured, Provenance("attention-change", 1, study.parameters, model, others={})
    )


class TestResult(ResultConformance):
    measures = frozenset({"change", "divergence", "layer-change"})

    @staticmethod
    def make() -> Result:
        one, before = (encoder(tiny.model("bert", seed=s)) for s in (0, 1))
        study = AttentionChange(before="before", resamples=100, noise=5)
        corpus = planted.corpus(12)
        context = Context(others={"before": before})
        parts = study.parts(one.shape, corpus)
        measured = {part: study.measure(one, corpus, part, context) for part in parts}
        others = {"before": {"name": "before", "fingerprint": "b"}}
        model = {"name": "after", "fingerprint": "a"}
        about = Provenance("attention-change", 1, study.parameters, model, others=others)
        return study.conclude(measured, about)


def test_equal_models_have_not_changed() -> None:
    model = tiny.model("bert")
    result = compare(encoder(model), encoder(copy.deepcopy(model), "copy"), noise=5)
    for table in (result.table("heads"), result.table("layers")):
        assert np.allclose(table["cosine"], 1, atol=1e-6)
        assert np.allclose(table["divergence"], 0, atol=1e-7)
    assert result.evidence() == {}
    assert "the same model twice" in result.reasons()[""]


def test_a_change_is_found_in_exactly_its_head() -> None:
    model = tiny.model("bert")
    result = compare(encoder(with_other_queries(model, 1, [2])), encoder(model), noise=5)
    change = result.table("heads").set_index(["layer", "head"])["change"]
    assert change[1, 2] > 0.01
    untouched = [(layer, head) for layer in (0, 1) for head in range(4) if (layer, head) != (1, 2)]
    assert (change[untouched] == 0).all()
    assert (change[2] > 0).all()  # what lies above was given something else
    simultaneous = result.table("heads").set_index(["layer", "head"])["simultaneous_low"]
    assert simultaneous[1, 2] > 0


def test_the_last_two_layers_are_said_to_have_changed_only_where_they_have() -> None:
    model = tiny.model("bert")
    late = with_other_queries(with_other_queries(model, 1, [0, 1, 2, 3]), 2, [0, 1, 2, 3])
    found = compare(encoder(late), encoder(model), noise=10).evidence()
    # Three layers have too few orders for two of them to be surely the last.
    assert all(found[q].value > 0 and "another order" in found[q].remedy for q in QUANTITIES)
    early = with_other_queries(model, 0, [0, 1, 2, 3], loudness=3.0)
    found = compare(encoder(early), encoder(model), noise=10).evidence()
    assert all(found[q].high < 0 for q in QUANTITIES)
    one_only = with_other_queries(model, 2, [0, 1, 2, 3])
    found = compare(encoder(one_only), encoder(model), noise=10).evidence()
    assert found["last_two_over_mean"].value > 0
    assert not found["each_of_last_two_over_largest"].low > 0


def test_noise_in_place_of_training_bears_out_no_claim() -> None:
    """Five per cent of it moved the last two layers most: change adds up towards the top."""
    model, held, moved = tiny.model("bert"), 0, 0
    for seed in range(4):
        result = compare(encoder(with_noise(model, 0.05, seed)), encoder(model), resamples=100)
        profile = result.table("layers")["change"].to_numpy()
        moved += profile[1:].mean() > profile[0] + 0.001
        held += any(v.outcome.is_there for v in result.verdicts())
    assert moved >= 3  # without the control it would have been borne out
    assert held == 0


def test_last_layers_are_judged_by_their_change_and_noise_is_a_control() -> None:
    """Where noise moves the last layers as much, the change was said to fail."""
    rng, n, copies = np.random.default_rng(0), 4000, 20
    late, early, even = ([0.1] * 6 + [0.4] * 2, [0.4] * 2 + [0.1] * 6, [0.2] * 8)

    def verdicts(trained: list[float], noise: list[float]) -> tuple[set[str], set[str]]:
        change = np.clip(trained + rng.normal(0, 0.02, (n, 8)), 0, 1)
        moved = np.array(noise) * rng.normal(1, 0.05, (copies, 1)) + rng.normal(
            0, 0.005, (copies, 8)
        )
        matched = trained + rng.normal(0, 0.001, (copies, 8))
        means = partial(partial_means, support=(-1, 1), resamples=100)
        found = last_layers(change, moved, matched, means)
        known = {name: e for name, e in found.items() if e is not None}
        said = [v for v in judge("attention-change", known) if v.estimate is not None]
        return {str(v.outcome) for v in said}, {v.missed.partition(" (")[0] for v in said}

    assert verdicts(late, even) == ({"holds"}, {""})
    named = "not surely beyond weight noise of the same size"
    for noise in (late, [0.05] * 6 + [0.5] * 2):
        assert verdicts(late, noise) == ({"not-applicable"}, {named})
    for noise in (even, early, late):
        assert verdicts(early, noise) == ({"fails"}, {""})


def test_noise_is_a_control_of_the_change_and_not_the_number_that_is_judged() -> None:
    """The smaller of the two was judged: a change that is surely there failed by its noise."""
    rule, copies = Rule("moved", Relation.ABOVE, 0.0), np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    change = Estimate(0.10, 0.08, 0.12, 200)
    more = beyond_noise(change, 0.10, 0.01 * copies)
    assert rule.judge(more) is Outcome.HOLDS
    for level in (0.0, 0.10, 0.30):  # noise that does as much, and three times as much
        found = beyond_noise(change, 0.10, max(level, 0.09) + 0.02 * copies)
        assert (found.value, found.low, found.high) == (0.10, 0.08, 0.12)
        assert rule.judge(found) is Outcome.NOT_APPLICABLE
        assert list(found.missed) == ["weight noise of the same size"]
    turned = replace(change, value=-0.1, low=-0.12, high=-0.08)
    assert rule.judge(beyond_noise(turned, -0.10, 0.01 * copies)) is Outcome.FAILS
    rng, held, draws = np.random.default_rng(0), 0, 400
    for _ in range(draws):  # training is one more draw of noise, and the change is surely there
        of_noise = rng.normal(5, 1, 6)
        one = Estimate(of_noise[0], of_noise[0] - 0.01, of_noise[0] + 0.01, 10_000)
        held += rule.judge(beyond_noise(one, of_noise[0], of_noise[1:])) is Outcome.HOLDS
    assert held <= 0.025 * draws + 3 * np.sqrt(0.025 * 0.975 * draws)


def test_more_copies_decide_where_five_could_not() -> None:
    """Copies differ, not examples: five of all left open what twenty of a quarter each tell."""
    rng, held = np.random.default_rng(0), {5: 0, 20: 0}
    repeats, error = 200, dict.fromkeys(held, 0)
    for copies, more in [(c, m) for c in held for m in (0.0, 4.0)]:
        for _ in range(repeats):
            moved = 20 + rng.normal(size=(copies + 1, 1)) + rng.normal(0, 1, (copies + 1, 100))
            size = 100 * 5 // copies
            read = [rng.permutation(100)[:size] for _ in range(copies)]
            trained = moved[0] + more
            pairs = [(trained[r].mean(), moved[1 + i, r].mean()) for i, r in enumerate(read)]
            found = beyond_noise(mean_interval(trained), *np.transpose(pairs))
            sure = found.at_level(1 - 0.05 / 7).surely_there
            if more:
                held[copies] += sure
            else:
                error[copies] += found.surely_there
    assert held[20] > 1.5 * held[5]
    assert max(error.values()) <= 0.05 * repeats + 3 * np.sqrt(0.05 * 0.95 * repeats)


def test_each_copy_reads_the_same_examples_whatever_the_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, before, corpus = encoder(tiny.model("bert")), "before", planted.corpus(40)
    study = AttentionChange(before=before)
    found = []
    for block in (128, 7):
        monkeypatch.setattr(AttentionChange, "block", block)
        parts = study.parts(one.shape, corpus)
        read = [study.read_by_copies(part, corpus) for part in parts]
        found.append(
            [
                np.concatenate([at[copy] + start_of(p) for p, at in zip(parts, read, strict=True)])
                for copy in range(study.noise)
            ]
        )
    assert [len(copy) for copy in found[0]] == [10] * 20  # five times all examples
    for whole, pieces in zip(*found, strict=True):
        np.testing.assert_array_equal(whole, pieces)
    assert not np.array_equal(found[0][0], found[0][1])
    few = AttentionChange(before=before, noise=5)
    assert all(len(copy) == 7 for copy in few.read_by_copies(parts[0], corpus))
    assert AttentionChange(before=before, noise=0).read_by_copies(parts[0], corpus) == []


def test_copies_are_compared_with_training_on_the_same_examples() -> None:
    model = tiny.model("bert")
    result = compare(encoder(with_other_queries(model, 1, [2])), encoder(model), 40, noise=8)
    noise, layers = result.table("noise"), result.table("layers").set_index("layer")["change"]
    assert len(noise) == 8 * 3
    trained = noise.groupby("layer")["trained"].agg(["mean", "std"])
    assert trained["mean"].to_numpy() == pytest.approx(layers.to_numpy(), rel=0.1)
    assert trained["std"].iloc[2] > 0  # of other examples


def test_without_noise_no_claim_is_judged() -> None:
    model = tiny.model("bert")
    result = compare(encoder(with_noise(model, 0.05, 0)), encoder(model), noise=0)
    assert "noise" not in result.tables
    assert result.evidence() == {}
    assert "noise 0" in result.reasons()[""]


@pytest.mark.parametrize("even", [False, True])
def test_noise_is_as_large_as_the_change_and_the_same_each_time(even: bool) -> None:
    model = tiny.model("bert")
    before, after = encoder(model), encoder(with_other_queries(model, 1, [2]))
    copies = [
        {n: w.detach().clone() for n, w in noisy.base.named_parameters()}
        for _ in range(2)
        for noisy in noisy_copies(before, after, draws=2, seed=0, even=even)
    ]
    start, trained = (
        {n: w.detach() for n, w in e.base.named_parameters()} for e in (before, after)
    )
    changed = [n for n in start if not torch.equal(copies[0][n], start[n])]
    if even:
        assert len(changed) > 20
    else:
        assert changed == [n for n in start if not torch.equal(trained[n], start[n])]
    lengths = [
        sum(float((w[n] - start[n]).square().sum()) for n in start) for w in (copies[0], trained)
    ]
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-3)
    assert all(torch.equal(copies[0][n], copies[2][n]) for n in start)
    assert not all(torch.equal(copies[0][n], copies[1][n]) for n in start)


def test_bounds_hold_for_rare_large_changes() -> None:
    """With 3 % of them among 200 examples, some bound of 144 missed in a third of all samples."""
    rng, missed, repeats = np.random.default_rng(0), 0, 20
    study = AttentionChange(before="x", resamples=100)
    truth = 0.03 * 0.5 + 0.97 * 0.01
    for _ in range(repeats):
        rare = rng.random((144, 200)) < 0.03
        found = study.means(np.where(rare, 0.5, 0.01), support=(0, 1))
        missed += bool(((found.simultaneous_low > truth) | (found.simultaneous_high < truth)).any())
    assert missed / repeats <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / repeats)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_claimed_of_unrelated_models(seed: int) -> None:
    one, other = (tiny.model("bert", seed=s) for s in (seed, seed + 50))
    result = compare(encoder(one), encoder(other), noise=5)
    assert result.evidence() == {}
    assert "no more alike" in result.reasons()[""]
    assert result.table("heads")["change"].min() > 0.01


# BERT counts positions from the first token, padding or not: it cannot be padded on the left.
@pytest.mark.parametrize(("side", "family"), [("right", "bert"), ("left", "t5"), ("left", "xlnet")])
def test_padding_changes_no_number(side: str, family: str) -> None:
    one, other = (encoder(tiny.model(family, seed=s), side=side) for s in (0, 1))
    texts = planted.corpus(12).texts
    singly, padded = (compare_maps(one, other, texts, tokens_per_batch=n) for n in (1, 10_000))
    for name in ("cosine_distance", "divergence", "distance_to_neighbour"):
        assert torch.allclose(getattr(singly, name), getattr(padded, name), atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "albert", "gpt2"])
def test_the_numbers_are_those_of_a_plain_computation(family: str) -> None:
    one, other = (encoder(tiny.model(family, seed=s)) for s in (0, 1))
    texts = planted.corpus(5).texts
    found = compare_maps(one, other, texts)
    for i, text in enumerate(texts):
        maps = [eager_maps(e, text) for e in (one, other)]  # (layers, H, T, T)
        flat = [m.reshape(*m.shape[:2], -1) for m in maps]
        norms = [np.linalg.norm(f, axis=-1) for f in flat]
        cosine = (flat[0] * flat[1]).sum(-1) / (norms[0] * norms[1])
        assert np.allclose(1 - found.cosine_distance[i].numpy(), cosine, atol=1e-5)
        apart = jensenshannon(*maps, axis=-1) ** 2
        assert np.allclose(found.divergence[i].numpy(), apart.mean(-1), atol=1e-5)


def eager_maps(encoder: Encoder, text: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    inputs = encoder.encode(text).inputs
    model = encoder.model
    model.set_attn_implementation("eager")
    with torch.no_grad():
        given = model(**inputs, output_attentions=True).attentions
    return np.stack([a[0].double().numpy() for a in given])


def test_large_maps_are_compared_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (encoder(tiny.model("bert", seed=s)) for s in (0, 1))
    texts, steps = planted.corpus(12).texts, []
    whole = compare_maps(one, other, texts, done=steps.append)
    monkeypatch.setattr("bertology.model.reducers.held_maps._HELD", 12 * 2 * 12 * 12)
    pieces = compare_maps(one, other, texts)
    assert torch.allclose(whole.divergence, pieces.divergence, atol=1e-6)
    assert sum(steps) == 12


def test_parts_are_blocks_of_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AttentionChange, "block", 8)
    one, other = (encoder(tiny.model("bert", seed=s)) for s in (0, 1))
    corpus = planted.corpus(60)
    study = AttentionChange(before="other", examples=20, seed=3, noise=2)
    parts = study.parts(one.shape, corpus)
    assert [study.steps(p, one.shape, corpus) for p in parts] == [8, 8, 4]
    context = Context(others={"before": other})
    measured = [study.measure(one, corpus, p, context) for p in parts]
    together = np.concatenate([m["change"].to_numpy() for m in measured])
    alone = compare_maps(one, other, corpus.take(20, seed=3).texts).cosine_distance
    assert np.allclose(together, alone, atol=1e-6)


def test_what_cannot_be_compared_is_refused() -> None:
    study = AttentionChange(before="x")
    with pytest.raises(DataError, match="two examples"):
        study.check(encoder(tiny.model("bert")), planted.corpus(1))
    smaller = encoder(prune_heads(tiny.model("bert"), [(1, 0)]))
    with pytest.raises(CapabilityError, match="pruned"):
        study.check(smaller, None)


def test_a_stored_result_draws_every_figure_and_says_with_what(tmp_path: Path) -> None:
    model = tiny.model("bert")
    after, before = encoder(with_other_queries(model, 1, [2]), "after"), encoder(model, "a/start")
    corpus = replace(planted.corpus(20), task=None)
    result = bt.run(
        "attention-change", after, corpus=corpus, store=str(tmp_path), before=before, noise=5
    )
    again = Store(str(tmp_path)).load(result.identity)
    assert again.equals(result)
    assert "maps of start" in again.headline()
    assert list(again.figures()) == ["heads", "layers", "divergence"]
    assert again.plot("layers").axes
    assert again.provenance.others["before"]["name"] == "a/start"


def test_the_same_model_twice_is_not_judged(tmp_path: Path) -> None:
    """As when --model is forgotten and the bundled one is compared with itself."""
    one = encoder(tiny.model("bert"))
    result = bt.run(
        "attention-change",
        one,
        corpus=replace(planted.corpus(20), task=None),
        before=one,
        noise=5,
        store=str(tmp_path),
    )
    assert all(v.outcome is Outcome.NOT_APPLICABLE for v in result.verdicts())
    assert "the same model twice" in result.verdicts()[0].measured
