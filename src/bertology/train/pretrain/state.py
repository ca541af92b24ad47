"""The saved state from which a stopped run continues: safetensors and JSON, no pickle."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TypedDict

import torch
from torch import Tensor

from bertology.drafts import draft_folder
from bertology.errors import StoreError
from bertology.train.pretrain.config import Pretraining
from bertology.train.pretrain.start import fingerprint
from bertology.train.pretrain.weights import Weights
from bertology.train.records import EpochRecord

_NUMBERS = "state.json"
_TENSORS = "state.safetensors"


class RunNumbers(TypedDict, total=False):
    """The plain values of a state; pre-training and fine-tuning fill different keys."""

    identity: str
    step: int
    tokens: int
    seconds: float
    layers: int
    places: list[dict[str, int]]  # of the feeds
    epochs: list[EpochRecord]
    best: int | None


@dataclass(frozen=True)
class Snapshot:
    """A run between two updates."""

    numbers: RunNumbers
    weights: dict[str, Tensor]
    memory: dict[str, dict[str, Tensor]]  # of the optimizer: {"exp_avg": {name: …}, …}
    chance: dict[str, Tensor]  # torch's generators, which dropout draws from


def identity(recipe: Pretraining, text: str, world: int) -> str:
    """A hash of what decides the numbers of a run; how often it is saved does not.

    `text` is the fingerprint of the shards, `world` the number of processes.
    """
    plain = recipe.as_dict()
    for name in ("log_every", "save_every", "milestones", "evaluate_every", "compile"):
        plain.pop(name)
    if recipe.start is not None:
        plain["start"] = fingerprint(recipe.start)  # wherever it lies
    asked = json.dumps([plain, text, world], sort_keys=True)
    return blake2b(asked.encode(), digest_size=16).hexdigest()


def optimizer_memory(
    optimizer: torch.optim.Optimizer, weights: Weights
) -> dict[str, dict[str, Tensor]]:
    """The optimizer's memory by the names of the weights."""
    memory: dict[str, dict[str, Tensor]] = {}
    for name, weight in zip(weights.names, weights.learning, strict=True):
        for key, value in optimizer.state.get(weight, {}).items():
            memory.setdefault(key, {})[name] = value
    return memory


def remember(
    optimizer: torch.optim.Optimizer, weights: Weights, memory: dict[str, dict[str, Tensor]]
) -> None:
    """Give the optimizer the memory that `optimizer_memory` returned."""
    for key, values in memory.items():
        for name, weight in zip(weights.names, weights.learning, strict=True):
            if name in values:
                # What once had a gradient moves on with its momentum, also while it has none.
                if weight.grad is None:
                    weight.grad = torch.zeros_like(weight)
                # Counters stay on the CPU, but for optimizers that run as one kernel or graph.
                counted = any(optimizer.defaults.get(n) for n in ("capturable", "fused"))
                there = key != "step" or counted
                value = values[name].to(weight.device) if there else values[name].cpu()
                optimizer.state[weight][key] = value.clone()


def write(folder: Path, snapshot: Snapshot) -> None:
    """Keep a snapshot; the one before stays until this one is whole."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    tensors = {f"weights/{n}": t for n, t in snapshot.weights.items()}
    tensors |= {f"chance/{n}": t for n, t in snapshot.chance.items()}
    for key, values in snapshot.memory.items():
        tensors |= {f"memory/{key}/{n}": t for n, t in values.items()}
    old = folder.with_name(f".{folder.name}.old")
    try:
        with draft_folder(folder) as draft:
            whole = {n: t.detach().cpu().contiguous() for n, t in tensors.items()}
            save_file(whole, draft / _TENSORS)
            (draft / _NUMBERS).write_text(json.dumps(snapshot.numbers) + "\n", encoding="utf-8")
            shutil.rmtree(old, ignore_errors=True)
            if folder.exists():
                folder.rename(old)
            draft.rename(folder)
            shutil.rmtree(old, ignore_errors=True)
    except (OSError, SafetensorError) as error:  # the latter is raised for a full disk
        reason = getattr(error, "strerror", None) or error
        raise StoreError(
            f"The state of the run cannot be written to {folder}: {reason}.",
            hint="Make room on the disk; the same command continues from the last state.",
        ) from error


def read(folder: Path) -> Snapshot | None:
    """The last snapshot, if there is one."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    # Killed between two renames, the last whole one is the old one.
    for place in (folder, folder.with_name(f".{folder.name}.old")):
        if not (place / _NUMBERS).is_file():
            continue
        try:
            numbers = json.loads((place / _NUMBERS).read_text(encoding="utf-8"))
            tensors = load_file(place / _TENSORS)
        except (OSError, ValueError, RecursionError, SafetensorError) as error:
            raise StoreError(
                f"The state of the run in {place} cannot be read: {error}.",
                hint="Delete that folder to start again.",
            ) from error
        return _sorted_out(numbers, tensors)
    return None


def read_numbers(folder: Path) -> RunNumbers | None:
    """The numbers of the last snapshot alone, without its tensors."""
    for place in (folder, folder.with_name(f".{folder.name}.old")):
        try:
            numbers: RunNumbers = json.loads((place / _NUMBERS).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        return numbers
    return None


def _sorted_out(numbers: RunNumbers, tensors: dict[str, Tensor]) -> Snapshot:
    snapshot = Snapshot(numbers, {}, {}, {})
    for name, tensor in tensors.items():
        kind, _, rest = name.partition("/")
        if kind == "memory":
            key, _, weight = rest.partition("/")
            snapshot.memory.setdefault(key, {})[weight] = tensor
        elif kind == "chance":
            snapshot.chance[rest] = tensor
        else:
            snapshot.weights[rest] = tensor
    return snapshot
