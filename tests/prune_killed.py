"""Prune the planted model by every method, each in a process that kills itself in the middle.

    python tests/prune_killed.py FOLDER

Each method writes to FOLDER/METHOD; the test goes on where it was killed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import bertology as bt
import planted
from bertology.model.encoder import Encoder
from bertology.model.weight_masks import prunable
from bertology.train.compress.work import CompressWatch
from bertology.train.history import Step
from bertology.train.pruned import Pruned

TRAIN, HELD_OUT = planted.corpus(200, seed=1), planted.corpus(60, seed=2)
SETTINGS: dict[str, dict[str, Any]] = {
    "importance": {"keep": 0.95, "limit": 100},
    "magnitude": {"keep": 0.9, "limit": 60, "recover": 2},
    "movement": {"keep": 0.7, "epochs": 2},
}


def prune(folder: Path, method: str, watch: CompressWatch | None = None) -> Pruned:
    """Prune the model to a folder of the method's name."""
    return bt.prune(
        encoder(), TRAIN, HELD_OUT, to=folder / method, method=method, watch=watch,
        **SETTINGS[method],
    )  # fmt: skip


def encoder() -> Encoder:
    """The planted model with a little noise on all weights: none is nothing."""
    model = planted.model(spoil=0.3)
    model.config.id2label = dict(enumerate(planted.TASK.labels))
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in prunable(model).values():
            weight += 0.1 * torch.randn_like(weight)
    return Encoder(model, planted.tokenizer(), head="classification", name="planted")


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def after(times: int, counts: Callable[[object], bool]) -> Callable[[object], None]:
    """Die when something has happened so many times."""
    seen: list[object] = []

    def watch(happened: object) -> None:
        if counts(happened):
            seen.append(happened)
            if len(seen) == times:
                die()

    return watch


def trainings(step: Callable[[Step], object]) -> CompressWatch:
    """Is told each step of all trainings."""

    class Line:
        def step(self, given: Step) -> None:
            step(given)

        def stop(self) -> None:
            """Nothing was shown."""

    return CompressWatch(training=lambda name, epochs: Line())


def _late(step: object) -> bool:
    return isinstance(step, Step) and step.epoch is None and step.done > 0.6 * step.total


WATCHES = {
    "importance": CompressWatch(tell=after(3, lambda text: str(text).startswith("without"))),
    # In the second epoch of the training that follows the cut, and of the second share.
    "magnitude": trainings(after(2, _late)),
    "movement": trainings(after(5, _late)),
}


if __name__ == "__main__":
    for method in SETTINGS:
        child = os.fork()
        if child == 0:
            prune(Path(sys.argv[1]), method, WATCHES[method])
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(method, os.WTERMSIG(status) if os.WIFSIGNALED(status) else "was not killed")
