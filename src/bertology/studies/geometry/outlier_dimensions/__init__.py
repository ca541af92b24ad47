"""Outlier dimensions: do a few weights that are far from all others carry the model?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.errors import CapabilityError, DataError
from bertology.parameters import parameter
from bertology.report import drawings, figures
from bertology.results.answers import NOTHING_SURE, listed, plain
from bertology.results.compared import PERCENT, Compared
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.number_text import number_text
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.over_draws import fewest_draws, in_most_rows, shared_positions
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.parts import Gathered, gather, start_of
from bertology.studies.designs.tables import labelled_table
from bertology.studies.geometry.outlier_dimensions.passes import KEPT
from bertology.studies.geometry.outlier_dimensions.questions import DRAW, SINGLE, dimension_sets
from bertology.studies.geometry.outlier_dimensions.scores import Effects
from bertology.studies.study import TASK, Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.outliers import LargeDimensions, WeightOutliers


class OutlierDimensionsResult(Result):
    """Which dimensions are outliers, and what happens without them.

    Table `sets`: loss, perplexity, right answers and what is predicted, of the intact model, with
    the outliers disabled together and one by one, and with random dimensions (the middle and the
    most costly draw; `draws` has each), the link to frequency and what happens to the sink;
    `dimensions`: each outlier, in how many layers, how large, its link to frequency, its own cost;
    `layers`: by layer the farthest weight and the largest activation, attention to [SEP] with and
    without outliers; `completions`: some texts with predicted words in brackets. Arrays `sigmas`,
    `magnitudes`, `largest` (layer, dimension): how far the weights lie from the mean, mean and
    largest |activation|.
    """

    @property
    def answer(self) -> str:
        """Which outliers there are, and what they cost."""
        found, facts = self.evidence(), self.facts
        table = self.tables["dimensions"]
        told = (
            f"{len(table)} of {facts['hidden']} dimensions are outliers in "
            f"{100 * float(facts['share']):.0f} % of the layers or more"
        )
        if not len(table) or "loss_rise" not in found:
            far = number_text(found["largest_sigma"].value, ".1f")
            return (
                f"{told}; the farthest weight lies {far} σ away (weights are exact: no interval)."
            )
        rise, over = found["loss_rise"], found.get("cost_over_random")
        names = listed(table["dimension"].astype(int), 5)
        sure = "Surely" if rise.low > 0 else NOTHING_SURE
        beside = "" if over is None else f", by {plain(over, '+.2f')} against random ones"
        if over is not None and rise.low > 0 and not over.low > 0:
            beside = f", but not surely more than without random ones ({plain(over, '+.2f')})"
        return (
            f"{told} ({names}). {sure}: without their {facts['weights']} weights the loss "
            f"rises by {plain(rise, '.2f', 'nats')}{beside}."
        )

    def measures(self) -> Sequence[Measure]:
        """By layer: the farthest weight, the largest activation, attention to [SEP]."""
        return [*self._of_layers(), *self._of_sink()]

    def _of_layers(self) -> Iterator[Measure]:
        table = self.tables["layers"]
        yield Measure.of_column(
            table,
            "largest_sigma",
            name="norm-outlier",
            title="Farthest weight of the layer's last operation",
            unit="standard deviations",
            reading="High: some dimension is scaled or shifted unlike all others.",
        )
        yield Measure.of_column(
            table,
            "state_ratio",
            name="large-dimension",
            title="Largest dimension of the states",
            unit="times the median dimension",
            reading="High: one dimension has far larger activations than most.",
        )

    def _of_sink(self) -> Iterator[Measure]:
        table = self.tables["layers"]
        if "sep_intact" not in table:
            return
        for name, title in _SINKS.items():
            if name not in table:
                continue  # no draws are possible
            yield Measure.of_column(
                table,
                name,
                name=name.replace("_", "-"),
                title=title,
                unit="share of the attention",
                reading="High: the layer's heads give much of their attention to [SEP].",
            )

    def over_training(self) -> Sequence[Tracked]:
        """The farthest weight, and how much larger than the median the largest dimension is."""
        return [
            Tracked(
                "largest_sigma",
                "distance of the farthest weight",
                layers="norm-outlier",
                unit="standard deviations",
            ),
            Tracked(
                "largest_state_ratio",
                "largest dimension of the states",
                layers="large-dimension",
                unit="times the median dimension",
            ),
        ]

    def drawings(self) -> Sequence[Drawing]:
        """The farthest weights, the outliers layer by layer, what each costs, and the sink."""
        far, large = self._of_layers()
        found = [
            drawings.bars(far, self.about, name="layers", caption=_LAYERS_CAPTION),
            drawings.bars(large, self.about, name="states", caption=_STATES_CAPTION),
        ]
        if len(self.tables["dimensions"]):
            found.append(self._rows())
        if "sets" in self.tables and np.isfinite(self.tables["sets"]["loss_rise"]).any():
            table = self.tables["sets"]
            table = table[table["kind"] != "intact"]
            label = "rise of the loss (nats)"
            found.append(
                drawings.dots(
                    "costs",
                    [figures.Dots.of_columns(label, table, "loss_rise", scale=1.0, level=0.0)],
                    table["set"],
                    self.about,
                    title="What it costs to disable dimensions",
                    caption=_COSTS_CAPTION,
                    note="Lines: intervals over texts, for all sets together.",
                )
            )
        if "draws" in self.tables and (self.tables["draws"]["kind"] == DRAW).any():
            found.append(self._related())
        if sinks := list(self._of_sink()):
            found.append(
                drawings.profile(
                    "sink",
                    sinks,
                    self.about,
                    title="Attention to [SEP] with and without outlier dimensions",
                    reading="Where the second line lies below the others, the outliers serve the "
                    "attention sink; random dimensions are the mean of all draws.",
                    labels=_SINK_LABELS[: len(sinks)],
                )
            )
        return found

    def _rows(self) -> Drawing:
        chosen = [int(d) for d in self.tables["dimensions"]["dimension"][:12]]
        sigmas = self.arrays["sigmas"].to_numpy()
        measures = [
            Measure(
                name=f"dimension-{d}",
                title=str(d),
                values=sigmas[:, d],
                unit="standard deviations",
                reading="High: the weights of this dimension are unlike all others.",
            )
            for d in chosen
        ]
        return drawings.rows(
            "dimensions",
            measures,
            self.about,
            title="How far the weights of outlier dimensions lie from the others",
            reading="A dark row: the same dimension is an outlier in most layers.",
        )

    def _related(self) -> Drawing:
        """Frequency and the sink: the outliers against the range of the draws."""
        table, draws = self.tables["sets"], self.tables["draws"]
        own, random = table[table["set"] == "outliers"], draws[draws["kind"] == DRAW]
        found, panels = self.evidence(), []
        for column, (label, quantity) in _RELATIONS.items():
            if column not in table:
                continue
            low, middle, high = np.nanquantile(random[column].to_numpy(float), (0, 0.5, 1))
            estimate = found.get(quantity)
            values = [float(own[column].iloc[0]), middle, low, high]
            bounds = np.full((2, 4), np.nan)
            if estimate is not None:
                bounds[:, 0] = estimate.low, estimate.high
            panels.append(figures.Dots(label, values, *bounds, level=0.0))
        names = ["outliers", *(f"random, {n} of {len(random)}" for n in _RANGE)]
        return drawings.dots(
            "related",
            panels,
            names,
            self.about,
            title="Outliers, frequency and the attention sink",
            caption=_RELATED_CAPTION,
            note="Lines: intervals over texts; what has none is hollow.",
        )


_RANGE = ("middle", "lowest", "highest")
_RELATIONS = {
    "frequency_link": ("link to token frequency (mean |r|)", ""),
    "sep_change": ("change of attention to [SEP] without them (share)", "sink_change"),
    "size_change": ("change of their size with the sink cut (log)", "magnitude_change"),
}
_SINKS = {
    "sep_intact": "Attention to [SEP]",
    "sep_without": "Attention to [SEP] without outlier dimensions",
    "sep_random": "Attention to [SEP] without random dimensions",
}
_SINK_LABELS = ["intact", "without outliers", "without random dimensions"]
_LAYERS_CAPTION = (
    "One bar for each layer: how many standard deviations the farthest weight or bias of its last "
    "operation (the output LayerNorm) lies from the mean of all dimensions. Three make an outlier; "
    "normal numbers of this width would reach about that by chance."
)
_STATES_CAPTION = (
    "One bar for each layer: mean size of the activations of its largest dimension, as a multiple "
    "of the median dimension, over the half of the texts on which outliers are found."
)
_RELATED_CAPTION = (
    "Three things about the outliers, beside as many random dimensions (the middle, lowest and "
    "highest draw in each panel): how much the size of their activations goes with the frequency "
    "of the token; by how much attention to [SEP] changes from a third of the depth on when they "
    "are disabled; and how their activations change when that attention is cut. If outliers write "
    "the sink, they lie left of all draws in the second panel; if it feeds them, in the third."
)
_COSTS_CAPTION = (
    "Rise of the loss in nats when the last operation of every layer has nothing for some "
    "dimensions: each outlier alone, a random dimension alone, all outliers together, and as many "
    "random dimensions (the middle draw and the most costly one). It is measured on texts on which "
    "no outlier was found; lines are intervals over texts."
)


TEN_THOUSANDTH, MILLIONTH = 1e-4, 1e-6
_NO_OUTLIER = "not judged: no dimension is an outlier in so many layers"
_NO_DRAWS = "not judged: draws 0 leaves out the random dimensions that outliers must beat"
_NOTHING_PREDICTED = "not judged: this model predicts neither words nor the labels of these texts"
_NOT_KNOWING = (
    "not judged: the intact model does not surely know more than how frequent the answers are in "
    "these very texts; with more texts (--limit) less knowledge is told from none"
)
_NO_SINK = "not judged: no text has [SEP], or the model has one layer only"
_OVER_RANDOM = (
    "cost_over_random", "frequency_over_random", "sink_over_random", "magnitude_over_random",
)  # fmt: skip
_OF_EFFECTS = ("cost_over_random", "knowledge_lost_ten_thousandth", "knowledge_lost_millionth")
_OF_SINK = ("sink_over_random", "magnitude_over_random")
_OF_STATES = (*_OF_SINK, "frequency_over_random")
_COMPARED = {
    "outlier_dimensions": ("outlier dimensions of the weights", "dimensions"),
    "state_outliers": ("outlier dimensions of the states", "dimensions"),
    "largest_sigma": ("farthest weight of a LayerNorm", "σ"),
    "largest_state_ratio": ("largest dimension of the states", "× the median one"),
    "loss_rise": ("rise of the loss without outliers", "nats"),
    "knowledge_lost": ("what is lost of the knowledge without outliers", PERCENT),
}


@dataclass(frozen=True)
class OutlierDimensions(Resampled):
    """Do a few weights that are far from all others carry the model?

    Method: a dimension is an outlier where the scale or the bias of a layer's output LayerNorm lies
    more than 3 standard deviations from those of the other dimensions, in at least half of the
    layers (`share`); where norms come first in a layer (GPT-2), the MLP's last map takes the place
    of that LayerNorm. Outliers of the states (mean |activation|) are found on every second text, in
    one pass; all effects are measured on the other texts. Scale and bias of the outliers are set
    to zero, one by one and together, and so are those of random dimensions, `draws` times as many.
    What is measured: the loss and perplexity at fixed masked words (next words in GPT-2, labels in
    a classifier), paired over texts; what is predicted, how often the commonest prediction comes,
    and the entropy of all; attention to [SEP] by layer; how much the size of the activations goes
    with the frequency of the token in the corpus; and how the outliers' activations change when
    attention to [SEP] is cut. Outliers must beat every one of the random draws, which have no
    dimension in common: if the choice meant nothing, they would do so in 1 of `draws` + 1 cases, so
    that a level of 95 % needs 19 draws. What the model knows is by how much its loss lies below
    that of guessing by frequency alone.

    Source: BERT Busters (Kovaleva et al. 2021); Puccetti et al. (2022) on frequency. Limits: in
    encoder-decoder models the encoder alone is looked at; XLNet and the encoder of T5 predict no
    masked words here, so that only states and attention are measured; tasks that are no
    classification are not scored. Numbers of weights are exact and have no interval.
    """

    version: ClassVar[int] = 4  # layers are counted, and not sampled
    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"norms", "residual"}), fields=frozenset({"text"}), head="saved"
    )
    result_type: ClassVar[type[Result]] = OutlierDimensionsResult
    compared_over: ClassVar[tuple[str, ...]] = (TASK,)
    block: ClassVar[int] = 64
    fills_gpu: ClassVar[bool] = True

    examples: int = parameter(
        200,
        "Draw so many of the examples at random, half of them to find outliers; all if fewer.",
        minimum=4,
        at_least_option="limit",
    )
    by: str = parameter(
        "weights",
        "Which outliers are disabled: those of the weights, or of the states.",
        choices=("weights", "states"),
    )
    share: float = parameter(
        0.5, "Share of the layers that a dimension must be an outlier in.", minimum=0.05, maximum=1
    )
    draws: int = parameter(
        30,
        "Random sets of as many dimensions, with none in common; 0: outliers are found, and none "
        "is disabled.",
        minimum=0,
        maximum=500,
    )
    norms: str = parameter(
        "output",
        "Which LayerNorms are disabled: of the output, or of attention and output (both).",
        choices=("output", "both"),
    )
    hidden: float = parameter(0.15, "Share of words that are masked.", minimum=0.01, maximum=0.5)

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """The family must have a last operation with a weight for each dimension; texts for two."""
        from bertology.model.outliers import weight_outliers

        super().check(encoder, corpus)
        if weight_outliers(encoder) is None:
            raise CapabilityError(
                f"{encoder.family.title} models have no LayerNorm at the output of a layer, so "
                "there is no weight for each dimension that could be an outlier.",
                hint="See what each family supports with: bertology families",
            )
        if len(corpus) < 4:
            raise DataError(
                f"Half of the texts find outliers and the other half is measured on: four or more "
                f"are needed. {corpus.name!r} has {len(corpus)}.",
                hint="Give more text (--limit).",
            )

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Both halves."""
        return super().shown(corpus).texts

    def shown(self, corpus: Corpus) -> Corpus:
        """The half on which effects are measured."""
        return super().shown(corpus)[1::2]

    def looked_at(self, corpus: Corpus) -> Corpus:
        """The half on which outliers of the states are found."""
        return super().shown(corpus)[0::2]

    def not_judged(self, corpus: Corpus) -> Corpus:
        """All texts but those on which effects are measured."""
        judged = {e.id for e in self.shown(corpus)}
        rest = [e for e in corpus if e.id not in judged]
        return replace(corpus, examples=rest) if rest else self.looked_at(corpus)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Outliers, and the passes over one block of texts."""
        import xarray as xr

        from bertology.model.weight_edits import ZeroLastOperation
        from bertology.studies.geometry.outlier_dimensions.passes import Passes
        from bertology.studies.geometry.outlier_dimensions.questions import (
            asked_of,
            piece_counts,
            uninformed,
        )

        block, start = self.of_block(part, corpus), start_of(part)
        weights, states = _found(encoder, self.looked_at(corpus), context.batch_tokens)
        by: WeightOutliers | LargeDimensions = weights if self.by == "weights" else states
        chosen = by.in_most_layers(self.share)
        sets = dimension_sets(
            chosen if self.draws else [], encoder.shape.hidden, draws=self.draws, seed=self.seed
        )
        norms = ("output",) if self.norms == "output" else ("attention", "output")
        passes = Passes(
            encoder,
            sets,
            np.log(np.maximum(piece_counts(encoder, corpus), 1.0)),
            uninformed(encoder, self.shown(corpus), self.not_judged(corpus)),
            norms,
            len(block),
            start,
        )
        ask = partial(asked_of, encoder, start=start, hidden=self.hidden, seed=self.seed)
        for batch in encoder.batches(block.texts, tokens_per_batch=context.batch_tokens):
            passes.take(batch, ask(batch, block))
            context.advance(len(batch))
        edits = [
            ZeroLastOperation(s.dimensions, scale=s.scale, bias=s.bias, norms=norms) for s in sets
        ]
        dims = ("depth", "width")
        return xr.Dataset(
            {
                **passes.arrays(),
                "sigmas": (dims, weights.sigmas),
                "magnitudes": (dims, states.magnitudes.astype(np.float32)),
                "largest": (dims, states.largest),
                "chosen": ("outlier", np.array(chosen, np.int64)),
                "distinct": ("own", np.array(weights.distinct, np.int64)),
                "touched": ("set_of_all", np.array([e.touched(encoder) for e in edits], np.int64)),
            },
            attrs={
                "parameters": encoder.parameters,
                "state_outliers": len(states.in_most_layers(self.share)),
            },
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Tables, and what claims are judged on."""
        texts = [f"text_{n}" for n in ("given", "intact", "disabled", "drawn")]
        seen = gather(
            measured,
            concatenate=["losses", "right", "uninformed", "sep", "cut", "best", *texts],
            add=["tokens", "sums", "cut_sums"],
        )
        last, arrays = seen.last, {}
        for name in ("sigmas", "magnitudes", "largest"):
            arrays[name] = (("layer", "dimension"), last[name].to_numpy())
        chosen = [int(d) for d in last["chosen"].to_numpy()]
        hidden = arrays["sigmas"][1].shape[1]
        sets = dimension_sets(
            chosen if self.draws else [], hidden, draws=self.draws, seed=self.seed
        )
        options = {"level": self.level, "resamples": self.resamples, "seed": self.seed}
        effects = Effects(seen, sets, last["touched"].to_numpy().tolist(), options)
        of_sets = effects.tables() if sets else {}
        tables = {
            **{name: of_sets[name] for name in ("sets",) if sets},
            "dimensions": _dimensions(arrays, chosen, effects),
            "layers": self._layers(arrays, effects),
            **({"completions": _completions(seen)} if sets else {}),
            **of_sets,
        }
        evidence, reasons = self._evidence(last, chosen, effects)
        import xarray as xr

        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons=reasons,
            facts={
                "examples": len(seen["losses"]),
                "hidden": hidden,
                "share": self.share,
                "weights": int(effects.touched[0]) if sets else 0,
                "parameters": int(seen.facts["parameters"]),
            },
            arrays=xr.Dataset(arrays),
            compared=[
                Compared(title, one, unit)
                for quantity, (title, unit) in _COMPARED.items()
                if (one := evidence.get(quantity)) is not None
            ],
        )

    def _layers(self, arrays: Mapping[str, Any], effects: Effects) -> pd.DataFrame:
        sigmas, magnitudes, largest = (arrays[n][1] for n in ("sigmas", "magnitudes", "largest"))
        middle = np.maximum(np.median(magnitudes, axis=1), 1e-12)
        columns = {
            "largest_sigma": sigmas.max(1),
            "outliers": (sigmas > 3).sum(1),
            "state_ratio": magnitudes.max(1) / middle,
            "largest_activation": largest.max(1),
            **(effects.by_layer() if effects.sets else {}),
        }
        return labelled_table({"layer": range(len(sigmas))}, columns)

    def _evidence(
        self, last: xr.Dataset, chosen: Sequence[int], effects: Effects
    ) -> tuple[dict[str, Estimate | None], dict[str, str]]:
        sigmas = last["sigmas"].to_numpy()[last["distinct"].to_numpy()].astype(np.float64)
        far, ratios = sigmas > 3, last["magnitudes"].to_numpy()
        largest = float((ratios.max(1) / np.maximum(np.median(ratios, 1), 1e-12)).max())
        width, whole = sigmas.shape[1], int(last.attrs["parameters"])
        found: dict[str, Estimate | None] = {
            "largest_sigma": _exact(float(sigmas.max()), sigmas.size),
            "outlier_dimensions": _exact(len(chosen), width),
            "state_outliers": _exact(int(last.attrs["state_outliers"]), width),
            "largest_state_ratio": _exact(largest, width),
            "shared_positions": shared_positions(far, level=self.level, seed=self.seed),
            "layers_of_leading": in_most_rows(far, level=self.level, seed=self.seed)
            if len(sigmas) > 1
            else None,
        }
        if not effects.sets:
            why = _NO_OUTLIER if not chosen else _NO_DRAWS
            return found, dict.fromkeys((*_OF_EFFECTS, *_OF_STATES), why)
        touched = effects.touched[0] / whole
        found["weights_share"] = _exact(touched, whole)
        reasons: dict[str, str] = {}
        if effects.predicts:
            lost = effects.knowledge_lost()
            found |= {
                "loss_rise": effects.loss_rise(),
                "cost_over_random": effects.cost_over_random(),
                "knowledge": effects.knowledge(),
                "knowledge_lost": lost,
            }
            limits = {"ten_thousandth": TEN_THOUSANDTH, "millionth": MILLIONTH}
            for name, limit in limits.items():
                quantity, most = f"knowledge_lost_{name}", math.ceil(limit * whole) - 1
                if (fewest := effects.fewest_touched()) > most:
                    reasons[quantity] = (
                        f"not judged: {fewest:,} of {whole:,} weights are "
                        f"{100 * fewest / whole:.2g} %, which is not below {100 * limit:g} %"
                    )
                elif lost is None:
                    reasons[quantity] = _NOT_KNOWING
                else:
                    found[quantity] = effects.knowledge_lost(most)
        else:
            reasons |= dict.fromkeys(_OF_EFFECTS, _NOTHING_PREDICTED)
        found["frequency_over_random"] = effects.frequency_over_random()
        for name in ("sink_over_random", "magnitude_over_random", "sink_change"):
            found[name] = getattr(effects, name)()
        found["magnitude_change"] = effects.magnitude_change()
        if not effects.has_sink:
            reasons |= dict.fromkeys(_OF_SINK, _NO_SINK)
        if why := self._too_few(effects, len(chosen), width):
            reasons = dict.fromkeys(_OVER_RANDOM, why) | reasons
        return found, reasons

    def _too_few(self, effects: Effects, chosen: int, width: int) -> str:
        """Why there are too few random draws to be beaten; nothing where there are enough."""
        draws, needed = len(effects.rows_of(DRAW)), fewest_draws(self.level)
        if draws >= needed:
            return ""
        if draws == self.draws:
            return f"not judged: at a level of {100 * self.level:g} % {needed} draws are needed"
        return (
            f"not judged: {chosen} of {width} dimensions are outliers, and from the others only "
            f"{draws} sets of as many can be drawn that have none in common; {needed} are needed"
        )


