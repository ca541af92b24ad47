"""Models trained by variant and seed: means over seeds, and differences paired by seed.

A variant may have draws of its own instead (a part with the dimension `seed`), which are not those
of the others. It is then compared with them without pairs, by an interval for unequal spreads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.drawing import Drawing
from bertology.results.hundredths import in_hundredths, rows_in_hundredths
from bertology.results.result import Result
from bertology.stats import Estimate, adjusted, paired_p, repeated, unpaired, unpaired_p
from bertology.studies.study import Context, Study

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

Reach = Callable[[int], None]
"""Is called with the number of steps that are done so far."""

_ANYWHERE = (-math.inf, math.inf)
_CONSTANT = "always the same answer"


class Reference(NamedTuple):
    """A variant that all are compared with, and the columns of the difference and of its test."""

    variant: str
    difference: str = "difference"
    p: str = "p"


@dataclass(frozen=True)
class Runs:
    """One row for each run, with all its numbers; what is computed from them is over seeds."""

    table: pd.DataFrame
    variant: str
    """The column of variants."""
    level: float
    facts: Mapping[str, Any]
    """Attributes of the parts, as the first one has them."""
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Where the values of a measure lie: no interval goes beyond."""
    units: Mapping[str, str] = field(default_factory=dict)
    """What is drawn for a variant, where it is not the seeds of the others."""

    def by_seed(self, measure: str) -> pd.DataFrame:
        """Seeds × variants; NaN where a variant has other seeds."""
        return self.table.pivot(index="seed", columns=self.variant, values=measure)

    def over_seeds(
        self, values: ArrayLike, within: tuple[float, float] = _ANYWHERE
    ) -> Estimate | None:
        """The mean of one number for each seed; None where one is missing."""
        array = np.asarray(values, dtype=np.float64)
        if not array.size or np.isnan(array).any():
            return None
        return repeated(array, self.level, within=within)

    def contrasts(
        self, measure: str, pairs: Mapping[str, tuple[str, str]], *, ending: str = ""
    ) -> dict[str, Estimate | None]:
        """How much higher one variant is than another; None if not measured.

        `pairs` are of variants, by quantity; `ending` is added to the names of the quantities.
        """
        found = dict[str, Estimate | None]()
        for quantity, (one, other) in pairs.items():
            compared, _ = self._difference(measure, one, other)
            found[f"{quantity}{ending}"] = None if math.isnan(compared.value) else compared
        return found

    def corrected(
        self, evidence: Callable[[Runs], Mapping[str, Estimate | None]], together: Sequence[str]
    ) -> dict[str, Estimate]:
        """All quantities that `evidence` makes of runs, but those that were not measured.

        They are at the level of the runs. Those that are judged `together`, as far as there are
        any, are at a stricter one (Bonferroni), so that together they hold at the usual level.
        """
        found = {name: e for name, e in evidence(self).items() if e is not None}
        asked = [name for name in together if name in found]
        strict = 1 - (1 - self.level) / max(len(asked), 1)
        for name, e in evidence(replace(self, level=strict)).items():
            if name in asked and e is not None:
                found[name] = e
        return found

    def _of(self, measure: str, variant: str) -> pd.Series[float]:
        """The values of a variant, by seed."""
        rows = self._by_variant.get(variant)
        return self.table.iloc[:0].set_index("seed")[measure] if rows is None else rows[measure]

    @cached_property
    def _by_variant(self) -> dict[str, pd.DataFrame]:
        """The rows of each variant, by seed."""
        groups = self.table.set_index("seed").groupby(self.variant, sort=False)
        return {str(name): rows for name, rows in groups}

    def _difference(self, measure: str, one: str, other: str) -> tuple[Estimate, float]:
        """How much higher one variant is than another, and the p-value of a test.

        Paired where both have the same seeds; else there are no pairs.
        """
        x, y = self._of(measure, one), self._of(measure, other)
        within = self.differences_within(measure)
        if not len(x) or not len(y):
            return repeated([], self.level), math.nan
        if x.index.equals(y.index):
            return repeated(x - y, self.level, within=within), paired_p(x - y)
        units = self.units.get(one, "seeds"), self.units.get(other, "seeds")
        found = unpaired(x, y, self.level, within=within, units=units)
        return found, unpaired_p(x, y)

    def differences_within(self, measure: str) -> tuple[float, float]:
        """Where differences of two values of a measure lie."""
        lowest, highest = self.limits.get(measure, _ANYWHERE)
        return lowest - highest, highest - lowest

    def learnt(self, measure: str, variant: str, baseline: float) -> bool:
        """Whether the mean of a variant surely beats a baseline; also where none was measured.

        Runs that agree to the last digit have no interval, and their mean must beat it.
        """
        found = self.over_seeds(self._of(measure, variant))
        if found is None or math.isnan(baseline):
            return True
        return baseline < (found.value if math.isnan(found.low) else found.low)

    def tables(
        self, measures: Iterable[str], references: Sequence[Reference], *, called: str = "measure"
    ) -> dict[str, pd.DataFrame]:
        """The means, in a table named after the column of variants, and the runs.

        The table of means has one row for each variant and measure (in the column `called`); tests
        are corrected (Holm) for all variants.
        """
        import pandas as pd

        blocks = []
        for measure in measures:
            rows = [
                {self.variant: name, called: measure} | self._row(name, measure, references)
                for name in dict.fromkeys(self.table[self.variant])
            ]
            tested = {f"{r.p}_adjusted": adjusted([row[r.p] for row in rows]) for r in references}
            blocks.append(pd.DataFrame(rows).assign(**tested))
        return {f"{self.variant}s": pd.concat(blocks, ignore_index=True), "runs": self.table}

    def _row(self, name: str, measure: str, references: Sequence[Reference]) -> dict[str, float]:
        own = self._of(measure, name)
        mean = repeated(own, self.level, within=self.limits.get(measure, _ANYWHERE))
        bounds = {"low": mean.low, "high": mean.high, "seeds": mean.n}
        row = {"mean": mean.value, "median": float(own.median()), **bounds}
        for variant, difference, p in references:
            compared, tested = self._difference(measure, name, variant)
            row[difference] = compared.value
            row[f"{difference}_low"], row[f"{difference}_high"] = compared.low, compared.high
            row[p] = tested
        return row


