"""What the network is given of attention maps: cells, facts and, if asked for, measures.

By plain torch; on a GPU `scanning` gives the same and reads each map only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bertology.annotated.map_types.facts import TextFacts
from bertology.model.reducers.map_measures import map_measures, own_segment

GRID = 16


@dataclass(frozen=True)
class Look:
    """Of the maps of some heads over some texts."""

    small: Tensor  # (B, H, GRID, GRID)
    facts: Tensor  # (B, H, FACTS), what cells are too coarse to show
    measures: Tensor | None  # (measures, B, H)

    def split(self, texts: int) -> list[Look]:
        """So many texts at a time, without their measures."""
        parts = zip(torch.split(self.small, texts), torch.split(self.facts, texts), strict=True)
        return [Look(small, facts, None) for small, facts in parts]


def of_all_texts(looks: Sequence[Look]) -> Look:
    """Looks at the same heads over different texts, as one."""
    return _joined(looks, 0)


def of_all_heads(looks: Sequence[Look]) -> Look:
    """Looks at different heads of the same texts, as one."""
    return _joined(looks, 1)


def _joined(looks: Sequence[Look], dim: int) -> Look:
    measures = [look.measures for look in looks if look.measures is not None]
    return Look(
        torch.cat([look.small for look in looks], dim),
        torch.cat([look.facts for look in looks], dim),
        torch.cat(measures, dim + 1) if measures else None,
    )


class Cells:
    """How the tokens of a batch fall into GRID cells; made once, used for all its maps."""

    def __init__(self, segments: Tensor) -> None:
        """`segments` is (B, T): 0 and 1 in a pair's sentences, all 0 for one, -1 for padding."""
        self.segments, self._text = segments.contiguous(), TextFacts(segments)
        self.paired = self._text.paired  # (B,)
        cells = _shares(self._text.real, self._text.count)  # (B, GRID, T)
        self.rows = cells / cells.sum(-1, keepdim=True).clamp_min(1e-6)
        # Laid out for the product below: as a mere view it would be many times slower.
        self.columns = cells.mT.contiguous()
        same = own_segment(segments).float()
        self.same = self.rows @ same @ self.rows.mT  # (B, GRID, GRID)

    def look(self, maps: Tensor, *, measures: bool = False) -> Look:
        """At maps (B, H, T, T) of any precision."""
        maps = maps.float()
        numbers = map_measures(maps, self.segments) if measures else None
        return Look(self.shrink(maps), self._text.of(maps), numbers)

    def shrink(self, maps: Tensor) -> Tensor:
        """Maps (B, H, T, T) as (B, H, GRID, GRID)."""
        batch, heads, size, _ = maps.shape
        # First the columns of all heads in one product, then the rows of what is left.
        narrow = maps.reshape(batch, heads * size, size) @ self.columns
        beside = narrow.view(batch, heads, size, GRID).transpose(1, 2)
        small = self.rows @ beside.reshape(batch, size, heads * GRID)
        return small.view(batch, GRID, heads, GRID).transpose(1, 2)


def _shares(real: Tensor, count: Tensor) -> Tensor:
    """(B, GRID, T): how much of each token lies in each cell; a token has 1 in all."""
    width = count[..., None] / GRID
    first = real.argmax(-1)[:, None, None]
    token = torch.arange(real.shape[-1], device=real.device) - first  # (B, 1, T)
    cell = torch.arange(GRID, device=real.device)[None, :, None] * width
    shared = torch.minimum(cell + width, token + 1.0) - torch.maximum(cell, token)
    return shared.clamp_min(0) * real[:, None]
