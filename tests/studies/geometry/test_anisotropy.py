"""Anisotropy: known cones are measured exactly, dominating dimensions are found, noise has none."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

import made_geometry as made
from bertology.annotated.recurring_words import frequent_kinds, number_among
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.stats.blocks_left_out import left_out_error, left_out_estimate
from bertology.stats.isotropy import covariance, isoscore, participation, partition
from bertology.studies.geometry.anisotropy import Anisotropy
from bertology.studies.geometry.anisotropy.direction_geometry import (
    LayerSums,
    SampledWords,
    geometry,
)
from bertology.studies.geometry.shared.text_blocks import word_batches_of, words_of_texts
from bertology.studies.study import Context
from result_conformance import ResultConformance, claims_of

CONE = "primer-embeddings.embeddings-occupy-a-narrow-cone"
GROWS = "primer-embeddings.the-cone-grows-with-layers"
EXPLAINED = "primer-embeddings.dominating-dimensions-explain-the-cone"
EVEN = torch.ones(made.WIDTH) / made.WIDTH**0.5
_STUDY = Anisotropy(copies=3)


def one_axis(dimension: int) -> torch.Tensor:
    return torch.nn.functional.one_hot(torch.tensor(dimension), made.WIDTH).float()


@cache
def even() -> Result:
    return made.ask(_STUDY, made.corpus(), made.cone(made.falling(0.2, 0.5), EVEN), made.noise)


@cache
def dominated() -> Result:
    states = made.cone(made.falling(0.2, 0.5), one_axis(7))
    return made.ask(_STUDY, made.corpus(), states, made.noise)


class TestResult(ResultConformance):
    measures = frozenset({"cone-cosine", "cone-isoscore", "cone-participation", "cone-without-3"})

    @staticmethod
    def make() -> Result:
        return dominated()


@pytest.mark.parametrize("result", [even, dominated])
def test_a_known_cone_is_measured(result: object) -> None:
    assert callable(result)
    found, truth = result(), made.falling(0.2, 0.5)
    for layer, row in found.table("layers").set_index("layer").iterrows():
        assert row["cosine"] == pytest.approx(truth[int(layer) + 1], abs=0.01)
        assert row["cosine_low"] < truth[int(layer) + 1] < row["cosine_high"]
    evidence = found.evidence()
    assert evidence["mean_cosine"].value == pytest.approx(0.35, abs=0.01)
    assert evidence["cone_growth"].value == pytest.approx(0.3, abs=0.02)
    assert claims_of(found)[CONE] == claims_of(found)[GROWS] == "holds"


def test_one_dimension_makes_one_cone_and_all_make_the_other() -> None:
    """Without an axis that is one dimension nothing is left; of an even axis nearly all is."""
    rows = dominated().table("layers")
    for count in (1, 3, 5):
        assert rows[f"without_{count}"].abs().max() < 0.01
    first = dominated().table("dimensions").query("rank == 1")
    assert (first["dimension"] == 7).all()
    assert first["share"].to_numpy() == pytest.approx(1, abs=0.05)
    assert claims_of(dominated())[EXPLAINED] == "holds"
    rows = even().table("layers")
    assert (rows["without_5"] > 0.85 * rows["cosine"]).all()
    assert claims_of(even())[EXPLAINED] == "fails"
    assert even().arrays["contributions"].sum("dimension").to_numpy() == pytest.approx(
        rows["cosine"].to_numpy()
    )


def test_repairs_undo_a_cone() -> None:
    rows = dominated().table("repairs").set_index("repair")
    assert rows.loc["as it is", "cosine"].to_numpy() == pytest.approx(
        dominated().table("layers")["cosine"].to_numpy(), abs=0.01
    )
    for repair in ("centred", "without top components", "standardised", "whitened"):
        assert rows.loc[repair, "cosine"].abs().max() < 0.02
    # Some hundred words on each half: a whitening that was fitted on others is not exact.
    assert rows.loc["whitened", "isoscore"].mean() > 0.7


def test_gaussians_have_no_cone() -> None:
    found = made.ask(_STUDY, made.corpus(), made.noise, made.cone(made.falling(0.2, 0.5), EVEN))
    outcomes = claims_of(found)
    assert outcomes[CONE] == "fails"
    assert outcomes[GROWS] == "negligible"
    assert outcomes[EXPLAINED] == "not-applicable"
    assert "no cone" in found.reasons()["cone_without_dominating"]
    rows = found.table("layers")
    assert rows["isoscore"].min() > 0.9
    assert rows["participation"].min() > 0.9 * made.WIDTH
    assert rows["partition_scaled"].min() > 0.9
    again = made.ask(_STUDY, made.corpus(), made.noise, made.noise)
    assert "holds" not in claims_of(again).values()
    assert again.answer.startswith("Nothing is sure")


def test_a_cone_must_be_narrower_than_that_of_shuffled_weights() -> None:
    """The gate was two-sided: a model with less of a cone than its copies was said to have one."""
    wide, narrow = (
        made.cone(dict.fromkeys(range(made.LAYERS + 1), share), EVEN) for share in (0.3, 0.8)
    )
    less, as_much, more = (
        made.ask(_STUDY, made.corpus(), own, copies)
        for own, copies in ((wide, narrow), (wide, wide), (narrow, wide))
    )
    for found in (less, as_much):
        assert claims_of(found)[CONE] == "not-applicable"
        (told,) = (v.measured for v in found.verdicts() if v.claim.id == CONE)
        assert "not surely beyond shuffled weights (" in told
        assert claims_of(found)[EXPLAINED] == "not-applicable"
    assert claims_of(more)[CONE] == "holds"
    flat = made.ask(_STUDY, made.corpus(), made.noise, wide)
    assert claims_of(flat)[CONE] == "fails"  # by its own number, whatever copies have


def test_sums_are_what_pairs_give() -> None:
    """The pass of a random model, beside all pairs of its recorded states."""
    shape = made.MadeEncoder(made.noise)
    encoder, texts = Encoder(shape.model, shape.tokenizer, name="random"), made.corpus(40)
    part = Anisotropy(sampled=200).one_pass(encoder, texts, Context(), whole=True)
    states, of, kinds = [], [], []
    for read in word_batches_of(encoder, texts.texts, range(len(texts)), tokens=4096):
        trace = encoder.run(read.batch, record=["layer.1.residual"])
        flat = trace["layer.1.residual"].flatten(0, 1).double().numpy()
        states.append(flat[read.words.rows(read.batch.inputs["input_ids"].shape[1])])
        of.append(read.texts[read.words.texts])
        kinds.append(read.words.kinds)
    x, text, kind = np.concatenate(states), np.concatenate(of), np.concatenate(kinds)
    units = x / np.linalg.norm(x, axis=1, keepdims=True)
    apart = (text[:, None] != text) & (kind[:, None] != kind)
    assert float(part["cosine"][0, 2]) == pytest.approx((units @ units.T)[apart].mean(), abs=1e-6)
    by_dimension = [np.outer(u, u)[apart].mean() for u in units.T]
    assert part["contributions"].to_numpy()[:, 2] == pytest.approx(by_dimension, abs=1e-6)
    values = np.sort(np.linalg.eigvalsh(np.cov(x.T, bias=True)))[::-1]
    assert float(part["shares"][0, 2]) == pytest.approx(values[0] / values.sum(), rel=1e-4)
    assert float(part["isoscore"][0, 2]) == pytest.approx(plain_isoscore(x), abs=1e-5)


def test_a_word_is_not_set_against_itself() -> None:
    """Each word has a direction of its own: only pairs of one word are alike, and are left out."""
    states = made.own_ways(dict.fromkeys(range(made.LAYERS + 1), 0.9))
    found = made.ask(_STUDY, made.corpus(200), states, made.noise)
    rows = found.table("layers")
    assert rows["cosine"].abs().max() < 0.004  # 1 of 48 pairs of words is of one word
    assert found.table("repairs").query("repair == 'as it is'")["cosine"].abs().max() < 0.01


def test_frequent_words_are_found_over_all_texts() -> None:
    encoder = made.MadeEncoder(made.noise)
    texts = ["ba ba de", "ba fi", "de fi ba", "lo"]
    seen = list(words_of_texts(encoder, texts))
    ba, de = (seen[0][0].kinds[at] for at in (0, 2))
    found = frequent_kinds(seen, 1)
    assert found.tolist() == [ba]
    assert number_among(found, np.array([de, ba])).tolist() == [-1, 0]
    assert len(frequent_kinds(seen, 10)) == 4
    assert number_among(found[:0], np.array([de])).tolist() == [-1]


def plain_isoscore(points: np.ndarray) -> float:
    """Rudman et al.'s algorithm, step by step on the points themselves."""
    n = points.shape[1]
    _, axes = np.linalg.eigh(np.cov(points.T))
    turned = points @ axes  # principal components
    diagonal = turned.var(axis=0)
    normed = np.sqrt(n) * diagonal / np.linalg.norm(diagonal)
    defect = np.linalg.norm(normed - np.ones(n)) / np.sqrt(2 * (n - np.sqrt(n)))
    used = (n - defect**2 * (n - np.sqrt(n))) ** 2 / n**2
    return float((n * used - 1) / (n - 1))


