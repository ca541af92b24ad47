"""A light parser on frozen states: each word chooses its head, or the root, by two linear maps.

A word d scores each other word h by (U d)·(V h) + w·h; the softmax over all words and the root is
trained (Dozat and Manning 2017, without anything between the states and the maps). All layers
are trained together, each by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bertology.arrays import Ints
from bertology.studies.languages.zero_shot_transfer.data import DEV, TEST, TRAIN, Taught
from bertology.studies.languages.zero_shot_transfer.probes import (
    KINDS,
    Features,
    Transfer,
    picked_layers,
)

RANK, _STEPS, _BATCH, _RATE, _DECAY = 32, 300, 32, 3e-3, 0.1
_SCORED = 64  # sentences at a time


def parsed(
    features: Features,
    heads: Ints,
    taught: Taught,
    sources: Sequence[int],
    *,
    seeds: int,
    seed: int,
    device: torch.device,
) -> Transfer:
    """Of rows that are words; `heads` (R,) are places among the rows of a text, from 1, 0 the root.

    Negative where the head has no state: no question is asked there.
    """
    texts = features.texts
    states = _Sentences(features, heads, device)
    shape = (features.layers, seeds, len(KINDS), len(sources), len(taught.corpus))
    hits, held = np.zeros(shape, np.float32), np.zeros(shape[:4])
    for at, source in enumerate(sources):
        train, dev = (_places(taught, source, role) for role in (TRAIN, DEV))
        own = np.isin(texts, train)
        scale = states.scale(own)
        for run in range(seeds):
            rng = np.random.default_rng([seed, source, run])
            lesson = rng.choice(train, len(train))
            probe = _trained(states, lesson, scale, rng)
            for batch in _batches(dev):
                right = states.right(probe, batch, scale, None)
                held[:, run, :, at] += right.sum(1)[:, None]
            for code in range(len(taught.codes)):
                middle = states.middle(taught.language[texts] == code)
                for batch in _batches(_places(taught, code, TEST)):
                    for kind, name in enumerate(KINDS):
                        right = states.right(
                            probe, batch, scale, middle if name == "centred" else None
                        )
                        hits[:, run, kind, at, batch] = right
    counts = np.bincount(texts[heads >= 0], minlength=shape[4])
    return picked_layers(hits, held, counts, taught)


def _places(taught: Taught, code: int, role: int) -> Ints:
    return np.flatnonzero(taught.of(code, role))


def _batches(places: Ints) -> Iterator[Ints]:
    for start in range(0, len(places), _SCORED):
        yield places[start : start + _SCORED]


class _Sentences:
    """States of all layers by sentence; half precision, as they were kept."""

    def __init__(self, features: Features, heads: Ints, device: torch.device) -> None:
        self.rows = torch.from_numpy(
            np.stack(
                [
                    features.layer(number, language=None).astype(np.float16)
                    for number in range(features.layers)
                ]
            )
        )
        self._heads, self._device = heads, device
        counts = np.bincount(features.texts, minlength=int(features.texts.max()) + 1)
        self._starts = np.concatenate([[0], np.cumsum(counts)])

    def middle(self, own: np.ndarray) -> Tensor:
        """(L, 1, D), the mean of some rows."""
        return self.rows[:, torch.from_numpy(np.flatnonzero(own))].float().mean(1, keepdim=True)

    def scale(self, own: np.ndarray) -> tuple[Tensor, Tensor]:
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
        return states.to(self._device), heads.to(self._device), there.to(self._device)

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


def _trained(
    sentences: _Sentences, lesson: Ints, scale: tuple[Tensor, Tensor], rng: np.random.Generator
) -> list[Tensor]:
    layers, _, width = sentences.rows.shape
    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
    sizes = ((layers, width, RANK), (layers, width, RANK), (layers, width), (layers, RANK))
    probe = [torch.randn(size, generator=generator) * width**-0.5 for size in sizes]
    probe = [one.to(sentences._device).requires_grad_() for one in (*probe, torch.zeros(layers))]
    optimizer = torch.optim.AdamW(probe, lr=_RATE, weight_decay=_DECAY)
    for step in range(_STEPS):
        chosen = rng.choice(lesson, min(_BATCH, len(lesson)))
        states, heads, there = sentences.batch(chosen, scale, None)
        said = _scores(probe, states, there)
        wanted = heads[None].expand(layers, -1, -1)
        loss = functional.cross_entropy(said.flatten(0, 2), wanted.flatten(), ignore_index=-1)
        optimizer.param_groups[0]["lr"] = _RATE * (1 - step / _STEPS)
        optimizer.zero_grad(set_to_none=True)
        whole = layers * loss  # each layer learns as if it were alone
        whole.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return [one.detach() for one in probe]
