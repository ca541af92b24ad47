"""Token to token: do heads link verbs with subjects, and what does [CLS] attend to?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.data.words.classes import TokenClass
from bertology.errors import CapabilityError
from bertology.parameters import parameter
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate
from bertology.studies.answers.token_to_token import TokenToTokenResult
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

__all__ = ["TokenToToken", "TokenToTokenResult", "cross_fitted"]

FARTHEST = 10  # words to either side that a fixed offset may reach
OFFSETS = [k for k in range(-FARTHEST, FARTHEST + 1) if k]
DEFAULT = ("verb-subject", "noun-pronoun")
KINDS = list(TokenClass)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TokenToToken(TaggedStudy[TokenToTokenResult]):
    """Do heads link verbs with their subjects and nouns with pronouns; what does [CLS] attend to?

    Method: for each link the word that a head attends to most from the source (the source itself
    excluded; once among words, once with special tokens) is compared with the target, and the
    share of hits with that of the best fixed offset (the word k to the left or right). The offset
    for one half of the examples is chosen on the other half. `selectivity` is the share of hits
    less that of finding the same target from the other words of the example: a head that looks
    there whatever the source follows no link. Claims need both. Intervals are over examples and
    hold for all heads and relations together. For [CLS], the largest weight that it gives to a
    token of each class, as in the paper's Figure 7.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.5; Clark et al. (2019) for
    offsets as a baseline. Limits: `noun-pronoun` links are guessed where a corpus has no
    coreference: the nearest noun before the pronoun. Where a corpus has no parts of speech they
    may be asked for by name, and are a tagger's, whose mistakes blur them further. Verbs and their
    subjects need annotated syntax; without it, only [CLS] is looked at by default.
    """

    version: ClassVar[int] = 2
    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns"}), fields=frozenset({"text"}), head="base"
    )
    result_type: ClassVar[type[Result]] = TokenToTokenResult

    relations: tuple[str, ...] = parameter(
        (), "Relations such as verb-subject or obj; by default those of the paper, where annotated."
    )
    resamples: int = parameter(2000, "Resamples behind the correction.", minimum=100)
    level: float = parameter(0.95, "Confidence level.", minimum=0.5, maximum=0.999)

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """Refuse relations and annotation that the corpus does not have."""
        from bertology.annotated.tagged_batches import added_fields
        from bertology.data.words.links import check_relation

        super().check(encoder, corpus)
        if corpus is None:
            return
        for relation in self.relations:
            check_relation(relation, corpus, added=added_fields(corpus, self.tagger))

    def _asked(self, corpus: Corpus) -> list[str]:
        """The relations given; by default those of the paper that the corpus itself annotates."""
        from bertology.data.words.links import check_relation

        if self.relations:
            return list(self.relations)
        found = []
        for relation in DEFAULT:
            try:
                check_relation(relation, corpus)
            except CapabilityError:
                continue
            found.append(relation)
        return found

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Hits of heads and offsets, and the weights that [CLS] gives, example by example."""
        import xarray as xr

        from bertology.annotated.linked_batches import followed
        from bertology.annotated.tagged_batches import annotated, classified_batches
        from bertology.model.reducers.class_attention import FirstTokenAttention, Several

        asked = self._asked(corpus)
        block, who = annotated(self.of_block(part, corpus), self.tagger)
        shape = (len(block), len(asked), encoder.shape.layers, encoder.shape.heads)
        hits, with_special, elsewhere = (np.full(shape, np.nan, np.float32) for _ in range(3))
        near = np.full((len(block), len(asked), len(OFFSETS)), np.nan, np.float32)
        first = np.full((len(block), len(KINDS), *shape[2:]), np.nan, np.float32)
        for read in classified_batches(encoder, block, bins=1, batch_tokens=context.batch_tokens):
            batch, groups = read.batch, read.groups
            at = list(batch.indices)
            seen = FirstTokenAttention(groups.masks, groups.masks[:, KINDS.index(TokenClass.CLS)])
            found = {r: followed(read, r, OFFSETS) for r in asked}
            several = Several([seen, *(f.reducer for f in found.values())])
            encoder.run(batch, reduce={"layer.*.head.*.pattern": several})
            first[at] = seen.value()[0]
            for j, relation in enumerate(asked):
                shares = found[relation].reducer.value()
                hits[at, j], with_special[at, j] = shares.among_words, shares.among_all
                elsewhere[at, j] = shares.from_elsewhere
                near[at, j] = found[relation].offsets
            context.advance(len(batch))
        dims = ("example", "relation", "layer", "head")
        return xr.Dataset(
            {
                "hits": (dims, hits),
                "with_special": (dims, with_special),
                "elsewhere": (dims, elsewhere),
                "offsets": (("example", "relation", "offset"), near),
                "first": (("example", "class", "layer", "head"), first),
            },
            coords={"relation": asked, "offset": OFFSETS, "class": [str(k) for k in KINDS]},
            attrs={"first": start_of(part), "tagger": who},
        )

    def conclude(
        self, measured: Mapping[str, xr.Dataset], provenance: Provenance
    ) -> TokenToTokenResult:
        """Shares of followed links against cross-fitted offsets, and what [CLS] attends to."""
        seen = _Seen.of(in_order(measured))
        tables, evidence = self._links(seen) if seen.relations else ({}, {})
        table, of_first = self._first(seen)
        if not table.empty:
            tables["first"] = table
        facts = {"level": self.level, "examples": len(seen.offsets), "tagger": seen.tagger}
        arrays = evidence_array(evidence | of_first, facts)
        return TokenToTokenResult(provenance, tables, arrays)

    def _means(
        self,
        rows: NDArray[Any] | RowBlocks,
        *,
        reach: float = 0.0,
        families: int = 1,
        least: float = -1.0,
    ) -> PartialMeans:
        """Means whose bounds hold for all rows; with several families, for all of them."""
        from bertology.stats.partial_means import partial_means

        level = 1 - (1 - self.level) / families
        return partial_means(
            rows,
            reach=reach,
            within=(
                least,
                1.0,
            ),  # differences of shares and weights; these themselves are not below 0
            level=level,
            resamples=self.resamples,
            seed=self.seed,
        )

    def _links(self, seen: _Seen) -> tuple[dict[str, pd.DataFrame], dict[str, Estimate]]:
        import pandas as pd

        from bertology.stats.row_blocks import RowBlocks

        base, offsets = cross_fitted(seen.offsets)
        hits, special, elsewhere = seen.hits.rows, seen.with_special.rows, seen.elsewhere.rows
        relations, each = seen.relations, range(len(seen.relations))
        share, excess, selective, all_excess = (
            # A link may be hit or missed; excess and selectivity are judged together.
            self._means(
                RowBlocks(partial(map, of_relation, each)), reach=1.0, families=2, least=least
            )
            for of_relation, least in (
                (hits, 0.0),
                (lambda r: hits(r) - base[:, r], -1.0),
                (lambda r: hits(r) - elsewhere(r), -1.0),
                (lambda r: special(r) - base[:, r], -1.0),
            )
        )
        layers, heads = np.indices(seen.sums.shape[1:])
        table = pd.DataFrame(
            {
                "relation": np.repeat(relations, layers.size),
                "layer": np.tile(layers.ravel(), len(relations)),
                "head": np.tile(heads.ravel(), len(relations)),
                "n": excess.n,
                "share": share.value,
                "share_low": share.simultaneous_low,
                "share_high": share.simultaneous_high,
                "excess": excess.value,
                "excess_low": excess.simultaneous_low,
                "excess_high": excess.simultaneous_high,
                "excess_p": excess.p_adjusted,
                "selectivity": selective.value,
                "selectivity_low": selective.simultaneous_low,
                "selectivity_high": selective.simultaneous_high,
                "selectivity_p": selective.p_adjusted,
                "share_with_special": all_excess.value + (share.value - excess.value),
                "excess_with_special": all_excess.value,
                "excess_with_special_low": all_excess.simultaneous_low,
                "excess_with_special_high": all_excess.simultaneous_high,
            }
        )
        near = pd.DataFrame(
            {
                "relation": np.repeat(relations, len(OFFSETS)),
                "offset": np.tile(OFFSETS, len(relations)),
                "share": offsets.ravel(),
            }
        )
        evidence: dict[str, Estimate] = {}
        for relation, rows in table[table["excess_low"].notna()].groupby("relation", sort=False):
            evidence |= _judged(str(relation), rows, self.level)
        return {"links": table, "offsets": near}, evidence

    def _first(self, seen: _Seen) -> tuple[pd.DataFrame, dict[str, Estimate]]:
        """What [CLS] gives to each class, and by how much [SEP] leads in the last layer."""
        import pandas as pd

        there = seen.counts.max(axis=(1, 2)) > 0
        if not there.any():
            return pd.DataFrame(), {}
        kinds = [k for k, occurs in zip(KINDS, there, strict=True) if occurs]
        layers, heads = np.indices(seen.sums.shape[1:])
        sums, counts = seen.sums[there], seen.counts[there]
        means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)  # of heads that are left
        table = pd.DataFrame(
            {
                "class": np.repeat([str(k) for k in kinds], layers.size),
                "layer": np.tile(layers.ravel(), len(kinds)),
                "head": np.tile(heads.ravel(), len(kinds)),
                "n": np.repeat(counts.max(axis=(1, 2)), layers.size),
                "weight": means.ravel(),
            }
        )
        if TokenClass.SEP not in kinds or len(kinds) < 2:
            return table, {}
        last = seen.last[:, there].T  # (class, example)
        sep = kinds.index(TokenClass.SEP)
        own = self._means(last[sep][None], least=0.0)
        evidence = {"sep_weight_from_cls": own.estimate(0)} if np.isfinite(own.low[0]) else {}
        if TokenClass.PUNCTUATION in kinds:
            ahead = self._means((last[kinds.index(TokenClass.PUNCTUATION)] - last[sep])[None])
            if np.isfinite(ahead.low[0]):
                evidence["punctuation_over_sep_from_cls"] = ahead.estimate(0)
        leads = self._means(last[sep] - np.delete(last, sep, axis=0))
        others = np.array([k for k in kinds if k is not TokenClass.SEP])
        # The paper counts [CLS] among the classes, so the claim does; the other is told too.
        for name, among in (
            ("sep_lead_from_cls", np.ones(others.size, dtype=bool)),
            ("sep_lead_from_cls_but_for_itself", others != TokenClass.CLS),
        ):
            if lead := _smallest(leads, among):
                evidence[name] = lead
        return table, evidence