def _found(encoder: Encoder, corpus: Corpus, tokens: int) -> tuple[WeightOutliers, LargeDimensions]:
    """Outliers of the weights, and of the states on these texts."""
    from bertology.model.outliers import large_dimensions, weight_outliers

    weights = weight_outliers(encoder)
    assert weights is not None  # `check` saw to it
    return weights, large_dimensions(
        encoder, encoder.batches(corpus.texts, tokens_per_batch=tokens)
    )


def _dimensions(arrays: Mapping[str, Any], chosen: Sequence[int], effects: Effects) -> pd.DataFrame:
    """A row for each outlier, the farthest first."""
    import pandas as pd

    sigmas, magnitudes, largest = (arrays[n][1] for n in ("sigmas", "magnitudes", "largest"))
    middle = np.maximum(np.median(magnitudes, axis=1), 1e-12)
    at = list(chosen)
    found = pd.DataFrame(
        {
            "dimension": np.array(at, dtype=np.int64),
            "layers": (sigmas[:, at] > 3).sum(0),
            "mean_sigma": sigmas[:, at].mean(0),
            "largest_sigma": sigmas[:, at].max(0),
            "state_ratio": (magnitudes[:, at] / middle[:, None]).mean(0),
            "largest_activation": largest[:, at].max(0) if at else np.zeros(0),
        }
    )
    if not effects.sets:
        return found
    place = {d: i for i, d in enumerate(effects.dimensions)}
    found["frequency_link"] = effects.frequency_links()[[place[d] for d in at]]
    alone = {s.dimensions[0]: i for i, s in enumerate(effects.sets) if s.kind == SINGLE}
    rises = np.nanmean(effects.rises, axis=1) if effects.predicts else None
    found["loss_rise"] = [
        np.nan if rises is None or d not in alone else rises[alone[d]] for d in at
    ]
    return found


def _completions(seen: Gathered) -> pd.DataFrame:
    import pandas as pd

    columns = {"given": "text", "intact": "intact", "disabled": "without", "drawn": "random"}
    found = {name: seen[f"text_{key}"][:KEPT] for key, name in columns.items()}
    table = pd.DataFrame({name: [str(v) for v in values] for name, values in found.items()})
    if not (table["random"] != "").any():
        table = table.drop(columns="random")  # no draws are possible
    return table[table["text"] != ""].reset_index(drop=True)


def _exact(value: float, n: int) -> Estimate:
    """What is counted and not sampled."""
    return Estimate(value, value, value, n, unit="weights")
