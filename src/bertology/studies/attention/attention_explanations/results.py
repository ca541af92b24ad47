"""Whether attention explains answers, beside other methods: the answer and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bertology.model.attributions.method_names import TITLES
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, percent, points
from bertology.results.drawing import Drawing
from bertology.results.number_text import number_text
from bertology.results.result import Result
from bertology.studies.attention.attention_explanations.scores import RANDOM, SCORES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHERS = {
    "permuted-last": "permuted: last layer, first token",
    "permuted-all": "permuted: all layers, all tokens",
    "found": "looked for, text by text",
    "trained": "of a model trained to differ",
}
"""Other attention than the model's own."""


class AttentionExplanationsResult(Result):
    """Methods beside random orders (table `methods`), and other attention (table `attention`).

    `methods` has a row for each score and method: the `mean` over examples, and the `gain` over
    random orders of the same words, turned so that above 0 is better; bounds and p-values of gains
    hold for all rows together. `attention` has a row for each kind of other attention: how far it
    is from the model's own (`divergence`, of the first token in the last layer, 0 to 1), how far
    the answer's probabilities are (`variation`, 0 to 1), and the share of answers that change.
    """

    @property
    def answer(self) -> str:
        """What words by attention are worth, and whether other attention gives the same answer."""
        found = self.evidence()
        if "attention_over_random" not in found:
            why = self.reasons().get("", "nothing was judged").removeprefix("not judged: ")
            return f"{NOTHING_SURE}: {why}."
        told = found["attention_over_random"]
        sure = (
            "surely more" if told.low > 0 else "surely less" if told.high < 0 else "not surely more"
        )
        other = found["found_divergence"]
        return (
            f"Words by attention matter {sure} to the answer than words by chance: without them it "
            f"loses {points(told)} more of its probability (by integrated gradients "
            f"{points(found['integrated_over_random'])}). Other attention, "
            f"{percent(other)} as far from the model's own as can be, leaves the answer as it is."
        )

    def headline(self) -> str:
        """How good the classifier is, and how many words its texts have."""
        facts = self.facts
        return (
            f"{facts['task']}: accuracy {number_text(100 * float(facts['accuracy']), '.1f')} over "
            f"{facts['examples']} examples of {float(facts['words']):.0f} words in the mean; the "
            f"answer changes in {100 * float(facts['flips_without_all']):.0f} % when every word is "
            "left out"
        )

    def drawings(self) -> Sequence[Drawing]:
        """Methods beside each other; gains over random orders; other attention."""
        return [
            Drawing(
                "methods",
                self._methods,
                "One row for each method, one panel for each score, means over examples with their "
                "intervals. The line is the mean of random orders of the same words. "
                "Comprehensiveness: what the answer loses without the top words, more is better. "
                "Sufficiency: what it loses by the top words alone; words erased until the answer "
                "flips: fewer are better. Agreement is Kendall's τ with leaving out single words.",
            ),
            Drawing(
                "gains",
                self._gains,
                "For each method and score, by how much it is better than random orders of the "
                "same words: right of the dashed line is better, whatever the score. Intervals "
                "hold for all dots of the figure together.",
            ),
            Drawing(
                "attention",
                self._attention,
                "Other attention than the model's own: permuted, looked for text by text, or that "
                "of a model which was trained to differ. How far it is from the model's own, how "
                "far the answer's probabilities move, and how many answers change, in per cent. "
                "Far left in the last two panels and far right in the first: other attention, "
                "same answer.",
            ),
        ]

    def _panels(self, column: str, *, level: float | None) -> tuple[list[Dots], list[str]]:
        table, panels, names = self.tables["methods"], list[Dots](), list[str]()
        if column == "gain":  # of random orders over themselves there is none
            table = table[table["method"] != RANDOM]
        for score in dict.fromkeys(table["score"]):
            rows = table.index[table["score"] == score]
            names = [TITLES[str(name)] for name in table.loc[rows, "method"]]
            known = SCORES[str(score)]
            scale = 1.0 if known.whole else 100.0
            sides = (
                scale * table.loc[rows, f"{column}{end}"].to_numpy(float)
                for end in ("", "_low", "_high")
            )
            unit = "" if known.whole else " (points)" if column == "gain" else " (%)"
            panels.append(Dots(f"{known.title}{unit}", *sides, level=level))
        return panels, names

    def _methods(self) -> Figure:
        panels, names = self._panels("mean", level=None)
        return interval_dots(
            panels,
            names,
            title=f"How faithful explanations are\n{self.about}",
            reference=TITLES[RANDOM],
            note="Intervals over examples, each for itself.",
        )

    def _gains(self) -> Figure:
        panels, names = self._panels("gain", level=0.0)
        return interval_dots(
            panels,
            names,
            title=f"Better than random orders of words\n{self.about}",
            note="Intervals hold for all methods and scores together.",
        )

    def _attention(self) -> Figure:
        table = self.tables["attention"]
        labels = {
            "divergence": "divergence of attention (%)",
            "variation": "change of the answer's probabilities (%)",
            "changed": "answers that change (%)",
        }
        return interval_dots(
            [Dots.of_columns(label, table, column) for column, label in labels.items()],
            [OTHERS[str(name)] for name in table["attention"]],
            title=f"Other attention than the model's own\n{self.about}",
            note="Intervals over examples.",
        )
