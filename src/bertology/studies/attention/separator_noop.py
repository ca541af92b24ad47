"""Separator no-op: is attention to [SEP] a way for a head to do nothing?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.annotated.plain_classes import PlainClass
from bertology.arrays import Floats
from bertology.errors import CapabilityError
from bertology.parameters import drawn, parameter
from bertology.report import drawings
from bertology.results.answers import NOTHING_SURE, percent, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.layer_orders import later_less_earlier, mirrored
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.layer_places import first_upper
from bertology.studies.designs.parts import Gathered, gather, start_of
from bertology.studies.designs.tables import head_table, labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

KINDS = list(PlainClass)
UPPER, DROPPED = "upper", "upper, not made up"
SEP, WORDS = KINDS.index(PlainClass.SEP), KINDS.index(PlainClass.WORDS)
# What is measured of each class, by layer: title, unit, reading.
_OF_CLASSES = {
    "weight": (
        "Attention to {}",
        "share of the attention",
        "High: the layer's heads give much of their attention to these tokens.",
    ),
    "carried": (
        "What attention carries from {}",
        "share of what is carried",
        "High: much of what the layer's heads add comes from these tokens; a token of small value "
        "vectors adds little, however much it is attended to.",
    ),
    "gradient": (
        "How much the loss depends on attention to {}",
        "nats per unit of weight",
        "High: a small change of this attention changes how well hidden words are predicted.",
    ),
}
_FIGURES = {"weight": "attention", "carried": "carried", "gradient": "gradients"}
_OF_HEADS = {
    "weight": "High: the head gives much of its attention to [SEP].",
    "carried": "High: much of what the head adds comes from [SEP].",
}
_CUTS = {
    "sep": "[SEP]",
    "words": "words, as much",
}
_NO_SEPARATOR = "not judged: no text has [SEP], or the model has one layer only"


class SeparatorNoopResult(Result):
    """What [SEP] gets by layer, what depends on it, and what happens when it is cut.

    Table `classes`: a row for each class of tokens and layer, with bounds for all of them
    together; `cuts`: by layer and for the upper layers together, how the loss at hidden words and
    the predictions change when attention to [SEP], or as much attention to words, is cut;
    `heads`: what [SEP] gets of each head.
    """

    strongest: ClassVar[Mapping[str, str]] = {"heads": "sep_weight"}

    @property
    def answer(self) -> str:
        """What is lost without attention to [SEP], beside as much attention to words."""
        found, first = self.evidence(), self.facts["first_upper_layer"]
        if "sep_cut_over_words" not in found:
            return f"{NOTHING_SURE}: no text has a [SEP] that could be cut."
        over = found["sep_cut_over_words"]
        sure = "Surely less" if over.high < 0 else "Surely more" if over.low > 0 else NOTHING_SURE
        return (
            f"From layer {first} on [SEP] gets {percent(found['sep_share_upper'])} of the "
            f"attention. {sure}: without it the loss rises by "
            f"{plain(found['sep_cut_loss'], '.2f', 'nats')}, by {plain(over, '+.2f')} against as "
            "much attention to words."
        )

    def measures(self) -> Sequence[Measure]:
        """By head what [SEP] gets and carries; by layer every class, and the cuts."""
        return [*self._of_heads(), *self._of_layers(), *self._of_cuts()]

    def _of_heads(self) -> Iterator[Measure]:
        for name, reading in _OF_HEADS.items():
            title, unit, _ = _OF_CLASSES[name]
            yield Measure.of_column(
                self.tables["heads"],
                f"sep_{name}",
                name=f"sep-{name}",
                title=title.format("[SEP]"),
                unit=unit,
                reading=reading,
            )

    def _of_layers(self) -> Iterator[Measure]:
        table = self.tables["classes"]
        for name, (title, unit, reading) in _OF_CLASSES.items():
            for kind in KINDS:
                rows = table[table["class"] == kind]
                if rows[name].isna().all():
                    continue
                yield Measure.of_column(
                    rows,
                    name,
                    name=f"layer-{name}-{kind}",
                    title=title.format(kind.shown),
                    unit=unit,
                    reading=reading,
                )

    def _of_cuts(self) -> Iterator[Measure]:
        table = self.tables["cuts"]
        rows = table[~table["layers"].isin([UPPER, DROPPED])].assign(
            layer=lambda t: t["layers"].astype(int)
        )
        for name, title in _CUTS.items():
            if rows[f"{name}_loss"].isna().all():
                continue
            yield Measure.of_column(
                rows,
                f"{name}_loss",
                name=f"layer-cut-{name}",
                title=f"Rise of the loss without attention to {title}",
                unit="nats",
                middle=0.0,
                reading="High: hidden words are predicted worse when it is cut in this layer.",
            )

    def drawings(self) -> Sequence[Drawing]:
        """The curves of Clark et al.'s Figures 2 and 3, what is carried, the cuts; heads."""
        layers, cuts = list(self._of_layers()), list(self._of_cuts())
        found = []
        for name, (title, _, reading) in _OF_CLASSES.items():
            measures = [m for m in layers if m.name.startswith(f"layer-{name}-")]
            labels = [PlainClass(m.name.rpartition("-")[2]).shown for m in measures]
            about, told = self.about, title.format("classes of tokens")
            found.append(
                drawings.profile(
                    _FIGURES[name], measures, about, title=told, reading=reading, labels=labels
                )
            )
        if cuts:
            found.append(
                drawings.profile(
                    "cuts",
                    cuts,
                    self.about,
                    title="Rise of the loss when attention is cut in one layer",
                    reading="Both cuts take the same mass away, and what is left is scaled up. "
                    "A no-op is what can be cut without a rise.",
                    labels=list(_CUTS.values()),
                )
            )
        weight, *_ = self._of_heads()
        return [*found, drawings.grid(weight, self.about, name="heads")]


