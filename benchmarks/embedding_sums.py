"""Self-similarity and anisotropy in one pass of sums, beside the plain forward pass.

The same batches of real text go through the same encoder: alone, with the sums of
`self-similarity`, and with those of `anisotropy` (all layers and the input). Texts are repeated
until there are as many tokens as asked. Timed is the pass with all that belongs to it (finding
words among pieces, sums); cutting texts into pieces is the same for all three and is timed apart,
and so is what follows the pass. Memory is that of the process, or of the GPU, at its most.

    python benchmarks/embedding_sums.py [--device cpu] [--model bertology-mini] [--tokens 40000]
        [--corpus grammar] [--root DATA] [--rounds 3] [--batch-tokens 0]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch
from machine import describe, wait

import bertology as bt
from bertology.annotated.recurring_words import frequent_kinds, number_among, occurrences
from bertology.data.corpus import Corpus
from bertology.data.words.token_words import token_words
from bertology.model.batch import Batch
from bertology.model.encoder import Encoder
from bertology.model.reducers.word_sums import DirectionSums, RecurringSums
from bertology.studies.designs.text_blocks import SITES, WordsOfBatch, sentence_ends
from bertology.studies.geometry.anisotropy import same_words
from bertology.studies.geometry.self_similarity import SelfSimilarity, recurring_places


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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", default="bertology-mini")
    parser.add_argument("--tokens", type=int, default=40_000)
    parser.add_argument("--corpus", default="grammar")
    parser.add_argument("--root")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-tokens", type=int, default=0)
    given = parser.parse_args()
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
    layers, width = encoder.shape.layers, encoder.shape.hidden

    def plain() -> None:
        for batch in batches:
            encoder.run(batch)

    def alike() -> None:
        sums = RecurringSums(
            layers, len(chosen.names), width, encoder.device, slots=chosen.stored.size
        )
        for read in read_of(encoder, batches):
            at = occurrences(read.words, read.texts, chosen, seed=0)
            sums.start(read.pooled(encoder), recurring_places(read, at, encoder.device))
            encoder.run(read.batch, reduce=dict.fromkeys(SITES, sums))
        sums.taken()

    def cone() -> None:
        frequent = frequent_kinds(((r.words, r.texts) for r in read_of(encoder, batches)), 256)
        sums = DirectionSums(layers, width, encoder.device, frequent=len(frequent), moments=True)
        for read in read_of(encoder, batches):
            texts = torch.as_tensor(read.words.texts, device=encoder.device)
            kinds = number_among(frequent, read.words.kinds)
            same, _ = same_words(read, kinds, encoder.device)
            sums.start(read.pooled(encoder), texts, len(read.texts), same)
            encoder.run(read.batch, reduce=dict.fromkeys(SITES, sums))
        sums.taken()

    passes = {"forward": plain, "self-similarity": alike, "anisotropy": cone}
    for work in passes.values():  # the first pass of each makes kernels and memory
        work()
    times: dict[str, list[float]] = {name: [] for name in passes}
    for _ in range(given.rounds):
        for name, work in passes.items():
            times[name].append(seconds(given.device, work))
    print(f"{tokens:,} tokens, {layers + 1} layers × {width}, batches of {size:,} tokens")
    print(f"cutting texts into pieces: {cut:.2f} s; {len(chosen.names)} words chosen")
    forward = np.median(times["forward"])
    print("| pass | seconds | × forward | tokens/s |\n|---|---|---|---|")
    for name, found in times.items():
        middle = float(np.median(found))
        print(f"| {name} | {middle:.2f} | {middle / forward:.2f} | {tokens / middle:,.0f} |")
    print(f"most memory: {peak(given.device)}")


if __name__ == "__main__":
    main()
