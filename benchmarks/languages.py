"""How far does a fixed offset lead from a verb to its subject, in other languages than English?

Usage: python benchmarks/languages.py FOLDER, which holds treebanks (UD_German-PUD/*.conllu, …).

The paper's last open question: in English a subject mostly stands right before its verb, so heads
that look at the previous word cannot be told from heads that know subjects. No model is needed to
say how much better other languages would tell them apart: this is the baseline that the study
syntax-heads sets heads against, over treebanks of the same sentences in many languages.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from bertology.data.loading import load_corpus
from bertology.data.words.links import Link, links_of
from bertology.stats import mean_interval
from bertology.stats.best_of_many import cross_fitted

RELATIONS = ("verb-subject", "verb-object")
OFFSETS = [k for k in range(-10, 11) if k]


def offset_hits(links: list[Link]) -> list[float]:
    """The share of links of single words whose target stands so many words away, by offset."""
    away = [link.target[0] - link.source[0] for link in links]
    return [away.count(k) / len(away) for k in OFFSETS]


def row(path: Path) -> tuple[float, str]:
    """The share of links that the best offset follows, and a line of the table."""
    corpus, cells = load_corpus(path), []
    shares = []
    for relation in RELATIONS:
        links = [links_of(e, relation) for e in corpus]
        hits = np.array([offset_hits(of_one) for of_one in links if of_one])
        scored, means = cross_fitted(hits[:, None])
        found = mean_interval(scored[:, 0])
        shares.append(found.value)
        best = OFFSETS[int(means[0].argmax())]
        shown = " – ".join(f"{100 * max(0.0, bound):.0f}" for bound in (found.low, found.high))
        count = sum(map(len, links))
        cells.append(f"{count:,} | {best:+d} | {100 * found.value:.0f} % ({shown})")
    name = path.parent.name.removeprefix("UD_")
    return shares[0], f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """One line for each treebank, those where an offset does best first."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    found = arguments.parse_args().folder.glob("UD_*-PUD/*.conllu")
    print(
        "| treebank | verb → subject: links | best offset | followed by it | "
        "verb → object: links | best offset | followed by it |\n|---|---|---|---|---|---|---|"
    )
    for _, line in sorted(map(row, found), reverse=True):
        print(line)


if __name__ == "__main__":
    main()
