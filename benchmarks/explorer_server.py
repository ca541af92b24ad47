"""The explorer in a process of its own, and texts of a given length to ask it about."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Each is one token of bertology-mini.
WORDS = """the man saw a dog near his house and it was very cold in winter so they went back to the
city where people lived by the river for many years before another war came from north""".split()


@contextmanager
def serving(model: str | None = None) -> Iterator[tuple[str, int]]:
    """The address of an explorer, and the number of its process."""
    named = [] if model is None else [model]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "bertology", "explore", *named, "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[1].rstrip("/"), process.pid
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


def sentences(tokens: int, count: int, *, seed: int = 0) -> list[str]:
    """Texts of so many tokens, special ones counted, no two alike."""
    chance = random.Random(seed)
    found = set[str]()
    while len(found) < count:
        found.add(" ".join(chance.choices(WORDS, k=tokens - 2)))
    return sorted(found)


def view_of(text: str, **more: Any) -> dict[str, Any]:
    """A view as the page sends it."""
    off = {"heads": [], "layers": [], "dimensions": [], "how": "uniform"} | more.pop("off", {})
    plain = {"text": text, "pair": None, "masked": [], "level": "pieces"}
    return {**plain, **more, "off": off}


def memory_of(process: int) -> float:
    """What a process holds in memory, in MiB."""
    import psutil

    return float(psutil.Process(process).memory_info().rss) / 2**20
