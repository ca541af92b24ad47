"""Exact numbers of whole maps, for what cells are too coarse to show.

Does a line lie on the next token, and does it run all along? Is a stripe one token wide, and do all
rows share it? Do rows look alike, if not in the whole map then within each sentence? Every number
is made of row maxima, row squares, what columns receive, and a few diagonals and columns, so that
a map is read as few times as possible. Padding changes none of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bertology.model.reducers.map_measures import REACH, in_sentences

OFFSET_COUNT = 2 * REACH + 1
_TOP = (1, 2, 4, 8)  # attention to the so many tokens that take most
_STRIPES = 4  # columns whose way through the rows is followed
_PLAIN = ("near", "wide", "line squares", "squares", "darkest")
_ROOTED = ("line", "line of all", "first column", "near", "wide", "two columns", "columns")
_COMPARED = ("line", "line of all", "line nearby", "first column", "column")
_ROWS = (*_PLAIN, *(f"root of {x}" for x in _ROOTED), *(f"{x} to darkest" for x in _COMPARED))
_TINY = 1e-9
_FAINT = 1e-4  # squares: where less is left beside the diagonals, its form is rounding
FACTS = OFFSET_COUNT + 37


class TextFacts:
    """Reads the facts of all maps over the texts of one batch."""

    def __init__(self, segments: Tensor) -> None:
        """`segments` is (B, T): 0 and 1 in a pair's sentences, all 0 for one, -1 for padding."""
        inside = in_sentences(segments)  # (B, 2, T)
        self.inside, self._sizes = inside, inside.sum(-1)
        self.real = inside.sum(1)  # 1 or 0
        self.count = self.real.sum(-1, keepdim=True).clamp_min(1)
        self.paired = self._sizes[:, 1] > 0  # (B,)
        self._share = self.real / self.count  # of each query
        # The share of queries in each sentence; what columns receive is read once for both.
        self._parts = inside / self.count[:, None]

    def of(self, maps: Tensor) -> Tensor:
        """(B, H, FACTS) of maps (B, H, T, T), the offsets -REACH … REACH first."""
        darkest = maps.amax(-1)  # (B, H, T), of each row
        squares = torch.linalg.vector_norm(maps, dim=-1).square()
        by_part = self._parts[:, None] @ maps  # (B, H, 2, T)
        received = by_part.sum(-2)
        lines = self._lines(maps)  # (OFFSET_COUNT, B, H, T), by query
        shares = lines * self._share[:, None]
        offsets = shares.sum(-1)
        most, where = received.topk(min(_TOP[-1], maps.shape[-1]), -1)
        followed = where[..., None, :_STRIPES].expand(*maps.shape[:-1], -1)
        columns = maps.gather(-1, followed)  # (B, H, T, _STRIPES)
        rows = self._rows(lines, offsets, columns, darkest, squares)
        facts = [
            *offsets,
            *self._line_facts(offsets, rows),
            *self._column_facts(most, rows),
            *self._likeness(received, shares, rows),
            *self._sentences(by_part, squares, offsets),
            *self._darkness(darkest, rows),
        ]
        text = (self.count.log(), self.paired[:, None].float())
        facts += [x.expand_as(facts[0]) for x in text]
        return torch.stack(facts, -1)

    def _lines(self, maps: Tensor) -> Tensor:
        """Attention of each query to each relative position; 0 where that lies outside."""
        size = maps.shape[-1]
        lines = self.real.new_zeros(OFFSET_COUNT, *maps.shape[:-1])
        for i, k in enumerate(range(-REACH, REACH + 1)):
            if abs(k) < size:
                lines[i, ..., max(-k, 0) : size - max(k, 0)] = maps.diagonal(k, -2, -1)
        return lines * self.real[:, None]

    def _rows(
        self, lines: Tensor, offsets: Tensor, columns: Tensor, darkest: Tensor, squares: Tensor
    ) -> dict[str, Tensor]:
        """Means over real queries, (B, H), by name; all at once, for every call has its price."""
        best = offsets.argmax(0)  # (B, H)
        near = lines[REACH - 1 : REACH + 2]
        of = {
            "near": near.sum(0),
            "wide": lines.sum(0),
            "line squares": lines.square().sum(0),
            "squares": squares,
            "darkest": darkest,
            "line": lines.gather(0, best[None, ..., None].expand_as(lines[:1]))[0],
            "line of all": lines.amax(0),
            "line nearby": near.amax(0),
            "first column": columns[..., 0],
            "two columns": columns[..., :2].sum(-1),
            "columns": columns.sum(-1),
            "column": columns.amax(-1),
        }
        plain = torch.stack([of[name] for name in _PLAIN])
        roots = torch.stack([of[name] for name in _ROOTED]).sqrt_()
        ratios = torch.stack([of[name] for name in _COMPARED]).div_(darkest + _TINY)
        means = torch.cat([plain, roots, ratios]).mul_(self._share[:, None]).sum(-1)
        return dict(zip(_ROWS, means, strict=True))

    def _line_facts(self, offsets: Tensor, rows: dict[str, Tensor]) -> list[Tensor]:
        by_chance = (OFFSET_COUNT / self.count).clamp_max(1)
        return [
            offsets.amax(0),
            rows["root of line"],
            rows["line to darkest"],
            rows["near"],
            rows["root of near"],
            rows["line nearby to darkest"],
            rows["wide"],
            rows["wide"] - by_chance,
            rows["root of wide"],
            rows["line of all to darkest"],
        ]

    def _column_facts(self, most: Tensor, rows: dict[str, Tensor]) -> list[Tensor]:
        sums = most.cumsum(-1)
        return [
            *(sums[..., min(n, most.shape[-1]) - 1] for n in _TOP),
            rows["root of first column"],
            rows["root of two columns"],
            rows["root of columns"],
            rows["first column to darkest"],
            rows["column to darkest"],
        ]

    def _likeness(self, received: Tensor, shares: Tensor, rows: dict[str, Tensor]) -> list[Tensor]:
        """How alike rows are, 1 for full stripes; also of what is left without the diagonals."""
        size = received.shape[-1]
        rest = received.clone()
        for i, k in enumerate(range(-REACH, REACH + 1)):
            if abs(k) < size:
                kept = slice(max(-k, 0), size - max(k, 0))
                moved = slice(max(k, 0), size - max(-k, 0))
                rest[..., moved] -= shares[i, ..., kept]
        left = rows["squares"] - rows["line squares"]
        left_top = rest.topk(min(2, size), -1).values.sum(-1)
        likeness = rest.square().sum(-1) / left.clamp_min(_FAINT)
        alike = received.square().sum(-1)
        return [
            alike,
            alike / (rows["squares"] + _TINY),
            left_top,
            likeness.clamp(0, 1),
            left_top * rows["root of line of all"],
        ]

    def _sentences(self, by_part: Tensor, squares: Tensor, offsets: Tensor) -> list[Tensor]:
        """Attention within the own sentence beyond chance, and how alike its rows are."""
        paired = self.paired[:, None]
        sizes = self._sizes / self.count  # (B, 2), sum to 1
        within = (by_part * self.inside[:, None]).sum(-1)  # (B, H, 2)
        own = within / sizes.clamp_min(_TINY)[:, None]
        beyond = (own - sizes[:, None]) * paired[..., None]
        rows = by_part / sizes.clamp_min(_TINY)[:, None, :, None]  # mean row of each sentence
        sharp = squares @ (self.inside / self._sizes.clamp_min(1)[..., None]).mT  # (B, H, 2)
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

    def _darkness(self, darkest: Tensor, rows: dict[str, Tensor]) -> list[Tensor]:
        mean = rows["darkest"]
        most = (darkest * self.real[:, None]).amax(-1)
        return [rows["squares"], mean, mean / most, 1 / (self.count * mean)]
