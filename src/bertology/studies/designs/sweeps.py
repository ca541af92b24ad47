"""Studies that disable sets of heads: the sweep over examples, and what the answers are worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.metrics import Metric, find_metric
from bertology.parameters import parameter
from bertology.results.answers import NOTHING_SURE
from bertology.results.comparison import (
    CHANGE,
    against_constant_answer,
    effects_shown,
    effects_table,
    example_losses,
    loss_columns,
)
from bertology.results.hundredths import in_hundredths
from bertology.results.number_text import number_text
from bertology.results.ranking import Ranking
from bertology.results.result import Result
from bertology.stats import paired_bootstrap
from bertology.stats.multiplicity import RowBlocks
from bertology.stats.paired import balances
from bertology.studies.designs.blocks import Blocks
from bertology.studies.designs.parts import gather, start_of
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus, Task
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.model.sweeps.replay import Sweep

INTACT = "intact"
NOT_INFORMED = "not judged: the intact model does not surely beat a constant answer"
BELOW_CONSTANT = (
    "The intact model is surely worse than always giving the same answer: look whether each label "
    "of the data is matched with the right one of the model (--labels says it)."
)
Heads = tuple[tuple[int, int], ...]
_TOGETHER = 1 << 16  # answers of several variants that are scored at once


@dataclass(frozen=True)
class Disabled:
    """A set of heads that is disabled at once, and the table that its row goes to."""

    name: str
    heads: Heads
    table: str


def every_head(shape: Shape) -> Iterator[Disabled]:
    """Each head alone, layer by layer."""
    for i in range(shape.layers):
        yield from (Disabled(f"{i}.{h}", ((i, h),), "heads") for h in range(shape.heads))


def every_layer(shape: Shape) -> Iterator[Disabled]:
    """All heads of each layer."""
    for i in range(shape.layers):
        yield Disabled(f"{i}.*", tuple((i, h) for h in range(shape.heads)), "layers")


@dataclass(frozen=True)
class Answers:
    """What the intact model and each variant answered: a small number for each example."""

    names: Sequence[str]  # of the variants, the intact model first
    tables: Sequence[str]  # the table that each belongs to
    answers: NDArray[np.generic]  # (variant, example): classes, or numbers in regression
    labels: Floats  # (example,)
    losses: NDArray[np.float32]  # (variant, example)
    slopes: Floats | None  # (layer, head): what a backward pass expects, mean over examples
    facts: Mapping[str, Any]

    @classmethod
    def of(cls, measured: Mapping[str, xr.Dataset]) -> Answers:
        """Go through the parts once."""
        first = next(iter(measured.values()))
        slopes = {}
        if "first_order" in first:
            slopes["slopes"] = lambda p: p["first_order"].sum("example", skipna=False).to_numpy()
        seen = gather(
            measured,
            concatenate={
                "labels": lambda p: p["label"].to_numpy(),
                "answers": _answers_by_example,
                "losses": _losses_by_example,
            },
            add=slopes,
        )
        n = len(seen["labels"])
        return cls(
            seen.labels("variant"),
            seen.labels("table"),
            np.ascontiguousarray(seen["answers"].T),
            seen["labels"],
            np.ascontiguousarray(seen["losses"].T, dtype=np.float32),
            seen["slopes"] / n if slopes else None,
            seen.facts,
        )

    @property
    def classes(self) -> bool:
        """Whether the task is to tell classes apart."""
        return bool(self.facts["kind"] != "regression")

    @property
    def metric(self) -> Metric:
        """What the task is scored by."""
        return find_metric(self.facts["metric"])

    @cached_property
    def against_constant(self) -> int:
        """1 if the intact model surely beats a constant answer, -1 if it is surely worse."""
        return against_constant_answer(
            self.answers[0], self.labels, classes=self.classes, metric=self.facts["metric"]
        )

    @property
    def informed(self) -> bool:
        """Whether the intact model surely beats a constant answer."""
        return self.against_constant > 0

    @property
    def reasons(self) -> dict[str, str]:
        """Why no claim can be judged, if it cannot."""
        return {} if self.informed else {"": NOT_INFORMED}

    def names_by_table(self) -> dict[str, list[str]]:
        """The variants of each table; the intact model belongs to none."""
        found: dict[str, list[str]] = {}
        for name, table in zip(self.names, self.tables, strict=True):
            found.setdefault(table, []).append(name)
        return found

    def rows_of(self, table: str) -> list[int]:
        """The variants that belong to a table."""
        return [i for i, name in enumerate(self.tables) if name == table]

    def intact(self) -> Floats:
        """Statistics (N, K) of the intact model, as its metric wants them."""
        (own,) = self._statistics([0])
        return np.asarray(own)

    def of_variants(self, rows: Sequence[int]) -> RowBlocks:
        """The same (v, N, K) of some variants, a few at a time."""
        step = max(1, _TOGETHER // len(self.labels))
        starts = range(0, len(rows), step)
        return RowBlocks(lambda: (self._statistics(rows[at : at + step]) for at in starts))

    def loss_signs(self, rows: Sequence[int], margin: float) -> Floats:
        """Whose loss (v, N) rises in some variants (1), falls (-1), or changes too little (0)."""
        signs = np.empty((len(rows), len(self.labels)))
        for at, row in enumerate(rows):
            change = self.losses[row].astype(np.float64) - self.losses[0]
            signs[at] = np.where(np.abs(change) < margin, 0.0, np.sign(change))
        return signs

    def mean_loss_changes(self, rows: Sequence[int]) -> Floats:
        """The mean change of the loss (v,) in some variants."""
        means = self.losses.mean(axis=1, dtype=np.float64)
        return np.asarray(means[rows] - means[0])

    def _statistics(self, rows: Sequence[int]) -> Floats:
        score = self.metric.statistics
        kind = np.int64 if self.classes else self.answers.dtype
        return np.stack([score(self.answers[row].astype(kind), self.labels) for row in rows])


class SweepResult(Result):
    """What all results of sweeps share: tables of effects are shown with both outcomes."""

    def notes(self, model: str | None = None) -> list[str]:
        """Also a warning where the score is surely below that of a constant answer."""
        found = super().notes(model)
        if self.facts.get("below_constant"):
            found.append(BELOW_CONSTANT)
        return found

    @property
    def uninformed(self) -> str:
        """What is said in place of an answer where no head can matter; else empty."""
        facts = self.facts
        if facts.get("informed", 1):
            return ""
        score = number_text(100 * float(facts["intact"]), ".1f")
        return (
            f"{NOTHING_SURE}: the intact model, with {find_metric(facts['metric']).in_hundred} "
            f"{score} over {facts['examples']} examples, does not surely beat a constant answer."
        )

    def shown(self, name: str | None = None) -> pd.DataFrame:
        """The table called `name`, or the main one, as it is read."""
        table = self.table(name)
        return effects_shown(table) if "loss_sure" in table else super().shown(name)

    def ranking(self, name: str) -> Ranking | None:
        """By the change of the score, of which the answer speaks: layers and sets, too."""
        return CHANGE if "loss_sure" in self.tables[name] else super().ranking(name)

    def in_units(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """Changes in points, as in figures; a correlation is no share."""
        whole = "× 100" if find_metric(self.facts["metric"]).lowest < 0 else "%"
        return in_hundredths(table, {"difference": "points", "score": whole, "loss_balance": "%"})


@dataclass(frozen=True)
class HeadSweep(Blocks):
    """Disables one set of heads after another and scores the task on the same examples.

    The sweep is exact: layers below an edit are computed once and all variants share the rest. A
    subclass says which sets (`variants`); those of one table are tested together.
    """

    block: ClassVar[int] = 32  # the most that an interrupted run loses
    all_heads: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns", "heads"}),
        fields=frozenset({"text", "label"}),
        head="classification",
        task=True,
    )

    method: str = parameter(
        "uniform", "What a disabled head gives.", choices=("uniform", "zero", "mean")
    )
    metric: str | None = parameter(None, "Score to use; the task's main one if not given.")
    margin: float = parameter(
        0.01,
        "Changes of the score smaller than this count as harmless.",
        minimum=0.0,
        concludes=True,
    )
    loss_margin: float = parameter(
        0.01,
        "Changes of an example's loss smaller than this count as none.",
        minimum=1e-4,
        concludes=True,
    )
    resamples: int = parameter(2000, "Bootstrap resamples.", minimum=100, concludes=True)
    seed: int = parameter(0, "Seed of all that is drawn: sets and resamples.", minimum=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric is not None:
            find_metric(self.metric)

    def variants(self, shape: Shape) -> Iterator[Disabled]:
        """The sets of heads that are disabled."""
        raise NotImplementedError

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """All heads must be there, and labels within range."""
        super().check(encoder, corpus)
        classes = encoder.config.num_labels
        if classes > 1:
            odd = [e.id for e in corpus if not 0 <= (e.label or 0) < classes]
            if odd:
                raise DataError(
                    f"Example {odd[0]!r} has a label outside 0 to {classes - 1}, the classes of "
                    f"{encoder.name!r}."
                )

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Logits of the intact model and of every variant, over one block of examples."""
        import xarray as xr

        variants = list(self.variants(encoder.shape))
        sweep = self.sweep(encoder, corpus, context)
        start, block = start_of(part), self.of_block(part, corpus)
        logits = sweep.logits(
            block.texts, tokens_per_batch=context.batch_tokens, done=context.advance
        )
        order = class_order(encoder, corpus.task)
        return xr.Dataset(
            {
                "logits": (("variant", "example", "output"), logits.numpy()[..., order]),
                "label": ("example", np.asarray(block.labels, dtype=float)),
            },
            coords={
                "variant": [INTACT, *(one.name for one in variants)],
                "table": ("variant", ["", *(one.table for one in variants)]),
                "example": range(start, start + len(block)),
            },
            attrs=self._task_facts(corpus.task),
        )

    def sweep(self, encoder: Encoder, corpus: Corpus, context: Context) -> Sweep:
        """All variants, to be run over any texts."""
        from bertology.model.sweeps.replay import Sweep, Variant

        means = None
        if self.method == "mean":
            means = encoder.head_means(corpus.texts, tokens_per_batch=context.batch_tokens)
        sets = [Variant(one.heads) for one in self.variants(encoder.shape)]
        return Sweep(encoder, sets, method=self.method, means=means)

    def _task_facts(self, task: Task | None) -> dict[str, str]:
        """What the conclusion must know of the task."""
        kind = "classification" if task is None else task.kind
        main = "accuracy" if task is None else task.metrics[0]
        return {"kind": kind, "metric": self.metric or main}

    def effects(self, answers: Answers, table: str, names: Mapping[str, ArrayLike]) -> pd.DataFrame:
        """A row for each variant of a table, named by the columns `names`; corrected for all."""
        rows = answers.rows_of(table)
        effects = paired_bootstrap(
            answers.metric,
            answers.intact(),
            answers.of_variants(rows),
            resamples=self.resamples,
            level=self.level,
            seed=self.seed,
        )
        losses = balances(
            answers.loss_signs(rows, self.loss_margin),
            level=self.level,
            resamples=self.resamples,
            seed=self.seed,
        )
        found = effects_table(effects, names)
        found["loss_difference"] = answers.mean_loss_changes(rows)
        for name, column in loss_columns(losses).items():
            found[name] = column
        return found

    def facts(self, answers: Answers) -> dict[str, Any]:
        """What figures and readers must know of the sweep."""
        intact = answers.metric.finish(answers.intact().sum(axis=0))
        return {
            "margin": self.margin,
            "loss_margin": self.loss_margin,
            "method": self.method,
            "examples": len(answers.labels),
            "metric": answers.facts["metric"],
            "intact": float(intact),
            "intact_loss": float(answers.losses[0].mean(dtype=np.float64)),
            "informed": int(answers.informed),
            "below_constant": int(answers.against_constant < 0),
        }


def class_order(encoder: Encoder, task: Task | None) -> list[int]:
    """Which output of the model is which class of the task."""
    if task is None:
        return list(range(encoder.config.num_labels))
    return list(encoder.match_labels(task.labels, ordered=task.ordered).order)


def _answers_by_example(part: xr.Dataset) -> NDArray[np.generic]:
    """(example, variant): the class, or the number in regression."""
    logits = part["logits"].to_numpy()
    small = np.min_scalar_type(logits.shape[-1])
    classes = part.attrs["kind"] != "regression"
    found = logits.argmax(-1).astype(small) if classes else logits[..., 0].copy()
    return np.asarray(found.T)


def _losses_by_example(part: xr.Dataset) -> NDArray[np.generic]:
    """(example, variant): cross-entropy, or the squared error in regression."""
    losses = example_losses(part["logits"].to_numpy(), part["label"].to_numpy())
    return losses.T.astype(np.float32)
