"""How often intervals over pairs that share words (`stats/rank_agreement.py`) hold the truth.

Scores and judgements of a pair are sums of what its two words have, and noise of its own; all are
normal, so the true rank correlation is known. Counted is how often intervals of 95 % hold it: of
one score, of the difference of two that are equally good, of the best of 24 such scores less the
best of 6 others, which is truly 0, and of the best of 24 alone, each picked on other pairs than it
is scored on (`pair_turns.py`). The last column is the best of 24 if it were picked on the odd pairs
and scored on the even ones, whichever words they share.

    python benchmarks/pair_coverage.py [--draws 400]
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from numpy.typing import NDArray

from bertology.stats.rank_agreement import Agreement, PairLinks, rank_agreement, rank_values
from bertology.studies.geometry.shared.pair_scores import Ranks, Turns

Floats = NDArray[np.float64]
DESIGNS = (  # words (0: each in one pair), pairs (0: all there are)
    (0, 50),
    (0, 200),
    (150, 200),
    (60, 200),
    (66, 0),
    (18, 0),
    (18, 60),
)
WORLDS = ((0.0, 0.25), (0.6, 0.25), (0.6, 2.0))  # correlation of words, noise of pairs
_MANY, _FEW = 24, 6


def drawn_pairs(rng: np.random.Generator, words: int, pairs: int) -> PairLinks:
    """Which words each pair has."""
    if not words:
        return PairLinks(np.arange(pairs), np.arange(pairs, 2 * pairs))
    if not pairs:
        return PairLinks(*np.tril_indices(words, -1))
    first = rng.integers(0, words, pairs)
    return PairLinks(first, (first + rng.integers(1, words, pairs)) % words)


def drawn(
    rng: np.random.Generator, links: PairLinks, rho: float, noise: float
) -> tuple[Floats, Floats]:
    """Equally good scores (rows, pairs), and judgements."""
    words = int(max(links.first.max(), links.second.max())) + 1
    of_judged = rng.normal(size=words)
    own = rng.normal(size=(_MANY + _FEW, words))
    of_scores = rho * of_judged + math.sqrt(1 - rho**2) * own
    errors = noise * rng.normal(size=(_MANY + _FEW + 1, len(links.first)))
    rows = of_scores[:, links.first] + of_scores[:, links.second] + errors[1:]
    return rows, of_judged[links.first] + of_judged[links.second] + errors[0]


def leaking(rows: Floats, judged: Floats) -> Agreement:
    """The best on the odd pairs, scored on the even ones."""
    odd = np.arange(len(judged)) % 2 == 1
    best = int(rank_values(rows[:, odd], judged[odd]).argmax())
    found = rank_agreement(rows[[best]][:, ~odd], judged[~odd])
    influence = np.zeros((1, len(judged)))  # of the pairs that are scored
    influence[:, ~odd] = found.influence * len(judged) / (~odd).sum()
    return Agreement(found.value, influence)


def held(seed: int, words: int, pairs: int, rho: float, noise: float) -> list[bool]:
    """Whether each kind of interval holds the truth, in one draw."""
    rng = np.random.default_rng(seed)
    links = drawn_pairs(rng, words, pairs)
    rows, judged = drawn(rng, links, rho, noise)
    two, turns = rank_agreement(rows[:2], judged), Turns(links, Ranks(judged))
    many, few = (turns.best(some).told for some in (rows[:_MANY], rows[_MANY:]))
    wrong = leaking(rows[:_MANY], judged)
    truth = 6 / math.pi * math.asin(rho / (1 + noise**2 / 2) / 2)  # of normal numbers
    found = []
    each = ((two[:1], truth), (two[:1] - two[1:], 0), (many - few, 0), (many, truth))
    for row, true in (*each, (wrong, truth)):
        one = links.estimate(row, level=0.95)
        found.append(one.low <= true <= one.high)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=400)
    draws = parser.parse_args().draws
    print("| words | pairs | correlation, noise | one | two | 24 and 6 | 24 | 24, odd and even |")
    print("|---|---|---|---|---|---|---|---|")
    for words, pairs in DESIGNS:
        for rho, noise in WORLDS:
            shares = np.mean([held(s, words, pairs, rho, noise) for s in range(draws)], axis=0)
            told = " | ".join(f"{share:.3f}" for share in shares)
            count = pairs or words * (words - 1) // 2
            print(f"| {words or 2 * pairs} | {count} | {rho}, {noise} | {told} |", flush=True)


if __name__ == "__main__":
    main()
