"""Token classes: do heads attend to nouns, subjects, negations, or to [CLS] and [SEP]?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.data.words.classes import LINGUISTIC, SPECIAL, TokenClass
from bertology.parameters import parameter
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate, mean_interval
from bertology.studies.answers.token_classes import MATCHED, PARTS, TokenClassesResult
from bertology.studies.designs.blocks import TaggedStudy, evidence_array, in_order, start_of
from bertology.studies.designs.spooled import Spooled
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.stats.partial_means import PartialMeans
    from bertology.stats.row_blocks import RowBlocks

__all__ = ["TokenClasses", "TokenClassesResult"]

Floats = NDArray[np.float64]

KINDS = list(TokenClass)
_TRENDS = (
    (TokenClass.CLS, 1, "cls_early_minus_late"),
    (TokenClass.SEP, -1, "sep_late_minus_early"),
)


@dataclass(frozen=True)
class TokenClasses(TaggedStudy[TokenClassesResult]):
    """Do heads attend to nouns, verbs, subjects, negations, or to [CLS] and [SEP]?

    Method: a token receives the sum of the weights that all tokens give it, divided by the number
    of tokens; a class's weight in an example is that of its token that receives most; examples
    without the class are disregarded (as in the paper). Beyond it, the weight is compared with
    its exact expectation for as many words drawn at random from the same stretches of the
    text, so that neither the number of a class's tokens nor their position makes an excess.
    Words are tagged by the corpus or by a tagger. Intervals are over examples; those of the
    excess, of the change and behind claims hold for all heads and classes together.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.4. Limits: attention to a
    token is not yet use of what it carries; heads that prefer frequent words show as an
    excess of the class those words are in.
    """

    version: ClassVar[int] = 2
    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns"}), fields=frozenset({"text"}), head="base"
    )
    result_type: ClassVar[type[Result]] = TokenClassesResult

    other: str = parameter(
        "", "Show the change from this model, e.g. the pre-trained one.", model=True
    )
    bins: int = parameter(
        4, "Into how many stretches a text is cut to match positions.", minimum=1, maximum=64
    )
    resamples: int = parameter(2000, "Resamples behind the correction.", minimum=100)
    level: float = parameter(0.95, "Confidence level.", minimum=0.5, maximum=0.999)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Weights and expected weights of each class, example by example."""
        import xarray as xr

        from bertology.annotated.tagged_batches import annotated, classified_batches
        from bertology.model.reducers.class_attention import ClassAttention

        block, who = annotated(self.of_block(part, corpus), self.tagger)
        words, signs = [KINDS.index(k) for k in LINGUISTIC], [KINDS.index(TokenClass.PUNCTUATION)]
        shape = (len(block), len(KINDS), encoder.shape.layers, encoder.shape.heads)
        score, expected, share, before = (np.full(shape, np.nan, np.float32) for _ in range(4))
        even = np.zeros(len(block))  # what every token of an example would get alike
        for read in classified_batches(
            encoder, block, bins=self.bins, batch_tokens=context.batch_tokens
        ):
            batch, groups = read.batch, read.groups
            at = list(batch.indices)
            found = ClassAttention(groups, words=words, signs=signs)
            encoder.run(batch, reduce={"layer.*.head.*.pattern": found})
            score[at], expected[at], share[at] = found.value()
            even[at] = 1 / batch.real.sum(1).cpu().numpy()
            if other := context.others.get("other"):
                found = ClassAttention(groups, words=(), signs=())
                other.run(batch, reduce={"layer.*.head.*.pattern": found})
                before[at] = found.value()[0]
            context.advance(len(batch))
        dims = ("example", "class", "layer", "head")
        values: dict[str, Any] = {"score": (dims, score), "expected": (dims, expected)}
        values |= {"share": (dims, share), "even": (("example",), even)}
        if context.others.get("other"):
            values["before"] = (dims, before)
        return xr.Dataset(
            values,
            coords={"class": [str(k) for k in KINDS]},
            attrs={"first": start_of(part), "tagger": who},
        )

    def conclude(
        self, measured: Mapping[str, xr.Dataset], provenance: Provenance
    ) -> TokenClassesResult:
        """Means, excesses and changes with intervals, and what claims are judged on."""
        seen = _Seen.of(in_order(measured))
        weights, table = self._heads(seen)
        evidence = self._evidence(seen, weights, table)
        facts = {"level": self.level, "examples": len(seen.shares), "tagger": seen.tagger}
        tables = {"heads": table, "layers": self._layers(seen.shares)}
        return TokenClassesResult(provenance, tables, evidence_array(evidence, facts))

    def _heads(self, seen: _Seen) -> tuple[PartialMeans, pd.DataFrame]:
        """A row for each class that occurs and each head."""
        import pandas as pd

        from bertology.stats.row_blocks import RowBlocks

        there = np.flatnonzero(seen.there).tolist()
        layers, heads = np.indices(seen.score[0].shape[1:])
        weights = self._means(RowBlocks(lambda: map(seen.score.rows, there)), least=0.0)
        table = pd.DataFrame(
            {
                "class": np.repeat([str(KINDS[i]) for i in there], layers.size),
                "layer": np.tile(layers.ravel(), len(there)),
                "head": np.tile(heads.ravel(), len(there)),
                "n": weights.n,
                "weight": weights.value,
                "weight_low": weights.low,
                "weight_high": weights.high,
                "weight_simultaneous_low": weights.simultaneous_low,
                "weight_simultaneous_high": weights.simultaneous_high,
            }
        )
        # Rows without numbers take no part in the correction; a corpus may lack all such classes.
        beyond = RowBlocks(lambda: (seen.beyond_expected(i) for i in there))
        _add(table, "excess", self._means(beyond))
        table["expected"] = table["weight"] - table["excess"]
        if len(seen.before):
            change = RowBlocks(lambda: (seen.score.rows(i) - seen.before.rows(i) for i in there))
            _add(table, "change", self._means(change))
        return weights, table

    def _means(self, rows: RowBlocks, *, least: float = -1.0) -> PartialMeans:
        from bertology.stats.partial_means import partial_means

        return partial_means(
            rows,
            within=(least, 1.0),  # differences of weights; a weight itself is not below 0
            level=self.level,
            resamples=self.resamples,
            seed=self.seed,
        )

    def _layers(self, shares: Floats) -> pd.DataFrame:
        """How each layer's attention is divided; the rest is words."""
        import pandas as pd
        from scipy.special import stdtrit

        given = {part: shares[:, i] for i, part in enumerate(PARTS[:3])}
        given["words"] = 1 - shares.sum(axis=1)
        rows = []
        for part, values in given.items():
            n, mean = len(values), values.mean(axis=0)
            half = np.full_like(mean, np.nan)
            if n > 1:
                spread = values.std(axis=0, ddof=1) / np.sqrt(n)
                half = stdtrit(n - 1, 0.5 + self.level / 2) * spread
            rows += [
                {"part": part, "layer": i, "share": m, "low": m - h, "high": m + h}
                for i, (m, h) in enumerate(zip(mean, half, strict=True))
            ]
        return pd.DataFrame(rows)

    def _evidence(
        self, seen: _Seen, weights: PartialMeans, table: pd.DataFrame
    ) -> dict[str, Estimate]:
        from bertology.stats.contrasts import (
            difference_of_halves,
            ratio_of_largest,
            ratio_of_means,
        )

        classes = table["class"].to_numpy()
        marks = [np.isin(classes, [str(k) for k in kinds]) for kinds in (LINGUISTIC, SPECIAL)]
        found: dict[str, Estimate | None] = {
            "special_to_linguistic": ratio_of_means(seen.special, seen.linguistic, self.level),
            "strongest_linguistic_to_special": ratio_of_largest(weights, *marks),
        }
        beyond = seen.sep_beyond_even[np.isfinite(seen.sep_beyond_even)]
        if beyond.size > 1:
            found["sep_weight_beyond_even"] = mean_interval(beyond, self.level)
        by_layer = table.groupby(["class", "layer"])["weight"].mean()
        for kind, sign, name in _TRENDS:
            if str(kind) in by_layer:
                row = by_layer[str(kind)].to_numpy()
                if np.isfinite(row).all():  # a layer may have lost all its heads
                    found[name] = difference_of_halves(sign * row, self.level)
        for column in ("excess", "change"):
            for kind in LINGUISTIC if column in table else ():
                found[f"{kind}_{column}"] = _best(table, str(kind), column, self.level)
        return {name: e for name, e in found.items() if e is not None}


