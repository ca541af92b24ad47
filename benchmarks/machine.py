"""What the numbers were measured on."""

from __future__ import annotations

import datetime
import os
import platform
import time

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


def product_rate(
    rows: int, inner: int, columns: int, *, dtype: torch.dtype, device: str = "cuda"
) -> float:
    """Operations per second of (rows × inner) @ (inner × columns): what a matrix product can do."""
    a = torch.randn(rows, inner, device=device, dtype=dtype)
    b = torch.randn(inner, columns, device=device, dtype=dtype)
    times = 10
    for _ in range(3):
        a @ b
    wait(device)
    started = time.perf_counter()
    for _ in range(times):
        a @ b
    wait(device)
    return times * 2 * rows * inner * columns / (time.perf_counter() - started)


def wait(device: str) -> None:
    """Until the device has done all it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
