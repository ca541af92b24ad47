"""Numbers to a device without waiting for it: what is prepared next runs beside its work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def sent(value: Tensor, device: torch.device | str) -> Tensor:
    """A tensor on a device.

    A copy from usual memory to a GPU waits for all that was asked of it before; one from pinned
    memory takes its turn there, and the program goes on.
    """
    if torch.device(device).type != "cuda" or value.device.type != "cpu":
        return value.to(device)
    return value.pin_memory().to(device, non_blocking=True)


def sent_together(
    arrays: Sequence[NDArray[np.int64]], device: torch.device | str
) -> tuple[Tensor, ...]:
    """Whole numbers on a device, all in one copy."""
    whole = sent(torch.from_numpy(np.concatenate(arrays)), device)
    return torch.split(whole, [len(one) for one in arrays])
