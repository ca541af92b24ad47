"""Probes of mixes of layers, many at once: a classifier of γ Σ s_l h_l, with s = softmax(a).

Each of P mixes has its own weights of layers, of which it may use the first few or all, its own
classifier, and the examples that train it. All of one question are trained side by side: a mix is
one product of its weights with the states of all layers, (P, L) × (L, n · D), and slopes are
written out. Each mix has its own rate, which falls when it gets no better on held-out examples,
until the mix stops; those that stopped take no more time. The penalty on large weights is chosen
before, for the mix of all layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.arrays import Floats, Ints
from bertology.train.probes.classifiers import Examples
from bertology.train.probes.penalties import DECAYS
from bertology.train.probes.streams import StateStream

EPOCHS = 40  # at most
_RATE, _OF_LAYERS = 0.01, 10.0  # of classifiers; how much faster the few weights of layers move
_BETAS, _TINY = (0.9, 0.999), 1e-8
_HALVINGS = 4  # of its rate, before a mix stops
_ROWS, _NUMBERS = 128, 2**24  # examples of a batch at most, and numbers of its mixes: 64 MiB


@dataclass(frozen=True)
class Mix:
    """One mix: how many layers it may use, the first being the input; which labels train it.

    `decay` is the penalty on large weights of its classifier.
    """

    layers: int
    column: int = 0
    decay: float = 0.0


@dataclass(frozen=True)
class Task:
    """A question: the labels (R, C) by which mixes are trained, and those (R,) that are right.

    Negative labels are no question, or an answer that cannot be given.
    """

    learnt: Ints
    asked: Ints
    classes: int


@dataclass(frozen=True)
class Mixed:
    """What mixes found: right answers (examples, P), and the weights of layers (P, L)."""

    hits: NDArray[np.uint16]
    weights: Floats


class Mixes:
    """The weights of P mixes: of layers (P, L), a scale (P,), and classifiers (P, D, K), (P, K).

    Layers that a mix may not use have the weight 0, and keep it.
    """

    def __init__(
        self,
        mixes: Sequence[Mix],
        shape: tuple[int, int, int],
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        layers, width, classes = shape
        self.mixes = tuple(mixes)
        # Those with the same labels start alike, so that layers are all that differs between them.
        starts = {
            column: torch.randn(width, classes, generator=_seeded(seed, column)) / 100
            for column in {mix.column for mix in mixes}
        }
        scores = torch.zeros(len(mixes), layers)
        for number, mix in enumerate(mixes):
            scores[number, mix.layers :] = -math.inf
        weights = (
            scores,
            torch.ones(len(mixes)),
            torch.stack([starts[mix.column] for mix in mixes]),
            torch.zeros(len(mixes), classes),
        )
        self.weights = [weight.to(device) for weight in weights]
        self._decays = torch.tensor([mix.decay for mix in mixes], device=device)

    def __len__(self) -> int:
        return len(self.mixes)

    def layer_weights(self) -> Tensor:
        """(P, L), the sum of each mix being 1."""
        return self.weights[0].softmax(1)

    def batch_size(self) -> int:
        """How many examples a batch may have, so that mixes of them take little memory."""
        width = self.weights[2].shape[1]
        return max(16, min(_ROWS, _NUMBERS // (len(self) * width)))

    def logits(self, states: Tensor) -> Tensor:
        """(P, n, K) of states (L, n, D)."""
        return self._logits(self._mixed(states))

    def losses(self, examples: Examples) -> tuple[Tensor, Tensor]:
        """(P,) sums of -log p of the right class, in nats, and the (P,) examples that count."""
        losses, _, counts = _errors(self.logits(examples.states), examples.labels)
        return losses, counts

    def slopes(self, examples: Examples) -> list[Tensor]:
        """Of each mix's mean loss, by all its weights."""
        mix = self._mixed(examples.states)
        _, errors, counts = _errors(self._logits(mix), examples.labels)
        errors /= counts.clamp_min(1)[:, None, None]  # (P, n, K)
        _, scale, linear, _ = self.weights
        product = mix.transpose(1, 2) @ errors  # (P, D, K)
        # (P, n, D): by γ times the mix; a product with a turned matrix would take twice as long.
        back = errors @ linear.transpose(1, 2).contiguous()
        flat = examples.states.flatten(1)  # (L, n · D)
        by_share = scale[:, None] * (back.flatten(1) @ flat.T)  # (P, L)
        shares = self.layer_weights()
        by_score = shares * (by_share - (shares * by_share).sum(1, keepdim=True))
        by_linear = scale[:, None, None] * product + self._decays[:, None, None] * linear
        return [by_score, (product * linear).sum((1, 2)), by_linear, errors.sum(1)]

    def taken(self, chosen: Tensor) -> Mixes:
        """Some of the mixes, with copies of their weights."""
        found = object.__new__(Mixes)
        found.mixes = tuple(mix for mix, there in zip(self.mixes, chosen, strict=True) if there)
        found.weights = [weight[chosen].clone() for weight in self.weights]
        found._decays = self._decays[chosen]
        return found

    def _mixed(self, states: Tensor) -> Tensor:
        """(P, n, D), before the scale."""
        layers, count, width = states.shape
        return (self.layer_weights() @ states.reshape(layers, -1)).reshape(-1, count, width)

    def _logits(self, mix: Tensor) -> Tensor:
        _, scale, linear, bias = self.weights
        return scale[:, None, None] * (mix @ linear) + bias[:, None]


