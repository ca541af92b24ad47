"""What holds for every loss."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

import tiny_rows
from bertology.errors import UnknownNameError
from bertology.train.pretrain.chance import Chance
from bertology.train.pretrain.config import LOSSES, Objective, Stage
from bertology.train.pretrain.losses import make_loss
from bertology.train.pretrain.network import Network

START = {
    "sentence": math.log(2),
    "replaced": math.log(tiny_rows.VOCAB) + 50 * math.log(2),
} | dict.fromkeys(("mlm", "boundary", "order", "permutation"), math.log(tiny_rows.VOCAB))
RANDOM = "order", "permutation", "replaced"  # those that draw something themselves


@pytest.mark.parametrize("name", LOSSES)
def test_begins_with_even_predictions(name: str) -> None:
    ran = tiny_rows.run(tiny_rows.loss(name), tiny_rows.model(), tiny_rows.view(tiny_rows.rows()))
    assert ran.outcome.loss.item() == pytest.approx(START[name], rel=0.03)
    assert 0 <= ran.outcome.correct <= ran.outcome.count


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_reach_the_body_and_the_loss_itself(name: str) -> None:
    judge, body = tiny_rows.loss(name), tiny_rows.model()
    tiny_rows.run(judge, body, tiny_rows.view(tiny_rows.rows())).outcome.loss.backward()
    for weight in (*body.bert.encoder.parameters(), *body.bert.embeddings.parameters()):
        assert weight.grad is not None
        assert weight.grad.isfinite().all()
    assert body.bert.encoder.layer[0].attention.self.value.weight.grad.abs().sum() > 0
    for own in judge.parameters():
        assert own.grad is not None


@pytest.mark.parametrize("name", LOSSES)
def test_a_batch_can_be_learnt_by_heart(name: str) -> None:
    judge, body = tiny_rows.loss(name), tiny_rows.model()
    seen = tiny_rows.view(tiny_rows.rows(2), units="words")
    learner = torch.optim.AdamW([*body.parameters(), *judge.parameters()], lr=0.01)
    for _ in range(80):
        learner.zero_grad()
        end = tiny_rows.run(judge, body, seen).outcome
        if end.loss.item() < START[name] / 4 and end.correct / end.count > 0.9:
            return
        end.loss.backward()
        learner.step()
    pytest.fail(f"after 80 steps, the loss is {end.loss.item()}")


@pytest.mark.parametrize("name", LOSSES)
def test_padding_does_not_matter(name: str) -> None:
    rows = tiny_rows.rows()
    assert rows.real is not None
    seen = tiny_rows.view(rows)
    other = replace(rows, ids=torch.where(rows.real, rows.ids, 17))
    hidden = replace(seen.hidden, ids=torch.where(rows.real, seen.hidden.ids, 17))
    changed = type(seen).masked(other, hidden, seen.pieces)
    judge, body = tiny_rows.loss(name), tiny_rows.model(spread=0.3)
    before = tiny_rows.run(judge, body, seen).outcome
    after = tiny_rows.run(judge, body, changed).outcome
    assert after.loss.item() == pytest.approx(before.loss.item(), abs=1e-5)
    assert after.correct == before.correct
    assert after.count == before.count


@pytest.mark.parametrize("name", LOSSES)
def test_the_same_chance_gives_the_same(name: str) -> None:
    judge, body = tiny_rows.loss(name), tiny_rows.model(spread=0.3)
    seen = tiny_rows.view(tiny_rows.rows())
    one, two, other = (tiny_rows.run(judge, body, seen, seed=s) for s in (1, 1, 2))
    assert one.outcome.loss == two.outcome.loss
    assert (one.outcome.loss != other.outcome.loss) == (name in RANDOM)


@pytest.mark.parametrize("name", RANDOM)
def test_a_row_is_treated_alike_wherever_it_stands(name: str) -> None:
    rows = tiny_rows.rows()
    turned = replace(
        rows,
        **{
            field: getattr(rows, field).flip(0)
            for field in ("ids", "segments", "fixed", "starts", "index", "real", "relation")
        },
    )
    judge, body = tiny_rows.loss(name), tiny_rows.model()
    one = tiny_rows.run(judge, body, tiny_rows.view(rows)).view.inputs
    two = tiny_rows.run(judge, body, tiny_rows.view(turned)).view.inputs
    for key, values in one.items():
        assert values.equal(two[key].flip(0)), key


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # some CPUs are slow at it, and say so
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", LOSSES)
def test_in_bfloat16(name: str, attention: str) -> None:
    seen = tiny_rows.view(tiny_rows.rows())
    body, judge = tiny_rows.model(attention=attention), tiny_rows.loss(name)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = tiny_rows.run(judge, body, seen).outcome
    rounded = tiny_rows.run(judge.bfloat16(), body.bfloat16(), seen).outcome
    for outcome in (mixed, rounded):
        assert outcome.loss.dtype == torch.float32
        assert outcome.loss.item() == pytest.approx(START[name], rel=0.03)
    rounded.loss.backward()
    assert body.bert.embeddings.word_embeddings.weight.grad.isfinite().all()


@pytest.mark.parametrize("name", ["boundary", "replaced"])
def test_own_weights_follow_the_seed(name: str) -> None:
    one, two, other = (tiny_rows.loss(name, seed=s).state_dict() for s in (1, 1, 2))
    assert all(one[key].equal(two[key]) for key in one)
    assert any(not one[key].equal(other[key]) for key in one)


def _network(names: tuple[str, ...]) -> Network:
    objective = Objective(pairing="full-sentences", losses=names)
    return Network(tiny_rows.model(), (Stage(objective),), tiny_rows.SIZE)


@pytest.mark.parametrize(
    "names", [("mlm", "boundary"), ("mlm", "boundary", "order"), ("permutation",), ("replaced",)]
)
def test_in_a_network(names: tuple[str, ...]) -> None:
    told: dict[str, Any] = _network(names)(tiny_rows.rows(), tiny_rows.pieces(), Chance(0))
    assert tuple(told) == names
    assert all(outcome.loss.isfinite() for outcome in told.values())


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="boundary"):
        make_loss("boundery", Objective(), tiny_rows.SIZE, tiny_rows.VOCAB)
