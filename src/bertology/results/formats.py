"""Tables as Parquet and labelled arrays as NetCDF, in memory, so that any store can hold them.

Reading gives back what was written: dtypes and index of tables; dimensions, coordinates and
attributes of arrays. Two limits of Parquet: text in an `object` column comes back as pandas' own
text dtype, and a categorical column without rows forgets its categories. Unlike pickle, neither
format can contain code.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["arrays_from_bytes", "arrays_to_bytes", "table_from_bytes", "table_to_bytes"]

_MARK = "json:"


@runtime_checkable
class _Numpy(Protocol):
    """Numpy's scalars and arrays."""

    def tolist(self) -> object: ...


def table_to_bytes(table: pd.DataFrame) -> bytes:
    """A table as a Parquet file."""
    buffer = io.BytesIO()
    # A plain range index is stored in the metadata only, which a table without columns loses.
    table.to_parquet(buffer, engine="pyarrow", index=None if len(table.columns) else True)
    return buffer.getvalue()


def table_from_bytes(data: bytes) -> pd.DataFrame:
    """The table that `table_to_bytes` was given."""
    import pandas as pd

    return pd.read_parquet(io.BytesIO(data), engine="pyarrow")


def arrays_to_bytes(arrays: xr.Dataset) -> bytes:
    """Labelled arrays as a NetCDF-4 file."""
    ready = _with_attributes(arrays.drop_encoding(), _encode)
    # xarray would mark NaN as "missing" in every float array; ours are just numbers.
    plain = {name: {"_FillValue": None} for name in ready.variables}
    written = ready.to_netcdf(engine="h5netcdf", encoding=plain)
    return bytes(written)


def arrays_from_bytes(data: bytes) -> xr.Dataset:
    """The arrays that `arrays_to_bytes` was given."""
    import xarray as xr

    # An array of plain numbers whose unit is "seconds" is not a timedelta.
    by_dtype = xr.coders.CFTimedeltaCoder(decode_via_units=False)
    with xr.open_dataset(io.BytesIO(data), engine="h5netcdf", decode_timedelta=by_dtype) as opened:
        loaded = opened.load()
    return _with_attributes(loaded.drop_encoding(), _decode)


def _with_attributes(
    arrays: xr.Dataset, change: Callable[[Mapping[Hashable, object]], dict[Hashable, object]]
) -> xr.Dataset:
    changed = arrays.copy()
    changed.attrs = change(arrays.attrs)
    for name in arrays.variables:
        changed[name].attrs = change(arrays[name].attrs)
    return changed


def _encode(attributes: Mapping[Hashable, object]) -> dict[Hashable, object]:
    """NetCDF knows only text and numbers; other values are stored as JSON after a mark."""
    return {name: _encode_value(value) for name, value in attributes.items()}


def _encode_value(value: object) -> object:
    if isinstance(value, _Numpy):
        value = value.tolist()
    if isinstance(value, str):
        needs_mark = value.startswith(_MARK) or not value or "\x00" in value
    else:
        needs_mark = not isinstance(value, float) and (
            type(value) is not int or abs(value) >= 2**63
        )
    return _MARK + json.dumps(value, ensure_ascii=False) if needs_mark else value


def _decode(attributes: Mapping[Hashable, object]) -> dict[Hashable, object]:
    return {name: _decode_value(value) for name, value in attributes.items()}


def _decode_value(value: object) -> object:
    if isinstance(value, str):
        return json.loads(value.removeprefix(_MARK)) if value.startswith(_MARK) else value
    return value.tolist() if isinstance(value, _Numpy) else value
