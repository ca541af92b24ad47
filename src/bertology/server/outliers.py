"""Outlier dimensions of the residual stream, as the page lists them."""

from __future__ import annotations

import numpy as np

from bertology.server.reading import ModelReader
from bertology.server.sentences import encode
from bertology.server.shown import Shown

__all__ = ["outliers_of"]

_MOST = 20  # dimensions that are listed


def outliers_of(reader: ModelReader, shown: Shown) -> dict[str, object]:
    """Dimensions that are large in several layers here, the largest first, and by which rule."""
    from bertology.model.outliers import SIGMA, large_dimensions, norm_outliers

    encoder = reader.encoder
    found = reader.worker.do(lambda: large_dimensions(encoder, [encode(encoder, shown.intact)[1]]))
    norms = norm_outliers(encoder)
    layers, hidden = found.large.shape
    rule = (
        f"Dimensions (of {hidden}) whose mean |activation| over these tokens lies more than "
        f"{SIGMA:g} σ above the mean of all dimensions, in at least {found.enough_layers} of "
        f"{layers} layers, with nothing switched off. The ratio is to the median dimension."
    )
    if norms is not None:
        rule += (
            f" Norms: layers whose output LayerNorm has a weight or bias more than {SIGMA:g} σ "
            "from the mean there, the rule of Kovaleva et al. (2021)."
        )
    magnitudes, ratios = found.mean, found.ratio_to_median
    return {
        "dimensions": [
            {
                "dimension": d,
                "magnitude": float(magnitudes[d]),
                "ratio": float(ratios[d]),
                "layers": np.flatnonzero(found.large[:, d]).tolist(),
                "norms": [] if norms is None else np.flatnonzero(norms[:, d]).tolist(),
            }
            for d in found.in_several_layers()[:_MOST]
        ],
        "rule": rule,
    }
