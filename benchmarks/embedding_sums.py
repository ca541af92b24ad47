"""Self-similarity and anisotropy in one pass of sums, beside the plain forward pass.

The same batches of real text go through the same encoder: alone, with the sums of
`self-similarity`, and with those of `anisotropy` (all layers and the input). Texts are repeated
until there are as many tokens as asked. Timed is the pass with all that belongs to it (finding
words among pieces, sums); cutting texts into pieces is the same for all three and is timed apart,
and so is what follows the pass. Both must know before which words they look at: that needs texts
alone, is done once, and has its own rows ("choosing words"). Memory is that of the process, or of
the GPU, at its most.

Then operations of one batch are counted, with those of the forward pass alone taken off: how many
are asked of the device, and at how many the program must wait for it. They are counted by name on
any device (views and empty memory are no work); one operation is one kernel or a few.

    python benchmarks/embedding_sums.py [--device cpu] [--model bertology-mini] [--tokens 40000]
        [--corpus grammar] [--root DATA] [--rounds 3] [--batch-tokens 0]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from machine import describe, wait
from torch.utils._python_dispatch import TorchDispatchMode

import bertology as bt
from bertology.annotated.recurring_words import (
    frequent_kinds,
    number_among,
    occurrences,
    recurring_words,
)
from bertology.data.corpus import Corpus
from bertology.data.words.piece_words import TokenWords, token_words
from bertology.model.batch import Batch
from bertology.model.encoder import Encoder
from bertology.model.reducers.word_sums import DirectionSums, RecurringSums
from bertology.studies.geometry.anisotropy import FREQUENT, direction_places
from bertology.studies.geometry.self_similarity import SelfSimilarity, recurring_places
from bertology.studies.geometry.shared.text_blocks import SITES, WordsOfBatch, sentence_ends

_NO_WORK = ("empty", "new_empty", "empty_like", "empty_strided", "lift_fresh", "detach", "alias")
_WAITS = ("_local_scalar_dense", "nonzero", "bincount", "masked_select", "equal", "_unique2")


class Operations(TorchDispatchMode):
    """Counts what is asked of a device."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.name().partition("::")[2].partition(".")[0]
        found = func(*args, **(kwargs or {}))
        if name == "index" and any(
            one is not None and one.dtype in (torch.bool, torch.uint8) for one in args[1]
        ):
            self.asked["nonzero"] += 1  # a mask: how many rows are left must be known here
        if not func.is_view and name not in _NO_WORK:
            self.asked[name] += 1
        return found

    @property
    def waits(self) -> int:
        return sum(self.asked[name] for name in _WAITS)


def repeated(corpus: Corpus, encoder: Encoder, tokens: int) -> Corpus:
    """The texts again and again, until there are enough tokens."""
    lengths = encoder.tokenize(corpus.texts).lengths
    times = int(np.ceil(tokens / sum(lengths)))
    examples = [
        replace(one, id=f"{one.id}-{turn}") for turn in range(times) for one in corpus.examples
    ]
    enough = int(np.searchsorted(np.cumsum(lengths * times), tokens)) + 1
    return replace(corpus, examples=examples[:enough], origin={})


def read_of(encoder: Encoder, batches: list[Batch]) -> Iterator[WordsOfBatch]:
    """Words of each batch, found as the studies do."""
    ends = sentence_ends(encoder)
    for batch in batches:
        yield WordsOfBatch(batch, token_words(batch.encodings or (), ends), np.array(batch.indices))


def seconds(device: str, work: Callable[[], object]) -> float:
    wait(device)
    started = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - started


def peak(device: str) -> str:
    if device.startswith("cuda"):
        return f"{torch.cuda.max_memory_allocated() / 2**20:.0f} MiB of the GPU"
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"