@pytest.mark.parametrize("k", [1, 3, 8])
def test_isoscore_is_that_of_its_definition(k: int) -> None:
    """Of k of 8 directions that vary alike: (k - 1) / 7, as the paper proves for its score."""
    rng = np.random.default_rng(k)
    points = rng.normal(size=(500, 8)) * np.linspace(1, 3, 8) @ rng.normal(size=(8, 8))
    assert isoscore(np.cov(points.T, bias=True)) == pytest.approx(plain_isoscore(points))
    exact = np.diag([1.0] * k + [0.0] * (8 - k))
    assert isoscore(exact) == pytest.approx((k - 1) / 7, abs=1e-12)
    assert participation(exact) == pytest.approx(k)


def test_the_partition_function_is_that_of_its_definition() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(50, 4)) + np.eye(4)[0]
    axes = np.linalg.eigh(points.T @ points)[1]
    z = [np.exp(points @ (way * c)).sum() for c in axes.T for way in (1, -1)]
    found = partition(points, axes)
    assert found.ratio == pytest.approx(min(z) / max(z))
    assert found.spread == pytest.approx(np.std(z) / np.mean(z))
    assert np.isfinite(partition(1000 * points, axes).ratio)


def test_dimensions_are_chosen_on_the_other_half() -> None:
    """A dimension that is large on one half only is taken off where it does not matter."""
    rng = np.random.default_rng(0)
    blocks, texts = np.repeat(np.arange(10), 40), np.repeat(np.arange(100), 4)
    states = rng.normal(size=(400, 12))
    states[blocks % 2 == 0, 3] += 4.0
    units = states / np.linalg.norm(states, axis=1, keepdims=True)
    by_text = units.reshape(100, 4, 12).sum(1).reshape(10, 10, 12)
    sums = LayerSums(
        by_text.sum(1),
        (by_text**2).sum(1),
        np.full(10, 40.0),
        np.full(10, 160.0),
        np.zeros((10, 1, 12)),
        np.zeros((10, 1)),
        states.reshape(10, 40, 12).sum(1),
        np.einsum("bni,bnj->bij", *[states.reshape(10, 40, 12)] * 2),
    )
    found = geometry(sums, SampledWords(states, texts, blocks, np.full(400, -1)))
    alike = sums.contributions(range(0, 10, 2)).sum()
    assert alike > 0.4
    # The even blocks keep their cosine: the odd ones do not know of the dimension.
    assert found["without"][0, 0] > 0.4 * alike
    assert found["repaired"][0, 0] == pytest.approx(
        (alike + sums.contributions(range(1, 10, 2)).sum()) / 2
    )
    mean, cov = sums.moments_of(range(10))
    assert mean == pytest.approx(states.mean(0))
    assert cov == pytest.approx(np.cov(states.T, bias=True))
    assert covariance(states.sum(0), states.T @ states, 400) == pytest.approx(cov)


