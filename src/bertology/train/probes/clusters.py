"""Do the occurrences of a word fall into clusters that are its senses? All layers together.

Three scores, each beside its mean when the senses are dealt out anew among the same occurrences:
the adjusted Rand index (ARI) and the V-measure of the clusters that k-means finds, of as many as
there are senses; and the silhouette (by cosine) of the senses themselves. States have length 1, so
that squared distances go with cosines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bertology.arrays import Floats, Ints

SCORES = ("ari", "v_measure", "silhouette")
_STARTS = 5
_ROUNDS = 50


@dataclass(frozen=True)
class ClusterScores:
    """Of one word: scores (3, layers) of its senses, and their means when these are dealt anew."""

    own: Floats
    dealt: Floats


def cluster_scores(
    states: Tensor, senses: Ints, *, deals: int = 20, seed: int = 0
) -> ClusterScores:
    """Of states (layers, n, width), of any length, and senses (n,) that are numbered from 0."""
    rng = np.random.default_rng(seed)
    unit = states.float()
    unit = unit / unit.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    kinds = int(senses.max()) + 1
    dealt = np.stack([senses, *(rng.permutation(senses) for _ in range(deals))])  # (P, n)
    given = torch.nn.functional.one_hot(torch.from_numpy(dealt).to(unit.device), kinds).double()
    clusters = k_means(unit, kinds, rng.random((_STARTS, kinds)))  # (V, n)
    made = torch.nn.functional.one_hot(clusters, kinds).double()  # (V, n, C)
    tables = torch.einsum("pns,vnc->vpsc", given, made)
    found = torch.stack(
        [adjusted_rand(tables), v_measure(tables), _silhouettes(unit, given)]
    )  # (3, V, P)
    scores = found.cpu().numpy()
    expected = scores[:, :, 1:].mean(axis=-1) if deals else np.full(scores.shape[:2], np.nan)
    expected[0] = 0.0  # it is adjusted: over all deals its mean is exactly that
    return ClusterScores(scores[:, :, 0], expected)


def k_means(states: Tensor, clusters: int, draws: Floats) -> Tensor:
    """(layers, n): the cluster of each state (layers, n, width), the best of several starts.

    `draws` (starts, clusters) in [0, 1) choose the first centres as k-means++ does: each the
    likelier the farther it lies from those before it.
    """
    layers, n, width = states.shape
    starts = len(draws)
    every = states[:, None].expand(-1, starts, -1, -1).reshape(layers * starts, n, width)
    u = torch.from_numpy(np.tile(draws, (layers, 1))).to(states.device)  # (V * R, C)
    centres = _first_centres(every, u)
    labels = torch.full((layers * starts, n), -1, dtype=torch.int64, device=states.device)
    for _ in range(_ROUNDS):
        distances = _squared(every, centres)
        new = distances.argmin(dim=-1)
        if bool((new == labels).all()):
            break
        labels = new
        member = torch.nn.functional.one_hot(labels, clusters).to(every.dtype)  # (VR, n, C)
        sizes = member.sum(dim=1)
        means = (member.mT @ every) / sizes.clamp_min(1)[..., None]
        centres = torch.where((sizes > 0)[..., None], means, centres)  # an empty one stays
    inertia = _squared(every, centres).min(dim=-1).values.sum(dim=-1).reshape(layers, starts)
    best = inertia.argmin(dim=1)
    return labels.reshape(layers, starts, n)[torch.arange(layers, device=best.device), best]


def adjusted_rand(tables: Tensor) -> Tensor:
    """The adjusted Rand index of tables (…, senses, clusters) of counts."""
    pairs = (tables * (tables - 1) / 2).sum(dim=(-1, -2))
    rows, columns = (_pairs(tables.sum(dim=side)) for side in (-1, -2))
    n = tables.sum(dim=(-1, -2))
    expected = rows * columns / (n * (n - 1) / 2)
    most = (rows + columns) / 2
    same = most == expected  # all in one cluster and of one sense, or each alone
    return torch.where(same, 1.0, (pairs - expected) / torch.where(same, 1.0, most - expected))


def v_measure(tables: Tensor) -> Tensor:
    """The V-measure: the mutual information over the mean of both entropies."""
    n = tables.sum(dim=(-1, -2), keepdim=True)
    joint = tables / n
    rows, columns = joint.sum(dim=-1, keepdim=True), joint.sum(dim=-2, keepdim=True)
    ratio = joint / (rows * columns).clamp_min(1e-300)
    shared = (joint * torch.where(joint > 0, ratio, 1.0).log()).sum(dim=(-1, -2))
    both = _entropy(rows).sum(dim=(-1, -2)) + _entropy(columns).sum(dim=(-1, -2))
    return torch.where(both > 0, 2 * shared / both.clamp_min(1e-300), 1.0)


def _silhouettes(unit: Tensor, given: Tensor) -> Tensor:
    """(layers, deals): the mean silhouette of senses (deals, n, kinds), one-hot, by cosine."""
    apart = (1 - (unit @ unit.mT).double()).clamp_min(0)  # (V, n, n)
    apart = apart - torch.diag_embed(torch.diagonal(apart, dim1=-2, dim2=-1))
    sums = torch.einsum("vnm,pms->vpns", apart, given)
    sizes = given.sum(dim=1)[None, :, None]  # (1, P, 1, S)
    own = given[None].bool()
    alone = (sizes * given[None]).sum(dim=-1) <= 1
    inner = (sums * given[None]).sum(dim=-1) / ((sizes * given[None]).sum(dim=-1) - 1).clamp_min(1)
    means = (sums / sizes.clamp_min(1)).masked_fill(own | (sizes == 0), torch.inf)
    outer = means.min(dim=-1).values
    larger = torch.maximum(inner, outer).clamp_min(1e-300)
    found = torch.where(alone | ~torch.isfinite(outer), 0.0, (outer - inner) / larger)
    return found.mean(dim=-1)


def _first_centres(states: Tensor, draws: Tensor) -> Tensor:
    batch, n, _ = states.shape
    picked = (draws[:, 0] * n).long().clamp_max(n - 1)
    rows = torch.arange(batch, device=states.device)
    centres = [states[rows, picked]]
    near = _squared(states, centres[0][:, None])[..., 0].double()
    for at in range(1, draws.shape[1]):
        mass = near.cumsum(dim=-1)
        picked = torch.searchsorted(mass, draws[:, at, None] * mass[:, -1:], right=True)[:, 0]
        centres.append(states[rows, picked.clamp_max(n - 1)])
        near = torch.minimum(near, _squared(states, centres[-1][:, None])[..., 0].double())
    return torch.stack(centres, dim=1)


def _squared(states: Tensor, centres: Tensor) -> Tensor:
    """Squared distances (batch, n, centres) up to what is the same for all centres' choice."""
    lengths = (states**2).sum(dim=-1, keepdim=True) + (centres**2).sum(dim=-1)[:, None]
    return (lengths - 2 * states @ centres.mT).clamp_min(0)


def _pairs(counts: Tensor) -> Tensor:
    return (counts * (counts - 1) / 2).sum(dim=-1)


def _entropy(shares: Tensor) -> Tensor:
    return -torch.where(shares > 0, shares * shares.clamp_min(1e-300).log(), 0.0)
