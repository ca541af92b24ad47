"""How often the interval of a type's share holds the truth, by simulation.

A simulated network makes other mistakes on each model: the rows of its table P(named | seen) vary
around those of the bundled network as a Dirichlet distribution of some precision. As in the bundled
record, maps of three models were checked by eye, 160, 160 and 200 of them. Then a fourth model,
with mistakes and true shares of its own, is studied. Beside the corrected interval stands the one
over examples alone, of what the network names.

Usage: python benchmarks/map_type_shares.py [--repeats 300]
"""

from __future__ import annotations

import argparse

import numpy as np
from machine import describe

from bertology.annotated.map_types.mistakes import bundled_mistakes
from bertology.data.map_labels import MAP_TYPES
from bertology.stats import bounded_mean_bounds
from bertology.stats.named_shares import Mistakes, NamedShares

CHECKED = (160, 160, 200)
HEADS, PER_TEXT = 144, 2
CONSTANT = 0.7  # of the examples a head has its own type, in the others any
MIXED, COUNT = MAP_TYPES.index("heterogeneous"), len(MAP_TYPES)
# Precision of a row: None is the same mistakes on every model, 20 a spread of about 0.1 at 0.8.
PRECISIONS = (None, 60.0, 20.0)
EXAMPLES = (20, 400)
TRUTHS = {
    "as labelled": (0.37, 0.30, 0.04, 0.14, 0.15),
    "none heterogeneous": (0.50, 0.30, 0.05, 0.15, 0.0),
    "half heterogeneous": (0.25, 0.15, 0.02, 0.08, 0.5),
}


def rows(table: np.ndarray, precision: float | None, chance: np.random.Generator) -> np.ndarray:
    """The mistakes on one more model."""
    if precision is None:
        return table
    return np.stack([chance.dirichlet(precision * row) for row in table])


def checked(table: np.ndarray, precision: float | None, chance: np.random.Generator) -> Mistakes:
    """What was seen and named of the maps that were checked."""
    seen, named, models, texts = [], [], [], []
    for model, count in enumerate(CHECKED):
        own = rows(table, precision, chance)
        shares = chance.dirichlet(20 * np.array(TRUTHS["as labelled"]))
        types = chance.choice(COUNT, count, p=shares)
        seen.append(types)
        named.append([chance.choice(COUNT, p=own[t]) for t in types])
        models.append(np.full(count, model))
        texts.append(np.arange(count) // PER_TEXT)
    parts = (np.concatenate(x).astype(np.int64) for x in (seen, named, models, texts))
    return Mistakes(*parts, classes=COUNT, unit="labelled maps")


def named_by(
    truth: np.ndarray, table: np.ndarray, examples: int, chance: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(examples, types): shares of names over the heads; and (types,): their true shares."""
    heads = chance.choice(COUNT, HEADS, p=truth)
    others = chance.choice(COUNT, (examples, HEADS), p=truth)
    types = np.where(chance.random((examples, HEADS)) < CONSTANT, heads, others)
    names = (chance.random((examples, HEADS, 1)) > table.cumsum(-1)[types]).sum(-1)
    named = np.stack([(names.clip(max=COUNT - 1) == t).mean(1) for t in range(COUNT)], 1)
    own = np.array([(heads == t).mean() for t in range(COUNT)])
    return named, CONSTANT * own + (1 - CONSTANT) * truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=300)
    repeats = parser.parse_args().repeats
    print(describe())
    print("| true shares | mistakes | examples | corrected | width | names alone | width |")
    print("|---|---|---|---|---|---|---|")
    table = bundled_mistakes().table
    for name, truth in TRUTHS.items():
        for precision in PRECISIONS:
            for examples in EXAMPLES:
                print(
                    _row(name, np.array(truth), (table, precision), examples, repeats), flush=True
                )


def _row(name: str, truth: np.ndarray, about: tuple, examples: int, repeats: int) -> str:
    table, precision = about
    chance = np.random.default_rng(0)
    hits, widths = np.zeros((repeats, 2)), np.zeros((repeats, 2))
    for i in range(repeats):
        mistakes = checked(table, precision, chance)
        own = rows(table, precision, chance)
        named, true = named_by(truth, own, examples, chance)
        found = NamedShares(named, mistakes).of(MIXED)
        low, high = bounded_mean_bounds(
            named[:, MIXED][None], None, low=0.0, high=1.0, budget=float(np.log(40))
        )
        for at, (a, b) in enumerate(((found.low, found.high), (low[0], high[0]))):
            hits[i, at], widths[i, at] = a <= true[MIXED] <= b, b - a
    shown = "the same on all models" if precision is None else f"vary, precision {precision:.0f}"
    rates = [
        f"{100 * h:.0f} % | {w:.2f}" for h, w in zip(hits.mean(0), widths.mean(0), strict=True)
    ]
    return f"| {name} | {shown} | {examples} | {' | '.join(rates)} |"


if __name__ == "__main__":
    main()
