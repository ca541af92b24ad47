"""What sentence positions do to states: the answer, measures and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertology.report import drawings
from bertology.report.figures import Band, band_curve
from bertology.results.answers import NOTHING_SURE, percent
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHIFTS = {
    "position": (
        "Shift of a word by the position of its sentence",
        "position of the sentence",
        "High: a word's state is another one where its sentence comes second.",
    ),
    "place": (
        "Shift by the places of the tokens alone",
        "places (position ids)",
        "High: later places move a word's state, in the same segment.",
    ),
    "segment": (
        "Shift by the segment alone",
        "segment (type ids)",
        "High: the second segment moves a word's state, at the same places.",
    ),
    "neighbour": (
        "Change by another neighbour sentence",
        "another neighbour",
        "High: what the other sentence says changes a word's state.",
    ),
}


class SentencePositionResult(Result):
    """How far words move with the position of their sentence.

    Table `layers` (-1 is what enters the first one): squared shifts beyond another neighbour as
    shares of the spread of all words (`position`; `place` and `segment` of which it is made, with
    twice what both share), `neighbour`, the squared change by another neighbour; distances in units
    of the spread's root and cosine distances, of first and second place with the same neighbour and
    of two neighbours in the same place; `told`, how often a direction that was learnt on other
    sentences tells the first from the second place of two words of one kind; `common`, the share of
    the squared shift along the mean shift of other sentences; `with_input` and `with_last`, cosines
    of the mean shift with that of the input and of the last layer.
    Table `parities`: how much farther words of one kind are across first and second sentences than
    within them, as a share of the latter (`parity`), with the share of draws that come as far from
    0 (`parity_p`), and silhouettes of words among sentences of the same and of the other place.
    Table `kinds`: the same for single words, in squared distances of the last layer. Array
    `angles`: cosines of mean shifts of all layers. Bounds in tables hold for all layers together.
    """

    @property
    def answer(self) -> str:
        """The shift in the last layer, beside that by another neighbour."""
        evidence = self.evidence()
        shift, neighbour = (evidence.get(f"{n}_shift") for n in ("position", "neighbour"))
        if shift is None or neighbour is None:
            return f"{NOTHING_SURE}: states have no spread, so no shift can be compared with it."
        what = (
            "as second sentence of a pair, the last states of a sentence's words are moved by "
            f"{percent(shift, '.1f')} of the spread of all words (squared), over and above another "
            f"neighbour, which changes them by {percent(neighbour, '.1f')}"
        )
        if shift.low > 0:
            return f"Surely: {what}."
        return f"{NOTHING_SURE}: {what}."

    def headline(self) -> str:
        """What it rests on."""
        facts = self.facts
        readings = "four" if "segment" in self.tables["layers"] else "two"
        return (
            f"{facts['words']} words of {facts['sentences']} sentences in {readings} "
            f"readings, with two neighbours each; {facts['pairs']} pairs of texts that follow each "
            "other"
        )

    def over_training(self) -> Sequence[Tracked]:
        """The shift in the last layer."""
        return [
            Tracked(
                "position_shift",
                "the shift of words by the position of their sentence",
                layers="position-shift",
                scale=100.0,
                unit="% of the spread",
            )
        ]

    def measures(self) -> Sequence[Measure]:
        """Shifts, what tells first from second, and how words of both kinds of sentences differ."""
        table = self.tables["layers"]
        layers = table[table["layer"] >= 0]
        found = [
            Measure.of_column(
                layers,
                column,
                name=f"{column}-shift",
                title=title,
                unit="% of the spread",
                bounds=(f"{column}_low", f"{column}_high"),
                scale=100.0,
                middle=0.0,
                reading=reading,
            )
            for column, (title, _, reading) in _SHIFTS.items()
            if column in layers
        ]
        if "told" in layers:
            found.append(
                Measure.of_column(
                    layers,
                    "told",
                    name="position-told",
                    title="First or second place, told from the state",
                    unit="% right",
                    bounds=("told_low", "told_high"),
                    scale=100.0,
                    middle=50.0,
                    reading="50: a direction that was learnt on other sentences tells nothing.",
                )
            )
        found += [
            Measure.of_column(
                layers,
                column,
                name=f"shift-{column.replace('_', '-')}",
                title=f"Cosine of the mean shift with that of the {of}",
                unit="cosine",
                middle=0.0,
                reading="1: words are moved in the same direction there.",
            )
            for column, of in (("with_input", "input"), ("with_last", "last layer"))
        ]
        if "parities" in self.tables:
            table = self.tables["parities"]
            found.append(
                Measure.of_column(
                    table[table["layer"] >= 0],
                    "parity",
                    name="parity-excess",
                    title="How much farther words are across first and second sentences",
                    unit="% of the squared distance within",
                    bounds=("parity_low", "parity_high"),
                    scale=100.0,
                    middle=0.0,
                    reading="0: a word is as near to itself across both as within each.",
                )
            )
        return found

    def drawings(self) -> Sequence[Drawing]:
        """Shifts by layer, directions, and words in first and second sentences."""
        by_name = {m.name: m for m in self.measures()}
        shifts = [n for n in _SHIFTS if f"{n}-shift" in by_name]
        found = [
            drawings.profile(
                "shifts",
                [by_name[f"{n}-shift"] for n in shifts],
                self.about,
                title="What moves the states of a sentence's words",
                reading="Squared shifts as shares of the spread of all words' states; those by "
                "position, places and segments are beyond what another neighbour does.",
                labels=[_SHIFTS[n][1] for n in shifts],
            ),
            Drawing(
                "directions",
                self._directions,
                "Are words moved in the same direction in all layers? Cosines of the mean shift of "
                "a layer with that of the input and of the last layer, each learnt on another half "
                "of the sentences. 1: the same direction; they have no intervals.",
                ("shift-with-input", "shift-with-last"),
            ),
        ]
        found += [
            drawings.bars(by_name[name], self.about, name=short)
            for name, short in (("position-told", "told"), ("parity-excess", "parities"))
            if name in by_name
        ]
        return found

    def _directions(self) -> Figure:
        names = {"with the input": "shift-with-input", "with the last layer": "shift-with-last"}
        values = {label: self.measure(name).values for label, name in names.items()}
        return band_curve(
            [Band(label, v, v, v) for label, v in values.items()],
            None,
            title=f"Are words moved in the same direction in all layers?\n{self.about}",
            label="cosine of mean shifts",
            xlabel="layer",
            note="Layers are numbered from 0.",
        )
