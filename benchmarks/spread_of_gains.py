"""Would the entropy of what layers add tell tasks that are spread from tasks that are hard?

    python benchmarks/spread_of_gains.py

The claim that semantics is spread over more layers than syntax is judged on weights of mixes, and
only where tasks have about as many labels. A statistic that works everywhere would be better, such
as the entropy of what each layer adds (as shares of a task's whole gain). Here two tasks are in the
*same* layers, so the claim must not hold. They differ in how hard they are: the evidence that a
layer adds is w_l times a, the same w for both, with a larger a for the easy task. An item is told
if the evidence so far, sqrt(a W_l), beats what chance deals it; items of a task may differ in a
(`mixed`).

Entropies of right answers, and of d' squared (in which evidence of alike items adds up), with
intervals over resampled items: in how many worlds is the second task surely more spread, or surely
less?
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]

LAYERS, ITEMS, WORLDS, RESAMPLES = 12, 2000, 200, 200
WEIGHTS = np.exp(-0.5 * ((np.arange(LAYERS) - 4.5) / 2.0) ** 2)
WEIGHTS /= WEIGHTS.sum()


def right_answers(rng: np.random.Generator, ease: float, mixed: float) -> NDArray[np.bool_]:
    """(ITEMS, LAYERS + 1): of two answers, which items are told from the first l layers."""
    evidence = ease * np.exp(mixed * rng.standard_normal(ITEMS) - mixed**2 / 2)
    seen = np.concatenate([[0.0], np.cumsum(WEIGHTS)])
    chance = rng.random(ITEMS)
    return chance[:, None] < ndtr(np.sqrt(evidence[:, None] * seen))


def entropy(scores: Floats) -> Floats:
    """Of what each layer adds, as shares of all; losses count as nothing. (…, L + 1) to (…)."""
    added = np.maximum(np.diff(scores, axis=-1), 0.0)
    share = added / np.maximum(added.sum(axis=-1, keepdims=True), 1e-12)
    return -(share * np.log(np.maximum(share, 1e-12))).sum(axis=-1)


def squared_d(accuracy: Floats) -> Floats:
    """The evidence that alike items would have at this share of right answers."""
    return np.maximum(ndtri(np.clip(accuracy, 0.5, 1 - 0.5 / ITEMS)), 0.0) ** 2


def false_verdicts(ease: tuple[float, float], mixed: tuple[float, float]) -> dict[str, str]:
    """Shares of worlds in which the second task is surely more (and less) spread than the first."""
    found: dict[str, list[tuple[bool, bool]]] = {"right answers": [], "d' squared": []}
    for world in range(WORLDS):
        rng = np.random.default_rng(world)
        drawn = []
        for a, m in zip(ease, mixed, strict=True):
            hits = right_answers(rng, a, m).astype(np.float64)
            times = rng.multinomial(ITEMS, np.full(ITEMS, 1 / ITEMS), RESAMPLES)
            drawn.append(times @ hits / ITEMS)
        for name, scale in (("right answers", lambda x: x), ("d' squared", squared_d)):
            easy, hard = (entropy(scale(one)) for one in drawn)
            low, high = np.quantile(hard - easy, (0.025, 0.975))
            found[name].append((bool(low > 0), bool(high < 0)))
    shares = {name: np.mean(of, axis=0) for name, of in found.items()}
    return {
        name: f"{100 * more:.0f} % / {100 * less:.0f} %" for name, (more, less) in shares.items()
    }


def main() -> None:
    """Print the share of worlds with a false verdict, surely more spread / surely less."""
    for title, ease, mixed in (
        ("as hard as each other", (4.0, 4.0), (0.0, 0.0)),
        ("easy, hard", (12.0, 2.0), (0.0, 0.0)),
        ("easy, hard; items of both mixed", (12.0, 2.0), (1.5, 1.5)),
        ("as hard; items of the second mixed", (4.0, 4.0), (0.0, 1.5)),
        ("as hard; items of the first mixed", (4.0, 4.0), (1.5, 0.0)),
    ):
        told = ", ".join(f"{name} {shares}" for name, shares in false_verdicts(ease, mixed).items())
        print(f"{title}: {told}")


if __name__ == "__main__":
    main()
