"""Jensen–Shannon distances of all pairs of heads: ours in one pass, against storing maps.

The obvious way runs the model with `output_attentions`, keeps the maps of all texts, and calls
scipy's `jensenshannon` for every pair of heads. It is timed on some texts and some pairs, spread
evenly and interleaved with ours, and scaled to all; the numbers must be the same.

    python benchmarks/head_distances.py [--model bertology-mini] [--texts 100] [--pairs 200]
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations

import numpy as np
import torch
from machine import describe
from scipy.spatial.distance import jensenshannon

import bertology as bt
from bertology.model.encoder import Encoder
from bertology.model.reducers.head_distances import HeadDistances
from bertology.model.reducers.held_maps import held_together

SITES = "layer.*.head.*.pattern"


def main() -> None:
    """Time both, compare their numbers, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="bertology-mini")
    parser.add_argument("--corpus", default="grammar")
    parser.add_argument("--root", default=None)
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=200)
    asked = parser.parse_args()
    encoder = Encoder.load(asked.model, device="cpu")
    texts = bt.load_corpus(asked.corpus, root=asked.root, limit=asked.texts, seed=0).texts
    shape, heads = encoder.shape, encoder.shape.layers * encoder.shape.heads
    pairs = list(combinations(range(heads), 2))
    chosen = pairs[:: max(1, len(pairs) // asked.pairs)]
    total, passes, ours, theirs, stored = np.zeros((heads, heads)), 0.0, 0.0, 0.0, 0
    reference = np.zeros(len(chosen))
    for whole in encoder.batches(texts, tokens_per_batch=512):
        for batch in held_together(whole, shape):
            started = time.perf_counter()
            encoder.run(batch, reduce={SITES: _Nothing()})
            passes += time.perf_counter() - started
            started = time.perf_counter()
            distances = HeadDistances(shape)
            encoder.run(batch, reduce={SITES: distances})
            total += distances.value().total
            ours += time.perf_counter() - started
            held = encoder.run(batch, record=SITES)
            maps = torch.stack([held[f"layer.{i}.head.*.pattern"] for i in range(shape.layers)])
            for row, real in enumerate(batch.real):
                size = int(real.sum())
                own = maps[:, row, :, :size, :size].reshape(heads, size, size).numpy()
                stored += own.nbytes
                started = time.perf_counter()
                for at, (i, j) in enumerate(chosen):
                    reference[at] += (jensenshannon(own[i], own[j], axis=-1) ** 2).mean()
                theirs += time.perf_counter() - started
    found = np.array([total[i, j] for i, j in chosen])
    off = np.abs(found - reference).max() / len(texts)
    assert off < 1e-5, off
    theirs *= len(pairs) / len(chosen)
    print(describe())
    print(
        f"{asked.model}, {len(texts)} texts of {asked.corpus}, {len(pairs)} pairs of heads; scipy"
    )
    print(f"on {len(chosen)} pairs, scaled. Largest difference {off:.1e} nats.\n")
    print("| | seconds | ratio |\n|---|---|---|")
    print(f"| pass, maps looked at by nobody | {passes:.1f} | |")
    print(f"| maps stored ({stored / 2**20:.0f} MiB), scipy pair by pair | {theirs:.0f} | 1 |")
    print(f"| ours, pass included | {ours:.1f} | **{theirs / ours:.0f}** × |")


class _Nothing:
    def update(self, value: object, at: object) -> None:
        """Look at nothing."""


if __name__ == "__main__":
    main()
