"""The type of one attention map, for those who have a map and no study."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bertology.annotated.map_types.crossing import has_crossing
from bertology.annotated.map_types.looks import Cells
from bertology.annotated.map_types.network import bundled_network, logits_of
from bertology.data.map_labels import MAP_TYPES
from bertology.errors import ParameterError

_ROUNDING = 0.02  # of the sums of rows, in half precision too


@dataclass(frozen=True)
class MapType:
    """The type of a map, and how sure the network is of it."""

    name: str
    """vertical, diagonal, vertical+diagonal, block or heterogeneous."""
    probabilities: dict[str, float]
    """For each of the five types, as the network gives them."""
    notes: tuple[str, ...] = ()
    """What the type does not say: "diagonal between the sentences"."""

    def __str__(self) -> str:
        return ", ".join((f"{self.name} ({self.probabilities[self.name]:.2f})", *self.notes))


def map_type(weights: Tensor | np.ndarray, second: int | None = None) -> MapType:
    """The type of one attention map, by the network of the study `map-types`.

    Args:
        weights: The map (tokens, tokens): rows attend to columns and sum to 1. Cut padding away.
        second: The first token of the second sentence, if the text is a pair. Only a pair can have
            a block.

    Returns:
        Its name, the probability of each type, and a note if a diagonal runs between the sentences.

    Example:
        >>> trace = encoder.run("A dog barks.", record="layer.3.head.7.pattern")  # doctest: +SKIP
        >>> bt.map_type(trace["layer.3.head.7.pattern"][0]).name  # doctest: +SKIP
        'diagonal'
    """
    maps = torch.as_tensor(weights).detach().cpu().float()
    if maps.ndim != 2 or maps.shape[0] != maps.shape[1] or not len(maps):
        raise ParameterError(
            "weights", "map_type", "have the shape (tokens, tokens)", tuple(maps.shape)
        )
    sums = maps.sum(-1)
    if not bool(((sums - 1).abs() <= _ROUNDING).all()) or bool((maps < 0).any()):
        raise ParameterError(
            "weights", "map_type", "have rows of shares that sum to 1, without padding",
            f"sums from {float(sums.min()):.3f} to {float(sums.max()):.3f}",
        )  # fmt: skip
    size = len(maps)
    if second is not None and not 0 < second < size:
        raise ParameterError("second", "map_type", f"be a token from 1 to {size - 1}", second)
    segments = (torch.arange(size) >= (size if second is None else second)).long()
    cells = Cells(segments[None])
    with torch.no_grad():
        look = cells.look(maps[None, None])
        logits = logits_of(bundled_network(), look, cells.same, cells.paired)[0, 0]
    shares = logits.softmax(-1).tolist()
    crosses = has_crossing(maps.numpy(), segments.numpy())
    return MapType(
        MAP_TYPES[int(logits.argmax())],
        dict(zip(MAP_TYPES, shares, strict=True)),
        ("diagonal between the sentences",) * crosses,
    )
