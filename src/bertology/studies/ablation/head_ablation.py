"""Head and layer ablation: what is the score without each head, each layer, any set of heads?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.errors import ParameterError
from bertology.metrics import find_metric
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import layer_bars, scatter_with_rank
from bertology.results.answers import head_name, listed, of_row, points
from bertology.results.comparison import extreme, share_of_harmless
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.number_text import number_text
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate, bounded_mean_bounds, rank_correlation
from bertology.stats.paired import influences
from bertology.studies.designs.sweeps import (
    Answers,
    Disabled,
    Heads,
    HeadSweep,
    SweepResult,
    class_order,
    every_head,
    every_layer,
)
from bertology.studies.study import Context

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

_NAMED = 4  # heads of a set that an axis has room for
_RISE = "rise of the loss per example"
_SETS = (
    "One bar for each set of heads that was asked for: the change of the {}, in points, when all "
    "heads of the set are disabled at once, with its interval. Intervals hold for all sets "
    "together; filled bars differ surely from 0."
)
_FIRST_ORDER = (
    "One dot for each head. To the right: the rise of the loss that one backward pass expects when "
    "the head is disabled; upwards: the rise that is measured. The better the dots follow a rising "
    "line, the better the quick estimate ranks heads."
)


class HeadAblationResult(SweepResult):
    """Scores with heads disabled, against the intact model, paired over examples.

    Tables: `heads`, `layers`, `sets` (those that were asked for). Arrays `effect_covariance`
    and `loss_covariance`: how the effects of heads vary together over examples.
    """

    lead: ClassVar[int] = 4
    place: ClassVar[int] = 3

    @property
    def answer(self) -> str:
        """What is lost without a layer, and without a head; sets where nothing else was asked."""
        there = [name for name in ("layers", "heads", "sets") if name in self.tables]
        return self.uninformed or " ".join(self._lost(name) for name in there[:2])

    def _lost(self, name: str) -> str:
        """The largest change of the score, among sure ones if there are any: the first row."""
        table, metric = self.tables[name], self.facts["metric"]
        sure = int(table["sure"].sum())
        row = table.loc[self.shown(name).index[0]]
        found = of_row(row, ("difference", "simultaneous_low", "simultaneous_high"))
        which = f"the set {row['set']}" if name == "sets" else head_name(row)
        if not sure:
            return (
                f"None of {len(table)} {name} surely changes the {metric}; {which} changes it "
                f"most, by {points(found)}."
            )
        if sure == 1:
            return (
                f"Of {len(table)} {name} only {which} surely changes the {metric}: {points(found)} "
                "without it."
            )
        return (
            f"{sure} of {len(table)} {name} surely change the {metric}, {which} most: "
            f"{points(found)} without it."
        )

    def headline(self) -> str:
        """The intact score, to which all differences are, and how much surely changes."""
        facts = self.facts
        score = number_text(100 * float(facts["intact"]), ".1f")
        intact = (
            f"Intact {find_metric(facts['metric']).in_hundred}: {score} over "
            f"{facts['examples']} examples"
        )
        of = [
            f"{int(self.tables[t]['loss_sure'].sum())} of {len(self.tables[t])} {t}"
            for t in ("heads", "layers")
            if t in self.tables
        ]
        return f"{intact}. Without which the loss surely changes: {listed(of)}" if of else intact

    def measures(self) -> Sequence[Measure]:
        """What the task loses or gains without each head and each layer."""
        found = [m for name in ("heads", "layers") for m in self._effects(name)]
        return sorted(found, key=lambda m: not m.of_heads)

    def _effects(self, table: str) -> Iterator[Measure]:
        """Effects of disabling what the table is about on the score and on the loss."""
        if table not in self.tables:
            return
        one, prefix = ("head", "") if table == "heads" else ("layer", "layer-")
        of_column = partial(Measure.of_column, self.tables[table], middle=0.0)
        yield of_column(
            "difference",
            name=f"{prefix}ablation-effect",
            title=f"Change of the score without the {one}",
            unit=f"points of {self.facts['metric']}",
            bounds=("simultaneous_low", "simultaneous_high"),
            sure="sure",
            scale=100.0,
            reading=f"Below 0: the task misses the {one}; above 0: it is done better without.",
        )
        yield of_column(
            "loss_balance",
            name=f"{prefix}ablation-loss",
            title=f"Net share of examples whose loss rises without the {one}",
            unit="% of examples",
            bounds=("loss_balance_low", "loss_balance_high"),
            sure="loss_sure",
            scale=100.0,
            reading="Shares that rise less shares that fall. Above 0: the right answer becomes "
            f"less probable without the {one} more often than more probable.",
        )
        yield of_column(
            "loss_difference",
            name=f"{prefix}ablation-mean-loss",
            title=f"Mean rise of the loss without the {one}",
            unit=_RISE,
            reading=f"Above 0: answers are worse, or less certain, without the {one}; a few "
            "examples may decide it.",
        )
        if "first_order" in self.tables[table]:
            yield of_column(
                "first_order",
                name="first-order-importance",
                title="Importance of the head by gradients",
                unit=_RISE,
                reading="High: one backward pass expects the loss to rise without the head.",
            )

    def drawings(self) -> Sequence[Drawing]:
        """The paper's Figure 8 (heads) and Figure 9 (layers), and what goes beyond it."""
        measures = {m.name: m for m in self.measures()}
        found: list[Drawing] = []
        for of, draw in (("heads", drawings.grid), ("layers", drawings.bars)):
            prefix = "" if of == "heads" else "layer-"
            for kind, name in (("effect", of), ("loss", f"{of}-loss")):
                if (effect := measures.get(f"{prefix}ablation-{kind}")) is not None:
                    found.append(draw(effect, self.about, name=name))
        if "sets" in self.tables:
            found.append(Drawing("sets", self._draw_sets, _SETS.format(self.facts["metric"])))
        if "first-order-importance" in measures:
            found.append(Drawing("first-order", self._draw_first_order, _FIRST_ORDER))
        return found

    def _draw_sets(self) -> Figure:
        rows = self.tables["sets"]
        return layer_bars(
            *(
                100 * rows[c].to_numpy()
                for c in ("difference", "simultaneous_low", "simultaneous_high")
            ),
            title=f"Change of the score without sets of heads\n{self.about}",
            label=f"points of {self.facts['metric']}",
            names=[_short_set(str(s)) for s in rows["set"]],
            filled=rows["sure"].to_numpy(),
        )

    def _draw_first_order(self) -> Figure:
        table = self.tables["heads"]
        return scatter_with_rank(
            table["first_order"].to_numpy(),
            table["loss_difference"].to_numpy(),
            title=f"One backward pass against the exact sweep\n{self.about}",
            xlabel="rise of the loss, first-order estimate",
            ylabel="rise of the loss, exact",
        )


