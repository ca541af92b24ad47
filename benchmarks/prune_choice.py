"""Which layers to cut: python benchmarks/prune_choice.py MODEL TASK --root DATA

Layers are cut from a fine-tuned classifier in several orders, and what is left is scored on texts
that chose nothing. `measured` is what `bertology prune` does: after each cut, every layer that is
left is left out once, and the one goes without which the answers move least. The obvious ways:
the top layers first, any layers (the mean of some random orders), and the gradients of gates at
all layers, taken once. Prints a markdown table.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import prune_layers
from bertology.model.sweeps.gate_gradients import importances
from bertology.quiet import hush
from bertology.train.answers import answer, encode_for, match_of
from bertology.train.encoded import task_of
from bertology.train.part_ranking import GivenAnswers, without
from bertology.train.prune_judge import learned_texts


def smaller(encoder: Encoder, gone: Sequence[int]) -> Encoder:
    model = prune_layers(encoder, gone)
    return Encoder(model, encoder.tokenizer, head=encoder.head, name=encoder.name)


def measured(encoder: Encoder, texts: Corpus, count: int) -> list[int]:
    given = GivenAnswers(encoder, texts.texts, tokens_per_batch=4096)
    left, gone = list(range(encoder.shape.layers)), []
    for _ in range(count):
        current = smaller(encoder, gone) if gone else encoder
        changes = [given.change(current, without("layers", i)) for i in range(len(left))]
        gone.append(left.pop(int(np.argmin(changes))))
    return gone


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("task")
    parser.add_argument("--root")
    parser.add_argument("--ranking", type=int, default=200)
    parser.add_argument("--scored", type=int, default=1000)
    parser.add_argument("--cuts", type=int, nargs="+", default=[2, 4, 6])
    parser.add_argument("--orders", type=int, default=3, help="random ones")
    given = parser.parse_args()
    hush()
    encoder = Encoder.load(given.model, head="classification", device="cpu")
    train = load_corpus(given.task, root=given.root, split="train")
    learned = learned_texts(given.model)
    fresh = [e for e in train if e.texts not in learned]
    random.Random(0).shuffle(fresh)
    ranking, scored = (
        replace(train, examples=some, origin={})
        for some in (fresh[: given.ranking], fresh[given.ranking :][: given.scored])
    )
    task, encoded = task_of(scored), encode_for(encoder, scored)

    def score(gone: Sequence[int]) -> float:
        return answer(smaller(encoder, gone) if gone else encoder, encoded, task).score

    layers, most = encoder.shape.layers, max(given.cuts)
    order = match_of(encoder, task).order
    slopes = importances(encoder, ranking.texts, [order[int(x)] for x in ranking.labels]).layers
    any_order = [random.Random(s).sample(range(layers), layers) for s in range(given.orders)]
    ways = {
        "measured, one by one": [measured(encoder, ranking, most)],
        "gradients of gates, once": [[int(i) for i in np.argsort(slopes)]],
        "the top layers": [list(range(layers))[::-1]],
        f"any layers, mean of {given.orders}": any_order,
    }
    name = task.metrics[0]
    print(f"{encoder.name}, {given.task}: {name} {score([]):.3f} whole, {len(scored)} texts")
    print("| cut | " + " | ".join(f"{n} layers" for n in given.cuts) + " | which |")
    print("|" + "---|" * (len(given.cuts) + 2))
    for way, orders in ways.items():
        found = [np.mean([score(o[:n]) for o in orders]) for n in given.cuts]
        which = ", ".join(str(i) for i in orders[0][:most]) if len(orders) == 1 else ""
        print(f"| {way} | " + " | ".join(f"{x:.3f}" for x in found) + f" | {which} |", flush=True)


if __name__ == "__main__":
    main()
