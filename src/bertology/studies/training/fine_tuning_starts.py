"""Fine-tuning starts: what is pre-training worth to a task, and what is fine-tuning?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.errors import CapabilityError, DataError, InterruptedRunError, ParameterError
from bertology.metrics import Metric, find_metric
from bertology.parameters import parameter
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate, adjusted, paired_p, repeated
from bertology.studies.designs.trials import split_part
from bertology.studies.study import Context, Needs, Study

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.train.history import Step
    from bertology.train.tuning import TuningJob

__all__ = ["FineTuningStarts", "FineTuningStartsResult"]

NAMES = ("pretrained", "random", "frozen", "frozen-features")
TITLES = {
    "pretrained": "fine-tuned, pre-trained start",
    "random": "fine-tuned, random start",
    "frozen": "pre-trained, not fine-tuned",
    "frozen-features": "trained head on frozen features (ours)",
}
# quantity, one start, the other; chosen before looking, so each has an interval of its own.
_CONTRASTS = (
    ("fine_tuned_over_frozen", "pretrained", "frozen"),
    ("pretrained_over_random", "pretrained", "random"),
    ("random_over_frozen", "random", "frozen"),
    ("features_over_frozen", "frozen-features", "frozen"),
    ("pretrained_over_features", "pretrained", "frozen-features"),
)
_ONLY_OF = ("sts-b", "qnli")  # the tasks of which the paper says that random is worse than frozen
_BARS = 100  # steps of the progress bar for one run

Floats = NDArray[np.float64]


class FineTuningStartsResult(Result):
    """Scores by start and seed (table `runs`), and their means (table `starts`).

    `starts` has one row for each start and metric, as the paper's Table 1: mean, median and
    Student's interval over seeds, and the differences to the random start and to the model that
    was not fine-tuned, paired by seed; `p_adjusted` is corrected (Holm) for all starts.
    """

    def by_seed(self, metric: str) -> dict[str, Floats]:
        """One score for each seed, for each start."""
        table = self.tables["runs"].pivot(index="seed", columns="start", values=metric)
        return {str(name): table[name].to_numpy(dtype=np.float64) for name in table}

    def evidence(self) -> dict[str, Estimate]:
        """Differences between two starts as fractions, paired by seed.

        They are of accuracy, as the paper's average of 35.9 points is, or of the first metric of
        tasks that have none or are scored by Matthews' correlation.
        """
        facts = self.arrays.attrs
        scores, level = self.by_seed(str(facts["judged"])), float(facts["level"])
        within = find_metric(str(facts["judged"])).differences_within
        found = {
            quantity: repeated(scores[one] - scores[other], level, within=within)
            for quantity, one, other in _CONTRASTS
            if one in scores and other in scores
        }
        if facts["task"] in _ONLY_OF and "random_over_frozen" in found:
            found["random_over_frozen_where_published"] = found["random_over_frozen"]
        return found

    def headline(self) -> str:
        """What was learnt, and what a constant answer would score."""
        facts, metrics = self.arrays.attrs, list(self.tables["starts"]["metric"].unique())
        constant = ", ".join(f"{m} {facts[f'constant_{m}']:.4g}" for m in metrics)
        return (
            f"{facts['task']}: {facts['train_size']} examples, {facts['epochs']} epochs, "
            f"{facts['seeds']} seeds; always the same answer: {constant}"
        )

    def why_not(self) -> str | None:
        """The paper says of two tasks only that a random start is worse than none."""
        if self.arrays.attrs["task"] in _ONLY_OF:
            return None
        return f"not judged: the paper says it of {' and '.join(n.upper() for n in _ONLY_OF)} only"

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """The paper's Table 1 as a picture."""
        return {"starts": self._draw}

    def captions(self) -> Mapping[str, str]:
        """What the figure shows."""
        return {
            "starts": "One row for each way to begin, and one for always giving the same answer; "
            "one panel for each score of the task, in points. Dots are means over seeds with their "
            "intervals. How far the fine-tuned model lies right of the others is what pre-training "
            "and fine-tuning are worth."
        }

    def _draw(self) -> Figure:
        from bertology.report.figures import Dots, interval_dots

        table, facts = self.tables["starts"], self.arrays.attrs
        names = [TITLES[n] for n in dict.fromkeys(table["start"])] + ["always the same answer"]
        panels = []
        for metric, rows in table.groupby("metric", sort=False):
            value, low, high = (
                [*(100 * rows[c].to_numpy()), last]
                for c, last in (
                    ("mean", 100 * float(facts[f"constant_{metric}"])),
                    ("low", np.nan),
                    ("high", np.nan),
                )
            )
            panels.append(Dots(f"{metric} (points)", value, low, high))
        corpus = (self.provenance.corpus or {}).get("name")
        model = str(self.provenance.model.get("name")).rstrip("/").rsplit("/", 1)[-1]
        return interval_dots(
            panels,
            names,
            title=f"What pre-training and fine-tuning are worth\n{model} on {corpus}",
            note=f"Means over {int(facts['seeds'])} seeds with "
            f"{100 * float(facts['level']):.0f} % Student intervals (hollow: none). Claims rest on "
            "differences paired by seed, which are surer than these.",
        )


