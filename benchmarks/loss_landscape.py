"""How long does a loss surface take, beside reading the weights of each point from disk?

    python benchmarks/loss_landscape.py [--device cpu] [--grid 31] [--examples 512] [--rounds 5]
        [--model NAME] [--corpus grammar-entailment] [--root FOLDER] [--together 1 2 4 8]

Ways to get the loss of the next point take turns in one process, on the same examples: a row of the
surface as `Terrain.losses` computes it, with one or several points in a pass; reading a file of
weights into the same model; and loading a whole model, as scripts do that write one checkpoint for
each point. All ways read the same texts, which are tokenised once, in our batches of texts of
similar length; in the last two rows batches hold 32 texts in the order of the data, as usual loops
have them, and in the last one texts are tokenised again for each point, as such scripts may do,
too. Only reading is counted, not writing, and it is always the same file, which the system then has
in memory: both favour what is read. A ratio is of two neighbours in time, and the median of all
rounds counts. On a CPU the passes themselves take most of the time, so that no way can be much
faster than another: take a small grid there (--grid 5), and few examples (--examples 8) to see what
is saved. Prints a markdown table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import transformers
from machine import describe
from safetensors.torch import load_file

import bertology as bt
from bertology.data.loading import load_corpus
from bertology.quiet import hush
from bertology.train.encoded import encode, task_of
from bertology.train.landscape.directions import random_direction
from bertology.train.landscape.places import around_places
from bertology.train.landscape.terrain import Terrain, copied, points_together, summed_loss
from bertology.train.starts import STARTS, begin

GPU_TOKENS, CPU_TOKENS = 32768, 4096


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """How long something takes, on a GPU until it is really done."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def ways(
    asked: argparse.Namespace, folder: Path
) -> tuple[dict[str, Callable[[], float]], torch.device, int]:
    """Seconds for each point, by the way it is computed; the device, and the tokens of a pass."""
    encoder = bt.load(asked.model, device=asked.device)
    where = {} if asked.root is None else {"root": asked.root}
    corpus = load_corpus(asked.corpus, split="train", limit=asked.examples, **where)
    task, device = task_of(corpus), encoder.device
    model = begin(encoder, task, STARTS["pretrained"], seed=0)
    most = GPU_TOKENS if device.type == "cuda" else CPU_TOKENS

    def prepared() -> Terrain:
        encoded = encode(corpus, encoder.tokenizer, encoder.max_length)
        return Terrain.over(model, encoded, task, batch_tokens=most)

    def loss_of(made: Any, over: Terrain) -> float:
        """By plain passes and no more: `Terrain.loss` would also keep and put back weights."""
        with torch.no_grad():
            said = [summed_loss(made(**x).logits, y, over.kind) for x, y in over.batches]
        return float(torch.stack(said).sum()) / over.size

    terrain = prepared()
    here = copied(terrain.model)
    planes = [random_direction(here, seed=(0, number)) for number in range(2)]
    places = around_places(0.5, asked.grid)
    row = np.column_stack([places, np.full(len(places), 0.1)])
    model.save_pretrained(folder)
    [file] = folder.glob("*.safetensors")

    def on_the_spot(together: int) -> float:
        work = lambda: terrain.losses(here, planes, row, together=together)  # noqa: E731
        return seconds(work, device) / len(row)

    def usual() -> Terrain:
        rows = encode(corpus, encoder.tokenizer, encoder.max_length)
        batches = [
            rows.batch(list(range(i, min(i + 32, len(rows)))), device)
            for i in range(0, len(rows), 32)
        ]
        return Terrain(model, batches, task.kind)

    in_order = usual()

    def read_weights(over: Terrain) -> float:
        def work() -> None:
            model.load_state_dict(load_file(file, device=str(device)))
            loss_of(model, over)

        return seconds(work, device)

    def load_model(*, tokenise: bool = False) -> float:
        def work() -> None:
            auto = transformers.AutoModelForSequenceClassification
            made = auto.from_pretrained(folder).to(device).eval()
            loss_of(made, usual() if tokenise else terrain)

        return seconds(work, device)

    chosen = points_together(terrain)
    counts = dict.fromkeys([chosen, *asked.together])
    ours = {
        f"in place, {n} in a pass{' (chosen)' if n == chosen else ''}": (
            lambda n=n: on_the_spot(n)  # type: ignore[misc]
        )
        for n in counts
    }
    read: dict[str, Callable[[], float]] = {
        "weights read": partial(read_weights, terrain),
        "model loaded": load_model,
        "weights read, batches of 32": partial(read_weights, in_order),
        "model loaded, batches of 32, texts tokenised": partial(load_model, tokenise=True),
    }
    return ours | read, device, terrain.tokens


def main() -> None:
    """Measure in turns, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="bertology-mini")
    parser.add_argument("--corpus", default="grammar-entailment")
    parser.add_argument("--root", default=None)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--grid", type=int, default=31)
    parser.add_argument("--examples", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--together", type=int, nargs="+", default=[1])
    asked = parser.parse_args()
    hush()
    print(describe())
    with TemporaryDirectory() as folder:
        found, device, tokens = ways(asked, Path(folder))
        for measure in found.values():
            measure()  # once for what is only made once
        times = {name: list[float]() for name in found}
        for _ in range(asked.rounds):
            for name, measure in found.items():
                times[name].append(measure())
    first = next(iter(times))
    print(
        f"{asked.model}, {asked.corpus}: {asked.grid} × {asked.grid} points × {asked.examples} "
        f"examples ({tokens} tokens with padding), {device.type}, median of {asked.rounds} rounds\n"
    )
    print("| way | a point (ms) | the surface (s) | times the first |")
    print("|---|---|---|---|")
    for name, took in times.items():
        ratios = [a / b for a, b in zip(took, times[first], strict=True)]
        middle = median(took)
        print(
            f"| {name} | {1000 * middle:.1f} | {asked.grid**2 * middle:.1f} | "
            f"{median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f}) |"
        )


if __name__ == "__main__":
    main()