@dataclass(frozen=True)
class _Seen:
    """What the examples gave: weights by class on disk, a few numbers of each example at hand."""

    score: Spooled  # (example, class, layer, head)
    expected: Spooled
    before: Spooled  # empty where no other model was asked
    there: NDArray[np.bool_]  # which classes occur
    tagger: str
    shares: Floats  # (example, part, layer), mean over heads
    special: Floats  # (example,): the weight of the strongest of these, mean over heads
    linguistic: Floats
    sep_beyond_even: Floats  # [SEP]'s weight, mean over heads, less what even attention gives

    @classmethod
    def of(cls, parts: Iterator[xr.Dataset]) -> _Seen:
        """Go through the parts once."""
        scores, expected, before = kept = Spooled(), Spooled(), Spooled()
        there = np.zeros(len(KINDS), dtype=bool)
        few: dict[str, list[Floats]] = {n: [] for n in ("shares", "special", "linguistic", "sep")}
        tagger = ""
        for part in parts:
            for name, spooled in zip(("score", "expected", "before"), kept, strict=True):
                if name in part:
                    spooled.append(part[name].to_numpy())
            score = part["score"]
            there |= np.isfinite(score.to_numpy()).any(axis=(0, 2, 3))
            of_parts = part["share"].sel({"class": [str(p) for p in PARTS[:3]]})
            few["shares"].append(of_parts.mean("head").to_numpy())
            for name, kinds in (("special", SPECIAL), ("linguistic", LINGUISTIC)):
                strongest = score.sel({"class": [str(k) for k in kinds]}).max("class")
                few[name].append(strongest.mean(("layer", "head")).to_numpy())
            sep = score.sel({"class": str(TokenClass.SEP)}).mean(("layer", "head"))
            # Parts of an earlier release do not say what even attention gives.
            few["sep"].append((sep - part.get("even", np.nan)).to_numpy())
            tagger = str(part.attrs["tagger"])
        at_hand = [np.concatenate(values) for values in few.values()]
        return cls(scores, expected, before, there, tagger, *at_hand)

    def beyond_expected(self, kind: int) -> NDArray[Any]:
        """Weights of a class less those expected (head, example); none where none are expected."""
        rows = self.score.rows(kind)
        matched = KINDS[kind] in MATCHED
        return rows - self.expected.rows(kind) if matched else np.full_like(rows, np.nan)


def _add(table: pd.DataFrame, name: str, means: PartialMeans) -> None:
    table[name] = means.value
    table[f"{name}_low"] = means.simultaneous_low
    table[f"{name}_high"] = means.simultaneous_high
    table[f"{name}_p"] = means.p_adjusted


def _best(table: pd.DataFrame, kind: str, column: str, level: float) -> Estimate | None:
    """The largest excess or increase of a class; the largest of all bounds cover the true one."""
    rows = table[(table["class"] == kind) & table[f"{column}_low"].notna()]
    if rows.empty:
        return None
    value, low, high = (rows[c].max() for c in (column, f"{column}_low", f"{column}_high"))
    return Estimate(value, low, high, rows["n"].min(), level)
