"""What `outlier-dimensions` concludes from its passes: tables, and what claims are judged on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats
from bertology.stats import Estimate
from bertology.stats.contrasts import ratio_of_means
from bertology.stats.over_draws import jackknifed, over_draws
from bertology.stats.partial_means import partial_means
from bertology.studies.designs.layer_places import first_upper
from bertology.studies.designs.tables import with_bounds
from bertology.studies.geometry.outlier_dimensions.questions import (
    DRAW,
    LONE,
    SINGLE,
    TOGETHER,
    DimensionSet,
)

if TYPE_CHECKING:
    import pandas as pd

    from bertology.stats.partial_means import PartialMeans
    from bertology.studies.designs.parts import Gathered


@dataclass(frozen=True)
class Effects:
    """What disabling did, over the texts; `sets` are in the order of the variants after intact."""

    seen: Gathered
    sets: Sequence[DimensionSet]
    touched: Sequence[int]  # weights that each set zeroes
    options: dict[str, Any]  # level, resamples, seed

    # Losses --------------------------------------------------------------------------------------

    @property
    def predicts(self) -> bool:
        """Whether the model predicts anything in two texts at least."""
        return int(np.isfinite(self.seen["losses"][:, 0]).sum()) > 1

    @property
    def rises(self) -> Floats:
        """(sets, N)"""
        losses = self.seen["losses"].astype(np.float64)
        return (losses[:, 1:] - losses[:, :1]).T

    def rows_of(self, kind: str) -> list[int]:
        """Which of the sets are of a kind; of those together only the one of all weights."""
        return [i for i, s in enumerate(self.sets) if s.kind == kind and s.scale and s.bias]

    @property
    def watched(self) -> list[DimensionSet]:
        """The outliers and each draw."""
        return [s for s in self.sets if s.watched]

    def loss_rise(self) -> Estimate | None:
        """Of the outliers together."""
        (row,) = self.rows_of(TOGETHER)
        return self._one(self.rises[row])

    def cost_over_random(self) -> Estimate | None:
        """By how much more the loss rises than without random dimensions."""
        (row,), draws = self.rows_of(TOGETHER), self.rows_of(DRAW)
        return self._over([self.rises[row] - self.rises[d] for d in draws])

    def knowledge_lost(self, most: int | None = None) -> Estimate | None:
        """The rise as a share of what the intact model knows beyond how frequent answers are.

        Of the outliers together; where they have more than `most` weights, of the one that costs
        most: each half of the texts is judged by the one that costs most on the other half.
        """
        (row,) = self.rows_of(TOGETHER)
        rises = self.rises[row]
        if most is not None and self.touched[row] > most:
            alone = [i for i in self.rows_of(SINGLE) if self.touched[i] <= most]
            rises = self._costliest(self.rises[alone])
        if not self.knows:
            return None
        both = [ratio_of_means(rises, known, self.options["level"]) for known in self._known()]
        found = [e for e in both if e is not None]
        if len(found) < 2:
            return None
        middle = ratio_of_means(rises, self._known().mean(axis=0), self.options["level"])
        assert middle is not None
        # From below by the most that it may know, from above by the least.
        low, high = min(e.low for e in found), max(e.high for e in found)
        return replace(middle, low=low, high=high, unit="texts")

    def _known(self) -> Floats:
        """(2, N) by how much the intact model beats frequency alone: the least and the most."""
        losses = self.seen["losses"][:, :1].astype(np.float64)
        found: Floats = (self.seen["uninformed"].astype(np.float64) - losses).T
        return found

    @property
    def knows(self) -> bool:
        """Whether the intact model surely beats every model that knows frequencies only."""
        least = self._one(self._known()[0])
        return least is not None and least.low > 0

    def knowledge(self) -> Estimate | None:
        """What the intact model knows beyond how frequent answers are, in nats."""
        least, most = (self._one(row) for row in self._known())
        if least is None or most is None:
            return None
        low, high = min(least.low, most.low), max(least.high, most.high)
        return replace(least, value=(least.value + most.value) / 2, low=low, high=high)

    def fewest_touched(self) -> int:
        """Weights of the smallest set of outliers."""
        return min(self.touched[i] for i in (*self.rows_of(TOGETHER), *self.rows_of(SINGLE)))

    @staticmethod
    def _costliest(rises: Floats) -> Floats:
        """(N,) of (sets, N): each half has the set that is largest in the other one."""
        found = np.empty(rises.shape[1])
        for half in (0, 1):
            others = rises[:, 1 - half :: 2]
            sums = np.nansum(others, axis=1)
            found[half::2] = rises[sums.argmax(), half::2]
        return found

    # The sink ------------------------------------------------------------------------------------

    @property
    def has_sink(self) -> bool:
        """Whether attention to [SEP] was seen in two texts at least, and a depth to speak of."""
        sep = self.seen["sep"]
        deep = sep.shape[2] > 1
        return deep and int(np.isfinite(sep[:, 0, 0]).sum()) > 1

    def _upper_sep(self) -> Floats:
        """(N, watched): attention to [SEP] from a third of the depth on, intact first."""
        sep = self.seen["sep"].astype(np.float64)
        found: Floats = sep[:, :, first_upper(sep.shape[2]) :].mean(-1)
        return found

    def sink_over_random(self) -> Estimate | None:
        """By how much more attention to [SEP] falls than without random dimensions."""
        if not self.has_sink:
            return None
        upper = self._upper_sep()
        return self._over([upper[:, i] - upper[:, 1] for i in range(2, upper.shape[1])])

    def sink_change(self) -> Estimate | None:
        """Attention to [SEP] without the outliers, less that of the intact model."""
        if not self.has_sink:
            return None
        upper = self._upper_sep()
        return self._one(upper[:, 1] - upper[:, 0], (-1.0, 1.0))

    def magnitude_change(self) -> Estimate | None:
        """Of the outliers' activations without the sink, in logarithms."""
        return self._one(self.seen["cut"][:, 0].astype(np.float64)) if self.has_sink else None

    def magnitude_over_random(self) -> Estimate | None:
        """By how much more the outliers' activations fall, without the sink, than random ones."""
        if not self.has_sink:
            return None
        cut = self.seen["cut"].astype(np.float64)
        return self._over([cut[:, i] - cut[:, 0] for i in range(1, cut.shape[1])])

    # Frequency -----------------------------------------------------------------------------------

    @property
    def dimensions(self) -> list[int]:
        """Those whose activations were looked at."""
        return sorted({d for s in self.watched for d in s.dimensions})

    def frequency_links(self) -> Floats:
        """(dimensions,) mean over layers of |r| of a token's |activation| and its frequency."""
        return self._links(self._moments().sum(axis=0))

    def frequency_over_random(self) -> Estimate | None:
        """By how much more the outliers go with frequency than random dimensions do."""
        place = {d: i for i, d in enumerate(self.dimensions)}
        sets = [[place[d] for d in s.dimensions] for s in self.watched]

        def leads(total: Floats) -> Floats:
            links = self._links(total)
            own, *others = (links[chosen].mean() for chosen in sets)
            return np.array([own - other for other in others])

        moments = self._moments()
        if len(sets) < 2 or (moments[:, 0, 0, 3] > 0).sum() < 2:
            return None
        used = moments[moments[:, 0, 0, 3] > 0]
        return over_draws(jackknifed(used, leads), **self.options, unit="groups of texts")

    def _moments(self) -> Floats:
        """(groups, layers, dimensions, 6): Σ x, Σ x², Σ x f, n, Σ f, Σ f²."""
        sums, tokens = self.seen["sums"], self.seen["tokens"]
        wide = np.broadcast_to(tokens[:, None, None], (*sums.shape[:3], 3))
        return np.concatenate([sums, wide], axis=-1)

    @staticmethod
    def _links(total: Floats) -> Floats:
        x, xx, xf, n, f, ff = np.moveaxis(total, -1, 0)
        n = np.maximum(n, 1.0)
        both = xf - x * f / n
        spreads = np.maximum(xx - x * x / n, 0) * np.maximum(ff - f * f / n, 0)
        size = np.sqrt(spreads)
        r = np.divide(both, size, out=np.zeros_like(both), where=size > 1e-12)
        found: Floats = np.abs(r).mean(axis=0)
        return found

    # Tables --------------------------------------------------------------------------------------

    def tables(self) -> dict[str, pd.DataFrame]:
        """`sets`: the intact model, sets of outliers, the middle and the most costly draws; and
        `draws`: each draw. Bounds hold for all of them together.
        """
        import pandas as pd

        every = self._table()
        random = every["kind"].isin([DRAW, LONE])
        short = [every[~random]]
        for kind, name in ((DRAW, "random"), (LONE, "one random")):
            drawn = every[every["kind"] == kind].sort_values("loss_rise")
            if np.isfinite(drawn["loss_rise"]).any():
                some, n = drawn.iloc[[len(drawn) // 2, -1]], len(drawn)
                names = [f"{name}, middle of {n}", f"{name}, most costly of {n}"]
                short.append(some.assign(set=names))
        found = {"sets": pd.concat(short, ignore_index=True)}
        if random.any():
            found["draws"] = every[random].reset_index(drop=True)
        return found

    def _table(self) -> pd.DataFrame:
        import pandas as pd

        losses, right = (self.seen[n].astype(np.float64) for n in ("losses", "right"))
        rises = self._means(self.rises)
        bounds = with_bounds("loss_rise", rises)
        place = [0, *(1 + i for i, s in enumerate(self.sets) if s.watched)]
        columns: dict[str, ArrayLike] = {
            "set": ["intact", *(s.name for s in self.sets)],
            "kind": ["intact", *(s.kind for s in self.sets)],
            "dimensions": ["", *(" ".join(map(str, s.dimensions)) for s in self.sets)],
            "weights": [0, *self.touched],
            "loss": _mean(losses),
            "perplexity": np.exp(_mean(losses)),
            **{n: [np.nan, *np.asarray(c, float)] for n, c in bounds.items()},
            "right": _mean(right),
        }
        for name, values in {**degenerate(self.seen["best"]), **self._links_of_sets()}.items():
            column = np.full(len(self.sets) + 1, np.nan)
            column[place] = values
            columns[name] = column
        return pd.DataFrame(columns)

    def _links_of_sets(self) -> dict[str, Floats]:
        """Of the intact model and each watched set: how much its activations go with frequency, how
        much attention to [SEP] changes without it, and how much its activations change (in
        logarithms) without that attention.
        """
        links, place = self.frequency_links(), {d: i for i, d in enumerate(self.dimensions)}
        own = [links[[place[d] for d in s.dimensions]].mean() for s in self.watched]
        found = {"frequency_link": np.array([np.nan, *own])}
        if self.has_sink:
            upper = self._upper_sep()
            found["sep_change"] = _mean(upper - upper[:, :1])
            found["sep_change"][0] = np.nan
            found["size_change"] = np.array([np.nan, *_mean(self.seen["cut"].astype(np.float64))])
        return found

    def by_layer(self) -> dict[str, ArrayLike]:
        """Attention to [SEP] and the outliers' size, by layer."""
        found: dict[str, ArrayLike] = {}
        if not self.has_sink:
            return found
        sep = self.seen["sep"].astype(np.float64)
        layers = sep.shape[2]
        rows = {"sep_intact": sep[:, 0], "sep_without": sep[:, 1]}
        if sep.shape[1] > 2:
            rows["sep_random"] = sep[:, 2:].mean(1)
        means = self._means(np.concatenate([r.T for r in rows.values()]), within=(0.0, 1.0))
        for i, name in enumerate(rows):
            some = slice(i * layers, (i + 1) * layers)
            found[name] = means.value[some]
            found[f"{name}_low"] = means.simultaneous_low[some]
            found[f"{name}_high"] = means.simultaneous_high[some]
        sizes = self.seen["sums"].sum(axis=0)[..., 0]  # (layers, dimensions)
        n = max(float(self.seen["tokens"][:, 0].sum()), 1.0)
        place = {d: i for i, d in enumerate(self.dimensions)}
        own = [place[d] for d in self.watched[0].dimensions]
        other = [i for i in range(len(place)) if i not in own]
        found["outlier_size"] = sizes[:, own].mean(1) / n
        found["outlier_size_without_sink"] = self.seen["cut_sums"][:, own].mean(1) / n
        found["random_size"] = sizes[:, other].mean(1) / n if other else np.full(layers, np.nan)
        return found

    def _one(
        self, values: Floats, within: tuple[float, float] = (-np.inf, np.inf)
    ) -> Estimate | None:
        found = partial_means(values[None], within=within, **self.options).estimate(0)
        return None if found is None else found.counting("texts")

    def _means(self, rows: Floats, within: tuple[float, float] = (-np.inf, np.inf)) -> PartialMeans:
        return partial_means(rows, within=within, **self.options)

    def _over(self, rows: Sequence[Floats]) -> Estimate | None:
        return over_draws(np.stack(rows), **self.options, unit="texts") if rows else None


def degenerate(best: NDArray[Any]) -> dict[str, Floats]:
    """Of predictions (places, variants): how often the commonest comes, and their entropy.

    A model that says the same everywhere has a share of 1 and an entropy of 0 bits.
    """
    shares, entropies = [], []
    for column in best.T:
        _, counts = np.unique(column, return_counts=True)
        odds = counts / max(counts.sum(), 1)
        shares.append(odds.max() if len(odds) else np.nan)
        entropies.append(float(-(odds * np.log2(odds)).sum()) if len(odds) else np.nan)
    return {"commonest": np.array(shares, float), "entropy": np.array(entropies, float)}


def _mean(values: Floats) -> Floats:
    """Over the first axis, of what is there."""
    there = np.isfinite(values)
    sums = np.where(there, values, 0.0).sum(axis=0)
    found: Floats = np.where(there.any(0), sums / np.maximum(there.sum(0), 1), np.nan)
    return found
