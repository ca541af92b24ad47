"""Agreement of models that are made up: what they prefer, and states of the blank, by layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.cloze.agreement import Agreement, told_by_probes

_KINDS = ("are/is", "was/were", "have/has")
_NOUNS, _WIDTH = 40, 12


def layered(signal: Sequence[float], seed: int, *, pairs: int = 160) -> Result:
    """Layers whose states tell the number so clearly; every noun has a vector of its own."""
    rng = np.random.default_rng(seed)
    noun, plural = rng.integers(_NOUNS, size=pairs), rng.random(pairs) < 0.4
    kinds = [_KINDS[k] for k in rng.integers(3, size=pairs)]
    units = [f"noun{n}" for n in noun]
    number = np.where(plural, 1.0, -1.0)
    states = rng.normal(size=(pairs, len(signal), _WIDTH))
    states += 0.5 * rng.normal(size=(_NOUNS, len(signal), _WIDTH))[noun]
    states[:, :, 0] += number[:, None] * np.asarray(signal)
    better = rng.normal(size=(pairs, len(signal)))
    data = {
        "plain": (("example", "layer"), better),
        "nonsense": (("example", "layer"), better),
        "probed": (("example", "layer"), told_by_probes(states, plural, units, seed=seed)),
        "kind": ("example", kinds),
        "first": (
            "example",
            [k.startswith("was") != p for k, p in zip(kinds, plural, strict=True)],
        ),
        "unit": ("example", units),
        "nonsense_unit": ("example", units),
        "attractors": ("example", np.zeros(pairs, int)),
        "group": ("example", [""] * pairs),
    }
    made = {"name": "m", "fingerprint": "f"}
    return Agreement(resamples=100, seed=seed).conclude(
        {f"examples-000000-{pairs:06d}": xr.Dataset(data)},
        Provenance("agreement", 2, {}, made, made),
    )
