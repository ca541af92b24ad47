"""Tables and evidence of `word-senses`, from what was measured of the model and its copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.stats import Estimate
from bertology.stats.skewed_means import FEWEST
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.shares import per_item
from bertology.studies.designs.tables import bounded, labelled_table, with_bounds
from bertology.studies.geometry.word_senses.scores import Told, over_lemmas, picked, word_means

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Range = tuple[float, float]
CLUSTERS: dict[str, tuple[Range, Range]] = {
    "ari": ((-0.5, 1.0), (-0.5, 1.0)),
    "v_measure": ((0.0, 1.0), (-1.0, 1.0)),
    "silhouette": ((-1.0, 1.0), (-2.0, 2.0)),
}
"""Where each score lies by itself, and beyond that of dealt senses."""
_FEWEST_LEMMAS = 10  # for clusters to be judged
_NOT_TOLD = "not judged: neighbours do not surely tell senses beyond all that must be beaten"
_MOST_SENSES = 5  # more are told together
_KEPT = 500  # lemmas in a table
_GAINS = {"ari": "cluster_gain", "v_measure": "v_measure_gain", "silhouette": "silhouette_gain"}


class Senses:
    """What neighbours tell, by unit and by lemma; what clusters are, by lemma."""

    def __init__(
        self,
        model: xr.Dataset,
        copies: Sequence[xr.Dataset],
        study: Resampled,
        *,
        k: Sequence[int],
        per_sense: int,
    ) -> None:
        self.model, self.study = model, study
        self.k, self.per_sense = k, per_sense
        self.copies = copies
        self.layers = [-1, *range(model.sizes["layer"] - 1)]
        self.told = self._told("unit", str(model.attrs["unit"]))
        # (scores, lemmas, layers) beyond dealt senses
        self.excess = _excess(model)
        self.of_copies = [_excess(copy) for copy in copies]

    def _told(self, by: str, unit: str) -> Told:
        """By unit all answers count the same; by lemma each lemma does."""
        counts = _array(self.model, f"all_by_{by}").astype(np.int64)
        there = counts > 0

        def of(part: xr.Dataset, name: str = "") -> NDArray[Any]:
            found = _array(part, f"{name}by_{by}")[there]
            if by == "unit":
                return found
            return found / counts[there].reshape(-1, *(1,) * (found.ndim - 1))

        hits = of(self.model)
        return Told(
            hits,
            counts[there] if by == "unit" else np.ones(int(there.sum()), np.int64),
            [of(self.model, "frequent_"), of(self.model, "static_")],
            [hits[:, :, 0]],
            [of(copy) for copy in self.copies],
            unit,
        )

    @property
    def clustered(self) -> bool:
        """Whether there are lemmas enough for intervals around what their clusters are."""
        return int(self.excess.shape[1]) >= FEWEST

    def evidence(self) -> tuple[dict[str, Estimate | None], dict[str, str]]:
        """What claims are judged on."""
        level = self.study.level
        around = _array(self.model, "context_by_unit")[_array(self.model, "all_by_unit") > 0]
        gain = self.told.gain(level=level)
        found: dict[str, Estimate | None] = {
            "sense_gain": gain,
        }
        reasons: dict[str, str] = {}
        by_lemma = self._told("lemma", "lemmas")
        if len(by_lemma.counts) >= FEWEST:
            found["lemma_mean_gain"] = by_lemma.gain(level=level)
        else:
            reasons["lemma_mean_gain"] = (
                f"no interval over lemmas: {len(by_lemma.counts)} were asked about, and {FEWEST} "
                "are needed"
            )
        if gain.surely_there:
            found["beyond_context"] = self.told.beyond(around, level=level)
        else:  # two ways of guessing differ, too, and occurrences that are neighbours err together
            reasons["beyond_context"] = _NOT_TOLD
        for name in CLUSTERS:
            if self.excess.shape[1] >= _FEWEST_LEMMAS:
                found[_GAINS[name]] = self._cluster_gain(name)
            else:
                reasons[_GAINS[name]] = (
                    f"not judged: {self.excess.shape[1]} lemmas have two senses with "
                    f"{self.per_sense} occurrences or more, each in {self.told.unit} of its "
                    f"own; {_FEWEST_LEMMAS} are needed"
                )
        return found, reasons

    def _cluster_gain(self, name: str) -> Estimate:
        at = list(CLUSTERS).index(name)
        copies = [copy[at] for copy in self.of_copies]
        within = CLUSTERS[name][1]
        return over_lemmas(self.excess[at], copies, level=self.study.level, within=within)

    def _means(self, name: str, rows: Floats, within: Range = (0.0, 1.0)) -> dict[str, Any]:
        """Columns of means of rows (V, lemmas), whose bounds hold for each row alone."""
        sides = word_means(rows, level=self.study.level, within=within)
        return dict(zip((name, f"{name}_low", f"{name}_high"), sides, strict=True))

    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables; that of layers first."""
        found = {
            "layers": self._layers(),
            "scores": self._scores(),
            "neighbours": self._neighbours(),
            "senses": self._by_senses(),
            "lemmas": self._lemmas(),
            "occurrences": self._occurrences(),
        }
        return {name: table for name, table in found.items() if table is not None}

    def _layers(self) -> pd.DataFrame:
        """Of the number of neighbours that is best on all."""
        _, k, _ = self.told.best()
        rows = per_item(self.told.hits[:, k].T.astype(np.float64), self.told.counts)
        means = self.study.means(rows, within=(0.0, 1.0), reach=1.0)
        columns: dict[str, Any] = dict(with_bounds("accuracy", means, p=False))
        columns |= self._means(
            "lemma_mean", self._told("lemma", "lemmas").hits[:, k].T.astype(np.float64)
        )
        shares = [copy[:, k].sum(axis=0) / self.told.counts.sum() for copy in self.told.copies]
        columns["shuffled_accuracy"] = np.mean(shares, axis=0)
        if self.clustered:
            for at, (name, (within, _)) in enumerate(CLUSTERS.items()):
                columns |= self._means(name, _array(self.model, "clusters")[at].T, within)
                columns[f"{name}_dealt"] = _array(self.model, "dealt")[at].mean(axis=0)
                beyond = np.mean([copy[at].mean(axis=0) for copy in self.of_copies], axis=0)
                columns[f"{name}_shuffled"] = beyond + columns[f"{name}_dealt"]
        return labelled_table({"layer": self.layers}, columns)

    def _scores(self) -> pd.DataFrame:
        """The best layer and its baselines: all answers, the mean over lemmas, clusters."""
        import pandas as pd

        rows = []
        around = "context_by_"
        for name, by in (("accuracy", "unit"), ("lemma_mean", "lemma")):
            told = self.told if by == "unit" else self._told("lemma", "lemmas")
            layer, k, own = told.best()
            row = per_item(own, told.counts)[None]
            bounds: dict[str, Any] = self._means("value", row)
            if by == "unit":
                means = self.study.means(row, within=(0.0, 1.0), reach=1.0)
                bounds = dict(with_bounds("value", means, p=False))
            there = _array(self.model, f"all_by_{by}") > 0
            bag = _array(self.model, f"{around}{by}")[there]
            bag = bag if by == "unit" else bag / _array(self.model, "all_by_lemma")[there, None]
            total, gain = told.counts.sum(), told.gain(level=self.study.level)
            reach = _array(self.model, f"reachable_by_{by}")[there]
            if by == "lemma":
                reach = reach / _array(self.model, "all_by_lemma")[there]
            rows.append(
                {
                    "score": name,
                    "n": row.shape[1],
                    "layer": layer,
                    "k": self.k[k],
                    **{side: float(of[0]) for side, of in bounds.items()},
                    "frequent": told.plain[0].sum() / total,
                    "static": told.plain[1].sum() / total,
                    "input": told.hits[:, :, 0].sum(axis=0).max() / total,
                    "shuffled": np.mean([of.sum() for of in told.of_copies()]) / total,
                    "context": bag.sum(axis=0).max() / total,
                    "reachable": reach.sum() / total,
                    **bounded("gain", gain.beyond_all()),
                }
            )
        if self.clustered:
            for at, (name, (_, within)) in enumerate(CLUSTERS.items()):
                layer, best = picked(self.excess[at][:, 1:])
                bounds = self._means("value", best[None], within)
                rows.append(
                    {
                        "score": name,
                        "n": len(best),
                        "layer": layer,
                        **{side: float(of[0]) for side, of in bounds.items()},
                        "input": self.excess[at][:, 0].mean(),
                        "shuffled": np.mean(
                            [picked(copy[at][:, 1:])[1].mean() for copy in self.of_copies]
                        ),
                        **bounded("gain", self._cluster_gain(name).beyond_all()),
                    }
                )
        return pd.DataFrame(rows)

    def _neighbours(self) -> pd.DataFrame:
        """The share of right answers by number of neighbours and layer."""
        shares = self.told.hits.sum(axis=0) / self.told.counts.sum()
        return labelled_table({"k": self.k, "layer": self.layers}, {"accuracy": shares})

    def _by_senses(self) -> pd.DataFrame | None:
        """Clusters of the cross-fitted best layer, by number of senses."""
        if not self.clustered:
            return None
        kinds = np.minimum(_array(self.model, "word_kinds").astype(np.int64), _MOST_SENSES)
        groups = np.unique(kinds)
        rows: dict[str, Any] = {"lemmas": [int((kinds == of).sum()) for of in groups]}
        for at, (name, (_, within)) in enumerate(CLUSTERS.items()):
            _, best = picked(self.excess[at][:, 1:])
            own = [self._means(name, best[None, kinds == of], within) for of in groups]
            rows |= {side: np.concatenate([found[side] for found in own]) for side in own[0]}
        return labelled_table({"senses": groups}, rows)

    def _lemmas(self) -> pd.DataFrame:
        """Right answers of the best layer by lemma, the most frequent first."""
        import pandas as pd

        layer, k, _ = self.told.best()
        counts = _array(self.model, "all_by_lemma").astype(np.int64)
        order = [at for at in np.argsort(-counts, kind="stable")[:_KEPT] if counts[at] > 0]
        place = {int(lemma): at for at, lemma in enumerate(_array(self.model, "word_lemma"))}
        table = pd.DataFrame(
            {
                "lemma": [str(name) for name in self.model["lemma"].to_numpy()[order]],
                "senses": _array(self.model, "kinds").astype(np.int64)[order],
                "n": counts[order],
                "accuracy": _array(self.model, "by_lemma")[order, k, layer + 1] / counts[order],
                "frequent": _array(self.model, "frequent_by_lemma")[order] / counts[order],
            }
        )
        clusters = _array(self.model, "clusters")
        for at, name in enumerate(CLUSTERS):
            if len(place):
                best = picked(self.excess[at][:, 1:])[0] + 1
                own = [clusters[at, place[i], best] if i in place else np.nan for i in order]
                table[name] = own
        return table

    def _occurrences(self) -> pd.DataFrame | None:
        """Points of the picture: a row for each word, method, layer and occurrence."""
        import pandas as pd

        model = self.model
        planes = model["plane"].to_numpy()  # (methods, layers, points, 2)
        if not planes.shape[2]:
            return None
        names = model["lemma"].to_numpy()
        place = model["point_place"].to_numpy()
        about = pd.DataFrame(
            {
                "lemma": [str(names[int(at)]) for at in model["point_lemma"].to_numpy()],
                "sense": [str(sense) for sense in model["point_sense"].to_numpy()],
                "text": [str(text) for text in model["point_text"].to_numpy()],
                "start": place[:, 0],
                "end": place[:, 1],
            }
        )
        found = [
            about.assign(layer=int(layer), method=str(method), x=xy[:, 0], y=xy[:, 1])
            for method, of in zip(model["method"].to_numpy(), planes, strict=True)
            for layer, xy in zip(model["drawn"].to_numpy(), of, strict=True)
        ]
        columns = ["lemma", "sense", "layer", "method", "x", "y", "text", "start", "end"]
        return pd.concat(found, ignore_index=True)[columns]


def _excess(part: xr.Dataset) -> Floats:
    return np.asarray(_array(part, "clusters") - _array(part, "dealt"), np.float64)


def _array(part: xr.Dataset, name: str) -> NDArray[Any]:
    found: NDArray[Any] = part[name].to_numpy()
    return found
