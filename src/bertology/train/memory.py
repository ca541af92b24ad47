"""The state of a fine-tuning run between two epochs, so that it can be stopped at any time."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from bertology.errors import StoreError
from bertology.metrics import find_metric
from bertology.train.history import Epoch
from bertology.train.movement import Movement
from bertology.train.pretrain import state
from bertology.train.pretrain.weights import Weights
from bertology.train.protocols import Model

_NOW, _BEST, _MOVEMENT, _BESIDE = "now/", "best/", "movement/", "beside/"


@dataclass
class Course:
    """A fine-tuning run between two epochs: everything that decides how it continues."""

    model: Model
    optimizer: torch.optim.Optimizer
    seed: int
    patience: int | None = None  # epochs without a better score; None for no early stopping
    epochs: list[Epoch] = field(default_factory=list)
    best: int | None = None  # the best epoch so far, with early stopping
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    movement: Movement | None = None  # where weights go during the training
    order: torch.Generator = field(init=False)  # of the examples

    def __post_init__(self) -> None:
        self.order = torch.Generator().manual_seed(self.seed)

    @property
    def over(self) -> bool:
        """Whether the score did not improve for `patience` epochs."""
        return self.patience is not None and len(self.epochs) - (self.best or 0) >= self.patience

    @property
    def weights(self) -> dict[str, Tensor]:
        """What may have changed; shared weights have one name only."""
        return {n: p.detach() for n, p in self.model.named_parameters() if p.requires_grad}

    @property
    def beside(self) -> dict[str, Tensor]:
        """What a training changes beside weights, such as ranges of inputs that it follows."""
        return {n: b for n, b in self.model.named_buffers() if b.is_floating_point()}

    def add(self, epoch: Epoch) -> None:
        """One more epoch is done."""
        self.epochs.append(epoch)
        if self.patience is None:
            return
        if self.best is None or _better(epoch, self.epochs[self.best - 1]):
            self.best = epoch.number
            self.best_weights = {n: w.cpu().clone() for n, w in self.weights.items()}

    def take_best(self) -> None:
        """Give the model the weights of its best epoch, where it is not simply the last."""
        if self.best is not None:
            self.take(self.best_weights)

    def take(self, weights: dict[str, Tensor]) -> None:
        """Give the model these weights."""
        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(weights[name])


def _better(one: Epoch, other: Epoch) -> bool:
    """By the task's main metric; of equal epochs the earlier one is kept."""
    name = next(iter(one.scores))
    gain = one.scores[name] - other.scores[name]
    return gain > 0 if find_metric(name).higher_is_better else gain < 0


@dataclass(frozen=True)
class Memory:
    """A folder for the state of one run, which is known by its `identity`."""

    folder: Path
    identity: str

    @property
    def begun(self) -> bool:
        """Whether the folder holds a state of this run."""
        return (state.read_numbers(self.folder) or {}).get("identity") == self.identity

    @property
    def stages(self) -> Path:
        """A folder for what ways make before the training, and what is not made twice."""
        return self.folder.with_name(f"{self.folder.name}-{self.identity}-stages")

    def found(self) -> int | None:
        """How many epochs are kept; None where nothing is. Refuses the state of another run."""
        numbers = state.read_numbers(self.folder)
        if numbers is None:
            return None
        if numbers.get("identity") != self.identity:
            raise StoreError(
                f"{self.folder} holds an unfinished run with other settings, data or model.",
                hint="Choose another folder (--to), or start again here with --force.",
            )
        return len(numbers["epochs"])

    def keep(self, course: Course) -> None:
        """Save the course as it is now."""
        device = course.model.device
        weights = {f"{_NOW}{n}": w for n, w in course.weights.items()}
        weights |= {f"{_BEST}{n}": w for n, w in course.best_weights.items()}
        weights |= {f"{_BESIDE}{n}": b for n, b in course.beside.items()}
        if course.movement is not None:
            weights |= {f"{_MOVEMENT}{n}": t for n, t in course.movement.state().items()}
        chance = {"torch": torch.get_rng_state(), "order": course.order.get_state()}
        if device.type == "cuda":
            chance["cuda"] = torch.cuda.get_rng_state(device)
        numbers: state.RunNumbers = {
            "identity": self.identity,
            "epochs": [epoch.as_record() for epoch in course.epochs],
            "best": course.best,
        }
        learning = Weights(course.model, torch.float32)
        memory = state.optimizer_memory(course.optimizer, learning)
        state.write(self.folder, state.Snapshot(numbers, weights, memory, chance))

    def recall(self, course: Course) -> None:
        """Put the course back to where it was kept, if it was."""
        if self.found() is None:
            return
        snapshot = state.read(self.folder)
        if snapshot is None:
            return
        course.epochs = [
            Epoch(e["number"], e["loss"], e["scores"], e["seconds"])
            for e in snapshot.numbers["epochs"]
        ]
        course.best = snapshot.numbers["best"]
        course.best_weights = _below(_BEST, snapshot.weights)
        course.take(_below(_NOW, snapshot.weights))
        beside = course.beside
        for name, held in _below(_BESIDE, snapshot.weights).items():
            beside[name].copy_(held)
        if course.movement is not None:
            course.movement.take(_below(_MOVEMENT, snapshot.weights))
        learning = Weights(course.model, torch.float32)
        state.remember(course.optimizer, learning, snapshot.memory)
        course.order.set_state(snapshot.chance["order"])
        torch.set_rng_state(snapshot.chance["torch"])
        if "cuda" in snapshot.chance and course.model.device.type == "cuda":
            torch.cuda.set_rng_state(snapshot.chance["cuda"], course.model.device)

    def forget(self) -> None:
        """Delete the state; it is no longer needed."""
        old = self.folder.with_name(f".{self.folder.name}.old")
        for place in (self.folder, old, self.stages):
            shutil.rmtree(place, ignore_errors=True)


def _below(prefix: str, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): w for n, w in weights.items() if n.startswith(prefix)}
