"""Probes that learn which words of a span count, as the edge probes of Tenney et al. (2019b) do.

A span is the sum of its words' states h, weighed by softmax(v · h) over its words; each probe has
its own v for each of the spans of an example. Where v is 0 that is their mean: a probe starts as
the best linear probe of means, and leaves it only as far as held-out examples are told better. A
probe that trains on spans of one word has nothing to weigh: it is the linear probe of means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from bertology.train.probes.classifiers import Examples, Pass, Probe, mean_losses
from bertology.train.probes.linear import LinearProbes
from bertology.train.probes.penalties import DECAYS, fitted
from bertology.train.probes.stepwise import StepwiseProbes, trained

_STEPS = 10  # before held-out examples judge, or all examples once


class AttentiveProbes(StepwiseProbes):
    """Vectors v (L, P, S, D), weights (L, P, F, K), biases (L, P, K).

    Outputs are linear in the F = D numbers of one span, or F = 3 D of two: both and their product.
    `line` are the same probes of means. `weighed` (P,) are those that train on spans of more words
    than one.
    """

    rate = 0.01

    def __init__(
        self,
        probes: Sequence[Probe],
        columns: Sequence[int],
        *,
        shape: tuple[int, int],
        spans: int,
        weighed: Sequence[bool],
        device: torch.device | str = "cpu",
    ) -> None:
        self.probes, self.columns = tuple(probes), list(columns)
        self.line = LinearProbes(probes, columns, shape=shape, device=device)
        (layers, width), count, outputs = shape, len(probes), probes[0].outputs
        each = width if spans == 1 else width // 3
        shapes = [(spans, each), (width, outputs), (outputs,)]
        self._weights = [torch.zeros(layers, count, *of, device=device) for of in shapes]
        self.level = torch.ones(layers, count, dtype=torch.long, device=device)
        self.weighed = torch.tensor(weighed, device=device)

    @property
    def free(self) -> list[int]:
        """Columns of probes that have something to weigh."""
        weighed = self.weighed.tolist()
        return [column for column, of in zip(self.columns, weighed, strict=True) if of]

    @property
    def weights(self) -> Sequence[Tensor]:
        """Vectors, weights and biases."""
        return self._weights

    @property
    def numbers_each(self) -> int:
        """Each probe has spans of its own, and outputs."""
        width, outputs = self._weights[1].shape[2:]
        return len(self.probes) * (width + outputs)

    def become_means(self) -> None:
        """Take the weights with which they are the probes of means."""
        vectors, weights, bias = self._weights
        vectors.zero_()
        weights.copy_(self.line.weight)
        bias.copy_(self.line.bias)

    def outputs(self, examples: Examples) -> Tensor:
        """(L, n, P, K)"""
        return self._last(_side_by_side(self._pooled(examples)[1]))

    def slopes(self, examples: Examples) -> list[Tensor]:
        """Of each probe's mean loss, by all its weights; written out, which is quicker."""
        shares, pooled = self._pooled(examples)
        features = _side_by_side(pooled)
        errors = self.errors(self._last(features), examples.labels[:, self.columns])
        last = torch.einsum("lnpf,lnpk->lpfk", features, errors)
        back = torch.einsum("lnpk,lpfk->lnpf", errors, self._weights[1])
        if pooled.shape[3] == 1:
            back = back[:, :, :, None]
        else:
            # Each span is in the product with the other one.
            one, other, product = back.chunk(3, dim=3)
            back = torch.stack([one, other], 3) + product[:, :, :, None] * pooled.flip(3)
        by_share = torch.einsum("lnpsd,lnstd->lnpst", back, examples.states)
        by_score = shares * (by_share - (shares * by_share).sum(4, keepdim=True))
        vectors = torch.einsum("lnpst,lnstd->lpsd", by_score, examples.states)
        return [vectors, last, errors.sum(1)]

    def _pooled(self, examples: Examples) -> tuple[Tensor, Tensor]:
        """Shares of words (L, n, P, S, T), and spans (L, n, P, S, D)."""
        words, there = examples.states, examples.there
        if there is None:
            raise ValueError("attentive probes need the words of spans")
        scores = torch.einsum("lnstd,lpsd->lnpst", words, self._weights[0])
        shares = scores.masked_fill_(~there[None, :, None], -torch.inf).softmax(4)
        return shares, torch.einsum("lnpst,lnstd->lnpsd", shares, words)

    def _last(self, features: Tensor) -> Tensor:
        _, weights, bias = self._weights
        return torch.einsum("lnpf,lpfk->lnpk", features, weights) + bias[:, None]


def _side_by_side(pooled: Tensor) -> Tensor:
    """(L, n, P, F): a span, or two and their product."""
    if pooled.shape[3] == 1:
        return pooled[:, :, :, 0]
    one, other = pooled.unbind(3)
    return torch.cat([one, other, one * other], dim=3)


def attended(
    probes: Sequence[AttentiveProbes], train: Pass, held: Pass, *, weigh: bool = True
) -> None:
    """Train all probes, whose `line` is fitted, with the penalty that is best on `held`.

    Without `weigh` they become probes of means.
    """
    if not weigh:
        for one in probes:
            one.become_means()
        return
    _begin(probes, held)

    def go(decays: Sequence[Tensor], going: Sequence[Tensor]) -> None:
        free = [of & one.weighed for of, one in zip(going, probes, strict=True)]
        trained(probes, decays, free, partial(_often, train), held)

    fitted(probes, go, held, path=DECAYS, onward=False)


def _often(train: Pass) -> Iterator[Examples]:
    """All examples, again and again where they are few."""
    done = 0
    while done < _STEPS:
        for one in train():
            done += 1
            yield one


def _begin(probes: Sequence[AttentiveProbes], held: Pass) -> None:
    """Start as probes of means, or where fewer examples have led, if that is better."""
    before = mean_losses(probes, held())
    kept = [[weight.clone() for weight in one.weights] for one in probes]
    for one in probes:
        one.become_means()
    for number, losses in enumerate(mean_losses(probes, held())):
        one = probes[number]
        stay = (before[number] < losses) & one.weighed
        for weight, of in zip(one.weights, kept[number], strict=True):
            weight[stay] = of[stay]
