"""How the network learns: from maps that were labelled by eye and from maps that were made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from map_type_training.procedural import MadeMap
from map_type_training.variation import SeenMap
from torch import Tensor
from torch.nn import functional

from bertology.annotated.map_types.looks import Cells
from bertology.annotated.map_types.network import MapTypeNetwork
from bertology.data.map_labels import MAP_TYPES


@dataclass(frozen=True)
class Settings:
    """What decides the network besides its data."""

    steps: int = 400
    batch_size: int = 64
    learning_rate: float = 3e-3
    weight_decay: float = 5e-2
    smoothing: float = 0.05
    labelled_share: float = 0.85  # of all maps shown; the others are made
    fact_noise: float = 0.1  # in spreads of each fact
    averaged: float = 0.4  # the last part of training, over which the weights are averaged
    balance: float = 0.3  # 0: types as often as they are labelled, 1: all equally often
    ridge: float = 1e-3  # on the weights by which facts speak for types directly
    # Added to the logit of heterogeneous maps at the end. By this much, networks mistake
    # heterogeneous and vertical maps of models that they have not seen equally often.
    towards_heterogeneous: float = 0.25
    seed: int = 0


@dataclass(frozen=True)
class Sample:
    """Shrunk maps, the cells that lie in one sentence, the facts, and what was seen."""

    small: Tensor  # (N, GRID, GRID)
    same: Tensor  # (N, GRID, GRID)
    facts: Tensor  # (N, FACTS)
    seen: Tensor  # (N, types), a share for each type

    def of(self, chosen: Tensor) -> Sample:
        """Some of them."""
        parts = (self.small, self.same, self.facts, self.seen)
        return Sample(*(part[chosen] for part in parts))

    @property
    def types(self) -> Tensor:
        """(N,), the type that most saw."""
        return self.seen.argmax(-1)

    def __len__(self) -> int:
        return len(self.seen)


def sample_of(maps: Sequence[SeenMap]) -> Sample:
    """Maps brought into the form that the network is given."""
    small, same, facts = [], [], []
    for one in maps:
        cells = Cells(torch.from_numpy(np.ascontiguousarray(one.segments))[None])
        weights = torch.from_numpy(np.ascontiguousarray(one.weights)).float()[None, None]
        look = cells.look(weights)
        small.append(look.small[0, 0])
        facts.append(look.facts[0, 0])
        same.append(cells.same[0])
    seen = torch.tensor([one.seen for one in maps]).float()
    return Sample(torch.stack(small), torch.stack(same), torch.stack(facts), seen)


def made_sample(maps: Sequence[MadeMap]) -> Sample:
    """The same for procedural maps."""
    sure = np.eye(len(MAP_TYPES))
    return sample_of(
        [SeenMap(m.weights, m.segments, tuple(sure[MAP_TYPES.index(m.label)])) for m in maps]
    )


def join(*samples: Sample) -> Sample:
    """All maps of several samples."""
    return Sample(
        torch.cat([s.small for s in samples]),
        torch.cat([s.same for s in samples]),
        torch.cat([s.facts for s in samples]),
        torch.cat([s.seen for s in samples]),
    )


def train_network(
    labelled: Sample, made: Sample, settings: Settings | None = None
) -> MapTypeNetwork:
    """A network trained from nothing; equal arguments give equal networks on one machine."""
    how = settings or Settings()
    chance = torch.Generator().manual_seed(how.seed)
    whole = join(labelled, made)
    odds = _odds(labelled, made, how)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(how.seed)  # also of what is dropped
        network = MapTypeNetwork(normalised=True).train()
        network.middle.copy_(labelled.facts.mean(0))
        network.spread.copy_(labelled.facts.std(0).clamp_min(1e-3))
        _regress(network, labelled, how)
        average = torch.optim.swa_utils.AveragedModel(network, use_buffers=True)
        optimizer = torch.optim.AdamW(
            [p for p in network.parameters() if p.requires_grad],
            lr=how.learning_rate,
            weight_decay=how.weight_decay,
        )
        for step in range(1, how.steps + 1):
            for group in optimizer.param_groups:
                group["lr"] = _rate(step, how)
            chosen = torch.multinomial(odds, how.batch_size, replacement=True, generator=chance)
            optimizer.zero_grad()
            torch.autograd.backward(_loss(network, whole.of(chosen), how, chance))
            optimizer.step()
            if step > (1 - how.averaged) * how.steps:
                average.update_parameters(network)
    found = average.module
    assert isinstance(found, MapTypeNetwork)
    with torch.no_grad():
        found.answer.bias[MAP_TYPES.index("heterogeneous")] += how.towards_heterogeneous
    return found.eval().folded()


def answers(network: MapTypeNetwork, sample: Sample) -> Tensor:
    """The network's type for each map; as everywhere, single sentences have no block."""
    with torch.no_grad():
        logits = network(sample.small[:, None], sample.same, sample.facts[:, None])[:, 0]
    single = sample.same.flatten(1).amax(-1) == 0
    logits[single, MAP_TYPES.index("block")] = -torch.inf
    found: Tensor = logits.argmax(-1)
    return found


def _regress(network: MapTypeNetwork, labelled: Sample, how: Settings) -> None:
    """What plain numbers tell is found first and kept; the layers learn what is left to see."""
    facts = network.plain(labelled.facts)
    weight = torch.zeros_like(network.direct.weight, requires_grad=True)
    bias = torch.zeros(len(MAP_TYPES), requires_grad=True)
    solver = torch.optim.LBFGS([weight, bias], max_iter=300, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        solver.zero_grad()
        wrong = functional.cross_entropy(facts @ weight.mT + bias, labelled.seen)
        total = wrong + 0.5 * how.ridge * weight.square().sum()
        torch.autograd.backward(total)
        return total

    solver.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        network.direct.weight.copy_(weight)
        network.answer.bias.copy_(bias)
        network.answer.weight.mul_(0.1)  # so that what was found is not drowned at once
    network.direct.weight.requires_grad_(False)


def _rate(step: int, how: Settings) -> float:
    """Warms up, and falls to a third, so that there is something to average over."""
    return how.learning_rate * min(step / 50, 1.0) * max(0.3, 1 - step / how.steps)


def _odds(labelled: Sample, made: Sample, how: Settings) -> Tensor:
    """How often each map is shown: rare types more often than they are labelled."""
    counts = labelled.seen.sum(0).clamp_min(1)
    own = (labelled.seen / counts**how.balance).sum(-1)
    own = how.labelled_share * own / own.sum()
    return torch.cat([own, torch.full((len(made),), (1 - how.labelled_share) / len(made))])


def _loss(network: MapTypeNetwork, batch: Sample, how: Settings, chance: torch.Generator) -> Tensor:
    facts = batch.facts + how.fact_noise * network.spread * torch.randn(
        batch.facts.shape, generator=chance
    )
    logits = network(batch.small[:, None], batch.same, facts[:, None])[:, 0]
    return functional.cross_entropy(logits, batch.seen, label_smoothing=how.smoothing)
