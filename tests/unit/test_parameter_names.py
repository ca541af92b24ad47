"""Full names of parameters: found cheaply, and never out of date."""

from __future__ import annotations

import pytest
import torch

import tiny
from bertology.model.encoder import Encoder
from bertology.model.weight_edits import ZeroLayerNorm


def test_names_of_parameters_are_looked_up_once_and_anew_where_one_was_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = Encoder(tiny.model("bert"))
    scans, scan = [], encoder.model.named_parameters
    monkeypatch.setattr(
        encoder.model, "named_parameters", lambda *a, **k: scans.append(1) or scan(*a, **k)
    )
    edit = ZeroLayerNorm([1])
    names = list(edit.weights(encoder))
    assert list(edit.weights(encoder)) == names
    assert len(scans) == 1
    known = dict(scan())
    assert set(names) <= set(known)
    norm = encoder.base.encoder.layer[0].output.LayerNorm
    norm.weight = torch.nn.Parameter(norm.weight.detach() * 2)
    found = edit.weights(encoder)
    assert list(found) == names
    assert len(scans) == 2
    (name,) = (n for n, p in scan() if p is norm.weight)
    assert torch.equal(found[name][2:], norm.weight[2:])
