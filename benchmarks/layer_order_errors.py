"""How often claims about depth hold where the order of layers is chance, and where it is not.

Layers tell something of texts, each its own share, in a random order: nothing that is said of the
middle, of a rise or of the last two layers is due to the order. `texts` is how often the interval
over texts alone lies above 0, `both` how often it does and the permutation test of the layers'
order agrees. Power: the same shares, and what is claimed is true by so much more.

    python benchmarks/layer_order_errors.py [--draws 1000]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from machine import describe
from numpy.typing import NDArray
from scipy.stats import beta

from bertology.stats import mean_interval
from bertology.stats.layer_orders import (
    OfLayers,
    first_less_second_half,
    in_this_order,
    later_less_earlier,
)
from bertology.studies.designs.probe_scores import (
    lower_less_others,
    lower_over_others,
    middle_less_ends,
    middle_over_ends,
)

Floats = NDArray[np.float64]
TEXTS, QUESTIONS = 200, 10
SPREAD = 0.03  # of the shares that layers tell, from layer to layer


def last_two(values: Floats) -> Floats:
    """The last two layers less the mean of the others."""
    found: Floats = values[..., -2:].mean(-1) - values[..., :-2].mean(-1)
    return found


def in_the_middle(layers: int) -> Floats:
    """1 in the middle of the depth, 0 at its ends."""
    return np.asarray(1 - np.abs(np.linspace(-1, 1, layers)))


CLAIMS: dict[str, tuple[Callable[[int], OfLayers], Callable[[int], Floats]]] = {
    "middle over ends": (lambda layers: middle_less_ends, in_the_middle),
    "lower over others": (lambda layers: lower_less_others, lambda n: np.linspace(1, 0, n)),
    "rises from a third on": (
        lambda layers: later_less_earlier(round(layers / 3)),
        lambda n: np.linspace(0, 1, n),
    ),
    "first half over second": (
        lambda layers: first_less_second_half,
        lambda n: np.linspace(1, 0, n),
    ),
    "last two over others": (lambda layers: last_two, lambda n: (np.arange(n) >= n - 2) * 1.0),
}


def verdicts(name: str, layers: int, size: float, draws: int) -> tuple[int, int]:
    """How often texts alone, and both, say that it is so."""
    contrast_of, shape_of = CLAIMS[name]
    contrast, shape = contrast_of(layers), size * shape_of(layers)
    rng, alone, both = np.random.default_rng([layers, round(1000 * size)]), 0, 0
    counts = np.full(TEXTS, QUESTIONS)
    for draw in range(draws):
        shares = np.clip(0.75 + SPREAD * rng.standard_normal(layers) + shape, 0.02, 0.98)
        hits = rng.binomial(QUESTIONS, shares, size=(TEXTS, layers)).astype(np.float64)
        if contrast in (middle_less_ends, lower_less_others):
            over = middle_over_ends if contrast is middle_less_ends else lower_over_others
            found = over(hits, counts, level=0.95)
            assert found is not None
            both += found.low > 0
            # The interval before the order was asked: its lower end, or as far below as above.
            alone += found.low > 0 or 2 * found.value - found.high > 0
        else:
            of_texts = mean_interval(contrast(hits) / QUESTIONS)
            alone += of_texts.low > 0
            ordered = in_this_order(of_texts, hits.mean(axis=0), contrast, seed=draw)
            both += ordered.low > 0
    return alone, both


def main() -> None:
    """Print a table of nulls and one of power."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    print(describe())
    print(f"\n{TEXTS} texts of {QUESTIONS} questions; layers vary by {100 * SPREAD:g} points (SD).")
    print("\n| claim | layers | texts | both | upper 95 % bound |\n|---|---|---|---|---|")
    for name in CLAIMS:
        for layers in (6, 12, 24):
            alone, both = verdicts(name, layers, 0.0, draws)
            bound = beta.ppf(0.95, both + 1, draws - both)
            print(
                f"| {name} | {layers} | {alone / draws:.3f} | {both / draws:.3f} | {bound:.3f} |",
                flush=True,
            )
    sizes = (0.03, 0.06, 0.12)
    print(f"\n| claim, 12 layers | {' | '.join(f'{100 * s:g} points' for s in sizes)} |")
    print(f"|---|{'---|' * len(sizes)}")
    for name in CLAIMS:
        power = [verdicts(name, 12, size, max(1, draws // 5)) for size in sizes]
        shown = (
            f"{both / max(1, draws // 5):.2f} ({alone / max(1, draws // 5):.2f})"
            for alone, both in power
        )
        print(f"| {name} | {' | '.join(shown)} |", flush=True)
    print("\nIn brackets: by texts alone.")


if __name__ == "__main__":
    main()
