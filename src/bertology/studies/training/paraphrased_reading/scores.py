"""Right answers by method, before and after rewording: means, drops, and where the drops are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.stats import Estimate
from bertology.stats.grouped import Answers, grouped_contrast, grouped_mean
from bertology.studies.designs.trials import split_part
from bertology.studies.training.paraphrased_reading.data import FULL, LEARNT, RULES

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

ALL = "all questions"
FEWEST = 10  # questions on each side of a comparison
_SURELY = 1 - 1e-9  # a rule is right by itself, not by a tie

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class ReadingRuns:
    """How far each answer is right, (runs, questions), by method and wording."""

    original: Mapping[str, Floats]
    paraphrased: Mapping[str, Floats]
    texts: tuple[Codes, Codes]  # of each question, before and after
    types: tuple[Codes, Codes]
    names: tuple[str, ...]  # of types
    choices: int  # answers to each question
    paired: bool
    level: float

    @classmethod
    def read(cls, measured: Mapping[str, xr.Dataset], level: float) -> ReadingRuns:
        """The parts of the study."""
        rows: dict[str, dict[int, tuple[Floats, Floats]]] = {}
        about: xr.Dataset | None = None
        for part, found in measured.items():
            _, seed = split_part(part)
            before, after = (found[name].to_numpy() for name in ("original", "paraphrased"))
            for at, method in enumerate(found["method"].to_numpy().tolist()):
                rows.setdefault(str(method), {})[seed] = before[at], after[at]
            about = found if "text" in found else about
        if about is None or len({f.attrs["fingerprint"] for f in measured.values()}) > 1:
            raise DataError(
                "The data changed between two parts of this study.",
                hint="Do all of it again with force=True (--force).",
            )
        sides = [
            {m: np.stack([runs[k][side] for k in sorted(runs)]) for m, runs in rows.items()}
            for side in (0, 1)
        ]
        texts = about["text"].to_numpy(), about["asked_text"].to_numpy()
        types = about["type"].to_numpy(), about["asked_type"].to_numpy()
        names = tuple(str(name) for name in about["type_name"].to_numpy())
        choices, paired = int(about.attrs["answers"]), bool(about.attrs["paired"])
        return cls(sides[0], sides[1], texts, types, names, choices, paired, level)

    @property
    def methods(self) -> list[str]:
        """Those that were run, rules last."""
        return [m for m in (*LEARNT, *RULES) if m in self.original]

    def answers(self, method: str, side: int, only: int | None = None) -> Answers:
        """Of one method to the questions as they are (0) or reworded (1), of all types or one."""
        right = (self.original, self.paraphrased)[side][method]
        found = Answers(right, self.texts[side])
        return found if only is None else found.only(self.types[side] == only)

    def score(
        self, method: str, side: int, only: int | None = None, *, tests: int = 1
    ) -> Estimate | None:
        """The share of right answers; None where there are no questions."""
        answers, level = self.answers(method, side, only), 1 - (1 - self.level) / tests
        found = grouped_mean(answers, level=level) if len(answers) else None
        return self._honest(found, method)

    def drop(self, method: str, only: int | None = None, *, tests: int = 1) -> Estimate | None:
        """How much less is right after rewording; intervals hold for so many tests together."""
        before, after = (self.answers(method, side, only) for side in (0, 1))
        if not len(before) or not len(after):
            return None
        found = self._lost(before, after, 1 - (1 - self.level) / tests)
        return self._honest(found, method)

    def drop_beyond(self, method: str, other: str) -> Estimate | None:
        """How much more one method loses by rewording than another with the same seeds.

        What a model without the text loses, too, is no matter of reading: a challenge set may have
        answers that are harder to guess.
        """
        if not {method, other} <= self.original.keys():
            return None
        before, after = (
            Answers(
                self.answers(method, side).right - self.answers(other, side).right, self.texts[side]
            )
            for side in (0, 1)
        )
        terms, most = [(1.0, before), (-1.0, after)], 1.0
        if self.paired:
            terms, most = [(1.0, Answers(before.right - after.right, before.groups))], 2.0
        found = grouped_contrast(terms, level=self.level, within=(-2.0, 2.0), each=(-most, most))
        return self._honest(found, method)

    def _lost(self, before: Answers, after: Answers, level: float) -> Estimate:
        """What is right before and not after; the same questions are compared one by one."""
        if not self.paired:
            return grouped_contrast([(1.0, before), (-1.0, after)], level=level)
        lost = Answers(before.right - after.right, before.groups)
        return grouped_contrast([(1.0, lost)], level=level, each=(-1.0, 1.0))

    def gain(self, method: str) -> Estimate | None:
        """How much more a method answers right than guessing does, in the original words.

        A head that reads each answer by itself does not know the place where it stands, so that
        what knows nothing is right in one of as many cases as there are answers. That is known,
        and needs no rule whose own luck would make the interval wider.
        """
        found = self.score(method, 0) if method in self.original else None
        if found is None:
            return None
        ends = {name: getattr(found, name) - 1 / self.choices for name in ("value", "low", "high")}
        return replace(found, **ends)

    @property
    def overlap_sides(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Questions that word overlap answers: no longer after rewording, and still then."""
        before, after = (s["word-overlap"][0] for s in (self.original, self.paraphrased))
        found = before >= _SURELY
        return found & (after < _SURELY), found & (after >= _SURELY)

    def overlap_drop(self) -> Estimate | None:
        """How much more the model drops where rewording breaks word overlap than elsewhere."""
        if not self.paired or FULL not in self.original:
            return None
        broken, kept = self.overlap_sides
        if min(broken.sum(), kept.sum()) < FEWEST:
            return None
        before, after = (self.answers(FULL, side) for side in (0, 1))
        lost = Answers(before.right - after.right, before.groups)
        terms = [(1.0, lost.only(broken)), (-1.0, lost.only(kept))]
        found = grouped_contrast(terms, level=self.level, within=(-2.0, 2.0), each=(-1.0, 1.0))
        return self._honest(found, FULL)

    def _honest(self, found: Estimate | None, method: str) -> Estimate | None:
        """One run of what is trained has no interval."""
        if found is None or method in RULES or len(self.original[method]) > 1:
            return found
        return replace(found, low=math.nan, high=math.nan)

    # Tables ---------------------------------------------------------------------------------------

    def methods_table(self) -> pd.DataFrame:
        """One row for each method."""
        import pandas as pd

        rows = []
        for method in self.methods:
            runs = 1 if method in RULES else len(self.original[method])
            sides = {"original": self.score(method, 0), "paraphrased": self.score(method, 1)}
            sides["drop"] = self.drop(method)
            rows.append({"method": method} | _columns(sides) | {"seeds": runs})
        return pd.DataFrame(rows)

    def types_table(self) -> pd.DataFrame:
        """One row for each type of question, the last for all."""
        import pandas as pd

        rows, chosen = [], [*enumerate(self.names), (None, ALL)]
        for only, name in chosen:
            if only is not None and len(self.names) == 1:
                continue
            tests = len(self.names) if only is not None else 1
            sides = {
                "original": self.score(FULL, 0, only, tests=tests),
                "paraphrased": self.score(FULL, 1, only, tests=tests),
            }
            sides["drop"] = self.drop(FULL, only, tests=tests)
            sides["overlap_drop"] = self.drop("word-overlap", only, tests=tests)
            sizes = [len(self.answers(FULL, side, only)) for side in (0, 1)]
            counted = dict(zip(("questions", "reworded"), sizes, strict=True))
            rows.append({"type": name} | counted | _columns(sides))
        return pd.DataFrame(rows)

    def overlap_table(self) -> pd.DataFrame:
        """What the model makes of questions that word overlap answers, before and after."""
        import pandas as pd

        names, rows = ("no longer", "still"), []
        for name, which in zip(names, self.overlap_sides, strict=True):
            before, after = (self.answers(FULL, side).only(which) for side in (0, 1))
            lost = self._lost(before, after, self.level) if len(before) else None
            own = {"original": before, "paraphrased": after}
            sides = {
                k: grouped_mean(a, level=self.level) if len(a) else None for k, a in own.items()
            }
            told = {k: self._honest(v, FULL) for k, v in {**sides, "drop": lost}.items()}
            rows.append({"overlap_finds_it": name, "questions": int(which.sum())} | _columns(told))
        return pd.DataFrame(rows)


def _columns(found: Mapping[str, Estimate | None]) -> dict[str, float]:
    row: dict[str, float] = {}
    for name, one in found.items():
        ends = (math.nan,) * 3 if one is None else (one.value, one.low, one.high)
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
    return row
