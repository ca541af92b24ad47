"""How many cores a pass may take where somebody waits for it in a browser on the same machine."""

from __future__ import annotations

import os
import platform

import torch

__all__ = ["leave_a_core"]


def leave_a_core() -> None:
    """Keep torch off one core, for the rest of this process.

    Where torch's threads have to wait for a core, they wait for each other, and a pass of a
    small model takes several times as long as on one core.
    """
    torch.set_num_threads(max(1, min(torch.get_num_threads(), (os.cpu_count() or 1) - 1)))
    if platform.machine() in ("aarch64", "arm64"):
        # oneDNN brings threads of its own there, and is slower for products as small as ours.
        torch.backends.mkldnn.set_flags(False)  # type: ignore[no-untyped-call]
