"""What language-space costs beside one plain pass over the same texts.

Usage: python benchmarks/language_space.py MODEL [--root DATA] [--corpus pud] [--languages de,en …]
           [--limit N] [--plain N]

Processor time of one thread is counted, so that other work on the machine does not matter much:
(1) a plain pass of N items of each language, as many texts a second as all would have; (2) the
study's part of the model; (3) its copies with shuffled weights, which read fewer items however many
there are; and (4) retrieval by one matrix product of all texts with all.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from machine import describe

from bertology.data.loading import load_corpus
from bertology.model.encoder import Encoder
from bertology.studies.languages.language_space import LanguageSpace
from bertology.studies.study import Context


def seconds(do: Callable[[], object]) -> float:
    """Of processor time."""
    begun = time.process_time()
    do()
    return time.process_time() - begun


def main() -> None:
    """Print a row for each piece of work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--root")
    parser.add_argument("--corpus", default="pud")
    parser.add_argument("--languages")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--plain", type=int, default=50, help="items of the plain pass")
    given = parser.parse_args()
    torch.set_num_threads(1)
    corpus = load_corpus(
        given.corpus, root=given.root, languages=given.languages, limit=given.limit
    )
    encoder, study = Encoder.load(given.model, device="cpu"), LanguageSpace()
    some = corpus.take(given.plain)

    def plain() -> None:
        for batch in encoder.batches(some):
            encoder.run(batch)

    passed = seconds(plain) * len(corpus) / len(some)
    vectors = np.random.default_rng(0).random((len(corpus), encoder.shape.hidden), np.float32)
    product = seconds(lambda: (vectors @ vectors.T).argmax(axis=1))
    parts = {
        part: seconds(lambda part=part: study.measure(encoder, corpus, part, Context()))
        for part in study.parts(encoder.shape, corpus)
    }
    own = parts.pop("model")
    copies = sum(parts.values())
    print(f"{describe()}\n{len(corpus)} texts, {len(parts)} copies of {study.copy_items} items")
    for name, value in {
        "plain pass": passed,
        "one matrix product": product,
        "the study's part of the model": own,
        "copies": copies,
        "study / (pass + product)": (own + copies) / (passed + product),
        "part of the model / (pass + product)": own / (passed + product),
    }.items():
        print(f"| {name} | {value:.2f} |")


if __name__ == "__main__":
    main()
