"""Numbers of every example, put on disk as parts come and read back one group at a time.

Intervals need what each example gave, for every head and class or relation: a few numbers of each,
but of all examples more than should lie in memory. What is concluded of one group (a class, say)
needs no other.
"""

from __future__ import annotations

import tempfile
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.errors import StoreError

__all__ = ["Spooled"]


class Spooled:
    """Values (example, group, …) of one dtype, given in pieces of examples."""

    def __init__(self) -> None:
        try:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed when this is forgotten
        except OSError as error:
            raise _unwritable(error) from error
        weakref.finalize(self, self._file.close)
        self._pieces: list[tuple[int, tuple[int, ...]]] = []  # where each begins, and its shape
        self._dtype = np.dtype(np.float32)

    def append(self, values: NDArray[Any]) -> None:
        """More examples."""
        self._dtype = self._dtype if self._pieces else values.dtype
        by_group = np.ascontiguousarray(np.moveaxis(values, 1, 0), dtype=self._dtype)
        self._pieces.append((self._file.seek(0, 2), by_group.shape))
        try:
            self._file.write(by_group.data)
            self._file.flush()
        except OSError as error:
            raise _unwritable(error) from error

    def __len__(self) -> int:
        """How many groups there are."""
        return self._pieces[0][1][0] if self._pieces else 0

    def __getitem__(self, group: int) -> NDArray[Any]:
        """One group of all examples: (example, …)."""
        found = []
        for start, (_, *shape) in self._pieces:
            count = int(np.prod(shape))
            self._file.seek(start + group * count * self._dtype.itemsize)
            read = np.frombuffer(self._file.read(count * self._dtype.itemsize), self._dtype)
            found.append(read.reshape(shape))
        return np.concatenate(found)

    def rows(self, group: int) -> NDArray[Any]:
        """One group of all examples, flattened: (…, example)."""
        values = self[group]
        return values.reshape(len(values), -1).T


def _unwritable(error: OSError) -> StoreError:
    return StoreError(
        f"Temporary files cannot be written: {error.strerror or error}.",
        hint="Make room, or name another folder in the environment variable TMPDIR. "
        "Nothing that was measured is lost.",
    )
