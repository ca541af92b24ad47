"""What a structural probe found, in words and figures: scores by layer, trees, words in a plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.errors import UnknownNameError
from bertology.report.figures import Band, Dots, interval_dots, layer_profile, tree_plane
from bertology.results.answers import NOTHING_SURE, of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.studies.designs.tree_figures import TreesResult
from bertology.studies.designs.trees import KEPT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INPUT = -1  # as a layer: what enters the first one
PLANE = "plane_"  # and a number: the words of a kept sentence in the probe's space
SCORES: Mapping[str, tuple[str, str, str]] = {
    "uuas": (
        "arcs found (UUAS)",
        "Annotated arcs in the tree of predicted distances",
        "High: words that hang together in the tree lie near each other.",
    ),
    "dspr": (
        "distances (DSpr.)",
        "Correlation of annotated and predicted distances",
        "High: the farther apart in the tree, the farther apart the states.",
    ),
    "root": (
        "roots found",
        "Sentences whose root has the smallest predicted depth",
        "High: the root of the sentence is told from its other words.",
    ),
    "nspr": (
        "depths (NSpr.)",
        "Correlation of annotated and predicted depths",
        "High: the deeper a word lies in the tree, the longer its state is after the map.",
    ),
}
"""Of each score its short name, its title, and how to read it."""
_SHARES = ("uuas", "root")


class StructuralFigures(TreesResult):
    """Answer, measures and figures of a structural probe."""

    strongest: ClassVar[Mapping[str, str]] = {"layers": "uuas", "scores": "gain"}

    @property
    def answer(self) -> str:
        """How many arcs the best layer's tree has, and what it gains over all baselines."""
        table = self.tables["scores"]
        row = table[table["score"] == "uuas"].iloc[0]
        value, gain = (of_row(row, (c, f"{c}_low", f"{c}_high")) for c in ("value", "gain"))
        sure = gain.low > 0
        opening = "Some of it" if sure else NOTHING_SURE
        return (
            f"{opening}: after a linear map, the states of the best layer ({int(row['layer'])}) "
            f"give {percent(value)} of the annotated arcs, {points(gain, '.0f')} against the best "
            "of a chain, a random tree, the input and shuffled weights."
        )

    def _known(self) -> list[str]:
        """The scores that enough sentences have."""
        return [str(name) for name in self.tables["scores"]["score"]]

    def measures(self) -> Sequence[Measure]:
        """The four scores by layer."""
        table = self.tables["layers"]
        rows = table[table["layer"] >= 0]
        return [
            Measure.of_column(
                rows,
                name,
                name=name,
                title=SCORES[name][1],
                unit=_unit(name),
                bounds=(f"{name}_low", f"{name}_high"),
                scale=100.0 if name in _SHARES else 1.0,
                reading=SCORES[name][2],
            )
            for name in self._known()
        ]

    def over_training(self) -> Sequence[Tracked]:
        """For each score what the best layer gains over all baselines, and the score by layer."""
        return [
            Tracked(
                f"{name}_gain",
                f"the gain of the best layer over all baselines in {SCORES[name][0]}",
                layers=name,
                scale=100.0 if name in _SHARES else 1.0,
                unit="points" if name in _SHARES else "",
                gain=True,
            )
            for name in self._known()
        ]

    def shown_tree(self) -> tuple[str, int]:
        """That of the layer which is best on all test sentences."""
        table = self.tables["scores"]
        return "undirected", int(table[table["score"] == "uuas"]["layer"].iloc[0]) + 1

    def candidate_name(self, number: int) -> str:
        """`layer 7`, or the input."""
        return f"layer {number - 1}" if number else "the input"

    def plane(self, sentence: int = 0, *, layer: int | None = None) -> Figure:
        """The words of a kept sentence in the probe's space, with annotated and found arcs."""
        kept = [str(name) for name in self.arrays.data_vars if str(name).startswith(KEPT)]
        if f"{KEPT}{sentence}" not in kept:
            raise UnknownNameError("kept sentence", str(sentence), [k.split("_")[1] for k in kept])
        of, places = self.arrays[f"{KEPT}{sentence}"], self.arrays[f"{PLANE}{sentence}"]
        number = self.shown_tree()[1] if layer is None else layer + 1
        if not 0 <= number < places.sizes["candidate"]:
            known = [str(at - 1) for at in range(places.sizes["candidate"])]
            raise UnknownNameError("layer", str(layer), known)
        name = self.candidate_name(number)
        return tree_plane(
            [str(word) for word in of.attrs["words"]],
            places.isel(candidate=number).to_numpy(),
            known=[int(h) for h in of.attrs["gold"]],
            found=[int(h) for h in of.isel(tree=0, candidate=number).to_numpy()],
            title=f"A sentence in the space of the probe of {name}\n{self.about}",
        )

    def drawings(self) -> Sequence[Drawing]:
        """Arcs by layer beside baselines, all scores, gains, and single sentences."""
        name = self.candidate_name(self.shown_tree()[1])
        planes = [
            Drawing(
                f"plane-{at}",
                partial(self.plane, at),
                f"The words of a sentence in the space of the distance probe of {name}, on the two "
                "directions in which they differ most. Grey lines are annotated arcs; blue broken "
                "ones are found and annotated, vermilion dotted ones are found only. A plane shows "
                "less than the whole space, so that words may lie nearer here than they do there.",
            )
            for at in sorted(
                int(str(n).removeprefix(PLANE))
                for n in self.arrays.data_vars
                if str(n).startswith(PLANE)
            )
        ]
        return [
            Drawing(
                "layers",
                self._layers,
                "Arcs of annotated trees that are in the tree of predicted distances, by layer, in "
                "per cent; beside it the same of the model with its weights in random order, of "
                "what enters the first layer, and of a chain. Bands are intervals over test "
                "sentences. Where the first line is above the others, layers tell of the tree.",
            ),
            *self.arc_drawings(),
            *planes,
            Drawing(
                "scores",
                self._scores,
                "The four scores of Hewitt and Manning by layer, from 0 to 1: arcs found (UUAS), "
                "correlation of distances (DSpr.), roots found, correlation of depths (NSpr.). "
                "Bands are intervals over test sentences.",
            ),
            Drawing(
                "gains",
                self._gains,
                "For each score the value of its best layer, and its gain over the best of all "
                "baselines (chain, random tree, input, shuffled weights), times 100. The layer was "
                "picked on one half of the test sentences and scored on the other; intervals hold "
                "for all scores together.",
            ),
        ]

    def _layers(self) -> Figure:
        table = self.tables["layers"].set_index("layer").sort_index()
        rows = table.loc[0:]  # the first row is the input

        def flat(name: str, value: float) -> Band:
            line = np.full(len(rows), 100 * value)
            return Band(name, line, line, line)

        own = [100 * rows[f"uuas{end}"].to_numpy() for end in ("", "_low", "_high")]
        chance = 100 * rows["shuffled_uuas"].to_numpy()
        scores = self.tables["scores"]
        scores = scores[scores["score"] == "uuas"]
        bands = [
            Band("the layer's states", *own),
            Band("weights shuffled", chance, chance, chance),
            flat("the input", float(table["uuas"].to_numpy()[0])),
            flat("a chain", float(scores["chain"].to_numpy()[0])),
        ]
        title = f"Annotated arcs in the trees of structural probes\n{self.about}"
        return layer_profile(bands, title=title, label="% of arcs (UUAS)")

    def _scores(self) -> Figure:
        table = self.tables["layers"]
        rows = table[table["layer"] >= 0].sort_values("layer")
        bands = [
            Band(SCORES[name][0], *(rows[f"{name}{end}"] for end in ("", "_low", "_high")))
            for name in self._known()
        ]
        title = f"Scores of structural probes\n{self.about}"
        return layer_profile(bands, title=title, label="share, or correlation")

    def _gains(self) -> Figure:
        rows = self.tables["scores"]
        return interval_dots(
            [
                Dots.of_columns("score × 100", rows, "value"),
                Dots.of_columns("gain × 100", rows, "gain", level=0.0),
            ],
            [SCORES[str(name)][0] for name in rows["score"]],
            title=f"What the best layer tells of trees\n{self.about}",
            note="Gain: over the best of a chain, a random tree, the input and shuffled weights.",
        )


def _unit(name: str) -> str:
    return {"uuas": "% of arcs", "root": "% of sentences"}.get(name, "Spearman's correlation")
