"""Fine-tune a model on MRPC with our own code, and sweep its heads: the study's numbers.

Usage: python benchmarks/mrpc_model.py BASE GLUE_ROOT --to FOLDER [--seeds 1] [--device auto]
The paper's settings: batch 32, 3 epochs, linear schedule.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from machine import describe

from bertology.data.loading import load_corpus
from bertology.model.encoder import Encoder
from bertology.quiet import hush
from bertology.train.finetune import FinetuneSettings, finetune


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("base")
    arguments.add_argument("root")
    arguments.add_argument("--to", type=Path, required=True)
    arguments.add_argument("--seeds", type=int, default=1)
    arguments.add_argument("--rate", type=float, default=1e-4)
    arguments.add_argument("--device", default="auto")
    given = arguments.parse_args()
    hush()
    train, dev = (load_corpus("mrpc", split=s, root=given.root) for s in ("train", "validation"))
    print(describe())
    for seed in range(given.seeds):
        encoder = Encoder.load(given.base, head="classification", num_labels=2, device=given.device)
        settings = FinetuneSettings(learning_rate=given.rate, seed=seed)
        started = time.perf_counter()
        history = finetune(encoder.model, encoder.tokenizer, train, dev, settings=settings)
        took = time.perf_counter() - started
        shown = ", ".join(f"{k} {100 * v:.1f}" for k, v in history.scores.items())
        print(f"seed {seed}: {shown} in {took:.0f} s", flush=True)
        if seed == 0:
            encoder.model.to(torch.float16).save_pretrained(given.to)
            encoder.tokenizer.save_pretrained(given.to)


if __name__ == "__main__":
    main()
