"""A light parser on frozen states: each word chooses its head, or the root, by two linear maps.

A word d scores each other word h by (U d)·(V h) + w·h; the softmax over all words and the root is
trained (Dozat and Manning 2017, without anything between the states and the maps). All layers
are trained together, each by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from bertology.arrays import Bools, Ints

RANK, STEPS, RATE = 32, 300, 3e-3
_BATCH, _DECAY = 32, 0.1


class Sentences:
    """States of all layers by sentence; half precision, as they were kept."""

    def __init__(
        self, rows: NDArray[np.float16], texts: Ints, heads: Ints, device: torch.device
    ) -> None:
        """Of rows (L, R, D), the text of each, and its head: its place from 1, 0 the root, -1."""
        self.rows, self.device = torch.from_numpy(rows), device
        self._heads = heads
        counts = np.bincount(texts, minlength=int(texts.max()) + 1)
        self._starts = np.concatenate([[0], np.cumsum(counts)])

    def middle(self, own: Bools) -> Tensor:
        """(L, 1, D), the mean of some rows."""
        return self.rows[:, torch.from_numpy(np.flatnonzero(own))].float().mean(1, keepdim=True)

    def scale(self, own: Bools) -> tuple[Tensor, Tensor]:
        """The mean and the spread of some rows, (L, 1, D) each."""
        rows = self.rows[:, torch.from_numpy(np.flatnonzero(own))].float()
        return rows.mean(1, keepdim=True), rows.std(1, keepdim=True).clamp_min(1e-6)

    def batch(
        self, places: Ints, scale: tuple[Tensor, Tensor], middle: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """States (L, n, T, D), heads (n, T) and which words there are (n, T)."""
        starts, ends = self._starts[places], self._starts[places + 1]
        most = max(int((ends - starts).max()), 1)
        at = torch.from_numpy(starts)[:, None] + torch.arange(most)
        there = at < torch.from_numpy(ends)[:, None]
        at = torch.where(there, at, 0)
        states = self.rows[:, at].float()  # (L, n, T, D)
        mean, spread = scale
        states = (states - (mean if middle is None else middle)[:, None]) / spread[:, None]
        heads = torch.where(there, torch.from_numpy(self._heads)[at], -1)
        return states.to(self.device), heads.to(self.device), there.to(self.device)

    def right(
        self,
        probe: Sequence[Tensor],
        places: Ints,
        scale: tuple[Tensor, Tensor],
        middle: Tensor | None,
    ) -> Ints:
        """(L, n) right heads."""
        with torch.no_grad():
            states, heads, there = self.batch(places, scale, middle)
            said = _scores(probe, states, there).argmax(-1)
            right = ((said == heads) & (heads >= 0)).sum(-1)
        found: Ints = right.cpu().numpy()
        return found


def _scores(probe: Sequence[Tensor], states: Tensor, there: Tensor) -> Tensor:
    """(L, n, T, 1 + T): of the root, then of each word as the head."""
    one, other, alone, root, bias = probe
    dependents = torch.einsum("lntd,ldr->lntr", states, one)
    heads = torch.einsum("lntd,ldr->lntr", states, other)
    found = torch.einsum("lntr,lnsr->lnts", dependents, heads) / RANK**0.5
    found = found + torch.einsum("lnsd,ld->lns", states, alone)[:, :, None]
    length = there.shape[1]
    itself = torch.eye(length, dtype=torch.bool, device=there.device)
    found = found.masked_fill(~there[None, :, None] | itself, -1e9)
    top = torch.einsum("lntr,lr->lnt", dependents, root) + bias[:, None, None]
    return torch.cat([top[..., None], found], dim=-1)


def trained_heads(
    sentences: Sentences, lesson: Ints, scale: tuple[Tensor, Tensor], rng: np.random.Generator
) -> list[Tensor]:
    """A probe of all layers, learnt from the sentences at these places."""
    layers, _, width = sentences.rows.shape
    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
    sizes = ((layers, width, RANK), (layers, width, RANK), (layers, width), (layers, RANK))
    probe = [torch.randn(size, generator=generator) * width**-0.5 for size in sizes]
    probe = [one.to(sentences.device).requires_grad_() for one in (*probe, torch.zeros(layers))]
    optimizer = torch.optim.AdamW(probe, lr=RATE, weight_decay=_DECAY)
    for step in range(STEPS):
        chosen = rng.choice(lesson, min(_BATCH, len(lesson)))
        states, heads, there = sentences.batch(chosen, scale, None)
        said = _scores(probe, states, there)
        wanted = heads[None].expand(layers, -1, -1)
        loss = functional.cross_entropy(said.flatten(0, 2), wanted.flatten(), ignore_index=-1)
        optimizer.param_groups[0]["lr"] = RATE * (1 - step / STEPS)
        optimizer.zero_grad(set_to_none=True)
        whole = layers * loss  # each layer learns as if it were alone
        whole.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return [one.detach() for one in probe]
