"""What `affordances` found: how well it is told what goes with what, by relation and question."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import of_row, percent
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBE, NEW, INPUT = "probe", "probe, attribute new too", "probe of the input"
SHUFFLED, CLOZE = "probe of shuffled weights", "blank"
_SIDES = ("share", "share_low", "share_high")


class AffordancesResult(Result):
    """How often it is told which of two things goes with which of two attributes.

    Table `relations`: checkerboards told right, by relation and way of asking; chance is 50 %.
    `scores`: F1 and accuracy of the probe, of attributes alone, and of always the same answer.
    `layers`: checkerboards by layer.
    """

    lead: ClassVar[int] = 1
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "relations": {"share": "%"},
        "scores": {
            "f1": "%", "accuracy": "%", "f1_attribute": "%", "accuracy_attribute": "%",
            "f1_always": "%", "accuracy_always": "%", "yes": "%",
        },
        "layers": {"probe": "%", "cloze": "%"},
    }  # fmt: skip

    @property
    def answer(self) -> str:
        """The shares of the probe, by relation."""
        rows = self.tables["relations"]
        said = [
            f"{row['relation']} {percent(of_row(row, _SIDES), '.1f', limits=(0.5,))}"
            for _, row in rows[(rows["way"] == PROBE) & rows["share"].notna()].iterrows()
        ]
        if not said:
            return "Nothing is sure: no two things have one of two attributes each."
        return (
            f"Probes tell which thing goes with which attribute in {', '.join(said)} of "
            "checkerboards; chance, and whatever things and attributes have alone, is 50 %."
        )

    def measures(self) -> Sequence[Measure]:
        """Shares by layer, of each relation and way of asking."""
        found = []
        for relation, table in self.tables["layers"].groupby("relation", sort=False):
            for column, title in (("probe", "probes of it"), ("cloze", "blanks, read from it")):
                if table[column].notna().any():
                    found.append(
                        Measure.of_column(
                            table,
                            column,
                            name=f"{column}-{_slug(str(relation))}",
                            title=f"Checkerboards told right, {relation}, by {title}",
                            unit="%",
                            bounds=(f"{column}_low", f"{column}_high"),
                            scale=100.0,
                            middle=50.0,
                            reading="High: this layer tells which thing goes with which attribute. "
                            "Chance is 50.",
                        )
                    )
        return found

    def drawings(self) -> Sequence[Drawing]:
        """Shares by relation, and by layer."""
        found = [
            Drawing(
                "relations",
                self._draw_relations,
                "One panel for each relation, one row for each way of asking: the per cent of "
                "checkerboards (two things, each with one of two attributes) that are told right. "
                "Whatever things or attributes have alone gives 50. Intervals hold for all rows of "
                "a panel together.",
            )
        ]
        if shown := [m for m in self.measures() if m.name.startswith("probe-")]:
            found.append(
                drawings.profile(
                    "layers",
                    shown,
                    self.about,
                    title="What goes with what, by layer",
                    reading="Each line is a relation, told by probes on things that they did not "
                    "see. Above 50: more than things and attributes have alone.",
                    labels=[m.name.partition("-")[2] for m in shown],
                )
            )
        return found

    def _draw_relations(self) -> Figure:
        rows = self.tables["relations"]
        ways = list(dict.fromkeys(rows["way"]))
        panels = []
        for relation, some in rows.groupby("relation", sort=False):
            ordered = some.set_index("way").loc[ways].reset_index()
            panels.append(Dots.of_columns(f"{relation} (%)", ordered, "share", level=50))
        return interval_dots(
            panels,
            ways,
            title=f"Which thing goes with which attribute\n{self.about}",
            note="Dashed: chance, 50 %. Intervals hold for all rows of a panel together.",
        )


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "relation"
