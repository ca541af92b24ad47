"""Every reducer beside a plain computation in float64: bounds, symmetry, and extreme maps.

Maps are drawn from nearly even ones to such that give all attention to one token, where float32
rounds most of the weights to 0 or to numbers without full precision.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bertology.model.reducers.class_attention import (
    ClassAttention,
    FirstTokenAttention,
    Groups,
    Several,
    expected_maximum,
)
from bertology.model.reducers.link_hits import LinkedWords, MostAttended
from bertology.model.reducers.magnitudes import MeanMagnitude
from bertology.model.reducers.map_comparison import _Compared, _divergences
from bertology.model.reducers.map_measures import MAP_MEASURES, map_measures
from bertology.model.reducers.map_scores import attention_along, attention_to, similarity_to
from bertology.model.reducers.mean_maps import RelativeMaps
from bertology.model.reducers.pair_maxima import Aim, PairMaxima
from bertology.model.reducers.statistics import AttentionStatistics, MeanOutput
from bertology.model.shape import Shape
from bertology.model.site_context import SiteContext
from bertology.model.sites import Kind

Floats = NDArray[np.float64]
HEADS, SHAPE = 2, Shape(1, 2, hidden=6, head_size=3, mlp=4)
quickly = settings(max_examples=25, deadline=None)


class Maps:
    """A batch of maps of one layer, with padding on either side."""

    def __init__(self, seed: int, sharpness: float, left: bool, lengths: list[int]) -> None:
        self.rng = np.random.default_rng(seed)
        size = max(lengths)
        self.real = np.zeros((len(lengths), size), bool)
        for row, length in enumerate(lengths):
            self.real[row, size - length :] = left
            self.real[row, :length] |= not left
        logits = self.rng.normal(size=(len(lengths), HEADS, size, size)) * sharpness
        logits = np.where(self.real[:, None, None], logits, -np.inf)
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        self.value = torch.from_numpy(weights / weights.sum(-1, keepdims=True)).float()

    @property
    def at(self) -> SiteContext:
        return SiteContext("encoder", 0, Kind.PATTERN, torch.from_numpy(self.real), len(self.real))

    def alone(self, row: int) -> Floats:
        """One example's maps (H, L, L) without padding, in float64."""
        there = self.real[row]
        return self.value[row].double().numpy()[:, there][:, :, there]

    def __len__(self) -> int:
        return len(self.real)


maps = st.builds(
    Maps,
    st.integers(0, 2**31),
    st.sampled_from([0.0, 0.1, 1.0, 10.0, 60.0, 500.0]),
    st.booleans(),
    st.lists(st.integers(3, 9), min_size=1, max_size=3),
)
seeds, sharpnesses = st.integers(0, 2**31), st.sampled_from([0.0, 0.01, 1.0, 30.0, 90.0, 700.0])


def distributions(seed: int, sharpness: float, size: int = 6) -> Floats:
    logits = np.random.default_rng(seed).normal(size=(2, size)) * sharpness
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    found: Floats = weights / weights.sum(-1, keepdims=True)
    return found


def divergence(one: Floats, two: Floats) -> Floats:
    """By its definition: entropy of the mixture less the mean entropy of the two."""
    half = (one + two) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        sides = [np.where(p > 0, p * np.log(p / half), 0.0).sum(-1) for p in (one, two)]
    return np.asarray((sides[0] + sides[1]) / 2)


def as_map(row: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(row), dtype=torch.float32)[None, None, None]


def test_the_divergence_of_maps_that_differ_most_is_ln_2() -> None:
    """float32 takes such weights for 1 and 0: the divergence was 0 there."""
    one, two = as_map([1, 1e-9, 1e-9]), as_map([1e-9, 1, 1e-9])
    assert _divergences(one, two).item() == pytest.approx(math.log(2), rel=1e-6)


@quickly
@given(seeds, sharpnesses)
def test_divergences_are_those_of_float64(seed: int, sharpness: float) -> None:
    one, two = (as_map(row) for row in distributions(seed, sharpness))
    found = _divergences(one, two).item()
    truth = divergence(*(side.double().numpy()[0, 0, 0] for side in (one, two)))
    assert 0 <= found <= math.log(2) * (1 + 1e-6)
    assert found == pytest.approx(float(truth), rel=1e-5, abs=1e-12)
    assert found == pytest.approx(_divergences(two, one).item(), rel=1e-6)
    assert _divergences(one, one).item() == 0


@quickly
@given(maps, seeds)
def test_comparison_of_maps(given_maps: Maps, seed: int) -> None:
    moved = Maps(seed, 3.0, False, [given_maps.real.shape[1]] * len(given_maps))
    before = moved.value * torch.from_numpy(given_maps.real)[:, None, None]
    before = before / before.sum(-1, keepdim=True).clamp_min(1e-30)
    compared = _Compared({0: before.clone()})
    compared.update(given_maps.value.clone(), given_maps.at)
    cosine, apart, _ = compared.layers[0].numpy()
    for row in range(len(given_maps)):
        there = given_maps.real[row]
        two = before[row].double().numpy()[:, there][:, :, there]
        one = given_maps.alone(row)
        lengths = [np.linalg.norm(m.reshape(HEADS, -1), axis=-1) for m in (one, two)]
        truth = 1 - (one * two).sum((-2, -1)) / (lengths[0] * lengths[1])
        assert np.allclose(cosine[row], truth, atol=1e-5)
        assert np.allclose(apart[row], divergence(one, two).mean(-1), rtol=1e-4, atol=1e-6)


