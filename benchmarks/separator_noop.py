"""What separator-noop costs: ours against the passes of the obvious way, text by text.

The obvious way takes plain transformers (eager attention): for each text one pass with
`output_attentions` and its backward pass for the gradients, then one more pass for each cut: in
every layer and twice in the upper ones, of [SEP] and of words. The passes alone are timed, without
the cutting, so the ratio is a lower bound. Both sides are interleaved.

    python benchmarks/separator_noop.py [--sentences 32] [--model bertology-mini]
"""

from __future__ import annotations

import argparse
import time

import torch
import transformers as hf
from machine import describe

import bertology as bt
from bertology.model.encoder import Encoder
from bertology.studies.attention.separator_noop import SeparatorNoop
from bertology.studies.study import Context

_SIDES, _UPPER = 2, 2  # [SEP] and words; the upper layers together, scaled up and not


def obvious(encoder: Encoder, plain: hf.PreTrainedModel, text: str) -> None:
    """All passes for one text."""
    ids = encoder.tokenizer(text, return_tensors="pt")
    seen = plain(**ids, output_attentions=True)
    for map_ in seen.attentions:
        map_.retain_grad()
    seen.logits.float().log_softmax(-1)[0, 1, ids["input_ids"][0, 1]].neg().backward()
    with torch.no_grad():
        for _ in range(_SIDES * (encoder.shape.layers + _UPPER)):
            plain(**ids)


def main() -> None:
    """Time both, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=32)
    parser.add_argument("--model", default="bertology-mini")
    asked = parser.parse_args()
    encoder = bt.load(asked.model, device="cpu", head="mlm")
    plain = hf.AutoModelForMaskedLM.from_pretrained(
        encoder.model.config._name_or_path, attn_implementation="eager", dtype=torch.float32
    ).eval()
    corpus = bt.load_corpus("grammar", limit=asked.sentences)
    study, size = SeparatorNoop(), 16
    obvious(encoder, plain, corpus.examples[0].text)  # warm
    study.measure(encoder, corpus.take(2), "examples-000000-000002", Context())
    ours = theirs = 0.0
    for at in range(0, len(corpus), size):
        end = min(at + size, len(corpus))
        started = time.perf_counter()
        study.measure(encoder, corpus, f"examples-{at:06d}-{end:06d}", Context())
        ours += time.perf_counter() - started
        started = time.perf_counter()
        for example in corpus.examples[at:end]:
            obvious(encoder, plain, example.text)
        theirs += time.perf_counter() - started
    print(describe())
    print(f"| {len(corpus)} sentences | seconds | ratio |\n|---|---|---|")
    print(f"| passes of the obvious way, text by text | {theirs:.1f} | 1 |")
    print(f"| ours | {ours:.1f} | {theirs / ours:.1f} |")


if __name__ == "__main__":
    main()
