"""What was answered in chains of statements, by version of the text and number of steps.

A version is what stands before the question: all statements, only those of a short text, the same
words in random order, or nothing. An answer is right if the statements make the right candidate
likelier than the others, beyond what the question alone makes of them; `plain` is without this.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.data.clozes import MASK

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from bertology.data.corpus import Example

ALL, SHORT, MIXED, NONE = "all statements", "short text", "words mixed", "no statements"
VERSIONS = (ALL, SHORT, MIXED, NONE)
_BETWEEN = re.compile(r"(?<=[.!?])\s+")


def texts_of(example: Example, seed: int) -> dict[str, str]:
    """The text in each version that it has."""
    sentences = _BETWEEN.split(example.text.strip())
    at = next((i for i, sentence in enumerate(sentences) if MASK in sentence), 0)
    before, question = sentences[:at], " ".join(sentences[at:])
    found = {ALL: example.text}
    if not before:
        return found
    if kept := example.annotations.get("short"):
        found[SHORT] = " ".join([*(before[i] for i in kept), question])
    words = " ".join(before).split()
    # By the statements, so that all questions about them see the same disorder.
    random.Random(f"{seed}-{' '.join(before)}").shuffle(words)
    return found | {MIXED: f"{' '.join(words)} {question}", NONE: question}


@dataclass(frozen=True)
class ChainScores:
    """All questions (N), by version (V) and reading (R)."""

    plain: NDArray[
        np.float64
    ]  # (V, N, R) 1 right, 0 wrong, between: equally likely; NaN: not asked
    raised: NDArray[np.float64]  # the same, beyond what the question alone makes likely
    chance: NDArray[np.float64]
    steps: NDArray[np.int64]  # 0: not known
    group: NDArray[np.str_]
    item: NDArray[np.str_]

    @classmethod
    def of(cls, parts: Sequence[xr.Dataset]) -> ChainScores:
        """All parts together."""
        plain, raised = (
            _right(np.concatenate([part[name].to_numpy() for part in parts], axis=1))
            for name in ("plain", "raised")
        )
        others = ("chance", "steps", "group", "item")
        return cls(
            plain, raised, *(np.concatenate([part[n].to_numpy() for part in parts]) for n in others)
        )

    @property
    def told(self) -> list[int]:
        """Numbers of steps; empty where the corpus does not tell them."""
        return sorted({int(n) for n in self.steps if n > 0})

    @property
    def groups(self) -> list[str]:
        """Kinds of questions, in the order in which they come."""
        return list(dict.fromkeys(map(str, self.group)))

    def judged(self, version: str = ALL) -> NDArray[np.float64]:
        """(N, R) raised where there is a question alone to compare with; else plain."""
        at = VERSIONS.index(version)
        found: NDArray[np.float64] = np.where(
            np.isnan(self.raised[at]), self.plain[at], self.raised[at]
        )
        return found

    def by_item(
        self, values: NDArray[np.float64], among: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """(R, items) means over the questions of an item; NaN where it has none of them."""
        _, item = np.unique(self.item, return_inverse=True)
        there = np.isfinite(values) & (True if among is None else among[:, None])
        found = np.full((values.shape[1], item.max() + 1), np.nan)
        for r in range(values.shape[1]):
            n = np.bincount(item, there[:, r], minlength=found.shape[1])
            total = np.bincount(item, np.where(there[:, r], values[:, r], 0.0), found.shape[1])
            found[r, n > 0] = total[n > 0] / n[n > 0]
        return found

    def drops(self, values: NDArray[np.float64], among: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Values of items whose mean is the drop by one step more, and whose spread is its own.

        The drop is the slope of least squares over all questions; what each item adds to its error
        is what makes the interval, so that questions of an item count as one observation.
        """
        known = among & np.isfinite(values) & (self.steps > 0)
        x, y = self.steps[known].astype(float), (values - self.chance)[known]
        if len(np.unique(x)) < 2:
            return np.empty(0)
        away = x - x.mean()
        slope = float(away @ y / (away @ away))
        errors = away * (y - y.mean() - slope * away) / (away @ away)
        _, item = np.unique(self.item[known], return_inverse=True)
        found = np.bincount(item, errors).astype(np.float64)
        return -slope - len(found) * found


def _right(margins: NDArray[np.float64]) -> NDArray[np.float64]:
    right = (margins > 0) + 0.5 * (margins == 0)
    return np.where(np.isnan(margins), np.nan, right)
