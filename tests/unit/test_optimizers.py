"""LAMB against its paper, AdamW's groups, and the learning rate over time."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from bertology.train.optimizers import (
    Lamb,
    learning_rate_factor,
    make_optimizer,
    parameter_groups,
)

RATE, DECAY, BETAS, EPS = 0.02, 0.1, (0.9, 0.98), 1e-6
SHAPES = ((5, 3), (4, 4), (6,), (1,))


def drawn(seed: int, shapes: tuple[tuple[int, ...], ...] = SHAPES) -> list[Tensor]:
    """In float64, so that only the formula can make a difference."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]


class OneByOne:
    """LAMB for a single tensor, line by line as in You et al. (2020), Algorithm 2.

    The paper leaves open what happens to vectors; here they are not scaled, as in its own code.
    """

    def __init__(self, weight: Tensor, decay: float) -> None:
        self.x, self.decay = weight.clone(), decay
        self.m, self.v, self.t = torch.zeros_like(weight), torch.zeros_like(weight), 0

    def step(self, g: Tensor) -> None:
        self.t += 1
        self.m = BETAS[0] * self.m + (1 - BETAS[0]) * g
        self.v = BETAS[1] * self.v + (1 - BETAS[1]) * g**2
        m = self.m / (1 - BETAS[0] ** self.t)
        v = self.v / (1 - BETAS[1] ** self.t)
        move = m / (v.sqrt() + EPS) + self.decay * self.x
        ratio = 1.0
        if self.x.dim() > 1:
            size, length = float(self.x.square().sum().sqrt()), float(move.square().sum().sqrt())
            if size > 0 and length > 0:
                ratio = size / length
        self.x = self.x - RATE * ratio * move


def lamb(weights: list[Tensor]) -> torch.optim.Optimizer:
    return make_optimizer("lamb", weights, rate=RATE, weight_decay=DECAY, betas=BETAS)


def one_by_one(weights: list[Tensor]) -> list[OneByOne]:
    return [OneByOne(w.detach(), DECAY if w.dim() > 1 else 0.0) for w in weights]


def give(weights: list[Tensor], gradients: list[Tensor]) -> None:
    for w, g in zip(weights, gradients, strict=True):
        w.grad = g.clone()


def test_lamb_is_what_the_paper_says() -> None:
    weights = [w.requires_grad_() for w in drawn(0)]
    optimizer, expected = lamb(weights), one_by_one(weights)
    for step in range(1, 8):
        gradients = drawn(step)
        give(weights, gradients)
        optimizer.step()
        for e, g in zip(expected, gradients, strict=True):
            e.step(g)
    for w, e in zip(weights, expected, strict=True):
        torch.testing.assert_close(w.detach(), e.x, rtol=1e-12, atol=1e-12)


def test_lamb_with_a_zero_gradient_only_decays() -> None:
    weights = [w.requires_grad_() for w in drawn(0)]
    before = [w.detach().clone() for w in weights]
    give(weights, [torch.zeros_like(w) for w in weights])
    lamb(weights).step()
    for w, old in zip(weights, before, strict=True):
        # The step is the decay alone, scaled to the size of the weights.
        expected = old * (1 - RATE) if w.dim() > 1 else old
        torch.testing.assert_close(w.detach(), expected)


def test_lamb_moves_weights_that_are_zero() -> None:
    weights = [torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)]
    expected = one_by_one(weights)[0]
    optimizer = lamb(weights)
    for step in (1, 2):
        gradients = drawn(step, ((3, 2),))
        give(weights, gradients)
        optimizer.step()
        expected.step(gradients[0])
    assert weights[0].abs().min() > 0
    torch.testing.assert_close(weights[0].detach(), expected.x)


def test_lamb_does_nothing_where_all_is_zero() -> None:
    weights = [torch.zeros(3, 2, requires_grad=True)]
    give(weights, [torch.zeros(3, 2)])
    lamb(weights).step()
    assert torch.equal(weights[0].detach(), torch.zeros(3, 2))


def test_lamb_leaves_alone_what_has_no_gradient() -> None:
    weights = [w.requires_grad_() for w in drawn(0)]
    before = [w.detach().clone() for w in weights]
    weights[0].grad = torch.ones_like(weights[0])
    optimizer = lamb(weights)
    optimizer.step()
    assert not torch.equal(weights[0].detach(), before[0])
    assert all(torch.equal(w.detach(), b) for w, b in zip(weights[1:], before[1:], strict=True))
    assert list(optimizer.state) == weights[:1]


