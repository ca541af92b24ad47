"""How much faster is a model without half of its heads, and without half of its MLPs as well?

    python benchmarks/pruned_speed.py [--model NAME] [--batch 16] [--length 128] [--rounds 9]

All models take turns on the same batches in one process: the whole one between any two others. A
ratio is that of two neighbours in time, so that a machine that other work slows down slows both;
the median of all rounds counts, beside the smallest and the largest. Each cut model is saved, read
with `bt.load` and compared with what was saved. Prints rows of a markdown table.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from machine import describe

import bertology as bt
from bertology.model.encoder import Encoder
from bertology.model.part_masks import PartMask
from bertology.quiet import hush


def halves(encoder: Encoder) -> dict[str, Encoder]:
    """Without every second head; and without every second MLP, too."""
    full = PartMask.full(encoder)
    heads, mlps = full.heads.copy(), full.mlps.copy()
    heads[:, ::2] = False
    mlps[::2] = False
    return {
        "half of the heads": PartMask(heads, full.mlps).cut(encoder),
        "half of the heads and half of the MLPs": PartMask(heads, mlps).cut(encoder),
    }


def reloaded(encoder: Encoder, inputs: dict[str, torch.Tensor]) -> bool:
    """Whether a saved model gives the same states after `bt.load`."""
    with TemporaryDirectory() as folder:
        encoder.model.save_pretrained(Path(folder))
        encoder.tokenizer.save_pretrained(Path(folder))
        back = bt.load(folder, head=encoder.head, device=str(encoder.device))
        with torch.inference_mode():
            one, other = (e.model(**inputs)[0].cpu().numpy() for e in (encoder, back))
    return bool(np.array_equal(one, other))


def seconds(model: Any, inputs: dict[str, torch.Tensor]) -> float:
    start = time.perf_counter()
    with torch.inference_mode():
        model(**inputs)
    if inputs["input_ids"].is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="bertology-mini")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    hush()
    print(describe())
    whole = bt.load(given.model, head="base", device=given.device)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1000, 8000, (given.batch, given.length), generator=generator)
    ids = ids.to(given.device) % whole.config.vocab_size
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    for what, cut in halves(whole).items():
        same = reloaded(cut, inputs)
        seconds(whole.model, inputs), seconds(cut.model, inputs)  # warm up
        rounds = [
            (seconds(whole.model, inputs), seconds(cut.model, inputs)) for _ in range(given.rounds)
        ]
        before, after = (median(times) for times in zip(*rounds, strict=True))
        ratios = sorted(slow / fast for slow, fast in rounds)
        sizes = [e.model.num_parameters() / 1e6 for e in (whole, cut)]
        print(
            f"| {what} | {Path(given.model).name}, {given.batch} × {given.length} tokens, "
            f"{given.device}, {torch.get_num_threads()} threads | {before * 1e3:.0f} ms → "
            f"{after * 1e3:.0f} ms | {sizes[0]:.1f} M → {sizes[1]:.1f} M | "
            f"**{median(ratios):.2f}** × ({ratios[0]:.2f} to {ratios[-1]:.2f}) | "
            f"{'yes' if same else 'NO'} |"
        )


if __name__ == "__main__":
    main()
