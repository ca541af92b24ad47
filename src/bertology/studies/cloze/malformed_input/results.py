"""What becomes of answers when texts are broken, as readers see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.data.words.malformed import KINDS
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_SHORT = "The answers do not surely depend on the text, so that this says little."


class MalformedInputResult(Result):
    """What becomes of answers when texts are broken.

    Table `forms`: one row for each kind of broken text, the intact text first and another text of
    the corpus last. `same`: the share of answers that stay; `unrelated`: how often the answers to
    two different texts agree; `kept`: where `same` lies between that (0) and no change (1); `right`
    and `lost`: right answers, and how many fewer than in the same texts intact; `rank` (median),
    `probability` (mean) of the right answer; `kl`: the divergence from the intact answer, in nats.
    """

    lead: ClassVar[int] = 1
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "forms": {
            "same": "%", "unrelated": "%", "right": "%", "kept": "%", "lost": "points", "bag": "%",
        }
    }  # fmt: skip

    @property
    def answer(self) -> str:
        """How many answers survive shuffling, beside those of unrelated texts."""
        known = self._rows()
        if known.empty:
            return f"{NOTHING_SURE}: no text of the corpus is changed by any kind of breaking."
        first = known.iloc[0]
        same = of_row(first, ("same", "same_low", "same_high"))
        lost = of_row(first, ("lost", "lost_low", "lost_high"))
        found = (
            f"Broken texts ({first['form']}) get the same answer in {percent(same)}, two "
            f"different texts in {100 * float(first['unrelated']):.0f} %, and {points(lost)} of "
            "right answers are lost."
        )
        return found if self.facts["informed"] else f"{found} {_SHORT}"

    def headline(self) -> str:
        """How many texts were asked, and who knew subjects from objects."""
        facts = self.facts
        told = f"; subjects and objects by {facts['tagger']}" if facts["tagger"] else ""
        left = f", {facts['left_out']} left out" if facts["left_out"] else ""
        return f"{facts['items']} {facts['asked']}{left}{told}"

    def drawings(self) -> Sequence[Drawing]:
        """Answers that stay, and right answers that are lost."""
        more = " Diamonds: what a bag of words gets right." if "bag" in self.tables["forms"] else ""
        return [
            Drawing(
                "forms",
                self._draw_same,
                "One row for each way to break a text. Left: the per cent of answers that stay as "
                "they were; the grey bar is how often answers to two different texts agree. Right: "
                "where that lies between the grey bar (0) and no change (100). Intervals hold for "
                "all rows together.",
            ),
            Drawing(
                "right",
                self._draw_right,
                "One row for each way to break a text. Left: the per cent of right answers, the "
                "dashed line that of all intact texts. Right: how many points fewer are right "
                f"than in the same texts intact, with intervals for all rows together.{more}",
            ),
        ]

    def _rows(self) -> pd.DataFrame:
        table = self.tables["forms"]
        return table[table["form"].isin(KINDS) & (table["n"] > 1)]

    def _draw_same(self) -> Figure:
        rows = self._rows()
        same = Dots.of_columns("same answer (%)", rows, "same")
        return interval_dots(
            [
                replace(same, bars=100 * rows["unrelated"].to_numpy()),
                Dots.of_columns("kept beyond unrelated texts (%)", rows, "kept", level=50),
            ],
            [str(name) for name in rows["form"]],
            title=f"Answers to broken texts\n{self.about}",
            note="Grey bar: answers to two different texts agree. Dashed: one half.",
        )

    def _draw_right(self) -> Figure:
        rows = self._rows()
        intact = self.tables["forms"].iloc[0]
        bag = 100 * rows["bag"].to_numpy() if "bag" in rows else None
        none = np.full(len(rows), np.nan)
        right = Dots(
            "right (%)", 100 * rows["right"].to_numpy(), none, none,
            level=100 * float(intact["right"]), hollow=bag,
        )  # fmt: skip
        return interval_dots(
            [right, Dots.of_columns("lost (points)", rows, "lost", level=0)],
            [str(name) for name in rows["form"]],
            title=f"Right answers to broken texts\n{self.about}",
            note="Dashed: all texts intact; nothing lost."
            + ("" if bag is None else " Diamond: a bag of words."),
        )
