"""Is the base of pruning quick enough? The exact threshold, and all importances in one pass.

    python benchmarks/pruning.py threshold [--weights 110e6]
    python benchmarks/pruning.py importances [--model NAME] [--examples 512]

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


def importances(name: str, examples: int) -> None:
    """One pass of importances beside forward and backward of an epoch, the best of three each."""
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

    taken = {}
    for what, work in (("epoch, forward and backward", epoch), ("all importances", one_pass)):
        work()
        times = []
        for _ in range(3):
            started = time.perf_counter()
            work()
            if encoder.device.type == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - started)
        taken[what] = min(times)
        print(f"{what}: {min(times):.2f} s for {len(corpus)} examples on {encoder.device}")
    first, second = taken.values()
    print(f"ratio {second / first:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("threshold", "importances"))
    parser.add_argument("--weights", type=float, default=110e6)
    parser.add_argument("--model", default="bertology-mini")
    parser.add_argument("--examples", type=int, default=512)
    given = parser.parse_args()
    hush()
    print(describe())
    if given.what == "threshold":
        threshold(given.weights)
    else:
        importances(given.model, given.examples)


if __name__ == "__main__":
    main()
