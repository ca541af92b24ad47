"""What `words-in-context` found: its answer, measures and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.report.figures import Band, Dots, interval_dots, layer_profile
from bertology.results.answers import NOTHING_SURE, of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {"cosine": "a threshold of the cosine", "probe": "a linear probe"}


class WordsInContextResult(Result):
    """Whether states tell that a word means the same in two texts.

    Table `layers`: for each layer (-1 is what enters the first one) the share of right answers by a
    threshold of the cosine (`cosine`) and by a linear probe (`probe`), the same with shuffled
    weights, and the mean cosine of pairs that mean the same (`same_mean`) and that differ
    (`different_mean`). Bounds are over words and hold for each layer alone. `scores`: the best
    layer, picked on one half of the words and scored on the other, beside the most frequent answer,
    static embeddings (by a threshold), the input and shuffled weights, and its gain over the best
    of these.
    """

    strongest: ClassVar[Mapping[str, str]] = {"layers": "cosine", "scores": "gain"}

    @property
    def answer(self) -> str:
        """How many answers the better way gives right, and what it gains over all baselines."""
        table = self.tables["scores"]
        lows = table["gain_low"].to_numpy(dtype=float)
        row = table.iloc[0 if np.isnan(lows).all() else int(np.nanargmax(lows))]
        value, gain = (of_row(row, (c, f"{c}_low", f"{c}_high")) for c in ("value", "gain"))
        if known := self.evidence().get(f"{row['kind']}_gain"):
            # The better of two ways was picked after looking: its bounds must hold for both.
            gain = known.at_level(1 - (1 - known.level) / len(KINDS))
        opening = "Yes" if gain.low > 0 else NOTHING_SURE
        return (
            f"{opening}: by {KINDS[str(row['kind'])]} the states of the best layer "
            f"({int(row['layer'])}) give {percent(value)} right answers, {points(gain, '.0f')} "
            "against the best of the most frequent answer, static embeddings, the input and "
            "shuffled weights."
        )

    def measures(self) -> Sequence[Measure]:
        """Right answers by layer, both ways."""
        table = self.tables["layers"]
        rows = table[table["layer"] >= 0]
        return [
            Measure.of_column(
                rows,
                name,
                name=f"same-sense-{name}",
                title=f"Pairs told right by {way}",
                unit="% of pairs",
                bounds=(f"{name}_low", f"{name}_high"),
                scale=100.0,
                reading="High: the states of a word tell whether it means the same.",
            )
            for name, way in KINDS.items()
        ]

    def over_training(self) -> Sequence[Tracked]:
        """The gains of both ways."""
        return [
            Tracked(
                f"{name}_gain",
                f"the gain of {way} over all baselines",
                layers=f"same-sense-{name}",
                scale=100.0,
                unit="points",
                gain=True,
            )
            for name, way in KINDS.items()
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Right answers by layer beside baselines, and gains."""
        return [
            Drawing(
                "layers",
                self._layers,
                "Pairs of texts of which it is told right whether a word means the same in both, "
                "by layer, in per cent: by a threshold of the cosine and by a linear probe; beside "
                "them the threshold with shuffled weights (mean of copies), on static embeddings, "
                "and the most frequent answer. Bands are intervals over words, for each layer "
                "alone.",
                tuple(measure.name for measure in self.measures()),
            ),
            Drawing(
                "gains",
                self._gains,
                "Right answers of the best layer both ways, and the gain over the best of all "
                "baselines, in per cent of pairs. The layer was picked on one half of the words "
                "and scored on the other; intervals are over words.",
            ),
        ]

    def _layers(self) -> Figure:
        table, scores = self.tables["layers"], self.tables["scores"]
        rows = table[table["layer"] >= 0].sort_values("layer")

        def flat(name: str, column: str) -> Band:
            line = np.full(len(rows), 100 * float(scores[column].iloc[0]))
            return Band(name, line, line, line)

        chance = 100 * rows["cosine_shuffled"].to_numpy()
        bands = [
            Band(way, *(100 * rows[f"{name}{end}"].to_numpy() for end in ("", "_low", "_high")))
            for name, way in KINDS.items()
        ]
        bands += [
            Band("cosine, weights shuffled", chance, chance, chance),
            flat("static embeddings", "static"),
            flat("most frequent answer", "frequent"),
        ]
        title = f"Does a word mean the same in two texts?\n{self.about}"
        return layer_profile(bands, title=title, label="% of pairs")

    def _gains(self) -> Figure:
        rows = self.tables["scores"]
        return interval_dots(
            [
                Dots.of_columns("right answers (%)", rows, "value"),
                Dots.of_columns("gain (points)", rows, "gain", level=0.0),
            ],
            [KINDS[str(kind)] for kind in rows["kind"]],
            title=f"What the best layer tells of pairs\n{self.about}",
            note="Gain: over the best of all that must be beaten; right of 0, it is told.",
        )
