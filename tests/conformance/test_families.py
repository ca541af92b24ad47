"""Every family × every capability, on tiny random models."""

from __future__ import annotations

from typing import Literal

import checks
import pytest
import torch

import tiny
from bertology.errors import CapabilityError
from bertology.model.encoder import Encoder
from bertology.model.families import FAMILIES, Capability
from bertology.model.interventions import GateHead, KnockOutEdges, UniformAttention, ZeroHead

FAMILY = pytest.mark.parametrize("name", tiny.ROWS)


@FAMILY
def test_family_gives_exactly_what_its_row_says(name: str) -> None:
    """Runs every check: the table in the docs is what the rows say."""
    encoder = checks.encoder_of(name)
    family = encoder.family
    for capability in family.lacks - {Capability.MASKED_LM}:
        with pytest.raises(CapabilityError, match=str(capability)):
            encoder.require(capability)
    for capability in sorted(family.capabilities):
        checks.CHECKS[capability](encoder, tiny.inputs())


def test_every_family_has_a_conformance_row() -> None:
    tested = {tiny.config(name).model_type for name in tiny.ROWS}
    assert tested == set(FAMILIES.names())


@FAMILY
def test_padding_changes_nothing(name: str) -> None:
    encoder, inputs = checks.encoder_of(name), tiny.inputs()
    other = {k: v.clone() for k, v in inputs.items()}
    other["input_ids"][~checks.real(inputs)] = 7
    if name in ("xlm", "bart", "mobilebert"):
        # XLM and BART find padding by its id as well; MobileBERT's embeddings are trigrams, which
        # look at the next token whether it is padding or not.
        other["input_ids"] = inputs["input_ids"]
    for how in ({}, {"do": UniformAttention([(0, 1), (1, 2)])}, {"do": ZeroHead([(0, 0)])}):
        checks.close(checks.final(encoder, inputs, **how), checks.final(encoder, other, **how))
    if name == "mobilebert":
        return
    alone = {k: v[1:2, :7] for k, v in inputs.items()}
    whole = checks.final(encoder, alone, do=UniformAttention([(1, 2)]))
    both = encoder.run(inputs, do=UniformAttention([(1, 2)]), record="layer.*.residual")
    checks.close(both["layer.*.residual"][-1, 1, :7], whole, 1e-4)


@FAMILY
def test_model_is_left_as_it_was_found(name: str) -> None:
    encoder, inputs = checks.encoder_of(name), tiny.inputs()
    config, implementation = encoder.model.config, encoder.model.config._attn_implementation
    attributes = {m: set(m.__dict__) for m in encoder.model.modules()}
    before = encoder.run(inputs).logits

    def spoil(*_: object) -> None:
        raise RuntimeError("in the middle of a run")

    class Spoiler:
        update = staticmethod(spoil)

    everything = ["layer.*.head.*.pattern", "layer.*.residual", "layer.*.mlp"]
    encoder.run(inputs, record=everything, do=UniformAttention([(1, 2)]))
    with pytest.raises(RuntimeError, match="in the middle"):
        encoder.run(inputs, reduce={"layer.1.head.*.pattern": Spoiler()}, record=everything)
    assert encoder.model.config is config
    assert config._attn_implementation == implementation
    for module in encoder.model.modules():
        assert set(module.__dict__) == attributes[module]
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
    assert torch.equal(encoder.run(inputs).logits, before)


@FAMILY
@pytest.mark.parametrize("toward", ["zero", "uniform"])
def test_gate_gradient_is_the_slope(name: str, toward: Literal["zero", "uniform"]) -> None:
    encoder, inputs = checks.encoder_of(name), tiny.inputs()
    encoder.model.double()

    def loss(xi: torch.Tensor) -> torch.Tensor:
        trace = encoder.run(inputs, do=GateHead(xi, toward), gradients=True)
        return trace.logits[0, :5].double().tanh().sum()

    xi = torch.full((encoder.shape.layers, encoder.shape.heads), 0.7, dtype=torch.float64)
    xi.requires_grad_()
    (slope,) = torch.autograd.grad(loss(xi), xi)
    # Several families compute norms or positions in single precision whatever the weights are,
    # so the step must not be too small.
    step = torch.zeros_like(xi)
    step[1, 2] = 2e-3
    with torch.no_grad():
        measured = (loss(xi + step) - loss(xi - step)) / 4e-3
    tolerance = 0.1 if name == "mobilebert" else 2e-2  # without norms its curvature is large
    torch.testing.assert_close(slope[1, 2], measured, rtol=tolerance, atol=2e-3)


@FAMILY
def test_knocked_out_edges_carry_nothing(name: str) -> None:
    encoder, inputs = checks.encoder_of(name), tiny.inputs()
    cut = KnockOutEdges([(3, 1), (3, 2)], heads=[(1, 2)])
    trace = encoder.run(inputs, do=cut, record=["layer.1.head.*.pattern"])
    before = encoder.run(inputs, record="layer.1.head.2.pattern")["layer.1.head.2.pattern"]
    after = trace["layer.1.head.2.pattern"]
    assert after[:, 3, 1:3].abs().max() == 0
    checks.close(after[:, 3].sum(-1), torch.ones(3))
    left = before[:, 3].clone()
    left[:, 1:3] = 0
    checks.close(after[:, 3], left / left.sum(-1, keepdim=True), 1e-4)
    checks.close(after[:, 4], before[:, 4])


def test_decoder_and_cross_attention_of_bart() -> None:
    encoder, inputs = checks.encoder_of("bart"), tiny.inputs()
    reference = checks.eager(encoder, inputs)
    names = ["decoder.layer.*.head.*.pattern", "cross.layer.*.head.*.pattern"]
    trace = encoder.run(inputs, record=names)
    real = checks.real(inputs)[:, None, :].expand(-1, 4, -1)
    for name, expected in zip(
        names, (reference.decoder_attentions, reference.cross_attentions), strict=True
    ):
        for layer, weights in enumerate(expected):
            checks.close(trace[name][layer][real], weights[real])
    off = encoder.run(
        inputs, do=UniformAttention([(0, 1)], stack="cross"), record="cross.layer.0.head.1.pattern"
    )
    lengths = checks.real(inputs).sum(-1)
    checks.close(off["cross.layer.0.head.1.pattern"].amax((1, 2)), 1 / lengths)


def test_query_of_zero_is_an_independent_uniform_attention() -> None:
    """With its query weights at zero a BERT head scores every key alike: uniform by itself."""
    encoder, inputs = checks.encoder_of("bert"), tiny.inputs()
    disabled = checks.final(encoder, inputs, do=UniformAttention([(1, 2)]))
    query = encoder.module("encoder.layer.{i}.attention.self.query", 1)
    with torch.no_grad():
        query.weight[12:18] = 0
        query.bias[12:18] = 0
    checks.close(Encoder(encoder.model).run(inputs).logits[checks.real(inputs)], disabled)
