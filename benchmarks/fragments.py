"""What words tell of the labels of `grammar-fragments`, and how quickly pairs are made.

Ridge regression on the three labels, learnt on one half of the pairs and scored on the other.
`words`: how often each word stands in the premise, and in the hypothesis. `crossed`: the same, and
each frequent word of the premise together with each one of the hypothesis.

    python benchmarks/fragments.py [--pairs 24000] [--seed 5]
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import Counter

import numpy as np
from machine import describe
from numpy.typing import NDArray

from bertology.data.grammar.fragments import FRAGMENTS, FragmentDraw

Floats = NDArray[np.float64]
FREQUENT = 0.1  # of the texts have the word: names and places are rarer


def bags(texts: list[str]) -> tuple[Floats, Floats]:
    """Counts of all words, and of the frequent ones."""
    rows = [Counter(re.findall(r"\w+", text.lower())) for text in texts]
    places = {word: i for i, word in enumerate(sorted({w for row in rows for w in row}))}
    table = np.zeros((len(rows), len(places)))
    for i, row in enumerate(rows):
        table[i, [places[w] for w in row]] = list(row.values())
    return table, table[:, (table > 0).mean(0) > FREQUENT]


def accuracy(x: Floats, labels: NDArray[np.int64]) -> float:
    """On the second half, of what is learnt on the first."""
    x = np.hstack([x, np.ones((len(x), 1))])
    y, half = np.eye(3)[labels], len(x) // 2
    learnt = x[:half]
    weights = np.linalg.solve(learnt.T @ learnt + 10 * np.eye(x.shape[1]), learnt.T @ y[:half])
    return float((np.argmax(x[half:] @ weights, 1) == labels[half:]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=24000)
    parser.add_argument("--seed", type=int, default=5)
    given = parser.parse_args()
    print(describe())
    draw = FragmentDraw(random.Random(given.seed))
    error = np.sqrt(2 / 9 / (given.pairs / 2))
    print(f"{given.pairs} pairs each; chance 33.3 %, its standard error {100 * error:.1f}")
    print("| fragment | words | crossed | pairs a second |")
    print("|---|---|---|---|")
    for fragment in FRAGMENTS:
        draw.pair(fragment, 0)  # what is made once is not timed
        start = time.perf_counter()
        pairs = [draw.pair(fragment, i % 3) for i in range(given.pairs)]
        rate = given.pairs / (time.perf_counter() - start)
        labels = np.array([pair.label for pair in pairs])
        premise, frequent = bags([pair.premise for pair in pairs])
        hypothesis, asked = bags([pair.hypothesis for pair in pairs])
        words = np.hstack([premise, hypothesis])
        crossed = np.einsum("ni,nj->nij", frequent, asked).reshape(len(pairs), -1)
        both = accuracy(np.hstack([words, crossed]), labels)
        print(
            f"| {fragment} | {100 * accuracy(words, labels):.1f} | {100 * both:.1f} | {rate:,.0f} |"
        )


if __name__ == "__main__":
    main()
