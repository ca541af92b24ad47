"""The result of comparing ways to fine-tune: gains over plain fine-tuning, scores, costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, listed
from bertology.results.drawing import Drawing
from bertology.studies.designs.scored_runs import ScoredRunsResult
from bertology.studies.training.finetuning_variants.choice import PLAIN, TITLES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

BETTER, WORSE = "better", "worse"
TITLED = "title_"  # and a name: the fact that holds the title of a variant without its own


class FinetuningVariantsResult(ScoredRunsResult):
    """Scores of variants (`variants`), of each run (`runs`), on noisy texts, and what they cost.

    `variants` has one row for each variant and metric: the mean over seeds with an interval over
    seeds and examples, the spread over seeds, failed runs, and how much it is above plain
    fine-tuning with the same seeds. The bounds of that hold for all variants together, and `sure`
    says which are better or worse when all are tested. `noisy` is the same where some tokens of the
    scored texts are others. `costs` has trained weights, seconds, and the device; `time` is in
    units of plain fine-tuning, and empty where a run was on another device than plain's, such as a
    model that was kept. Claims rest on intervals of their own variant alone.
    """

    lead: ClassVar[int] = 6

    @property
    def _written(self) -> dict[str, str]:
        """Titles of variants that have no name of their own: their ways as they were written."""
        known = {name: f"{TITLED}{name}" for name in dict.fromkeys(self.table()["variant"])}
        return {name: str(self.facts[fact]) for name, fact in known.items() if fact in self.facts}

    def _title(self, name: str) -> str:
        return self._written.get(name) or TITLES[name]

    def _named(self, row: pd.Series[Any]) -> str:
        """The title of a variant, and whether none of its runs learnt anything."""
        none_learnt = int(row["failed"]) == int(self.facts["seeds"])
        return f"{self._title(str(row['variant']))}{' (no run learnt)' if none_learnt else ''}"

    @property
    def _gains(self) -> pd.DataFrame:
        table = self.table()
        wanted = (table["metric"] == self.facts["judged"]) & (table["variant"] != PLAIN)
        found: pd.DataFrame = table.loc[wanted]
        return found

    @property
    def answer(self) -> str:
        """Which variants are surely better or worse than plain fine-tuning."""
        rows = self._gains
        over = f"{len(rows)} variants; {self.facts['judged']}, over {self.facts['seeds']} seeds"
        told = {
            what: [self._named(row) for _, row in rows[rows["sure"] == what].iterrows()]
            for what in (BETTER, WORSE)
        }
        if not any(told.values()):
            than = "no variant is surely better or worse than plain fine-tuning"
            return f"{NOTHING_SURE}: {than} ({over})."
        first, *others = (
            f"surely {what}: {listed(names)}" for what, names in told.items() if names
        )
        beside = "beside plain fine-tuning"
        return f"{first[0].upper()}{'; '.join([first[1:], *others])}, {beside} ({over})."

    def headline(self) -> str:
        """What was learnt from what."""
        facts = self.facts
        return (
            f"{facts['task']}: {facts['train_size']} examples to learn from, {facts['examples']} "
            f"to score, {facts['epochs']} epochs, {facts['seeds']} seeds"
        )

    def drawings(self) -> Sequence[Drawing]:
        """Gains over plain fine-tuning, all scores, and what variants cost."""
        scores = (
            "One row for each way to fine-tune; one panel for each score of the task, times a "
            "hundred. Dots are means over seeds, with intervals over seeds and examples together. "
            "All variants learn from the same data with the same seeds. The last row is always "
            "the same answer, which a way must beat to have learnt anything."
        )
        gains = (
            "How much better each way is than plain fine-tuning with the same seeds, in points; on "
            "the scored texts, and on the same texts with some tokens replaced at random. "
            "Intervals are over seeds and examples and hold for all rows together: those that do "
            "not reach the line are surely better or worse. Both panels have the same scale."
        )
        costs = (
            "What each way costs: the share of the weights that it trains, and how long it takes "
            "in units of plain fine-tuning. Dots are means over seeds. Times count whatever else "
            "ran on the machine; those of another device than plain fine-tuning's, such as where a "
            "model of it was kept, are not compared and have no dot."
        )
        return [
            Drawing("gains", self._draw_gains, gains),
            self.methods_drawing(
                "variants",
                "Scores by way to fine-tune",
                {name: self._title(name) for name in self.table()["variant"]},
                scores,
                constants=self._constants,
            ),
            Drawing("costs", self._draw_costs, costs),
        ]

    @property
    def _constants(self) -> dict[str, float]:
        """What a constant answer scores; older results know that of the judged metric alone."""
        known = {str(self.facts["judged"]): float(self.facts["constant"])}
        return {
            metric: float(self.facts.get(f"constant_{metric}", known.get(metric, math.nan)))
            for metric in dict.fromkeys(self.table()["metric"])
        }

    def _draw_gains(self) -> Figure:
        judged, clean = str(self.facts["judged"]), self.table()
        rows = [PLAIN, *self._gains["variant"]]
        panels = []
        for label, table in (("texts as they are", clean), ("noisy texts", self.tables["noisy"])):
            own = table[table["metric"] == judged].set_index("variant").loc[rows]
            sides = [100 * own[f"over_plain{end}"].to_numpy(float) for end in ("", "_low", "_high")]
            for side in sides:
                side[0] = 0.0  # plain is no better than itself
            panels.append(Dots(f"points of {judged} above plain, {label}", *sides))
        return interval_dots(
            panels,
            [self._title(name) for name in rows],
            title=f"What other ways to fine-tune gain\n{self.about}",
            reference=self._title(PLAIN),
            same_scale=True,
            note=f"Means over {self.facts['seeds']} seeds; intervals hold for all rows together.",
        )

    def _draw_costs(self) -> Figure:
        table = self.tables["costs"]
        none = np.full(len(table), math.nan)
        panels = [
            Dots("weights trained (%)", 100 * table["share"].to_numpy(float), none, none),
            Dots("time, plain = 1", table["time"].to_numpy(float), none, none),
        ]
        names = [self._title(name) for name in table["variant"]]
        note = "Times count whatever else ran on the machine."
        return interval_dots(panels, names, title=f"What they cost\n{self.about}", note=note)
