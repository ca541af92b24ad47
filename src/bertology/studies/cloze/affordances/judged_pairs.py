"""Sentences that join a thing and an attribute, judged yes or no: what probes say of them.

A relation (`object-property`) is a table of entities by groups; some cells may be missing. Probes
are cross-fitted by entity, so that no entity is in training and test; labels are taken less the
mean of their group in what trains, so that a probe learns what is more than the group alone.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.metrics import METRICS
from bertology.stats import Estimate
from bertology.stats.checkerboards import Checkerboards, checkerboards
from bertology.stats.crossed import crossed_score

if TYPE_CHECKING:
    import torch
    import xarray as xr
    from numpy.typing import NDArray

    from bertology.data.corpus import Example

    Floats = NDArray[np.float64]

FOLDS = 4


def relation_of(example: Example, corpus: str) -> str:
    """The relation that a sentence is of; corpora with one only need not name it."""
    return str(example.annotations.get("relation") or corpus)


def whole_entities(examples: Sequence[Example], corpus: str, most: int, seed: int) -> list[Example]:
    """About so many, the same number of each relation, of entities with all their sentences."""
    rows: dict[str, dict[str, list[int]]] = {}
    for i, example in enumerate(examples):
        of = rows.setdefault(relation_of(example, corpus), {})
        of.setdefault(str(example.get("entity")), []).append(i)
    drawn: list[int] = []
    for relation, entities in rows.items():
        order, room = list(entities), most // len(rows)
        random.Random(f"{seed}-{relation}").shuffle(order)
        for name in order:
            if room < len(entities[name]):
                break
            drawn += entities[name]
            room -= len(entities[name])
    return [examples[i] for i in sorted(drawn)]


@dataclass(frozen=True)
class ProbeScores:
    """Of one relation's sentences (N), each by a probe that did not see its entity."""

    layers: Floats  # (N, L + 1) by layer, 0 being the input
    picked: Floats  # by the layer that told most of another part of what trained
    both_new: Floats  # the same, by probes that saw neither its entity nor its group
    said: NDArray[np.int64]  # yes or no, by the picked layer and its group's mean
    group_said: NDArray[np.int64]  # by the group's mean alone
    fold: NDArray[np.int64]


def probe_scores(
    states: NDArray[np.float16],
    labels: Floats,
    entities: Sequence[str],
    groups: Sequence[str],
    *,
    seed: int,
    device: torch.device,
    new_groups: bool = True,
) -> ProbeScores:
    """Of states (L + 1, N, 2, width): the entity's and the others'.

    A probe sees both and their product, dimension by dimension: what goes with what.
    """
    import torch

    from bertology.train.probes.ridge import cross_fitted

    fold, other = _folds(entities, seed), _folds(groups, seed)
    parts = [torch.from_numpy(np.flatnonzero(fold == f)).to(device) for f in range(FOLDS)]
    means = np.stack([_group_means(labels, groups, fold != f) for f in range(FOLDS)], axis=1)
    wanted = torch.from_numpy(labels[:, None] - means).float().to(device)
    found = []
    for layer in range(len(states)):
        seen = _features(states[layer], device)
        found.append(cross_fitted(seen, wanted, parts))
    told = np.stack([one.told for one in found])  # (L + 1, folds)
    best = 1 + told[1:].argmax(axis=0)
    at, own = np.arange(len(labels)), best[fold]
    layers = np.stack([one.scores for one in found])
    inner = np.stack([one.inner for one in found])
    both = np.full(len(labels), np.nan)
    for layer in sorted(set(best.tolist())) if new_groups else ():
        seen = _features(states[layer], device)
        for f in range(FOLDS):
            new = torch.from_numpy(other != f).to(device)
            scores = cross_fitted(seen, wanted, parts, trains=new).scores
            mine = (other == f) & (own == layer)
            both[mine] = scores[mine]
    mean = means[at, fold]
    said, group_said = (np.zeros(len(labels), np.int64) for _ in range(2))
    for f in range(FOLDS):
        mine, chosen = fold == f, fold == (f + 1) % FOLDS
        given = inner[best[f], chosen] + means[chosen, f]
        border = _border(given, labels[chosen])
        said[mine] = layers[best[f], mine] + mean[mine] > border
        border = _border(means[chosen, f], labels[chosen])
        group_said[mine] = mean[mine] > border
    return ProbeScores(layers.T, layers[own, at], both, said, group_said, fold)


