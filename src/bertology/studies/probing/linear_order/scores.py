"""What probes told of one task in constructions that did not train them, beside their baselines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.word_order import PLACE
from bertology.stats import Estimate
from bertology.stats.cross_fitting import picked_on_other_half
from bertology.stats.paired import bootstrap_weights
from bertology.studies.designs.probe_scores import among_copies, least_gain

if TYPE_CHECKING:
    import xarray as xr

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class OrderScores:
    """One task: hits (N, layers) of the N sentences where the linear rule is wrong.

    The first of the layers is the input. `shuffled` are the hits of copies with shuffled weights
    (copies, N, layers), `windows` those of windows of words (N, reaches); `same` are shares
    (layers,) in sentences of the kind that trained.
    """

    def __init__(self, part: xr.Dataset, copies: Sequence[xr.Dataset], task: int) -> None:
        self.name = str(part["task"].to_numpy()[task])
        asked: Ints = part["counts"].to_numpy()[:, task].astype(np.int64)
        agree = part["agree"].to_numpy()[:, task].astype(bool)
        hits: Floats = part["hits"].to_numpy()[:, task].astype(np.float64)
        other = ~agree & (asked > 0)
        self.counts: Ints = asked[other]
        self.hits: Floats = hits[other]
        self.kinds = part["construction"].to_numpy()[other]
        self.shuffled: Floats = np.stack(
            [of["hits"].to_numpy()[:, task].astype(np.float64)[other] for of in copies]
        )
        self.windows: Floats = part["windows"].to_numpy()[:, task].astype(np.float64)[other]
        self.frequent, self.linear = (
            part[name].to_numpy()[:, task].astype(np.float64)[other]
            for name in ("frequent", "linear")
        )
        self.same: Floats = hits[agree].sum(axis=0) / max(asked[agree].sum(), 1)
        self.classes, self.trained = (
            int(part[name].to_numpy()[task]) for name in ("classes", "trained")
        )

    def shares(self, hits: Floats) -> Floats:
        """Of all questions: (…, layers)."""
        found: Floats = hits.sum(axis=-2) / max(self.counts.sum(), 1)
        return found

    def chance(self) -> Floats:
        """What a guess gets in each sentence."""
        found: Floats = self.counts / self.classes
        return found

    def best(self, hits: Floats) -> tuple[int, Floats]:
        """The best layer of hits (N, layers), and the hits (N,) of the cross-fitted best."""
        picked = picked_on_other_half(hits[:, None])
        found: Floats = np.take_along_axis(hits, picked, axis=1)[:, 0]
        return int(hits.sum(axis=0).argmax()), found

    def gains(self) -> tuple[list[Floats], list[Floats]]:
        """Of the best layer over chance, words, linear rule, input and copies; over windows."""
        _, picked = self.best(self.hits[:, 1:])
        bases = [self.chance(), self.frequent, self.hits[:, 0]]
        if self.name != PLACE:  # which is the linear order itself
            bases.append(self.linear)
        bases += [self.best(copy[:, 1:])[1] for copy in self.shuffled]
        return [picked - base for base in bases], [picked - base for base in self.windows.T]

    def rises(self) -> tuple[list[Floats], list[Floats]]:
        """Of later layers over earlier ones, chance, and the rises of copies; over windows."""
        own, *others = (-fall for fall in self.falls())
        late = self.late()
        beyond = [late - base for base in self.windows.T]
        return [own, late - self.chance(), *(own - other for other in others)], beyond

    def falls(self) -> list[Floats]:
        """The first third of the layers less the later ones: the model's, then the copies'."""
        every = np.concatenate([self.hits[None], self.shuffled])[:, :, 1:]
        first = _third(every.shape[2])
        return list(every[:, :, :first].mean(axis=2) - every[:, :, first:].mean(axis=2))

    def late(self) -> Floats:
        """The layers after the first third."""
        found: Floats = self.hits[:, 1 + _third(self.hits.shape[1] - 1) :].mean(axis=1)
        return found

    def fall(self, level: float) -> Estimate:
        """The fall, and what it is beyond that of shuffled weights, whichever is less.

        Some copies fall more than others on any text, so that the interval is over copies, too.
        """
        own, *others = self.falls()
        found = least_gain([own, own - np.mean(others, axis=0)], self.counts, level=level)
        return among_copies(found, [float(of.sum()) / self.counts.sum() for of in others])

    def depth(self, level: float, resamples: int, seed: int) -> Estimate:
        """At which share of the depth half of the fall is done, over resampled sentences."""
        hits, counts = self.hits, self.counts.astype(np.float64)
        weights = bootstrap_weights(len(hits), resamples, seed).astype(np.float64)
        shares = (weights @ hits) / (weights @ counts)[:, None]  # (resamples, layers)
        drawn = np.array([half_fallen(row) for row in shares])
        tail = (1 - level) / 2
        low, high = np.quantile(drawn, (tail, 1 - tail))
        value = half_fallen(hits.sum(axis=0) / counts.sum())
        return Estimate(value, min(value, low), max(value, high), len(hits), level, "sentences")


def half_fallen(shares: Floats) -> float:
    """The share of the depth at which a row (input, then layers) is half down from top to bottom.

    The input is at 0, the last layer at 1; between layers it is on a line.
    """
    top = int(shares.argmax())
    half = (shares[top] + shares[top:].min()) / 2
    below = [at for at in range(top + 1, len(shares)) if shares[at] <= half]
    if not below:
        return 1.0
    at = below[0]
    step = shares[at - 1] - shares[at]
    past = (shares[at - 1] - half) / step if step > 0 else 1.0
    return float((at - 1 + past) / (len(shares) - 1))


def _third(layers: int) -> int:
    return max(1, layers // 3)
