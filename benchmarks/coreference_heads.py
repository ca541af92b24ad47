"""Antecedents of all heads: ours against a plain eager pass, and against the obvious loop.

Documents of twelve sentences of the grammar, cut into windows of 128 tokens. (a) an eager forward
pass of transformers over the same batches; (b) the obvious loop: one window at a time, attention
kept, and for every mention and head the largest of the candidates' sums; (c) the whole `measure` of
the study: cutting, questions, baselines and one pass with the reducer. In turn, the best of three.

    python benchmarks/coreference_heads.py [--documents 40]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import torch
from machine import describe

import bertology as bt
from bertology.annotated.coreference import asked_batches, cut_documents
from bertology.annotated.words import word_batches
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.words.antecedents import mentions_of, questions_of
from bertology.model.encoder import Encoder
from bertology.studies.attention.coreference_heads import CoreferenceHeads
from bertology.studies.study import Context

SENTENCES = 12


def documents(count: int) -> Corpus:
    """Sentences of the grammar, several in a row; each keeps its own mentions."""
    corpus = bt.load_corpus("grammar", limit=SENTENCES * count)
    made = []
    for i in range(count):
        words, tags, clusters, starts, texts = [], [], [], [], []
        for example in corpus.examples[SENTENCES * i : SENTENCES * (i + 1)]:
            first = len(words)
            starts.append(first)
            words += example.get("words")
            tags += example.get("pos")
            clusters += [[(a + first, b + first) for a, b in c] for c in example.get("coreference")]
            texts.append(example.text)
        about = {"words": words, "pos": tags, "coreference": clusters, "sentences": starts}
        made.append(Example(str(i), " ".join(texts), annotations=about))
    fields = {Field.TEXT, Field.WORDS, Field.POS, Field.COREFERENCE, Field.SENTENCES}
    return replace(corpus, examples=made, fields=frozenset(fields), origin={})


@torch.inference_mode()
def eager(encoder: Encoder, corpus: Corpus) -> float:
    """Seconds of plain forward passes over the batches that are asked."""
    windows = cut_documents(encoder, corpus, 128, "auto")
    batches = [a.batch for a in asked_batches(encoder, windows, tokens_per_batch=4096)]
    model = encoder.model
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    started = time.perf_counter()
    for batch in batches:
        model(**batch.inputs)
    spent = time.perf_counter() - started
    model.set_attn_implementation(before)
    return spent


@torch.inference_mode()
def loop(encoder: Encoder, corpus: Corpus) -> tuple[float, float]:
    """Seconds of the obvious loop, and the sum of its hits."""
    model, hits = encoder.model, 0.0
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    started = time.perf_counter()
    for window in cut_documents(encoder, corpus, 128, "auto").corpus:
        questions = questions_of(mentions_of(window))
        if not questions:
            continue
        (read,) = word_batches(encoder, [window])
        alignment = read.examples[0].alignment
        maps = torch.stack(model(**read.batch.inputs, output_attentions=True).attentions)[:, 0]
        for question in questions:
            source = list(alignment.pieces_of(question.mention.head))
            heads = sorted({c.head for c in question.candidates})
            for layer in maps:
                for one in layer:
                    row = one[source].mean(0)
                    sums = [float(row[list(alignment.pieces_of(w))].sum()) for w in heads]
                    hits += heads[sums.index(max(sums))] in question.targets
    spent = time.perf_counter() - started
    model.set_attn_implementation(before)
    return spent, hits


def ours(encoder: Encoder, corpus: Corpus) -> tuple[float, float]:
    """Seconds of the study's own work, and the sum of hits among mentions."""
    study = CoreferenceHeads()
    started = time.perf_counter()
    parts = [
        study.measure(encoder, corpus, p, Context()) for p in study.parts(encoder.shape, corpus)
    ]
    spent = time.perf_counter() - started
    return spent, float(sum(p["hits"].to_numpy()[:, 0, 0].sum() for p in parts))


def main() -> None:
    """Time all three in turn, print the best of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=40)
    asked = parser.parse_args()
    encoder, corpus = bt.load(device="cpu"), documents(asked.documents)
    plain, looped, own = [], [], []
    for _ in range(3):
        plain.append(eager(encoder, corpus))
        own.append(ours(encoder, corpus))
        looped.append(loop(encoder, corpus))
    assert abs(own[0][1] - looped[0][1]) < 1e-3 * looped[0][1], (own[0], looped[0])
    a, b, c = min(plain), min(looped)[0], min(own)[0]
    print(describe())
    print(f"eager pass {a:.2f} s; obvious loop {b:.2f} s; ours {c:.2f} s")
    print(f"ours is {c / a:.2f} × the eager pass; the loop takes {b / c:.1f} × as long as ours")


if __name__ == "__main__":
    main()
