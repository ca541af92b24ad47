"""Structural probes of all layers and ranks together, beside a loop of plain PyTorch probes.

The plain probe (`tests/plain_structural.py`) is trained alone as Hewitt and Manning write it:
differences of all pairs, automatic slopes, torch's Adam, on the same states from memory, from the
same numbers and in the same order. Four layers are compared by three scores, each with the rank
that is best on held-out sentences; the loop's seconds are those of these layers, times the number
of all layers over four. The loop is timed with our batches, of sentences of about one length, and
(one layer) with sentences as they come, as the paper has it. Seconds are those of the processor, so
that other work does not count.

    python benchmarks/structural_probe.py [--root DATA] [--sentences 600] [--model bertology-mini]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from machine import describe

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import bertology as bt
from bertology.annotated.states import word_states
from bertology.annotated.trees.distances import TreeSentences, tree_sentences
from bertology.model.encoder import Encoder
from bertology.train.probes.structural import DISTANCE, KINDS, StructuralProbes, trained
from bertology.train.probes.tree_scores import RATE, Fitted, SentenceScores, scored_sentences
from bertology.train.probes.tree_streams import TreeStream
from plain_structural import Order, PlainProbe, plain_probe, plain_scores

RANKS, EPOCHS = (8, 32, 64), 40


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root")
    parser.add_argument("--sentences", type=int, default=600)
    parser.add_argument("--model", default="bertology-mini")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(describe())
    corpus = bt.load_corpus("ud-ewt", root=given.root, limit=given.sentences, seed=0)
    states = word_states(Encoder.load(given.model, device="cpu"), corpus)
    trees = tree_sentences(corpus, states)
    stream = TreeStream(states, trees.sentences)
    layers = len(stream.scale)

    started = time.process_time()
    probes = StructuralProbes(layers, stream.scale.shape[1], RANKS)
    start, mix = [one.clone() for one in probes.matrices], torch.Generator().manual_seed(0)
    train, held = trees.of_part(0), trees.of_part(1)
    least = trained(
        probes,
        lambda: stream.batches(train, mix=mix),
        lambda: stream.batches(held),
        rate=RATE,
        epochs=EPOCHS,
    )
    ours = time.process_time() - started

    mix = torch.Generator().manual_seed(0)
    orders = [[b.rows for b in stream.batches(train, mix=mix)] for _ in range(EPOCHS)]
    kept = [b.rows for b in stream.batches(held)]
    shown = [round(at) for at in np.linspace(0, layers - 1, 4)]
    own = own_states(stream, trees)

    def loop(layer: int, orders: Sequence[Order]) -> tuple[list[PlainProbe], float]:
        mine = [one[layer].contiguous() for one in own]
        started = time.process_time()
        found = [
            plain_probe(
                mine,
                trees.sentences,
                start[at][layer],
                depth=probe.kind != DISTANCE,
                epochs=orders,
                held=kept,
                rate=RATE,
            )
            for at, probe in enumerate(probes.probes)
        ]
        return found, time.process_time() - started

    alone = {layer: loop(layer, orders) for layer in shown}
    by_length = layers * float(np.mean([spent for _, spent in alone.values()]))
    as_they_come = layers * loop(shown[2], [in_any_order(train, mix) for _ in orders])[1]
    print(f"{len(train)} sentences train, {layers} layers × {len(RANKS)} ranks × 2 kinds")
    for name, spent in (("by length", by_length), ("as they come", as_they_come)):
        print(f"loop, batches {name}: {spent:.0f} s, {spent / ours:.1f} × together ({ours:.0f} s)")
    found = Fitted.of(probes, least, RANKS, stream.scale)
    _compare(
        scored_sentences(stream, trees, found, trees.of_part(2)),
        trees,
        {layer: probes for layer, (probes, _) in alone.items()},
        own,
    )


def _compare(
    found: Sequence[SentenceScores],
    trees: TreeSentences,
    alone: dict[int, list[PlainProbe]],
    own: list[torch.Tensor],
) -> None:
    """Scores of both, in per cent."""
    tested = trees.of_part(2)
    arcs = sum(int(trees.sentences[row].arcs.sum()) for row in tested)
    print("| layer | UUAS, plain | together | DSpr., plain | together | root, plain | together |")
    print("|---|---|---|---|---|---|---|")
    for layer, probes in alone.items():
        best = [
            min(probes[at * len(RANKS) : (at + 1) * len(RANKS)], key=lambda one: one.loss)
            for at in range(len(KINDS))
        ]
        plain = plain_scores(
            [own[row][layer] for row in tested],
            [trees.sentences[row] for row in tested],
            best[0].matrix,
            best[1].matrix,
        )
        right = [one for one in found if 5 <= len(trees.sentences[one.sentence]) <= 50]
        together = (
            sum(one.hits[layer] for one in found) / arcs,
            np.mean([one.distance[layer] for one in right]),
            np.nanmean([one.root[layer] for one in found]),
        )
        cells = " | ".join(
            f"{100 * a:.1f} | {100 * b:.1f}" for a, b in zip(plain, together, strict=True)
        )
        print(f"| {'input' if not layer else layer - 1} | {cells} |")


def in_any_order(rows: Sequence[int], mix: torch.Generator) -> Order:
    """Batches of twenty sentences as the paper has them: padded to the longest of them."""
    mixed = [rows[at] for at in torch.randperm(len(rows), generator=mix).tolist()]
    return [mixed[at : at + 20] for at in range(0, len(mixed), 20)]


def own_states(stream: TreeStream, trees: TreeSentences) -> list[torch.Tensor]:
    """(L, n, D) of every sentence."""
    found: dict[int, torch.Tensor] = {}
    for batch in stream.batches(range(len(trees.sentences))):
        for at, row in enumerate(batch.rows):
            found[row] = batch.states[:, at, : len(trees.sentences[row])].clone()
    return [found[row] for row in range(len(found))]


if __name__ == "__main__":
    main()
