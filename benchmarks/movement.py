"""Which weights of a fine-tuned model go in a short training? Three ways, as many weights left.

    python benchmarks/movement.py MODEL --root GLUE [--share 0.4] [--examples 800] [--epochs 4]

MODEL was fine-tuned on SST-2. `movement` is what `bertology prune --method movement` does; `from 0`
is the same with scores that begin at 0, as in the paper; `magnitude` takes the smallest weights of
each matrix away before the training, which holds them at zero. All train on the same training
examples and are scored on 300 others; neither were among the first 4,000, which MODEL may know.
"""

from __future__ import annotations

import argparse
import copy
from contextlib import nullcontext

import torch
from machine import describe

import bertology as bt
from bertology.model.encoder import Encoder
from bertology.model.weight_masks import WeightMask, prunable_in_layers, weights_held_at_zero
from bertology.model.weight_ranks import without_smallest
from bertology.quiet import hush
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.movement import Movement

_KNOWN, _SCORED = 4000, 300


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
    last = _KNOWN + given.examples
    corpus = bt.load_corpus("sst-2", split="train", root=given.root, limit=last + _SCORED)
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
                corpus[_KNOWN:last],
                corpus[last:],
                settings=settings,
                movement=movement,
            )
        told = ", ".join(f"{e.scores['accuracy']:.3f} (loss {e.loss:.3f})" for e in history.epochs)
        print(f"{way}, {given.share:g} of the weights left: {told}", flush=True)


if __name__ == "__main__":
    main()