def print_operations(
    passes: dict[str, Callable[[list[Batch]], object]], batches: list[Batch]
) -> None:
    """Of one batch: what a second batch adds, so that beginning and end do not count."""
    found: dict[str, Operations] = {}
    for name, work in passes.items():
        counts = []
        for many in (1, 2):
            with Operations() as counted:
                work(batches[:1] * many)
            counts.append(counted)
        found[name] = counts[1]
        found[name].asked.subtract(counts[0].asked)
    alone = found["forward"]
    print(f"operations of one batch: {alone.asked.total()} forward, {alone.waits} of them waits")
    for name in ("self-similarity", "anisotropy"):
        found[name].asked.subtract(alone.asked)
        asked = found[name].asked
        print(f"{name}: {asked.total()} more, {found[name].waits} of them waits:")
        print("  " + ", ".join(f"{n} {what}" for what, n in asked.most_common() if n))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", default="bertology-mini")
    parser.add_argument("--tokens", type=int, default=40_000)
    parser.add_argument("--corpus", default="grammar")
    parser.add_argument("--root")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-tokens", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    given = arguments()
    print(describe())
    encoder = Encoder.load(given.model, device=given.device)
    some = bt.load_corpus(given.corpus, root=given.root, limit=4000, seed=0)
    corpus = repeated(some, encoder, given.tokens)
    study = SelfSimilarity()
    size = given.batch_tokens or (
        study.tokens_on_gpu(encoder.shape) if given.device.startswith("cuda") else 4096
    )
    batches: list[Batch] = []
    cut = seconds(
        given.device,
        lambda: batches.extend(encoder.batches(corpus.texts, tokens_per_batch=size)),
    )
    tokens = sum(int(batch.lengths.sum()) for batch in batches)
    chosen = study.chosen(encoder, corpus)
    frequent = frequent_kinds(
        ((read.words, read.texts) for read in read_of(encoder, batches)), FREQUENT
    )
    layers, width = encoder.shape.layers, encoder.shape.hidden

    def plain(batches: list[Batch]) -> None:
        for batch in batches:
            encoder.run(batch)

    def alike(batches: list[Batch]) -> None:
        sums = RecurringSums(
            layers, len(chosen.names), width, encoder.device, slots=chosen.stored.size
        )
        for read in read_of(encoder, batches):
            at = occurrences(read.words, read.texts, chosen, seed=0)
            sums.start(read.pooled(encoder), recurring_places(read, at, encoder.device))
            encoder.run(read.batch, reduce=dict.fromkeys(SITES, sums))
        sums.taken()

    def cone(batches: list[Batch]) -> None:
        sums = DirectionSums(layers, width, encoder.device, frequent=len(frequent), moments=True)
        for read in read_of(encoder, batches):
            kinds = number_among(frequent, read.words.kinds)
            places, _ = direction_places(read, kinds, encoder.device)
            sums.start(read.pooled(encoder), places)
            encoder.run(read.batch, reduce=dict.fromkeys(SITES, sums))
        sums.taken()

    def words_of(batches: list[Batch]) -> Iterator[tuple[TokenWords, np.ndarray[Any, Any]]]:
        return ((read.words, read.texts) for read in read_of(encoder, batches))

    def choose_recurring(batches: list[Batch]) -> None:
        recurring_words(
            encoder, words_of(batches), contexts=study.contexts, most=study.words, seed=0
        )

    def choose_frequent(batches: list[Batch]) -> None:
        frequent_kinds(words_of(batches), FREQUENT)

    passes: dict[str, Callable[[list[Batch]], object]] = {
        "forward": plain,
        "self-similarity": alike,
        "anisotropy": cone,
        "choosing words for self-similarity": choose_recurring,
        "choosing words for anisotropy": choose_frequent,
    }
    for work in passes.values():  # the first pass of each makes kernels and memory
        work(batches)
    times: dict[str, list[float]] = {name: [] for name in passes}
    for _ in range(given.rounds):
        for name, work in passes.items():
            times[name].append(seconds(given.device, partial(work, batches)))
    print(f"{tokens:,} tokens, {layers + 1} layers × {width}, batches of {size:,} tokens")
    print(f"cutting texts into pieces: {cut:.2f} s; {len(chosen.names)} words chosen")
    forward = np.median(times["forward"])
    print("| pass | seconds | × forward | tokens/s |\n|---|---|---|---|")
    for name, found in times.items():
        middle = float(np.median(found))
        print(f"| {name} | {middle:.2f} | {middle / forward:.2f} | {tokens / middle:,.0f} |")
    print(f"most memory: {peak(given.device)}")
    print_operations(passes, batches)


if __name__ == "__main__":
    main()
