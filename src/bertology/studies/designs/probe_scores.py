"""What probes told of one task, by test sentence and layer, and gains over what they must beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.arrays import Floats, Ints
from bertology.stats import Estimate
from bertology.stats.best_of_many import leading, picked_on_other_half
from bertology.stats.crossed import joint_freedom
from bertology.stats.layer_orders import in_this_order
from bertology.stats.least_means import least_means
from bertology.studies.designs.shares import per_item

if TYPE_CHECKING:
    import xarray as xr

_MIDDLE = (0.4, 0.8)  # of the depth


class TaskScores:
    """What was measured of one task, by test sentence; layer 0 of the arrays is the input.

    `shuffled` are the hits of copies with shuffled weights (copies, N, layers).
    """

    def __init__(self, part: xr.Dataset, copies: Sequence[xr.Dataset], task: int) -> None:
        self.name = str(part["task"].to_numpy()[task])
        self.hits, self.control = (
            part[name].to_numpy()[:, task].astype(np.float64) for name in ("hits", "control")
        )
        self.shuffled: Floats = np.stack(
            [copy["hits"].to_numpy()[:, task].astype(np.float64) for copy in copies]
        )
        self.counts: Ints = part["counts"].to_numpy()[:, task].astype(np.int64)
        self.frequent: Floats = part["frequent"].to_numpy()[:, task].astype(np.float64)
        self.code: Floats = part["code"].to_numpy()[task]
        self._by_seed = part["by_seed"].isel(task=task)
        told = part["about"].to_numpy()[task]
        self.about = {str(name): int(n) for name, n in zip(part["what"].values, told, strict=True)}
        """What was counted of its questions, see `annotated.probe_questions.ABOUT`."""

    def share(self, hits: Floats) -> Floats:
        """Of all questions: (layers,)."""
        found: Floats = hits.sum(axis=0) / max(self.counts.sum(), 1)
        return found

    def spread(self, score: str) -> Floats:
        """(layers,): the standard deviation over seeds; NaN of one seed.

        Of hits `beyond` the control task as a share of all questions, or of the bits of a label's
        `code`.
        """
        values = self._by_seed.sel(score=score).to_numpy()  # (seeds, layers)
        if len(values) < 2:
            return np.full(values.shape[1], np.nan)
        over = self.counts.sum() if score == "beyond" else self.about["labels"]
        found: Floats = values.std(axis=0, ddof=1) / max(over, 1)
        return found

    def best(self) -> tuple[int, Floats]:
        """The best layer on all test sentences, and the hits of the cross-fitted best."""
        return best_layer(self.hits[:, 1:], self.counts)

    def baselines(self) -> dict[str, list[Floats]]:
        """The words' most frequent label, the input, and the best layers of shuffled weights.

        A gain over the first is what claims state; the others are its controls.
        """
        copies = [best_layer(copy[:, 1:], self.counts)[1] for copy in self.shuffled]
        return {
            "the words' most frequent label": [self.frequent],
            "the input": [self.hits[:, 0]],
            "shuffled weights": copies,
        }

    def best_copy(self) -> Floats:
        """Of all questions: the share (layers,) of the best copy with shuffled weights."""
        found: Floats = np.max([self.share(copy) for copy in self.shuffled], axis=0)
        return found

    def among_best(self, level: float) -> NDArray[np.bool_]:
        """The layers (input first) that are not surely worse than the best one."""
        there = self.counts > 0
        found = leading(per_item(self.hits[there].T, self.counts[there]))
        return ~(found.p_adjusted < 1 - level)

    def gains(self) -> dict[str, list[Floats]]:
        """Hits of the cross-fitted best layer beyond those of each baseline."""
        _, picked = self.best()
        return {name: [picked - base for base in of] for name, of in self.baselines().items()}

    def gain(self, *, level: float) -> Estimate:
        """What claims are judged on: the gain over words, with controls."""
        return controlled_gain(self.gains(), self.counts, level=level)

    def least_gain(self, *, level: float, families: int = 1) -> Estimate:
        """The smallest of all gains, as tables show it."""
        rows = [row for of in self.gains().values() for row in of]
        return least_gain(rows, self.counts, level=level, families=families)

    def beyond_copies(self, level: float) -> Estimate:
        """The best layer less that of shuffled weights, over sentences and copies."""
        copies = [best_layer(copy[:, 1:], self.counts)[1] for copy in self.shuffled]
        found = least_gain([self.best()[1] - np.mean(copies, axis=0)], self.counts, level=level)
        return among_copies(found, [float(of.sum()) / self.counts.sum() for of in copies])

    def told(self, *, level: float, families: int = 1) -> bool:
        """Whether some layer surely tells it better than all baselines."""
        return self.least_gain(level=level, families=families).low > 0


def among_copies(found: Estimate, values: Sequence[float]) -> Estimate:
    """What a model has beyond the mean of copies, with an interval over these, too.

    Copies with shuffled weights differ among each other by more than sentences do: the model is set
    against their mean, as one more copy would be (Student's t). More sentences do not change how
    copies differ, and at another level the quantile of a few copies grows most.
    """
    few = len(values) - 1
    spread = float(np.std(values, ddof=1)) * np.sqrt(1 + 1 / len(values))
    reach = spread * float(stdtrit(few, (1 + found.level) / 2))
    sides = found.value - found.low, found.high - found.value
    below, above = (float(np.hypot(side, reach)) for side in sides)
    many = found.freedom or found.n - 1
    whole = (below + above) / 2
    return replace(
        found,
        low=found.value - below,
        high=found.value + above,
        lasting=reach / whole if whole > 0 else 0.0,
        freedom=min(joint_freedom((reach, few), (side, many), found.level) for side in sides),
        remedy="copies with shuffled weights differ by as much, which more data do not change",
    )


def best_layer(hits: Floats, counts: Ints) -> tuple[int, Floats]:
    """The best of layers (N, L) on all test sentences, and the hits (N,) of the cross-fitted best.

    `counts` are the questions of each sentence; one without any says nothing.
    """
    shares = np.where((counts > 0)[:, None], hits, np.nan)
    picked = picked_on_other_half(shares[:, None])
    found = np.take_along_axis(hits, picked, axis=1)[:, 0]
    return int(np.nansum(shares, axis=0).argmax()), found


def rows_of_tasks(hits: Sequence[tuple[Floats, Ints]]) -> Floats:
    """(tasks × layers, N): values of sentences whose means are shares, of hits and questions.

    Tasks may have other sentences; where one has fewer, the rest is NaN.
    """
    rows = [per_item(of.T, counts) for of, counts in hits]
    n = max(row.shape[1] for row in rows)
    return np.concatenate(
        [np.pad(row, ((0, 0), (0, n - row.shape[1])), constant_values=np.nan) for row in rows]
    )


def least_gain(
    gains: Sequence[Floats], counts: Ints, *, level: float, families: int = 1
) -> Estimate:
    """The smallest of some gains (N,) in hits; all must be above zero for it to be.

    With `families`, bounds hold for so many such questions together. Where no sentence differs from
    a baseline, other sentences still may: as large a share of them as n would miss by chance.
    """
    there = counts > 0
    rows = [per_item(gain[there][None], counts[there])[0] for gain in gains]
    return least_mean(rows, level=level, families=families)


def controlled_gain(
    gains: Mapping[str, Sequence[Floats]], counts: Ints, *, level: float
) -> Estimate:
    """The gain over what is named first, with those over all that is named then as its controls."""
    found = {name: least_gain(rows, counts, level=level) for name, rows in gains.items()}
    return found.pop(next(iter(gains))).with_controls(found)


def least_mean(values: Sequence[Floats], *, level: float, families: int = 1) -> Estimate:
    """The smallest mean of some rows (N,) over the same sentences; see `least_gain`."""
    n, rest = len(values[0]), (1 - level) / families
    rows = [row[None] for row in values]
    differ = [row for row in rows if np.any(row)]
    bounds = []
    if differ:
        found = least_means(differ, level=1 - rest * len(differ) / len(rows))
        bounds.append((found.value[0], found.low[0], found.high[0]))
    if len(differ) < len(rows):
        missed = 1 - (rest / 2 / len(rows)) ** (1 / n)
        bounds.append((0.0, -missed, missed))
    value, low, high = (float(np.clip(min(side), -1, 1)) for side in zip(*bounds, strict=True))
    return Estimate(value, low, high, n, level, "sentences")


def middle_over_ends(hits: Floats, counts: Ints, *, level: float) -> Estimate | None:
    """The middle of layers (N, L) less their first and their last part, whichever is more.

    A model of one or two layers has no middle.
    """
    if not (parts := parts_of_depth(hits)):
        return None
    first, middle, last = parts
    found = least_gain([middle - end for end in (first, last)], counts, level=level)
    return in_this_order(found, hits.sum(0), middle_less_ends)


def lower_over_others(hits: Floats, counts: Ints, *, level: float) -> Estimate | None:
    """The first part of layers (N, L) less the middle and the last, whichever is more."""
    if not (parts := parts_of_depth(hits)):
        return None
    first, *others = parts
    found = least_gain([first - other for other in others], counts, level=level)
    return in_this_order(found, hits.sum(0), lower_less_others)


def middle_less_ends(values: Floats) -> Floats:
    """Of values (…, L): the mean of the middle less that of the first or last part."""
    first, middle, last = parts_of_depth(values)
    return np.minimum(middle - first, middle - last)


def lower_less_others(values: Floats) -> Floats:
    """Of values (…, L): the mean of the first part less that of the middle or last."""
    first, middle, last = parts_of_depth(values)
    return np.minimum(first - middle, first - last)


def parts_of_depth(values: Floats) -> list[Floats]:
    """Means over the first, the middle and the last of layers (…, L); none of two layers.

    The middle lies between two and four fifths of the depth: layers 5 to 9 of 12 and 10 to 19 of
    24, counted from 1. So the published ones are in it (6 to 9, and 14 to 19).
    """
    layers = values.shape[-1]
    depth = np.arange(1, layers + 1) / layers
    parts = [depth <= _MIDDLE[0], (depth > _MIDDLE[0]) & (depth <= _MIDDLE[1]), depth > _MIDDLE[1]]
    return [values[..., part].mean(-1) for part in parts] if all(p.any() for p in parts) else []
