"""How often intervals of `bias-pairs` exclude 50 % where every liking is by chance.

Each pair of changed words of CrowS-Pairs is liked or not, the same wherever it is exchanged but for
some noise: there is no stereotype to be found.

    python benchmarks/bias_pairs.py [40] [--root FOLDER]
"""

from __future__ import annotations

import argparse

import numpy as np
import xarray as xr
from machine import describe

import bertology as bt
from bertology.results.provenance import Provenance
from bertology.studies.cloze.bias_pairs import BiasPairs, changed_words

_NOISE = 0.5  # of a single pair, in standard deviations of the likings


def main() -> None:
    """Draw worlds and count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worlds", type=int, nargs="?", default=40)
    parser.add_argument("--root")
    asked = parser.parse_args()
    corpus = bt.load_corpus("crows-pairs", root=asked.root)
    words = np.array([changed_words(e.text, str(e.get("contrast"))) for e in corpus])
    names, at = np.unique(words, return_inverse=True)
    about = {name: [str(e.get(name)) for e in corpus] for name in ("group", "condition")}
    nothing = {"name": "-", "fingerprint": "-"}
    provenance = Provenance("bias-pairs", 1, {}, nothing, nothing)
    whole = rows = 0
    for seed in range(asked.worlds):
        rng = np.random.default_rng(seed)
        better = rng.normal(size=len(names))[at] + _NOISE * rng.normal(size=len(words))
        columns = {"better": better, "words": words, **about}
        part = xr.Dataset({name: ("example", values) for name, values in columns.items()})
        result = BiasPairs(resamples=200).conclude({"examples-000000-000001": part}, provenance)
        whole += result.evidence()["stereotype_preference"].excludes(0.5)
        table = result.table()
        rows += bool(((table["preferred_low"] > 0.5) | (table["preferred_high"] < 0.5)).any())
    print(describe())
    print(
        f"{len(words)} pairs, {len(names)} changed words; of {asked.worlds} worlds {whole} exclude"
    )
    print(f"50 % for all pairs, {rows} for some row of the table.")


if __name__ == "__main__":
    main()
