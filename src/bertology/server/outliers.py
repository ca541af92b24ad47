"""Outlier dimensions of the residual stream, as the page lists them."""

from __future__ import annotations

import numpy as np

from bertology.server.reading import ModelReader
from bertology.server.sentences import encode
from bertology.server.shown import Shown

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
        f"mean |activation| over these tokens more than {SIGMA:g} σ above that of all {hidden} "
        f"dimensions, in {found.enough_layers} of {layers} layers or more."
    )
    of_weights = [] if weights is None else weights.in_most_layers()
    if weights is None:
        rule = f"Those of this text: {rule}"
    else:
        rule = (
            "First those of the weights, as the study outlier-dimensions finds them: a scale or "
            f"bias of the last operation (the output LayerNorm) more than {SIGMA:g} σ from the "
            f"mean, in {100 * MOST:g} % of the layers or more. Then those of this text: {rule}"
        )
    chosen = list(dict.fromkeys([*of_weights, *found.in_several_layers()]))
    magnitudes, ratios = found.mean, found.ratio_to_median
    return {
        "dimensions": [
            {
                "dimension": d,
                "magnitude": float(magnitudes[d]),
                "ratio": float(ratios[d]),
                "layers": np.flatnonzero(large[:, d]).tolist(),
                "in_study": d in of_weights,
                "norms": [] if weights is None else np.flatnonzero(weights.outlying[:, d]).tolist(),
            }
            for d in chosen[:_MOST]
        ],
        "rule": rule,
    }
