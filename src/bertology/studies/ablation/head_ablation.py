"""Head and layer ablation: what is the score without each head, each layer, any set of heads?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.errors import CapabilityError, DataError, ParameterError
from bertology.metrics import find_metric
from bertology.parameters import parameter
from bertology.results.comparison import (
    beats_constant_answer,
    effects_table,
    mean_effect,
    race_table,
)
from bertology.results.result import Provenance, Result
from bertology.stats import paired_bootstrap, rank_correlation
from bertology.studies.answers.head_ablation import HeadAblationResult
from bertology.studies.designs.answered import Answered
from bertology.studies.designs.blocks import BlockStudy, in_order, start_of
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.model.sweeps.replay import Sweep

__all__ = ["HeadAblation", "HeadAblationResult"]

INTACT = "intact"
Floats = NDArray[np.float64]
Heads = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class HeadAblation(BlockStudy[HeadAblationResult]):
    """What is the task score without each head, each layer, or any set of heads?

    Method: a disabled head attends to every real token with weight 1/L (Kovaleva et al. 2019,
    section 4.6), gives nothing ("zero"), or gives its mean output over the corpus ("mean"). Every
    head and every layer is disabled in turn and the task is scored again on the same examples.
    Differences to the intact model are paired over examples: `low` and `high` are bootstrap
    intervals; `simultaneous_low`, `simultaneous_high` and `p_adjusted` hold for all heads (or all
    layers) together. The sweep is exact: layers below an edit are computed once and all variants
    share the rest. Beside it, `first_order` estimates the rise of the loss (not of the score, which
    it may rank quite differently) from gate gradients.

    With `racing`, heads leave the sweep as soon as their effect on accuracy is settled; with
    probability `level` no decision is wrong.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), Figures 8 and 9; Michel et al. (2019)
    for gate gradients. Limits: one head at a time says nothing about heads that stand in for each
    other; claims are judged only where the intact model beats a constant answer.
    """

    version: ClassVar[int] = 3  # two classes by Matthews' correlation
    block: ClassVar[int] = 32  # the most that an interrupted run loses
    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns", "heads"}),
        fields=frozenset({"text", "label"}),
        head="classification",
        task=True,
    )
    result_type: ClassVar[type[Result]] = HeadAblationResult

    method: str = parameter(
        "uniform", "What a disabled head gives.", choices=("uniform", "zero", "mean")
    )
    heads: bool = parameter(True, "Disable each head in turn.")
    layers: bool = parameter(True, "Disable all heads of each layer in turn.")
    sets: tuple[str, ...] = parameter((), "Further sets of heads: 3.5+7.1,0.2+0.3 are two.")
    metric: str | None = parameter(None, "Score to use; the task's main one if not given.")
    first_order: bool = parameter(True, "Also estimate effects from gate gradients.")
    racing: bool = parameter(False, "Stop testing heads whose effect on accuracy is settled.")
    margin: float = parameter(
        0.01, "Changes of the score smaller than this count as harmless.", minimum=0.0
    )
    resamples: int = parameter(2000, "Bootstrap resamples.", minimum=100)
    level: float = parameter(0.95, "Confidence level.", minimum=0.5, maximum=0.999)
    seed: int = parameter(0, "Seed of the resampling.", minimum=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric is not None:
            find_metric(self.metric)
        if not (self.heads or self.layers or self.sets):
            raise ParameterError("heads", "HeadAblation", "be true where nothing else is", False)
        if self.racing and self.metric not in (None, "accuracy"):
            raise ParameterError("metric", "HeadAblation", "be accuracy in a race", self.metric)
        for text in self.sets:
            _parse_set(text)

    # The work ----------------------------------------------------------------------------------

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """Heads must be there, labels within range, and a race needs right and wrong answers."""
        shape = encoder.shape
        if encoder.numbering.removed:
            raise CapabilityError(
                f"{encoder.name!r} has heads pruned away; they cannot be disabled once more.",
                hint="Run the study on the model it was pruned from.",
            )
        classes = encoder.config.num_labels
        if corpus is not None and classes > 1:
            odd = [e.id for e in corpus if not 0 <= (e.label or 0) < classes]
            if odd:
                raise DataError(
                    f"Example {odd[0]!r} has a label outside 0 to {classes - 1}, the classes of "
                    f"{encoder.name!r}."
                )
        for text in self.sets:
            for layer, head in _parse_set(text):
                if not (layer < shape.layers and head < shape.heads):
                    raise ParameterError(
                        "sets", "HeadAblation", f"name heads of a model with {shape}", text
                    )
        if self.racing and corpus is not None and self._facts(corpus)["kind"] == "regression":
            raise CapabilityError(
                "A race needs a classification task: it follows accuracy example by example.",
                hint="Leave out --racing for this task.",
            )

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """Blocks of examples: the variants of an example are what is cheap together."""
        return ["race"] if self.racing else super().parts(shape, corpus)

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """One step for each example."""
        return len(corpus) if part == "race" else super().steps(part, shape, corpus)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Logits of the intact model and of every variant, over one block of examples."""
        import xarray as xr

        from bertology.model.sweeps.replay import Sweep, Variant

        variants = self._variants(encoder.shape)
        means = None
        if self.method == "mean":
            means = encoder.head_means(corpus.texts, tokens_per_batch=context.batch_tokens)
        sets = [Variant(heads) for heads in variants.values()]
        sweep = Sweep(encoder, sets, method=self.method, means=means)
        if part == "race":
            return self._race(sweep, list(variants), corpus, context)
        start, block = start_of(part), self.of_block(part, corpus)
        texts, labels = block.texts, block.labels
        logits = sweep.logits(texts, tokens_per_batch=context.batch_tokens, done=context.advance)
        order = encoder.class_order(_classes(corpus))
        data = xr.Dataset(
            {
                "logits": (("variant", "example", "output"), logits.numpy()[..., order]),
                "label": ("example", np.asarray(labels, dtype=float)),
            },
            coords={"variant": [INTACT, *variants], "example": range(start, start + len(block))},
            attrs=self._facts(corpus),
        )
        if self.first_order and self.heads:
            if len(order) > 1:
                labels = [order[int(label)] for label in labels]
            from bertology.model.sweeps.gate_gradients import first_order_over

            slopes = first_order_over(
                encoder, texts, labels, disable=sweep.disable, tokens_per_batch=context.batch_tokens
            )
            data["first_order"] = (("example", "layer", "head"), slopes)
        return data

    def _facts(self, corpus: Corpus) -> dict[str, Any]:
        """What the conclusion must know of the task."""
        task = corpus.task
        kind = "classification" if task is None else task.kind
        main = "accuracy" if task is None else task.metrics[0]
        return {"kind": kind, "metric": self.metric or main}

    def _variants(self, shape: Shape) -> dict[str, Heads]:
        """Names and heads of all that is to be disabled."""
        layers, heads = range(shape.layers), range(shape.heads)
        named: dict[str, Heads] = {}
        if self.heads:
            named |= {f"{i}.{h}": ((i, h),) for i in layers for h in heads}
        if self.layers:
            named |= {f"{i}.*": tuple((i, h) for h in heads) for i in layers}
        return named | {f"set {text}": _parse_set(text) for text in self.sets}

    def _race(self, sweep: Sweep, names: list[str], corpus: Corpus, context: Context) -> xr.Dataset:
        """Blocks of examples in random order, for the variants that are still open."""
        import xarray as xr

        from bertology.racing import Race

        order = np.random.default_rng(self.seed).permutation(len(corpus))
        texts, labels = corpus.texts, np.asarray(corpus.labels)
        race = Race(len(names), margin=self.margin, level=self.level)
        everything, order_of_classes = (
            list(sweep.variants),
            sweep.encoder.class_order(_classes(corpus)),
        )
        right = np.full((1 + len(names), len(corpus)), np.nan)
        for start in range(0, len(corpus), self.block):
            chosen = order[start : start + self.block]
            racing = np.flatnonzero(race.active)
            if racing.size:
                sweep.variants = [everything[i] for i in racing]
                logits = sweep.logits(
                    [texts[i] for i in chosen], tokens_per_batch=context.batch_tokens
                )
                answers = logits.numpy()[..., order_of_classes].argmax(-1)
                correct = (answers == labels[chosen]).astype(float)
                right[np.ix_(np.append(0, 1 + racing), chosen)] = correct
                race.update((correct[1:] - correct[0]).T)
            context.advance(len(chosen))
        low, high = race.interval()
        return xr.Dataset(
            {
                "right": (("variant", "example"), right),
                "label": ("example", labels.astype(float)),
                "low": ("variant", [0.0, *low]),
                "high": ("variant", [0.0, *high]),
                "decision": ("variant", ["", *map(str, race.decisions)]),
            },
            coords={"variant": [INTACT, *names], "example": np.arange(len(corpus))},
            attrs={**self._facts(corpus), "metric": "accuracy"},
        )

    # The conclusion ----------------------------------------------------------------------------

    def conclude(
        self, measured: Mapping[str, xr.Dataset], provenance: Provenance
    ) -> HeadAblationResult:
        """Scores, differences, intervals and tests that are corrected for looking at them all."""
        if not self.racing:
            tables, arrays = self.compared(Answered.of(in_order(measured)))
            return HeadAblationResult(provenance, tables, arrays)
        data = measured["race"]
        tables, arrays = self._raced(data)
        arrays.attrs |= self._settings(data.sizes["example"], data.attrs["metric"])
        return HeadAblationResult(provenance, tables, arrays)

    def _settings(self, examples: int, metric: str) -> dict[str, Any]:
        facts = {"level": self.level, "margin": self.margin, "method": self.method}
        return {**facts, "examples": examples, "metric": metric}

    def compared(self, answered: Answered) -> tuple[dict[str, pd.DataFrame], xr.Dataset]:
        """Tables and arrays of what was answered by the intact model and by each variant."""
        import xarray as xr

        metric, intact = answered.metric, answered.intact()
        rise = answered.losses - answered.losses[0]
        tables, arrays = {}, xr.Dataset()
        for table, rows, columns in _families(answered.names):
            effects = paired_bootstrap(
                metric,
                intact,
                answered.of_variants(rows),
                resamples=self.resamples,
                level=self.level,
                seed=self.seed,
            )
            tables[table] = effects_table(effects, columns)
            tables[table]["loss_difference"] = rise[rows]
            arrays.attrs["intact"] = float(effects.base.value)
            if table == "heads":
                mean = mean_effect(metric, intact, answered.of_variants(rows), self.level)
                arrays["mean_head_gain"] = ("bound", [mean.value, mean.low, mean.high])
        if answered.slopes is not None and "heads" in tables:
            slopes = answered.slopes.ravel()
            tables["heads"]["first_order"] = slopes
            rank = rank_correlation(slopes, tables["heads"]["loss_difference"], seed=self.seed)
            arrays["first_order_rank"] = ("bound", [rank.value, rank.low, rank.high])
        informed = beats_constant_answer(
            answered.answers[0],
            answered.labels,
            classes=answered.classes,
            metric=answered.facts["metric"],
        )
        arrays.attrs["informed"] = int(informed)
        arrays.attrs |= self._settings(len(answered.labels), answered.facts["metric"])
        return tables, arrays

    def _raced(self, data: xr.Dataset) -> tuple[dict[str, pd.DataFrame], xr.Dataset]:
        import xarray as xr

        right = data["right"].to_numpy()  # (1 + V, N), NaN where a variant had left the race
        labels, seen = data["label"].to_numpy(), ~np.isnan(right)
        low, high, decision = (data[v].to_numpy() for v in ("low", "high", "decision"))
        names = [str(v) for v in data["variant"].to_numpy()]
        tables = {
            table: race_table(
                columns,
                right[[0, *rows]],
                bounds=(low[rows], high[rows]),
                decisions=decision[rows],
                level=self.level,
            )
            for table, rows, columns in _families(names)
        }
        known = seen[0]
        intact = np.where(right[0] == 1, labels, labels + 1)  # any answer that is not the label
        informed = beats_constant_answer(intact[known], labels[known], classes=True)
        score = float(right[0][known].mean())
        arrays = xr.Dataset(attrs={"intact": score, "informed": int(informed)})
        arrays.attrs["evaluations_saved"] = float(1 - seen[1:].mean())
        return tables, arrays


