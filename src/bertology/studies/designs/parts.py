"""One reader of the parts of a study: what is concatenated, added up, or spooled to disk.

Parts are gone through once, in the order of their examples, one at a time; what is kept of each is
small, so that more examples need hardly more memory.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.errors import StoreError

if TYPE_CHECKING:
    import xarray as xr


# Numbers of every example, put on disk as parts come and read back one group at a time.
#
# Intervals need what each example gave, for every head and class or relation: a few numbers of
# each, but of all examples more than should lie in memory. What is concluded of one group (a
# class, say) needs no other. `Spooled` holds values of all examples, `SpooledRows` rows of a few
# examples each.


class Spooled:
    """Values (example, group, …) of one dtype, given in pieces of examples."""

    def __init__(self) -> None:
        self._file = _temporary(self)
        self._pieces: list[tuple[int, tuple[int, ...]]] = []  # where each begins, and its shape
        self._dtype = np.dtype(np.float32)

    def append(self, values: NDArray[Any]) -> None:
        """More examples."""
        self._dtype = self._dtype if self._pieces else values.dtype
        by_group = np.ascontiguousarray(np.moveaxis(values, 1, 0), dtype=self._dtype)
        self._pieces.append((_written(self._file, by_group), by_group.shape))

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


class SpooledRows:
    """Rows of one dtype and length by the name of a group, some at a time."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._file, self._dtype = _temporary(self), np.dtype(dtype)
        self._pieces: dict[str, list[tuple[int, tuple[int, ...]]]] = {}

    def append(self, group: str, rows: NDArray[Any]) -> None:
        """More rows of a group."""
        values = np.ascontiguousarray(rows, dtype=self._dtype)
        self._pieces.setdefault(group, []).append((_written(self._file, values), values.shape))

    def __getitem__(self, group: str) -> NDArray[Any]:
        """All rows of a group, in the order in which they came."""
        found = []
        for start, shape in self._pieces[group]:
            self._file.seek(start)
            read = self._file.read(int(np.prod(shape)) * self._dtype.itemsize)
            found.append(np.frombuffer(read, self._dtype).reshape(shape))
        return np.concatenate(found)


def _temporary(owner: object) -> IO[bytes]:
    """A file that is closed, and so gone, when its owner is forgotten."""
    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115
    except OSError as error:
        raise _unwritable(error) from error
    weakref.finalize(owner, file.close)
    return file


def _written(file: IO[bytes], values: NDArray[Any]) -> int:
    """Where the values begin that were put at the end."""
    start = file.seek(0, 2)
    try:
        file.write(values.data)
        file.flush()
    except OSError as error:
        raise _unwritable(error) from error
    return start


def _unwritable(error: OSError) -> StoreError:
    return StoreError(
        f"Temporary files cannot be written: {error.strerror or error}.",
        hint="Make room, or name another folder in the environment variable TMPDIR. "
        "Nothing that was measured is lost.",
    )


Take = Callable[["xr.Dataset"], Any]
"""What is taken of a part: an array, by example first where it is concatenated."""


@dataclass(frozen=True)
class Gathered:
    """What all parts gave together."""

    arrays: Mapping[str, NDArray[np.float64]]
    spooled: Mapping[str, Spooled]
    facts: Mapping[str, Any]
    """Attributes of the parts, the same in each."""
    last: xr.Dataset
    """The last part, for its coordinates."""

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self.arrays[name]

    def labels(self, dimension: str) -> list[str]:
        """The labels of a dimension, the same in every part."""
        return [str(label) for label in self.last[dimension].to_numpy()]


def gather(
    measured: Mapping[str, xr.Dataset],
    *,
    concatenate: Mapping[str, Take] | Iterable[str] = (),
    add: Mapping[str, Take] | Iterable[str] = (),
    spool: Iterable[str] = (),
) -> Gathered:
    """Read all parts once.

    `concatenate` and `add` name variables, or map new names to what is computed of each part.
    `spool` names variables (example, group, …) that are too large to be held; those that a part
    does not have are left empty.
    """
    joined, added = _takers(concatenate), _takers(add)
    pieces: dict[str, list[NDArray[Any]]] = {name: [] for name in joined}
    sums: dict[str, Any] = {}
    spooled = {name: Spooled() for name in spool}
    for part in in_order(measured):
        for name, take in joined.items():
            pieces[name].append(np.asarray(take(part)))
        for name, take in added.items():
            value = np.asarray(take(part))
            sums[name] = value if name not in sums else sums[name] + value
        for name, kept in spooled.items():
            if name in part:
                kept.append(part[name].to_numpy())
    arrays = {name: np.concatenate(found) for name, found in pieces.items()} | sums
    return Gathered(arrays, spooled, dict(part.attrs), part)


def _takers(given: Mapping[str, Take] | Iterable[str]) -> dict[str, Take]:
    if isinstance(given, Mapping):
        return dict(given)
    return {name: partial(_variable, name=name) for name in given}


def _variable(part: xr.Dataset, name: str) -> NDArray[np.generic]:
    found: NDArray[np.generic] = part[name].to_numpy()
    return found


def start_of(part: str) -> int:
    """The number of the first example of a part."""
    return int(part.split("-")[1])


def in_order(measured: Mapping[str, xr.Dataset]) -> Iterator[xr.Dataset]:
    """The parts in the order of their examples, each read when it is asked for."""
    return (measured[part] for part in sorted(measured, key=start_of))
