"""Impact matrices: ours against a pair-by-pair loop, and against one batch for each word.

(a) one pass for each word and one for each ordered pair of words, text by text, in plain
transformers; (b) for each word one batch of all copies in which a second word is masked, as in the
authors' code. Sentences are those of the bundled grammar; all three are timed on each sentence or,
ours, on all together, interleaved, and must agree.

    python benchmarks/perturbed_masking.py [--sentences 12] [--model bertology-mini]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from machine import describe
from numpy.typing import NDArray

import bertology as bt
from bertology.annotated.trees.impact import word_impacts
from bertology.annotated.words import words_of
from bertology.data.words.piece_words import PieceWords
from bertology.model.encoder import Encoder


def states(encoder: Encoder, rows: list[list[int]], at: int) -> NDArray[np.float32]:
    """The last layer's states (B, M) at one place."""
    ids = torch.tensor(rows)
    with torch.no_grad():
        out = encoder.model.base_model(input_ids=ids, attention_mask=torch.ones_like(ids))
    found: NDArray[np.float32] = out.last_hidden_state[:, at].numpy()
    return found


def masked(encoder: Encoder, one: PieceWords, words: tuple[int, ...]) -> list[int]:
    ids = list(one.encoding.ids)
    for word in words:
        for piece in one.alignment.pieces_of(word):
            ids[piece] = encoder.tokenizer.mask_token_id
    return ids


def by_loop(encoder: Encoder, one: PieceWords, *, batched: bool) -> NDArray[np.float32]:
    n = len(one.alignment)
    found = np.zeros((n, n), np.float32)
    for i in range(n):
        at = one.alignment.pieces_of(i)[0]
        rows = [masked(encoder, one, (i, j)) for j in range(n)]
        if batched:
            seen = states(encoder, rows, at)
        else:
            seen = np.concatenate([states(encoder, [row], at) for row in rows])
        found[i] = np.linalg.norm(seen - seen[i], axis=1)
    return found


def main() -> None:
    """Time the three, compare them, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=12)
    parser.add_argument("--model", default="bertology-mini")
    asked = parser.parse_args()
    encoder = bt.load(asked.model, device="cpu", head="mlm")
    corpus = bt.load_corpus("grammar", limit=asked.sentences)
    examples = words_of(encoder, corpus)
    spent = {"(a) pair by pair": 0.0, "(b) a batch for each word": 0.0, "ours": 0.0}
    word_impacts(encoder, [(examples[0], range(len(examples[0].alignment)))])  # warm
    farthest = 0.0
    groups = [examples[at : at + 4] for at in range(0, len(examples), 4)]
    for group in groups:
        started = time.perf_counter()
        ours = word_impacts(encoder, [(one, range(len(one.alignment))) for one in group])
        spent["ours"] += time.perf_counter() - started
        for one, own in zip(group, ours, strict=True):
            n = len(one.alignment)
            for name, batched in (("(a) pair by pair", False), ("(b) a batch for each word", True)):
                started = time.perf_counter()
                loop = by_loop(encoder, one, batched=batched)
                spent[name] += time.perf_counter() - started
                farthest = max(farthest, float(np.abs(loop - own[-1, :n, :n]).max()))
    words = [len(one.alignment) for one in examples]
    print(describe())
    print(f"{asked.model}, {len(examples)} sentences of {np.mean(words):.1f} words; largest")
    print(f"difference of an impact: {farthest:.1e}\n\n| | seconds | ratio |\n|---|---|---|")
    for name, seconds in spent.items():
        print(f"| {name} | {seconds:.1f} | {spent['(a) pair by pair'] / seconds:.1f} |")


if __name__ == "__main__":
    main()
