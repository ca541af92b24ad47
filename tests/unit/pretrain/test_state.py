"""What a run remembers: whole or not at all, read back to the bit, and refused when damaged."""

from __future__ import annotations

import errno
import json
import os
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from bertology.errors import StoreError
from bertology.train.optimizers import make_optimizer
from bertology.train.pretrain import state
from bertology.train.pretrain.config import Pretraining
from bertology.train.pretrain.state import Snapshot
from bertology.train.pretrain.weights import Weights


def snapshot(step: int) -> Snapshot:
    draw = torch.Generator().manual_seed(step)

    def tensor(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw)

    return Snapshot(
        numbers={"step": step, "places": [{"turn": 1, "row": 8}]},
        weights={"model.a": tensor(2, 3), "losses.0/b": tensor(4)},
        memory={
            "exp_avg": {"model.a": tensor(2, 3), "losses.0/b": tensor(4)},
            "step": {"model.a": torch.tensor(float(step))},
        },
        chance={"cpu": draw.get_state()},
    )


def assert_same(one: Snapshot | None, other: Snapshot) -> None:
    assert one is not None
    assert one.numbers == other.numbers
    pairs: list[tuple[dict[str, Tensor], dict[str, Tensor]]] = [
        (one.weights, other.weights),
        (one.chance, other.chance),
        *((one.memory[key], other.memory[key]) for key in other.memory),
    ]
    assert one.memory.keys() == other.memory.keys()
    for a, b in pairs:
        assert a.keys() == b.keys()
        assert all(torch.equal(a[name], b[name]) and a[name].dtype == b[name].dtype for name in a)


def test_what_is_written_is_read(tmp_path):
    folder = tmp_path / "run" / "state"
    assert state.read(folder) is None
    assert state.read_numbers(folder) is None
    for step in (1, 2):
        state.write(folder, snapshot(step))
        assert_same(state.read(folder), snapshot(step))
        assert state.read_numbers(folder) == snapshot(step).numbers
    assert [p.name for p in folder.parent.iterdir()] == ["state"], "nothing else is left"
    assert {p.name for p in folder.iterdir()} == {"state.json", "state.safetensors"}


class KilledError(BaseException):
    """Not an error that anything would catch."""


@pytest.mark.parametrize("at", [1, 2])
def test_killed_between_renames_the_last_whole_one_counts(tmp_path, monkeypatch, at):
    """The first rename moves the old state away, the second puts the new one in its place."""
    folder = tmp_path / "state"
    state.write(folder, snapshot(1))
    rename, calls = Path.rename, []

    def killed(self: Path, target: Any) -> Path:
        calls.append(target)
        if len(calls) == at:
            raise KilledError
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        with pytest.raises(KilledError):
            state.write(folder, snapshot(2))
    assert_same(state.read(folder), snapshot(1))
    assert state.read_numbers(folder) == snapshot(1).numbers
    state.write(folder, snapshot(3))
    assert_same(state.read(folder), snapshot(3))
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


def test_what_a_killed_run_left_half_written_goes(tmp_path):
    folder = tmp_path / "state"
    for name in (".state.0123abcd", ".state.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.safetensors").write_bytes(b"half")
        os.utime(tmp_path / name, (0, 0))
    assert state.read(folder) is None
    state.write(folder, snapshot(1))
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("state.safetensors", b""),
        ("state.safetensors", b"no tensors at all"),
        ("state.json", b"{"),
        ("state.json", b"\xff\xfe"),
    ],
)
def test_a_damaged_state_is_refused(tmp_path, name, content):
    folder = tmp_path / "state"
    state.write(folder, snapshot(1))
    (folder / name).write_bytes(content)
    with pytest.raises(StoreError, match=r"cannot be read") as refused:
        state.read(folder)
    assert str(folder) in str(refused.value)
    assert "start again" in str(refused.value.hint)