@dataclass(frozen=True)
class _Seen:
    """What the examples gave: shares by relation on disk, a few numbers of each at hand."""

    relations: list[str]
    hits: Spooled  # (example, relation, layer, head)
    with_special: Spooled
    elsewhere: Spooled
    offsets: NDArray[Any]  # (example, relation, offset)
    sums: Floats  # (class, layer, head): weights that [CLS] gives, over examples with the class
    counts: NDArray[np.int64]  # (class, layer, head): how many these are
    last: NDArray[Any]  # (example, class): the same in the last layer, mean over heads
    tagger: str

    @classmethod
    def of(cls, parts: Iterator[xr.Dataset]) -> _Seen:
        """Go through the parts once."""
        hits, with_special, elsewhere = kept = Spooled(), Spooled(), Spooled()
        offsets, last, sums, counts = [], [], [], []
        relations, tagger = [], ""
        for part in parts:
            for name, spooled in zip(("hits", "with_special", "elsewhere"), kept, strict=True):
                spooled.append(part[name].to_numpy())
            offsets.append(part["offsets"].to_numpy())
            first = part["first"].to_numpy()
            last.append(first[:, :, -1].mean(axis=-1))
            sums.append(np.nansum(first, axis=0, dtype=np.float64))
            counts.append(np.isfinite(first).sum(axis=0))
            relations = [str(r) for r in part["relation"].to_numpy()]
            tagger = str(part.attrs["tagger"])
        return cls(
            relations,
            hits,
            with_special,
            elsewhere,
            np.concatenate(offsets),
            np.sum(sums, axis=0),
            np.sum(counts, axis=0),
            np.concatenate(last),
            tagger,
        )


