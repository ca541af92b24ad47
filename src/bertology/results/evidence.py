"""The quantities that claims are judged on, kept among the arrays of a result.

`conclude` declares them once. They are read back from a stored result, so that it can be judged
again, also on claims that were written after it was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bertology.stats import Estimate

if TYPE_CHECKING:
    import xarray as xr

ALL_OTHERS = ""
"""In the reasons: every quantity that has no estimate and no reason of its own."""

_VARIABLE = "evidence"
_BOUNDS = ("value", "low", "high", "n", "level")
# What few estimates have.
_MORE = ("needed", "tested", "lasting", "counted", "remedy", "freedom", "foreseen", "controls")


def evidence_array(
    found: Mapping[str, Estimate], reasons: Mapping[str, str] | None = None
) -> xr.Dataset:
    """The quantities as an array; `reasons` says why others have no estimate."""
    import xarray as xr

    rows = [(e.value, e.low, e.high, float(e.n), e.level) for e in found.values()]
    records = {name: e.as_record() for name, e in found.items()}
    values = np.reshape(np.array(rows, dtype=np.float64), (-1, len(_BOUNDS)))
    array = xr.DataArray(
        values,
        dims=("quantity", "bound"),
        coords={"quantity": list(found), "bound": list(_BOUNDS)},
        attrs={
            "reasons": dict(reasons or {}),
            "units": {name: e.unit for name, e in found.items()},
            **{key: {n: r[key] for n, r in records.items() if key in r} for key in _MORE},
        },
    )
    return xr.Dataset({_VARIABLE: array})


def read_evidence(arrays: xr.Dataset) -> dict[str, Estimate]:
    """The quantities that `evidence_array` put there; none where it did not."""
    if _VARIABLE not in arrays:
        return {}
    array = arrays[_VARIABLE]
    names = [str(name) for name in array["quantity"].to_numpy()]
    found = {
        name: Estimate(value, low, high, int(n), level)
        for name, (value, low, high, n, level) in zip(names, array.to_numpy().tolist(), strict=True)
    }
    # Results that were stored before these were kept have none, and read as before.
    kept = {"unit": array.attrs.get("units", {}), **{k: array.attrs.get(k, {}) for k in _MORE}}
    return {
        name: replace(e, **{key: of[name] for key, of in kept.items() if name in of})
        for name, e in found.items()
    }


def read_reasons(arrays: xr.Dataset) -> dict[str, str]:
    """Why quantities have no estimate, by quantity, as far as the study knows."""
    if _VARIABLE not in arrays:
        return {}
    return {str(k): str(v) for k, v in arrays[_VARIABLE].attrs.get("reasons", {}).items()}
