"""Layer similarity: equals are alike, a planted change is found, and noise is no training."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import planted
import planted_links
import tiny
from bertology.annotated.drawn_states import drawn_words, states_of_words
from bertology.annotated.states import word_states
from bertology.errors import DataError
from bertology.model.encoder import Encoder
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.rules import Outcome, Relation, Rule, settling
from bertology.stats import Estimate, mean_interval
from bertology.stats.similarity import samples_of
from bertology.studies.designs.noise import ExampleErrors, beyond_noise
from bertology.studies.geometry.layer_similarity import LayerSimilarity, _Samples
from bertology.studies.joins.training_steps import TrainingSteps
from bertology.studies.study import Context
from planted_changes import encoder, with_noise, with_other_queries
from result_conformance import ResultConformance

CLAIMED = {"last_two_over_mean", "each_of_last_two_over_largest"}


def compare(one: Encoder, other: Encoder | None = None, size: int = 32, **how: Any) -> Result:
    """The study without a store, which would draw its figures each time."""
    others = {} if other is None else {"against": other}
    given = {"resamples": 100, "words": 4, "noise": 5, **how}
    study = LayerSimilarity(against="" if other is None else other.name, **given)
    found: Result = planted_links.ask(study, one, planted.corpus(size), **others)
    return found


class TestBetween(ResultConformance):
    measures = frozenset({"same", "change", "neighbour"})

    @staticmethod
    def make() -> Result:
        model = tiny.model("bert")
        one, before = encoder(with_other_queries(model, 2, [0, 1])), encoder(model, "before")
        study = LayerSimilarity(against="before", resamples=100, words=4, noise=5)
        corpus = planted.corpus(24)
        measured = {
            part: study.measure(one, corpus, part, Context(others={"against": before}))
            for part in study.parts(one.shape, corpus)
        }
        others = {"against": {"name": "before", "fingerprint": "b"}}
        about = {"name": "after", "fingerprint": "a"}
        return study.conclude(
            measured,
            Provenance("layer-similarity", study.version, study.parameters, about, others=others),
        )

    def test_pairs_of_layers_are_there_for_comparisons(self, result: Result) -> None:
        grids = result.layer_grids()
        assert [g.name for g in grids] == ["cka", "cca"]
        assert {g.other for g in grids} == {"against"}
        assert grids[0].values.shape == (4, 4)
        assert grids[0].names(0) == ["input", "0", "1", "2"]

    def test_noise_is_drawn_as_claims_are_judged(self, result: Result) -> None:
        table = result.tables["noise"]
        trained = table.groupby("copy")["trained"].mean().mean()
        as_it_is, scaled = (result._of_noise(scaled=s) for s in (False, True))  # type: ignore[attr-defined]
        assert scaled.values.mean() == pytest.approx(trained)
        assert as_it_is.values.mean() == pytest.approx(table["change"].mean())
        drawn = next(d for d in result.drawings() if d.name == "layers")
        assert "scaled noise" in drawn.caption
        assert "range of copies" in drawn.caption


class TestWithin(ResultConformance):
    measures = frozenset({"neighbour"})

    @staticmethod
    def make() -> Result:
        return compare(encoder(tiny.model("bert")))


def test_equal_models_are_alike() -> None:
    model = tiny.model("bert")
    result = compare(encoder(model), encoder(copy.deepcopy(model), "copy"))
    pairs = result.table("pairs")
    same = pairs[pairs["layer"] == pairs["other"]]
    assert np.allclose(same[["cka", "rv", "rv_modified"]], 1, atol=1e-9)
    assert np.allclose(same["cca"], 1, atol=1e-6)
    assert (result.table("nearest")["other"] == result.table("nearest")["layer"]).all()
    assert np.allclose(result.table("layers")["change"], 0, atol=1e-9)
    assert "the same model twice" in result.reasons()[""]
    assert not CLAIMED & result.evidence().keys()


def test_a_change_is_found_in_its_layer_and_above() -> None:
    model = tiny.model("bert")
    moved = encoder(with_other_queries(model, 1, [0, 1, 2, 3], loudness=3.0))
    table = compare(moved, encoder(model, "before"), noise=0).table("layers")
    assert table["change"][0] == pytest.approx(0, abs=1e-9)
    assert (table["change_low"][1:] > 0.01).all()


def deep(*changed: int) -> Encoder:
    """A random model of eight layers; `changed` ones have other weights in their MLP."""
    torch.manual_seed(0)
    config = hf.BertConfig(
        vocab_size=60, hidden_size=24, num_hidden_layers=8, num_attention_heads=4,
        intermediate_size=40, max_position_embeddings=40,
    )  # fmt: skip
    model, generator = hf.BertModel(config).eval(), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.dim() > 1:
                weights.mul_(0.15 / weights.std())
        for layer in changed:
            weights = model.encoder.layer[layer].output.dense.weight
            weights.add_(torch.randn(weights.shape, generator=generator), alpha=0.15)
    return encoder(model, f"changed {changed}")


def test_the_last_layers_are_said_to_have_moved_only_where_they_have() -> None:
    late, early = (compare(deep(*changed), deep(), noise=10) for changed in ((6, 7), (0,)))
    assert all(late.evidence()[q].surely_there for q in CLAIMED)
    profile = early.table("layers")["change"].to_numpy()
    assert profile[-2:].mean() > profile[:-2].mean() + 0.015  # adds up, as that by noise does
    assert not any(early.evidence()[q].surely_there for q in CLAIMED)


def test_noise_in_place_of_training_bears_out_no_claim() -> None:
    model, held, moved = tiny.model("bert"), 0, 0
    for seed in range(3):
        noisy = encoder(with_noise(model, 0.05, seed))
        result = compare(noisy, encoder(model, "before"), noise=10)
        profile = result.table("layers")["change"].to_numpy()
        moved += profile[-2:].mean() > profile[0] + 0.001
        held += any(v.outcome.is_there for v in result.verdicts())
    assert moved >= 2  # without the control it would have been borne out
    assert held == 0


def made_draws(
    seed: int, *, noise: float, texts: float, more: float = 0.0, n: int = 60, copies: int = 20
) -> tuple[np.ndarray, np.ndarray, Estimate]:
    """Draws of noise, what each text does to "trained less noise", and the change itself.

    Draws differ by `noise`; texts differ by `texts`, in part alike in all copies. The trained model
    is one more draw, larger by `more`.
    """
    rng = np.random.default_rng(seed)
    moved = noise * rng.normal(size=copies + 1)
    of_texts = texts * (4 * rng.normal(size=(n, 1)) + rng.normal(size=(n, copies + 1)))
    values = 20 + moved + of_texts  # (texts, models)
    values[:, 0] += more
    apart = values[:, :1] - values[:, 1:]
    change = mean_interval(values[:, 0]).counting("texts")
    return apart.mean(0), apart - apart.mean(0), change


def beyond(change: Estimate, draws: np.ndarray, errors: ExampleErrors | None = None) -> Estimate:
    """What is left of a change beyond noise: its control."""
    ((_, found),) = beyond_noise(change, draws, 0.0, errors).controls
    return found


def test_texts_are_told_from_noise_in_what_leaves_a_question_open() -> None:
    draws, influence, _ = made_draws(0, noise=1.0, texts=4.0)
    errors = ExampleErrors.of(influence, "texts")
    # Of a difference of two models the part that they share is gone.
    assert errors.apart == pytest.approx(4 / 60**0.5, rel=0.2)
    assert errors.shared == pytest.approx(4 / 60**0.5 * (1 + 1 / 20) ** 0.5, rel=0.3)
    assert draws.std(ddof=1) == pytest.approx((1 + errors.apart**2) ** 0.5, rel=0.4)
    rule = Rule("moved", Relation.ABOVE, 0.0)
    by_texts, by_noise = (
        beyond(change, draws, ExampleErrors.of(influence, "texts"))
        for draws, influence, change in (
            made_draws(1, noise=0.05, texts=4.0, more=1.2),
            made_draws(1, noise=2.0, texts=0.05, more=1.2),
        )
    )
    assert rule.judge(by_texts) is rule.judge(by_noise) is Outcome.INCONCLUSIVE
    needed = settling(rule, by_texts)
    assert needed is not None
    assert needed.needed is not None
    assert 60 < needed.needed < 1000
    assert by_texts.unit == "texts"
    never = settling(rule, by_noise)
    assert never is not None
    assert never.needed is None
    assert "neither more examples nor more copies" in by_noise.remedy


def test_noise_as_one_more_draw_is_seldom_called_training() -> None:
    """With the error of the change itself in its place the test is wider and finds less."""
    found = {"error": 0, "power": 0, "before": 0}
    for seed in range(300):
        for name, more in (("error", 0.0), ("power", 3.0)):
            draws, influence, change = made_draws(seed, noise=1.0, texts=2.0, more=more)
            sharp = beyond(change, draws, ExampleErrors.of(influence, "texts"))
            found[name] += sharp.low > 0 or (not more and sharp.high < 0)
            if more:
                found["before"] += beyond(change, draws).low > 0
    assert found["error"] <= 0.05 * 300 + 3 * (0.05 * 0.95 * 300) ** 0.5
    assert found["power"] > 1.1 * found["before"]


def test_every_copy_reads_every_text_where_there_are_few() -> None:
    study, corpus = LayerSimilarity(against="before"), planted.corpus(150)
    (part,) = study.parts(encoder(tiny.model("bert")).shape, corpus)
    assert [len(copy) for copy in study.read_by_copies(part, corpus)] == [128] * 20
    (part,) = study.parts(encoder(tiny.model("bert")).shape, planted.corpus(40))
    assert [len(copy) for copy in study.read_by_copies(part, planted.corpus(40))] == [40] * 20


def test_the_half_that_picks_does_not_know_the_other() -> None:
    """Products of samples of all texts are of two texts, so those of one half know the other."""
    rng = np.random.default_rng(0)
    texts = np.repeat(np.arange(20), 3)
    x, y = rng.normal(size=(2, 2, 60, 8)).astype(np.float32)
    taken = _Samples(texts, texts, samples_of(texts), (0, 0))
    other = y.copy()
    other[:, texts % 2 == 1] += rng.normal(size=(2, 30, 8))
    one, two = (taken.by_halves(x, side) for side in (y, other))
    first = one["first_half"][1] > 0
    assert first.sum() == 10
    assert np.allclose(one["half_products"][1][first], two["half_products"][1][first])
    assert not np.allclose(one["half_products"][1][~first], two["half_products"][1][~first])
    mixed, moved = (taken.products(x, side) for side in (y, other))
    assert not np.allclose(mixed[first], moved[first])


def test_strangers_are_compared_but_not_judged() -> None:
    one, two = (encoder(tiny.model("bert", seed=s), f"model {s}") for s in (0, 1))
    result = compare(one, two)
    assert "differ by more than half of their length" in result.reasons()[""]
    assert all(v.outcome is Outcome.NOT_APPLICABLE for v in result.verdicts())


def narrow(layers: int = 2) -> Encoder:
    """Another build, width and vocabulary: its tokenizer cuts words into letters."""
    pieces = [c for word in planted.WORDS for c in (word[0], *(f"##{x}" for x in word[1:]))]
    config = hf.BertConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=layers, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=64,
    )  # fmt: skip
    torch.manual_seed(3)
    return Encoder(hf.BertModel(config).eval(), tiny.tokenizer(pieces), name="narrow")


def test_models_of_another_build_are_compared_word_by_word() -> None:
    wide = encoder(tiny.model("bert"))
    result = compare(wide, narrow())
    pairs = result.table("pairs")
    assert len(pairs) == 4 * 3
    assert "built in different ways" in result.reasons()[""]
    # The input is the word and its place in both: far more alike than words in another order.
    first = pairs.iloc[0]
    assert first["cka_low"] > 0.05
    assert abs(first["shuffled_words"]) < 0.05
    assert len(result.table("layers")) == 3
    assert list(compare(narrow(), wide).table("pairs").columns) == list(pairs.columns)


def test_words_are_the_same_in_both_models() -> None:
    wide, other, corpus = encoder(tiny.model("bert")), narrow(), planted.corpus(6)
    words = drawn_words([wide, other], corpus, most=3, seed=1, start=4)
    assert words == drawn_words([wide, other], corpus, most=3, seed=1, start=4)
    assert all(len(w) == 3 for w in words)
    everything = word_states(other, corpus)  # the way of the probes
    ends = np.cumsum([0, *everything.counts])
    at = [ends[i] + word for i, some in enumerate(words) for word in some]
    found = states_of_words(other, corpus, words)
    for layer in range(3):
        assert np.allclose(found[layer], everything.layer(layer)[at], atol=2e-3)  # halves on disk


def test_numbers_do_not_depend_on_blocks_of_one_text() -> None:
    """Blocks are even: a last one of a few texts would have samples that tell nothing."""
    study, corpus = LayerSimilarity(words=2), planted.corpus(520)
    parts = study.parts(encoder(tiny.model("bert")).shape, corpus)
    assert parts == ["examples-000000-000260", "examples-000260-000520"]


def test_too_few_texts_are_refused() -> None:
    with pytest.raises(DataError, match="needs 8 examples or more"):
        compare(encoder(tiny.model("bert")), size=6)


def test_likeness_with_the_last_step_is_followed_over_training() -> None:
    last = tiny.model("bert")
    final = encoder(last, "run@30")
    steps = [
        encoder(with_noise(last, share, 1), f"run@{at}") for at, share in ((10, 1.0), (20, 0.2))
    ]
    results = []
    for one in (*steps, final):
        found = compare(one, final, noise=0)
        results.append(found)
    (tracked,) = results[-1].over_training()
    joined = TrainingSteps(measure=tracked.measure, at=tracked.at).join(results)
    curve = joined.table("steps")
    assert list(curve["step"]) == [10, 20, 30]
    assert (np.diff(curve["value"]) > 0).all()
    assert curve["value"].iloc[-1] == pytest.approx(1)
    assert joined.table("layers").shape == (9, 5)
