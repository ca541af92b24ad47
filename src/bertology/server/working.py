"""The queue in front of the model: one request at a time, in order, and not too many waiting.

All passes go through one thread. So they are fair (first come, first served), a long question
that is cut into passes lets others in between, and torch keeps one set of threads instead of one
for each request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Generic, TypeVar

from bertology.errors import BertologyError

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
_MOST_WAITING = 400  # requests; fifty users have two or three each


class BusyError(BertologyError):
    """Too many questions at once."""


class Turnstile:
    """Counts the requests that wait for an answer, and allows at most `most`."""

    def __init__(self, most: int = _MOST_WAITING, *, what: str = "questions") -> None:
        self.most, self.what, self.inside = most, what, 0

    async def __call__(self) -> AsyncIterator[None]:
        """A dependency of routes. It runs on the event loop, so counting needs no lock."""
        if self.inside >= self.most:
            raise BusyError(
                f"{self.inside} {self.what} are waiting already.", hint="Try again in a moment."
            )
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1


class Worker:
    """The one thread that uses the model."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")

    def begin(self, work: Callable[[], Value]) -> Future[Value]:
        """Put `work` at the end of the queue."""
        return self._thread.submit(work)

    def do(self, work: Callable[[], Value]) -> Value:
        """Put `work` into the queue, and wait for its result."""
        return self.begin(work).result()

    def close(self) -> None:
        """Stop; work that was not started is dropped."""
        self._thread.shutdown(wait=True, cancel_futures=True)


class Kept(Generic[Key, Value]):
    """The answers for the last keys, as many as there is room for.

    If two ask for the same key at once, it is computed once. Failures are not kept.
    """

    def __init__(
        self,
        worker: Worker,
        make: Callable[[Key], Value],
        *,
        size: Callable[[Value], int],
        room: int,
    ) -> None:
        self._worker, self._make, self._size, self._room = worker, make, size, room
        self._made: OrderedDict[Key, Future[Value]] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self._lock = Lock()

    def begin(self, key: Key) -> Future[Value]:
        """The answer for `key`; computed now, unless it is kept."""
        with self._lock:
            future = self._made.get(key)
            if future is not None:
                self._made.move_to_end(key)
                return future
            future = self._worker.begin(lambda: self._make(key))
            self._made[key] = future
        future.add_done_callback(lambda done: self._account(key, done))
        return future

    def get(self, key: Key) -> Value:
        """The answer for `key`; waits until it is there."""
        return self.begin(key).result()

    @property
    def held(self) -> int:
        """The total size of the answers that are kept."""
        with self._lock:
            return sum(self._sizes.values())

    def _account(self, key: Key, done: Future[Value]) -> None:
        with self._lock:
            if done.cancelled() or done.exception() is not None:
                self._made.pop(key, None)
                return
            self._sizes[key] = self._size(done.result())
            total = sum(self._sizes.values())
            for old in [k for k in self._made if k in self._sizes]:
                if total <= self._room:
                    break
                total -= self._sizes.pop(old)
                del self._made[old]
