"""What super-survivors are, for readers: the answer in a sentence, maps of survival, means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.data.map_labels import MAP_TYPES
from bertology.report import drawings
from bertology.report.figures import (
    Dots,
    GridPanel,
    head_grids,
    layer_bars,
    marked_as,
)
from bertology.results.answers import NOTHING_SURE, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, column_grid
from bertology.results.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_LETTERS = dict(zip(MAP_TYPES, ("V", "D", "VD", "B", "H"), strict=True))
_TITLES = {
    **{name: f"{name} maps" for name in MAP_TYPES},
    "linguistic": "surely follows a relation",
    "relation_gain": "gain on its best relation",
    "effect": "change of the score without it",
    "share_worse": "loss that rises without it",
}
_SUPER = "survive in surely more runs than chance gives, and in most tasks"


class SuperSurvivorsResult(Result):
    """In how many runs each head (table `heads`) and each MLP (`mlps`) survives.

    `survival` is the share of runs, `tasks` in how many tasks it survives with most seeds, `p` is
    corrected for all heads and MLPs. `heads` also has what other studies say of each head.
    `compared` sets super-survivors beside the other heads, with the difference within layers;
    `associations` ranks survival against other numbers, within layers. `runs` says which runs were
    used, `sources` which model each study looked at.
    """

    lead: ClassVar[int] = 14
    strongest: ClassVar[Mapping[str, str]] = {"heads": "survival", "mlps": "survival"}
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "heads": {
            **dict.fromkeys(("survival", "share_worse", *MAP_TYPES), "%"),
            **dict.fromkeys(("relation_gain", "effect"), "points"),
        },
        "mlps": {"survival": "%"},
        "compared": {"super_survivors": "%", "others": "%", "difference": "points"},
    }

    @property
    def answer(self) -> str:
        """How many there are, and whether their maps are heterogeneous more often."""
        found, told = self.evidence().get("heterogeneous_excess"), self._counted()
        if found is None:
            why = self.reasons().get("heterogeneous_excess", "nothing was compared")
            return f"{NOTHING_SURE} of their maps: {why.removeprefix('not judged: ')}. {told}."
        return (
            f"{told}. The share of their maps that is heterogeneous, less that of other heads of "
            f"their layers, is {points(found)}."
        )

    def _counted(self) -> str:
        heads, mlps = self.tables["heads"], self.tables["mlps"]
        return (
            f"{int(heads['super_survivor'].sum())} of {len(heads)} heads and "
            f"{int(mlps['super_survivor'].sum())} of {len(mlps)} MLPs surely survive more often "
            f"than chance gives, in {self._of_runs()}"
        )

    def headline(self) -> str:
        """How much is left, how sure it is over tasks, and on what models."""
        heads, facts, runs = self.tables["heads"], self.facts, self.tables["runs"]
        tasks, single = int(facts["tasks"]), heads["p_tasks"] < 1 - facts["level"]
        out = runs[~runs["used"].astype(bool)]
        told = [
            f"{100 * facts['heads_left']:.0f} % of the heads and {100 * facts['mlps_left']:.0f} % "
            "of the MLPs are left, in the mean over runs.",
            f"{len(out)} of {len(runs)} runs are left out: they did not learn their task, or kept "
            "fewer steps."
            if len(out)
            else "",
            f"With the seeds of a task taken as one, {int(single.sum()) or 'no'} heads are "
            f"sure, and tasks agree on heads of the same layer with p = {facts['shared_p']:.2g}."
            if tasks > 1
            else "",
            self._measured_on(),
        ]
        return " ".join(filter(None, told))

    def _measured_on(self) -> str:
        table = self.tables["sources"]
        rest = table[table["study"] != "importance-pruning"].drop_duplicates(
            ["study", "measured_on"]
        )
        told = [f"{s} of {m}" for s, m in zip(rest["study"], rest["measured_on"], strict=True)]
        return f"Pruned were fine-tuned models; {', '.join(told)}." if told else ""

    def measures(self) -> Sequence[Measure]:
        """Survival of heads and of MLPs over all runs."""
        return [
            Measure.of_column(
                self.tables["heads"],
                "survival",
                name="survival-in-runs",
                title="Survival of heads over tasks and seeds",
                unit="% of runs",
                sure="super_survivor",
                scale=100.0,
                reading="High: the head is left in most runs, whatever the task and the seed.",
            ),
            Measure.of_column(
                self.tables["mlps"],
                "survival",
                name="mlp-survival-in-runs",
                title="Survival of MLPs over tasks and seeds",
                unit="% of runs",
                sure="super_survivor",
                scale=100.0,
                reading="High: the layer's MLP is left in most runs.",
            ),
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Survival with map types, survival of MLPs, compared means, associations."""
        heads, mlps = self.measures()
        typed = "map_type" in self.tables["heads"]
        letters = (
            " Letters are the type that most of the head's maps have: V vertical, D diagonal, VD "
            "both, B block, H heterogeneous."
        )
        found = [
            Drawing(
                "survival",
                self._draw_survival,
                "One cell for each head: in how many runs it is left, in per cent, when all runs "
                f"have the same number of heads; darker is more.{letters if typed else ''} "
                f"{marked_as([heads.sure])} {_SUPER}: super-survivors.",
                (heads.name,),
            ),
            Drawing(
                "mlps",
                self._draw_mlps,
                "One bar for each layer: in how many runs its MLP is left, in per cent, when all "
                f"runs have the same number of MLPs. Filled bars {_SUPER}.",
                (mlps.name,),
            ),
        ]
        if self.tables["compared"]["super_survivors"].notna().any():
            found.append(self._draw_compared())
        if len(self.tables["associations"]):
            found.append(self._draw_associations())
        return found

    def _draw_survival(self) -> Figure:
        shown, heads = self.measures()[0], self.tables["heads"]
        letters = None
        note = f"{marked_as([shown.sure])}: super-survivors." if np.any(shown.sure) else ""
        if "map_type" in heads:
            index = heads.assign(kind=heads["map_type"].map(MAP_TYPES.index).astype(float))
            names = np.array([_LETTERS[name] for name in MAP_TYPES])
            letters = names[column_grid(index, "kind").astype(int)]
            note += " V vertical, D diagonal, VD both, B block, H heterogeneous."
        return head_grids(
            [GridPanel("", shown.values, shown.sure, letters)],
            title=f"Heads that survive\n{self._title}",
            label="survives (% of runs)",
            note=note.strip(),
        )

    def _draw_mlps(self) -> Figure:
        shown = self.measures()[1]
        none = np.full(len(shown.values), np.nan)
        return layer_bars(
            shown.values,
            none,
            none,
            title=f"MLPs that survive\n{self._title}",
            label="survives (% of runs)",
            filled=shown.sure,
            sure_bars="Filled: super-survivors.",
        )

    @property
    def _title(self) -> str:
        return f"{self.about}, {self._of_runs()}"

    def _of_runs(self) -> str:
        tasks = int(self.facts["tasks"])
        return f"{self.facts['runs']} runs of {tasks} task{'s' * (tasks > 1)}"

    def _draw_compared(self) -> Drawing:
        table = self.tables["compared"]
        means, others = (100 * table[c].to_numpy(float) for c in ("super_survivors", "others"))
        return drawings.dots(
            "compared",
            [
                Dots("share (%)", means, bars=others),
                Dots.of_columns(
                    "difference within layers (points)", table, "difference", level=0.0
                ),
            ],
            _names(table),
            self._title,
            title="Super-survivors and other heads",
            caption="Super-survivors beside other heads. Left: the mean share of maps of each "
            "type, and the share of heads that surely follow a relation, in per cent; "
            "circles are super-survivors, grey lines other heads. Right: the difference "
            "within layers, in points, with intervals over heads; right of 0: "
            "super-survivors have more of it.",
            note="Circles: super-survivors. Grey lines: other heads. Intervals are over heads.",
        )

    def _draw_associations(self) -> Drawing:
        table = self.tables["associations"]
        label = "Spearman's ρ with survival"
        return drawings.dots(
            "associations",
            [Dots.of_columns(label, table, "rho", scale=1.0, level=0.0)],
            _names(table),
            self._title,
            title="What goes with survival",
            caption="In how many runs heads survive, ranked against other numbers of the same "
            "heads, within layers (Spearman's ρ, with intervals by random orders). Right "
            "of 0: of two heads of a layer, the one with more of it survives more often. "
            "Intervals are not corrected for their number; the p-values of the table are.",
            note="Ranks are within layers, intervals by random orders of heads there.",
        )


def _names(table: pd.DataFrame) -> list[str]:
    return [_TITLES[str(what)] for what in table["what"]]
