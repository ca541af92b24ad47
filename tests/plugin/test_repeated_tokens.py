"""The study of the documentation: it finds a planted head, and none in a model without one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import planted
import planted_links
import tiny
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.studies import STUDIES
from result_conformance import ResultConformance

sys.path.insert(0, str(Path(__file__).parent / "src"))
from bertology_fertility.repeated_tokens import RepeatedTokens

HEAD = (0, 1)


def looking_for_itself() -> Encoder:
    """A random model but for one head, whose queries and keys are the token's own embedding."""
    model = tiny.model("bert")
    size = model.config.hidden_size // model.config.num_attention_heads
    rows = slice(HEAD[1] * size, (HEAD[1] + 1) * size)
    attention = model.encoder.layer[HEAD[0]].attention.self
    with torch.no_grad():
        model.embeddings.position_embeddings.weight.zero_()
        project = torch.randn(size, model.config.hidden_size)
        for linear in (attention.query, attention.key):
            linear.weight[rows] = 3 * project
            linear.bias[rows] = 0
    return Encoder(model, planted.tokenizer(), name="planted")


def ask(encoder: Encoder) -> Result:
    found: Result = planted_links.ask(RepeatedTokens(resamples=200), encoder, planted.corpus(40))
    return found


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an entry point would: stored results are read as what the study makes them."""
    monkeypatch.setitem(STUDIES._loaded, "repeated-tokens", RepeatedTokens)


class TestResult(ResultConformance):
    measures = frozenset({"repeated-tokens"})

    @staticmethod
    def make() -> Result:
        return ask(looking_for_itself())

    def test_the_planted_head_is_found(self, result: Result) -> None:
        heads = result.table("heads")
        best = heads.loc[heads["excess"].idxmax()]
        assert (best["layer"], best["head"]) == HEAD
        assert best["excess_low"] > 0
        assert result.evidence()["best_head_excess"].low > 0


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_even_attention_has_no_excess(seed: int) -> None:
    model = tiny.model("bert", seed=seed)
    with torch.no_grad():
        for layer in model.encoder.layer:
            layer.attention.self.query.weight.zero_()
            layer.attention.self.query.bias.zero_()
    result = ask(Encoder(model, planted.tokenizer(), name="even"))
    assert result.table("heads")["excess"].abs().max() < 1e-6
    assert result.evidence()["best_head_excess"].high < 1e-6
