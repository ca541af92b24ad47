"""Whole attention maps of single texts, which a few studies keep to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr

    from bertology.model.batch import Text
    from bertology.model.encoder import Encoder

_PATTERNS = "layer.*.head.*.pattern"


def whole_map(encoder: Encoder, text: Text, *, suffix: str = "") -> xr.DataArray:
    """All maps of one text: (layer, head, query, key), with its tokens.

    `suffix` is added to the last two names, where maps of several sizes are kept together.
    """
    import xarray as xr

    trace = encoder.run(encoder.encode(text, too_long="truncate"), record=_PATTERNS)
    maps = trace[_PATTERNS][:, 0].float().cpu().numpy()
    dims = ("layer", "head", f"query{suffix}", f"key{suffix}")
    return xr.DataArray(maps, dims=dims, attrs={"tokens": trace.tokens[0]})
