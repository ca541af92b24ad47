"""What the numbers were measured on."""

from __future__ import annotations

import datetime
import os
import platform

import torch


def describe() -> str:
    """Date, processor, threads, versions, in one line."""
    chip = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            names = [row.split(":")[1].strip() for row in info if row.startswith("model name")]
        chip = names[0] if names else chip
    except OSError:
        pass
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return (
        f"{datetime.date.today()}: {chip} ({platform.machine()}), {os.cpu_count()} cores, "
        f"{torch.get_num_threads()} threads, torch {torch.__version__}{gpu}"
    )
