"""How a matrix is rounded to a few values: three schemes.

- `symmetric`: a step for each row, or for the whole matrix; zero stays zero.
- `groups`: rows are cut into groups, each with its own smallest value and step (Q-BERT).
- `dictionary`: a few centroids for all weights but the outliers, which are kept as they are (GOBO).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from bertology.errors import BertologyError
from bertology.model.compressed.packing import pack, packed_size, unpack

SYMMETRIC, GROUPS, DICTIONARY = "symmetric", "groups", "dictionary"
SCHEMES = (SYMMETRIC, GROUPS, DICTIONARY)
_ROUNDS = 100  # of looking for centroids, at most; it ends much earlier
_TINY = 1e-12  # the step of a row of zeros


@dataclass(frozen=True)
class Format:
    """How the numbers of one matrix are stored: the scheme, bits for each, and what it needs."""

    scheme: str
    bits: int
    groups: int = 1  # that have their own step; of symmetric ones, all rows or 1
    outliers: int = 0

    def __post_init__(self) -> None:
        fits = self.scheme in SCHEMES and type(self.bits) is int and 1 <= self.bits <= 8
        fits = fits and type(self.groups) is int and self.groups >= 1
        fits = fits and type(self.outliers) is int and self.outliers >= 0
        if not fits or (self.scheme == SYMMETRIC and self.bits < 2):
            raise BertologyError(
                f"There is no such way to store weights: {self}.",
                hint=f"Schemes: {', '.join(SCHEMES)}; 1 to 8 bits (symmetric: 2 to 8).",
            )

    def empty(self, rows: int, columns: int) -> dict[str, Tensor]:
        """The tensors of such a matrix before their values are read."""
        codes = torch.zeros(packed_size(rows * columns, self.bits), dtype=torch.uint8)
        if self.scheme == DICTIONARY:
            return {
                "codes": codes,
                "centroids": torch.zeros(2**self.bits),
                "outliers": torch.zeros(self.outliers),
                "places": torch.zeros(self.outliers, dtype=torch.int32),
            }
        steps = {"codes": codes, "step": torch.zeros(self.groups)}
        return steps if self.scheme == SYMMETRIC else steps | {"least": torch.zeros(self.groups)}

    def packed(self, held: dict[str, Tensor]) -> dict[str, Tensor]:
        """The tensors as they are stored, the codes packed."""
        return held | {"codes": pack(held["codes"], self.bits)}

    def unpacked(self, held: dict[str, Tensor], rows: int, columns: int) -> dict[str, Tensor]:
        """The tensors with codes (rows, columns), one in each byte."""
        codes = unpack(held["codes"], self.bits, rows * columns).reshape(rows, columns)
        return held | {"codes": codes}

    def values(self, held: dict[str, Tensor]) -> Tensor:
        """(rows, columns): what unpacked numbers stand for."""
        codes = held["codes"]
        rows = len(codes)
        if self.scheme == DICTIONARY:
            weight = held["centroids"][codes.long()].reshape(-1)
            weight[held["places"].long()] = held["outliers"]
            return weight.reshape(codes.shape)
        step = spread(held["step"], rows)
        if self.scheme == SYMMETRIC:
            return (codes.to(step.dtype) - self.middle) * step
        return codes.to(step.dtype) * step + spread(held["least"], rows)

    @property
    def middle(self) -> int:
        """The number that stands for zero, of symmetric ones."""
        return int(2 ** (self.bits - 1)) - 1

    @classmethod
    def of(cls, weight: Tensor, bits: int, scheme: str, groups: str | int, limit: float) -> Format:
        """The format of this matrix, `groups` being `row`, `tensor` or a number of groups."""
        rows = len(weight)
        if scheme == DICTIONARY:
            return cls(scheme, bits, outliers=int(_is_outlier(weight, limit).sum()))
        if scheme == SYMMETRIC and groups not in ("row", "tensor"):
            raise BertologyError(
                f"Symmetric steps are of each row or of the tensor, not {groups!r}."
            )
        named = {"row": rows, "tensor": 1}
        number = named.get(groups, 0) if isinstance(groups, str) else min(groups, rows)
        return cls(scheme, bits, number)

    def of_weight(self, weight: Tensor, *, limit: float) -> dict[str, Tensor]:
        """The tensors that stand for a matrix, not packed yet."""
        weight = weight.detach().float()
        if self.scheme == DICTIONARY:
            flat = weight.reshape(-1)
            out = _is_outlier(weight, limit).reshape(-1)
            centroids = _centroids(flat[~out], 2**self.bits)
            return {
                "codes": _nearest(flat, centroids).to(torch.uint8).reshape(weight.shape),
                "centroids": centroids,
                "outliers": flat[out].clone(),
                "places": out.nonzero()[:, 0].to(torch.int32),
            }
        most = 2**self.bits - 1
        if self.scheme == SYMMETRIC:
            largest = weight.abs().amax(1) if self.groups > 1 else weight.abs().amax()[None]
            step = (largest / self.middle).clamp_min(_TINY)
            codes = (weight / spread(step, len(weight))).round() + self.middle
            return {"codes": codes.clamp_(0, most).to(torch.uint8), "step": step}
        rows = len(weight)
        least, largest = (_of_groups(weight, self.groups, end) for end in ("amin", "amax"))
        step = ((largest - least) / most).clamp_min(_TINY)
        codes = ((weight - spread(least, rows)) / spread(step, rows)).round().clamp_(0, most)
        return {"codes": codes.to(torch.uint8), "step": step, "least": least}


def rounded(
    weight: Tensor,
    bits: int,
    *,
    scheme: str = SYMMETRIC,
    groups: str | int = "row",
    outlier_limit: float = -4.0,
) -> Tensor:
    """What a matrix becomes when it is stored so."""
    form = Format.of(weight, bits, scheme, groups, outlier_limit)
    return form.values(form.of_weight(weight, limit=outlier_limit)).to(weight.dtype)


def _group_of(rows: int, groups: int, device: torch.device) -> Tensor:
    """(rows,): the group of each row; group i begins at row `rows * i // groups`."""
    return ((torch.arange(rows, device=device) + 1) * groups - 1) // rows


def _of_groups(weight: Tensor, groups: int, end: str) -> Tensor:
    """(groups,): the least ("amin") or largest ("amax") weight in each group of rows."""
    of_rows: Tensor = getattr(weight, end)(1)
    found = of_rows.new_empty(groups)
    where = _group_of(len(weight), groups, weight.device)
    return found.scatter_reduce_(0, where, of_rows, end, include_self=False)


def spread(values: Tensor, rows: int) -> Tensor:
    """What groups of rows have, for each row: (groups,) -> (rows, 1)"""
    if len(values) == rows:
        return values[:, None]
    return values[_group_of(rows, len(values), values.device)][:, None]


def _is_outlier(weight: Tensor, limit: float) -> Tensor:
    """Weights that are this unlikely (log density) under a normal distribution of them all."""
    values = weight.detach().float()
    spread = values.std().clamp_min(_TINY)
    unlikely = -0.5 * ((values - values.mean()) / spread) ** 2
    return unlikely - torch.log(spread) - 0.5 * math.log(2 * math.pi) < limit


def _nearest(values: Tensor, centroids: Tensor) -> Tensor:
    """The number of the centroid nearest to each value; centroids are in order."""
    return torch.bucketize(values, (centroids[1:] + centroids[:-1]) / 2)


def _centroids(values: Tensor, count: int) -> Tensor:
    """GOBO's: at first the means of equally many values, then moved while the L1 error falls."""
    ordered = values.sort().values
    if len(ordered) == 0:
        return torch.zeros(count, device=values.device)
    edges = [len(ordered) * i // count for i in range(count + 1)]
    pairs = itertools.pairwise(edges)
    # Means over a sorted row come from its running sums, so that a round costs no new sorting.
    sums = torch.cat([ordered.new_zeros(1, dtype=torch.float64), ordered.double().cumsum(0)])
    found = torch.stack(
        [ordered[min(a, len(ordered) - 1) : max(b, a + 1)].mean() for a, b in pairs]
    )
    best, error = found, math.inf
    for _ in range(_ROUNDS):
        now = float((ordered - found[_nearest(ordered, found)]).abs().sum())
        if not now < error:
            break
        best, error = found, now
        middles = (found[1:] + found[:-1]) / 2
        ends = torch.searchsorted(ordered, middles)
        ends = torch.cat([ends.new_zeros(1), ends, ends.new_full((1,), len(ordered))])
        many = ends.diff()
        mean = (sums[ends[1:]] - sums[ends[:-1]]) / many.clamp_min(1)
        found = torch.where(many > 0, mean.to(found.dtype), found)
    return best
