"""The measured parts of a run, read from the store when they are used and not kept in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bertology.errors import ResultNotFoundError
from bertology.run.worker import SECONDS

if TYPE_CHECKING:
    import xarray as xr

    from bertology.results.provenance import Provenance
    from bertology.results.store import Store


class DoneElsewhereError(Exception):
    """Another process with the same store has finished the run and deleted its parts."""


class StoredParts(Mapping[str, "xr.Dataset"]):
    """Parts by name, in the order of the plan."""

    def __init__(self, store: Store, provenance: Provenance, parts: Sequence[str]) -> None:
        self._store, self._provenance, self._parts = store, provenance, parts

    def __getitem__(self, part: str) -> xr.Dataset:
        if part not in self._parts:
            raise KeyError(part)
        dataset = self._load(part)
        dataset.attrs.pop(SECONDS, None)
        return dataset

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def seconds(self, part: str) -> float:
        """How long a part took."""
        return float(self._load(part).attrs.get(SECONDS, 0.0))

    def _load(self, part: str) -> xr.Dataset:
        try:
            return self._store.load_part(self._provenance, part)
        except ResultNotFoundError:
            if self._store.has(self._provenance):
                raise DoneElsewhereError from None
            raise
