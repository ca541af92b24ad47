"""Probes of all layers: speed against a loop of separate probes, equality, memory, disk.

    python benchmarks/probes.py PART --ud FOLDER [--words 100000] [--layers 0 4 8 12] [--pairs 8]

FOLDER holds the CoNLL-U files of UD English EWT; dev and train are read until there are so many
words. Parts:

- `states`: all states computed and written, against one plain forward pass over the same batches;
  bytes for each layer, dimension and word.
- `loop`: six tasks × layers × three seeds, with control tasks and codes, all together; against the
  obvious way, one torch Linear with Adam for each layer, task, seed, penalty and control task, in
  batches of 256, the rate halved when held-out examples get no better, which may happen four times.
  That way is timed on `--pairs` pairs of layer and task, drawn evenly, with all penalties; the
  others are taken to be like them. Times are seconds of the processor, so that other work on the
  machine does not count.
- `sklearn`: three tasks × four layers against LogisticRegression with the same penalties.
- `memory`: the peak of a fresh process with a fifth of the words, and with all.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import describe

from bertology.annotated.probe_questions import ProbeQuestions, Question, questions_of
from bertology.annotated.probed_tasks import PROBED
from bertology.annotated.states import States, word_states
from bertology.annotated.words import word_batches
from bertology.data.corpus import Corpus
from bertology.data.readers.conllu import read
from bertology.model.encoder import Encoder
from bertology.train.probes.battery import probed
from bertology.train.probes.penalties import DECAYS, PRECISIONS
from bertology.train.probes.streams import StateStream

TASKS = ("pos", "tags", "relation", "parent", "grandparent", "great-grandparent")
SEEDS, RATE, HALVINGS, EPOCHS, BATCH = 3, 0.01, 4, 40, 256
BLOCK = 256  # texts whose states lie in one file


class Layers(States):
    """Some layers of states."""

    def __init__(self, whole: States, layers: Sequence[int]) -> None:
        self._whole, self._layers = whole, list(layers)
        self.counts, self.there, self.folder = whole.counts, whole.there, whole.folder

    @property
    def block_sizes(self) -> list[int]:
        return self._whole.block_sizes

    def block(self, number: int) -> Any:
        return self._whole.block(number)[self._layers]


def corpus(folder: Path, words: int) -> Corpus:
    """So many words of dev and train."""
    read_ones = [read(folder / f"en_ewt-ud-{part}.conllu") for part in ("dev", "train")]
    examples, count = [], 0
    for example in (one for corpus in read_ones for one in corpus):
        if count >= words:
            break
        examples.append(example)
        count += len(example.annotations["words"])
    return replace(read_ones[0], examples=examples)


def questions(texts: Corpus, states: States, tasks: Sequence[str] = TASKS) -> ProbeQuestions:
    return questions_of(texts, states, [PROBED[t] for t in tasks], seed=0, seeds=SEEDS)


def of_layer(states: States, asked: ProbeQuestions, layer: int) -> torch.Tensor:
    """(R, D), standardised."""
    stream = StateStream(Layers(states, [layer]), asked.units, asked.split == 0)
    none = torch.zeros(len(asked.split), 0)
    found = torch.zeros(len(asked.split), stream.width)
    for rows, one in stream.examples(np.ones(len(asked.split), bool), none, 4096):
        found[rows] = one.states[0]
    return found


def plain_forward(encoder: Encoder, texts: Corpus) -> float:
    """Seconds of the model alone, in the batches that states are computed in."""
    seconds = 0.0
    with torch.inference_mode():
        for start in range(0, len(texts), BLOCK):
            some = texts[start : start + BLOCK]
            for one in word_batches(encoder, some, tokens_per_batch=4096):
                started = time.process_time()
                encoder.model(**one.batch.inputs)
                seconds += time.process_time() - started
    return seconds


def time_states(encoder: Encoder, texts: Corpus) -> None:
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        states = word_states(encoder, texts, folder=Path(folder))
        ours = time.process_time() - started
        alone = plain_forward(encoder, texts)
        size = sum(file.stat().st_size for file in Path(folder).rglob("*.safetensors"))
        numbers = len(states) * (encoder.shape.layers + 1) * encoder.shape.hidden
    print(f"states of {len(states):,} words: {ours:.1f} s; a plain forward pass {alone:.1f} s")
    print(f"ratio {ours / alone:.2f}; {size / numbers:.3f} bytes a layer, dimension and word")


def one_probe(
    states: torch.Tensor, labels: torch.Tensor, split: torch.Tensor, classes: int, decay: float
) -> tuple[float, float]:
    """The obvious way: least loss on held-out rows, and the share of right answers."""
    train, held = (((split == part) & (labels >= 0)).nonzero()[:, 0] for part in (0, 1))
    test = ((split == 2) & (labels != -1)).nonzero()[:, 0]
    torch.manual_seed(0)
    probe = torch.nn.Linear(states.shape[1], classes)
    adam = torch.optim.Adam(
        [{"params": [probe.weight], "weight_decay": decay}, {"params": [probe.bias]}], lr=RATE
    )
    least, right, rate = float("inf"), 0.0, RATE
    x, y = states[train], labels[train]
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(BATCH):
            adam.zero_grad()
            torch.nn.functional.cross_entropy(probe(x[rows]), y[rows]).backward()
            adam.step()
        with torch.no_grad():
            loss = torch.nn.functional.cross_entropy(probe(states[held]), labels[held]).item()
            if loss < least:
                least = loss
                right = (probe(states[test]).argmax(1) == labels[test]).float().mean().item()
                continue
        rate /= 2
        if rate < RATE / 2**HALVINGS:
            break
        for group in adam.param_groups:
            group["lr"] = rate
    return least, right


def ours_of(asked: ProbeQuestions, hits: np.ndarray, task: int) -> np.ndarray:
    """Shares of right answers (layers,)."""
    counts = max(int(((asked.questions[task].labels != -1) & (asked.split == 2)).sum()), 1)
    found: np.ndarray = hits[:, task].sum(0) / counts
    return found


def pairs(layers: int, tasks: int, count: int) -> Iterator[tuple[int, int]]:
    every = [(layer, task) for layer in range(layers) for task in range(tasks)]
    yield from (every[round(i)] for i in np.linspace(0, len(every) - 1, count))


def time_loop(texts: Corpus, states: States, layers: Sequence[int], count: int) -> None:
    asked = questions(texts, states)
    started, wall = time.process_time(), time.perf_counter()
    given = asked.units, asked.examples, asked.questions, asked.split
    found = probed(Layers(states, layers), *given, seeds=SEEDS)
    ours, wall = time.process_time() - started, time.perf_counter() - wall
    split = torch.from_numpy(asked.split)
    seconds: dict[str, list[float]] = {"task": [], "control": []}
    differences: dict[str, list[float]] = {"task": [], "control": []}
    for at, task in pairs(len(layers), len(TASKS), count):
        question = asked.questions[task]
        x = of_layer(states, asked, layers[at])
        # Control tasks of the three seeds differ; ours is the mean of them.
        for kind, labels, hits in (
            ("task", [question.labels], found.hits),
            ("control", question.control, found.control),
        ):
            shares = []
            for own in labels if kind == "task" else labels[:1]:
                started = time.process_time()
                y = torch.from_numpy(own)
                best = [one_probe(x, y, split, question.classes, decay) for decay in DECAYS]
                seconds[kind].append(time.process_time() - started)
                shares.append(min(best)[1])
            gap = ours_of(asked, hits, task)[at] - np.mean(shares)
            differences[kind].append(100 * float(gap))
            print(f"  layer {layers[at]:2} {TASKS[task]:18} {kind:8} loop "
                  f"{seconds[kind][-1]:6.1f} s, {100 * np.mean(shares):.1f} %, ours "
                  f"{gap * 100:+.2f} points", flush=True)  # fmt: skip
    each = {kind: float(np.mean(of)) for kind, of in seconds.items()}
    loop = len(layers) * len(TASKS) * SEEDS * sum(each.values())
    print(f"{len(layers)} layers × {len(TASKS)} tasks × {SEEDS} seeds with controls, "
          f"{int((asked.split == 0).sum()):,} rows that train")  # fmt: skip
    print(f"ours, codes included: {ours:.0f} s of the processor ({wall:.0f} s on the clock)")
    print(f"loop, without codes: {loop:.0f} s ({each['task']:.1f} s a task, "
          f"{each['control']:.1f} s a control task, {len(DECAYS)} penalties each; {count} pairs "
          "timed)")  # fmt: skip
    print(f"ratio {loop / ours:.1f}; mean difference of tasks "
          f"{np.mean(differences['task']):+.2f} points (largest "
          f"{np.abs(differences['task']).max():.2f}), of control tasks "
          f"{np.mean(differences['control']):+.2f}")  # fmt: skip


def by_sklearn(x: np.ndarray, question: Question, split: np.ndarray) -> float:
    """The share of right answers, with the penalty that is best on held-out rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    labels, best = question.labels, (float("inf"), 0.0)
    train, held = ((split == part) & (labels >= 0) for part in (0, 1))
    test = (split == 2) & (labels != -1)
    for precision in PRECISIONS:  # from strong to weak, while it gets better, as ours
        one = LogisticRegression(C=1 / precision, max_iter=300)
        one.fit(x[train], labels[train])
        loss = log_loss(labels[held], one.predict_proba(x[held]), labels=one.classes_)
        if loss > best[0]:
            break
        best = loss, float(one.score(x[test], labels[test]))
    return best[1]