def test_dimensions_are_found_anew_where_a_block_is_left_out() -> None:
    """One block of the odd half decides which of two dimensions adds more there."""
    rng = np.random.default_rng(0)
    blocks, texts = np.repeat(np.arange(10), 40), np.repeat(np.arange(100), 4)
    states = rng.normal(size=(400, 12))
    states[:, 3] += 2.0
    states[blocks % 2 == 1, 5] += np.where(blocks[blocks % 2 == 1] == 1, 6.0, 1.5)
    sample = SampledWords(states, texts, blocks, np.full(400, -1))
    found = geometry(replace(sample.sums(states, 10), **moments_of(states)), sample)["without"][0]
    first = sample.of(blocks % 2 == 0)
    kept = {gone: np.arange(12) != gone for gone in (3, 5)}
    of = {
        gone: first.sums(first.states * kept[gone], 10).contributions(range(0, 10, 2)).sum()
        for gone in kept
    }
    assert of[5] > of[3] + 0.1
    # With block 1 the odd half names dimension 5, without it 3; so the even half is measured anew.
    fixed = sample.cosines(lambda x, half: np.where(half[:, None] == 0, x * kept[5], x * kept[3]),
                           ([0, 2, 4, 6, 8], [1, 3, 5, 7, 9]))  # fmt: skip
    assert found[0] == pytest.approx(fixed[0])
    assert found[2] == pytest.approx(fixed[2] + (of[3] - of[5]) / 2)
    assert found[1] == pytest.approx(fixed[1])


def moments_of(states: np.ndarray) -> dict[str, np.ndarray]:
    by_block = states.reshape(10, 40, -1)
    return {
        "states": by_block.sum(1),
        "moments": np.einsum("bni,bnj->bij", by_block, by_block),
    }


def test_leaving_out_blocks_gives_the_error_of_a_mean() -> None:
    """Of blocks of one size the jackknife is Student's interval of their means."""
    blocks = np.random.default_rng(0).normal(size=10)
    left = np.array([np.delete(blocks, at).mean() for at in range(10)])
    assert left_out_error(left) == pytest.approx(blocks.std(ddof=1) / 10**0.5)
    found = left_out_estimate(float(blocks.mean()), left, n=500, level=0.95)
    assert found.high - found.value == pytest.approx(2.2622 * float(left_out_error(left)), rel=1e-4)
    assert (found.unit, found.n, found.freedom) == ("texts", 500, 9)


def test_memory_does_not_grow_with_text_and_the_sample_keeps_its_size() -> None:
    def peak(size: int) -> tuple[int, int]:
        texts, encoder = made.corpus(size, seed=1), made.MadeEncoder(made.noise)
        study = Anisotropy(sampled=200, examples=10_000)
        tracemalloc.start()
        part = study.one_pass(encoder, texts, Context(batch_tokens=256), whole=True)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found, int(part.attrs["sampled"])

    (small, few), (large, many) = peak(200), peak(400)
    assert few == many == 200
    assert large < 1.25 * small