@quickly
@given(maps)
def test_statistics_of_attention(given_maps: Maps) -> None:
    reducer = AttentionStatistics(SHAPE)
    reducer.update(given_maps.value, given_maps.at)
    wanted = np.zeros((len(given_maps), 7, HEADS))
    for row in range(len(given_maps)):
        one = given_maps.alone(row)
        size = one.shape[-1]
        where = np.arange(size)
        entropy = -np.where(one > 0, one * np.log(np.where(one > 0, one, 1)), 0).sum(-1).mean(-1)
        wanted[row] = [
            *(np.trace(one, offset=k, axis1=1, axis2=2) / size for k in (-1, 0, 1)),
            one[:, :, 0].mean(-1),
            one[:, :, -1].mean(-1),
            entropy,
            (one * np.abs(where[:, None] - where)).sum(-1).mean(-1),
        ]
    found = reducer.mean[:, 0].numpy()
    assert np.allclose(found, wanted.mean(0), atol=1e-5)
    assert (found >= 0).all()
    assert (found[:5] <= 1 + 1e-6).all()
    if len(given_maps) > 1:
        truth = wanted.std(0, ddof=1) / math.sqrt(len(given_maps))
        assert np.allclose(reducer.standard_error[:, 0].numpy(), truth, atol=1e-3)


@quickly
@given(maps, st.sampled_from([1e-6, 1.0, 1e6]))
def test_mean_outputs_and_magnitudes(given_maps: Maps, scale: float) -> None:
    size, real = given_maps.real.shape[1], given_maps.real
    outputs = given_maps.rng.normal(size=(len(given_maps), HEADS, size, 3)) * scale
    mean = MeanOutput(SHAPE)
    mean.update(torch.from_numpy(outputs).float(), given_maps.at)
    truth = np.stack([outputs[:, h][real].mean(0) for h in range(HEADS)])
    assert np.allclose(mean.value[0].numpy(), truth, atol=1e-5 * scale)
    stream = given_maps.rng.normal(size=(len(given_maps), size, 6)) * scale
    magnitude = MeanMagnitude(SHAPE)
    magnitude.update(torch.from_numpy(stream).float(), given_maps.at)
    assert np.allclose(magnitude.mean()[0], np.abs(stream[real]).mean(0), rtol=1e-5)


@quickly
@given(maps, st.integers(2, 12))
def test_mean_maps_are_distributions(given_maps: Maps, size: int) -> None:
    reducer = RelativeMaps(SHAPE, size)
    reducer.update(given_maps.value, given_maps.at)
    mean = reducer.mean[0].numpy()
    assert (mean >= 0).all()
    assert np.allclose(mean.sum(-1), 1, atol=1e-5)
    again = RelativeMaps(SHAPE, size)  # padding changes nothing
    for row in range(len(given_maps)):
        one = torch.from_numpy(given_maps.alone(row)).float()[None]
        at = SiteContext("encoder", 0, Kind.PATTERN, torch.ones(1, one.shape[-1]).bool(), 1)
        again.update(one, at)
    assert np.allclose(again.mean[0].numpy(), mean, atol=1e-5)


@quickly
@given(maps, st.data())
def test_largest_weights_of_pairs(given_maps: Maps, data: st.DataObject) -> None:
    shortest = int(given_maps.real.sum(1).min())
    pair = st.tuples(st.integers(0, shortest - 1), st.integers(0, shortest - 1))
    pairs = data.draw(st.lists(pair, min_size=1, max_size=4))
    reducer = PairMaxima(SHAPE, 2)
    reducer.aim([Aim(row, pairs, 0) for row in range(len(given_maps))])
    reducer.update(given_maps.value, given_maps.at)
    alone = [given_maps.alone(row) for row in range(len(given_maps))]
    truth = np.mean([np.max([m[:, q, k] for q, k in pairs], axis=0) for m in alone], axis=0)
    found = reducer.means()
    assert np.allclose(found[0, 0], truth, rtol=1e-5, atol=1e-12)
    assert np.isnan(found[1]).all()


def groups(given_maps: Maps) -> Groups:
    """Three classes drawn at random (the last may be empty), two stretches of the text."""
    real, rng = given_maps.real, given_maps.rng
    masks = (rng.random((len(real), 3, real.shape[1])) < [[0.4], [0.2], [0.05]]) & real[:, None]
    places = np.where(real, np.arange(real.shape[1]) % 2, -1)
    return Groups(torch.from_numpy(masks), torch.from_numpy(places), torch.from_numpy(real))


