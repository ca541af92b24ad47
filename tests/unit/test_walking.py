"""Our ways through a model find what torch's own find."""

from __future__ import annotations

import pytest
from torch import nn

from bertology.model.hooks.walking import evaluating, every_module, submodule


class Shared(nn.Module):
    """One module in two places, and a place without any."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Sequential(nn.Linear(2, 2), nn.ModuleList([nn.GELU()]))
        self.two = self.one[0]
        self.register_module("none", None)


def test_every_module_is_found_once() -> None:
    model = Shared()
    found = every_module(model)
    assert found[0] is model
    assert len(found) == len(set(found))
    assert set(found) == set(model.modules())


def test_a_path_leads_where_torch_says() -> None:
    model = Shared()
    for path in ("one", "one.0", "one.1.0", "two"):
        assert submodule(model, path) is model.get_submodule(path)


@pytest.mark.parametrize("path", ["three", "one.5", "none", "none.weight", "one.0.weight"])
def test_a_path_that_leads_nowhere_is_refused(path: str) -> None:
    with pytest.raises(AttributeError, match="has no module"):
        submodule(Shared(), path)


def test_each_module_gets_its_own_mode_back() -> None:
    model = Shared().train()
    model.one[1].eval()
    before = {m: m.training for m in model.modules()}
    with evaluating(model):
        assert not any(m.training for m in model.modules())
    assert {m: m.training for m in model.modules()} == before