def equal(texts: Corpus, states: States, layers: Sequence[int]) -> None:
    asked = questions(texts, states, ("pos", "relation", "parent"))
    given = asked.units, asked.examples, asked.questions, asked.split
    found = probed(Layers(states, layers), *given, whole=False)
    gaps = []
    for at, layer in enumerate(layers):
        x = of_layer(states, asked, layer).numpy()
        for task, question in enumerate(asked.questions):
            theirs = by_sklearn(x, question, asked.split)
            gaps.append(100 * (ours_of(asked, found.hits, task)[at] - theirs))
            print(f"  layer {layer:2} {question.name:10} scikit-learn {100 * theirs:.2f} %, ours "
                  f"{gaps[-1]:+.2f} points", flush=True)  # fmt: skip
    print(f"mean difference {np.mean(gaps):+.2f} points, largest {np.abs(gaps).max():.2f}")


def memory(asked: argparse.Namespace) -> None:
    for words in (asked.words // 5, asked.words):
        command = [sys.executable, __file__, "peak", "--ud", str(asked.ud), "--words", str(words)]
        given = [*command, "--states", str(asked.states)] if asked.states else command
        print(f"{words:,} words:", subprocess.run(given, capture_output=True, text=True, check=True)
              .stdout.strip())  # fmt: skip


def main() -> None:
    """Measure one part and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("states", "loop", "sklearn", "memory", "peak"))
    parser.add_argument("--ud", type=Path, required=True)
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--layers", type=int, nargs="*", default=[])
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--states", type=Path, help="a folder that keeps the states")
    asked = parser.parse_args()
    if asked.part == "memory":
        memory(asked)
        return
    encoder, texts = Encoder.load("bertology-mini"), corpus(asked.ud, asked.words)
    if asked.part == "states":
        print(describe())
        time_states(encoder, texts)
        return
    states = word_states(encoder, texts, folder=asked.states)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    layers = asked.layers or list(range(encoder.shape.layers + 1))
    if asked.part == "peak":
        own = questions(texts, states, ("pos",))
        probed(states, own.units, own.examples, own.questions, own.split)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"peak {peak / 1024:.0f} MiB, before probes {before / 1024:.0f} MiB")
        return
    print(describe())
    if asked.part == "loop":
        time_loop(texts, states, layers, asked.pairs)
    else:
        equal(texts, states, layers)


if __name__ == "__main__":
    main()
