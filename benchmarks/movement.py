"""Which weights of a fine-tuned model go in a short training? Three ways, as many weights left.

    python benchmarks/movement.py MODEL --root GLUE [--share 0.4] [--examples 800] [--epochs 4]

MODEL was fine-tuned on SST-2. `movement` is what `bertology prune --method movement` does; `from 0`
is the same with scores that begin at 0, as in the paper; `magnitude` takes the smallest weights of
each matrix away before the training, which holds them at zero. All train on the same training
examples and are scored on 300 others; MODEL learned from none of them, as far as its record tells.
"""

from __future__ import annotations

import argparse
import copy
from contextlib import nullcontext
from dataclasses import replace
from random import Random

import torch
from machine import describe

import bertology as bt
from bertology.model.encoder import Encoder
from bertology.model.weight_masks import WeightMask, prunable_in_layers, weights_held_at_zero
from bertology.model.weight_ranks import without_smallest
from bertology.quiet import hush
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.movement import Movement
from bertology.train.prune_judge import learned_texts

_SCORED = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--root", required=True)
    parser.add_argument("--share", type=float, default=0.4)
    parser.add_argument("--examples", type=int, default=800)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    hush()
    print(describe())
    whole = bt.load(given.model, head="classification", device=given.device)
    learned = learned_texts(given.model)
    every = bt.load_corpus("sst-2", split="train", root=given.root)
    fresh = replace(every, examples=[e for e in every if e.texts not in learned], origin={})
    corpus = fresh.take(given.examples + _SCORED, seed=1)
    order = list(corpus)
    Random(1).shuffle(order)
    train, scored = (
        replace(corpus, examples=some, origin={}, drawn_from=None)
        for some in (order[_SCORED:], order[:_SCORED])
    )
    settings = FinetuneSettings(epochs=given.epochs, learning_rate=2e-4, max_length=32)
    for way in ("movement", "from 0", "magnitude"):
        model = copy.deepcopy(whole.model)
        weights = prunable_in_layers(Encoder(model, whole.tokenizer, head="classification"))
        movement, held = None, nullcontext()
        if way == "magnitude":
            full = WeightMask.of({n: (w == w).cpu().numpy() for n, w in weights.items()})
            mask = without_smallest(model, full, share=1 - given.share, threshold="matrix")
            held = weights_held_at_zero(model, mask)
        else:
            movement = Movement(weights, given.share)
        if way == "from 0" and movement is not None:
            movement.take({n: torch.zeros_like(s) for n, s in movement.state().items()})
        with held:
            history = finetune(
                model,
                whole.tokenizer,
                train,
                scored,
                settings=settings,
                movement=movement,
            )
        told = ", ".join(f"{e.scores['accuracy']:.3f} (loss {e.loss:.3f})" for e in history.epochs)
        print(f"{way}, {given.share:g} of the weights left: {told}", flush=True)


if __name__ == "__main__":
    main()
