"""What `outlier-dimensions` found: its answer, measures and figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertology.report import drawings, figures
from bertology.results.answers import NOTHING_SURE, listed, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.number_text import number_text
from bertology.results.result import Result
from bertology.studies.geometry.outlier_dimensions.dimension_sets import DRAW

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class OutlierDimensionsResult(Result):
    """Which dimensions are outliers, and what happens without them.

    Table `sets`: loss, perplexity, right answers and what is predicted, of the intact model, with
    the outliers disabled together and one by one, and with random dimensions (the middle and the
    most costly draw; `draws` has each), the link to frequency and what happens to the sink;
    `dimensions`: each outlier, in how many layers, how large, its link to frequency, its own cost;
    `layers`: by layer the farthest weight and the largest activation, attention to [SEP] with and
    without outliers; `completions`: some texts with predicted words in brackets. Arrays `sigmas`,
    `magnitudes`, `largest` (layer, dimension): how far the weights lie from the mean, mean and
    largest |activation|.
    """

    @property
    def answer(self) -> str:
        """Which outliers there are, and what they cost."""
        found, facts = self.evidence(), self.facts
        table = self.tables["dimensions"]
        told = (
            f"{len(table)} of {facts['hidden']} dimensions are outliers in "
            f"{100 * float(facts['share']):.0f} % of the layers or more"
        )
        if not len(table) or "loss_rise" not in found:
            far = number_text(found["largest_sigma"].value, ".1f")
            return (
                f"{told}; the farthest weight lies {far} σ away (weights are exact: no interval)."
            )
        rise, over = found["loss_rise"], found.get("cost_over_random")
        first = [str(int(d)) for d in table["dimension"][:5]]
        names = listed([*first, f"{len(table) - 5} more"] if len(table) > 5 else first)
        sure = "Surely" if rise.low > 0 else NOTHING_SURE
        beside = "" if over is None else f", by {plain(over, '+.2f')} against random ones"
        if over is not None and rise.low > 0 and not over.low > 0:
            beside = f", but not surely more than without random ones ({plain(over, '+.2f')})"
        return (
            f"{told} ({names}). {sure}: without their {facts['weights']} weights the loss "
            f"rises by {plain(rise, '.2f', 'nats')}{beside}."
        )

    def measures(self) -> Sequence[Measure]:
        """By layer: the farthest weight, the largest activation, attention to [SEP]."""
        return [*self._of_layers(), *self._of_sink()]

    def _of_layers(self) -> Iterator[Measure]:
        table = self.tables["layers"]
        yield Measure.of_column(
            table,
            "largest_sigma",
            name="norm-outlier",
            title="Farthest weight of the layer's last operation",
            unit="standard deviations",
            reading="High: some dimension is scaled or shifted unlike all others.",
        )
        yield Measure.of_column(
            table,
            "state_ratio",
            name="large-dimension",
            title="Largest dimension of the states",
            unit="times the median dimension",
            reading="High: one dimension has far larger activations than most.",
        )

    def _of_sink(self) -> Iterator[Measure]:
        table = self.tables["layers"]
        if "sep_intact" not in table:
            return
        for name, title in _SINKS.items():
            if name not in table:
                continue  # no draws are possible
            yield Measure.of_column(
                table,
                name,
                name=name.replace("_", "-"),
                title=title,
                unit="share of the attention",
                bounds=(f"{name}_low", f"{name}_high"),
                reading="High: the layer's heads give much of their attention to [SEP].",
            )

    def over_training(self) -> Sequence[Tracked]:
        """The farthest weight, and how much larger than the median the largest dimension is."""
        return [
            Tracked(
                "largest_sigma",
                "distance of the farthest weight",
                layers="norm-outlier",
                unit="standard deviations",
            ),
            Tracked(
                "largest_state_ratio",
                "largest dimension of the states",
                layers="large-dimension",
                unit="times the median dimension",
            ),
        ]

    def drawings(self) -> Sequence[Drawing]:
        """The farthest weights, the outliers layer by layer, what each costs, and the sink."""
        far, large = self._of_layers()
        found = [
            drawings.bars(far, self.about, name="layers", caption=_LAYERS_CAPTION),
            drawings.bars(large, self.about, name="states", caption=_STATES_CAPTION),
        ]
        if len(self.tables["dimensions"]):
            found.append(self._rows())
        if "sets" in self.tables and np.isfinite(self.tables["sets"]["loss_rise"]).any():
            found.append(Drawing("costs", self._costs, _COSTS_CAPTION))
        if "draws" in self.tables and (self.tables["draws"]["kind"] == DRAW).any():
            found.append(Drawing("related", self._related, _RELATED_CAPTION))
        if sinks := list(self._of_sink()):
            found.append(
                drawings.profile(
                    "sink",
                    sinks,
                    self.about,
                    title="Attention to [SEP] with and without outlier dimensions",
                    reading="Where the second line lies below the others, the outliers serve the "
                    "attention sink; random dimensions are the mean of all draws.",
                    labels=_SINK_LABELS[: len(sinks)],
                )
            )
        return found

    def _rows(self) -> Drawing:
        chosen = [int(d) for d in self.tables["dimensions"]["dimension"][:12]]
        sigmas = self.arrays["sigmas"].to_numpy()
        measures = [
            Measure(
                name=f"dimension-{d}",
                title=str(d),
                values=sigmas[:, d],
                unit="standard deviations",
                reading="High: the weights of this dimension are unlike all others.",
            )
            for d in chosen
        ]
        return drawings.rows(
            "dimensions",
            measures,
            self.about,
            title="How far the weights of outlier dimensions lie from the others",
            reading="A dark row: the same dimension is an outlier in most layers.",
        )

    def _costs(self) -> Figure:
        table = self.tables["sets"]
        table = table[table["kind"] != "intact"]
        shown = [table[f"loss_rise{end}"].to_numpy(float) for end in ("", "_low", "_high")]
        return figures.interval_dots(
            [figures.Dots("rise of the loss (nats)", *shown, level=0.0)],
            list(table["set"]),
            title=f"What it costs to disable dimensions\n{self.about}",
            note="Lines: intervals over texts, for all sets together.",
        )

    def _related(self) -> Figure:
        """Frequency and the sink: the outliers against the range of the draws."""
        table, draws = self.tables["sets"], self.tables["draws"]
        own, random = table[table["set"] == "outliers"], draws[draws["kind"] == DRAW]
        found, panels = self.evidence(), []
        for column, (label, quantity) in _RELATIONS.items():
            if column not in table:
                continue
            low, middle, high = np.nanquantile(random[column].to_numpy(float), (0, 0.5, 1))
            estimate = found.get(quantity)
            values = [float(own[column].iloc[0]), middle, low, high]
            bounds = np.full((2, 4), np.nan)
            if estimate is not None:
                bounds[:, 0] = estimate.low, estimate.high
            panels.append(figures.Dots(label, values, *bounds, level=0.0))
        names = ["outliers", *(f"random, {n} of {len(random)}" for n in _RANGE)]
        return figures.interval_dots(
            panels,
            names,
            title=f"Outliers, frequency and the attention sink\n{self.about}",
            note="Lines: intervals over texts; what has none is hollow.",
        )


_RANGE = ("middle", "lowest", "highest")
_RELATIONS = {
    "frequency_link": ("link to token frequency (mean |r|)", ""),
    "sep_change": ("change of attention to [SEP] without them (share)", "sink_change"),
    "size_change": ("change of their size with the sink cut (log)", "magnitude_change"),
}
_SINKS = {
    "sep_intact": "Attention to [SEP]",
    "sep_without": "Attention to [SEP] without outlier dimensions",
    "sep_random": "Attention to [SEP] without random dimensions",
}
_SINK_LABELS = ["intact", "without outliers", "without random dimensions"]
_LAYERS_CAPTION = (
    "One bar for each layer: how many standard deviations the farthest weight or bias of its last "
    "operation (the output LayerNorm) lies from the mean of all dimensions. Three make an outlier; "
    "normal numbers of this width would reach about that by chance."
)
_STATES_CAPTION = (
    "One bar for each layer: mean size of the activations of its largest dimension, as a multiple "
    "of the median dimension, over the half of the texts on which outliers are found."
)
_RELATED_CAPTION = (
    "Three things about the outliers, beside as many random dimensions (the middle, lowest and "
    "highest draw in each panel): how much the size of their activations goes with the frequency "
    "of the token; by how much attention to [SEP] changes from a third of the depth on when they "
    "are disabled; and how their activations change when that attention is cut. If outliers write "
    "the sink, they lie left of all draws in the second panel; if it feeds them, in the third."
)
_COSTS_CAPTION = (
    "Rise of the loss in nats when the last operation of every layer has nothing for some "
    "dimensions: each outlier alone, a random dimension alone, all outliers together, and as many "
    "random dimensions (the middle draw and the most costly one). It is measured on texts on which "
    "no outlier was found; lines are intervals over texts."
)
