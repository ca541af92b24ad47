"""Token classes: do heads attend to nouns, subjects, negations, or to [CLS] and [SEP]?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.data.words.classes import LINGUISTIC, SPECIAL, TokenClass
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.results.answers import plain, raised, strongest, strongest_of
from bertology.results.compared import row_mean
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.number_text import number_text
from bertology.results.provenance import Provenance, short_model
from bertology.results.result import Result
from bertology.stats import Estimate, bounded_mean_bounds, mean_interval, mean_intervals
from bertology.stats.best_of_many import largest_of
from bertology.stats.contrasts import ratio_of_largest, ratio_of_means
from bertology.stats.layer_orders import first_less_second_half
from bertology.stats.multiplicity import RowBlocks
from bertology.stats.partial_means import PartialMeans
from bertology.studies.designs.blocks import Tagged
from bertology.studies.designs.noise import NO_NOISE, NoiseControlled, beyond_noise
from bertology.studies.designs.parts import Gathered, gather, start_of
from bertology.studies.designs.tables import head_table, labelled_table, with_bounds
from bertology.studies.study import MAPS_OF_TEXTS, Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.annotated.tagged_batches import ClassifiedBatch
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder


Changes = NDArray[np.float32]
SITES = "layer.*.head.*.pattern"
SINK = 0.4
"""Of a layer's attention: a token that surely gets more is called a sink."""


def class_scores(encoder: Encoder, read: ClassifiedBatch) -> Changes:
    """What each class receives in a batch: (example, class, layer, head)."""
    from bertology.model.reducers.class_attention import ClassAttention

    found = ClassAttention(read.groups, words=(), signs=())
    encoder.run(read.batch, reduce={SITES: found})
    return found.value()[0]


def summed(change: Changes) -> Floats:
    """(class, layer, head): the sum over the examples that have the class."""
    found: Floats = np.nansum(change, axis=0, dtype=np.float64)
    return found


def layer_shares(part: xr.Dataset) -> NDArray[np.float32]:
    """(example, part, layer), mean over heads: what [CLS], [SEP] and punctuation get."""
    kinds = [str(kind) for kind in (*SPECIAL, TokenClass.PUNCTUATION)]
    return part["share"].sel({"class": kinds}).mean("head").to_numpy()


def strongest_class(part: xr.Dataset, kinds: Sequence[TokenClass]) -> xr.DataArray:
    """The weight of the strongest of these classes, mean over heads, in each example."""
    score = part["score"].sel({"class": [str(kind) for kind in kinds]})
    return score.max("class").mean(("layer", "head"))


def largest_head(rows: pd.DataFrame, column: str, level: float) -> Estimate | None:
    """The largest excess or change of a class, with bounds that hold for all heads and classes."""
    bounds = (rows[name] for name in (column, f"{column}_low", f"{column}_high"))
    return largest_of(*bounds, n=rows["n"], level=level)


_OFTEN = 0.05  # of a head's maps: if fewer are vertical, the head tells nothing about stripes


def stripe_table(counts: Floats, parts: Sequence[str]) -> pd.DataFrame:
    """How many vertical maps (part, layer, head) point at each part, and the share of all."""
    import pandas as pd

    of = counts.sum(axis=(1, 2))
    return pd.DataFrame(
        {"part": list(parts), "maps": of.astype(int), "share": of / max(of.sum(), 1)}
    )


def share_of_stripes(counts: Floats, first: int, *, examples: int, level: float) -> Estimate | None:
    """The share of vertical maps that point at one of the `first` parts, mean over heads.

    Heads with hardly any vertical map say nothing. A head looks at the same tokens in every
    text, so the interval is over heads; it holds for any shares, however few the heads.
    """
    vertical = counts.sum(axis=0).ravel()
    often = vertical > _OFTEN * examples
    if not often.any():
        return None
    shares = counts[:first].sum(axis=0).ravel()[often] / vertical[often]
    budget = math.log(2 / (1 - level))
    low, high = bounded_mean_bounds(shares[None], None, low=0, high=1, budget=budget)
    return Estimate(shares.mean(), low[0], high[0], int(often.sum()), level, "heads")