def _classes(corpus: Corpus) -> tuple[str, ...]:
    return () if corpus.task is None else corpus.task.labels


def _parse_set(text: str) -> Heads:
    """`3.5+7.1` as ((3, 5), (7, 1))."""
    try:
        pairs = [tuple(int(n) for n in piece.split(".")) for piece in text.split("+")]
    except ValueError:
        pairs = [()]
    if any(len(p) != 2 for p in pairs):
        raise ParameterError("sets", "HeadAblation", "be heads such as 3.5+7.1", text)
    return tuple(sorted({(p[0], p[1]) for p in pairs}))


def _families(names: list[str]) -> Iterator[tuple[str, list[int], dict[str, list[Any]]]]:
    """Variants that are tested together: table, rows among all variants, naming columns."""
    rows = {i: n for i, n in enumerate(names) if n != INTACT}
    sets = {i: n.removeprefix("set ") for i, n in rows.items() if n.startswith("set ")}
    layers = {i: int(n[:-2]) for i, n in rows.items() if n.endswith(".*")}
    heads = {i: n.split(".") for i, n in rows.items() if i not in sets and i not in layers}
    if heads:
        pairs = [(int(a), int(b)) for a, b in heads.values()]
        yield "heads", list(heads), {"layer": [a for a, _ in pairs], "head": [b for _, b in pairs]}
    if layers:
        yield "layers", list(layers), {"layer": list(layers.values())}
    if sets:
        yield "sets", list(sets), {"set": list(sets.values())}
