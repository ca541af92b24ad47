"""Train the bundled tagger: linear probes on one layer of bertology-mini, from UD English EWT.

Usage: python benchmarks/train_tagger.py --data FOLDER [--layers 3 5 7] [--sentences 6000] [--to …]
FOLDER holds ud/UD_English-EWT and ud/UD_English-PUD. Of several layers, the one with the best
tags on the validation split is kept. Run it again whenever bertology-mini's weights change.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

import bertology as bt
from bertology.annotated.tagger import (
    BUNDLED,
    OBJECT,
    RECORD,
    ROLES,
    SUBJECT,
    WEIGHTS,
    ProbeTagger,
    word_states,
)  # fmt: skip
from bertology.data.corpus import Corpus
from bertology.results.provenance import library_versions
from bertology.stats import bootstrap_weights, percentile_interval

TAGS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
    "PUNCT", "SCONJ", "SYM", "VERB", "X",
)  # fmt: skip
LICENCE = "CC BY-SA 4.0 (trained on UD English EWT, Silveira et al. 2014)"
HELD_OUT = (("ud-ewt", "validation"), ("ud-ewt", "test"), ("ud-pud", "test"))


def roles(relations: list[str]) -> list[str]:
    named = {"nsubj": SUBJECT, "obj": OBJECT}
    return [named.get(r.partition(":")[0], "") for r in relations]


def gold(corpus: Corpus) -> tuple[list[list[str]], list[list[str]], list[list[str]]]:
    """Words, tags and roles of each sentence; `_` is no tag."""
    return (
        [e.get("words") for e in corpus],
        [[t if t in TAGS else "X" for t in e.get("pos")] for e in corpus],
        [roles(e.get("relations")) for e in corpus],
    )


def fit(x: Tensor, y: Tensor, classes: int, *, decay: float = 1e-4) -> tuple[Tensor, Tensor]:
    """Multinomial logistic regression on standardised features, which are folded in afterwards."""
    mean, spread = x.mean(0), x.std(0).clamp_min(1e-6)
    z = (x - mean) / spread
    weight = torch.zeros(classes, x.shape[1], requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    solver = torch.optim.LBFGS([weight, bias], max_iter=120, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        solver.zero_grad()
        value = torch.nn.functional.cross_entropy(z @ weight.T + bias, y)
        value = value + decay * weight.square().sum()
        value.backward()
        return value

    solver.step(loss)
    with torch.no_grad():
        folded = weight / spread
        return folded.contiguous(), (bias - folded @ mean).contiguous()


def train(encoder: Any, corpus: Corpus, layer: int) -> tuple[dict[str, Tensor], int]:
    words, tags, role = gold(corpus)
    x = torch.cat(word_states(encoder, words, layer))
    pos = torch.tensor([TAGS.index(t) for s in tags for t in s])
    part = torch.tensor([ROLES.index(r) for s in role for r in s])
    weights = {}
    for name, y, classes in (("pos", pos, len(TAGS)), ("role", part, len(ROLES))):
        weights[f"{name}.weight"], weights[f"{name}.bias"] = fit(x, y, classes)
    return weights, len(x)


class MostFrequent:
    """The tag and the role that a word had most often in training; the commonest, if unseen."""

    def __init__(self, corpus: Corpus) -> None:
        words, tags, role = gold(corpus)
        self.tables = []
        for labels in (tags, role):
            seen: dict[str, Counter[str]] = defaultdict(Counter)
            for sentence, answers in zip(words, labels, strict=True):
                for word, answer in zip(sentence, answers, strict=True):
                    seen[word.lower()][answer] += 1
            # What is new is most often what is rare: a noun.
            once = Counter(c.most_common(1)[0][0] for c in seen.values() if c.total() == 1)
            table = {w: c.most_common(1)[0][0] for w, c in seen.items()}
            self.tables.append((table, once.most_common(1)[0][0]))

    def answers(self, sentences: list[list[str]], which: int) -> list[list[str]]:
        table, unseen = self.tables[which]
        return [[table.get(w.lower(), unseen) for w in s] for s in sentences]


def ratio(top: list[float], bottom: list[float]) -> dict[str, float]:
    """A ratio of sums over sentences with a bootstrap interval over sentences."""
    both = np.stack([top, bottom])
    drawn = bootstrap_weights(both.shape[1], 1000) @ both.T
    low, high = percentile_interval(drawn[:, 0] / np.maximum(drawn[:, 1], 1e-9))
    value = both[0].sum() / max(both[1].sum(), 1e-9)
    return {k: round(float(v), 4) for k, v in (("value", value), ("low", low), ("high", high))}


def accuracy(said: list[list[str]], true: list[list[str]]) -> dict[str, float]:
    right = [
        sum(a == b for a, b in zip(s, t, strict=True)) for s, t in zip(said, true, strict=True)
    ]
    return ratio(right, [len(t) for t in true])


def f1(said: list[list[str]], true: list[list[str]], label: str) -> dict[str, float]:
    both = [
        sum(a == b == label for a, b in zip(*st, strict=True))
        for st in zip(said, true, strict=True)
    ]
    either = [s.count(label) + t.count(label) for s, t in zip(said, true, strict=True)]
    return ratio([2.0 * b for b in both], either)


def scores(tagger: ProbeTagger, baseline: MostFrequent, corpus: Corpus) -> dict[str, Any]:
    words, tags, role = gold(corpus)
    said = tagger.tag(words)
    pos, part = [list(t.pos) for t in said], [list(t.roles) for t in said]
    found: dict[str, Any] = {
        "sentences": len(words),
        "words": sum(map(len, words)),
        "pos_accuracy": accuracy(pos, tags),
        "pos_accuracy_of_most_frequent_tag": accuracy(baseline.answers(words, 0), tags),
    }
    plain = baseline.answers(words, 1)
    for label in (SUBJECT, OBJECT):
        found[f"{label}_f1"] = f1(part, role, label)
        found[f"{label}_f1_of_most_frequent_role"] = f1(plain, role, label)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", required=True)
    options.add_argument("--model", default="bertology-mini")
    options.add_argument("--layers", type=int, nargs="+", default=[4, 5, 6])
    options.add_argument("--sentences", type=int, default=6000)
    options.add_argument("--choose-on", type=int, default=1500, help="sentences to pick a layer on")
    options.add_argument("--to", type=Path, default=BUNDLED)
    given = options.parse_args()
    encoder = bt.load(given.model, device="cpu")
    whole = bt.load_corpus("ud-ewt", split="train", root=given.data)
    corpus = whole.take(given.sentences)
    held = {(n, s): bt.load_corpus(n, split=s, root=given.data) for n, s in HELD_OUT}
    given.to.mkdir(parents=True, exist_ok=True)
    small = corpus.take(given.choose_on, seed=1)
    tried = {}
    for layer in given.layers if len(given.layers) > 1 else ():
        weights, _ = train(encoder, small, layer)
        tagger = write(given, encoder, weights, {"layer": layer})
        words, tags, _roles = gold(held["ud-ewt", "validation"].take(500))
        tried[layer] = accuracy([list(t.pos) for t in tagger.tag(words)], tags)["value"]
        print("layer", layer, tried[layer], flush=True)
    layer = max(tried, key=lambda one: tried[one]) if tried else given.layers[0]
    weights, count = train(encoder, corpus, layer)
    data = {"name": "ud-ewt", "split": "train", "sentences": len(corpus), "words": count}
    about = {"layer": layer, "licence": LICENCE, "data": data, "tried_layers": tried}
    tagger = write(given, encoder, weights, about)
    baseline = MostFrequent(whole)
    about["scores"] = {f"{n} {s}": scores(tagger, baseline, c) for (n, s), c in held.items()}
    about["versions"] = library_versions()
    write(given, encoder, weights, about)
    print(json.dumps(about["scores"], indent=1))


def write(
    given: argparse.Namespace, encoder: Any, weights: dict[str, Tensor], about: dict[str, Any]
) -> ProbeTagger:
    record = {"schema": 1, "model": given.model, "fingerprint": encoder.fingerprint}
    record |= {"tags": list(TAGS), "roles": list(ROLES), **about}
    save_file(weights, given.to / WEIGHTS)
    (given.to / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return ProbeTagger(given.to, encoder)


if __name__ == "__main__":
    main()
