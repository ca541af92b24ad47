"""Sentences as means of words bound to roles: tensor products for all layers at once, exactly.

The vector y of a sentence with words i is approximated by M · mean_i(f_i ⊗ r_i) + b (McCoy et al.
2019). Fillers f are given, as Jawahar et al. (2019) have them; a role's vector r has a part that
all roles share and one of its own, at right angles to all others. Products are averaged, not
summed: a state does not grow with its sentence, and roles that tell the length should not win by
dividing.

With fillers and roles given, M is a matter of least squares, with a penalty on large weights. The
product of two sentences' vectors is a sum over pairs of their words, f_i · f_j times r_i · r_j, so
outer products are never written out, and one decomposition of the matrix of such products serves
all layers and penalties. Held-out sentences choose the penalty, and how much of a role is its own,
for each layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.arrays import Floats, Ints

OWN = (0.03, 0.1, 0.3, 1.0)
"""How much of a role's vector is its own; the rest is shared by all roles."""
PENALTIES = tuple(10.0 ** (half / 2) for half in range(-6, 3))
"""On large weights, relative to the mean square of a sentence's product."""


@dataclass(frozen=True)
class Sentences:
    """`fillers` (V, width) by word, the words of each sentence, and its vectors.

    `targets` are (L, sentences, D), `split` is 0 for sentences that train, 1 for those that choose,
    2 for those that are scored; others are not looked at.
    """

    fillers: Floats
    words: Sequence[Ints]
    targets: NDArray[np.floating]
    split: Ints

    def words_of(self, part: int) -> Ints:
        """The words of all sentences of one part of the split, one after the other."""
        return np.concatenate(
            [words for words, of in zip(self.words, self.split, strict=True) if of == part]
        )

    def centred(self) -> Floats:
        """(sentences, L, D): targets less their mean over the sentences that train."""
        moved = self.targets.transpose(1, 0, 2).astype(np.float64)
        found: Floats = moved - moved[self.split == 0].mean(axis=0)
        return found

    def totals(self) -> Floats:
        """(scored sentences, L): squared distances from the mean of those that train."""
        found: Floats = (self.centred()[self.split == 2] ** 2).sum(axis=2)
        return found


@dataclass(frozen=True)
class Products:
    """(scored sentences, L) squared errors; of each layer what was chosen."""

    errors: Floats
    own: Floats
    penalty: Floats


def tensor_products(
    given: Sentences,
    roles: Sequence[Ints],
    *,
    device: torch.device | str = "cpu",
    advance: Callable[[int], None] = lambda steps: None,
) -> Products:
    """Approximate all layers with these roles of words; `advance` is told of len(OWN) steps."""
    bench = _Bench(given, device)
    shared = bench.products([np.zeros_like(own) for own in roles])
    own = bench.products(roles)
    best = _Best(len(bench.scored), given.targets.shape[0])
    alike = len(np.unique(np.concatenate(list(roles)))) == 1
    for share in OWN:
        if not alike or share == OWN[-1]:  # with one role only, what is its own is all
            bench.fit((1 - share) * shared + share * own, share, best)
        advance(1)
    return Products(best.errors, best.own, best.penalty)


class _Best:
    """What was best on held-out sentences so far, layer by layer."""

    def __init__(self, scored: int, layers: int) -> None:
        self.held = np.full(layers, np.inf)
        self.errors = np.full((scored, layers), np.nan)
        self.own, self.penalty = np.full(layers, np.nan), np.full(layers, np.nan)


class _Bench:
    """What all approximations of the same sentences share."""

    def __init__(self, given: Sentences, device: torch.device | str) -> None:
        self._device = device
        parts = [np.flatnonzero(given.split == part) for part in range(3)]
        self._order = np.concatenate(parts)
        ends = np.cumsum([len(part) for part in parts])
        self._train, self._held, self.scored = np.split(np.arange(len(self._order)), ends[:2])
        self._targets = torch.from_numpy(given.centred()[self._order]).to(device)
        self._words = [given.words[at] for at in self._order]
        self._fillers = torch.from_numpy(_standardised(given)).to(device)

    def products(self, roles: Sequence[Ints]) -> Tensor:
        """(n, n): products of all sentences' vectors if roles share nothing, 1 in the mean."""
        own = [roles[at] for at in self._order]
        counts = np.array([len(words) for words in self._words])
        sentence = np.repeat(np.arange(len(counts)), counts)
        words, role = np.concatenate(self._words), np.concatenate(own)
        found = torch.zeros(len(counts), len(counts), dtype=torch.float64, device=self._device)
        order = np.argsort(role, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(role[order])) + 1):
            rows, at = np.unique(sentence[some], return_inverse=True)
            vectors = self._fillers[torch.from_numpy(words[some]).to(self._device)]
            vectors = vectors / torch.from_numpy(counts[sentence[some]]).to(vectors)[:, None]
            bound = vectors.new_zeros(len(rows), vectors.shape[1])
            bound.index_add_(0, torch.from_numpy(at).to(self._device), vectors)
            where = torch.from_numpy(rows).to(self._device)
            found[where[:, None], where[None]] += bound @ bound.T
        return found / found.diagonal()[: len(self._train)].mean()

    def fit(self, products: Tensor, share: float, best: _Best) -> None:
        """Least squares with each penalty; keep what is better on held-out sentences."""
        n, layers = len(self._train), self._targets.shape[1]
        # Centred, as a constant that all sentences get is fitted without a penalty.
        centre = products[:, :n].mean(1)
        moved = products[:, :n] - centre[:, None] - centre[None, :n] + centre[:n].mean()
        values, vectors = torch.linalg.eigh(moved[:n])
        turned = vectors.T @ self._targets[:n].flatten(1)  # (n, L · D)
        rows = moved[n:] @ vectors
        held = slice(0, len(self._held))
        for penalty in PENALTIES:
            weights = (turned / (values.clamp_min(0) + penalty)[:, None]).unflatten(1, (layers, -1))
            error = self._errors(rows[held], weights, self._targets[n:][held])
            mean = error.mean(0).cpu().numpy()
            better = mean < best.held
            if better.any():
                chosen = torch.from_numpy(np.flatnonzero(better)).to(self._device)
                scored = slice(len(self._held), None)
                found = self._errors(
                    rows[scored], weights[:, chosen], self._targets[n:][scored][:, chosen]
                )
                best.errors[:, better] = found.cpu().numpy()
                best.held[better] = mean[better]
                best.own[better], best.penalty[better] = share, penalty

    @staticmethod
    def _errors(rows: Tensor, weights: Tensor, targets: Tensor) -> Tensor:
        """(sentences, layers): squared distances."""
        guess = (rows @ weights.flatten(1)).reshape(targets.shape)
        return (targets - guess).square().sum(2)


def _standardised(given: Sentences) -> Floats:
    """Fillers with mean 0 and spread 1 over the words that train, and a constant beside them.

    The constant is as large as the rest, so that a role counts whatever word fills it.
    """
    seen = given.fillers[given.words_of(0)]
    spread = seen.std(axis=0)
    moved = (given.fillers - seen.mean(axis=0)) / np.where(spread > 1e-6, spread, 1.0)
    size = np.sqrt(moved.shape[1])
    return np.concatenate([moved / size, np.ones((len(moved), 1))], axis=1).astype(np.float64)