@dataclass(frozen=True)
class FineTuningStarts(Study[FineTuningStartsResult]):
    """What does a task gain from pre-training, and what from fine-tuning?

    Method: a classifier over the encoder is fine-tuned on the training split and scored on the
    corpus that is given, the validation split, with the task's own metrics; once for each start and
    seed. `pretrained` begins with the encoder's weights, `random` with all weights drawn from the
    normal distribution (the spread of the model's config). `frozen` is not fine-tuned at all: the
    encoder under a head drawn at random, which is what the paper calls pre-trained BERT.
    `frozen-features` is ours: the encoder stays as it is and the head is trained. A seed decides
    new weights, the order of examples and dropout; starts of one seed share them, and differences
    are paired by seed. Claims rest on accuracy (correlation for regressions and CoLA).

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.3 and Table 1. Limits:
    intervals are of other seeds on the same validation data, not of other data. A score without
    fine-tuning is that of a random head and says little about what the encoder knows; that is what
    `frozen-features` is for. All starts have the same epochs and, but for the lone head, the same
    learning rate; a random start may want more of both.
    """

    version: ClassVar[int] = 3  # CoLA is judged by its own score
    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "label"}), task=True)
    result_type: ClassVar[type[Result]] = FineTuningStartsResult

    starts: tuple[str, ...] = parameter(NAMES, "Starts to compare.")
    epochs: int = parameter(3, "Passes over the training data.", minimum=1)
    batch_size: int = parameter(32, "Examples in one update.", minimum=1)
    learning_rate: float | None = parameter(
        None,
        "The highest learning rate. If not given: 2e-5; 1e-4 for models less than 512 wide, 3e-4 "
        "for less than 256. A lone head takes 1e-3.",
        minimum=1e-9,
    )
    seeds: int = parameter(3, "Runs of each start; one gives no verdicts.", minimum=1)
    examples: int | None = parameter(None, "Learn from at most so many examples.", minimum=2)
    max_length: int | None = parameter(None, "Cut texts to so many tokens.", minimum=3)
    train: str = parameter("", "Other data to learn from; if not given, those of the corpus.")
    train_split: str = parameter("train", "The split to learn from.")
    level: float = parameter(0.95, "Confidence level.", minimum=0.5, maximum=0.999)

    def __post_init__(self) -> None:
        super().__post_init__()
        odd = [name for name in self.starts if name not in NAMES]
        if odd or not self.starts or len(set(self.starts)) < len(self.starts):
            must = f"be some of {', '.join(NAMES)}, none twice"
            raise ParameterError("starts", "FineTuningStarts", must, list(self.starts))

    # The work ----------------------------------------------------------------------------------

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """There must be other data to learn from, and they must pose the same task."""
        from bertology.train.encoded import task_of
        from bertology.train.starts import STARTS, begin
        from bertology.train.tuning import check_apart

        assert corpus is not None
        task, train = task_of(corpus), self.load_train(corpus)
        posed = task_of(train)
        if (posed.kind, posed.labels) != (task.kind, task.labels):
            must = f"pose the task of the corpus ({task.name!r})"
            raise ParameterError("train", "FineTuningStarts", must, posed.name)
        check_apart(train, corpus)
        begin(encoder, task, STARTS["pretrained"], seed=0)

    def ingredients(self, corpus: Corpus | None) -> dict[str, str]:
        """The training data: another file under the same name is another study."""
        assert corpus is not None
        return {"training_data": self.load_train(corpus).fingerprint}

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """One run each."""
        return [f"{name}-seed-{k}" for k in range(self.seeds) for name in self.starts]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """Per cent of the run."""
        return _BARS

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Those that are learnt from, and those that are scored."""
        return [*self.load_train(corpus).texts, *corpus.texts]

    def cut_at(self, encoder: Encoder) -> int | None:
        """What was asked for, or else as many tokens as the model takes."""
        return self.max_length or encoder.max_length

    def load_train(self, corpus: Corpus) -> Corpus:
        """What is learnt from."""
        from bertology.data.loading import load_corpus

        origin = dict(corpus.origin)
        if self.train:
            kept = {n: v for n, v in origin.items() if n not in ("name_or_path", "only")}
            origin = {**kept, "name_or_path": self.train}
        elif not origin:
            raise CapabilityError(
                f"Corpus {corpus.name!r} does not say where its training split is.",
                hint="Load it with load_corpus and a limit, not by slicing; or name the data to "
                "learn from (--train).",
            )
        asked: dict[str, Any] = {"split": self.train_split, "limit": self.examples, "seed": 0}
        return load_corpus(**(origin | asked))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Train one model, or none, and score it."""
        import xarray as xr

        from bertology.train.evaluate import baseline
        from bertology.train.tuning import tune

        name, seed = split_part(part)
        train = self.load_train(corpus)
        job = self._job(encoder, train, corpus, name, seed)
        heard = _Heard(context)
        try:
            _, history = tune(job, progress=heard.step)
        except InterruptedRunError:
            # The session knows what is kept; a lone run does not.
            raise KeyboardInterrupt from None
        heard.end()
        constant = baseline(train, corpus)
        facts = {
            "start": name,
            "seed": seed,
            "task": corpus.task.name if corpus.task else corpus.name,
            "train_size": len(train),
            "train_fingerprint": train.fingerprint,
            "learning_rate": job.settings.learning_rate,
            "truncated": history.truncated,
            "truncated_validation": history.truncated_validation,
            **{f"constant_{m}": v for m, v in constant.items()},
        }
        return xr.Dataset(dict(history.scores), attrs=facts)

    def _job(
        self, encoder: Encoder, train: Corpus, validation: Corpus, name: str, seed: int
    ) -> TuningJob:
        from bertology.train.finetune import FinetuneSettings
        from bertology.train.starts import default_rate, find_start
        from bertology.train.tuning import TuningJob

        start = find_start(name)
        rate = self.learning_rate
        if rate is None or start.learns == "head":
            rate = default_rate(start, encoder.shape.hidden)
        settings = FinetuneSettings(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=rate,
            seed=seed,
            max_length=self.max_length,
        )
        return TuningJob(encoder, train, validation, start, settings)

    # The conclusion ----------------------------------------------------------------------------

    def conclude(
        self, measured: Mapping[str, xr.Dataset], provenance: Provenance
    ) -> FineTuningStartsResult:
        """The paper's Table 1, with intervals over seeds."""
        import pandas as pd
        import xarray as xr

        first = next(iter(measured.values()))
        if len({part.attrs["train_fingerprint"] for part in measured.values()}) > 1:
            raise DataError(
                "The training data changed between two parts of this study.",
                hint="Do all of it again with force=True (--force).",
            )
        metrics = [str(m) for m in first.data_vars]
        rows = [
            {"start": p.attrs["start"], "seed": int(p.attrs["seed"])}
            | {m: float(p[m]) for m in metrics}
            | {"learning_rate": float(p.attrs["learning_rate"])}
            for p in measured.values()
        ]
        runs = pd.DataFrame(rows)
        shared = ("task", "train_size", "train_fingerprint", "truncated_validation")
        facts = {n: first.attrs[n] for n in (*shared, *(f"constant_{m}" for m in metrics))}
        facts |= {
            "judged": _judged(metrics),
            "truncated": max(int(p.attrs["truncated"]) for p in measured.values()),
            "epochs": self.epochs,
            "seeds": self.seeds,
            "level": self.level,
        }
        tables = {"starts": _table(runs, metrics, self.starts, self.level), "runs": runs}
        return FineTuningStartsResult(provenance, tables, xr.Dataset(attrs=facts))


