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
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from bertology.results.netcdf_writing import HDF5_NAMES, NO_VARIABLE, plain_to_netcdf

if TYPE_CHECKING:
    import h5py
    import pandas as pd
    import xarray as xr
    from numpy.typing import NDArray

_MARK = "json:"
_CLASH = "_nc4_non_coord_"  # before the name of an array that is also that of a later dimension


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
    """The table that `table_to_bytes` was given.

    Read by this thread alone: Arrow's own, which may still run when the process ends, abort it.
    """
    from pyarrow import BufferReader
    from pyarrow.parquet import ParquetFile

    found = ParquetFile(BufferReader(data)).read(use_threads=False)
    table: pd.DataFrame = found.to_pandas(use_threads=False)
    return table


def arrays_to_bytes(arrays: xr.Dataset, *, compressed: bool = False) -> bytes:
    """Labelled arrays as a NetCDF-4 file; `compressed` ones are read back the same."""
    ready = _with_attributes(arrays.drop_encoding(), _encode)
    quickly = plain_to_netcdf(ready, compressed=compressed)
    if quickly is not None:
        return quickly
    # xarray would mark NaN as "missing" in every float array; ours are just numbers.
    plain = {
        name: {"_FillValue": None, "zlib": compressed and bool(of.ndim) and of.dtype.kind in "iuf"}
        for name, of in ready.variables.items()
    }
    written = ready.to_netcdf(engine="h5netcdf", encoding=plain)
    return bytes(written)


def arrays_from_bytes(data: bytes) -> xr.Dataset:
    """The arrays that `arrays_to_bytes` was given.

    Read with h5py, which is many times quicker than h5netcdf where arrays are many and small.
    """
    import h5py
    import xarray as xr

    with h5py.File(io.BytesIO(data), "r") as file:
        found = {
            name.removeprefix(_CLASH): xr.Variable(
                _dimensions(of, file), _values(of), _attributes(of)
            )
            for name, of in file.items()
            if isinstance(of, h5py.Dataset)
            and not bytes(of.attrs.get("NAME", b"")).startswith(NO_VARIABLE)
        }
        raw = xr.Dataset(found, attrs=_attributes(file))
    # An array of plain numbers whose unit is "seconds" is not a timedelta.
    by_dtype = xr.coders.CFTimedeltaCoder(decode_via_units=False)
    decoded = xr.decode_cf(raw, decode_timedelta=by_dtype)
    return _with_attributes(decoded.drop_encoding(), _decode)


def _dimensions(of: h5py.Dataset, file: h5py.File) -> list[str]:
    """The names of the dimensions of an array."""
    import h5py

    if "DIMENSION_LIST" in of.attrs:
        named = (h5py.h5r.get_name(scales[0], file.id) for scales in of.attrs["DIMENSION_LIST"])
        return [name.decode().removeprefix("/") for name in named]
    if of.ndim < 2:
        return [_name(of)] * of.ndim  # a coordinate is its own dimension
    # An array of many dimensions that is called as one of them knows them by their numbers.
    numbers = {one.attrs.get("_Netcdf4Dimid"): name for name, one in file.items() if one.is_scale}
    return [numbers[number] for number in of.attrs["_Netcdf4Coordinates"]]


def _name(of: h5py.Dataset) -> str:
    return str(of.name).removeprefix("/")


def _values(of: h5py.Dataset) -> NDArray[Any]:
    import h5py

    text = h5py.check_string_dtype(of.dtype)
    if text is None or text.length is not None:
        return np.asarray(of[()])
    return np.asarray(of.asstr()[()], dtype=str)


def _attributes(of: h5py.Group | h5py.Dataset) -> dict[Hashable, object]:
    """What was said about an array; a number comes back as an array with one element."""
    given = {name: of.attrs[name] for name in of.attrs if name not in HDF5_NAMES}
    return {
        name: value[0] if isinstance(value, np.ndarray) and value.size == 1 else value
        for name, value in given.items()
    }


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
