"""Streaming attention statistics against a plain eager forward pass, and their memory.

Usage: python benchmarks/streaming.py [--threads 2]. Each memory figure comes from a process of
its own (--measure N), because a process never gives memory back.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import torch
import transformers
from machine import describe

from bertology.model.batch import Batch
from bertology.model.encoder import Encoder
from bertology.model.reducers.statistics import AttentionStatistics


def made(examples: int) -> list[Batch]:
    generator = torch.Generator().manual_seed(0)
    batches = []
    for start in range(0, examples, 40):
        length = 24 + 7 * (start // 40 % 5)
        ids = torch.randint(5, 30000, (40, length), generator=generator)
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        batches.append(Batch(inputs, range(start, start + 40)))
    return batches


def encoder() -> Encoder:
    torch.manual_seed(0)
    config = transformers.BertConfig(hidden_size=384, intermediate_size=1536)
    return Encoder(transformers.BertModel(config).eval())


def stream(enc: Encoder, batches: list[Batch]) -> AttentionStatistics:
    statistics = AttentionStatistics(enc.shape)
    for batch in batches:
        enc.run(batch, reduce={"layer.*.head.*.pattern": statistics})
    return statistics


def measure(examples: int) -> float:
    """Peak memory in MiB of streaming over so many examples."""
    enc = encoder()
    stream(enc, made(examples))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--measure", type=int)
    given = arguments.parse_args()
    torch.set_num_threads(given.threads)
    if given.measure:
        print(measure(given.measure))
        return
    enc, batches = encoder(), made(200)
    enc.model.set_attn_implementation("eager")
    plain, ours = [], []
    stream(enc, batches[:1])
    for _ in range(4):
        started = time.perf_counter()
        with torch.inference_mode():
            for batch in batches:
                enc.model(**batch.inputs)
        plain.append(time.perf_counter() - started)
        started = time.perf_counter()
        stream(enc, batches)
        ours.append(time.perf_counter() - started)
    ratio = min(ours) / min(plain)
    memory = {}
    for n in (200, 2000):
        command = [sys.executable, __file__, "--measure", str(n), "--threads", str(given.threads)]
        memory[n] = float(subprocess.run(command, capture_output=True, check=True).stdout)
    print(describe())
    print("| 12×12×384, 200 examples of 24 to 52 tokens | |\n|---|---|")
    print(f"| plain eager forward | {min(plain):.2f} s |")
    print(f"| with seven statistics of 144 heads | {min(ours):.2f} s, **{ratio:.2f} ×** |")
    print(f"| peak memory, 200 / 2,000 examples | {memory[200]:.0f} / {memory[2000]:.0f} MiB |")


if __name__ == "__main__":
    main()