def _seeded(*numbers: int) -> torch.Generator:
    seed = int(np.random.SeedSequence(numbers).generate_state(1)[0])
    return torch.Generator().manual_seed(seed)


def _errors(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(P,) losses, (P, n, K) what logits have too much, and (P,) examples; labels are (n, P)."""
    own = labels.T
    counted = own >= 0  # (P, n)
    at = own.clamp_min(0)[..., None]
    shares = logits.log_softmax(2)
    losses = -(shares.gather(2, at)[..., 0] * counted).sum(1)
    shares = shares.exp_() * counted[..., None]
    shares.scatter_add_(2, at, -counted[..., None].to(shares.dtype))
    return losses, shares, counted.sum(1)


def mixed(
    stream: StateStream,
    task: Task,
    mixes: Sequence[Mix],
    split: Ints,
    examples: Ints,
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    advance: Callable[[int], None] = lambda epochs: None,
) -> Mixed:
    """Train all mixes of a task, and score them on the examples (R,) of rows whose split is 2.

    All have the penalty that is best for a mix of all layers, trained by the first labels. Of
    `split` (R,), 0 are rows that train and 1 those that are held out. `advance` is told of EPOCHS
    in all.
    """
    shape = (stream.layers, stream.width, task.classes)
    bench = _Bench(stream, task, split, seed)
    tried = [Mix(stream.layers, 0, decay) for decay in DECAYS]
    least = bench.train(Mixes(tried, shape, seed=seed, device=device))
    decay = DECAYS[int(least.argmin())]
    made = Mixes([replace(m, decay=decay) for m in mixes], shape, seed=seed, device=device)
    bench.train(made, advance)
    asked = torch.from_numpy(task.asked)
    found = torch.zeros((int(examples.max()) + 1, len(made)), dtype=torch.int32)
    chosen = (split == 2) & (task.asked >= 0)
    for rows, one in stream.examples(chosen, asked[:, None], made.batch_size()):
        right = (made.logits(one.states).argmax(2) == one.labels.T).int().cpu()  # (P, n)
        found.index_add_(0, torch.from_numpy(examples[rows]), right.T)
    weights = made.layer_weights().double().cpu().numpy()
    return Mixed(found.numpy().astype(np.uint16), weights)


@dataclass(frozen=True)
class _Bench:
    """Trains mixes on the rows of one task."""

    stream: StateStream
    task: Task
    split: Ints
    seed: int

    def train(self, mixes: Mixes, advance: Callable[[int], None] = lambda epochs: None) -> Tensor:
        """Until no mix gets better on held-out rows; the losses (P,) of what is kept."""
        order = torch.Generator().manual_seed(self.seed)
        learnt = torch.from_numpy(self.task.learnt)
        train = (self.split == 0) & (self.task.learnt >= 0).any(axis=1)
        going = _Going.of(mixes, self._held(mixes))
        where = torch.arange(len(mixes), device=mixes.weights[0].device)
        least = going.least.clone()
        for epoch in range(EPOCHS):
            columns = [mix.column for mix in going.mixes.mixes]
            size = going.mixes.batch_size()
            for _, one in self.stream.examples(train, learnt[:, columns], size, mix=order):
                going.move(one)
            better = going.judge(self._held(going.mixes))
            for weight, kept in zip(going.mixes.weights, mixes.weights, strict=True):
                kept[where[better]] = weight[better]
            least[where] = going.least
            advance(1)
            left = going.rates > 0
            if not left.any():
                advance(EPOCHS - epoch - 1)
                break
            where, going = where[left], going.taken(left)
        return least

    def _held(self, mixes: Mixes) -> Tensor:
        """(P,) mean losses on held-out rows."""
        chosen = (self.split == 1) & (self.task.asked >= 0)
        asked = torch.from_numpy(self.task.asked)[:, None].expand(-1, len(mixes))
        found = torch.zeros(len(mixes), device=mixes.weights[0].device)
        count = 0
        for _, one in self.stream.examples(chosen, asked, mixes.batch_size()):
            found += mixes.losses(one)[0]
            count += len(one.labels)
        return found / max(count, 1)


@dataclass
class _Going:
    """Mixes that still learn: their moments (Adam), rates and least losses."""

    mixes: Mixes
    moments: list[list[Tensor]]
    least: Tensor
    rates: Tensor
    step: int = 0

    @classmethod
    def of(cls, mixes: Mixes, least: Tensor) -> _Going:
        own = mixes.taken(torch.ones(len(mixes), dtype=torch.bool, device=least.device))
        moments = [[torch.zeros_like(weight) for weight in own.weights] for _ in _BETAS]
        return cls(own, moments, least, torch.full_like(least, _RATE))

    def move(self, examples: Examples) -> None:
        """One step of Adam; classifiers, not biases, are drawn towards 0."""
        self.step += 1
        for number, slope in enumerate(self.mixes.slopes(examples)):
            weight, rates = self.mixes.weights[number], self.rates
            first, second = (kept[number] for kept in self.moments)
            first.lerp_(slope, 1 - _BETAS[0])
            second.mul_(_BETAS[1]).addcmul_(slope, slope, value=1 - _BETAS[1])
            size = rates * (_OF_LAYERS if number == 0 else 1.0) / (1 - _BETAS[0] ** self.step)
            spread = (second / (1 - _BETAS[1] ** self.step)).sqrt_().add_(_TINY)
            weight -= size.reshape(-1, *[1] * (weight.dim() - 1)) * first / spread

    def judge(self, losses: Tensor) -> Tensor:
        """Which mixes are better than ever (P,); the others go on at half the rate, or stop."""
        better = losses < self.least
        self.least = torch.where(better, losses, self.least)
        self.rates = torch.where(better, self.rates, self.rates / 2)
        self.rates[self.rates < _RATE / 2**_HALVINGS] = 0.0
        return better

    def taken(self, chosen: Tensor) -> _Going:
        """Those that go on."""
        if chosen.all():
            return self
        return replace(
            self,
            mixes=self.mixes.taken(chosen),
            moments=[[kept[chosen] for kept in of] for of in self.moments],
            least=self.least[chosen],
            rates=self.rates[chosen],
        )
