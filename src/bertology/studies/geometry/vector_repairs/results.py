"""How well cosines agree with people after each repair: the answer, measures and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import of_row, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.result import Result
from bertology.studies.geometry.shared.pair_scores import smaller_gain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_UNIT = "Spearman's correlation × 100"
_LABELS = {
    "none": "no repair",
    "centred": "centred",
    "top-removed": "top components removed",
    "standardised": "standardised",
    "dominating-removed": "dominating dimensions removed",
    "whitened": "whitened",
}


class VectorRepairsResult(Result):
    """How cosines agree with human judgements, by repair and layer.

    Table `comparisons`, which the answer and the claim `best_gain` speak of: the best repair and
    layer (`best`), picked on other pairs than it is scored on, against the best layer as it is and
    against shuffled weights at their best; the claim rests on the smaller gain (each row has its
    interval; for the smaller of two the upper bound is a little higher). Table `repairs`:
    for each repair Spearman's correlation in the mean over layers (`mean`, and over no repair at
    the same layers), at its best layer (`best`, and over the best layer without a repair;
    `best_layer` is that of all pairs), and what shuffled weights give. Table `layers`: the same
    for each layer (-1 is what enters the first one), `over_none` at the same layer, with the mean
    cosine of all pairs. Bounds in `repairs` and `layers` hold for all rows of a column together;
    pairs that share a text are not taken as independent.
    """

    strongest: ClassVar[Mapping[str, str]] = {"repairs": "best", "layers": "agreement"}

    @property
    def answer(self) -> str:
        """The best repair and layer beside the best layer as it is, and shuffled weights."""
        table = self.tables["comparisons"]
        best = table.iloc[0]
        gains = " and ".join(
            f"{points(of_row(row, ('gain', 'gain_low', 'gain_high')))} over {row['against']} "
            f"({100 * row['agreement']:.0f})"
            for _, row in table.iterrows()
        )
        return (
            f"Repaired vectors at their best ({_LABELS[str(best['repair'])]}, layer "
            f"{best['layer']}) agree with people by a correlation of {100 * best['best']:.0f} "
            f"(× 100): {gains}. {smaller_gain(self.evidence()['best_gain'])}."
        )

    def measures(self) -> Sequence[Measure]:
        """Agreement by layer of each repair, and its gain."""
        found, table = [], self.tables["layers"]
        for name, rows in table[table["layer"] >= 0].groupby("repair", sort=False):
            label = _LABELS[str(name)]
            found.append(
                Measure.of_column(
                    rows,
                    "agreement",
                    name=f"agreement-{name}",
                    title=f"Agreement of cosines with people: {label}",
                    unit=_UNIT,
                    bounds=("agreement_low", "agreement_high"),
                    scale=100.0,
                    reading="100: cosines order pairs as people do; 0: they tell nothing of it.",
                )
            )
            if name != "none":
                found.append(
                    Measure.of_column(
                        rows,
                        "over_none",
                        name=f"gain-{name}",
                        title=f"What a repair adds at the same layer: {label}",
                        unit="points of correlation",
                        bounds=("over_none_low", "over_none_high"),
                        scale=100.0,
                        middle=0.0,
                        reading="Above 0: repaired vectors of the layer agree better with people "
                        "than the same layer as it is.",
                    )
                )
        return found

    def over_training(self) -> Sequence[Tracked]:
        """What repairs gain, and how well vectors agree as they are."""
        return [
            Tracked(
                "best_gain",
                "the gain of repairs over the best layer as it is and shuffled weights",
                layers="agreement-none",
                scale=100.0,
                unit="points",
                gain=True,
            )
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Agreements and gains by layer; repairs beside each other."""
        by_name = {m.name: m for m in self.measures()}
        names = list(self.tables["repairs"]["repair"])
        return [
            drawings.rows(
                "agreement",
                [by_name[f"agreement-{name}"] for name in names],
                self.about,
                title="How cosines agree with people",
                reading="Repairs are compared on the same pairs in the figure of gains.",
                labels=[_LABELS[name] for name in names],
            ),
            drawings.profile(
                "gains",
                [by_name[f"gain-{name}"] for name in names[1:]],
                self.about,
                title="What repairs add at the same layer",
                reading="The correlation after a repair less that without, on the same layer and "
                "pairs. "
                "Repairs are learnt on other texts than they are scored on.",
                labels=[_LABELS[name] for name in names[1:]],
            ),
            Drawing(
                "repairs",
                self._repairs,
                "For each repair Spearman's correlation of cosines with human judgements, × 100: "
                "the mean over layers; the best layer (picked on other pairs than it is scored "
                "on); and what this best layer is over the best layer without a repair. Grey bars: "
                "the same model with its weights in random order, in the mean over layers and at "
                "its best layer. Intervals hold for all repairs together.",
            ),
        ]

    def _repairs(self) -> Figure:
        rows = self.tables["repairs"]
        beside = [
            replace(
                Dots.of_columns(label, rows, column),
                bars=100 * rows[f"{column}_shuffled"].to_numpy(),
            )
            for label, column in (("mean over layers", "mean"), ("best layer", "best"))
        ]
        return interval_dots(
            [
                *beside,
                Dots.of_columns(
                    "best layer over the best as it is", rows, "best_over_none", level=0.0
                ),
            ],
            [_LABELS[name] for name in rows["repair"]],
            title=f"Agreement of cosines with people (Spearman × 100)\n{self.about}",
            note="Grey bars: weights in random order.",
        )
