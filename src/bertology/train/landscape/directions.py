"""Directions in the space of weights, normalised by filters, and the place of points in a plane.

Two models can compute the same with weights of very different size, so a step of one length does
more to one than to the other. Li et al. (2018) therefore scale each filter of a random direction to
the norm of the model's own filter: a step of 0.1 changes every filter by a tenth of its size. A
filter is a row of a matrix: what goes into one unit, or the embedding of one token. Biases and
the scales of LayerNorms are left alone, as there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from bertology.train.landscape.terrain import Weights


def random_direction(weights: Mapping[str, Tensor], *, seed: tuple[int, int]) -> Weights:
    """A direction whose filters are drawn at random and as long as those of `weights`.

    `seed` is that of the run and the number of the direction. Drawn on the CPU: the same on
    every device.
    """
    generator = torch.Generator().manual_seed(1_000_003 * seed[0] + seed[1])
    found: Weights = {}
    for name, weight in weights.items():
        if weight.dim() < 2:
            continue
        drawn = torch.randn(weight.shape, generator=generator).to(weight.device)
        found[name] = drawn * (_rows(weight) / _rows(drawn))
    return found


def filter_scales(weights: Mapping[str, Tensor]) -> Weights:
    """What a unit step of each weight is in filter-normalised coordinates: (rows, 1, …).

    A random direction has the squared length of a filter spread evenly over its weights, so the
    mean curvature along random directions is the trace of the Hessian in these coordinates.
    """
    return {
        name: _rows(weight) / math.sqrt(weight[0].numel())
        for name, weight in weights.items()
        if weight.dim() > 1
    }


def _rows(weight: Tensor) -> Tensor:
    """The norm of each row, with as many dimensions as the weight has."""
    norms: Tensor = torch.linalg.vector_norm(weight.flatten(1), dim=1)
    return norms.reshape(-1, *[1] * (weight.dim() - 1))


def difference(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> Weights:
    """The way from `other` to `one`."""
    return {name: weight - other[name] for name, weight in one.items()}


def length(direction: Mapping[str, Tensor]) -> float:
    """The norm of all weights together."""
    return math.sqrt(_product(direction, direction))


def _product(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> float:
    return float(
        torch.stack([(one[n].double() * other[n].double()).sum() for n in one]).sum().cpu()
    )


@dataclass(frozen=True)
class Plane:
    """A plane through three models: from `origin`, along the way to the first end, and across it.

    Both directions are as long as the way to the first end, which is the unit of the plane: the
    origin is (0, 0) and the first end (1, 0).
    """

    origin: Weights
    along: Weights
    across: Weights

    def place(self, weights: Mapping[str, Tensor]) -> tuple[float, float, float]:
        """Where a model lies, projected, and which share of its squared way lies in the plane."""
        way = difference(weights, self.origin)
        unit = _product(self.along, self.along)
        x, y = (_product(way, axis) / unit for axis in (self.along, self.across))
        whole = _product(way, way)
        return x, y, (x * x + y * y) * unit / whole if whole else 1.0


def plane_through(origin: Weights, end: Weights, other: Weights) -> Plane:
    """The plane through a start and two ends."""
    along, second = difference(end, origin), difference(other, origin)
    unit = _product(along, along)
    share = _product(second, along) / unit
    rest = {name: way - share * along[name] for name, way in second.items()}
    longer = math.sqrt(unit / _product(rest, rest))
    return Plane(origin, along, {name: longer * way for name, way in rest.items()})
