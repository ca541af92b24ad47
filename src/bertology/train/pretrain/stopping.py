"""Ctrl-C or TERM between two updates, so that nothing is half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import torch
from torch import Tensor

from bertology.train.pretrain.processes import Processes


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
