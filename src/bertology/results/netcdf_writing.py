"""NetCDF-4 written with h5py, which takes a fraction of the time where arrays are many and small.

A NetCDF-4 file is an HDF5 file in which every dimension is a scale that arrays are tied to: a
coordinate is the scale of its own dimension, other dimensions have an empty one. What is not plain
numbers and texts is left to xarray.
"""

from __future__ import annotations

import io
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import h5py
    import xarray as xr
    from numpy.typing import NDArray

NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
HDF5_NAMES = (
    "CLASS",
    "DIMENSION_LIST",
    "NAME",
    "REFERENCE_LIST",
    "_NCProperties",
    "_Netcdf4Coordinates",
    "_Netcdf4Dimid",
    "_nc3_strict",
)
"""How NetCDF-4 lies in HDF5; no attributes of anybody's arrays."""

_NOT_PLAIN = {*HDF5_NAMES, "_FillValue", "dtype", "coordinates"}  # or what xarray says by them
_LARGE = 2048  # bytes; smaller arrays take more room in chunks than they do as they are
_PACKED = {"compression": "gzip", "compression_opts": 1, "shuffle": True, "fletcher32": True}
_NUMBERS = {np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)} | {
    np.dtype(of) for of in (np.float32, np.float64, np.bool_)
}


def plain_to_netcdf(arrays: xr.Dataset, *, compressed: bool = False) -> bytes | None:
    """Arrays of numbers, truths and texts as a file; None where there is anything else.

    `compressed`: large arrays of numbers are, and carry checksums that reading them checks.
    """
    if not _plain(arrays):
        return None
    import h5py
    from xarray.conventions import encode_dataset_coordinates

    variables, attributes = encode_dataset_coordinates(arrays)
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", track_order=True) as file:
        _describe(file, attributes)
        made = {
            name: _empty_scale(file, str(name), size)
            for name, size in arrays.sizes.items()
            if name not in variables
        }
        # In their order, so that the same arrays are the same bytes when they are written again.
        made |= {name: _written(file, str(name), of, compressed) for name, of in variables.items()}
        for number, name in enumerate(arrays.sizes):
            if name in variables:
                made[name].make_scale(str(name))
            made[name].attrs["_Netcdf4Dimid"] = np.int32(number)
        for name, variable in variables.items():
            if name not in arrays.sizes:
                for axis, dimension in enumerate(variable.dims):
                    h5py.h5ds.attach_scale(made[name].id, made[dimension].id, axis)
    return buffer.getvalue()


def _plain(arrays: xr.Dataset) -> bool:
    """Whether names, types and attributes are such as need no thought."""
    for name, variable in arrays.variables.items():
        numbers = variable.dtype in _NUMBERS and variable.dtype.isnative
        if not isinstance(name, str) or "/" in name or not (numbers or variable.dtype.kind == "U"):
            return False
        if name in arrays.sizes and variable.dims != (name,):
            return False
    given = [arrays.attrs, *(variable.attrs for variable in arrays.variables.values())]
    named = all(isinstance(k, str) and k not in _NOT_PLAIN for of in given for k in of)
    dimensions = all(isinstance(d, str) and "/" not in d and n for d, n in arrays.sizes.items())
    return named and dimensions


def _empty_scale(file: h5py.File, name: str, size: int) -> h5py.Dataset:
    """A dimension without a coordinate."""
    scale = file.create_dataset(name, (size,), dtype=">f4", track_order=True)
    scale.make_scale(NO_VARIABLE.decode() + f".{size:10d}")
    return scale


def _written(file: h5py.File, name: str, variable: xr.Variable, compressed: bool) -> h5py.Dataset:
    import h5py

    values: NDArray[Any] = variable.to_numpy()
    truths = values.dtype == np.bool_
    if values.dtype.kind == "U":
        text = h5py.string_dtype()
        made = file.create_dataset(name, data=values.astype(object), dtype=text, track_order=True)
    else:
        numbers = values.astype(np.int8) if truths else values
        packed = _PACKED if compressed and numbers.ndim and numbers.nbytes >= _LARGE else {}
        made = file.create_dataset(name, data=numbers, track_order=True, **packed)
    _describe(made, variable.attrs)
    if truths:
        made.attrs["dtype"] = "bool"  # as xarray says it
    return made


def _describe(of: h5py.Group | h5py.Dataset, attributes: Mapping[Hashable, Any]) -> None:
    for name, value in attributes.items():
        of.attrs[str(name)] = value if isinstance(value, str) else np.atleast_1d(value)
