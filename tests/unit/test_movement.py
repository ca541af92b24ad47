"""Movement pruning: what training moves towards zero goes, whatever its size."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import planted
from bertology.errors import ParameterError
from bertology.model.weight_masks import WeightMask, prunable
from bertology.model.weight_ranks import without_smallest
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.movement import GradualMagnitude, Movement, _border, highest, share_at

QUICK = FinetuneSettings(epochs=2, batch_size=16, learning_rate=1e-3, seed=3)


def trained(model: nn.Module, movement: Movement, features: torch.Tensor, wanted: torch.Tensor,
            steps: int = 100) -> None:  # fmt: skip
    """A plain gradient descent with movement pruning."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        movement.thin(step / steps)
        optimizer.zero_grad()
        (model(features) - wanted).square().mean().backward()
        movement.learn(1 / steps)
        optimizer.step()
    movement.thin(1.0)


def test_large_weights_that_shrink_go_and_small_ones_that_grow_stay() -> None:
    """Half of the features make the answer; their weights begin small, those of others large."""
    torch.manual_seed(0)
    needed = torch.arange(8) < 4
    features = torch.randn(256, 8)
    wanted = features @ needed.float()[:, None]
    model = nn.Linear(8, 1, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.where(needed, 0.1, 0.9)[None])
    by_size = without_smallest(model, WeightMask.full(model), share=0.5).keeps("weight")
    assert (by_size == ~needed.numpy()).all(), "magnitude keeps what the task does not need"
    movement = Movement(prunable(model), share=0.5)
    trained(model, movement, features, wanted)
    assert (movement.chosen.keeps("weight") == needed.numpy()).all()
    assert (model.weight[0][~needed] == 0).all()
    torch.testing.assert_close(model.weight[0][needed], torch.ones(4), atol=0.05, rtol=0)


def test_scores_learn_as_if_all_weights_were_used() -> None:
    """dL/dS = dL/dW · W, also of a weight that was not used; weights learn where they were used."""
    model = nn.Linear(3, 1, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[2.0, -3.0, 0.5]]))
    movement = Movement(prunable(model), share=1 / 3)
    movement.take({"score/weight": torch.tensor([[1.0, 0.0, 3.0]])})
    movement.thin(1.0)
    assert model.weight.tolist() == [[0.0, 0.0, 0.5]]
    model(torch.tensor([[1.0, 1.0, -1.0]])).sum().backward()
    movement.learn(0.01)
    assert model.weight.tolist() == [[2.0, -3.0, 0.5]], "whole again"
    assert model.weight.grad is not None
    assert model.weight.grad.tolist() == [[0.0, 0.0, -1.0]]
    moved = movement.state()["score/weight"] - torch.tensor([[1.0, 0.0, 3.0]])
    # Adam's first step is the sign of -dL/dS, and the gradients by hand are 2, -3 and -0.5.
    torch.testing.assert_close(moved, torch.tensor([[-0.01, 0.01, 0.01]]))
    first = movement.state()["exp_avg/weight"]
    torch.testing.assert_close(first, torch.tensor([[2.0, -3.0, -0.5]]))


def test_where_nothing_goes_it_is_plain_fine_tuning() -> None:
    data = planted.corpus(60, seed=1), planted.corpus(20, seed=2)
    plain, moved = (planted.model(spoil=2.0) for _ in range(2))
    movement = Movement(prunable(moved), share=1.0)
    histories = [
        finetune(plain, planted.tokenizer(), *data, settings=QUICK),
        finetune(moved, planted.tokenizer(), *data, settings=QUICK, movement=movement),
    ]
    assert [e.loss for e in histories[0].epochs] == [e.loss for e in histories[1].epochs]
    for name, weight in plain.state_dict().items():
        assert torch.equal(weight, moved.state_dict()[name]), name


def test_as_many_stay_as_asked_for_in_every_matrix() -> None:
    model = planted.model(spoil=2.0)
    movement = Movement(prunable(model), share=0.25)
    finetune(
        model, planted.tokenizer(), planted.corpus(60, seed=1), planted.corpus(20, seed=2),
        settings=QUICK, movement=movement,
    )  # fmt: skip
    mask = movement.chosen
    for name, weight in mask.check(model).items():
        assert mask.kept_in(name) == round(0.25 * weight.numel())
        assert (weight.detach().numpy()[~mask.keeps(name)] == 0).all()


def test_the_share_falls_as_a_cubic_between_the_first_and_last_steps() -> None:
    assert [share_at(done, 0.2) for done in (0.0, 0.1)] == [1.0, 1.0]
    assert share_at(0.4, 0.2) == pytest.approx(0.2 + 0.8 * 0.5**3)
    assert [share_at(done, 0.2) for done in (0.7, 0.9, 1.0)] == pytest.approx([0.2] * 3)


def test_of_equal_scores_the_first_stay() -> None:
    scores = torch.tensor([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])
    assert highest(scores, 3).tolist() == [[True, True, True], [False, False, False]]
    assert highest(scores, 1).tolist() == [[False, True, False], [False, False, False]]
    for count, all_or_none in ((6, True), (0, False)):
        assert bool(highest(scores, count).any()) is all_or_none
    with pytest.raises(ParameterError, match="above 0 and at most 1"):
        Movement({}, share=0.0)


def test_on_a_gpu_the_border_is_found_by_sorting_and_is_the_same() -> None:
    torch.manual_seed(0)
    scores = torch.randn(40 * 50).round(decimals=1)  # many of them equal
    for place in (0, 1, 700, 1998, 1999):
        one, other = (_border(scores, place, sort=sort) for sort in (True, False))
        assert torch.equal(one, other), place


def test_a_weight_that_is_gone_keeps_its_value_whatever_the_optimizer_does() -> None:
    """Adam moves by momentum, and decay pulls at all, where a gradient is 0."""
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(20, 20))
    going = GradualMagnitude({"w": weight}, share=0.3)
    optimizer = torch.optim.AdamW([weight], lr=0.1, weight_decay=0.5)
    pulled, moved = 0, 0
    for step in range(40):
        going.thin(step / 40)
        before, stays = going._whole["w"].clone(), going._stays["w"].clone()
        weight.grad = torch.randn(20, 20)
        going.learn(0.0)
        optimizer.step()
        pulled += int((weight != before)[~stays].sum())
        if step % 10 == 9:  # as after an epoch: what is saved has the values, too
            with going.thinned(step / 40):
                assert (weight == 0).sum() >= (~stays).sum()
        else:
            going.thin(step / 40)
            going.restore()
        assert torch.equal(weight[~stays], before[~stays])
        moved += int((weight != before)[stays].sum())
    assert pulled > 1000, "or there is nothing to take back"
    assert moved > 1000
