"""What is said of the depth is sure only where the texts and the order of layers say so."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import permutations

import numpy as np
import pytest

from bertology.results.rules import Outcome, Relation, Rule, settling
from bertology.stats import Estimate, mean_interval
from bertology.stats.layer_orders import (
    both_above_zero,
    first_less_second_half,
    in_this_order,
    later_less_earlier,
    mirrored,
    order_p,
)
from bertology.stats.partial_means import partial_means
from bertology.studies.designs.noise import last_layers
from bertology.studies.designs.probe_scores import (
    lower_less_others,
    lower_over_others,
    middle_less_ends,
    middle_over_ends,
)

ABOVE = Rule("gain", Relation.ABOVE, 0.0)
TEXTS, LAYERS = 400, 12


def rises(values: np.ndarray) -> Outcome:
    """Of texts and layers: whether the second half surely has more."""
    contrast = later_less_earlier(values.shape[1] // 2)
    found = mean_interval(contrast(values))
    return ABOVE.judge(in_this_order(found, values.mean(0), contrast))


def test_p_is_the_share_of_orders_that_show_as_much() -> None:
    layers = np.array([3.0, 0.1, 2.0, 0.4, 0.7])
    orders = np.array(list(permutations(layers)))
    shown = first_less_second_half(orders)
    share = float((shown >= first_less_second_half(layers) - 1e-12).mean())
    assert order_p(layers, first_less_second_half) == pytest.approx(share)
    many = np.arange(24.0)
    assert order_p(many, later_less_earlier(8)) == pytest.approx(1e-4)
    assert order_p(-many, later_less_earlier(8)) == 1
    assert order_p(np.ones(6), later_less_earlier(2)) == 1


def test_contrasts_leave_out_a_middle_layer() -> None:
    assert first_less_second_half(np.array([2.0, 50.0, 1.0])) == 1
    assert later_less_earlier(1)(np.array([[1.0, 2.0, 4.0]])).tolist() == [2.0]


def test_a_rise_over_texts_and_layers_is_found() -> None:
    rng = np.random.default_rng(0)
    values = np.linspace(0, 1, LAYERS) + rng.normal(size=(TEXTS, LAYERS))
    assert rises(values) is Outcome.HOLDS
    assert rises(values[:, ::-1]) is Outcome.FAILS
    assert rises(values[:4]) is not Outcome.FAILS


def test_one_loud_layer_is_no_rise() -> None:
    values = np.random.default_rng(0).normal(size=(TEXTS, LAYERS))
    values[:, 10] += 9
    contrast = later_less_earlier(6)
    assert mean_interval(contrast(values)).low > 0  # texts alone would say so
    assert rises(values) is Outcome.INCONCLUSIVE


def test_more_texts_do_not_settle_what_the_order_leaves_open() -> None:
    found = both_above_zero(Estimate(1.0, 0.9, 1.1, 100), 0.3, chance="no")
    assert (found.low, found.high, found.remedy) == (0.0, 1.1, "no")
    needed = settling(ABOVE, found)
    assert needed is not None
    assert needed.needed is None
    assert ABOVE.judge(found.at_level(0.99)) is Outcome.INCONCLUSIVE


def test_both_must_agree_at_every_level() -> None:
    sure = Estimate(1.0, 0.5, 1.5, 100)
    found = both_above_zero(sure, 0.01, chance="no")
    assert found.low == 0.5
    assert ABOVE.judge(found.at_level(0.98)) is Outcome.HOLDS
    assert ABOVE.judge(found.at_level(0.999)) is Outcome.INCONCLUSIVE  # of orders one in a hundred
    by_texts = both_above_zero(replace(sure, low=0.01, high=1.99), 1e-9, chance="no")
    assert ABOVE.judge(by_texts) is Outcome.HOLDS
    assert ABOVE.judge(by_texts.at_level(0.99)) is Outcome.INCONCLUSIVE


def test_a_fall_is_a_rise_of_the_opposite() -> None:
    below = Rule("drop", Relation.BELOW, 0.0)
    held = mirrored(both_above_zero(Estimate(1.0, 0.5, 1.5, 100), 0.01, chance="no"))
    assert (held.value, held.low, held.high) == (-1.0, -1.5, -0.5)
    assert below.judge(held.at_level(0.98)) is Outcome.HOLDS
    assert below.judge(held.at_level(0.999)) is Outcome.INCONCLUSIVE
    left_open = mirrored(both_above_zero(Estimate(1.0, 0.5, 1.5, 100), 0.3, chance="no"))
    assert below.judge(left_open) is Outcome.INCONCLUSIVE
    assert below.judge(left_open.expected_at(10_000)) is Outcome.INCONCLUSIVE


def moved_last(profile: np.ndarray, seed: int) -> bool:
    """Whether the last two layers surely changed more than the others, of copies that did not."""
    rng = np.random.default_rng(seed)
    change = np.clip(profile + 0.05 * rng.normal(size=(100, LAYERS)), 0, 1)
    noise, matched = np.full((10, LAYERS), 0.2), np.tile(profile, (10, 1))
    noise = noise + 0.001 * rng.normal(size=noise.shape)
    means = partial(partial_means, support=(-1, 1), resamples=100)
    found = last_layers(change, noise, matched, means)["last_two_over_mean"]
    assert found is not None
    return found.low > 0


def test_last_layers_that_changed_most_are_found_and_shuffled_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    late = np.where(np.arange(LAYERS) < LAYERS - 2, 0.2, 0.4) + 0.02 * rng.normal(size=LAYERS)
    assert moved_last(late, 0)
    draws = [rng.permutation(0.3 + 0.05 * rng.normal(size=LAYERS)) for _ in range(100)]
    assert sum(moved_last(one, seed) for seed, one in enumerate(draws)) <= 10  # 5 may be


@pytest.mark.parametrize("shape", ["middle", "lower"])
def test_parts_of_the_depth_that_tell_more_are_found(shape: str) -> None:
    peak = {"middle": 6.5, "lower": 1.0}[shape]
    told = 0.9 - 0.02 * np.abs(np.arange(1, LAYERS + 1) - peak)
    counts = np.full(TEXTS, 10)
    hits = np.random.default_rng(0).binomial(10, told, size=(TEXTS, LAYERS)).astype(float)
    both = {
        "middle": middle_over_ends(hits, counts, level=0.95),
        "lower": lower_over_others(hits, counts, level=0.95),
    }
    for name, found in both.items():
        assert found is not None
        assert ABOVE.judge(found) is (Outcome.HOLDS if name == shape else Outcome.FAILS)


@pytest.mark.parametrize("contrast", [middle_less_ends, lower_less_others])
def test_shuffled_layers_seldom_have_a_best_part(contrast: object) -> None:
    """In many of them it has more, and with enough texts it would surely have more."""
    rng, held, more, draws = np.random.default_rng(0), 0, 0, 300
    over = middle_over_ends if contrast is middle_less_ends else lower_over_others
    counts = np.full(100, 10)
    for _ in range(draws):
        told = rng.permutation(0.8 + 0.1 * rng.standard_normal(LAYERS)).clip(0.1, 0.99)
        hits = rng.binomial(10, told, size=(100, LAYERS)).astype(float)
        found = over(hits, counts, level=0.95)
        assert found is not None
        held += found.low > 0
        more += found.value > 0
    assert held <= 0.05 * draws + 8
    assert more > 2 * held