class TrialsResult(Result):
    """Means over seeds (the first table: a row for each variant and measure), and table `runs`."""

    def in_units(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """Scores are times a hundred, as in the figure; losses and costs are as they are."""
        variant, measure = self.table().columns[:2]
        scores = [m for m in dict.fromkeys(self.table()[measure]) if not m.endswith("loss")]
        if measure not in table:
            return in_hundredths(table, dict.fromkeys(scores, "× 100"))
        rows = table[measure].isin(scores)
        columns = [str(c) for c in table.columns]
        means = [c for c in columns if c not in (variant, "seeds") and not _is_test(c)]
        names = table[measure].where(~rows, table[measure] + " (× 100)")
        return rows_in_hundredths(table, rows, means).assign(**{measure: names})

    def dots(
        self,
        name: str,
        title: str,
        labels: Mapping[str, str],
        caption: str,
        *,
        about: str = "",
        reference: str | None = None,
        names: Mapping[str, str] | None = None,
        constants: Mapping[str, float] | None = None,
        also: str = "",
        note: str | None = None,
    ) -> Drawing:
        """A dot with its interval for each variant, in one panel for each measure.

        `labels` says what the measures are called: losses are drawn as they are, all others are
        fractions and drawn times 100. A line goes through the `reference`. `names` are titles of
        variants; `constants` are what a constant answer scores, which is drawn last. `also` is
        what else means are over; `note` is another line below the figure.
        """
        table, panels = self.table(), []
        variant, measure = table.columns[:2]
        for one, label in labels.items():
            drawn = table.loc[table[measure] == one, ["mean", "low", "high"]].to_numpy(float).T
            if constants is not None:
                drawn = np.column_stack([drawn, [constants[one], math.nan, math.nan]])
            if np.isfinite(drawn[0]).any():
                panels.append(Dots(label, *(drawn if one.endswith("loss") else 100 * drawn)))
        rows = [(names or {}).get(one, one) for one in dict.fromkeys(table[variant])]
        return drawings.dots(
            name,
            panels,
            rows if constants is None else [*rows, _CONSTANT],
            about or self.about,
            title=title,
            caption=caption,
            reference=reference,
            note=note
            or f"Means over {int(self.facts['seeds'])} seeds{also} with "
            f"{100 * float(self.facts['level']):.0f} % Student intervals (hollow: none). "
            f"Claims rest on differences{'' if also else ' paired by seed'}, which are surer than "
            "these.",
        )


def _is_test(column: str) -> bool:
    """Whether a column holds p-values."""
    return column in ("p", "p_adjusted") or column.endswith(("_p", "_p_adjusted"))


@dataclass(frozen=True)
class Trials(Study):
    """One part for each variant and seed, which trains a model, judges it and throws it away.

    A subclass says which variants there are, and what one run is (`trial`).
    """

    column: ClassVar[str] = "variant"  # what variants are called in tables

    seeds: int = parameter(
        3, "Runs of each variant, each with another seed; one gives no verdicts.", minimum=1
    )
    level: float = parameter(0.95, "Confidence level.", minimum=0.5, maximum=0.999, concludes=True)

    @property
    def variants(self) -> Sequence[str]:
        """Names of what is compared."""
        raise NotImplementedError

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """One run each."""
        return [f"{name}-seed-{k}" for k in range(self.seeds) for name in self.variants]

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Train one model and judge it."""
        variant, seed = split_part(part)
        reach = reaching(context)
        return self.trial(encoder, corpus, variant=variant, seed=seed, reach=reach)

    def trial(
        self, encoder: Encoder, corpus: Corpus, *, variant: str, seed: int, reach: Reach
    ) -> xr.Dataset:
        """What is found of one run: plain numbers, and arrays if there are any."""
        raise NotImplementedError

    def runs(self, measured: Mapping[str, xr.Dataset]) -> Runs:
        """The plain numbers of all parts, for the conclusion."""
        import pandas as pd

        rows = []
        for part, found in measured.items():
            variant, seed = split_part(part)
            for at in found["seed"].to_numpy().tolist() if "seed" in found.dims else (seed,):
                run = found.sel(seed=at) if "seed" in found.dims else found
                numbers = {str(n): float(v) for n, v in run.data_vars.items() if not v.dims}
                rows.append({self.column: variant, "seed": at} | numbers)
        first = next(iter(measured.values()))
        return Runs(pd.DataFrame(rows), self.column, self.level, first.attrs)


def split_part(part: str) -> tuple[str, int]:
    """`no-nsp-seed-2` as its variant and seed."""
    variant, _, seed = part.rpartition("-seed-")
    return variant, int(seed)


def reaching(context: Context) -> Reach:
    """Tells the progress bar which of the steps that are done are new."""
    told = 0

    def reach(done: int) -> None:
        nonlocal told
        if done > told:
            context.advance(done - told)
            told = done

    return reach
