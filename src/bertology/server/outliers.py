"""Outlier dimensions of the residual stream, as the page lists them."""

from __future__ import annotations

import numpy as np

from bertology.server.reading import ModelReader
from bertology.server.sentences import encode
from bertology.server.shown import Shown

__all__ = ["outliers_of"]

_MOST = 20  # dimensions that are listed


def outliers_of(reader: ModelReader, shown: Shown) -> dict[str, object]:
    """Outliers of the weights, as in the study, then those of this text; and by which rule."""
    from bertology.model.outliers import MOST, SIGMA, large_dimensions, weight_outliers

    encoder = reader.encoder
    found = reader.worker.do(lambda: large_dimensions(encoder, [encode(encoder, shown.intact)[1]]))
    weights = weight_outliers(encoder)
    large = found.large
    layers, hidden = large.shape
    rule = (
        f"Dimensions (of {hidden}) whose mean |activation| over these tokens lies more than "
        f"{SIGMA:g} σ above the mean of all dimensions, in at least {found.enough_layers} of "
        f"{layers} layers, with nothing switched off. The ratio is to the median dimension."
    )
    chosen = found.in_several_layers()
    if weights is not None:
        rule += (
            f" Before them, outliers of the weights, as in the study outlier-dimensions: the last "
            f"operation of a layer (its output LayerNorm) has a weight or bias more than {SIGMA:g} "
            f"σ from the mean there, in {MOST:.0%} of the layers or more."
        )
        chosen = list(dict.fromkeys([*weights.in_most_layers(), *chosen]))
    magnitudes, ratios = found.mean, found.ratio_to_median
    return {
        "dimensions": [
            {
                "dimension": d,
                "magnitude": float(magnitudes[d]),
                "ratio": float(ratios[d]),
                "layers": np.flatnonzero(large[:, d]).tolist(),
                "norms": [] if weights is None else np.flatnonzero(weights.outlying[:, d]).tolist(),
            }
            for d in chosen[:_MOST]
        ],
        "rule": rule,
    }
