"""Which layers hold the same: the answer, measures and figures of layer-similarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bertology.report import drawings
from bertology.results.answers import largest_row, listed, of_row, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import LayerGrid, Measure, Tracked
from bertology.results.provenance import short_model
from bertology.results.result import Result
from bertology.studies.designs.last_layers import as_large_as
from bertology.studies.designs.mix_scores import bounds_of

_READING = {
    "cka": "1: the same up to rotation and size; 0: nothing in common.",
    "cca": "1: each main direction of one is found in the other; 0: none is.",
    "rv": "As CKA, but too high where words are few.",
    "rv_modified": "As CKA; products of a word with itself are left out.",
    "shuffled_weights": "What the same network has in common without training.",
}
_TITLES = {
    "cka": "How alike layers are (CKA)",
    "cca": "How alike the main directions of layers are (CCA)",
    "rv": "How alike layers are (RV)",
    "rv_modified": "How alike layers are (modified RV)",
    "shuffled_weights": "How alike layers are where weights are shuffled (CKA)",
}
_UNITS = {
    "cka": "CKA",
    "cca": "mean canonical correlation",
    "rv": "RV",
    "rv_modified": "modified RV",
    "shuffled_weights": "CKA",
}
_ALIKE = 0.9  # CKA of all layers of a run that is called alike


class LayerSimilarityResult(Result):
    """How alike layers are.

    Table `layers`: CKA with the layer before (`neighbour`), with the layer of the same depth in the
    other model (`same`), and `change`, 1 − `same`. Table `nearest`: the most alike layer of the
    other model, picked on every second text, and its CKA in the rest. Table `pairs`: for each layer
    (-1 is what enters the first one) and each `other` layer, of the model `against` or of the same:
    `cka` without bias and `cca` on held-out texts, each with bounds that hold for all pairs
    together; `rv` and `rv_modified`; CKA with words in shuffled order (`shuffled_words`) and with
    shuffled weights (`shuffled_weights`: of the other model, or, where there is none, of both
    sides). Table `noise`: the change of each layer in noisy copies, and by training (`trained`) in
    the same texts.
    """

    @property
    def answer(self) -> str:
        """How alike the two are, and which layer differs most; or which layers are alike."""
        found, layers = self.evidence(), self.tables["layers"]
        if not self._between:
            alike = _runs(self._grid("cka_low"), _ALIKE)
            told = (
                f"all pairs surely above {_ALIKE} in {listed(alike)}"
                if alike
                else (f"no two layers are surely above {_ALIKE}")
            )
            return (
                f"Successive layers of {self._ours} have a CKA of {_shown(found, 'neighbours')} "
                f"(1: alike; shuffled weights: {self._neighbours_shuffled():.2f}); {told}."
            )
        row = largest_row(layers, "change")
        changed = plain(of_row(row, bounds_of("change")), ".3f")
        return (
            f"Layers of {self._ours} and {self._theirs} at the same depth have a mean CKA of "
            f"{_shown(found, 'same_depth')} (1: alike up to rotation and size; 0: nothing in "
            f"common); layer {int(row['layer'])} differs most, by {changed}."
        )

    def headline(self) -> str:
        """How many texts, and how far the weights moved where that can be said."""
        facts = self.facts
        told = f"Over {facts['examples']} {facts['unit']}; canonical correlations of "
        told += f"{facts['components']} components"
        if "weight_change" in facts:
            told += f"; the weights differ by {100 * facts['weight_change']:.2g} % of their length"
        return told

    def layer_grids(self) -> Sequence[LayerGrid]:
        """CKA and CCA of all pairs."""
        return [self._layer_grid(name) for name in ("cka", "cca")]

    def measures(self) -> Sequence[Measure]:
        """Each layer with the one before, and with the same layer of the other model."""
        found = []
        if self._between:
            found += [
                self._measure(
                    "same",
                    f"CKA with the layer of {self._theirs} at the same depth",
                    _READING["cka"],
                ),
                self._measure(
                    "change",
                    f"How far the layer is from that of {self._theirs}",
                    "0: the same up to rotation and size; 1: nothing in common.",
                    unit="1 − CKA",
                ),
            ]
        return [*found, self._measure("neighbour", "CKA with the layer before", _READING["cka"])]

    def over_training(self) -> Sequence[Tracked]:
        """Likeness with the other model, or of successive layers."""
        if self._between:
            label = f"likeness (CKA) of layers with those of {self._theirs}"
            return [Tracked("same_depth", label, layers="same", unit="CKA")]
        label = "likeness (CKA) of successive layers"
        return [Tracked("neighbours", label, layers="neighbour", unit="CKA")]

    def drawings(self) -> Sequence[Drawing]:
        """The grid of pairs, all measures of it, and what layers moved."""
        models = (self._ours, self._theirs)
        shown = [self._layer_grid(n) for n in ("cka", "cca", "rv", "shuffled_weights")]
        labels = ["CKA", "CCA, held out", "RV (too high)", "CKA, shuffled weights"]
        found = [
            drawings.layer_grids("pairs", shown[:1], self.about, models=models),
            drawings.layer_grids(
                "measures",
                shown,
                self.about,
                models=models,
                title="How alike layers are, by several measures",
                labels=labels,
            ),
        ]
        if not self._between:
            return [*found, drawings.bars(self.measure("neighbour"), self.about, name="layers")]
        return [*found, self._profile()]

    # --------------------------------------------------------------------------------------------

    @property
    def _between(self) -> bool:
        return "same" in self.tables["layers"]

    @property
    def _noise(self) -> bool:
        return "noise" in self.tables

    @property
    def _ours(self) -> str:
        return short_model(str(self.provenance.model.get("name")))

    @property
    def _theirs(self) -> str:
        if not self._between:
            return self._ours
        given = self.provenance.others.get("against", {}).get("name")
        return short_model(str(given or self.provenance.parameters["against"]))

    def _grid(self, column: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        table = self.tables["pairs"]
        rows = int(table["layer"].max()) + 2
        return table[column].to_numpy().reshape(rows, -1)

    def _layer_grid(self, column: str) -> LayerGrid:
        bounds = f"{column}_low" in self.tables["pairs"]
        return LayerGrid(
            name=column.replace("_", "-"),
            title=_TITLES[column],
            values=self._grid(column),
            unit=_UNITS[column],
            reading=_READING[column],
            low=self._grid(f"{column}_low") if bounds else None,
            high=self._grid(f"{column}_high") if bounds else None,
            other="against" if self._between else "",
        )

    def _measure(self, column: str, title: str, reading: str, unit: str = "CKA") -> Measure:
        return Measure.of_column(
            self.tables["layers"],
            column,
            name=column,
            title=title,
            unit=unit,
            bounds=bounds_of(column)[1:],
            reading=reading,
        )

    def _profile(self) -> Drawing:
        """What layers moved; also by noise, as it is and as claims are judged."""
        title = f"How far layers are from those of {self._theirs}"
        reading = "0: the same up to rotation and size."
        change = self.measure("change")
        if not self._noise:
            return drawings.profile(
                "layers", [change], self.about, title=title, reading=reading, labels=["change"]
            )
        return drawings.profile(
            "layers",
            [change, self._of_noise(scaled=False), self._of_noise(scaled=True)],
            self.about,
            title=title,
            reading=f"{reading} Claims are judged against the scaled noise: it moves states as "
            "much on average over layers, so that the question is where.",
            labels=["by training", "by noise of the same size", "noise, scaled"],
            shaded="intervals over examples; of noise, the range of copies",
        )

    def _of_noise(self, *, scaled: bool) -> Measure:
        """The mean of copies and their range; `scaled` to the mean change by training."""
        table = self.tables["noise"]
        moved, trained = (
            table.pivot(index="copy", columns="layer", values=name).to_numpy(float)
            for name in ("change", "trained")
        )
        if scaled:
            moved = as_large_as(trained, moved)
        return Measure(
            "scaled-noise" if scaled else "noise",
            "How far noise moves the layer",
            moved.mean(axis=0),
            unit="1 − CKA",
            low=moved.min(axis=0),
            high=moved.max(axis=0),
        )

    def _neighbours_shuffled(self) -> float:
        return float(np.diagonal(self._grid("shuffled_weights"), offset=1).mean())


def _shown(found: Mapping[str, object], name: str) -> str:
    from bertology.stats import Estimate

    known = found.get(name)
    return plain(known, ".3f") if isinstance(known, Estimate) else "unknown size (no interval)"


def _runs(low: np.ndarray[tuple[int, int], np.dtype[np.float64]], least: float) -> list[str]:
    """Longest runs of layers of which all pairs surely reach `least`; the input is named so."""
    found, start, size = [], 0, len(low)
    while start < size:
        end = start
        while end + 1 < size and (low[start : end + 1, end + 1] > least).all():
            end += 1
        if end > start:
            first = "the input" if start == 0 else f"layer {start - 1}"
            found.append(f"{first} to layer {end - 1}")
        start = end + 1
    return found
