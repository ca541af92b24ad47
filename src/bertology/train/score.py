"""The score of a model on a task: every metric with its interval, and how fast it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bertology.data.corpus import Corpus
from bertology.metrics import find_metric
from bertology.results.comparison import against_constant_answer
from bertology.stats.intervals import Estimate
from bertology.stats.paired import score_interval
from bertology.train.answers import answer, encode_for, match_of
from bertology.train.encoded import task_of
from bertology.train.evaluate import baseline
from bertology.train.speed import Speed, measure_speeds

if TYPE_CHECKING:
    import pandas as pd

    from bertology.model.encoder import Encoder
    from bertology.model.label_match import LabelMatch

_SURE = {1: "surely better than", 0: "not surely better than", -1: "surely worse than"}


@dataclass(frozen=True)
class Score:
    """What a model scores on a task; speed is told apart, as it depends on the machine."""

    model: str
    task: str
    split: str | None
    scores: Mapping[str, Estimate]  # by metric, the main one first
    constant: Mapping[str, float]  # of always giving the best single answer on these examples
    against_constant: int  # 1 if it surely beats that answer, -1 if it is surely worse, else 0
    examples: int
    truncated: int  # examples that were cut to what the model takes
    parameters: int
    speed: Speed
    matched: str = ""  # which label of the data is which of the model's, where there are classes

    @property
    def main(self) -> str:
        """The task's main metric."""
        return next(iter(self.scores))

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        found = self.scores[self.main]
        sure = _SURE[self.against_constant]
        return (
            f"{self.model} has {self.main} {found.value:.3f} (95 % interval {found.low:.3f} to "
            f"{found.high:.3f}) on {self.examples:,} examples of {self.task}: {sure} a constant "
            f"answer ({self.constant[self.main]:.3f})."
        )

    def table(self) -> pd.DataFrame:
        """A row for each metric: score, bounds, and the score of a constant answer."""
        import pandas as pd

        rows = [
            (name, e.value, e.low, e.high, self.constant[name]) for name, e in self.scores.items()
        ]
        return pd.DataFrame(rows, columns=["metric", "score", "low", "high", "constant"])

    def as_record(self) -> dict[str, object]:
        """All of it as JSON takes it."""
        return {
            "model": self.model,
            "task": self.task,
            "split": self.split,
            "examples": self.examples,
            "truncated": self.truncated,
            "parameters": self.parameters,
            "against_constant": self.against_constant,
            "labels": self.matched,
            "scores": {
                name: {
                    "score": e.value,
                    "low": e.low,
                    "high": e.high,
                    "level": e.level,
                    "constant": self.constant[name],
                }
                for name, e in self.scores.items()
            },
            "speed": asdict(self.speed),
        }

    def __str__(self) -> str:
        return f"{self.sentence}\nSpeed: {self.speed}."


def score_model(encoder: Encoder, corpus: Corpus, *, batch_tokens: int = 4096) -> Score:
    """Score a model that has a classification head on the task of a corpus, and time it."""
    task = task_of(corpus)
    encoded = encode_for(encoder, corpus)
    answers = answer(encoder, encoded, task, batch_tokens=batch_tokens)
    metrics = {name: find_metric(name) for name in task.metrics}
    [speed] = measure_speeds([encoder], encoded, batch_tokens=batch_tokens)
    return Score(
        model=encoder.name,
        task=corpus.name,
        split=corpus.split,
        scores={n: score_interval(m, answers.statistics(m)) for n, m in metrics.items()},
        constant=baseline(corpus, corpus),
        against_constant=against_constant_answer(
            answers.predictions,
            answers.labels,
            classes=task.kind != "regression",
            metric=task.metrics[0],
        ),
        examples=len(encoded),
        truncated=encoded.truncated,
        parameters=encoder.parameters,
        speed=speed,
        matched=_matched(match_of(encoder, task), corpus),
    )


def _matched(match: LabelMatch, corpus: Corpus) -> str:
    """`good = positive, poor = negative (by name)`, with the names that the data have."""
    renamed = corpus.origin.get("labels")
    own = {new: old for old, new in renamed.items()} if isinstance(renamed, Mapping) else {}
    pairs = ", ".join(f"{own.get(label, label)} = {name}" for label, name in match.pairs)
    return f"{pairs} (by {match.by})" if pairs else ""
