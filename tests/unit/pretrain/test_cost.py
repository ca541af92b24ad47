"""Parameters by formula are those of a real model, and widths are matched as near as can be."""

from __future__ import annotations

import pytest
import transformers as hf
from hypothesis import given
from hypothesis import strategies as st

from bertology.train.pretrain.cost import (
    body_flops,
    body_parameters,
    matched_width,
    training_flops,
)


@pytest.mark.parametrize(("layers", "hidden"), [(1, 8), (3, 24)])
def test_parameters_are_those_of_transformers(layers: int, hidden: int) -> None:
    config = hf.BertConfig(
        vocab_size=11, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=4,
        intermediate_size=4 * hidden,
    )  # fmt: skip
    body = hf.BertModel(config).encoder
    assert body_parameters(layers, hidden) == sum(p.numel() for p in body.parameters())


def test_operations_of_a_token_are_two_for_each_weight_and_the_attention() -> None:
    matrices = 4 * 16**2 + 2 * 4 * 16**2
    attention = 2 * 2 * 10 * 16  # scores and weighted sum over a row of ten
    assert body_flops(1, 16, 10) == 2 * matrices + attention
    output = 2 * (16**2 + 16 * 100)
    found = training_flops(2, 16, length=10, vocab_size=100, share=0.5)
    assert found == 3 * (2 * body_flops(1, 16, 10) + output / 2)


@given(st.integers(1, 12), st.integers(1, 16), st.integers(16, 400))
def test_no_other_width_is_nearer(layers: int, heads: int, base: int) -> None:
    wanted = body_parameters(4, base)

    def cost(width: int) -> int:
        return body_parameters(layers, width)

    found = matched_width(cost, wanted, heads=heads)
    assert found % heads == 0
    others = [w for w in (found - heads, found + heads) if w > 0]
    assert all(abs(cost(found) - wanted) <= abs(cost(w) - wanted) for w in others)


def test_the_base_matches_itself() -> None:
    assert matched_width(lambda w: body_flops(4, w, 64), body_flops(4, 128, 64), heads=4) == 128
