"""What `anisotropy` found: its answer, measures and figures."""

from __future__ import annotations

from collections.abc import Sequence

from bertology.report import drawings
from bertology.results.answers import NOTHING_SURE, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked, dashed
from bertology.results.result import Result
from bertology.studies.designs.layer_lines import Line, line_measures, lines_drawn
from bertology.studies.geometry.anisotropy.direction_geometry import REMOVED

_DIMENSIONS = 12  # rows of a figure


class AnisotropyResult(Result):
    """How evenly states fill their space after each layer, and what is left of a cone.

    Table `layers` (-1 is what enters the first one); bounds hold for all layers together: mean
    cosine of different words of different texts (`cosine`), that of copies with shuffled weights,
    their mean (`shuffled`), and without the dimensions that add most to it (`without_1`,
    `without_3`, `without_5`); `isoscore`; `participation`, the number of directions that have
    variance; `first_share`, `three_share`, `ten_share` of the first principal components;
    `partition` and `partition_spread` of Mu and Viswanath, and both for a mean squared length of 1
    (`_scaled`). Table `dimensions`: the five that add most to the mean cosine of each layer. Table
    `repairs`: the same measures after centring, taking off top components, standardising and
    whitening. Array `contributions` (layer, dimension).
    """

    @property
    def answer(self) -> str:
        """How large the mean cosine is, and without the dominating dimensions."""
        found = self.evidence()
        whole, left, beyond = (
            found[n] for n in ("mean_cosine", "cosine_without_3", "cosine_beyond_shuffled")
        )
        sure, shuffled = beyond.excludes(0), whole.value - beyond.value
        surely = "Surely" if sure else NOTHING_SURE
        rest = (
            f" (with shuffled weights {shuffled:.2f})"
            if sure
            else ", not surely other than with shuffled weights"
        )
        return (
            f"{surely}: different words of different texts have a mean cosine of "
            f"{plain(whole, '.2f')} over all layers{rest}; without three dimensions of "
            f"{self.facts['width']}, {plain(left, '.2f')}."
        )

    def measures(self) -> Sequence[Measure]:
        """Cosines by layer, then other measures of isotropy."""
        table = self.tables["layers"]
        table = table[table["layer"] >= 0]
        return [
            *line_measures(table, _COSINES, of="cone", unit="cosine"),
            *line_measures(table, _SHARES, of="cone"),
            *line_measures(table, _COUNTS, of="cone", unit="directions"),
        ]

    def over_training(self) -> Sequence[Tracked]:
        """The mean cosine."""
        return [
            Tracked(
                "mean_cosine", "mean cosine of random words", layers="cone-cosine", unit="cosine"
            )
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Cosines, dominating dimensions, repairs, and other measures over layers."""
        named = {measure.name: measure for measure in self.measures()}
        found = [
            lines_drawn(
                [named[f"cone-{dashed(name)}"] for name in _COSINES],
                _COSINES,
                self.about,
                title="How alike random words are",
                reading="0 would be the same in all directions. Dimensions are chosen on one half "
                "of the texts and taken off on the other. Bands hold for all layers together.",
            ),
            lines_drawn(
                [named[f"cone-{dashed(name)}"] for name in _SHARES],
                _SHARES,
                self.about,
                name="isotropy",
                title="How evenly states fill their space",
                reading="IsoScore is 100 where all directions vary alike; the first component has "
                "most where one direction has nearly all the variance.",
            ),
            drawings.bars(named["cone-participation"], self.about, name="participation"),
            self._dimensions(),
        ]
        return [*found, self._repairs()]

    def _dimensions(self) -> Drawing:
        table = self.tables["dimensions"]
        table = table[table["layer"] >= 0]
        largest = table.groupby("dimension")["contribution"].max().nlargest(_DIMENSIONS)
        values = self.arrays["contributions"].to_numpy()[1:]
        measures = [
            Measure(
                name=f"dimension-{int(d)}",
                title=f"dimension {int(d)}",
                values=values[:, int(d)],
                unit="cosine",
                reading="High: this dimension alone makes random words alike.",
            )
            for d in sorted(largest.index)
        ]
        return drawings.rows(
            "dimensions",
            measures,
            self.about,
            title="What single dimensions add to the mean cosine",
            reading="A dark cell: one dimension makes random words alike.",
            labels=[str(int(d)) for d in sorted(largest.index)],
        )

    def _repairs(self) -> Drawing:
        table = self.tables["repairs"]
        table = table[(table["layer"] >= 0) & (table["repair"] != "centred")]
        shown = [
            Measure.of_column(
                rows,
                "isoscore",
                name=f"repair-{at}",
                title=str(repair),
                unit="%",
                scale=100.0,
                reading="High: all directions vary alike.",
            )
            for at, (repair, rows) in enumerate(table.groupby("repair", sort=False))
        ]
        return drawings.profile(
            "repairs",
            shown,
            self.about,
            title="IsoScore after repairs",
            reading="Each repair is found on one half of the texts and used on the other. IsoScore "
            "is of variances, which centring leaves as they are; what each repair does to the mean "
            "cosine is in the table of repairs.",
        )


_COSINES = {
    "cosine": Line(
        "Mean cosine of random words", "all dimensions", "High: states lie in a narrow cone."
    ),
    **{
        f"without_{count}": Line(
            f"Mean cosine without the {count} dimension{'s' * (count > 1)} that add most",
            f"without {count}",
            "Low: these dimensions alone made words alike.",
        )
        for count in REMOVED
    },
    "shuffled": Line(
        "Mean cosine with shuffled weights",
        "shuffled weights",
        "What the same weights give without their order.",
    ),
}
_SHARES = {
    "isoscore": Line("IsoScore", "IsoScore", "High: all directions vary alike."),
    "first_share": Line(
        "Variance of the first principal component",
        "first component",
        "High: one direction has most of the variance.",
    ),
    "ten_share": Line(
        "Variance of the first ten principal components",
        "ten components",
        "High: few directions have most of the variance.",
    ),
}
_COUNTS = {
    "participation": Line(
        "Participation ratio", "directions", "Low: few directions have nearly all the variance."
    ),
}
