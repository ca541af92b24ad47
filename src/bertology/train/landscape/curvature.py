"""How sharply the loss bends: the largest eigenvalues of its Hessian, and the trace.

The Hessian is never built. Its product with a vector is the derivative of the gradient along it, by
a second backward pass. Lanczos' method finds the largest eigenvalues from such products,
Hutchinson's the trace, as the mean of v·Hv over vectors of random signs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from bertology.arrays import Floats
from bertology.train.landscape.terrain import Terrain


@dataclass(frozen=True)
class Spectrum:
    """The ends of a spectrum, as far as Lanczos' method knows them."""

    largest: Floats  # falling
    errors: Floats  # how far an eigenvalue is at most from each
    lowest: float
    steps: int


@dataclass(frozen=True)
class Hessian:
    """The Hessian of the mean loss where the model of `terrain` stands.

    With `scales` it is seen in other coordinates: a step of 1 in a coordinate changes the weight by
    its scale. Weights without one are left alone there.
    """

    terrain: Terrain
    scales: Mapping[str, Tensor] | None = None

    @property
    def _named(self) -> dict[str, Tensor]:
        weights: dict[str, Tensor] = dict(self.terrain.model.named_parameters())
        return weights if self.scales is None else {n: weights[n] for n in self.scales}

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        return sum(weight.numel() for weight in self._named.values())

    def product(self, vector: Tensor) -> Tensor:
        """H · v, both flat."""
        [found] = self._products([vector], keep=True)
        assert isinstance(found, Tensor)
        return found

    def traces(self, *, probes: int, seed: int) -> Floats:
        """v · Hv for as many vectors of random signs; their mean is the trace, without bias."""
        generator = torch.Generator().manual_seed(seed)
        device = next(iter(self._named.values())).device
        signs = [
            (2 * torch.randint(0, 2, (self.size,), dtype=torch.int8, generator=generator) - 1).to(
                device
            )
            for _ in range(probes)
        ]
        return np.array([float(value) for value in self._products(signs, keep=False)])

    def _products(self, vectors: Sequence[Tensor], *, keep: bool) -> list[Tensor]:
        """H · v of each, or v · Hv only; the graph of a batch is built once for all of them."""
        named, size = self._named, self.terrain.size
        weights = list(named.values())
        scales = None if self.scales is None else [self.scales[name] for name in named]
        found: list[Tensor] = []
        # torch's fused attention has no second derivative.
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
            for inputs, targets in self.terrain.batches:
                loss = self.terrain._summed(inputs, targets) / size
                slopes = torch.autograd.grad(
                    loss, weights, create_graph=True, materialize_grads=True
                )
                slope = _flat(slopes, scales)
                for i, vector in enumerate(vectors):
                    signs = vector.to(slope.dtype)
                    bent = torch.autograd.grad(
                        slope, weights, signs, retain_graph=i + 1 < len(vectors),
                        materialize_grads=True,
                    )  # fmt: skip
                    with torch.no_grad():
                        there = _flat(bent, scales)
                        part = there if keep else (there.double() @ signs.double())
                        if len(found) <= i:
                            found.append(part)
                        else:
                            found[i] = found[i] + part
        return found

    def spectrum(
        self, *, iterations: int, count: int = 3, seed: int = 0, tolerance: float = 1e-3
    ) -> Spectrum:
        """The largest eigenvalues."""
        generator = torch.Generator().manual_seed(seed)
        first = torch.randn(self.size, generator=generator)
        device = next(iter(self._named.values())).device
        return largest_eigenvalues(
            self.product, first.to(device), iterations=iterations, count=count, tolerance=tolerance
        )


def _flat(values: Sequence[Tensor], scales: Sequence[Tensor] | None) -> Tensor:
    scaled = values if scales is None else [v * s for v, s in zip(values, scales, strict=True)]
    return torch.cat([value.reshape(-1) for value in scaled])


def largest_eigenvalues(
    product: Callable[[Tensor], Tensor],
    first: Tensor,
    *,
    iterations: int,
    count: int = 3,
    tolerance: float = 1e-3,
) -> Spectrum:
    """Lanczos' method, with every new vector made orthogonal to all before it.

    It stops where the largest is known to `tolerance` of itself, or after so many products.
    """
    most = min(iterations, first.numel())
    basis = first.new_empty((most, first.numel()))
    basis[0] = first / first.norm()
    diagonal: list[float] = []
    beside: list[float] = []
    while True:
        known_so_far = basis[: len(diagonal) + 1]
        new = product(known_so_far[-1])
        diagonal.append(float(new.double() @ known_so_far[-1].double()))
        for _ in range(2):  # once is not enough in floats of 32 bits
            new = torch.addmv(new, known_so_far.T, known_so_far @ new, alpha=-1)
        rest = float(new.double().norm())
        values, vectors = _ritz(diagonal, beside)
        errors = rest * np.abs(vectors[-1])
        size = max(abs(float(values[0])), abs(float(values[-1])))
        known = len(diagonal) >= min(most, count + 2) and errors[-1] <= tolerance * abs(values[-1])
        if len(diagonal) >= most or known or rest <= 1e-7 * size or not math.isfinite(rest):
            break
        beside.append(rest)
        basis[len(diagonal)] = new / rest
    return Spectrum(
        values[::-1][:count].copy(), errors[::-1][:count].copy(), float(values[0]), len(diagonal)
    )


def _ritz(diagonal: Sequence[float], beside: Sequence[float]) -> tuple[Floats, Floats]:
    """Eigenvalues (rising) and vectors of the small matrix."""
    made = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    if not np.isfinite(made).all():
        return np.full(len(diagonal), math.nan), np.full(made.shape, math.nan)
    found = np.linalg.eigh(made)
    return found.eigenvalues, found.eigenvectors
