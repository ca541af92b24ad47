"""The measured parts of a run, read from the store when they are used and not kept in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bertology.errors import ResultNotFoundError, StoreError
from bertology.results.measured import PartLostError
from bertology.run.worker import SECONDS

if TYPE_CHECKING:
    import xarray as xr

    from bertology.results.measured import Measurements


class StoredParts(Mapping[str, "xr.Dataset"]):
    """Parts by name, in the order of the plan."""

    def __init__(self, measured: Measurements, key: str, parts: Sequence[str]) -> None:
        self._measured, self._key, self._parts = measured, key, parts

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
            return self._measured.load_part(self._key, part)
        except ResultNotFoundError:
            raise PartLostError(part, "its file is gone") from None
        except StoreError as error:
            raise PartLostError(part, error.problem.rstrip(".")) from error
