"""Clozes: pseudo-log-likelihoods against a sentence-by-sentence loop, and passes for facts.

(a) Minimal pairs (BLiMP where it is at hand, else the bundled grammar's): every token masked in
turn, ours against one plain pass of transformers for each masked copy of a sentence, and against
one batch for each sentence; interleaved, by CPU time and by the clock, and they
must agree to 1e-4. (b) Made facts in several
wordings with candidates and a prior: masked texts that were computed, against the distinct ones
that are needed, counted by a plain set; and, where LAMA is at hand, facts of T-REx in all their
prompts. (c) Memory while more and more questions are asked.

    python benchmarks/clozes.py [--pairs 300] [--facts 2000] [--prompted 100]
        [--model bertology-mini] [--root DIR]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from itertools import product

import numpy as np
import torch
from machine import describe
from numpy.typing import NDArray

import bertology as bt
from bertology.errors import BertologyError
from bertology.model.encoder import Encoder
from bertology.model.masked_lm.clozes import Clozes
from bertology.model.masked_lm.questions import Question
from bertology.studies.cloze.facts.asked import texts_of

WORDINGS = [
    "{} was born in {{mask}}.", "{} comes from {{mask}}.", "{} lives in the city of {{mask}}.",
    "{}, a native of {{mask}}.", "The home of {} is {{mask}}.",
]  # fmt: skip
CITIES = ("Paris", "London", "Rome", "Berlin", "New York", "Amsterdam", "San Francisco")


def by_sentence(encoder: Encoder, text: str, *, batched: bool) -> float:
    """transformers alone: a pass for each token, or one batch of them."""
    tokens = encoder.tokenizer(text)
    ids, words = tokens["input_ids"], tokens.word_ids()
    rows, places = [], []
    for p in range(1, len(ids) - 1):
        end = max(q for q in range(p, len(ids) - 1) if words[q] == words[p])
        masks = [encoder.tokenizer.mask_token_id] * (end - p + 1)
        rows.append([*ids[:p], *masks, *ids[end + 1 :]])
        places.append(p)
    total = 0.0
    with torch.no_grad():
        for some in [range(len(rows))] if batched else [[i] for i in range(len(rows))]:
            given = torch.tensor([rows[i] for i in some])
            logits = encoder.model(input_ids=given, attention_mask=torch.ones_like(given)).logits
            for row, i in enumerate(some):
                scores = torch.log_softmax(logits[row, places[i]], -1)
                total += float(scores[ids[places[i]]])
    return total


def now() -> NDArray[np.float64]:
    return np.array([time.process_time(), time.perf_counter()])


def pairs(encoder: Encoder, asked: argparse.Namespace) -> None:
    try:
        corpus = bt.load_corpus("blimp", limit=asked.pairs, root=asked.root)
    except BertologyError:
        corpus = bt.load_corpus("grammar-agreement", limit=asked.pairs)
    texts = [t for e in corpus for t in (e.text, str(e.get("contrast")))]
    ways = ("a pass for each masked token", "a batch for each sentence", "ours")
    spent = {way: np.zeros(2) for way in ways}  # seconds of CPU, and by the clock
    bt.pseudo_log_likelihood(encoder, texts[:4])  # warm
    farthest = 0.0
    for at in range(0, len(texts), 200):
        some = texts[at : at + 200]
        begun = now()
        ours = [s.total for s in bt.pseudo_log_likelihood(encoder, some)]
        spent["ours"] += now() - begun
        for name, batched in zip(list(spent)[:2], (False, True), strict=True):
            begun = now()
            plain = [by_sentence(encoder, text, batched=batched) for text in some]
            spent[name] += now() - begun
            farthest = max(farthest, float(np.abs(np.subtract(plain, ours)).max()))
    print(f"{len(corpus)} pairs of {corpus.name}; largest difference of a score {farthest:.1e}\n")
    print("| | seconds of CPU | ratio | by the clock | ratio |\n|---|---|---|---|---|")
    for name, seconds in spent.items():
        cpu, clock = seconds / spent["ours"]
        print(f"| {name} | {seconds[0]:.1f} | {cpu:.1f} | {seconds[1]:.1f} | {clock:.1f} |")


def facts(count: int) -> Iterator[Question]:
    """Made people in all wordings; each name is asked about twice, as in tables of facts."""
    for i in range(count):
        name = f"person number {i // 2}"
        for wording in WORDINGS:
            yield Question(wording.format(name), CITIES, subject=name)


def needed(encoder: Encoder, questions: Iterator[Question]) -> int:
    """Distinct masked texts, counted plainly: what is before, inside and after the blank."""
    mask, seen = encoder.tokenizer.mask_token, set()
    spelled = {c: encoder.tokenizer(c, add_special_tokens=False)["input_ids"] for c in CITIES}
    for question in questions:
        for subject, city in product((question.subject, mask), CITIES):
            text = question.text.replace(str(question.subject), str(subject))
            for n in range(len(spelled[city])):
                seen.add((text, tuple(spelled[city][:n]), len(spelled[city])))
    return len(seen)


def prompted(encoder: Encoder, asked: argparse.Namespace) -> None:
    """Facts of T-REx in manual, mined and paraphrased prompts: passes by distinct texts."""
    try:
        corpus = bt.load_corpus(
            "lama-trex-prompts", split="test", limit=asked.prompted, root=asked.root
        )
    except BertologyError:
        return
    texts = [text for example in corpus for text in texts_of(example, 100)]
    word = encoder.tokenizer.convert_tokens_to_ids("the")
    done = [0]
    engine = Clozes(encoder).answers(
        (Question(text, answers=(word,), blank=0) for text in texts),
        progress=lambda n, _: done.append(n),
    )
    count = sum(1 for _ in engine)
    least = len(set(texts))
    print(
        f"\n{len(corpus)} facts of {corpus.name} in all prompts: {count} questions, "
        f"{done[-1]} masked texts computed, {least} distinct ({done[-1] / least:.3f} ×)"
    )


def main() -> None:
    """Time, count, and look at the memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--facts", type=int, default=2000)
    parser.add_argument("--prompted", type=int, default=100)
    parser.add_argument("--model", default="bertology-mini")
    parser.add_argument("--root")
    asked = parser.parse_args()
    encoder = bt.load(asked.model, device="cpu", head="mlm")
    print(f"{describe()}\n{asked.model}")
    pairs(encoder, asked)
    prompted(encoder, asked)
    engine = Clozes(encoder, prior="{mask}")
    for count in (asked.facts // 4, asked.facts // 2, asked.facts):
        done = [0]
        for _ in engine.answers(facts(count), progress=lambda n, _, done=done: done.append(n)):
            pass
        least, most = needed(encoder, facts(count)), resource.getrusage(resource.RUSAGE_SELF)
        print(
            f"\n{count} facts × {len(WORDINGS)} wordings × {len(CITIES)} candidates, with priors: "
            f"{done[-1]} masked texts computed, {least} distinct ({done[-1] / least:.3f} ×); "
            f"{most.ru_maxrss / 1024:.0f} MB at most"
        )


if __name__ == "__main__":
    main()
