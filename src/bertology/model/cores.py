"""How many cores torch may use when the browser that shows the page needs one as well."""

from __future__ import annotations

import os
import platform

import torch


def leave_a_core() -> None:
    """Leave one core free of torch's threads, for the rest of this process.

    Where torch's threads have to wait for a core, they wait for each other, and a pass of a
    small model takes several times as long as on one core.
    """
    torch.set_num_threads(max(1, min(torch.get_num_threads(), (os.cpu_count() or 1) - 1)))
    if platform.machine() in ("aarch64", "arm64"):
        # There oneDNN starts threads of its own, and it is slower for matrices as small as ours.
        torch.backends.mkldnn.set_flags(False)  # type: ignore[no-untyped-call]
