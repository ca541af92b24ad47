"""One step of training the attention parser: blocks of pairs, against a loop over sentences.

Random sentences of EWT's lengths with random attention of 12 × 12 heads. The obvious way builds the
logits of each sentence in torch and lets it find the slope; the loss must be the same. Both are
timed in turn, in one thread.

    python benchmarks/attention_parser.py [--sentences 300] [--repeats 5]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from machine import describe

from bertology.annotated.trees.arc_models import ArcModel, _loss, _scale
from bertology.annotated.trees.arc_sentences import Sentences

HEADS, WORDS = 144, 32


def sentences(count: int) -> tuple[Sentences, np.ndarray]:
    """Made ones, and vectors of all their words."""
    rng, found = np.random.default_rng(0), Sentences(HEADS)
    for example in range(count):
        n = int(np.clip(rng.gamma(1.6, 9.0), 3, 60))
        heads = (np.arange(n) + rng.integers(1, n, n)) % n
        heads[0] = -1
        found.append(example, rng.random((HEADS, n, n)), heads, heads * 0, rng.normal(size=(n, 2)))
    words = sum(map(len, found.heads))
    return found, rng.normal(size=(words, WORDS)).astype(np.float32)


def looped(
    given: Sentences, vectors: np.ndarray | None, scale: np.ndarray, weights: np.ndarray
) -> float:
    """The loss by torch, sentence by sentence, and its slope."""
    tried = torch.tensor(weights, requires_grad=True)
    scaled, total, arcs, first = tried / torch.tensor(scale)[..., None], torch.zeros(()), 0, 0
    for s, heads in enumerate(given.heads):
        n = len(heads)
        maps = torch.from_numpy(given.maps(s).astype(np.float32))
        both = torch.stack([maps, maps.transpose(0, 1)])
        if vectors is None:
            logits = torch.einsum("wjik,wk->ji", both, scaled[..., 0])
        else:
            own = torch.from_numpy(vectors[first : first + n])
            i, j = own.expand(n, n, -1), own[:, None].expand(n, n, -1)
            words = torch.cat([torch.ones(n, n, 1), i, j], -1)
            logits = torch.einsum("wjik,wkd,jid->ji", both, scaled, words)
        logits = logits.masked_fill(torch.eye(n, dtype=torch.bool), -torch.inf)
        there = torch.from_numpy(heads >= 0)
        target = torch.from_numpy(heads)[there]
        total = total + torch.nn.functional.cross_entropy(logits[there], target, reduction="sum")
        arcs, first = arcs + int(there.sum()), first + n
    loss = total / arcs
    loss.backward()
    return float(loss.detach())


def main() -> None:
    """Time both, compare their losses, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    given, vectors = sentences(asked.sentences)
    print(describe())
    print("| parser | ours | loop | ratio |\n|---|---|---|---|")
    for name, own in (("attention", None), ("attention and words", vectors)):
        model, blocks = ArcModel("attention", own), given.blocks(range(len(given)))
        scale, width = _scale(model, blocks)
        weights = np.random.default_rng(1).normal(0, 0.1, (*scale.shape, width)).astype(np.float32)
        ours, theirs = [], []
        for _ in range(asked.repeats):
            start = time.perf_counter()
            value, _ = _loss(model, blocks, scale, weights)
            middle = time.perf_counter()
            other = looped(given, own, scale, weights)
            ours.append(middle - start)
            theirs.append(time.perf_counter() - middle)
            if not np.isclose(value, other, rtol=1e-4):
                raise SystemExit(f"losses differ: {value} and {other}")
        a, b = min(ours), min(theirs)
        print(f"| {name} | {a * 1000:.0f} ms | {b * 1000:.0f} ms | {b / a:.1f} |")


if __name__ == "__main__":
    main()
