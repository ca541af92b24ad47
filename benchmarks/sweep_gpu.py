"""The exact sweep on a GPU: a random 12×12×768 BERT, 1,000 pairs, single and half precision.

Floor: the operations of the suffix passes (what no exact method can leave out), divided by the
rate of a large matrix product measured in the same run.

Usage: python benchmarks/sweep_gpu.py [--lengths FILE]
`FILE` holds one pair length in tokens per line; without it lengths like MRPC's are drawn.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from machine import describe, product_rate

from bertology.model.batch import Batch, by_length
from bertology.model.encoder import Encoder
from bertology.model.sweeps.replay import Sweep, Variant


def matmul_rate(dtype: torch.dtype, size: int = 8192) -> float:
    """Operations per second of a large product."""
    return product_rate(size, size, size, dtype=dtype)


def suffix_operations(lengths: list[int], layers: int, heads: int, width: int) -> float:
    """Of the intact pass and every variant's suffix; the last layer at one position only."""
    total = 0.0
    for t in lengths:
        attention = 4 * t * t * width  # scores and weighted values
        layer = 24 * t * width**2 + attention
        last = 4 * t * heads * width + 24 * width**2
        mlp = 16 * t * width**2
        intact = (layers - 1) * layer + last
        suffixes = sum(mlp + (layers - 2 - start) * layer + last for start in range(layers - 1))
        total += intact + (heads + 1) * (suffixes + last)
    return total


def batches(lengths: list[int], tokens: int) -> list[Batch]:
    """Random token ids of the given lengths."""
    generator = torch.Generator().manual_seed(0)
    made = []
    for chosen in by_length(lengths, tokens):
        longest = lengths[chosen[0]]
        ids = torch.randint(5, 30000, (len(chosen), longest), generator=generator)
        mask = torch.tensor([[int(j < lengths[i]) for j in range(longest)] for i in chosen])
        made.append(Batch({"input_ids": ids.cuda(), "attention_mask": mask.cuda()}, chosen))
    return made


def timed(sweep: Sweep, made: list[Batch]) -> float:
    torch.cuda.synchronize()
    started = time.perf_counter()
    for batch in made:
        sweep.run(batch)
    torch.cuda.synchronize()
    return time.perf_counter() - started


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--lengths", type=Path)
    arguments.add_argument("--tokens", type=int, nargs="*", default=[2048, 4096, 8192])
    given = arguments.parse_args()
    if given.lengths:
        lengths = [int(n) for n in given.lengths.read_text().split()][:1000]
    else:
        generator = torch.Generator().manual_seed(0)
        lengths = (53 + 14 * torch.randn(1000, generator=generator)).clamp(20, 103).int().tolist()
    print(describe())
    print(f"1,000 pairs, {sum(lengths)} tokens; 157 passes\n")
    print("| precision | tokens per batch | seconds | floor | × floor | loop (b) | × loop |")
    print("|---|---|---|---|---|---|---|")
    for name in ("float32", "bfloat16"):
        dtype = getattr(torch, name)
        torch.manual_seed(0)
        model: Any = transformers.BertForSequenceClassification(
            transformers.BertConfig(num_labels=2)
        ).to("cuda", dtype)
        encoder = Encoder(model.eval(), head="classification")
        layers, heads = range(12), range(12)
        variants = [Variant(((i, h),)) for i in layers for h in heads]
        variants += [Variant(tuple((i, h) for h in heads)) for i in layers]
        sweep = Sweep(encoder, variants)
        floor = suffix_operations(lengths, 12, 12, 768) / matmul_rate(dtype)
        passes = variants[:: len(variants) // 6][:6]
        plain = Sweep(encoder, passes, fast=False)
        made = batches(lengths, 16384)
        timed(plain, made[:1])
        loop = timed(plain, made) * 157 / (1 + len(passes))
        for tokens in given.tokens:
            made = batches(lengths, tokens)
            timed(sweep, made[:1])
            seconds = timed(sweep, made)
            print(f"| {name} | {tokens} | {seconds:.2f} | {floor:.2f} | {seconds / floor:.2f} | "
                  f"{loop:.1f} | {loop / seconds:.1f} |", flush=True)  # fmt: skip
        peak = torch.cuda.max_memory_allocated() / 2**30
        print(f"peak GPU memory {peak:.1f} GiB; matrix product {matmul_rate(dtype) / 1e12:.0f} T/s")


if __name__ == "__main__":
    main()
