"""What agreement found: how often the verb that agrees is likelier, and what layers tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import percent
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.result import Result
from bertology.studies.designs.layer_lines import Line, line_measures, lines_drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NONSENSE, PROBE = "nonsense", "probe"
_HEAD = "High: at this layer the head already prefers the form that agrees. Chance is 50."
_LINES = {  # columns of the table of layers
    "accuracy": Line("Pairs in which the form that agrees is likelier", "all pairs", _HEAD),
    NONSENSE: Line("The same in nonsense sentences", "nonsense", _HEAD),
    PROBE: Line(
        "Pairs whose number a probe reads off the blank",
        "probe",
        "High: a probe trained for this layer tells whether the verb is singular or plural. Unlike "
        "a lens it favours no layer. Chance is 50.",
    ),
}


class AgreementResult(Result):
    """How often the verb that agrees is likelier.

    Table `groups`: balanced accuracy of all pairs, by number of attractors and by construction, and
    in nonsense sentences; `layers`: of all pairs and of nonsense ones, by layer, and how often a
    probe of the layer tells the number; `paired`: pairs that only one of the two versions gets
    right, with McNemar's exact test over nouns (or sentences).
    """

    lead: ClassVar[int] = 1
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "groups": {"accuracy": "%"},
        "layers": {"accuracy": "%", NONSENSE: "%", PROBE: "%"},
    }

    @property
    def answer(self) -> str:
        """The accuracy over all pairs, with attractors and in nonsense, beside chance."""
        found = self.evidence()
        whole = found["agreement_accuracy"]
        sure = "Surely yes" if whole.low > 0.5 else "Surely not" if whole.high < 0.5 else "Not sure"
        more = "".join(
            f", {words} in {percent(found[name], '.1f', limits=(0.5,))}"
            for name, words in (
                ("attractor_accuracy", "with attractors"),
                ("nonsense_accuracy", "in nonsense sentences"),
            )
            if name in found
        )
        return (
            f"{sure}: the form that agrees is likelier in "
            f"{percent(whole, '.1f', limits=(0.5,))} of {self.facts['pairs']:,} pairs{more}; "
            "chance would be 50 %."
        )

    def measures(self) -> Sequence[Measure]:
        """Accuracy by layer; nothing where only the model itself was asked."""
        return line_measures(self.tables["layers"], _LINES, of="agreement", middle=50.0)

    def drawings(self) -> Sequence[Drawing]:
        """Accuracy by group, and by layer."""
        found = [
            Drawing(
                "groups",
                self._draw_groups,
                "One row for each group of pairs, the first for all of them: the per cent of pairs "
                "in which the form that agrees is likelier, both forms of a verb weighing the "
                "same, with intervals for all rows together. Chance would be 50.",
            )
        ]
        if shown := self.measures():
            found.append(
                lines_drawn(
                    shown,
                    _LINES,
                    self.about,
                    title="Agreement, read from each layer",
                    reading="Where a line rises above 50, the layer's states tell the number of "
                    "the subject: to the model's head, which reads layers by a lens and was made "
                    "for the last one, or to a probe that was trained for this layer alone.",
                )
            )
        return found

    def _draw_groups(self) -> Figure:
        rows = self.tables["groups"]
        return interval_dots(
            [Dots.of_columns("pairs told right (%)", rows, "accuracy", level=50)],
            [str(name) for name in rows["group"]],
            title=f"Agreement of verbs\n{self.about}",
            note="Dashed: chance, 50 %. Intervals hold for all rows together.",
        )