def _judged(metrics: Sequence[str]) -> str:
    """Accuracy, as in the paper; but not where classes are so uneven that a task leaves it."""
    return "accuracy" if "accuracy" in metrics and metrics[0] != "matthews" else metrics[0]


class _Heard:
    """Tells the progress bar of per cents."""

    def __init__(self, context: Context) -> None:
        self._context, self._told = context, 0

    def step(self, step: Step) -> None:
        self._tell(_BARS * step.done // step.total)

    def end(self) -> None:
        self._tell(_BARS)

    def _tell(self, now: int) -> None:
        if now > self._told:
            self._context.advance(now - self._told)
            self._told = now


def _table(
    runs: pd.DataFrame, metrics: Sequence[str], starts: Sequence[str], level: float
) -> pd.DataFrame:
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for metric in metrics:
        scores = runs.pivot(index="seed", columns="start", values=metric)
        block = [
            {"start": n, "metric": metric} | _row(scores, n, level, find_metric(metric))
            for n in starts
        ]
        for other in ("random", "frozen"):
            corrected = adjusted([row[f"over_{other}_p"] for row in block])
            for row, p in zip(block, corrected, strict=True):
                row[f"over_{other}_p_adjusted"] = float(p)
        rows += block
    return pd.DataFrame(rows)


def _row(scores: pd.DataFrame, name: str, level: float, metric: Metric) -> dict[str, Any]:
    mean = repeated(scores[name], level, within=metric.within)
    row: dict[str, Any] = {
        "mean": mean.value,
        "median": float(scores[name].median()),
        "low": mean.low,
        "high": mean.high,
        "seeds": mean.n,
    }
    for other in ("random", "frozen"):
        base = scores[other] if other in scores else scores[name] * np.nan
        difference = scores[name] - base
        compared = repeated(difference, level, within=metric.differences_within)
        row |= {
            f"over_{other}": compared.value,
            f"over_{other}_low": compared.low,
            f"over_{other}_high": compared.high,
            f"over_{other}_p": paired_p(difference),
        }
    return row
