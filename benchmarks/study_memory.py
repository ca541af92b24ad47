"""What each study of attention holds in memory, for few examples and for many.

Usage: python benchmarks/study_memory.py [--examples 250] [--times 8] [--studies map-types …]. Each
figure comes from a process of its own, because a process never gives memory back. The model has
12 × 12 heads and little else, so that what is seen is the study and not the weights.

A study may keep numbers of each example for its statistics, never its maps. `kept` is the size of
these, as they lie in the store before the conclusion; the corpus, which is in memory whole,
has a row of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import transformers
from machine import describe

from bertology.data.loading import load_corpus
from bertology.model.encoder import Encoder
from bertology.results.store import Store
from bertology.run.session import Session
from bertology.studies import STUDIES

SENTENCES, TASK = "grammar", "grammar-entailment"
CORPUS = "the corpus alone"
# study -> corpus, and parameters in which "N" stands for the number of examples
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    CORPUS: (SENTENCES, {}),
    "attention-maps": (SENTENCES, {}),
    "map-types": (SENTENCES, {"examples": "N"}),
    "head-taxonomy": (SENTENCES, {"examples": "N"}),
    "coreference-heads": (SENTENCES, {"examples": "N"}),
    "relation-heads": (SENTENCES, {"every": False}),
    "attention-change": (SENTENCES, {"examples": "N", "before": "BEFORE"}),
    "token-classes": (SENTENCES, {"examples": "N", "other": "BEFORE"}),
    "syntax-heads": (SENTENCES, {"examples": "N"}),
    "cls-attention": (SENTENCES, {"examples": "N"}),
    "attention-trees": (SENTENCES, {"examples": "N"}),
    "head-ablation": (TASK, {}),
    "head-sets": (TASK, {"sizes": (1, 4, 12), "sets": 10}),
    "fine-tuning-starts": (TASK, {"examples": "N", "seeds": 1, "epochs": 1}),
}
MIB = 2**20


def peak() -> float:
    """The most memory that this process has had, in MiB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / MIB if sys.platform == "darwin" else most / 1024


def model(head: str, *, seed: int) -> Encoder:
    """12 × 12 heads of four numbers each, and the tokenizer of the bundled model."""
    tokenizer = Encoder.load("bertology-mini").tokenizer
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=48, intermediate_size=96, num_labels=2
    )
    kind = transformers.BertForSequenceClassification
    whole = (kind if head == "classification" else transformers.BertModel)(config)
    return Encoder(whole.eval(), tokenizer, head=head)


class Watched(Store):
    """A store that knows how much parts of work took before they were forgotten."""

    kept = 0

    def delete_parts(self, of: Any) -> None:
        """Count, then forget."""
        self.kept = sum(self.load_part(of, part).nbytes for part in self.parts(of))
        super().delete_parts(of)


def measure(name: str, examples: int) -> dict[str, float]:
    """Run one study, and say what memory it took until the measuring was done, and in all."""
    data, parameters = ASKED[name]
    corpus = load_corpus(data, limit=examples)
    if name == CORPUS:
        _ = model("base", seed=0), corpus.fingerprint
        return {"measured": peak(), "all": peak(), "kept": 0.0}
    kind = STUDIES.get(name)
    others = {n: model("base", seed=1) for n, v in parameters.items() if v == "BEFORE"}
    filled = {n: examples if v == "N" else v for n, v in parameters.items()}
    before: dict[str, float] = {}
    conclude = kind.conclude

    def noted(*given: Any) -> Any:
        before["measured"] = peak()
        return conclude(*given)

    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(kind, "conclude", noted),
    ):
        store = Watched(Path(folder) / "store")
        encoder = model(kind.needs.head, seed=0)
        Session(store).run(name, kind(**filled), encoder, corpus, others=others)
    return {**before, "all": peak(), "kept": store.kept / examples}


def main() -> None:
    """Few and many examples, for each study."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--examples", type=int, default=250)
    arguments.add_argument("--times", type=int, default=8)
    arguments.add_argument("--studies", nargs="+", default=list(ASKED), choices=list(ASKED))
    arguments.add_argument("--measure")
    given = arguments.parse_args()
    torch.set_num_threads(1)
    if given.measure:
        print(json.dumps(measure(given.measure, given.examples)))
        return
    few, many = given.examples, given.times * given.examples
    print(describe(), "\n")
    print(
        f"| study | kept, KiB an example | peak, {few} examples, MiB | {many:,} examples | "
        "growth while measuring | growth in all, KiB an example |\n|---|---|---|---|---|---|"
    )
    for name in given.studies:
        found = []
        for n in (few, many):
            command = [sys.executable, __file__, "--measure", name, "--examples", str(n)]
            done = subprocess.run(command, capture_output=True, check=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
        first, last = found
        grown = {k: 1024 * (last[k] - first[k]) / (many - few) for k in ("measured", "all")}
        print(
            f"| {name} | {last['kept'] / 1024:.1f} | {first['all']:.0f} | {last['all']:.0f} | "
            f"{grown['measured']:.1f} | {grown['all']:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