@dataclass(frozen=True)
class SeparatorNoop(Resampled):
    """Is attention to [SEP] a way for a head to do nothing?

    Method: in each text some words are masked. In one pass, by class of tokens ([SEP], [CLS],
    punctuation, words) and head: the share of the attention that goes there (Clark et al., Figure
    2), the size of the gradient of the masked words' loss with respect to these weights (their
    Figure 3), and the share of what is really carried, by the norm of weight times value vector
    (Kobayashi et al.). Then the intervention: attention to [SEP] is cut, layer by layer and in all
    upper layers together, against the same mass cut from words; what is left is scaled up, and, in
    the upper layers, also not: then what [SEP] carried is missing, and no more. Of each query as
    much is cut as [SEP] and words both get. Upper layers are those from a third of the
    depth on: the fifth of twelve, as in the paper. Intervals are over texts; those of tables hold
    for all layers and classes together. What rises or drops with depth must do so more than in
    most random orders of the layers, too.

    Source: Clark et al. (2019), What Does BERT Look At, section 3; Kobayashi et al. (2020); A
    Primer in BERTology, section 5.1. Limits: a gradient tells of small changes only; a cut puts
    the model where it was never trained, and the renormalised attention goes to other tokens.
    """

    version: ClassVar[int] = 2  # intervals are over texts, and not over layers
    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns"}), fields=frozenset({"text"}), head="mlm"
    )
    result_type: ClassVar[type[Result]] = SeparatorNoopResult
    block: ClassVar[int] = 64
    all_heads: ClassVar[bool] = True

    examples: int = drawn(200)
    hidden: float = parameter(0.15, "Share of words that are masked.", minimum=0.01, maximum=0.5)

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse tokenizers without a mask or a separator."""
        from bertology.data.words.classes import Specials

        super().check(encoder, corpus)
        encoder.require_tokenizer()
        if encoder.tokenizer.mask_token_id is None:
            raise CapabilityError(f"The tokenizer of {encoder.name!r} has no mask.")
        if not Specials.of(encoder.tokenizer).separators:
            raise CapabilityError(f"The tokenizer of {encoder.name!r} has no separator: [SEP].")

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Shares and gradients by class, layer and head; losses under each cut."""
        import torch
        import xarray as xr

        from bertology.annotated.plain_classes import plain_classes
        from bertology.model.attention_cuts import CutAttention
        from bertology.model.masked_lm.hidden_words import HiddenWords, draw_hidden

        texts, start = self.of_block(part, corpus).texts, start_of(part)
        layers = encoder.shape.layers
        upper = list(range(first_upper(layers), layers))
        # In one layer, in the upper ones, and there without giving it to others.
        places = [*(([layer], True) for layer in range(layers)), (upper, True), (upper, False)]
        of_heads = {
            name: np.full((len(texts), len(KINDS), layers, encoder.shape.heads), np.nan, np.float32)
            for name in _OF_CLASSES
        }
        intact = np.full(len(texts), np.nan, np.float32)
        losses, changed = (
            np.full((len(texts), len(_CUTS), len(places)), np.nan, np.float32) for _ in range(2)
        )
        # Gradients of all maps are held at once.
        tokens = max(1, context.batch_tokens // 4)
        for batch in encoder.batches(texts, tokens_per_batch=tokens):
            at = list(batch.indices)
            kinds = plain_classes(encoder, batch)
            numbers = [start + i for i in at]
            hidden = draw_hidden(kinds[:, WORDS], numbers, share=self.hidden, seed=self.seed)
            words = HiddenWords(encoder, batch, *hidden)
            masks = torch.as_tensor(kinds, device=encoder.device)
            before, seen = words.watch(masks)
            intact[at] = before.losses
            found = (seen.weights, seen.carried, seen.slopes)
            for name, values in zip(_OF_CLASSES, found, strict=True):
                of_heads[name][at] = values
            sides = ((SEP, WORDS), (WORDS, SEP))
            for i, (cut, beside) in enumerate(sides):
                for j, how in enumerate(places):
                    after = words.predict(CutAttention(masks[:, cut], masks[:, beside], *how))
                    losses[at, i, j] = after.losses - before.losses
                    flips = np.where(words.there, after.best != before.best, np.nan)
                    changed[at, i, j] = _mean(flips)
            context.advance(len(at))
        lone = ~np.isfinite(of_heads["gradient"][:, SEP]).all((1, 2))  # texts without [SEP]
        losses[lone], changed[lone] = np.nan, np.nan
        dims = ("example", "class", "layer", "head")
        cuts = ("example", "cut", "place")
        return xr.Dataset(
            {
                **{name: (dims, values) for name, values in of_heads.items()},
                "intact": ("example", intact),
                "losses": (cuts, losses),
                "changed": (cuts, changed),
            },
            coords={"class": [str(k) for k in KINDS]},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Means over texts, by layer and by head, and what claims are judged on."""
        means = {f"{n}s": lambda part, n=n: part[n].mean("head").to_numpy() for n in _OF_CLASSES}
        of_sep = {
            f"sep_{n}": lambda part, n=n: part[n][:, SEP].to_numpy() for n in ("weight", "carried")
        }
        whole = {n: lambda part, n=n: part[n].to_numpy() for n in ("intact", "losses", "changed")}
        seen = gather(measured, concatenate=means | of_sep | whole)
        layers, heads = seen["sep_weight"].shape[1:]
        first = first_upper(layers)
        tables = {
            "classes": self._classes(seen, layers),
            "cuts": self._cuts(seen, layers),
            "heads": self._heads(seen, (layers, heads)),
        }
        evidence = self._evidence(seen, first)
        lacking = {} if evidence else dict.fromkeys(_CLAIMED, _NO_SEPARATOR)
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons=lacking,
            facts={"examples": len(seen["intact"]), "first_upper_layer": first},
        )

    def _classes(self, seen: Gathered, layers: int) -> pd.DataFrame:
        columns: dict[str, ArrayLike] = {}
        for name in _OF_CLASSES:
            rows = seen[f"{name}s"].reshape(len(seen["intact"]), -1).T
            ends = (0.0, np.inf) if name == "gradient" else (0.0, 1.0)
            columns |= with_bounds(name, self.means(rows, within=ends), p=False)
        return labelled_table({"class": [str(k) for k in KINDS], "layer": range(layers)}, columns)

    def _cuts(self, seen: Gathered, layers: int) -> pd.DataFrame:
        """By layer and for the upper ones together; bounds hold for all rows and both cuts."""
        names = [*map(str, range(layers)), UPPER, DROPPED]
        columns: dict[str, ArrayLike] = {}
        for i, cut in enumerate(_CUTS):
            columns |= with_bounds(f"{cut}_loss", self.means(seen["losses"][:, i].T, families=3))
            columns[f"{cut}_changed"] = _mean(seen["changed"][:, i].T)
        less = (seen["losses"][:, 0] - seen["losses"][:, 1]).T
        columns |= with_bounds("sep_over_words", self.means(less, families=3))
        return labelled_table({"layers": names}, columns)

    def _heads(self, seen: Gathered, shape: tuple[int, int]) -> pd.DataFrame:
        columns: dict[str, ArrayLike] = {}
        for name in ("sep_weight", "sep_carried"):
            rows = seen[name].reshape(len(seen["intact"]), -1).T
            columns |= with_bounds(name, self.means(rows, within=(0.0, 1.0)), p=False)
        return head_table(shape, columns)

    def _evidence(self, seen: Gathered, first: int) -> dict[str, Estimate | None]:
        """All over texts; what changes with depth must be due to the order of layers, too."""
        there = np.isfinite(seen["gradients"][:, SEP]).all(-1)
        if first < 1 or there.sum() < 2:
            return {}
        weight, carried = (seen[name][there, SEP] for name in ("weights", "carrieds"))
        slopes = seen["gradients"][there]
        ratio = _log_ratio(slopes[:, SEP], slopes[:, WORDS])  # (text, layer)
        rise = later_less_earlier(first)
        drop = self.by_depth(-ratio, rise)

        def one(values: Floats, within: tuple[float, float] = (-np.inf, np.inf)) -> Estimate | None:
            return self.means(values[None], within=within).estimate(0)

        sep, words = seen["losses"][there, :, -2].T
        dropped, as_much = seen["losses"][there, :, -1].T
        flips = seen["changed"][there, :, -2].T
        return {
            "sep_share_upper": one(weight[:, first:].mean(-1), (0, 1)),
            "sep_share_rise": self.by_depth(weight, rise, within=(-1, 1)),
            "sep_gradient_drop": drop and mirrored(drop),
            "sep_carried_gap": one((weight - carried)[:, first:].mean(-1), (-1, 1)),
            "sep_cut_loss": one(sep),
            "sep_cut_over_words": one(sep - words),
            "sep_drop_loss": one(dropped),
            "sep_drop_over_words": one(dropped - as_much),
            "sep_cut_changes_over_words": one(flips[0] - flips[1], (-1, 1)),
        }


_CLAIMED = (
    "sep_share_rise",
    "sep_gradient_drop",
    "sep_carried_gap",
    "sep_cut_over_words",
    "sep_drop_over_words",
)


def _log_ratio(one: Floats, other: Floats) -> Floats:
    """Not below a ten thousandth; 0 where neither is there."""
    known = other > 0
    ratio = np.divide(one, other, out=np.ones(one.shape), where=known)
    return np.log(np.maximum(ratio, 1e-4))


def _mean(values: NDArray[np.floating]) -> Floats:
    """Over the last axis, of what is there; NaN where nothing is."""
    known = np.isfinite(values)
    sums = np.where(known, values, 0.0).sum(-1)
    counts = known.sum(-1)
    found: Floats = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return found
