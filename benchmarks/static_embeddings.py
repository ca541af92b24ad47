"""How fast are static vectors distilled, beside the plain forward pass and the obvious loop?

    python benchmarks/static_embeddings.py --texts 400 --device cpu

All in one run on the same texts: the forward pass of transformers over the same batches (tokenised
there too, nothing kept), `distil-static` for one layer and for all, its first components, and the
obvious loop, which takes all states of one text after the other to the CPU and adds up occurrence
by occurrence. Ratios are of tokens per second.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from machine import describe

import bertology as bt
from bertology.annotated.word_contexts import plain_words
from bertology.data.corpus import Corpus, Example
from bertology.model.encoder import Encoder
from bertology.run.distilling import _tokens


def read(name: str, split: str, count: int, root: str | None) -> Corpus:
    """So many texts; a small corpus is repeated."""
    given = bt.load_corpus(name, split=split, root=root)
    texts = [given[at % len(given)].text for at in range(count)]
    return Corpus.of_texts(texts, name=given.name)


def forward(encoder: Encoder, corpus: Corpus) -> int:
    """Only what any use of the model needs; the number of tokens."""
    tokens = 0
    with torch.inference_mode():
        for batch in encoder.batches(corpus.texts, tokens_per_batch=_tokens(encoder)):
            encoder.base(**batch.inputs, output_hidden_states=True)
            tokens += int(batch.real.sum())
    if encoder.device.type == "cuda":
        torch.cuda.synchronize()
    return tokens


def loop(encoder: Encoder, corpus: Corpus, layers: range) -> None:
    """One text after the other, one occurrence after the other, on the CPU."""
    sums: dict[tuple[int, str], np.ndarray] = {}
    counts: dict[str, int] = {}
    with torch.inference_mode():
        for one in corpus:
            given = encoder.tokenizer(
                one.text, return_tensors="pt", return_offsets_mapping=True, truncation=True
            )
            offsets = given.pop("offset_mapping")[0].tolist()
            found = encoder.base(**given.to(encoder.device), output_hidden_states=True)
            states = [found.hidden_states[layer].cpu().numpy()[0] for layer in layers]
            for start, end in plain_words(Example("", one.text))[0]:
                own = [i for i, (a, b) in enumerate(offsets) if a < b and start <= a < end]
                if not own:
                    continue
                word = one.text[start:end].lower()
                counts[word] = counts.get(word, 0) + 1
                for layer, of in zip(layers, states, strict=True):
                    before = sums.get((layer, word), 0.0)
                    sums[layer, word] = before + of[own].mean(axis=0).astype(np.float64)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="bertology-mini")
    parser.add_argument("--corpus", default="wikitext-2")
    parser.add_argument("--split", default="validation")
    parser.add_argument("--root")
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--loop-texts", type=int, default=0, help="0: as many")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    encoder = bt.load(given.model, device=given.device)
    corpus = read(given.corpus, given.split, given.texts, given.root)
    some = corpus[: given.loop_texts or len(corpus)]
    tokens = forward(encoder, corpus)  # also warms up
    few = forward(encoder, some)
    every = range(encoder.shape.layers + 1)
    rows: dict[str, list[float]] = {}
    with TemporaryDirectory() as folder:
        to = Path(folder) / "vectors.txt"

        def distil(**how: object) -> None:
            bt.distil_static(encoder, corpus, to, force=True, progress=False, **how)

        work: dict[str, tuple[int, Callable[[], object]]] = {
            "forward pass": (tokens, lambda: forward(encoder, corpus)),
            "distil-static, one layer": (tokens, distil),
            "distil-static, all layers": (tokens, lambda: distil(layers="all")),
            "distil-static, first component, one layer, 3 iterations": (
                tokens,
                lambda: distil(method="component"),
            ),
            "obvious loop, one layer": (few, lambda: loop(encoder, some, every[4:5])),
            "obvious loop, all layers": (few, lambda: loop(encoder, some, every)),
        }
        for _ in range(given.repeats):
            for name, (count, do) in work.items():
                rows.setdefault(name, []).append(count / timed(do))
    base = np.median(rows["forward pass"])
    print(f"{describe()}; {given.model}, {tokens:,} tokens, median of {given.repeats}")
    print("| | tokens/s | of the forward pass |\n|---|---|---|")
    for name, each in rows.items():
        print(f"| {name} | {np.median(each):,.0f} | {np.median(each) / base:.2f} |")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"Largest memory: {memory:,.0f} MB")


if __name__ == "__main__":
    main()
