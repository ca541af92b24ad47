"""How well cosines agree with people after each repair: the answer, measures and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import of_row, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.result import Result
from bertology.stats.vector_repairs import REPAIRS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["VectorRepairsResult"]

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

    Table `repairs`: for each repair Spearman's correlation as a mean over layers (`mean`), that of
    the best layer, picked on one half of the pairs and scored on the other (`best`; `best_layer` is
    that of all pairs), the gains of both over no repair, and what shuffled weights give at their
    best layer. Table `layers`: the same for each layer (-1 is what enters the first one), with the
    mean cosine of all pairs. Bounds hold for all rows of a column together; pairs that share a text
    are not taken as independent.
    """

    strongest: ClassVar[Mapping[str, str]] = {"repairs": "best", "layers": "agreement"}

    @property
    def answer(self) -> str:
        """The best repair and layer beside the best layer without repair."""
        table = self.tables["repairs"]
        rest = table[table["repair"] != "none"].sort_values("best")
        best, plain = rest.iloc[-1], table.iloc[0]
        gain = of_row(best, ("best_gain", "best_gain_low", "best_gain_high"))
        if gain.low > 0:
            end = f"surely more than without a repair, by {points(gain)}"
        elif gain.high < 0:
            end = f"surely less than without a repair, by {points(gain)}"
        else:
            end = f"not surely other than without a repair, by {points(gain)}"
        return (
            f"Cosines of the best layer agree with people by a correlation of "
            f"{100 * plain['best']:.0f} (× 100) as they are, and of {100 * best['best']:.0f} when "
            f"they are {_after(str(best['repair']))}: {end}."
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
                        "gain",
                        name=f"gain-{name}",
                        title=f"What a repair adds to the agreement with people: {label}",
                        unit="points of correlation",
                        bounds=("gain_low", "gain_high"),
                        scale=100.0,
                        middle=0.0,
                        reading="Above 0: repaired vectors agree better with people.",
                    )
                )
        return found

    def over_training(self) -> Sequence[Tracked]:
        """What repairs gain, and how well vectors agree as they are."""
        return [
            Tracked(
                "best_gain",
                "what the best repair adds to the agreement with people",
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
                title="What repairs add to the agreement with people",
                reading="The correlation after a repair less that without, on the same pairs. "
                "Repairs are learnt on other texts than they are scored on.",
                labels=[_LABELS[name] for name in names[1:]],
            ),
            Drawing(
                "repairs",
                self._repairs,
                "For each repair Spearman's correlation of cosines with human judgements, × 100: "
                "the mean over layers, the best layer (picked on one half of the pairs, scored on "
                "the other; grey bars: the same model with its weights in random order), and the "
                "gain of the best layer over the best one without a repair. Intervals hold for all "
                "repairs together.",
            ),
        ]

    def _repairs(self) -> Figure:
        rows = self.tables["repairs"]
        best = Dots.of_columns("best layer", rows, "best")
        return interval_dots(
            [
                Dots.of_columns("mean over layers", rows, "mean"),
                Dots(
                    best.label,
                    best.values,
                    best.low,
                    best.high,
                    bars=100 * rows["shuffled"].to_numpy(),
                ),
                Dots.of_columns("gain of the best layer", rows, "best_gain", level=0.0),
            ],
            [_LABELS[name] for name in rows["repair"]],
            title=f"Agreement of cosines with people (Spearman × 100)\n{self.about}",
            note="Grey bars: weights in random order.",
        )


def _after(repair: str) -> str:
    """What vectors are, in the middle of a sentence."""
    return f"taken {REPAIRS[repair]}" if repair != "whitened" else "whitened"
