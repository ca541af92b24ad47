"""Inputs that are rounded to whole numbers: products, ranges, and training for them."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import tiny
from bertology.model.compressed import input_ranges, integer_product, quantised, rehearsal


def logits(model: Any) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(**tiny.inputs()).logits
        return found


def close(a: Tensor, b: Tensor, within: float = 1e-5) -> None:
    torch.testing.assert_close(a, b, atol=within, rtol=within)


@pytest.fixture
def model() -> Any:
    return tiny.model("bert", "classification")


@pytest.mark.parametrize("span", [None, (-1.5, 2.0), (0.0, 0.0), (-1.5, 0.0)], ids=str)
@pytest.mark.parametrize("overflows", [False, True])
def test_products_of_whole_numbers_are_those_of_rounded_inputs(
    span: tuple[float, float] | None, overflows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = None if span is None else torch.tensor(span)
    known = given if integer_product.is_known(given) else None
    monkeypatch.setattr(integer_product, "_overflows", lambda: overflows)
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(-127, 128, (8, 16), generator=generator).to(torch.int8)
    step = torch.rand(8, generator=generator) / 100
    bias, states = torch.randn(8, generator=generator), torch.randn(3, 5, 16, generator=generator)
    near = integer_product.rounded_input(states, known)
    exact = nn.functional.linear(near, codes.float() * step[:, None], bias)
    close(integer_product.plain_product(codes, step, bias, given)(states), exact, 1e-4)
    least, most = (float(states.min()), float(states.max())) if known is None else span or (0, 0)
    if known is not None:
        assert near.min() >= least - 0.01
        assert near.max() <= most + 0.01
    # A tie may be rounded either way; with 7 bits all are rounded to steps of twice the size.
    one_step = (most - least) / 255
    fused = integer_product.integer_product(codes, step, bias, given)(states)
    within = one_step * float(step.max()) * 127
    assert (fused - exact).abs().max() <= within * (30 if overflows else 1)
    assert (exact - nn.functional.linear(states, codes.float() * step[:, None], bias)).any()


def test_products_that_overflow_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    integer_product._overflows.cache_clear()
    exact = torch.ops.quantized.linear_dynamic
    assert integer_product._overflows() in (False, True)
    integer_product._overflows.cache_clear()
    halved = SimpleNamespace(
        linear_prepack=torch.ops.quantized.linear_prepack,
        linear_dynamic=lambda *given: exact(*given) / 2,
    )
    monkeypatch.setattr(torch.ops, "quantized", halved)
    assert integer_product._overflows()
    integer_product._overflows.cache_clear()


def test_a_rehearsal_computes_what_the_quantised_model_will(model: Any) -> None:
    names = list(model.state_dict())
    ranges: dict[str, Tensor] = {}
    with rehearsal.rehearsed(model, ranges=ranges):
        weights = [name for name in model.state_dict() if not name.endswith("input_range")]
        assert weights == names
        first = logits(model)  # in ranges of its own, as nothing was learnt yet
        model.train()
        model(**tiny.inputs()).logits.sum().backward()
        model.eval()
        expected = logits(model)
    assert list(model.state_dict()) == names
    slopes = model.bert.encoder.layer[0].attention.self.query.weight.grad
    assert slopes is not None
    assert slopes.abs().max() > 0
    assert (logits(model) - expected).abs().max() > 1e-4  # it is over
    made = quantised.quantise(copy.deepcopy(model), activations=8, ranges=ranges)
    close(logits(made), expected, 0.02)
    assert (logits(made) - expected).abs().max() < (first - expected).abs().max()


def test_ranges_are_running_means_over_real_tokens(model: Any) -> None:
    """The tables are planted, so that the inputs of the first maps are known."""
    table = model.get_input_embeddings().weight.data.zero_()
    for other in (model.bert.embeddings.position_embeddings.weight.data,
                  model.bert.embeddings.token_type_embeddings.weight.data):  # fmt: skip
        other.zero_()
    model.bert.embeddings.LayerNorm = nn.Identity()
    model.bert.embeddings.dropout = nn.Identity()
    table[7, 0], table[8, 1], table[9, 2] = 4.0, -2.0, 50.0
    mask = torch.tensor([[1, 1, 0]])
    ranges: dict[str, Tensor] = {}
    query = "encoder.layer.0.attention.self.query"
    with rehearsal.rehearsed(model.train(), maps="layers", ranges=ranges):
        for ids in ([7, 8, 9], [7, 7, 9]):
            model(input_ids=torch.tensor([ids]), attention_mask=mask)
    close(ranges[query], torch.tensor([0.99 * -2.0, 4.0]))
    batches = [{"input_ids": torch.tensor([ids]), "attention_mask": mask}
               for ids in ([7, 8, 9], [7, 7, 9])]  # fmt: skip
    widest = input_ranges.watched_ranges(model, batches)
    close(widest[query], torch.tensor([-2.0, 4.0]))
    assert model.training
