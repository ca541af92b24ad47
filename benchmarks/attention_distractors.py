"""Attention past distractors: the study's pass, against a plain eager pass, and a plain loop.

The study's pass takes the share of the right noun for all heads while the model runs, batched by
length. (a) is the same forward passes in plain transformers, eager, with `output_attentions`,
looking at nothing: the least that any way costs. (b) is the obvious loop: one sentence at a time,
maps kept, shares read off for each head. All three are interleaved over the same sentences.

    python benchmarks/attention_distractors.py [--model bertology-mini] [--sentences 300]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from machine import describe

import bertology as bt
from bertology.annotated.dependencies import candidates_of
from bertology.annotated.words import word_batches
from bertology.data.words.dependencies import dependency_of
from bertology.model.encoder import Encoder
from bertology.model.reducers.candidate_attention import CandidateAttention


def main() -> None:
    """Time all three, compare numbers, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="bertology-mini")
    parser.add_argument("--sentences", type=int, default=300)
    asked = parser.parse_args()
    encoder = Encoder.load(asked.model, device="cpu")
    plain = Encoder.load(asked.model, device="cpu").model
    plain.set_attn_implementation("eager")
    corpus = bt.load_corpus("grammar-agreement", limit=asked.sentences, seed=0)
    known = [dependency_of(example) for example in corpus]
    ours = eager = loop = off = 0.0
    for read in word_batches(encoder, corpus, tokens_per_batch=1024):
        rows, candidates = [], []
        for row, i in enumerate(read.batch.indices):
            one = known[i]
            found = None if one is None else candidates_of(read, row, one)
            if found is not None and len(found.choices) > 1:
                rows.append(row)
                candidates.append(found)
        batch = read.batch.only(rows)
        started = time.perf_counter()
        reducer = CandidateAttention(batch, candidates)
        encoder.run(batch, reduce={"layer.*.head.*.pattern": reducer})
        shares = reducer.value().of_heads
        ours += time.perf_counter() - started
        started = time.perf_counter()
        with torch.inference_mode():
            plain(**batch.inputs, output_attentions=True)
        eager += time.perf_counter() - started
        for row, one in enumerate(candidates):
            started = time.perf_counter()
            length = int(batch.real[row].sum())
            inputs = {n: t[row : row + 1, :length] for n, t in batch.inputs.items()}
            with torch.inference_mode():
                maps = torch.stack(plain(**inputs, output_attentions=True).attentions)[:, 0]
            given = maps[:, :, list(one.word)].mean(2)
            each = torch.stack([given[..., list(p)].sum(-1) for p in one.choices])
            share = (each[0] / each.sum(0)).numpy()
            loop += time.perf_counter() - started
            some = each.sum(0).numpy() > 1e-6  # of a head that gives them nothing, nothing is known
            off = max(off, float(np.abs(share - shares[row])[some].max()))
    assert off < 1e-4, off
    print(describe())
    print(f"{asked.model}, {asked.sentences} sentences; largest difference {off:.1e}\n")
    print("| | seconds | ratio |\n|---|---|---|")
    print(f"| (a) eager pass, nothing read | {eager:.2f} | 1 |")
    print(f"| ours | {ours:.2f} | **{ours / eager:.2f}** × (a) |")
    print(f"| (b) loop over sentences | {loop:.2f} | ours is **{loop / ours:.1f}** × faster |")


if __name__ == "__main__":
    main()
