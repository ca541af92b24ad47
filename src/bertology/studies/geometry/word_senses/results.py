"""What `word-senses` found: its answer, measures and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.report.drawings import planes
from bertology.report.figures import Band, Dots, interval_dots, layer_profile
from bertology.results.answers import NOTHING_SURE, of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.points import PointColumns
from bertology.results.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_SHARES = {
    "accuracy": (
        "Occurrences whose neighbours have their sense",
        "% of occurrences",
        "High: occurrences of the same sense lie near each other.",
    ),
    "lemma_mean": (
        "Occurrences whose neighbours have their sense, mean over lemmas",
        "% of occurrences",
        "High: the same, each lemma counting once, however frequent it is.",
    ),
}
_CLUSTERS = {
    "ari": (
        "Agreement of clusters with senses",
        "adjusted Rand index",
        "1: clusters are the senses. 0: as much as by chance.",
    ),
    "v_measure": (
        "What clusters and senses tell of each other",
        "V-measure",
        "1: clusters are the senses. With few occurrences it is above 0 by chance.",
    ),
    "silhouette": (
        "How far senses lie apart",
        "silhouette",
        "Above 0: occurrences are nearer to their own sense than to the next one.",
    ),
}
_LABELS = {
    "accuracy": "neighbours: all occurrences (%)",
    "lemma_mean": "neighbours: mean over lemmas (%)",
    "ari": "clusters: ARI × 100",
    "v_measure": "clusters: V-measure × 100",
    "silhouette": "senses: silhouette × 100",
}


_POINTS = PointColumns("occurrences", ("lemma", "layer", "method"), "sense")


class WordSensesResult(Result):
    """How far the occurrences of a word lie together by sense.

    Table `layers`: for each layer (-1 is what enters the first one) the share of occurrences of
    ambiguous lemmas whose nearest neighbours have their sense (`accuracy`) and its mean over lemmas
    (`lemma_mean`), with the number of neighbours that is best; agreement of k-means clusters with
    senses (`ari`, `v_measure`) and the silhouette of senses, means over lemmas, each beside the
    mean when senses are dealt out anew (`_dealt`) and that of shuffled weights. Bounds of
    `accuracy` hold for all layers together; those over lemmas hold for each row alone, and fewer
    than five lemmas have none. `scores`: the best layer, picked on one half and scored on the
    other, beside what it must beat (clusters: beyond dealt senses); `reachable` is the share of
    answers that neighbours can give at all, `context` that of a bag of the words around.
    `neighbours`: by number of neighbours. `senses`: clusters by number of senses (5 stands for
    more, too). `lemmas`: single lemmas at the best layer. `occurrences`: points of some words'
    occurrences in planes, by method and layer, with the text around and the place (`start`, `end`)
    of the word in it.
    """

    strongest: ClassVar[Mapping[str, str]] = {"layers": "accuracy", "scores": "gain"}

    def _score(self, name: str) -> pd.Series:
        table = self.tables["scores"]
        found: pd.Series = table[table["score"] == name].iloc[0]
        return found

    @property
    def answer(self) -> str:
        """How many senses neighbours tell, and by how much more than all that must be beaten."""
        row = self._score("accuracy")
        value, gain = (of_row(row, (c, f"{c}_low", f"{c}_high")) for c in ("value", "gain"))
        opening = "Yes" if gain.low > 0 else NOTHING_SURE
        told = (
            f"{opening}: the nearest neighbours after the best layer ({int(row['layer'])}) give "
            f"{percent(value)} of the senses, {points(gain, '.0f')} against the best of the most "
            "frequent sense, static embeddings, the input and shuffled weights"
        )
        clusters = self.evidence().get("cluster_gain")
        if clusters is None:
            return f"{told}."
        sure = "also lie" if clusters.low > 0 else "do not surely lie"
        return f"{told}; senses {sure} in clusters of their own beyond them."

    def measures(self) -> Sequence[Measure]:
        """Right neighbours and clusters by layer."""
        table = self.tables["layers"]
        rows = table[table["layer"] >= 0]
        return [
            Measure.of_column(
                rows,
                column,
                name=column.replace("_", "-"),
                title=title,
                unit=unit,
                bounds=(f"{column}_low", f"{column}_high"),
                scale=100.0 if column in _SHARES else 1.0,
                reading=reading,
            )
            for column, (title, unit, reading) in (_SHARES | _CLUSTERS).items()
            if column in rows
        ]

    def over_training(self) -> Sequence[Tracked]:
        """Gains over all baselines, of neighbours and of clusters."""
        found = [
            Tracked(
                "sense_gain",
                "the gain of nearest neighbours over all baselines",
                layers="accuracy",
                scale=100.0,
                unit="points",
                gain=True,
            )
        ]
        if "cluster_gain" in self.evidence():
            found.append(
                Tracked(
                    "cluster_gain",
                    "the gain of clusters over all baselines (ARI)",
                    layers="ari",
                    gain=True,
                )
            )
        return found

    def drawings(self) -> Sequence[Drawing]:
        """Neighbours by layer beside baselines, clusters by layer and by number of senses."""
        unit = str(self.facts["unit"])
        found = [
            Drawing(
                "layers",
                self._layers,
                "Occurrences of ambiguous words whose nearest neighbours have their sense, by "
                "layer, in per cent; beside it the same with shuffled weights (mean of copies), "
                "the most frequent sense, static embeddings, and neighbours by the words around, "
                f"as a bag. Bands are intervals over {unit} for all layers together. Where the "
                "first line is above the others, layers tell senses.",
                ("accuracy",),
            )
        ]
        if "ari" in self.tables["layers"]:
            found += [
                Drawing(
                    "clusters",
                    self._clusters,
                    "Agreement of k-means clusters with senses (adjusted Rand index) by layer, "
                    "mean over lemmas; beside it the input of the first layer and shuffled "
                    "weights. 1: clusters are the senses; 0: chance. Bands are intervals over "
                    "lemmas, for each layer alone.",
                    ("ari",),
                ),
                Drawing(
                    "senses",
                    self._by_senses,
                    "How well clusters fit the senses, by how many senses a lemma has, at the best "
                    "layer: adjusted Rand index, V-measure and silhouette, each beyond its mean "
                    "when senses are dealt out anew, times 100. Intervals are over lemmas, for "
                    "each row alone; fewer than five lemmas have none. 0: chance.",
                ),
            ]
        found.append(
            Drawing(
                "gains",
                self._gains,
                "The best layer by each score (clusters: beyond senses that are dealt out anew), "
                "and its gain over the best of all baselines, times 100. The layer was picked on "
                f"one half and scored on the other; intervals are over {unit} or lemmas.",
            )
        )
        if "occurrences" in self.tables:
            found.append(self._planes())
        return found

    def _planes(self) -> Drawing:
        """The first word and method of the table, by layer; pages have the others, too."""
        table = self.tables["occurrences"]
        lemma, method = (str(table[column].iloc[0]) for column in ("lemma", "method"))
        own = table[(table["lemma"] == lemma) & (table["method"] == method)]
        layers = [int(layer) for layer in own["layer"].unique()]
        names = {"pca": "PCA", "t-sne": "t-SNE", "umap": "UMAP"}
        return planes(
            "occurrences",
            table,
            _POINTS,
            self.about,
            title=f"Occurrences of {lemma} in a plane ({names[method]})",
            reading="The planes were made without the senses: where marks of a kind lie together, "
            "the states tell the sense.",
            drawn=[(lemma, layer, method) for layer in layers],
            labels=["embeddings" if layer < 0 else f"layer {layer}" for layer in layers],
            one="occurrence",
        )

    def _layers(self) -> Figure:
        rows = _of_layers(self.tables["layers"])
        row = self._score("accuracy")

        def flat(name: str, value: float) -> Band:
            line = np.full(len(rows), 100 * value)
            return Band(name, line, line, line)

        own = [100 * rows[f"accuracy{end}"].to_numpy() for end in ("", "_low", "_high")]
        chance = 100 * rows["shuffled_accuracy"].to_numpy()
        bands = [
            Band("the layer's states", *own),
            Band("weights shuffled", chance, chance, chance),
            flat("most frequent sense", float(row["frequent"])),
            flat("static embeddings", float(row["static"])),
            flat("words around (bag)", float(row["context"])),
        ]
        title = f"Senses that nearest neighbours tell\n{self.about}"
        return layer_profile(bands, title=title, label="% of occurrences")

    def _clusters(self) -> Figure:
        table = self.tables["layers"]
        rows = _of_layers(table)
        own = [rows[f"ari{end}"].to_numpy() for end in ("", "_low", "_high")]
        chance = rows["ari_shuffled"].to_numpy()
        enters = np.full(len(rows), float(table[table["layer"] == -1]["ari"].iloc[0]))
        bands = [
            Band("the layer's states", *own),
            Band("weights shuffled", chance, chance, chance),
            Band("the input", enters, enters, enters),
        ]
        title = f"Agreement of clusters with senses\n{self.about}"
        return layer_profile(bands, title=title, label="adjusted Rand index")

    def _by_senses(self) -> Figure:
        rows = self.tables["senses"]
        names = [
            f"{n} senses{' or more' if n == 5 else ''} ({many} lemma{'' if many == 1 else 's'})"
            for n, many in rows[["senses", "lemmas"]].to_numpy()
        ]
        labels = {"ari": "ARI × 100", "v_measure": "V-measure × 100", "silhouette": "silhouette"}
        labels["silhouette"] += " × 100"
        return interval_dots(
            [Dots.of_columns(label, rows, name, level=0.0) for name, label in labels.items()],
            names,
            title=f"Clusters by number of senses\n{self.about}",
            note="Beyond the mean of senses that are dealt out anew; 0 is chance.",
        )

    def _gains(self) -> Figure:
        rows = self.tables["scores"]
        return interval_dots(
            [
                Dots.of_columns("score × 100", rows, "value"),
                Dots.of_columns("gain × 100", rows, "gain", level=0.0),
            ],
            [_LABELS[str(name)] for name in rows["score"]],
            title=f"What the best layer tells of senses\n{self.about}",
            note="Gain: over the best of all that must be beaten; right of 0, senses are told.",
        )


def _of_layers(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["layer"] >= 0].sort_values("layer")