@quickly
@given(maps)
def test_attention_to_classes(given_maps: Maps) -> None:
    of = groups(given_maps)
    whole = ClassAttention(of, words=[0, 1], signs=[2])
    first = torch.zeros_like(torch.from_numpy(given_maps.real))
    starts = given_maps.real.argmax(1)
    first[range(len(given_maps)), starts] = True
    from_first = FirstTokenAttention(of.masks, first)
    Several([whole, from_first]).update(given_maps.value, given_maps.at)
    score, expected, share = (a[:, :, 0].astype(float) for a in whole.value())  # (B, C, H)
    largest, total = (a[:, :, 0].astype(float) for a in from_first.value())
    for row in range(len(given_maps)):
        one, there = given_maps.alone(row), given_maps.real[row]
        received = one.mean(1)  # (H, L)
        for kind, mask in enumerate(of.masks[row].numpy()[:, there]):
            assert np.allclose(share[row, kind], received[:, mask].sum(-1), atol=1e-6)
            assert np.allclose(total[row, kind], one[:, 0, mask].sum(-1), atol=1e-6)
            if not mask.any():
                assert np.isnan([score[row, kind], expected[row, kind], largest[row, kind]]).all()
                continue
            assert np.allclose(score[row, kind], received[:, mask].max(-1), atol=1e-6)
            assert np.allclose(largest[row, kind], one[:, 0, mask].max(-1), atol=1e-6)
            # Neither below the least that a draw may give nor above the largest of all.
            assert (expected[row, kind] >= received.min(-1) - 1e-6).all()
            assert (expected[row, kind] <= received.max(-1) + 1e-6).all()


@quickly
@given(seeds, st.integers(1, 5), st.integers(0, 3))
def test_the_expected_maximum_grows_with_what_is_drawn(seed: int, size: int, more: int) -> None:
    values = torch.from_numpy(np.random.default_rng(seed).random((1, 1, size + more)))
    places = torch.zeros(1, size + more, dtype=torch.long)
    masks = torch.tril(torch.ones(size + more, size + more)).bool()[None]  # one, two, … tokens
    found = expected_maximum(values, places, masks)[0, :, 0].numpy()
    assert (np.diff(found) >= -1e-12).all()
    assert found[0] == pytest.approx(float(values.mean()))
    assert found[-1] == pytest.approx(float(values.max()))


@quickly
@given(seeds, sharpnesses)
def test_followed_links(seed: int, sharpness: float) -> None:
    """Words of one piece each, [CLS] and [SEP] around them."""
    rng, words = np.random.default_rng(seed), 6
    given_maps = Maps(seed, sharpness, False, [words + 2])
    links = [tuple(rng.choice(words, 2, replace=False).tolist()) for _ in range(3)]

    class Read:
        real = torch.from_numpy(given_maps.real)

    of = LinkedWords.over(
        Read(),  # type: ignore[arg-type]
        [[[1 + w] for w in range(words)]],
        [[((s,), (t,)) for s, t in links]],
    )
    reducer = MostAttended(of)
    reducer.update(given_maps.value, given_maps.at)
    found, one = reducer.value(), given_maps.alone(0)
    for head in range(HEADS):
        hits = []
        for source, target in links:
            row = one[head, 1 + source, 1:-1].copy()
            row[source] = -1
            hits.append(row.argmax() == target)
        assert found[0, 0, head] == pytest.approx(np.mean(hits))


@quickly
@given(maps)
def test_measures_of_maps_stay_within_their_bounds(given_maps: Maps) -> None:
    segments = torch.from_numpy(np.where(given_maps.real, 0, -1))
    found = dict(zip(MAP_MEASURES, map_measures(given_maps.value, segments).numpy(), strict=True))
    for name in ("entropy", "near", "offset", "stripes", "evenness"):
        assert (found[name] >= -1e-5).all(), name
        assert (found[name] <= 1 + 1e-4).all(), name
    assert np.allclose(found["blockness"], 0, atol=1e-6)
    for row in range(len(given_maps)):
        one = given_maps.alone(row)
        size = one.shape[-1]
        where = np.arange(size)
        entropy = -np.where(one > 0, one * np.log(np.where(one > 0, one, 1)), 0).sum(-1).mean(-1)
        assert np.allclose(found["entropy"][row], entropy / math.log(size), atol=1e-4)
        distance = (one * np.abs(where[:, None] - where)).sum(-1).mean(-1)
        assert np.allclose(found["distance"][row], distance, atol=1e-4)
        assert np.allclose(found["stripes"][row], np.sort(one.mean(1))[:, -2:].sum(-1), atol=1e-5)


@quickly
@given(maps)
def test_scores_of_recorded_maps(given_maps: Maps) -> None:
    one = given_maps.alone(0)[None]  # one layer
    size = one.shape[-1]
    targets = given_maps.rng.random((size, size)) < 0.4
    targets[0, 0] = True
    assert (attention_to(one, targets) <= 1 + 1e-9).all()
    assert np.allclose(attention_to(one, np.ones((size, size), bool)), 1)
    assert np.allclose(attention_along(one, [([0, 1], list(range(size)))]), 1)
    alike = similarity_to(one, 0, 1)
    assert alike[0, 1] == 1
    assert ((alike >= 0) & (alike <= 1)).all()
    assert np.allclose(similarity_to(one, 0, 0)[0, 1], alike[0, 0])
