"""What the random draws of outlier-dimensions cost: ours against a reload and a pass per draw.

The obvious way loads the model from its folder for every draw, zeroes the entries in place, and
runs the texts in the same padded batches; plain transformers, logits at all positions. Ours keeps
one model, swaps the LayerNorms for a run, and computes words at the hidden places only. Both sides
disable the same sets over the same texts with the same words hidden; they are interleaved, and
their losses are compared.

    python benchmarks/outlier_dimensions.py [--sentences 32] [--draws 20] [--model bertology-mini]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
import transformers as hf
from machine import describe

import bertology as bt
from bertology.annotated.plain_classes import plain_classes
from bertology.model.encoder import Encoder
from bertology.model.masked_lm.hidden_words import HiddenWords, draw_hidden
from bertology.model.outliers import weight_outliers
from bertology.model.weight_edits import ZeroLastOperation
from bertology.studies.geometry.outlier_dimensions.questions import DRAW, dimension_sets


def obvious(folder: str, words: list[HiddenWords], dimensions: tuple[int, ...]) -> float:
    """A fresh copy of the model with zeroed entries, over all texts."""
    model = hf.AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    losses = []
    with torch.no_grad():
        for layer in model.base_model.encoder.layer:
            for parameter in layer.output.LayerNorm.parameters():
                parameter[list(dimensions)] = 0
        for one in words:
            logits = model(**one._masked.inputs).logits
            rows = torch.arange(len(logits))[:, None]
            losses.append(one._losses(logits[rows, one._places]).numpy())
    return float(np.nanmean(np.concatenate(losses)))


def ours(words: list[HiddenWords], dimensions: tuple[int, ...]) -> float:
    """The same model with other LayerNorms for each run."""
    edit = ZeroLastOperation(dimensions)
    return float(np.nanmean(np.concatenate([one.predict(edit).losses for one in words])))


def hidden_words(encoder: Encoder, texts: list[str]) -> list[HiddenWords]:
    """All texts in batches, some words of each hidden."""
    found = []
    for batch in encoder.batches(texts):
        kinds = plain_classes(encoder, batch)[:, -1]
        hidden = draw_hidden(kinds, list(batch.indices), share=0.15, seed=0)
        found.append(HiddenWords(encoder, batch, *hidden))
    return found


def main() -> None:
    """Time both, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=32)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--model", default="bertology-mini")
    asked = parser.parse_args()
    encoder = bt.load(asked.model, device="cpu", head="mlm")
    folder = str(encoder.model.config._name_or_path)
    words = hidden_words(encoder, list(bt.load_corpus("grammar", limit=asked.sentences).texts))
    found = weight_outliers(encoder)
    assert found is not None
    sets = dimension_sets(
        found.in_most_layers() or [0], encoder.shape.hidden, draws=asked.draws, seed=0
    )
    spent, farthest = np.zeros(2), 0.0
    for one in [s for s in sets if s.kind == DRAW]:
        started = time.perf_counter()
        theirs = obvious(folder, words, one.dimensions)
        between = time.perf_counter()
        mine = ours(words, one.dimensions)
        spent += between - started, time.perf_counter() - between
        farthest = max(farthest, abs(theirs - mine))
    print(describe())
    print(f"| {asked.draws} draws, {asked.sentences} sentences | seconds | ratio |\n|---|---|---|")
    print(f"| reload and a pass for each draw | {spent[0]:.1f} | 1 |")
    print(f"| ours | {spent[1]:.1f} | {spent[0] / spent[1]:.1f} |")
    print(f"largest difference of two losses: {farthest:.1e} nats")


if __name__ == "__main__":
    main()
