"""Is the base of pruning quick enough? The exact threshold, and all importances in one pass.

    python benchmarks/pruning.py threshold [--weights 110e6]
    python benchmarks/pruning.py importances [--model NAME] [--examples 512] [--rounds 2]

`threshold` takes the smallest tenth of so many weights twice (the second time with a mask) and
tells seconds and how much the process grew. `importances` compares one pass that tells |dL/dξ| of
all heads and |dL/dν| of all MLPs with what an epoch of fine-tuning takes for the same examples:
forward and backward to all weights, without the optimizer.
"""

from __future__ import annotations

import argparse
import resource
import time

import torch
from machine import describe
from torch import nn

import bertology as bt
from bertology.model.encoder import Encoder
from bertology.model.part_masks import part_importances
from bertology.model.sweeps.gate_gradients import losses
from bertology.model.weight_masks import WeightMask
from bertology.model.weight_ranks import without_smallest
from bertology.quiet import hush
from bertology.train.encoded import task_of
from bertology.train.starts import STARTS, begin

_ROWS, _COLUMNS = 768, 3072


def threshold(weights: float) -> None:
    """Seconds and megabytes of the smallest tenth."""
    torch.manual_seed(0)
    count = max(1, round(weights / (_ROWS * _COLUMNS)))
    model = nn.ModuleList(nn.Linear(_ROWS, _COLUMNS, bias=False) for _ in range(count))
    mask = WeightMask.full(model)
    before = _peak()
    print(f"{mask.size / 1e6:.0f} M weights, {mask.size / 250e3:.0f} MB")
    for name in ("first step", "second step"):
        started = time.perf_counter()
        mask = without_smallest(model, mask, share=0.1)
        print(f"{name}: {time.perf_counter() - started:.2f} s, {mask.share:.4f} left")
    print(f"the process grew by {_peak() - before:.0f} MB")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def importances(name: str, examples: int, rounds: int) -> None:
    """One pass of importances beside forward and backward of an epoch, in turn."""
    base = Encoder.load(name)
    corpus = bt.load_corpus("grammar-entailment", split="train", limit=examples)
    model = begin(base, task_of(corpus), STARTS["pretrained"], seed=0)
    encoder = Encoder(model, base.tokenizer, head="classification", name=name)
    batches = list(encoder.batches(corpus.texts))

    def epoch() -> None:
        for batch in batches:
            wanted = torch.tensor([corpus.labels[i] for i in batch.indices], device=encoder.device)
            losses(encoder.model(**batch.inputs).logits, wanted).mean().backward()
            encoder.model.zero_grad(set_to_none=True)

    def one_pass() -> None:
        part_importances(encoder, corpus.texts, corpus.labels)

    taken: dict[str, list[float]] = {"epoch, forward and backward": [], "all importances": []}
    for _ in range(rounds):  # in turn, so that a machine that slows down slows both
        for what, work in zip(taken, (epoch, one_pass), strict=True):
            started = time.perf_counter()
            work()
            if encoder.device.type == "cuda":
                torch.cuda.synchronize()
            taken[what].append(time.perf_counter() - started)
    for what, times in taken.items():
        print(f"{what}: {min(times):.2f} s for {len(corpus)} examples on {encoder.device}")
    ratios = [second / first for first, second in zip(*taken.values(), strict=True)]
    print("ratio of each round:", ", ".join(f"{ratio:.2f}" for ratio in ratios))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("threshold", "importances"))
    parser.add_argument("--weights", type=float, default=110e6)
    parser.add_argument("--model", default="bertology-mini")
    parser.add_argument("--examples", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    hush()
    print(describe())
    if given.what == "threshold":
        threshold(given.weights)
    else:
        importances(given.model, given.examples, given.rounds)


if __name__ == "__main__":
    main()
