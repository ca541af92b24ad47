"""LayerNorm outliers: a planted dimension is found, even weights have none."""

from __future__ import annotations

import pytest
import torch

import bertology as bt
import tiny
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from result_conformance import ResultConformance


def run(store: str, *, planted: float = 0.0) -> Result:
    model = tiny.model("bert")
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for layer in model.encoder.layer:
            weight = layer.output.LayerNorm.weight
            weight.copy_(1 + 0.01 * torch.rand(weight.shape, generator=generator))
            weight[3] += planted
    encoder = Encoder(model, tiny.tokenizer(["a"]), name="tiny")
    return bt.run("norm-outliers", encoder, store=store, progress=False)


class TestResult(ResultConformance):
    measures = frozenset({"norm-outlier"})

    @staticmethod
    def make() -> Result:
        return run("memory://norm-outliers", planted=1.0)


def test_a_planted_dimension_is_found_and_even_weights_have_none(tmp_path: object) -> None:
    found = run(f"{tmp_path}/planted", planted=1.0)
    assert found.evidence()["outlier_dimensions"].value == 1
    assert found.evidence()["largest_sigma"].value > 3
    assert found.arrays["sigmas"].argmax("dimension").to_numpy().tolist() == [3] * len(
        found.table("layers")
    )
    none = run(f"{tmp_path}/even").evidence()
    assert none["outlier_dimensions"].value == 0
    assert none["largest_sigma"].value == pytest.approx(none["largest_sigma"].low)