def _short_set(text: str) -> str:
    """A set's name for an axis: the first heads of a large one, and how many there are."""
    heads = text.split("+")
    return text if len(heads) <= _NAMED else f"{'+'.join(heads[:2])}+…\n({len(heads)} heads)"


@dataclass(frozen=True)
class HeadAblation(HeadSweep):
    """What is the task score without each head, each layer, or any set of heads?

    Method: a disabled head attends to every real token with weight 1/L (Kovaleva et al. 2019,
    section 4.6), gives nothing ("zero"), or gives its mean output over the corpus ("mean"). Every
    head and every layer is disabled in turn and the task is scored again on the same examples.
    Differences to the intact model are paired over examples: `low` and `high` are bootstrap
    intervals; `simultaneous_low`, `simultaneous_high` and `p_adjusted` hold for all heads (or all
    layers) together. Whether the accuracy changes at all is told by exact tests of the answers that
    flip. The loss (minus the log-probability of the right answer, or the squared error) is a second
    outcome of the same passes and shows more, since it changes before answers flip. Its mean hangs
    on few examples; so `loss_balance` is the share of examples whose loss rises by `loss_margin` or
    more less the share whose loss falls, with bounds and exact tests for all heads together too.
    `sure` and `loss_sure`: the score changes surely, the loss does. The sweep is exact: layers
    below an edit are computed once and all variants share the rest. Beside it, `first_order`
    estimates the mean rise of the loss from gate gradients.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), Figures 8 and 9; Michel et al. (2019)
    for gate gradients. Limits: one head at a time says nothing about heads that stand in for each
    other; claims are judged only where the intact model beats a constant answer.
    """

    version: ClassVar[int] = 8  # harmless heads are counted by exact tests of flips
    result_type: ClassVar[type[Result]] = HeadAblationResult

    heads: bool = parameter(True, "Disable each head in turn.")
    layers: bool = parameter(True, "Disable all heads of each layer in turn.")
    sets: tuple[str, ...] = parameter((), "Further sets of heads: 3.5+7.1,0.2+0.3 are two.")
    first_order: bool = parameter(True, "Also estimate effects from gate gradients.")
    seed: int = parameter(0, "Seed of the resamples.", minimum=0, concludes=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.heads or self.layers or self.sets):
            raise ParameterError("heads", "HeadAblation", "be true where nothing else is", False)
        for text in self.sets:
            _parse_set(text)

    def variants(self, shape: Shape) -> Iterator[Disabled]:
        """Every head, every layer, and the sets that were asked for."""
        if self.heads:
            yield from every_head(shape)
        if self.layers:
            yield from every_layer(shape)
        for text in self.sets:
            yield Disabled(text, _parse_set(text), "sets")

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """The sets must be of heads that the model has."""
        super().check(encoder, corpus)
        shape = encoder.shape
        for text in self.sets:
            if any(i >= shape.layers or h >= shape.heads for i, h in _parse_set(text)):
                must = f"name heads of a model with {shape}"
                raise ParameterError("sets", "HeadAblation", must, text)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Logits of every variant, and what a backward pass expects of each head."""
        data = super().measure(encoder, corpus, part, context)
        if self.first_order and self.heads:
            from bertology.model.sweeps.gate_gradients import first_order_over

            block, order = self.of_block(part, corpus), class_order(encoder, corpus.task)
            labels = [order[int(n)] for n in block.labels] if len(order) > 1 else block.labels
            slopes = first_order_over(
                encoder,
                block.texts,
                labels,
                disable=self.sweep(encoder, corpus, context).disable,
                tokens_per_batch=context.batch_tokens,
            )
            data["first_order"] = (("example", "layer", "head"), slopes)
        return data

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Scores, differences, intervals and tests that are corrected for looking at them all."""
        answers, tables = Answers.of(measured), {}
        named = answers.names_by_table()
        if "heads" in named:
            pairs = np.array([name.split(".") for name in named["heads"]], dtype=int)
            where = {"layer": pairs[:, 0], "head": pairs[:, 1]}
            tables["heads"] = self.effects(answers, "heads", where)
            if answers.slopes is not None:
                tables["heads"]["first_order"] = answers.slopes.ravel()
        if "layers" in named:
            layers = np.arange(len(named["layers"]))
            tables["layers"] = self.effects(answers, "layers", {"layer": layers})
        if "sets" in named:
            tables["sets"] = self.effects(answers, "sets", {"set": named["sets"]})
        return self.result(
            provenance,
            tables,
            evidence=self._evidence(answers, tables) if answers.informed else {},
            reasons=answers.reasons,
            facts=self.facts(answers),
            arrays=effect_covariance(answers, self.loss_margin) if "heads" in named else None,
        )

    def _evidence(
        self, answers: Answers, tables: Mapping[str, pd.DataFrame]
    ) -> dict[str, Estimate]:
        found, n = dict[str, Estimate](), len(answers.labels)
        for name, unit in (("heads", "head"), ("layers", "layer")):
            if name in tables:
                of_rows = partial(extreme, tables[name], n=n, level=self.level)
                found[f"best_{unit}_gain"] = of_rows()
                found[f"worst_{unit}_loss"] = of_rows(largest=False)
                found[f"best_{unit}_share_better"] = of_rows(largest=False, loss=True)
                found[f"worst_{unit}_share_worse"] = of_rows(loss=True)
        if "heads" in tables:
            heads, rows = tables["heads"], answers.of_variants(answers.rows_of("heads"))
            psi, reach = influences(answers.metric, answers.intact(), rows)
            found["share_of_harmless_heads"] = share_of_harmless(
                psi, reach, self.margin, self.level, flips=answers.metric.counts_right
            )
            found["mean_head_gain"] = self._mean_gain(psi.mean(axis=0), float(reach.max()))
            if "first_order" in heads and len(heads) > 2:
                rank = rank_correlation(
                    heads["first_order"].to_numpy(),
                    heads["loss_difference"],
                    level=self.level,
                    seed=self.seed,
                )
                found["first_order_rank"] = rank.counting("heads")
        return found

    def _mean_gain(self, of_examples: NDArray[np.float64], reach: float) -> Estimate:
        """Most examples change nothing; bounds allow for changes that were not seen."""
        low, high = bounded_mean_bounds(
            of_examples[None], None, low=-reach, high=reach, budget=math.log(2 / (1 - self.level))
        )
        n = len(of_examples)
        return Estimate(float(of_examples.mean()), float(low[0]), float(high[0]), n, self.level)


def effect_covariance(answers: Answers, loss_margin: float) -> xr.Dataset:
    """How the effects of heads vary together over examples; rows and columns as in table `heads`.

    Of the score, and of the balance of losses. Whatever compares groups of heads needs it: what one
    example does to many heads at once is no evidence from many heads.
    """
    import xarray as xr

    rows = answers.rows_of("heads")
    psi, _ = influences(answers.metric, answers.intact(), answers.of_variants(rows))  # (heads, N)
    over_examples = {
        "effect_covariance": psi,
        "loss_covariance": answers.loss_signs(rows, loss_margin),
    }
    return xr.Dataset(
        {
            name: (("of_head", "with_head"), np.atleast_2d(np.cov(values)) / values.shape[1])
            for name, values in over_examples.items()
        }
    )


def _parse_set(text: str) -> Heads:
    """`3.5+7.1` as ((3, 5), (7, 1))."""
    try:
        pairs = [tuple(int(n) for n in piece.split(".")) for piece in text.split("+")]
    except ValueError:
        pairs = [()]
    if any(len(p) != 2 for p in pairs):
        raise ParameterError("sets", "HeadAblation", "be heads such as 3.5+7.1", text)
    return tuple(sorted({(p[0], p[1]) for p in pairs}))