def test_lamb_counts_the_steps_of_each_weight() -> None:
    """A weight that joins later has its own first step."""
    weights = [w.requires_grad_() for w in drawn(0)]
    optimizer, expected = lamb(weights), one_by_one(weights)
    for step in range(1, 7):
        gradients = drawn(step)
        give(weights, gradients)
        live = [i for i in range(len(weights)) if step > 3 or i in (0, 2)]
        for i, weight in enumerate(weights):
            if i in live:
                expected[i].step(gradients[i])
            else:
                weight.grad = None
        optimizer.step()
    for w, e in zip(weights, expected, strict=True):
        torch.testing.assert_close(w.detach(), e.x, rtol=1e-12, atol=1e-12)


def test_matrices_decay_and_vectors_do_not() -> None:
    matrix, vector = torch.ones(2, 2, requires_grad=True), torch.ones(3, requires_grad=True)
    frozen = torch.ones(2, 2)
    groups = parameter_groups([vector, matrix, frozen], 0.1)
    assert [(g["params"], g["weight_decay"]) for g in groups] == [([matrix], 0.1), ([vector], 0.0)]
    assert len(parameter_groups([vector], 0.1)) == 1
    (spared,) = parameter_groups([matrix], 0.1, exempt=[matrix])
    assert spared["weight_decay"] == 0.0


def test_adamw_pulls_matrices_towards_zero_only() -> None:
    matrix, vector = torch.ones(2, 2, requires_grad=True), torch.ones(3, requires_grad=True)
    optimizer = make_optimizer("adamw", [matrix, vector], rate=0.5, weight_decay=0.1)
    assert isinstance(optimizer, torch.optim.AdamW)
    give([matrix, vector], [torch.zeros(2, 2), torch.zeros(3)])
    optimizer.step()
    torch.testing.assert_close(matrix.detach(), torch.full((2, 2), 0.95))
    assert torch.equal(vector.detach(), torch.ones(3))


def test_names_give_optimizers_with_their_settings() -> None:
    weights = [torch.ones(2, 2, requires_grad=True)]
    for name, kind in (("adamw", torch.optim.AdamW), ("lamb", Lamb)):
        made = make_optimizer(name, weights, rate=0.3, weight_decay=0.2, betas=(0.8, 0.9))
        assert type(made) is kind
        group = made.param_groups[0]
        assert (group["lr"], group["weight_decay"], group["betas"]) == (0.3, 0.2, (0.8, 0.9))


SCHEDULES = ("linear", "cosine", "constant")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_rate_rises_in_a_line_to_its_full_height(schedule: str) -> None:
    factors = [learning_rate_factor(s, rise=10, total=100, schedule=schedule) for s in range(100)]
    assert factors[:10] == pytest.approx([(s + 1) / 11 for s in range(10)])
    assert factors[10] == 1
    assert max(factors) == 1
    assert min(factors) > 0, "every update, the last one too, must teach something"
    assert factors[10:] == sorted(factors[10:], reverse=True)


def test_the_rate_falls_as_its_schedule_says() -> None:
    def at(step: int, schedule: str) -> float:
        return learning_rate_factor(step, rise=10, total=110, schedule=schedule)

    assert at(60, "linear") == pytest.approx(0.5)
    assert at(85, "linear") == pytest.approx(0.25)
    assert at(60, "cosine") == pytest.approx(0.5)
    assert at(85, "cosine") == pytest.approx((1 + math.cos(0.75 * math.pi)) / 2)
    assert at(109, "constant") == 1


def test_the_rate_is_zero_at_the_end_and_stays_there() -> None:
    for schedule in ("linear", "cosine"):
        for step in (100, 101, 1000):
            assert learning_rate_factor(step, rise=10, total=100, schedule=schedule) == 0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_without_warm_up_it_begins_at_its_full_height(schedule: str) -> None:
    assert learning_rate_factor(0, rise=0, total=10, schedule=schedule) == 1
    assert learning_rate_factor(0, rise=0, total=1, schedule=schedule) == 1


def test_a_rise_without_a_fall() -> None:
    """All of a run may be warm-up."""
    factors = [learning_rate_factor(s, rise=5, total=5) for s in range(5)]
    assert factors == sorted(factors)
    assert 0 < factors[0] < factors[-1] < 1
