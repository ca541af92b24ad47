"""Exact numbers of whole maps, for what cells are too coarse to show.

Does a line lie on the next token, and does it run all along? Is a stripe one token wide, and do all
rows share it? Do rows look alike, if not in the whole map then within each sentence? Every number
is made of row maxima, row squares, what columns receive, and a few diagonals and columns, so that
a map is read as few times as possible. Padding changes none of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bertology.model.map_measures import REACH

__all__ = ["FACTS", "OFFSETS", "TextFacts"]

OFFSETS = 2 * REACH + 1
_TOP = (1, 2, 4, 8)  # attention to the so many tokens that take most
_STRIPES = 4  # columns whose way through the rows is followed
_TINY = 1e-9
FACTS = OFFSETS + 37


class TextFacts:
    """Reads the facts of all maps over the texts of one batch."""

    def __init__(self, segments: Tensor) -> None:
        """`segments` is (B, T): 0 and 1 in a pair's sentences, all 0 for one, -1 for padding."""
        real = segments >= 0
        count = real.sum(-1, keepdim=True).clamp_min(1).float()
        self._real = real
        self._share = real.float() / count  # of each query
        # The share of queries in each sentence; what columns receive is read once for both.
        inside = torch.stack([segments == 0, segments == 1], 1).float()  # (B, 2, T)
        self._inside = inside
        self._sizes = inside.sum(-1)  # (B, 2)
        self._parts = inside / count[:, None]
        self._count = count[:, 0]
        self._paired = (segments == 1).any(-1).float()
        self._segments = segments

    def of(self, maps: Tensor) -> Tensor:
        """(B, H, FACTS) of maps (B, H, T, T), the offsets -REACH … REACH first."""
        maps = maps.float()
        darkest = maps.amax(-1)  # (B, H, T), of each row
        squares = torch.linalg.vector_norm(maps, dim=-1).square()
        by_part = self._parts[:, None] @ maps  # (B, H, 2, T)
        received = by_part.sum(-2)
        lines = self._lines(maps)  # (OFFSETS, B, H, T), by query
        offsets = self._mean(lines)
        facts = [
            *offsets,
            *self._line_facts(lines, offsets, darkest),
            *self._column_facts(maps, received, darkest),
            *self._likeness(received, squares, lines),
            *self._sentences(by_part, squares, offsets),
            *self._darkness(darkest, squares),
        ]
        text = (self._count.log(), self._paired)
        facts += [x[:, None].expand_as(squares[..., 0]) for x in text]
        return torch.stack(facts, -1)

    def _mean(self, of_rows: Tensor) -> Tensor:
        """Over real queries."""
        return (of_rows * self._share[:, None]).sum(-1)

    def _lines(self, maps: Tensor) -> Tensor:
        """Attention of each query to each relative position; 0 where that lies outside."""
        size = maps.shape[-1]
        lines = maps.new_zeros(OFFSETS, *maps.shape[:-1])
        for i, k in enumerate(range(-REACH, REACH + 1)):
            if abs(k) < size:
                lines[i, ..., max(-k, 0) : size - max(k, 0)] = maps.diagonal(k, -2, -1)
        return lines * self._real[:, None]

    def _line_facts(self, lines: Tensor, offsets: Tensor, darkest: Tensor) -> list[Tensor]:
        near, wide = lines[REACH - 1 : REACH + 2].sum(0), lines.sum(0)
        best = offsets.argmax(0)  # (B, H)
        line = lines.gather(0, best[None, ..., None].expand_as(lines[:1]))[0]
        dark = lines.amax(0)
        dark_near = lines[REACH - 1 : REACH + 2].amax(0)
        by_chance = (OFFSETS / self._count).clamp_max(1)[:, None]
        return [
            offsets.amax(0),
            self._mean(line.sqrt()),
            self._mean(line / (darkest + _TINY)),
            self._mean(near),
            self._mean(near.sqrt()),
            self._mean(dark_near / (darkest + _TINY)),
            self._mean(wide),
            self._mean(wide) - by_chance,
            self._mean(wide.sqrt()),
            self._mean(dark / (darkest + _TINY)),
        ]

    def _column_facts(self, maps: Tensor, received: Tensor, darkest: Tensor) -> list[Tensor]:
        size = maps.shape[-1]
        most, where = received.topk(min(_TOP[-1], size), -1)
        sums = most.cumsum(-1)
        where = where[..., None, :_STRIPES].expand(*maps.shape[:-1], -1)
        columns = maps.gather(-1, where)  # (B, H, T, _STRIPES)
        first, two = columns[..., 0], columns[..., :2].sum(-1)
        return [
            *(sums[..., min(n, size) - 1] for n in _TOP),
            self._mean(first.sqrt()),
            self._mean(two.sqrt()),
            self._mean(columns.sum(-1).sqrt()),
            self._mean(first / (darkest + _TINY)),
            self._mean(columns.amax(-1) / (darkest + _TINY)),
        ]

    def _likeness(self, received: Tensor, squares: Tensor, lines: Tensor) -> list[Tensor]:
        """How alike rows are, 1 for full stripes; also of what is left without the diagonals."""
        size = received.shape[-1]
        sharp = self._mean(squares)
        rest = received.clone()
        for i, k in enumerate(range(-REACH, REACH + 1)):
            if abs(k) < size:
                kept = slice(max(-k, 0), size - max(k, 0))
                moved = slice(max(k, 0), size - max(-k, 0))
                rest[..., moved] -= (lines[i] * self._share[:, None])[..., kept]
        left = sharp - self._mean(lines.square().sum(0))
        left_top = rest.topk(min(2, size), -1).values.sum(-1)
        likeness = rest.square().sum(-1) / left.clamp_min(_TINY)
        return [
            received.square().sum(-1),
            received.square().sum(-1) / (sharp + _TINY),
            left_top,
            likeness.clamp(0, 1),
            left_top * lines.amax(0).sqrt().mul(self._share[:, None]).sum(-1),
        ]

    def _sentences(self, by_part: Tensor, squares: Tensor, offsets: Tensor) -> list[Tensor]:
        """Attention within the own sentence beyond chance, and how alike its rows are."""
        paired = self._paired[:, None]
        sizes = self._sizes / self._count[:, None]  # (B, 2), sum to 1
        within = (by_part * self._inside[:, None]).sum(-1)  # (B, H, 2)
        own = within / sizes.clamp_min(_TINY)[:, None]
        beyond = (own - sizes[:, None]) * paired[..., None]
        rows = by_part / sizes.clamp_min(_TINY)[:, None, :, None]  # mean row of each sentence
        sharp = squares @ (self._inside / self._sizes.clamp_min(1)[..., None]).mT  # (B, H, 2)
        alike = (rows.square().sum(-1) / (sharp + _TINY) * sizes[:, None]).sum(-1)
        top = rows.topk(min(2, rows.shape[-1]), -1).values.sum(-1)
        total = (beyond * sizes[:, None]).sum(-1)
        near = offsets[REACH - 1 : REACH + 2].sum(0)
        far = (within.sum(-1) - near) / (1 - near).clamp_min(0.05)
        by_chance = sizes.square().sum(-1)[:, None]
        return [
            total,
            beyond.amin(-1),
            beyond.amax(-1),
            (far - by_chance) * paired,
            alike,
            (top * sizes[:, None]).sum(-1),
            total * (1 - alike),
        ]

    def _darkness(self, darkest: Tensor, squares: Tensor) -> list[Tensor]:
        mean = self._mean(darkest)
        most = (darkest * self._real[:, None]).amax(-1)
        return [self._mean(squares), mean, mean / most, 1 / (self._count[:, None] * mean)]
