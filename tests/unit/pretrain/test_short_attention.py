"""Our attention for short rows is attention: on a GPU by its kernels, elsewhere by torch's own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from bertology.train.fresh import Architecture, fresh_bert
from bertology.train.pretrain.short_attention import (
    LONGEST_ROW,
    WIDTHS,
    _attend,
    short_attention,
    use_short_attention,
)

SIZE = Architecture(layers=1, heads=2, hidden=32, max_length=32)
on_a_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def heads(length: int, width: int, *, batch: int = 3, number: int = 4, seed: int = 0) -> Tensor:
    """(B, H, T, D) as a projection gives it: in memory it is (B, T, H, D)."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(batch, length, number, width, generator=draw).transpose(1, 2)


def exact(
    query: Tensor, key: Tensor, value: Tensor, grad: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The result, (B, T, H, D), and the three gradients, all in float64."""
    given = [t.detach().double().requires_grad_() for t in (query, key, value)]
    scores = given[0] @ given[1].transpose(2, 3) / query.shape[3] ** 0.5
    out = (scores.softmax(-1) @ given[2]).transpose(1, 2)
    return out.detach(), torch.autograd.grad(out, given, grad.double())


def apart(one: Tensor, other: Tensor) -> float:
    """The largest difference beside the largest number there is.

    All numbers may be 0: a single token attends to itself, whatever the scores.
    """
    largest = max(float(other.abs().max()), 1e-3)
    return float((one.double().cpu() - other.cpu()).abs().max()) / largest


class TestOnAGpu:
    pytestmark = on_a_gpu

    @pytest.mark.parametrize("width", WIDTHS)
    @pytest.mark.parametrize("length", [1, 37, 100, LONGEST_ROW])
    def test_kernels_compute_attention_and_its_gradients(self, length, width):
        given = [heads(length, width, seed=s).to("cuda", torch.bfloat16) for s in range(3)]
        grad = heads(length, width, seed=3).transpose(1, 2).to("cuda", torch.bfloat16)
        expected, gradients = exact(*given, grad)
        own = [t.detach().requires_grad_() for t in given]
        out = short_attention(*own, width**-0.5)
        found = torch.autograd.grad(out, own, grad)
        assert out.shape == expected.shape
        assert out.dtype == torch.bfloat16
        for one, other in zip((out.detach(), *found), (expected, *gradients), strict=True):
            assert apart(one, other) < 0.02  # bfloat16 has 8 bits

    @pytest.mark.parametrize("length", [37, LONGEST_ROW])
    def test_it_is_as_good_as_torchs_own_in_bfloat16(self, length):
        given = [heads(length, 16, seed=s).to("cuda", torch.bfloat16) for s in range(3)]
        expected, _ = exact(*given, torch.zeros_like(given[0].transpose(1, 2)))
        ours = apart(short_attention(*given, 0.25), expected)
        theirs = apart(functional.scaled_dot_product_attention(*given).transpose(1, 2), expected)
        assert ours < 2 * theirs + 1e-3

    def test_large_scores_do_not_overflow(self):
        query, key, value = (heads(50, 16, seed=s).to("cuda", torch.bfloat16) for s in range(3))
        out = short_attention(100 * query, 100 * key, value, 0.25)
        assert torch.isfinite(out).all()

    def test_what_lies_elsewhere_in_memory_is_read_as_it_is(self):
        """Heads that are already apart, and a gradient that was turned round."""
        given = [heads(37, 32, seed=s).to("cuda", torch.bfloat16) for s in range(3)]
        own = [t.contiguous().requires_grad_() for t in given]
        out = short_attention(*own, 32**-0.5)
        grad = heads(37, 32, seed=3).to("cuda", torch.bfloat16)
        turned = grad.transpose(1, 2).transpose(2, 3).contiguous().transpose(2, 3)
        assert turned.stride(-1) != 1
        expected, gradients = exact(*given, turned)
        found = torch.autograd.grad(out, own, turned)
        for one, other in zip((out.detach(), *found), (expected, *gradients), strict=True):
            assert apart(one, other) < 0.02

    def test_a_model_that_uses_it_says_the_same(self, tokenizer):
        torch.manual_seed(0)
        ids = torch.randint(5, len(tokenizer), (4, 32), device="cuda")
        model = fresh_bert("BertForPreTraining", SIZE, tokenizer).to("cuda", torch.bfloat16)
        real = torch.ones_like(ids)
        real[:, 20:] = 0
        with torch.no_grad():
            before = [model(ids).prediction_logits, model(ids, real).prediction_logits]
            use_short_attention(model)
            after = [model(ids).prediction_logits, model(ids, real).prediction_logits]
        for one, other in zip(after, before, strict=True):
            assert apart(one, other.double()) < 0.05  # two roundings of a whole model


def test_a_model_on_a_cpu_keeps_its_attention(tokenizer):
    model = fresh_bert("BertForPreTraining", SIZE, tokenizer)
    before = model.config._attn_implementation
    use_short_attention(model)
    assert model.config._attn_implementation == before


class Layer(torch.nn.Module):
    """What transformers asks of the module whose attention it is."""

    is_causal = False


def called(attend: Any, length: int, width: int, mask: Tensor | None, **options: Any) -> Tensor:
    kind = options.pop("kind", torch.bfloat16)
    given = [heads(length, width, seed=s).to(kind) for s in range(3)]
    out: Tensor = attend(Layer().eval(), *given, mask, **options)[0]
    return out


@pytest.mark.parametrize("scaling", [None, 0.1])
@pytest.mark.parametrize("boolean", [True, False])
def test_with_a_mask_it_is_torchs_own(boolean, scaling):
    sees = torch.rand(3, 1, 9, 9, generator=torch.Generator().manual_seed(4)) < 0.7
    sees |= torch.eye(9, dtype=torch.bool)
    mask = sees if boolean else torch.zeros(sees.shape).masked_fill(~sees, -1e9)
    expected = called(
        ALL_ATTENTION_FUNCTIONS["sdpa"], 9, 16, mask, scaling=scaling, kind=torch.float32
    )
    assert torch.equal(called(_attend, 9, 16, mask, scaling=scaling, kind=torch.float32), expected)
    plain = [heads(9, 16, seed=s) for s in range(3)]
    scores = plain[0] @ plain[1].transpose(2, 3) * (0.25 if scaling is None else scaling)
    by_hand = scores.masked_fill(~sees, -torch.inf).softmax(-1) @ plain[2]
    torch.testing.assert_close(expected, by_hand.transpose(1, 2))


@pytest.mark.parametrize(("length", "width"), [(LONGEST_ROW + 1, 16), (9, 24), (9, 128)])
def test_what_does_not_fit_goes_to_torchs_own(length, width):
    expected = called(ALL_ATTENTION_FUNCTIONS["sdpa"], length, width, None)
    assert torch.equal(called(_attend, length, width, None), expected)


def test_float32_goes_to_torchs_own():
    """Who wants it exact gets it exact, on every device."""
    expected = called(ALL_ATTENTION_FUNCTIONS["sdpa"], 9, 16, None, kind=torch.float32)
    assert torch.equal(called(_attend, 9, 16, None, kind=torch.float32), expected)


def test_dropout_goes_to_torchs_own():
    torch.manual_seed(0)
    expected = called(ALL_ATTENTION_FUNCTIONS["sdpa"], 9, 16, None, dropout=0.5)
    torch.manual_seed(0)
    assert torch.equal(called(_attend, 9, 16, None, dropout=0.5), expected)


@pytest.mark.parametrize("width", WIDTHS)
def test_shapes_are_known_without_a_gpu(width):
    """What the compiler is told: (B, T, H, D), and gradients as their inputs."""
    with torch._subclasses.FakeTensorMode():
        given = [torch.empty(3, 37, 4, width).transpose(1, 2).requires_grad_() for _ in range(3)]
        out = short_attention(*given, 0.25)
        assert out.shape == (3, 37, 4, width)
        assert out.is_contiguous()
        found = torch.autograd.grad(out, given, torch.empty_like(out))
        assert all(f.shape == g.shape for f, g in zip(found, given, strict=True))
