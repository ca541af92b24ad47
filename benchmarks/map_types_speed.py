"""What classifying every attention map costs, as a ratio to the forward pass alone.

    python benchmarks/map_types_speed.py [--model NAME] [--corpus mrpc --root DATA] [--examples 256]

Forward passes and passes with classification alternate over the same batches, so that whatever
else the machine does slows both alike; the ratio is of the medians. On the CPU the time is that of
the process, and one thread is used unless told otherwise: idle threads that wait would count too.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from bertology.data.loading import load_corpus
from bertology.model.encoder import Encoder
from bertology.train.map_types.reading import read_maps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="bertology-mini")
    parser.add_argument("--corpus", default="grammar-paraphrase")
    parser.add_argument("--root")
    parser.add_argument("--examples", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    told = parser.parse_args()
    torch.set_num_threads(told.threads)
    encoder = Encoder.load(told.model, device=told.device)
    corpus = load_corpus(told.corpus, root=told.root, limit=told.examples)
    batches = list(encoder.batches(corpus.texts))
    read_maps(encoder, batches[-1])  # loads the network
    plain, both = [], []
    for _ in range(told.rounds):
        for batch in batches:
            plain.append(_seconds(lambda batch=batch: encoder.run(batch), told.device))
            both.append(_seconds(lambda batch=batch: read_maps(encoder, batch), told.device))
    count = len(batches)
    forward, classified = (
        sum(statistics.median(times[i::count]) for i in range(count)) for times in (plain, both)
    )
    maps = len(corpus) * encoder.shape.layers * encoder.shape.heads
    print(f"{told.model} on {told.corpus}: {len(corpus)} examples, {maps} maps, {told.device}")
    print(f"forward {forward:.2f} s, with classification {classified:.2f} s")
    print(f"ratio {classified / forward:.3f}")


def _seconds(work: object, device: str) -> float:
    # On a shared CPU the process's own time is what the work cost.
    clock = time.process_time if device == "cpu" else time.perf_counter
    if device == "cuda":
        torch.cuda.synchronize()
    start = clock()
    work()  # type: ignore[operator]
    if device == "cuda":
        torch.cuda.synchronize()
    return clock() - start


if __name__ == "__main__":
    main()
