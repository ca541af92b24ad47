"""One reader of the parts of a study: what is concatenated, added up, or spooled to disk.

Parts are gone through once, in the order of their examples, one at a time; what is kept of each is
small, so that more examples need hardly more memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.studies.designs.spooled import Spooled

if TYPE_CHECKING:
    import xarray as xr

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
