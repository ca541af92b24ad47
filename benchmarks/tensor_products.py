"""Tensor products: all layers of a scheme at once, against networks trained one by one.

The loop trains what the papers train: for each layer a network with frozen word vectors, a linear
map of them, learnt roles, and a last layer, by Adam, until held-out sentences get no better. Both
see the same sentences, fillers and roles; the share of variance that is left says which is nearer.

    python benchmarks/tensor_products.py [--corpus grammar] [--limit 500] [--layers 0 5 11]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from machine import describe
from numpy.typing import NDArray
from torch import nn

import bertology as bt
from bertology.annotated.probe_questions import parts_of_texts
from bertology.annotated.role_schemes import SCHEMES, numbered
from bertology.annotated.sentence_vectors import sentence_vectors, word_fillers
from bertology.annotated.states import word_states
from bertology.model.encoder import Encoder
from bertology.train.probes.tensor_products import Sentences, tensor_products

Ints = NDArray[np.int64]
_EPOCHS, _PATIENCE, _BATCH, _ROLE = 100, 10, 32, 6


class Network(nn.Module):
    """One layer's network: products are averaged, as ours are."""

    def __init__(self, fillers: torch.Tensor, roles: int, width: int) -> None:
        super().__init__()
        size = fillers.shape[1]
        self.fillers = nn.Embedding.from_pretrained(fillers)
        self.map, self.roles = nn.Linear(size, size), nn.Embedding(roles, _ROLE)
        self.last = nn.Linear(size * _ROLE, width)

    def forward(self, words: torch.Tensor, roles: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        bound = self.map(self.fillers(words)).transpose(1, 2) @ (self.roles(roles) * real)
        found: torch.Tensor = self.last(bound.flatten(1))
        return found


def alone(given: Sentences, roles: list[Ints], layer: int, count: int) -> float:
    """The share left by one network, trained alone."""
    torch.manual_seed(0)
    most = max(map(len, given.words))

    def padded(rows: list[Ints]) -> torch.Tensor:
        return torch.from_numpy(np.stack([np.pad(row, (0, most - len(row))) for row in rows]))

    words, places = padded(list(given.words)), padded(roles)
    sizes = torch.tensor([len(own) for own in given.words])
    real = (torch.arange(most) < sizes[:, None]).float()[..., None] / sizes[:, None, None]
    target = torch.from_numpy(given.centred()[:, layer]).float()
    fillers = torch.from_numpy(given.fillers).float()
    network = Network(fillers / fillers.std(), count, target.shape[1])
    search = torch.optim.Adam([p for p in network.parameters() if p.requires_grad], lr=1e-3)
    train, held, tested = (np.flatnonzero(given.split == part) for part in range(3))

    def error(some: Ints) -> torch.Tensor:
        away = network(words[some], places[some], real[some]) - target[some]
        return away.square().sum(1).mean()

    rng, best, left, since = np.random.default_rng(0), np.inf, np.nan, 0
    for _ in range(_EPOCHS):
        order = rng.permutation(train)
        for at in range(0, len(order), _BATCH):
            search.zero_grad()
            error(order[at : at + _BATCH]).backward()
            search.step()
        with torch.no_grad():
            now = float(error(held))
            if now < best:
                best, left, since = now, float(error(tested)), 0
            else:
                since += 1
        if since == _PATIENCE:
            break
    return left / float(given.totals()[:, layer].mean())


def main() -> None:
    """Time both, for each scheme."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", default="grammar")
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--layers", type=int, nargs="+", default=[0, 5, 11])
    asked = parser.parse_args()
    encoder = Encoder.load("bertology-mini", device="cpu")
    corpus = bt.load_corpus(asked.corpus, limit=asked.limit, seed=0)
    vectors = sentence_vectors(word_states(encoder, corpus, pooling="tokens"), first=True)
    fillers, split = word_fillers(encoder, corpus), parts_of_texts(corpus)
    given = Sentences(fillers.vectors, fillers.words, vectors, split)
    totals = np.maximum(given.totals().mean(0), 1e-12)
    print(describe())
    print("| scheme | all layers at once, s | a network each, s (all layers) | ratio | left, % |"
          " left by networks, % |")  # fmt: skip
    print("|---|---|---|---|---|---|")
    for name, scheme in SCHEMES.items():
        named = [
            [roles[p] for p in places]
            for places, roles in zip(fillers.places, map(scheme.roles, corpus), strict=True)
        ]
        known = numbered(named, split == 0)
        begun = time.perf_counter()
        found = tensor_products(given, known.roles).errors.mean(0) / totals
        ours = time.perf_counter() - begun
        begun = time.perf_counter()
        left = [alone(given, list(known.roles), at + 1, known.count + 1) for at in asked.layers]
        theirs = (time.perf_counter() - begun) * encoder.shape.layers / len(asked.layers)
        mine = [found[at + 1] for at in asked.layers]
        print(
            f"| {name} | {ours:.1f} | {theirs:.0f} | {theirs / ours:.0f} | "
            f"{100 * np.mean(mine):.0f} | {100 * np.mean(left):.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
