"""What a result says of links between words: which heads follow them, as measures and figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bertology.data.words.classes import BY_CORPUS
from bertology.report import drawings
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, column_grid, dashed
from bertology.results.result import Result

if TYPE_CHECKING:
    import pandas as pd

# Column of `links`: title with a place for the links, where colours part, reading.
FOLLOWED = {
    "excess": (
        "{} followed, beyond the best fixed offset",
        0.0,
        "Above 0: the head finds the linked word better than always looking so many words away.",
    ),
    "share": (
        "{} followed",
        None,
        "High: the word that the source attends to most is the linked one.",
    ),
    "selectivity": (
        "{} followed, beyond from other words",
        0.0,
        "Above 0: the head finds the word from its source more than from any other word.",
    ),
    "excess_with_special": (
        "{} followed, [CLS] and [SEP] in the running, beyond the best fixed offset",
        0.0,
        "Above 0: the linked word gets more than special tokens, too, and the offset is beaten.",
    ),
}
_WORDS = {
    "to-head": "{} links from words to their heads",
    "to-dependent": "{} links from words to what depends on them",
    "forward": "{} links",
    "backward": "{} links, turned round,",
}


class LinksResult(Result):
    """Its table `links` has a row for each relation, direction and head."""

    @property
    def guessed(self) -> str:
        """Says so where a tagger decided what is linked."""
        who = self.facts["tagger"]
        if who == BY_CORPUS or "noun-pronoun" not in set(self.tables["relations"]["relation"]):
            return ""
        return f"Nouns and pronouns: {who}; which belong together is guessed."

    def judged(self, rows: pd.DataFrame, gain: str) -> pd.DataFrame:
        """Sure: better than the offset and than from other words, corrected for both questions."""
        tests = rows[[f"{gain}_p", "selectivity_p"]].max(axis=1)
        gains = rows[[gain, "selectivity"]].min(axis=1)
        return rows.assign(sure=(tests < (1 - self.facts["level"]) / 2) & (gains > 0))

    def by_direction(self) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
        """Relation, direction and their rows of `links`."""
        groups = self.tables["links"].groupby(["relation", "direction"], sort=False)
        return (((str(r), str(d)), rows) for (r, d), rows in groups)

    def followed(self, relation: str, direction: str, rows: pd.DataFrame, column: str) -> Measure:
        """A column of `links` as a measure of heads."""
        title, middle, reading = FOLLOWED[column]
        infix = "" if direction == "forward" else f"{direction}-"
        return Measure.of_column(
            self.judged(rows, "excess"),
            column,
            name=f"{dashed(relation)}-{infix}{dashed(column)}",
            title=title.format(_WORDS[direction].format(relation)),
            unit="% of links" if column == "share" else "points (% of links)",
            bounds=(f"{column}_low", f"{column}_high") if f"{column}_low" in rows else None,
            sure="sure" if column == "excess" else None,
            scale=100.0,
            middle=middle,
            reading=reading,
        )

    def grid_of(self, relation: str, direction: str, rows: pd.DataFrame) -> Drawing:
        """The heads that follow a relation, among words and with special tokens."""
        excess, share = (self.followed(relation, direction, rows, c) for c in ("excess", "share"))
        # Colours are of what a head finds: against the offset nearly all heads are losers, and
        # the best would be the palest. The offset is a line in the scale.
        special = 100 * column_grid(rows, "share_with_special")
        panels = [replace(share, sure=excess.sure), replace(share, values=special)]
        offsets = share.values - excess.values
        known = bool(np.isfinite(offsets).any())  # not where there are no links
        offset = float(np.nanmean(offsets)) if known else np.nan
        reading = (
            "A link counts as followed if its target is the word that the source attends to most: "
            "left among words, right with [CLS] and [SEP] in the running."
        )
        beside = (
            f" The best fixed offset, such as the word before, finds {offset:.0f} % (line in the "
            "scale)."
        )
        return drawings.grids(
            dashed(relation),
            panels,
            self.about,
            title=f"Heads that follow {_WORDS[direction].format(relation).rstrip(',')}",
            reading=f"{reading}{beside if known else ''} "
            f"{self.guessed if relation == 'noun-pronoun' else ''}".strip(),
            labels=["among words", "special tokens too"],
            sure="are surely better than the offset, and than from other words, corrected",
            level=(f"the best fixed offset, {offset:.0f} %", offset) if known else None,
            shared=True,
        )
