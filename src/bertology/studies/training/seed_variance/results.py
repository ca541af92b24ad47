"""What is shown of crossed seeds: components of the variance, the best of k runs, stopping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from bertology.report.figures import Band, Dots, band_curve, interval_dots
from bertology.results.answers import NOTHING_SURE, plain, points
from bertology.results.drawing import Drawing
from bertology.results.hundredths import scores_in_hundredths
from bertology.results.result import Result

if TYPE_CHECKING:
    import pandas as pd


class SeedVarianceResult(Result):
    """Where the variance of scores comes from (table `components`), and each run (table `runs`).

    `components` has the standard deviation of the score by initialisation, order, rest and all
    together, without the luck of the examples, which stands below; `share` is that of the variance
    of runs on these examples, `p` of the F test. `best` has the expected best of k `runs`: where it
    is picked, the same run on other examples (`elsewhere`), and by how much each is above one run
    (`picked_gain`, `gain`). `stopping` has for each share of the training the rank correlation
    with the final score on other examples, how much training is saved if the poorer half is
    stopped there, what that loses, and what it gains over as few whole runs as cost the same.
    """

    lead: ClassVar[int] = 8
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "components": {"spread": "points", "share": "%"},
        "best": {
            "picked": "× 100",
            "elsewhere": "× 100",
            "picked_gain": "points",
            "gain": "points",
        },
        "stopping": {"saving": "%", "loss": "points", "gain": "points"},
    }

    def in_units(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """Scores times a hundred, as in figures."""
        return scores_in_hundredths(table) if name == "runs" else super().in_units(name, table)

    @property
    def answer(self) -> str:
        """How much seeds change scores, and how early it is seen."""
        found, facts = self.evidence(), self.facts
        whole = found.get("run_spread")
        if whole is None:
            why = next(iter(self.reasons().values()), "not judged: too few seeds")
            return f"{NOTHING_SURE}: {why.removeprefix('not judged: ')}."
        told = (
            f"Runs that differ in their seeds spread by {points(whole)} of {facts['judged']}: "
            f"{points(found['initialisation_spread'])} by new weights, "
            f"{points(found['order_spread'])} by the order of the data"
        )
        parts = (found[f"{name}_spread"].value for name in ("initialisation", "order"))
        if max(parts) > whole.value:
            told += " (each is estimated by itself)"
        early = found.get("early_rank_correlation")
        if early is None:
            return f"{told}."
        return (
            f"{told}. After {100 * float(facts['early']):.0f} % of the training scores have a rank "
            f"correlation of {plain(early)} with the final ones."
        )

    def headline(self) -> str:
        """The design, and how many runs failed."""
        facts = self.facts
        runs = int(facts["seeds"]) * int(facts["orders"])
        diverged = int(facts["diverged"])
        lost = f" ({diverged} of them diverged)" if diverged else ""
        return (
            f"{facts['task']}: {facts['train_size']} examples to learn from, {facts['examples']} "
            f"to score; {facts['seeds']} initialisations × {facts['orders']} orders; "
            f"{facts['failed']} of {runs} runs failed{lost}; always the same answer: "
            f"{100 * float(facts['constant']):.1f}"
        )

    def drawings(self) -> Sequence[Drawing]:
        """Components, the best of k, and stopping."""
        drawn = [self._components()]
        if len(self.tables["best"]) > 1:
            drawn.append(self._best())
        stopping = self.tables["stopping"]
        if stopping["correlation"].notna().any():
            drawn += [self._early(), self._stopping()]
        return drawn

    @property
    def _level(self) -> str:
        return f"{100 * float(self.facts['level']):.0f} %"

    def _components(self) -> Drawing:
        table = self.tables["components"]
        sides = (100 * table[c].to_numpy(float) for c in ("spread", "low", "high"))
        draw = partial(
            interval_dots,
            [Dots(f"standard deviation (points of {self.facts['judged']})", *sides)],
            list(table["component"]),
            title=f"Where the variance of runs comes from\n{self.about}",
            note=f"{self._level} intervals over seeds and examples (hollow: none).",
        )
        return Drawing(
            "components",
            draw,
            "How far scores of runs spread, in points, by the seed of new weights "
            "(initialisation), by the order of the data, by the rest, and in all. The luck of the "
            "examples is not in these: it stands below, as far as it differs from run to run and "
            "as far as all runs share it. Bars are intervals; one that reaches 0 says that the "
            "seeds may make no difference.",
        )

    def _best(self) -> Drawing:
        table = self.tables["best"]
        bands = [
            Band(
                label, *(100 * table[f"{c}{end}"].to_numpy(float) for end in ("", "_low", "_high"))
            )
            for c, label in (("picked_gain", "where it is picked"), ("gain", "on other examples"))
        ]
        draw = partial(
            band_curve,
            bands,
            [str(int(k)) for k in table["runs"]],
            title=f"The best of k runs beside one run\n{self.about}",
            label=f"points of {self.facts['judged']}",
            xlabel="runs",
            note=f"Bands: {self._level} intervals over seeds and examples.",
        )
        return Drawing(
            "best",
            draw,
            "How much better the best of so many runs with new seeds is expected to be than one "
            "run, in points: on the examples that pick it, and of the run that one half of the "
            "examples picks on the other half. Bands are intervals over seeds and examples. The "
            "second line is what more runs are worth; the first is higher by the luck of the "
            "examples that pick.",
        )

    def _early(self) -> Drawing:
        table = self.tables["stopping"]
        sides = (table[f"correlation{end}"].to_numpy(float) for end in ("", "_low", "_high"))
        draw = partial(
            band_curve,
            [Band("rank correlation", *sides)],
            self._shares,
            title=f"How early runs can be told\n{self.about}",
            label="rank correlation with the end",
            xlabel="training done (%)",
            # Without this a reader wonders why final scores do not agree with themselves.
            note=f"Band: {self._level} interval. Scores then and at the end are of different "
            "examples, so that the last one is below 1, too.",
        )
        return Drawing(
            "early",
            draw,
            "To the right: the share of the training that is done. Upwards: the rank correlation "
            "over runs of the score then, on one half of the examples, with the final score on the "
            "other half. At the right end it is as high as the luck of the examples lets it be. "
            "Intervals count that runs share seeds.",
        )

    def _stopping(self) -> Drawing:
        table = self.tables["stopping"]
        bands = [
            Band(
                label, *(100 * table[f"{c}{end}"].to_numpy(float) for end in ("", "_low", "_high"))
            )
            for c, label in (("loss", "lost to all runs"), ("gain", "gained over fewer whole runs"))
        ]
        draw = partial(
            band_curve,
            bands,
            self._shares,
            title=f"The poorer half of {self.facts['started']} runs stopped\n{self.about}",
            label=f"points of {self.facts['judged']}",
            xlabel="stopped after (% of the training)",
            note=f"Bands: {self._level} intervals over seeds and examples.",
        )
        return Drawing(
            "stopping",
            draw,
            "The poorer half of the runs is stopped after a share of the training (to the right), "
            "and the best of the others is scored on other examples. Upwards, in points: what is "
            "lost to finishing all runs, and what is gained over as few whole runs as cost the "
            "same training. Bands are intervals over seeds and examples.",
        )

    @property
    def _shares(self) -> list[str]:
        return [f"{100 * share:.0f}" for share in self.tables["stopping"]["share"]]