def _folds(names: Sequence[str], seed: int) -> NDArray[np.int64]:
    known = sorted(set(names))
    random.Random(seed).shuffle(known)
    of = {name: i % FOLDS for i, name in enumerate(known)}
    return np.array([of[name] for name in names])


def _group_means(labels: Floats, groups: Sequence[str], trains: NDArray[np.bool_]) -> Floats:
    """(N,) of each sentence's group, over what trains; of all where the group is not there."""
    _, at = np.unique(np.asarray(groups), return_inverse=True)
    n = np.bincount(at, trains)
    yes = np.bincount(at, labels * trains)
    whole = float(labels[trains].mean())
    return np.where(n > 0, yes / np.maximum(n, 1), whole)[at]


def _features(states: NDArray[np.float16], device: torch.device) -> torch.Tensor:
    import torch

    from bertology.train.probes.ridge import standardised

    both = torch.from_numpy(states.astype(np.float32)).to(device)
    one, other = standardised(both[:, 0]), standardised(both[:, 1])
    return torch.cat([one, other, standardised(one * other)], dim=1)


def _border(scores: Floats, labels: Floats) -> float:
    """The score above which to say yes, for the best F1."""
    order = np.argsort(-scores, kind="stable")
    yes = np.cumsum(labels[order])
    f1 = 2 * yes / (np.arange(1, len(labels) + 1) + max(labels.sum(), 1))
    ordered = scores[order]
    last = np.append(ordered[1:] < ordered[:-1], True)  # equal scores stand on one side
    at = int(np.where(last, f1, -1.0).argmax())
    after = ordered[at + 1] if at + 1 < len(ordered) else ordered[at] - 1.0
    return float((ordered[at] + after) / 2)


@dataclass(frozen=True)
class JudgedPairs:
    """All that was measured of one relation."""

    entity: NDArray[np.str_]  # (N,)
    group: NDArray[np.str_]
    label: Floats
    fold: NDArray[np.int64]
    layers: Floats  # (N, L + 1)
    picked: Floats
    both_new: Floats
    said: NDArray[np.int64]
    group_said: NDArray[np.int64]
    copies: Floats  # (N, copies) of shuffled weights
    cloze: Floats  # (N, R)

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]], some: NDArray[np.bool_]) -> JudgedPairs:
        """Some of the sentences."""
        return cls(**{f.name: columns[f.name][some] for f in fields(cls)})

    def boards(self, scores: Floats, *, folds: bool) -> Checkerboards:
        """Of scores (N, R), in checkerboards of entities (of one fold) and groups."""
        entities, at = np.unique(self.entity, return_inverse=True)
        groups, of = np.unique(self.group, return_inverse=True)
        table = np.full((scores.shape[1], len(entities), len(groups)), np.nan)
        labels = np.full(table.shape[1:], np.nan)
        table[:, at, of], labels[at, of] = scores.T, self.label
        fold = np.zeros(len(entities), np.int64)
        fold[at] = self.fold
        return checkerboards(table, labels, folds=fold if folds else None)

    def score(self, metric: str, said: NDArray[np.int64], level: float) -> Estimate:
        """F1 or accuracy, with an interval over entities."""
        of = METRICS[metric]
        rows = of.statistics(said, self.label.astype(np.int64))
        _, at = np.unique(self.entity, return_inverse=True)
        sums = np.stack([np.bincount(at, column) for column in rows.T], axis=1).astype(np.float64)
        return crossed_score(of, sums[None], level=level).counting("entities")


def joined(parts: Sequence[xr.Dataset], name: str) -> NDArray[Any]:
    """One column of all parts."""
    return np.concatenate([part[name].to_numpy() for part in parts])
