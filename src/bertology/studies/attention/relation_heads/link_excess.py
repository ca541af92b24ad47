"""How much more heads give to linked words than to others, and how many links they follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.data.words.link_moves import COMPARISONS
from bertology.errors import DataError
from bertology.stats import Estimate, mean_intervals
from bertology.stats.extremes import Extreme, largest_of, smallest_of
from bertology.stats.leading import leading
from bertology.stats.least_means import LeastMeans, least_means

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Words = NDArray[np.str_]
EXCESS = ("excess", "simultaneous_low", "simultaneous_high")
"""Columns of the table of heads: what linked words get beyond all comparisons, and its bounds."""
_DISTANCES = 5  # how many distances are tried, from the one that was asked for


@dataclass(frozen=True)
class LinkExcess:
    """What linked pairs get beyond all comparisons, head by head."""

    margin: float
    level: float

    def of(self, compared: Floats, words: Words) -> LeastMeans:
        """The smallest excess of each head over comparisons, by both ends of links.

        `compared` is (sentence, pairs, layer, head), linked pairs first; `words` (sentence, 2).
        `he` ends a fifth of the links, and what a head does with one word is not a relation: every
        word counts once.
        """
        excess = (compared[:, :1] - compared[:, 1:]).reshape(len(compared), -1)  # (N, kinds × V)
        rows = [each_word_once(excess, words[:, end]) for end in range(2)]
        by_kind = [one for of in rows for one in of.T.reshape(len(COMPARISONS), -1, len(of))]
        return least_means(by_kind, margin=self.margin, level=self.level)

    def by_distance(
        self, compared: Floats, words: Words, distance: Floats, first: int
    ) -> pd.DataFrame:
        """What the head with the largest excess is, the farther apart linked words must be.

        A sentence counts where its nearest linked words are so far apart.
        """
        import pandas as pd

        rows = []
        for least in range(first, first + _DISTANCES):
            there = distance >= least
            if min(_different(words[there])) < 2:
                break
            found = self.of(compared[there], words[there])
            best = int(found.value.argmax())
            layer, head = divmod(best, compared.shape[-1])
            rows.append(
                {
                    "min_distance": least,
                    "sentences": int(there.sum()),
                    "layer": layer,
                    "head": head,
                    "excess": found.value[best],
                    "excess_low": found.low[best],
                    "excess_high": found.high[best],
                    "sure_heads": int((found.p_adjusted < 1 - self.level).sum()),
                }
            )
        return pd.DataFrame(rows)

    def evidence(self, heads: pd.DataFrame, relation: str) -> dict[str, Estimate | None]:
        """Bounds hold for all heads together; they are over words, each of which counts once.

        Names open with the relation (`frame_best_excess`): a claim about one relation says nothing
        about another.
        """
        chosen = heads[heads["above_percentile"]]
        words = int(heads["words"].min())

        def counted(value: float, low: float, high: float) -> Estimate:
            found = Estimate(value, low, high, words, self.level, "words", counted=True)
            return replace(found, remedy="more linked words would narrow it")

        def of(extreme: Extreme, rows: pd.DataFrame) -> Estimate | None:
            bounds = (rows[column] for column in EXCESS)
            return extreme(*bounds, n=rows["words"], level=self.level, unit="words")

        found = {
            "heads_above_percentile": counted(*3 * [float(len(chosen))]),
            "best_excess": of(largest_of, heads),
            "least_excess_above_percentile": of(smallest_of, chosen),
        }
        if heads["sure"].any():  # or any share would be small, also that of a random model
            shares = [float((heads[column] > self.margin).mean()) for column in EXCESS]
            found["share_of_heads"] = counted(*shares)
        opening = relation.replace("-", "_").replace(":", "_")
        return {f"{opening}_{name}": estimate for name, estimate in found.items()}


def _different(words: Words) -> list[int]:
    """How many different words stand at each end (sentence, 2)."""
    return [np.unique(side).size for side in words.T]


def require_words(words: Words) -> None:
    """Refuse links that all start from one word, or all end in one: intervals are over words."""
    for end, different in zip(("start from", "end in"), _different(words), strict=True):
        if different < 2:
            raise DataError(
                f"All links that can be compared {end} the same word, "
                f"{str(words[0, int(end == 'end in')])!r}. What a head does with one word is no "
                "relation, so at least 2 different words are needed at each end.",
                hint="Give sentences in which links have other words too. syntax-heads counts "
                "how many links each head follows, whatever the words are.",
            )


def accuracy_columns(hits: Floats, links: Floats, level: float) -> dict[str, Floats]:
    """The share of all links that each head follows, and by how much it lies behind the first.

    `hits` are shares of each sentence's links (sentence, layer, head). Intervals and tests are over
    sentences.
    """
    weights = (links / links.mean())[:, None, None]  # every link counts once
    counted = hits * weights
    share = counted.mean(axis=0)
    # How many links a sentence has is drawn with it: what varies is the distance from the share.
    mean, low, high = (s.ravel() for s in mean_intervals(share + (hits - share) * weights, level))
    lead = leading(counted.reshape(len(hits), -1).T)
    return {
        "accuracy": mean,
        "accuracy_low": low.clip(0, 1),
        "accuracy_high": high.clip(0, 1),
        "behind_first": lead.behind,
        "behind_first_p": lead.p_adjusted,
    }


def each_word_once(values: Floats, words: Words) -> Floats:
    """Means over the rows of `values` (N, V) that have the same words: (W, V)."""
    _, which = np.unique(words, return_inverse=True)
    sums = np.zeros((which.max() + 1, values.shape[1]))
    np.add.at(sums, which, values)
    return sums / np.bincount(which)[:, None]
