"""Ctrl-C between two updates, so that nothing is half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["stoppable"]


@contextmanager
def stoppable() -> Iterator[threading.Event]:
    """Ctrl-C asks to stop after the update under way; a second one stops at once."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, before)
        stopped.set()

    signal.signal(signal.SIGINT, ask)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)
