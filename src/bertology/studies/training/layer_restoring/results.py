"""What is shown of layers that were set back: losses by layer, from below, and from above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from bertology.report import drawings
from bertology.results.answers import NOTHING_SURE, points
from bertology.results.drawing import Drawing
from bertology.results.hundredths import scores_in_hundredths
from bertology.results.measures import Measure
from bertology.results.result import Result

if TYPE_CHECKING:
    import pandas as pd

_TITLES = {
    "restored": "Loss with the layer set back",
    "below": "Loss with all layers up to it set back",
    "above": "Loss with all layers from it on set back",
    "half": "Loss with the layer half-way back",
    "fresh": "Loss with the layer drawn anew",
}
_READINGS = {
    "restored": "High: the task needs what fine-tuning changed in this layer.",
    "below": "Where it rises is where fine-tuning begins to be needed.",
    "above": "Where it falls to 0 is where fine-tuning of the layers above is not needed.",
    "half": "Low: the first half of the way is not needed, or the model bears with less.",
    "fresh": "High: the task needs what pre-training and fine-tuning put into this layer.",
}


class LayerRestoringResult(Result):
    """What is lost by layers that are set back (table `layers`), and by parts (table `parts`).

    `layers` has a row for each layer: the loss of the score with it set back (`restored`), with all
    layers up to it (`below`) or from it on (`above`), with it half-way (`half`) or drawn anew
    (`fresh`), with bounds that hold for all layers together; `sure`: `restored` is surely not 0;
    `moved`: how far fine-tuning moved its weights, as a share of their length. `parts` has thirds
    of the layers, the embeddings, and the encoder between before and after.
    """

    lead: ClassVar[int] = 7
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "layers": dict.fromkeys(_TITLES, "points") | {"moved": "%"},
        "parts": {"score": "× 100", "loss": "points"},
    }

    def in_units(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """Scores times a hundred, as in figures."""
        return scores_in_hundredths(table) if name == "runs" else super().in_units(name, table)

    @property
    def answer(self) -> str:
        """What the lowest and the highest third cost."""
        found, facts = self.evidence(), self.facts
        if "lower_restored_loss" not in found:
            why = next(iter(self.reasons().values()), "not judged: nothing was set back")
            return f"{NOTHING_SURE}: {why.removeprefix('not judged: ')}."
        third = int(facts["third"])
        which = "layer" if third == 1 else f"{third} layers"
        return (
            f"Setting back the lowest {which} loses {points(found['lower_restored_loss'])} of "
            f"{facts['judged']}, the highest {which} {points(found['upper_restored_loss'])}; the "
            f"difference is {points(found['upper_over_lower_loss'])}."
        )

    def headline(self) -> str:
        """The task, and what the whole model scores."""
        facts, whole = self.facts, self.tables["parts"].iloc[0]
        return (
            f"{facts['task']}: {facts['train_size']} examples to learn from, {facts['examples']} "
            f"to score, {facts['seeds']} seeds; {facts['judged']} of the whole model "
            f"{100 * float(whole['score']):.1f}"
        )

    def measures(self) -> Sequence[Measure]:
        """Losses by layer."""
        table = self.tables["layers"]
        if len(table) < 2:
            return []
        bounded = table["restored_low"].notna().all()
        unit = f"points of {self.facts['judged']}"
        found = [
            Measure.of_column(
                table,
                way,
                name=f"{way}-loss",
                title=title,
                unit=unit,
                bounds=(f"{way}_low", f"{way}_high") if bounded else None,
                sure="sure" if bounded and way == "restored" else None,
                scale=100.0,
                middle=0.0,
                reading=_READINGS[way],
            )
            for way, title in _TITLES.items()
        ]
        moved = Measure.of_column(
            table,
            "moved",
            name="weights-moved",
            title="How far fine-tuning moved the weights",
            unit="% of their length",
            scale=100.0,
            reading="High: the weights of this layer changed much in fine-tuning.",
        )
        return [*found, moved]

    def drawings(self) -> Sequence[Drawing]:
        """By layer, cumulatively, and the other ways."""
        by_name = {m.name.removesuffix("-loss"): m for m in self.measures()}
        if not by_name:
            return []
        shaded = "intervals over seeds and examples, for all layers together"
        return [
            drawings.bars(by_name["restored"], self.about, name="layers"),
            drawings.profile(
                "cumulative",
                [by_name["below"], by_name["above"]],
                self.about,
                title="Loss with layers set back from below or from above",
                reading="Where fine-tuning is needed in upper layers only, the first line stays "
                "low until late, and the second is high nearly everywhere.",
                labels=["all up to the layer", "all from the layer on"],
                shaded=shaded,
            ),
            drawings.profile(
                "ways",
                [by_name["restored"], by_name["half"], by_name["fresh"]],
                self.about,
                title="Loss with a layer set back, half-way back, or drawn anew",
                reading="A layer drawn anew has lost pre-training too.",
                labels=["set back", "half-way", "drawn anew"],
                shaded=shaded,
            ),
            drawings.bars(by_name["weights-moved"], self.about, name="moved"),
        ]
