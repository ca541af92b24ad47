"""Predictions at some positions are those that the whole head gives there."""

from __future__ import annotations

import pytest
import torch

import tiny
from bertology.model.batch import Batch
from bertology.model.encoder import Encoder
from bertology.model.families import Capability, family_of
from bertology.model.masked_lm.narrow_head import run_predicting

FAMILIES = [
    name
    for name in tiny.ROWS
    if name == "deberta-v3" or Capability.MASKED_LM in family_of(name).capabilities
]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_scores_at_fewer_places(family: str) -> None:
    encoder = Encoder(tiny.model(family, "mlm"), head="mlm", name=family)
    given = {key: value[:1] for key, value in tiny.inputs().items()}
    batch = Batch(given, [0], None)
    whole = encoder.run(given).logits[0]
    for positions in ([2, 5], [4], [], list(range(9))):
        _, found = run_predicting(encoder, batch, [positions])
        torch.testing.assert_close(found[0], whole[positions])
    assert torch.equal(encoder.run(given).logits[0], whole), "the model is as it was"


def test_a_failed_run_leaves_nothing_behind() -> None:
    encoder = Encoder(tiny.model("bert", "mlm"), head="mlm", name="tiny")
    given = {key: value[:1] for key, value in tiny.inputs().items()}
    batch = Batch(given, [0], None)
    with pytest.raises(IndexError):
        run_predicting(encoder, batch, [[99]])
    assert encoder.run(given).logits.shape[1] == 9
