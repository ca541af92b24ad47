"""How long all relations of all heads take, beside a forward pass of the same model.

Usage: python benchmarks/syntax_heads.py CORPUS [--model NAME] [--sentences N] [--rounds 3]. The
study measures and concludes; the model alone is run over the same batches with the attention of
transformers that is called eager, as anybody would who wants to see weights. Both are timed by
turns in one process, one thread, in seconds of the processor, so that what else the machine does
matters little. CORPUS is a treebank (.conllu) or the name of a corpus.
"""

from __future__ import annotations

import argparse
import copy
import resource
import time
from collections.abc import Callable

import torch
from machine import describe

import bertology as bt
from bertology.data.corpus import Corpus
from bertology.model.encoder import Encoder
from bertology.results.provenance import Provenance
from bertology.studies.attention.syntax_heads import SyntaxHeads
from bertology.studies.study import Context


def seconds(work: Callable[[], object]) -> float:
    """Of the processor."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def forward(encoder: Encoder, corpus: Corpus) -> None:
    """The model alone, batch by batch, tokenization included."""
    model = copy.deepcopy(encoder.model)
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        for batch in encoder.batches(corpus.texts):
            model(**batch.inputs)


def main() -> None:
    """Print the ratio of each round and of all."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("corpus")
    arguments.add_argument("--model")
    arguments.add_argument("--sentences", type=int)
    arguments.add_argument("--rounds", type=int, default=3)
    asked = arguments.parse_args()
    torch.set_num_threads(1)
    encoder = bt.load(*([asked.model] if asked.model else []), device="cpu")
    corpus = bt.load_corpus(asked.corpus, limit=asked.sentences)
    study = SyntaxHeads(examples=len(corpus))
    model, data = ({"name": name, "fingerprint": "0"} for name in ("model", "corpus"))
    about = Provenance("syntax-heads", study.version, study.parameters, model, data)
    measured = {}

    def measure() -> None:
        for part in study.parts(encoder.shape, corpus):
            measured[part] = study.measure(encoder, corpus, part, Context())

    rows = []
    for _ in range(asked.rounds):
        alone = seconds(lambda: forward(encoder, corpus))
        rows.append((alone, seconds(measure), seconds(lambda: study.conclude(measured, about))))
    result = study.conclude(measured, about)
    links = result.tables["links"]
    words = int(result.tables["relations"].set_index("relation").loc["all", "links"])
    print(describe())
    print(
        f"{encoder.shape}; {len(corpus)} sentences, {words:,} words, "
        f"{links['relation'].nunique()} relations, {len(links):,} heads × relations × directions; "
        f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB.\n"
    )
    print("| eager pass, s | measuring, s | ratio | concluding, s | ratio with it |")
    print("|---|---|---|---|---|")
    for alone, pass_, rest in rows:
        both = (pass_ + rest) / alone
        print(f"| {alone:.1f} | {pass_:.1f} | **{pass_ / alone:.2f}** | {rest:.1f} | {both:.2f} |")


if __name__ == "__main__":
    main()