KINDS = list(TokenClass)
MATCHED = (*LINGUISTIC, TokenClass.PUNCTUATION)  # classes that other tokens can stand in for
# What attention is divided among, and how people write it.
PARTS = {"cls": "[CLS]", "sep": "[SEP]", "punctuation": "punctuation", "words": "words"}
_APART = [KINDS.index(TokenClass(part)) for part in ("cls", "sep", "punctuation")]
ATTENTION_TO = "attention to {}"
VERTICAL = 1 / 3  # of all attention of a map: if one token gets so much, the map is vertical
_FEW_STRIPES = "not judged: no head often has a vertical map"
_NOISE = ("noise", "matched", "read")
_TRENDS = (
    (TokenClass.CLS, 1, "cls_early_minus_late"),
    (TokenClass.SEP, -1, "sep_late_minus_early"),
)
# Column of `heads`: title and reading of the measure, with places for the class and a model.
_MEASURED = {
    "weight": (
        "Attention to {0}",
        "High: much attention of all tokens goes to {0}; the most attended one counts.",
    ),
    "excess": (
        "Attention to {0} beyond matched words",
        "Above 0: more goes to {0} than to as many other words at such places.",
    ),
    "change": (
        "Change of the attention to {0} from {1}",
        "Above 0: the head attends more to {0} than the same head of {1}.",
    ),
}
# Figure: column of `heads`, and the classes that are shown.
_GRIDS = {
    "special": ("weight", SPECIAL[::-1]),
    "classes": ("weight", tuple(kind for kind in KINDS if kind not in SPECIAL)),
    "excess": ("excess", MATCHED),
    "change": ("change", tuple(KINDS)),
}


class TokenClassesResult(Result):
    """Attention to each class of tokens, by head.

    Table `heads`: a row for each class and head with its weight, the weight that matched tokens
    would get, and the excess; against another model also the change. Table `layers`: how each
    layer divides its attention among [CLS], [SEP], punctuation and words. Table `stripes`: which
    of these the strongest column of vertical maps belongs to.
    """

    lead: ClassVar[int] = 2
    strongest: ClassVar[Mapping[str, str]] = {"heads": "weight"}

    @property
    def answer(self) -> str:
        """The layer that gives most to special tokens, and what words get beyond their like."""
        n, level = int(self.facts["examples"]), float(self.facts["level"])
        shares = [(p, self._of_layers(p)) for p in PARTS if p != "words"]
        part, share = max(shares, key=lambda one: float(np.nanmax(one[1].values)))
        most = strongest(share, n=n, level=level, together=False)
        sink = f"{PARTS[part]} is surely a sink: " if most.estimate.low > SINK else ""
        told = f"{most.name} gives {'it' if sink else PARTS[part]} {plain(most.estimate, '.2f')}"
        told = f"{sink}{told if sink else raised(told)} of its attention."
        return f"{told} {self._beyond_their_like()}".rstrip()

    def _beyond_their_like(self) -> str:
        words = [f"excess-{kind}" for kind in LINGUISTIC]
        more = (
            replace(m, sure=m.sure & (m.values > 0)) if m.sure is not None else m
            for m in self._of_heads()
        )
        tested = [m for m in more if m.name in words]
        if not tested:
            return ""
        best, found = strongest_of(tested, n=1, level=float(self.facts["level"]))
        kind = TokenClass(best.name.removeprefix("excess-"))
        sure = "surely" if found.sure else "not surely"
        return (
            f"Of words, {kind.plural} get most beyond others at such places: "
            f"{sure} {plain(found.estimate, '.2f')} more in {found.name}."
        )

    def headline(self) -> str:
        """How attention is divided, in the first and the last layer."""
        table = self.tables["layers"].pivot(index="layer", columns="part", values="share")
        ends = {p: [number_text(table[p].iloc[at], ".2f") for at in (0, -1)] for p in PARTS}
        shown = ", ".join(f"{of} {ends[p][0]} → {ends[p][1]}" for p, of in PARTS.items())
        return f"Share of attention, first → last layer: {shown}"

    def measures(self) -> Sequence[Measure]:
        """Attention to each class, beyond matched words, and against the other model."""
        return [*self._of_heads(), *(self._of_layers(part) for part in PARTS)]

    def _of_heads(self) -> Iterator[Measure]:
        table = self.tables["heads"]
        for column in (c for c in _MEASURED if c in table):
            for kind in (*SPECIAL, *(k for k in KINDS if k not in SPECIAL)):
                rows = table[table["class"] == kind]
                if rows[column].isna().all():  # none occurs, or nothing can stand in for [SEP]
                    continue
                tested = column != "weight"
                if tested:
                    rows = rows.assign(sure=rows[f"{column}_p"] < 1 - self.facts["level"])
                title, reading = self._words(column, kind.plural)
                yield Measure.of_column(
                    rows,
                    column,
                    name=f"{column}-{kind}",
                    title=title,
                    unit="share of all attention",
                    sure="sure" if tested else None,
                    middle=0.0 if tested else None,
                    reading=reading,
                )

    def _words(self, column: str, of: str) -> Iterator[str]:
        """Title and reading of what a column says of some tokens."""
        other = self.provenance.others.get("other", {}).get("name", "the other model")
        return (text.format(of, short_model(str(other))) for text in _MEASURED[column])

    def _of_layers(self, part: str) -> Measure:
        table = self.tables["layers"]
        return Measure.of_column(
            table[table["part"] == part],
            "share",
            name=f"layer-share-{part}",
            title=f"Attention of the layer to {PARTS[part]}",
            unit="share of all attention",
            bounds=("low", "high"),
            reading=f"High: much of the layer's attention goes to {PARTS[part]}.",
        )

    def drawings(self) -> Sequence[Drawing]:
        """The paper's Figure 6, the layers' profile, then grids of the other classes."""
        measured = {m.name: m for m in self.measures()}
        texts = self.tables["heads"].groupby("class")["n"].max()
        found = {}
        for name, (column, kinds) in _GRIDS.items():
            shown = [kind for kind in kinds if f"{column}-{kind}" in measured]
            if not shown:
                continue
            title, _ = self._words(column, "token classes")
            _, reading = self._words(column, "the class")
            found[name] = drawings.grids(
                name,
                [measured[f"{column}-{kind}"] for kind in shown],
                self.about,
                title=title,
                reading=f"{reading} n is the number of texts that have such tokens.",
                labels=[f"{kind.plural} (n = {texts[kind]})" for kind in shown],
                # How much less [CLS] gets than [SEP] is what this figure is for.
                shared=True if name == "special" else None,
            )
        found["layers"] = drawings.profile(
            "layers",
            [measured[f"layer-share-{part}"] for part in PARTS],
            self.about,
            title="What each layer attends to",
            reading="The four add up to 1: where one rises, the others must fall.",
            labels=list(PARTS.values()),
        )
        order = ("special", "layers", "classes", "excess", "change")
        return [found[name] for name in order if name in found]