def cross_fitted(offsets: NDArray[Any]) -> tuple[Floats, Floats]:
    """What the best offset scores in each example (N, R), chosen on the other half; all means.

    Halves are the examples of even and of odd number, so that a file's order does not matter.
    """
    means = _mean(offsets)
    base = np.full(offsets.shape[:2], np.nan)
    for half in (0, 1):
        best = _mean(offsets[1 - half :: 2]).argmax(axis=-1)  # (R,)
        base[half::2] = np.take_along_axis(offsets[half::2], best[None, :, None], axis=2)[..., 0]
    return base, means


def _mean(values: NDArray[Any]) -> Floats:
    """Over the first axis, NaN left out; -1 (below any share) where there is nothing else."""
    there = np.isfinite(values)
    total = np.where(there, values, 0).sum(axis=0, dtype=np.float64)
    found: Floats = np.where(there.any(axis=0), total / np.maximum(there.sum(axis=0), 1), -1.0)
    return found


def _smallest(means: PartialMeans, among: NDArray[Any]) -> Estimate | None:
    """The smallest of some means: bounds that hold for each hold for the smallest."""
    known = np.asarray(among, dtype=bool) & np.isfinite(means.simultaneous_low)
    if not known.any():
        return None
    bounds = (means.value, means.simultaneous_low, means.simultaneous_high)
    value, low, high = (float(b[known].min()) for b in bounds)
    return Estimate(value, low, high, int(means.n[known].min()), means.level)


def _judged(relation: str, rows: pd.DataFrame, level: float) -> dict[str, Estimate]:
    """The best head's gain over offset and over itself from elsewhere, whichever is less.

    As a candidate's only where some head does follow the links.
    """
    gains = {
        bound: rows[[f"excess{bound}", f"selectivity{bound}"]].min(axis=1).to_numpy()
        for bound in ("", "_low", "_high")
    }
    name = relation.replace("-", "_").replace(":", "_")
    # The largest of each bound: another head than the one that did best here may be the best.
    value, low, high = (float(np.nanmax(gains[bound])) for bound in ("", "_low", "_high"))
    found = Estimate(value, low, high, int(rows["n"].min()), level)
    evidence = {f"{name}_excess": found}
    # Where no head surely comes near the offset, there is no candidate to speak of.
    if (rows["share_low"] > 0.75 * (rows["share"] - rows["excess"])).any():
        evidence[f"{name}_candidate_excess"] = found
    return evidence
