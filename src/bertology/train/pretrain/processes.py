"""Training in one process, or in several that torchrun started, each with its own device.

Ctrl-C or TERM take effect between two updates, so that nothing is half done.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import torch
from torch import Tensor

from bertology.model.loading.models import find_device


@dataclass(frozen=True)
class Processes:
    """This process among those that train together."""

    rank: int
    count: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this is the one that writes files and messages."""
        return self.rank == 0

    def average(self, gradients: list[Tensor]) -> None:
        """Make the gradients the mean over all processes, in place."""
        if self.count == 1:
            return
        # One message for all of them: small models have many small tensors.
        flat = torch.cat([g.flatten() for g in gradients])
        torch.distributed.all_reduce(flat)
        flat /= self.count
        parts = torch.split(flat, [g.numel() for g in gradients])
        for g, part in zip(gradients, parts, strict=True):
            g.copy_(part.view_as(g))

    def wait(self) -> None:
        """Wait until all processes have come to this line."""
        if self.count > 1:
            torch.distributed.barrier()


@contextmanager
def joined(device: str) -> Iterator[Processes]:
    """The processes that torchrun started; a single one without torchrun."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes(0, 1, find_device(device))
        return
    rank = int(os.environ["RANK"])
    where = find_device(device)
    if where.type == "cuda":
        where = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(where)
    mine = not torch.distributed.is_initialized()
    if mine:
        torch.distributed.init_process_group("nccl" if where.type == "cuda" else "gloo")
    try:
        yield Processes(rank, count, where)
    finally:
        if mine:
            torch.distributed.destroy_process_group()


@contextmanager
def stoppable() -> Iterator[threading.Event]:
    """Ctrl-C and TERM ask to stop after the update under way; a second one stops at once."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def ask(number: int, frame: FrameType | None) -> None:
        restore()
        stopped.set()

    for number in before:
        signal.signal(number, ask)
    try:
        yield stopped
    finally:
        restore()


class StopVote:
    """Whether to stop; all processes decide the same, or one would wait for the others forever."""

    def __init__(self, processes: Processes, stopped: threading.Event) -> None:
        self.processes, self.stopped = processes, stopped
        self._asked: Tensor | None = None

    def __call__(self) -> bool:
        """To be called after every update. With several processes, true one update later."""
        if self.processes.count == 1:
            return self.stopped.is_set()
        asked = torch.full((), float(self.stopped.is_set()), device=self.processes.device)
        torch.distributed.all_reduce(asked)
        # Reading the new vote would wait for the device; the vote before is there by now.
        before, self._asked = self._asked, asked
        return before is not None and bool(before > 0)