@dataclass(frozen=True)
class TokenClasses(Tagged, NoiseControlled):
    """Do heads attend to nouns, verbs, subjects, negations, or to [CLS] and [SEP]?

    Method: a token receives the sum of the weights that all tokens give it, divided by the number
    of tokens; a class's weight in an example is that of its token that receives most; examples
    without the class are disregarded (as in the paper). Beyond it, the weight is compared with
    its exact expectation for as many words drawn at random from the same stretches of the
    text, so that neither the number of a class's tokens nor their position makes an excess.
    Words are tagged by the corpus or by a tagger. Intervals are over examples; those of the
    excess, of the change and behind claims hold for all heads and classes together. What earlier
    or later layers get more must be more than in most random orders of them, too. A map counts
    as vertical if one token gets a third of all attention in it; which tokens these are is told
    with an interval over heads. Against another model, claims about a change must beat `noise`
    copies of it, whose weight matrices are moved at random as far as they were moved. Copies differ
    more than examples do, so each reads a random part of these, on which the two are compared.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.4. Limits: attention to a
    token is not yet use of what it carries; heads that prefer frequent words show as an
    excess of the class those words are in.
    """

    version: ClassVar[int] = 9  # what each text divides its attention among, to be compared
    needs: ClassVar[Needs] = MAPS_OF_TEXTS
    result_type: ClassVar[type[Result]] = TokenClassesResult
    standard: ClassVar[bool] = True

    other: str = parameter(
        "", "Show the change from this model, e.g. the pre-trained one.", model=True
    )
    bins: int = parameter(
        4, "Into how many stretches a text is cut to match positions.", minimum=1, maximum=64
    )

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Weights and expected weights of each class, example by example."""
        import xarray as xr

        from bertology.annotated.tagged_batches import annotated, classified_batches
        from bertology.model.reducers.class_attention import ClassAttention, Several, Stripes

        block, who = annotated(self.of_block(part, corpus), self.tagger)
        words, signs = [KINDS.index(k) for k in LINGUISTIC], [KINDS.index(TokenClass.PUNCTUATION)]
        shape = (len(block), len(KINDS), encoder.shape.layers, encoder.shape.heads)
        score, expected, share, before = (np.full(shape, np.nan, np.float32) for _ in range(4))
        stripe = np.zeros((len(block), *shape[2:]), np.int8)
        even = np.zeros(len(block))  # what every token of an example would get alike
        other = context.others.get("other")
        kept: list[ClassifiedBatch] = []
        for read in classified_batches(
            encoder, block, bins=self.bins, batch_tokens=context.batch_tokens
        ):
            batch, groups = read.batch, read.groups
            at = list(batch.indices)
            found = ClassAttention(groups, words=words, signs=signs)
            stripes = Stripes(groups.masks[:, _APART])
            encoder.run(batch, reduce={SITES: Several([found, stripes])})
            score[at], expected[at], share[at] = found.value()
            most, of = stripes.value()
            stripe[at] = np.where(most >= VERTICAL, of, -1)
            even[at] = 1 / batch.real.sum(1).cpu().numpy()
            if other:
                before[at] = class_scores(other, read)
                kept.append(read)
            context.advance(len(batch))
        dims = ("example", "class", "layer", "head")
        values = {"score": score, "expected": expected, "share": share}
        values |= {"before": before} if other else {}
        data = xr.Dataset(
            {
                "even": ("example", even),
                "stripe": (("example", "layer", "head"), stripe),
                **{name: (dims, array) for name, array in values.items()},
            },
            coords={"class": [str(k) for k in KINDS]},
            attrs={"first": start_of(part), "tagger": who},
        )
        if other and self.noise:
            chosen = self.read_by_copies(part, corpus)
            data["noise"] = (("copy", *dims[1:]), self._noise(encoder, other, kept, before, chosen))
            # What training changed in the examples that each copy read, and how many have a class.
            moved = [score[rows] - before[rows] for rows in chosen]
            data["matched"] = (("copy", *dims[1:]), [summed(change) for change in moved])
            texts = [np.isfinite(change).any(axis=(2, 3)).sum(axis=0) for change in moved]
            data["read"] = (("copy", "class"), texts)
        return data

    def _noise(
        self,
        encoder: Encoder,
        other: Encoder,
        kept: Sequence[ClassifiedBatch],
        before: Changes,
        read: Sequence[NDArray[np.int64]],
    ) -> Floats:
        """(copy, class, layer, head): sums of the change in noisy copies, over what each read."""
        from bertology.model.weight_noise import noisy_copies

        found = np.zeros((self.noise, *before.shape[1:]))
        copies = noisy_copies(other, encoder, draws=self.noise, seed=self.seed)
        for copy, noisy in enumerate(copies):
            for whole in kept:
                some = whole.only(read[copy])
                if len(some.batch):
                    found[copy] += summed(
                        class_scores(noisy, some) - before[list(some.batch.indices)]
                    )
        return found

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Means, excesses and changes with intervals, and what claims are judged on."""
        seen = gather(
            measured,
            concatenate={
                "shares": layer_shares,
                "special": lambda part: strongest_class(part, SPECIAL),
                "linguistic": lambda part: strongest_class(part, LINGUISTIC),
                "separator": lambda part: strongest_class(part, [TokenClass.SEP]),
                # The same less what even attention gives.
                "beyond even": lambda part: strongest_class(part, [TokenClass.SEP]) - part["even"],
            },
            add={
                "texts": lambda part: (
                    np.isfinite(part["score"]).any(("layer", "head")).sum("example")
                ),
                # (part, layer, head): vertical maps whose strongest column is of this part
                "stripes": lambda part: [
                    (part["stripe"] == at).sum("example") for at in range(len(PARTS))
                ],
                **({name: itemgetter(name) for name in _NOISE} if _has_noise(measured) else {}),
            },
            spool=("score", "expected", "before"),
        )
        weights, table = self._heads(seen)
        shares = seen["shares"]  # (example, part, layer); the rest is words
        shares = np.concatenate([shares, 1 - shares.sum(axis=1, keepdims=True)], axis=1)
        mean, low, high = mean_intervals(shares, self.level)
        by_layer = labelled_table(
            {"part": PARTS, "layer": range(mean.shape[1])},
            {"share": mean, "low": low, "high": high},
        )
        return self.result(
            provenance,
            {
                "heads": table,
                "layers": by_layer,
                "stripes": stripe_table(seen["stripes"], list(PARTS)),
            },
            evidence={
                **self._evidence(seen, weights, table),
                **self._changes(seen, table),
                "stripes_on_special": share_of_stripes(
                    seen["stripes"], len(SPECIAL), examples=len(shares), level=self.level
                ),
            },
            reasons={
                "stripes_on_special": _FEW_STRIPES,
                **{f"{k}_change": NO_NOISE for k in LINGUISTIC if "change" in table},
            },
            facts={"examples": len(shares), "tagger": seen.facts["tagger"]},
            compared=[
                row_mean(ATTENTION_TO.format(name), shares[:, i].mean(axis=-1), level=self.level)
                for i, name in enumerate(PARTS.values())
            ],
        )

    def _heads(self, seen: Gathered) -> tuple[PartialMeans, pd.DataFrame]:
        """A row for each class that occurs and each head."""
        score, expected, before = (seen.spooled[n] for n in ("score", "expected", "before"))
        there = np.flatnonzero(seen["texts"]).tolist()

        def beyond_expected(i: int) -> NDArray[np.float32]:
            """None where other words cannot stand in; such rows take no part in the correction."""
            return score.rows(i) - (expected.rows(i) if KINDS[i] in MATCHED else np.float32("nan"))

        weights = self.means(RowBlocks(lambda: map(score.rows, there)), within=(0, 1))
        excess = self.means(RowBlocks(lambda: map(beyond_expected, there)), within=(-1, 1))
        columns = {
            "n": weights.n,
            "weight": weights.value,
            "weight_low": weights.low,
            "weight_high": weights.high,
            "weight_simultaneous_low": weights.simultaneous_low,
            "weight_simultaneous_high": weights.simultaneous_high,
            **with_bounds("excess", excess),
            "expected": weights.value - excess.value,
        }
        if len(before):
            moved = RowBlocks(lambda: (score.rows(i) - before.rows(i) for i in there))
            columns |= with_bounds("change", self.means(moved, within=(-1, 1)))
        groups = ("class", [str(KINDS[i]) for i in there])
        return weights, head_table(score[0].shape[1:], columns, groups=groups)

    def _evidence(
        self, seen: Gathered, weights: PartialMeans, table: pd.DataFrame
    ) -> dict[str, Estimate | None]:
        linguistic, special = (
            table["class"].isin(kinds).to_numpy() for kinds in (LINGUISTIC, SPECIAL)
        )
        separator, beyond = (
            seen[name][np.isfinite(seen[name])] for name in ("separator", "beyond even")
        )
        found = {
            "special_to_linguistic": ratio_of_means(
                seen["special"], seen["linguistic"], self.level
            ),
            "strongest_linguistic_to_special": ratio_of_largest(weights, linguistic, special),
            "sep_weight": mean_interval(separator, self.level) if separator.size > 1 else None,
            "sep_weight_beyond_even": mean_interval(beyond, self.level)
            if beyond.size > 1
            else None,
        }
        for kind, sign, name in _TRENDS:
            of_heads = seen.spooled["score"][KINDS.index(kind)]  # (text, layer, head)
            kept = np.isfinite(of_heads).any(axis=0)
            if kept.any(axis=1).all():  # a layer may have lost all its heads
                sums = np.where(kept, of_heads, 0.0).sum(axis=-1)
                of_layers = sign * sums / kept.sum(axis=-1)
                found[name] = self.by_depth(of_layers, first_less_second_half, within=(-1, 1))
        for kind in LINGUISTIC:
            rows = table[table["class"] == kind]
            found[f"{kind}_excess"] = largest_head(rows, "excess", self.level)
        return found

    def _changes(self, seen: Gathered, table: pd.DataFrame) -> dict[str, Estimate | None]:
        """The largest increase of attention to each class, and what of it is more than noise."""
        found = dict[str, Estimate | None]()
        if "noise" not in seen.arrays or "change" not in table:
            return found
        for kind in LINGUISTIC:
            rows, at = table[table["class"] == kind], KINDS.index(kind)
            largest = largest_head(rows, "change", self.level)
            if largest is not None:
                there = seen["read"][:, at] > 0  # copies that read texts with the class
                trained, noisy = (
                    seen[name][there, at].max(axis=(1, 2)) / seen["read"][there, at]
                    for name in ("matched", "noise")
                )
                found[f"{kind}_change"] = beyond_noise(largest, trained, noisy)
        return found


def _has_noise(measured: Mapping[str, xr.Dataset]) -> bool:
    return "noise" in next(iter(measured.values()))
