"""Work on a GPU made quick: recorded once and replayed, and with products that are rounded.

For a small model, Python needs more time to start its few thousand kernels than a GPU needs to run
them. Recorded as one CUDA graph, they start at once: twice the speed at 65,000 tokens a batch.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from bertology.train.protocols import Model

BEFORE = 3  # plain calls before recording, so that nothing is left to compile or to allocate
_BEFORE_MORE = 1  # the same for further shapes, which need little that the first did not

_TESTED = {"bert"}  # families whose training steps were recorded and compared with plain ones
_SMALL = 512  # below this width; wider models keep a GPU busy, and recordings take memory

T = TypeVar("T")
Replay = Callable[[], None]
Pool = Any  # what torch names memory by that recordings share; None for memory of its own


class Recorded(Generic[T]):
    """A function of tensors; after a few calls with the same shapes, a recording of it.

    Nothing in the function may depend on anything but its arguments and tensors that stay in
    their place: the recording repeats work on memory and runs no Python. What it returns is valid
    until the next call. Where `record` is False the function is simply called.

    Recordings are replayed one after another, so that all shapes work in the same memory: that of
    the largest one, in place of the sum of all.
    """

    def __init__(self, function: Callable[..., T], *, record: bool) -> None:
        self.function, self.record = function, record
        self._seen: Counter[Hashable] = Counter()
        self._kept: dict[Hashable, tuple[list[Tensor | None], T, Replay]] = {}
        self._pool: Pool = None

    def __call__(self, *tensors: Tensor | None, key: Hashable = None) -> T:
        """The function of the tensors; `key` is whatever else a recording depends on."""
        if not self.record:
            return self.function(*tensors)
        shapes = (key, *(None if t is None else (t.shape, t.dtype) for t in tensors))
        self._seen[shapes] += 1
        if self._seen[shapes] <= (_BEFORE_MORE if self._kept else BEFORE):
            return self.function(*tensors)
        if shapes not in self._kept:
            own = [None if t is None else t.clone() for t in tensors]
            found, replay, self._pool = captured(lambda: self.function(*own), self._pool)
            self._kept[shapes] = (own, found, replay)
        own, found, replay = self._kept[shapes]
        for mine, given in zip(own, tensors, strict=True):
            if mine is not None and given is not None:
                mine.copy_(given, non_blocking=True)
        replay()
        return found

    def forget(self) -> None:
        """Throw the recordings away, and let others have their memory."""
        if self._kept:
            self._kept.clear()
            self._pool = None
            torch.cuda.empty_cache()


def captured(work: Callable[[], T], pool: Pool = None) -> tuple[T, Replay, Pool]:
    """The result that each replay fills again, and the memory it works in, which may be given.

    Recording alone does not compute the result.
    """
    graph, aside = torch.cuda.CUDAGraph(), _aside(torch.cuda.current_device())
    aside.wait_stream(torch.cuda.current_stream())
    # `torch.cuda.graph` would first hand all unused memory back to the driver: the next steps ask
    # for it again, and every other process on the GPU waits meanwhile.
    with _nothing_collected(), torch.cuda.stream(aside):
        graph.capture_begin(pool=pool)
        try:
            found = work()
        finally:
            graph.capture_end()
    torch.cuda.current_stream().wait_stream(aside)
    return found, graph.replay, graph.pool()


@cache
def _aside(device: int) -> torch.cuda.Stream:
    """Where all recordings are made: memory is shared only by work of one stream."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """No garbage collection: freeing an old recording would break the one being made."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def gains_by_recording(model: Model) -> bool:
    """Whether steps of this model's training are better recorded."""
    config = model.config
    return (
        model.device.type == "cuda"
        and config.model_type in _TESTED
        and int(config.hidden_size) < _SMALL
    )


@contextmanager
def quick_products(device: torch.device) -> Iterator[None]:
    """On a GPU, products of updates and of surfaces are rounded to TF32, which they do not feel.

    In full single precision they take most of the time. Scores are always computed in full.
    """
    before = torch.get_float32_matmul_precision()
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        if device.type == "cuda":
            torch.set_float32_matmul_precision(before)
