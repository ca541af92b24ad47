"""How fast is a model of 8-bit whole numbers on a CPU, beside its 32-bit original?

    python benchmarks/eight_bits.py [--models bertology-mini FOLDER …] [--threads 1 2] [--rounds 60]

Both models take turns at the same random rows, of one text and of 32, after three passes that are
not counted. The whole encoder is timed, without cutting texts into tokens. The median of all rounds
counts. Prints a markdown table.
"""

from __future__ import annotations

import argparse
import copy
import time
import warnings
from pathlib import Path
from statistics import median

import torch
from machine import describe

import bertology as bt
from bertology.model.compressed import quantised

SHAPES = ((1, 8), (1, 25), (1, 64), (1, 128), (32, 64))  # texts × tokens
_PLAIN = 3  # unmeasured passes


def milliseconds(
    models: list[torch.nn.Module], texts: int, tokens: int, rounds: int
) -> list[float]:
    """The median of each model, in turns."""
    inputs = {
        "input_ids": torch.randint(5, 1000, (texts, tokens)),
        "attention_mask": torch.ones(texts, tokens, dtype=torch.long),
    }
    spent: list[list[float]] = [[] for _ in models]
    with torch.no_grad():
        for number in range(_PLAIN + rounds):
            for at, model in enumerate(models):
                started = time.perf_counter()
                model(**inputs)
                if number >= _PLAIN:
                    spent[at].append(1000 * (time.perf_counter() - started))
    return [median(times) for times in spent]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["bertology-mini"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=60)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # torch warns that types of its quantised tensors will go
    print(describe() + "\n")
    print("| model | threads | texts × tokens | 32 bits (ms) | 8 bits (ms) | times as fast |")
    print("|---|---|---|---|---|---|")
    for name in asked.models:
        model = bt.load(name, device="cpu").model.eval().float()
        small = quantised.quantise(copy.deepcopy(model), bits=8, activations=8).eval()
        for threads in asked.threads:
            torch.set_num_threads(threads)
            for texts, tokens in SHAPES:
                rounds = asked.rounds if texts == 1 else max(5, asked.rounds // 6)
                plain, whole = milliseconds([model, small], texts, tokens, rounds)
                print(
                    f"| {Path(name).name} | {threads} | {texts} × {tokens} | {plain:.1f} | "
                    f"{whole:.1f} | {plain / whole:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
