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

import torch

import planted
from bertology.model.encoder import Encoder
from bertology.model.weight_masks import prunable
from bertology.train.history import Step
from bertology.train.prune_settings import PruneSettings
from bertology.train.pruned import PruneWatch, prune_to
from bertology.train.recovery import Recovery

TRAIN, HELD_OUT = planted.corpus(200, seed=1), planted.corpus(60, seed=2)
SETTINGS = {
    "importance": PruneSettings(keep=0.95, method="importance", limit=100),
    "magnitude": PruneSettings(keep=0.9, method="magnitude", limit=60, recovery=Recovery(2)),
    "movement": PruneSettings(keep=0.7, method="movement", epochs=2),
}


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


WATCHES = {
    "importance": PruneWatch(tell=after(3, lambda text: str(text).startswith("without"))),
    # In the second epoch of the training that follows the cut, and of the second share.
    "magnitude": PruneWatch(progress=after(2, lambda s: isinstance(s, Step) and s.epoch is None
                                           and s.done > 0.6 * s.total)),
    "movement": PruneWatch(progress=after(5, lambda s: isinstance(s, Step) and s.epoch is None
                                          and s.done > 0.6 * s.total)),
}  # fmt: skip


if __name__ == "__main__":
    for method, settings in SETTINGS.items():
        child = os.fork()
        if child == 0:
            place = Path(sys.argv[1]) / method
            prune_to(place, encoder(), TRAIN, HELD_OUT, settings, watch=WATCHES[method])
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(method, os.WTERMSIG(status) if os.WIFSIGNALED(status) else "was not killed")
