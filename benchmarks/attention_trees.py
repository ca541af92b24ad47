"""Trees of all heads: ours, all matrices at once, against a loop over networkx.

Random sentences of EWT's lengths with random attention of 12 × 12 heads (softmax of normal scores,
sharp and flat heads mixed), for each of which three trees are found: undirected, directed with a
given root, and directed with any root. networkx is timed on some heads of some sentences, drawn
evenly, interleaved with ours, and scaled to all; the sums of scores must be the same.

    python benchmarks/attention_trees.py [--sentences 1000] [--heads 144] [--references 150]
"""

from __future__ import annotations

import argparse
import resource
import time

import networkx as nx
import numpy as np
from machine import describe
from numpy.typing import NDArray

from bertology.annotated.trees.extraction import spanning_trees
from bertology.model.batch import by_length

Floats = NDArray[np.float64]
BATCH, HEADS = 4096, 12  # words with their padding, as a study's batches have; heads of a layer
UNDIRECTED, ROOTED, FREE = "undirected", "directed, root given", "directed, any root"
KINDS = {UNDIRECTED: "undirected", ROOTED: "to-head-rooted", FREE: "to-head"}


def maps(sizes: NDArray[np.int64], heads: int, seed: int) -> Floats:
    """(sentences, heads, n, n)"""
    rng, n = np.random.default_rng(seed), int(sizes.max())
    sharp = rng.uniform(0.2, 5, heads)[:, None, None]
    scores = np.exp(sharp * rng.normal(size=(len(sizes), heads, n, n)))
    found: Floats = scores / scores.sum(axis=3, keepdims=True)
    return found


def total(scores: Floats, heads: NDArray[np.int64]) -> float:
    return float(sum(scores[word, head] for word, head in enumerate(heads) if head >= 0))


def by_networkx(scores: Floats, kind: str) -> float:
    n, undirected = len(scores), kind == UNDIRECTED
    root = 0 if kind == ROOTED else None
    graph = nx.Graph() if undirected else nx.DiGraph()
    if undirected:
        pairs = [(i, j, scores[i, j] + scores[j, i]) for i in range(n) for j in range(i)]
    else:
        pairs = [(h, d, scores[d, h]) for d in range(n) for h in range(n) if d not in (h, root)]
    graph.add_weighted_edges_from(pairs)
    find = nx.maximum_spanning_tree if undirected else nx.maximum_spanning_arborescence
    return float(find(graph).size("weight"))


def main() -> None:
    """Time both, compare their trees, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--heads", type=int, default=144)
    parser.add_argument("--references", type=int, default=150)
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.gamma(1.6, 9.0, asked.sentences).astype(np.int64), 3, 60)
    ours, theirs = dict.fromkeys(KINDS, 0.0), dict.fromkeys(KINDS, 0.0)
    every = max(1, asked.sentences * asked.heads // asked.references)
    compared = drawn = 0
    for chosen in by_length(lengths, BATCH):
        sizes = lengths[chosen]
        roots = np.zeros(len(sizes), np.int64)
        for _ in range(0, asked.heads, HEADS):  # layer by layer, as a model gives them
            scores, found = maps(sizes, HEADS, seed=drawn), {}
            for kind, name in KINDS.items():
                started = time.perf_counter()
                found[kind] = spanning_trees(scores, sizes, roots, [name])[name]
                ours[kind] += time.perf_counter() - started
            for i in range(-drawn % every, len(sizes) * HEADS, every):
                sentence, head = divmod(i, HEADS)
                own = scores[sentence, head, : sizes[sentence], : sizes[sentence]]
                for kind in KINDS:
                    started = time.perf_counter()
                    reference = by_networkx(own, kind)
                    theirs[kind] += time.perf_counter() - started
                    mine = total(own + own.T if kind == UNDIRECTED else own,
                                 found[kind][sentence, head])  # fmt: skip
                    assert np.isclose(mine, reference), (kind, mine, reference)
                compared += 1
            drawn += len(sizes) * HEADS
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(describe())
    print(
        f"{asked.sentences} sentences of {lengths.mean():.1f} words, {asked.heads} heads; networkx"
    )
    print(f"on {compared} matrices of {drawn}, all trees of the same sum. Peak {peak} MiB.\n")
    print("| tree | ours, s | networkx, scaled, s | ratio |\n|---|---|---|---|")
    for kind in KINDS:
        scaled = theirs[kind] * drawn / compared
        print(f"| {kind} | {ours[kind]:.1f} | {scaled:.0f} | **{scaled / ours[kind]:.0f}** |")


if __name__ == "__main__":
    main()
