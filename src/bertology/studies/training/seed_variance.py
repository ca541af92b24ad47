"""Seed variance: how much do fine-tuned scores depend on new weights, and on the order of data?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.arrays import Floats
from bertology.errors import DataError, JobError
from bertology.metrics import find_metric, judged_metric
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Band, Dots
from bertology.results.answers import NOTHING_SURE, plain, points
from bertology.results.comparison import beats_constant_answer
from bertology.results.drawing import Drawing
from bertology.results.hundredths import scores_in_hundredths
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.best_of_runs import BestOfRuns, Stopping, halves
from bertology.stats.paired import jackknife
from bertology.stats.rank_agreement import Agreement, PairLinks, rank_agreement
from bertology.stats.variance_components import Components, components, spread
from bertology.studies.designs.tables import bounded
from bertology.studies.designs.task_trials import BARS, TaskTrials, same_training_data
from bertology.studies.designs.trials import Reach, split_part

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder


EFFECTS = {
    "initialisation": "rows",
    "order": "columns",
    "rest": "rest",
    "all runs": "runs",
}
"""What readers call the effects of a two-way design."""
_LUCK, _SHARED = "luck of the examples, by run", "luck of the examples, all runs"
_FEWEST = 3  # seeds of each kind: with fewer, none can be left out of two


@dataclass(frozen=True)
class SeedRuns:
    """Answers (I, J, shares, N) by seed of weights, seed of order, and share of the training."""

    predictions: Floats
    labels: Floats
    shares: tuple[float, ...]
    metric: str
    classes: bool
    diverged: NDArray[np.bool_]
    level: float = 0.95
    deals: int = 10

    @classmethod
    def read(
        cls,
        measured: Mapping[tuple[int, int], xr.Dataset],
        metric: str,
        *,
        level: float,
        deals: int,
    ) -> SeedRuns:
        """Parts by their seeds of weights and of order."""
        rows, columns = (sorted({place[at] for place in measured}) for at in (0, 1))
        first = measured[rows[0], columns[0]]
        labels = first["labels"].to_numpy().astype(np.float64)
        if any(not np.array_equal(labels, part["labels"].to_numpy()) for part in measured.values()):
            raise DataError(
                "The scored examples changed between two parts of this study.",
                hint="Do all of it again with force=True (--force).",
            )
        grid = [[measured[i, j] for j in columns] for i in rows]
        return cls(
            np.array([[part["predictions"].to_numpy() for part in row] for row in grid], float),
            labels,
            tuple(float(share) for share in first["share"].to_numpy()),
            metric,
            str(first.attrs["kind"]) != "regression",
            np.array([[bool(part["diverged"]) for part in row] for row in grid]),
            level,
            deals,
        )

    # Scores ------------------------------------------------------------------------------------

    @property
    def final(self) -> Floats:
        """The last answers (I, J, N)."""
        return self.predictions[:, :, -1]

    @property
    def grid(self) -> tuple[int, int]:
        """How many seeds of weights and of order there are."""
        return self.predictions.shape[0], self.predictions.shape[1]

    def _statistics(self, answers: Floats) -> Floats:
        """(…, N, K) of answers (…, N)."""
        of = find_metric(self.metric)
        flat = np.stack([of.statistics(a, self.labels) for a in answers.reshape(-1, len(self))])
        return flat.reshape(*answers.shape, -1)

    def __len__(self) -> int:
        return self.labels.size

    @cached_property
    def values(self) -> Floats:
        """(I, J, N): what each example adds to the final score of a run; the mean is the score."""
        of, runs = find_metric(self.metric), self._statistics(self.final)
        flat = runs.reshape(-1, *runs.shape[2:])
        found = jackknife(of, flat) + of.finish(flat.sum(axis=1))[:, None]
        return found.reshape(self.final.shape)

    @cached_property
    def failed(self) -> NDArray[np.bool_]:
        """Which runs are not surely better than the most frequent answer."""
        found = [
            not beats_constant_answer(a, self.labels, classes=self.classes, metric=self.metric)
            for a in self.final.reshape(-1, len(self))
        ]
        return np.array(found).reshape(self.grid) | self.diverged

    def constant_score(self, answer: float) -> float:
        """What always giving one answer scores."""
        return find_metric(self.metric).score(np.full(len(self), answer), self.labels)

    def table(self, metrics: Sequence[str]) -> pd.DataFrame:
        """A row for each run: its seeds, scores, and whether it failed."""
        import pandas as pd

        return pd.DataFrame(
            {"initialisation": i, "order": j}
            | {m: find_metric(m).score(self.final[i, j], self.labels) for m in metrics}
            | {"failed": bool(self.failed[i, j]), "diverged": bool(self.diverged[i, j])}
            for i, j in np.ndindex(*self.grid)
        )

    # Variances ---------------------------------------------------------------------------------

    @cached_property
    def _components(self) -> Components:
        return components(self.values, level=self.level)

    def spreads(self) -> dict[str, Estimate | None]:
        """Standard deviations that claims are judged on."""
        found = {name: spread(self._components.variance[key]) for name, key in EFFECTS.items()}
        enough = min(self.grid) >= _FEWEST
        names = {"all runs": "run_spread"}
        return {names.get(n, f"{n}_spread"): e if enough else None for n, e in found.items()}

    def components(self) -> pd.DataFrame:
        """A row for each effect; `share` is that of the variance of runs on these examples."""
        import pandas as pd

        of = self._components
        runs, luck = max(of.variance["runs"].value, 0.0), max(of.luck["runs"], 0.0)
        whole = (runs + luck) or math.nan
        rows = []
        for name, key in EFFECTS.items():
            found = spread(of.variance[key])
            rows.append(
                {"component": name, "spread": found.value, "low": found.low, "high": found.high,
                 "share": max(of.variance[key].value, 0.0) / whole,
                 "p": of.p.get(key, math.nan)}
            )  # fmt: skip
        for name, variance, share in ((_LUCK, luck, luck / whole), (_SHARED, of.shared, math.nan)):
            rows.append(
                {"component": name, "spread": math.sqrt(variance), "low": math.nan,
                 "high": math.nan, "share": share, "p": math.nan}
            )  # fmt: skip
        return pd.DataFrame(rows)

    # The best of k, and stopping ---------------------------------------------------------------

    @cached_property
    def _picks(self) -> NDArray[np.bool_]:
        return halves(len(self), deals=self.deals)

    def _on(self, chosen: NDArray[np.bool_], share: int) -> Floats:
        """Scores (deals, I, J) on chosen examples (deals, N), after a share of the training."""
        rows = self._statistics(self.predictions[:, :, share])
        sums = np.einsum("dn,ijnk->dijk", chosen.astype(np.float64), rows)
        return find_metric(self.metric).finish(sums)

    @cached_property
    def best(self) -> BestOfRuns:
        """The final scores, where examples pick and where they score."""
        last = len(self.shares) - 1
        return BestOfRuns(
            self.values,
            self._picks,
            self._on(self._picks, last),
            self._on(~self._picks, last),
            level=self.level,
        )

    def best_table(self) -> pd.DataFrame:
        """The expected best of k runs, where it is picked and elsewhere, and gains over one run."""
        import pandas as pd

        lowest, highest = find_metric(self.metric).within
        rows = []
        for k in range(1, self.best.most + 1):
            row: dict[str, float] = {"runs": k}
            for name, found in (
                ("picked", self.best.picked(k)),
                ("elsewhere", self.best.elsewhere(k)),
            ):
                low, high = max(found.low, lowest), min(found.high, highest)
                row |= {name: found.value, f"{name}_low": low, f"{name}_high": high}
            for name, found in (
                ("picked_gain", self.best.picked_gain(k)),
                ("gain", self.best.gain(k)),
            ):
                row |= bounded(name, found)
            rows.append(row)
        return pd.DataFrame(rows)

    def nearest(self, share: float) -> int:
        """The look that is nearest to a share of the training."""
        return int(np.abs(np.array(self.shares) - share).argmin())

    def stopping(self) -> list[Stopping]:
        """The poorer half stopped at each look; none where there are too few seeds."""
        if self.best.most < 2:
            return []
        return [
            self.best.stopping(self._on(self._picks, at), share)
            for at, share in enumerate(self.shares)
        ]

    @cached_property
    def _agreement(self) -> Agreement:
        """Scores at each look with the final ones on other examples, over deals."""
        last = len(self.shares) - 1
        final = self._on(~self._picks, last).reshape(len(self._picks), -1)
        early = np.stack(
            [self._on(self._picks, at).reshape(len(final), -1) for at in range(last + 1)], axis=1
        )  # (deals, shares, runs)
        found = [rank_agreement(e, f) for e, f in zip(early, final, strict=True)]
        # Runs are what is drawn, and each is in all deals: what it does to their mean is the mean.
        return Agreement(
            np.mean([one.value for one in found], axis=0),
            np.mean([one.influence for one in found], axis=0),
        )

    @property
    def _links(self) -> PairLinks:
        """Runs that share a seed are not independent."""
        return PairLinks.of([(("weights", i), ("order", j)) for i, j in np.ndindex(*self.grid)])

    def correlation(self, at: int) -> Estimate | None:
        """The rank correlation at one look; None where there are too few seeds."""
        if min(self.grid) < _FEWEST:
            return None
        row, seeds = self._agreement[at : at + 1], min(self.grid)
        value = float(row.value[0])
        # One kind of seed may decide all; so there are no more independent runs than of these.
        half = float(stdtrit(seeds - 1, (1 + self.level) / 2) * self._links.error(row.influence)[0])
        inner = min(max(value, -1 + 1e-9), 1 - 1e-9)
        # On Fisher's scale, so that bounds stay between -1 and 1.
        half, middle = half / (1 - inner**2), math.atanh(inner)
        low, high = math.tanh(middle - half), math.tanh(middle + half)
        return Estimate(
            value, min(low, value), max(high, value), seeds, self.level, "seeds",
            remedy="more seeds and more examples would narrow it",
        )  # fmt: skip

    def stopping_table(self, stopped: Sequence[Stopping]) -> pd.DataFrame:
        """A row for each look."""
        import pandas as pd

        rows = []
        for at, share in enumerate(self.shares):
            row: dict[str, float] = {"share": share}
            found: dict[str, Estimate | None] = {"correlation": self.correlation(at)}
            if stopped:
                row["saving"] = stopped[at].saving
                found |= {"loss": stopped[at].loss, "gain": stopped[at].gain}
            for name, one in found.items():
                ends = (math.nan,) * 3 if one is None else (one.value, one.low, one.high)
                row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
            rows.append(row)
        columns = ["share", "correlation", "correlation_low", "correlation_high", "saving"]
        columns += [f"{n}{end}" for n in ("loss", "gain") for end in ("", "_low", "_high")]
        return pd.DataFrame(rows, columns=columns)


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
        label = f"standard deviation (points of {self.facts['judged']})"
        return drawings.dots(
            "components",
            [Dots.of_columns(label, table, "spread")],
            table["component"],
            self.about,
            title="Where the variance of runs comes from",
            note=f"{self._level} intervals over seeds and examples (hollow: none).",
            caption="How far scores of runs spread, in points, by the seed of new weights "
            "(initialisation), by the order of the data, by the rest, and in all. The luck of the "
            "examples is not in these: it stands below, as far as it differs from run to run and "
            "as far as all runs share it. Bars are intervals; one that reaches 0 says that the "
            "seeds may make no difference.",
        )

    def _best(self) -> Drawing:
        table = self.tables["best"]
        bands = [
            Band.of_columns(label, table, c)
            for c, label in (("picked_gain", "where it is picked"), ("gain", "on other examples"))
        ]
        return drawings.curve(
            "best",
            bands,
            [str(int(k)) for k in table["runs"]],
            self.about,
            title="The best of k runs beside one run",
            label=f"points of {self.facts['judged']}",
            xlabel="runs",
            note=f"Bands: {self._level} intervals over seeds and examples.",
            caption="How much better the best of so many runs with new seeds is expected to be "
            "than one run, in points: on the examples that pick it, and of the run that one half "
            "of the examples picks on the other half. Bands are intervals over seeds and examples. "
            "The second line is what more runs are worth; the first is higher by the luck of the "
            "examples that pick.",
        )

    def _early(self) -> Drawing:
        table = self.tables["stopping"]
        return drawings.curve(
            "early",
            [Band.of_columns("rank correlation", table, "correlation", scale=1.0)],
            self._shares,
            self.about,
            title="How early runs can be told",
            label="rank correlation with the end",
            xlabel="training done (%)",
            # Without this a reader wonders why final scores do not agree with themselves.
            note=f"Band: {self._level} interval. Scores then and at the end are of different "
            "examples, so that the last one is below 1, too.",
            caption="To the right: the share of the training that is done. Upwards: the rank "
            "correlation over runs of the score then, on one half of the examples, with the final "
            "score on the other half. At the right end it is as high as the luck of the examples "
            "lets it be. Intervals count that runs share seeds.",
        )

    def _stopping(self) -> Drawing:
        table = self.tables["stopping"]
        bands = [
            Band.of_columns(label, table, c)
            for c, label in (("loss", "lost to all runs"), ("gain", "gained over fewer whole runs"))
        ]
        return drawings.curve(
            "stopping",
            bands,
            self._shares,
            self.about,
            title=f"The poorer half of {self.facts['started']} runs stopped",
            label=f"points of {self.facts['judged']}",
            xlabel="stopped after (% of the training)",
            note=f"Bands: {self._level} intervals over seeds and examples.",
            caption="The poorer half of the runs is stopped after a share of the training (to the "
            "right), and the best of the others is scored on other examples. Upwards, in points: "
            "what is lost to finishing all runs, and what is gained over as few whole runs as cost "
            "the same training. Bands are intervals over seeds and examples.",
        )

    @property
    def _shares(self) -> list[str]:
        return [f"{100 * share:.0f}" for share in self.tables["stopping"]["share"]]


_EARLY = 1 / 3  # of the training, where claims on stopping are judged
_NOT_LEARNT = (
    "not judged: no run is surely better than always giving the most frequent answer, so there is "
    "no score that seeds could change"
)
_FEW = "not judged: fewer than three seeds of each kind"


@dataclass(frozen=True)
class SeedVariance(TaskTrials):
    """How much do fine-tuned scores depend on new weights, and on the order of the data?

    Method: the model is fine-tuned once for each seed of new weights (the classifier, and the
    pooler where the encoder has none) with each seed of the order, which also decides dropout. All
    runs are scored on the same examples, several times during training. Told are: how far scores
    spread by weights, by order and by the rest, from an analysis of variance of the two-way design,
    without the luck of the examples, which is told apart; the expected best of k runs, on the
    examples that pick it and on others; and how early poor runs can be told: the rank correlation
    of scores during training with the final ones on other examples, and what is lost if the poorer
    half of the runs is stopped there. A run has failed if its answers are not surely better than
    always giving the most frequent one, or if its loss was no longer a number.

    Intervals of spreads are over seeds of both kinds and over examples, for normal effects
    (modified large-sample method); others are jackknifed. Claims rest on accuracy (correlation for
    regressions and CoLA), and on a third of the training.

    Source: A Primer in BERTology (TACL 2020), section 6.3; Dodge et al. 2020. Limits: where some
    runs fail, scores have two heights and are not normal: a variance then is mostly that of
    failing. Few seeds tell a variance badly, whatever its size.
    """

    version: ClassVar[int] = 2
    trains_models: ClassVar[bool] = True
    result_type: ClassVar[type[Result]] = SeedVarianceResult
    column: ClassVar[str] = "order"

    seeds: int = parameter(
        5, "Seeds of new weights; each is run with each order. Fewer than 3 give no verdicts.",
        minimum=2,
    )  # fmt: skip
    orders: int = parameter(5, "Seeds of the order of examples, and of dropout.", minimum=2)
    looks: int = parameter(
        9, "How often a run is scored during its training, at equal distances.", minimum=1
    )
    deals: int = parameter(
        10,
        "Times that examples are dealt into those that pick and those that score.",
        minimum=1,
        concludes=True,
    )

    @property
    def variants(self) -> Sequence[str]:
        """The orders."""
        return [f"order-{j}" for j in range(self.orders)]

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares of the training at which runs are scored."""
        return tuple((at + 1) / self.looks for at in range(self.looks))

    def trial(
        self, encoder: Encoder, corpus: Corpus, *, variant: str, seed: int, reach: Reach
    ) -> xr.Dataset:
        """Train one model, and keep what it says of each example at each look."""
        import xarray as xr

        from bertology.train.encoded import task_of
        from bertology.train.evaluate import constant_answer
        from bertology.train.history import Watch
        from bertology.train.starts import STARTS
        from bertology.train.tuning import TuningJob, tune

        train, start = self.load_train(corpus), STARTS["pretrained"]
        order = int(variant.rpartition("-")[2])
        settings = replace(self.settings(start, encoder.shape.hidden, order), weights_seed=seed)
        seen: dict[int, NDArray[np.float64]] = {}
        watch = Watch(self.shares, seen.__setitem__)
        total = self.epochs * -(-len(train) // self.batch_size)
        diverged = False
        try:
            tune(
                TuningJob(encoder, train, corpus, start, settings),
                progress=lambda step: reach(BARS * step.done // step.total),
                watch=watch,
            )
        except JobError:  # the loss is no longer a number
            diverged = True
            seen.pop(total, None)
        constant = np.full(len(corpus), constant_answer(train))
        said = np.stack([seen.get(step, constant) for step in watch.steps(total)])
        said = np.where(np.isfinite(said), said, constant)
        reach(BARS)
        task = task_of(corpus)
        return xr.Dataset(
            {
                "predictions": (("share", "example"), said),
                "labels": ("example", np.asarray(corpus.labels, dtype=np.float64)),
                "diverged": int(diverged),
            },
            {"share": list(self.shares)},
            {
                "task": task.name,
                "kind": task.kind,
                "metrics": " ".join(task.metrics),
                "train_size": len(train),
                "train_fingerprint": train.fingerprint,
                "constant": float(constant[0]),
            },
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Components, the best of k, and how early poor runs are told."""
        same_training_data(measured)
        facts = next(iter(measured.values())).attrs
        judged = judged_metric(str(facts["metrics"]).split())
        by_place = {(split_part(p)[1], _order(p)): part for p, part in measured.items()}
        runs = SeedRuns.read(by_place, judged, level=self.level, deals=self.deals)
        early = runs.nearest(_EARLY)
        components, stopped = runs.components(), runs.stopping()
        evidence = {
            **runs.spreads(),
            "best_gain": runs.best.gain(runs.best.most) if runs.best.most > 1 else None,
            "early_rank_correlation": runs.correlation(early),
            "stopping_loss": stopped[early].loss if stopped else None,
        }
        reasons = {name: _FEW for name, found in evidence.items() if found is None}
        if runs.failed.all():
            reasons, evidence = dict.fromkeys(evidence, _NOT_LEARNT), {}
        return self.result(
            provenance,
            {
                "components": components,
                "best": runs.best_table(),
                "stopping": runs.stopping_table(stopped),
                "runs": runs.table(str(facts["metrics"]).split()),
            },
            evidence=evidence,
            reasons=reasons,
            facts={
                "task": facts["task"],
                "judged": judged,
                "train_size": int(facts["train_size"]),
                "examples": runs.labels.size,
                "seeds": self.seeds,
                "orders": self.orders,
                "epochs": self.epochs,
                "failed": int(runs.failed.sum()),
                "diverged": int(runs.diverged.sum()),
                "constant": runs.constant_score(float(facts["constant"])),
                "early": runs.shares[early],
                "started": runs.best.started,
            },
        )


def _order(part: str) -> int:
    return int(split_part(part)[0].rpartition("-")[2])