def test_a_truncated_state_is_refused(tmp_path):
    folder = tmp_path / "state"
    state.write(folder, snapshot(1))
    file = folder / "state.safetensors"
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(StoreError, match="cannot be read"):
        state.read(folder)
    file.unlink()
    with pytest.raises(StoreError, match="cannot be read"):
        state.read(folder)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("I/O error: No space left on device (os error 28)"),
    ],
    ids=["ours", "safetensors"],
)
def test_a_full_disk_keeps_the_state_before(tmp_path, monkeypatch, error):
    """What safetensors cannot write it tells by an error of its own."""
    folder = tmp_path / "state"
    state.write(folder, snapshot(1))

    def full(tensors: dict[str, Tensor], file: Path) -> None:
        Path(file).write_bytes(b"half")
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("safetensors.torch.save_file", full)
        with pytest.raises(StoreError, match="No space left on device") as told:
            state.write(folder, snapshot(2))
    assert "room on the disk" in str(told.value.hint)
    assert_same(state.read(folder), snapshot(1))
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


def test_the_optimizer_goes_on_with_its_memory():
    def network() -> nn.Module:
        torch.manual_seed(0)
        return nn.Linear(3, 2)

    def step(weights: Weights, optimizer: torch.optim.Optimizer, number: int) -> None:
        draw = torch.Generator().manual_seed(number)
        for weight in weights.learning:
            weight.grad = torch.randn(weight.shape, generator=draw)
        optimizer.step()

    for name in ("adamw", "lamb"):
        one = Weights(network(), torch.float32)
        first = make_optimizer(name, one.learning, rate=0.1, weight_decay=0.1)
        step(one, first, 1)
        memory = state.optimizer_memory(first, one)
        assert set(memory) == {"step", "exp_avg", "exp_avg_sq"}
        assert set(memory["exp_avg"]) == {"weight", "bias"}
        other = Weights(network(), torch.float32)
        second = make_optimizer(name, other.learning, rate=0.1, weight_decay=0.1)
        other.load({n: w.clone() for n, w in one.as_dict().items()})
        state.remember(second, other, memory)
        for number in (2, 3):
            step(one, first, number)
            step(other, second, number)
        told = other.as_dict()
        assert all(torch.equal(w, told[n]) for n, w in one.as_dict().items())


def test_a_weight_without_memory_has_none_afterwards():
    weights = Weights(nn.Linear(3, 2), torch.float32)
    optimizer = make_optimizer("adamw", weights.learning, rate=0.1, weight_decay=0.0)
    weights.learning[0].grad = torch.ones(2, 3)
    optimizer.step()
    memory = state.optimizer_memory(optimizer, weights)
    assert set(memory["step"]) == {"weight"}
    other = Weights(nn.Linear(3, 2), torch.float32)
    fresh = make_optimizer("adamw", other.learning, rate=0.1, weight_decay=0.0)
    state.remember(fresh, other, memory)
    assert list(fresh.state) == other.learning[:1]
    # It had a gradient before, and is one of those that decay from now on.
    assert other.live == other.learning[:1]


def test_identity_is_what_decides_the_numbers():
    recipe = Pretraining(seed=1)
    own = state.identity(recipe, "text", 1)
    assert own == state.identity(Pretraining(seed=1), "text", 1)
    same = replace(recipe, log_every=7, save_every=7, milestones=7, evaluate_every=7, compile=True)
    assert state.identity(same, "text", 1) == own
    assert state.identity(recipe, "other text", 1) != own
    assert state.identity(recipe, "text", 2) != own
    for change in ({"seed": 2}, {"steps": 7}, {"learning_rate": 0.5}, {"precision": "float32"}):
        assert state.identity(replace(recipe, **change), "text", 1) != own
    json.dumps(recipe.as_dict())


@pytest.mark.parametrize("way", ["fused", "capturable", None])
def test_counters_lie_where_the_optimizer_looks_for_them(way):
    """Fused AdamW on a GPU has them there; all other optimizers on the CPU."""
    weights = Weights(nn.Linear(2, 2, device="meta"), torch.float32)
    optimizer = SimpleNamespace(defaults={way: True}, state=defaultdict(dict))
    state.remember(
        optimizer, weights, {"step": {name: torch.tensor(3.0) for name in weights.names}}
    )
    found = {optimizer.state[w]["step"].device.type for w in weights.learning}
    assert found == ({"cpu"} if way is None else {"meta"})
