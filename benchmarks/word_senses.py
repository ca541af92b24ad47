"""Nearest neighbours by sense: all layers together, against scikit-learn layer by layer.

    python benchmarks/word_senses.py [--occurrences 200000] [--layers 13] [--width 192]
        [--device cpu] [--asked 100]

States are made (Gaussian). Lemmas have the sizes of SemCor's: one (be.v) has 7 % of all
occurrences, the others fall off as (rank + 5)^-0.8. Each occurrence is answered by those of its
lemma in other folds (five), with 1, 5 and 10 neighbours. Two loops of scikit-learn's
KNeighborsClassifier (brute force, cosine), over layers and folds:

- the plain one, which looks for neighbours among all occurrences: timed on `--asked` of them in one
  layer, against all others; the rest is taken to be alike;
- the kinder one, which is given the lemma's own only: timed in one layer, on all lemmas with 500
  occurrences or more and on every 50th of the others; the rest is taken to be alike.

Both get 10 neighbours once, for all three answers. Times are seconds of the processor, so that
other work on the machine does not count; with a GPU, seconds of the clock for all.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from machine import describe
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier

from bertology.train.probes.neighbours import Occurrences, sense_votes

KS, FOLDS, LEMMAS = (1, 5, 10), 5, 23_000
LARGE, EVERY = 500, 50


def made(occurrences: int, seed: int = 0) -> Occurrences:
    """Lemmas of SemCor's sizes, senses of chance."""
    rng = np.random.default_rng(seed)
    shares = (np.arange(1, LEMMAS) + 5.0) ** -0.8
    shares = np.append(0.07, 0.93 * shares / shares.sum())
    lemmas = rng.choice(LEMMAS, occurrences, p=shares)
    every = np.ones(occurrences, bool)
    return Occurrences(
        lemmas, rng.integers(0, 4, occurrences), rng.integers(0, FOLDS, occurrences), every, every
    )


def own_time(
    states: NDArray[np.float16], of: Occurrences, device: str, clock: Callable[[], float]
) -> float:
    """Seconds for all layers."""
    started = clock()
    sense_votes(states, of, KS, device=device)
    return clock() - started


def answers(
    known: NDArray[np.float32], senses: NDArray[np.int64], asked: NDArray[np.float32]
) -> None:
    near = KNeighborsClassifier(min(max(KS), len(known)), algorithm="brute", metric="cosine")
    near.fit(known, senses).predict(asked)


def plain_time(
    states: NDArray[np.float32], of: Occurrences, asked: int, clock: Callable[[], float]
) -> float:
    """Seconds for all occurrences of one layer, from so many of them."""
    known = np.flatnonzero(of.folds != 0)
    some = np.flatnonzero(of.folds == 0)[:asked]
    keys, senses = states[known], of.senses[known]
    started = clock()
    answers(keys, senses, states[some])
    return (clock() - started) * len(of) / len(some)


def kinder_time(states: NDArray[np.float32], of: Occurrences, clock: Callable[[], float]) -> float:
    """Seconds for all lemmas of one layer, from large ones and some of the others."""
    order = np.argsort(of.lemmas, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(of.lemmas[order])) + 1)
    groups.sort(key=len)
    small = [rows for rows in groups if len(rows) < LARGE]
    found = 0.0
    for some, weight in ((small[::EVERY], EVERY), ([r for r in groups if len(r) >= LARGE], 1)):
        started = clock()
        for rows in some:
            for fold in range(FOLDS):
                asked, known = rows[of.folds[rows] == fold], rows[of.folds[rows] != fold]
                if len(asked) and len(known):
                    answers(states[known], of.senses[known], states[asked])
        found += weight * (clock() - started)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("occurrences", 200_000), ("layers", 13), ("width", 192), ("asked", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    of = made(given.occurrences)
    rng = np.random.default_rng(1)
    states = np.empty((given.layers, given.occurrences, given.width), np.float16)
    for layer in states:
        layer[:] = rng.standard_normal(layer.shape, dtype=np.float32)
    one = states[0].astype(np.float32)
    if given.device != "cpu":  # the first product starts the device
        sense_votes(states[:, :100], made(100), KS, device=given.device)
        torch.cuda.synchronize()
    clock = time.process_time if given.device == "cpu" else time.perf_counter
    ours = own_time(states, of, given.device, clock)
    plain, kinder = (
        given.layers * t
        for t in (plain_time(one, of, given.asked, clock), kinder_time(one, of, clock))
    )
    print(describe())
    print(
        f"{given.occurrences:,} occurrences × {given.layers} layers × {given.width}: {ours:.1f} s"
    )
    print(f"scikit-learn, all occurrences: {plain:,.0f} s, {plain / ours:,.1f} ×")
    print(f"scikit-learn, lemma by lemma: {kinder:,.0f} s, {kinder / ours:.1f} ×")


if __name__ == "__main__":
    main()
