"""Models with weights of chance: moved as far as training moved them, or put in random order.

Attention changes with any change of the weights, and more in higher layers, whose input has changed
too. What is said of fine-tuning must therefore be more than noise of the same size does. And a
trained reader finds something in attention of any weights, so what it finds in a model must be more
than it finds in the same weights without their order.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING
from zlib import crc32

import torch

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder


def noisy_copies(
    before: Encoder, after: Encoder, *, draws: int, seed: int, even: bool = False
) -> Iterator[Encoder]:
    """`before` with Gaussian noise on its weights, `draws` times.

    In each matrix (or vector) the noise is as long as the change to `after`; or, with `even`, the
    same share of the length of every matrix, as large as the change in all. The same encoder is
    given each time with other weights, so use one before asking for the next. The numbers depend
    on the seed, the draw and the name of the matrix, not on the device.
    """
    from bertology.model.encoder import Encoder

    if not draws:
        return
    model = copy.deepcopy(before.model)
    noisy = Encoder(model, before.tokenizer, head=before.head, name=f"{before.name} with noise")
    sizes = _sizes(before, after, even=even)
    start = {name: weights.detach().clone() for name, weights in noisy.base.named_parameters()}
    for draw in range(draws):
        with torch.no_grad():
            for name, weights in noisy.base.named_parameters():
                if name in sizes:
                    noise = _noise(weights.shape, f"{seed}/{draw}/{name}").to(weights.device)
                    step = noise * (sizes[name] / noise.norm().clamp_min(1e-30))
                    weights.copy_(start[name] + step.to(weights.dtype))
        yield noisy


def shuffled_copy(encoder: Encoder, *, seed: int) -> Encoder:
    """The same model with the numbers of each matrix in random order; vectors stay as they are."""
    from bertology.model.encoder import Encoder

    found = Encoder(
        copy.deepcopy(encoder.model),
        encoder.tokenizer,
        head=encoder.head,
        name=f"{encoder.name}, weights shuffled",
    )
    with torch.no_grad():
        for name, weights in found.base.named_parameters():
            if weights.dim() > 1:
                generator = torch.Generator().manual_seed(crc32(f"{seed}/{name}".encode()))
                order = torch.randperm(weights.numel(), generator=generator).to(weights.device)
                weights.copy_(weights.flatten()[order].view_as(weights))
    return found


def _sizes(before: Encoder, after: Encoder, *, even: bool) -> dict[str, float]:
    """How long the noise of each matrix is. What only one of the two has (a pooler) gets none."""
    trained, moved, whole = dict(after.base.named_parameters()), {}, {}
    for name, weights in before.base.named_parameters():
        if name in trained and trained[name].shape == weights.shape:
            first = weights.detach().double()
            moved[name] = float((trained[name].detach().to(first) - first).norm())
            whole[name] = float(first.norm())
    if not even:
        return moved
    total = math.hypot(*whole.values())
    share = math.hypot(*moved.values()) / total if total else 0.0
    return {name: share * size for name, size in whole.items()}


def _noise(shape: torch.Size, name: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(crc32(name.encode()))
    return torch.randn(shape, generator=generator)
