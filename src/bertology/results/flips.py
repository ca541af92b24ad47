"""Which examples two classifiers answer differently, by the answers that their results keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from bertology.results.result import Result

ANSWERS = "answers"
"""The table in which a result keeps what a classifier answered, example by example."""
ANSWER_COLUMNS = ("id", "texts", "right", "answer", "sure")
_MOVED = 10  # examples that are told where answers are numbers
_NAMES = ("only_second", "only_first", "neither")


@dataclass(frozen=True)
class Flips:
    """The examples of one corpus that two models answer differently."""

    table: pd.DataFrame
    """id, texts, right, first, first_sure, second, second_sure, kind; of numbers: moved."""
    examples: int  # that both were asked
    numbers: bool = False

    def count(self, kind: str) -> int:
        """How many are right for one of the two models only, or for neither."""
        return int((self.table["kind"] == kind).sum())

    def sentence(self, first: str, second: str) -> str:
        """How many, in words."""
        if self.numbers:
            return (
                f"Answers are numbers: of {self.examples:,} examples, those that the two answer "
                "most differently are told."
            )
        if self.table.empty:
            return f"All {self.examples:,} examples are answered alike."
        only_second, only_first, neither = map(self.count, _NAMES)
        return (
            f"{len(self.table):,} of {self.examples:,} examples are answered differently: "
            f"{only_second:,} are right for {second} only, {only_first:,} for {first} only, and "
            f"{neither:,} are wrong for both."
        )


def flips(first: Result, second: Result) -> Flips | None:
    """What two results over the same examples tell of flips; None where they keep no answers.

    What only the second model has right comes first, then what only the first has; of each kind,
    those examples first of whose answers both models are surest.
    """
    tables = [r.tables.get(ANSWERS) for r in (first, second)]
    one, other = tables
    if one is None or other is None:
        return None
    if any(not set(ANSWER_COLUMNS) <= set(t.columns) for t in (one, other)):
        return None
    if list(one["id"]) != list(other["id"]):
        return None
    import pandas as pd

    made = pd.DataFrame({name: one[name] for name in ("id", "texts", "right")})
    for name, table in (("first", one), ("second", other)):
        made[name], made[f"{name}_sure"] = table["answer"], table["sure"]
    if made["first"].dtype.kind == "f":
        moved = (made["second"] - made["first"]).abs()
        made = made.assign(moved=moved, kind="moved").nlargest(_MOVED, "moved")
        return Flips(made[made["moved"] > 0].reset_index(drop=True), len(one), numbers=True)
    return Flips(_sorted(made[made["first"] != made["second"]]), len(one))


def _sorted(changed: pd.DataFrame) -> pd.DataFrame:
    kinds: Sequence[str] = np.select(
        [changed["second"] == changed["right"], changed["first"] == changed["right"]],
        list(_NAMES[:2]),
        _NAMES[2],
    ).tolist()
    order = [_NAMES.index(kind) for kind in kinds]
    sure = changed[["first_sure", "second_sure"]].to_numpy().min(axis=1, initial=1.0)
    return changed.assign(kind=kinds).iloc[np.lexsort([-sure, order])].reset_index(drop=True)
