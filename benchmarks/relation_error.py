"""How often `relation-heads` calls a head sure that follows nothing, and how often it misses one.

Errors: 144 heads, of each of which one comparison (drawn at random) has a true mean of exactly the
margin, and the others are far above it. That is the worst case of an intersection–union test. The
shapes of differences are plain ones, and those of a real model: what `bertology-mini` gives to
subjects of the bundled grammar, centred on the margin, words drawn anew.

Nulls of a whole run: the links of each sentence are replaced by pairs of its words drawn at random.

Power: one head of 144 follows the relation by so much in all eight comparisons.

    python benchmarks/relation_error.py [--repeats 200] [--permuted 20]
"""

from __future__ import annotations

import argparse
import random
from dataclasses import replace

import numpy as np

import bertology as bt
from bertology.annotated.linked_pairs import in_pieces, pair_weights
from bertology.data.words.link_limits import LinkedSentence
from bertology.data.words.links import Link
from bertology.model.encoder import Encoder
from bertology.stats.least_means import least_means
from bertology.stats.paired import simultaneous
from bertology.studies.attention.relation_heads import RelationHeads
from bertology.studies.designs.link_excess import each_word_once

HEADS, MARGIN = 144, 0.01


def shape(rng: np.random.Generator, kind: str, size: tuple[int, ...]) -> np.ndarray:
    """Differences with a mean of 0."""
    if kind == "normal":
        return rng.normal(size=size) * 0.1
    if kind == "right-skewed":
        return rng.exponential(size=size) * 0.1 - 0.1
    if kind == "left-skewed":
        return 0.1 - rng.exponential(size=size) * 0.1
    rare = np.where(rng.random(size) < 0.03, -0.5, 0.0)
    return rare + rng.normal(size=size) * 0.02 + 0.015


def measured(encoder: Encoder, sentences: list[LinkedSentence]) -> tuple[np.ndarray, np.ndarray]:
    """Weights of linked and unlinked pairs, and the words at both ends."""
    pieces = in_pieces(encoder, sentences, "both")
    weights = pair_weights(
        encoder, pieces, draws=10, seed=0, batch_tokens=4096, done=lambda n: None
    )[0].astype(float)
    there = ~np.isnan(weights).any(axis=(1, 2, 3))
    words = np.array([p.words for p in pieces])
    return weights[there], words[there]


def permuted(sentences: list[LinkedSentence], seed: int) -> list[LinkedSentence]:
    """The same sentences with as many links between words drawn at random."""
    rng, found = random.Random(seed), []
    for one in sentences:
        words = range(len(one.example.get("words")))
        links = [Link((a,), (b,), "drawn") for a, b in (rng.sample(words, 2) for _ in one.links)]
        found.append(replace(one, links=tuple(links)))
    return found


def errors(draw: object, n: int, repeats: int) -> float:
    false = 0
    for _ in range(repeats):
        null = draw(n) + MARGIN  # type: ignore[operator]
        false += bool((least_means([null], margin=MARGIN).p_adjusted < 0.05).any())
    return false / repeats


def before(rows: np.ndarray) -> np.ndarray:
    """Whether the first head was sure as the study decided before: corrected for everything."""
    strict = simultaneous(rows.reshape(-1, rows.shape[-1]), np.ones(8 * HEADS), level=0.975)
    return bool((strict.low.reshape(8, HEADS)[:, 0] > 0).all())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--permuted", type=int, default=20)
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    encoder = Encoder.load("bertology-mini", device="cpu")
    corpus = bt.load_corpus("grammar", limit=1500, seed=0)
    study = RelationHeads(relation="nsubj", every=False, max_tokens=20)
    sentences = study.limits.passing(corpus)[0][:400]
    weights, words = measured(encoder, sentences)
    differences = (weights[:, :1] - weights[:, 1:]).reshape(len(weights), -1)
    rows = each_word_once(differences, words[:, 0])
    centred = rows - rows.mean(axis=0)

    def real(n: int) -> np.ndarray:
        taken = centred[rng.integers(len(centred), size=n)].T.reshape(4, HEADS, n)
        return taken[rng.integers(4, size=HEADS), np.arange(HEADS)]

    print("| shape of differences | 30 words | 60 words | 150 words |\n|---|---|---|---|")
    for kind in ("normal", "right-skewed", "left-skewed", "3 % rare losses of 0.5", "real"):
        found = [
            errors(
                real if kind == "real" else lambda n, k=kind: shape(rng, k, (HEADS, n)),
                n,
                asked.repeats,
            )
            for n in (30, 60, 150)
        ]
        print(f"| {kind} | " + " | ".join(f"{rate:.3f}" for rate in found) + " |", flush=True)
    print("\n| words | excess | power | power before |\n|---|---|---|---|")
    for n in (30, 60, 150):
        for excess in (0.05, 0.1):
            now, then = 0, 0
            for at in range(asked.repeats // 2):
                rows = shape(rng, "right-skewed", (8, HEADS, n))
                rows[:, 0] += excess
                now += bool(least_means(list(rows), margin=MARGIN).p_adjusted[0] < 0.05)
                then += before(rows) if at < 10 else 0
            power = now / (asked.repeats // 2)
            print(f"| {n} | {excess} | {power:.2f} | {then / 10:.2f} |", flush=True)
    false = 0
    for seed in range(asked.permuted):
        weights, words = measured(encoder, permuted(sentences, seed))
        sure = study._excess.of(weights, words).p_adjusted < 0.05
        false += bool(sure.any())
    print(f"\nruns with permuted links in which a head is sure: {false} of {asked.permuted}")


if __name__ == "__main__":
    main()
