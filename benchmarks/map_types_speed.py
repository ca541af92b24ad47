"""What classifying every attention map costs, as a ratio to the forward pass alone.

    python benchmarks/map_types_speed.py [--model NAME] [--corpus mrpc --root DATA]
        [--examples 256] [--batch-tokens 4096] [--rounds 5] [--device cuda] [--study]

Forward passes, passes in which attention maps are made and looked at by nobody, and passes with
classification alternate over the same batches, so that whatever else the machine does slows all
alike; ratios are of medians over rounds, after a first round that is not counted. On the CPU the
time is that of the process, and one thread is used unless told otherwise: idle threads that wait
would count too. With --study, all that the study measures is set against plain passes over the same
texts, both from the text on: its parts, its batches, the examples of each type that it keeps.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from bertology.annotated.map_types.reading import read_batches
from bertology.data.loading import load_corpus
from bertology.model.encoder import Encoder
from bertology.studies.attention.map_types import MapTypes
from bertology.studies.study import Context


class Nothing:
    """A reducer that keeps nothing."""

    def update(self, value: torch.Tensor, place: object) -> None:
        """Maps were made; that is all."""


def main() -> None:
    told = _arguments()
    torch.set_num_threads(told.threads)
    encoder = Encoder.load(told.model, device=told.device)
    corpus = load_corpus(told.corpus, root=told.root, limit=told.examples)
    study = MapTypes(examples=told.examples, measures=told.measures)
    suits = 4096 if told.device == "cpu" else study.tokens_on_gpu(encoder.shape)
    tokens = told.batch_tokens or suits
    batches = list(encoder.batches(corpus.texts, tokens_per_batch=tokens))
    parts = study.parts(encoder.shape, corpus)

    def forward() -> None:
        for batch in (
            encoder.batches(corpus.texts, tokens_per_batch=tokens) if told.study else batches
        ):
            encoder.run(batch)

    def studied() -> None:
        for part in parts:
            study.measure(encoder, corpus, part, Context(batch_tokens=tokens))

    def watched() -> None:
        for batch in batches:
            encoder.run(batch, reduce={"layer.*.head.*.pattern": Nothing()})

    def classified() -> None:
        for _ in read_batches(encoder, batches, measures=told.measures):
            pass

    works: dict[str, Callable[[], None]] = {"forward": forward}
    works |= {"study": studied} if told.study else {"maps made": watched, "classified": classified}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(told.rounds + 1):
        for name, work in works.items():
            taken = _seconds(work, told.device)
            if turn:  # the first loads the network and warms up
                seconds[name].append(taken)
    maps = len(corpus) * encoder.shape.layers * encoder.shape.heads
    print(
        f"{told.model} on {told.corpus}: {len(corpus)} examples in {len(batches)} batches, "
        f"{maps} maps, {told.device}"
    )
    for name, taken_all in seconds.items():
        ratios = [a / b for a, b in zip(taken_all, seconds["forward"], strict=True)]
        print(
            f"{name}: {statistics.median(taken_all):.4f} s, ratio "
            f"{statistics.median(taken_all) / statistics.median(seconds['forward']):.3f} "
            f"(rounds {min(ratios):.3f} to {max(ratios):.3f})"
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="bertology-mini")
    parser.add_argument("--corpus", default="grammar-paraphrase")
    parser.add_argument("--root")
    parser.add_argument("--examples", type=int, default=256)
    parser.add_argument("--batch-tokens", type=int, help="as the study does by default")
    parser.add_argument("--study", action="store_true", help="the whole of what is measured")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measures", action="store_true", help="take the measures as well")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def _seconds(work: Callable[[], None], device: str) -> float:
    # On a shared CPU the process's own time is what the work cost.
    on_cpu = device == "cpu"
    clock = time.process_time if on_cpu else time.perf_counter
    if not on_cpu:
        torch.cuda.synchronize()
    start = clock()
    work()
    if not on_cpu:
        torch.cuda.synchronize()
    return clock() - start


if __name__ == "__main__":
    main()
