"""Token to token: do heads link verbs with subjects, and what does [CLS] attend to?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.data.words.classes import BY_CORPUS, TokenClass
from bertology.data.words.links import check_relation
from bertology.errors import CapabilityError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.results.answers import (
    NOTHING_SURE,
    head_name,
    largest_row,
    of_row,
    percent,
    plain,
    points,
)
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, column_grid, dashed
from bertology.results.number_text import number_text
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate
from bertology.stats.cross_fitting import cross_fitted
from bertology.stats.partial_means import PartialMeans
from bertology.stats.row_blocks import RowBlocks
from bertology.studies.designs.blocks import Tagged
from bertology.studies.designs.followed_links import first_table, followed_evidence
from bertology.studies.designs.parts import Gathered, gather, start_of
from bertology.studies.designs.tables import head_table, labelled_table, with_bounds
from bertology.studies.study import MAPS_OF_TEXTS, Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

__all__ = ["TokenToToken", "TokenToTokenResult"]

Floats = NDArray[np.float64]
DEFAULT = ("verb-subject", "noun-pronoun")
KINDS = list(TokenClass)
# Column of `links`: title with a place for the relation, where colours part, reading.
_FOLLOWED = {
    "excess": (
        "{} links followed, beyond the best fixed offset",
        0.0,
        "Above 0: the head finds the linked word better than always looking so many words away.",
    ),
    "share": (
        "{} links followed",
        None,
        "High: the word that the source attends to most is the linked one.",
    ),
    "selectivity": (
        "{} links followed, beyond from other words",
        0.0,
        "Above 0: the head finds the word from its source more than from any other word.",
    ),
    "excess_with_special": (
        "{} links followed, [CLS] and [SEP] in the running, beyond the best fixed offset",
        0.0,
        "Above 0: the linked word gets more than special tokens, too, and the offset is beaten.",
    ),
}
_LEAD = "sep_lead_from_cls"
_NO_LINKS = "not judged: this corpus annotates no links between words"
_NO_CANDIDATE = "not judged: too few such links, or no head surely comes near the best fixed offset"


class TokenToTokenResult(Result):
    """How often each head's most attended word is the linked one, and what [CLS] attends to.

    Table `links`: a row for each relation and head, with bounds for all of them together and
    `alone_high`, what this head at most gains, alone; `offsets`: the fixed offsets they are set
    against; `first`: the weight that [CLS] gives to each class of tokens, by head: to the token
    that gets most (`weight`) and to all of them (`total`).
    """

    lead: ClassVar[int] = 3
    strongest: ClassVar[Mapping[str, str]] = {"links": "excess", "first": "weight"}
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "links": {
            **dict.fromkeys(("excess", "selectivity", "excess_with_special"), "points"),
            **dict.fromkeys(("share", "share_with_special"), "%"),
        },
        "offsets": {"share": "%"},
    }

    @property
    def answer(self) -> str:
        """The head that surely follows most links, beside the best offset; else what [CLS] does."""
        told = [self._told(*one) for one in self._relations() if one[1]["share"].notna().any()]
        if told:
            sure = [text for is_sure, text in told if is_sure]
            return f"Surely yes: {sure[0]}." if sure else f"No head surely does: {told[0][1]}."
        weight = self.evidence().get("sep_weight_from_cls")
        if weight is None:
            return f"{NOTHING_SURE}: this corpus has no links between words."
        return (
            f"In the last layer [CLS] gives {plain(weight, '.2f')} of its attention to one [SEP]."
        )

    def _told(self, relation: str, rows: pd.DataFrame) -> tuple[bool, str]:
        """Whether some head surely follows the links of a relation, and the best of them."""
        sure = self._judged(rows)["sure"]
        row = largest_row(rows[sure] if sure.any() else rows, "share")
        share, excess = (of_row(row, (c, f"{c}_low", f"{c}_high")) for c in ("share", "excess"))
        source, _, target = relation.partition("-")
        links = f"points from the {source} to its {target}" if target else f"follows {relation}"
        side = "above" if excess.value >= 0 else "beyond"
        return bool(sure.any()), (
            f"{head_name(row)} {links} in {percent(share)} of links, "
            f"{points(excess, '.0f')} {side} the best fixed offset"
        )

    def headline(self) -> str:
        """The best head of each relation beside the best offset."""
        shown = []
        for relation, rows in self._relations():
            if rows["share"].isna().all():
                shown.append(f"{relation}: no links")
                continue
            best = rows.iloc[int(rows["share"].argmax())]
            share, offset = (
                number_text(100 * x, ".0f") for x in (best["share"], best["share"] - best["excess"])
            )
            shown.append(f"{relation}: {head_name(best)} {share} %, offset {offset} %")
        return "; ".join(shown) + (f". {self._guessed}" if self._guessed else "")

    @property
    def _guessed(self) -> str:
        """Says so where a tagger decided what is linked."""
        who = self.facts["tagger"]
        if who == BY_CORPUS or "noun-pronoun" not in dict(self._relations()):
            return ""
        return f"Nouns and pronouns: {who}; which belong together is guessed."

    def _relations(self) -> list[tuple[str, pd.DataFrame]]:
        if "links" not in self.tables:
            return []
        return [(str(r), t) for r, t in self.tables["links"].groupby("relation", sort=False)]

    def measures(self) -> Sequence[Measure]:
        """How well each head follows each relation, and what it gives from [CLS] to classes."""
        found = [m for one in self._relations() for m in self._followed(*one)]
        return [*found, *self._from_cls("head"), *self._from_cls("layer")]

    def _judged(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Sure: better than the offset and than from other words, corrected for both questions."""
        tests = rows[["excess_p", "selectivity_p"]].max(axis=1)
        gains = rows[["excess", "selectivity"]].min(axis=1)
        return rows.assign(sure=(tests < (1 - self.facts["level"]) / 2) & (gains > 0))

    def _followed(self, relation: str, rows: pd.DataFrame) -> Iterator[Measure]:
        judged = self._judged(rows)
        for column, (title, middle, reading) in _FOLLOWED.items():
            yield Measure.of_column(
                judged,
                column,
                name=f"{dashed(relation)}-{dashed(column)}",
                title=title.format(relation),
                unit="% of links" if column == "share" else "points (% of links)",
                bounds=(f"{column}_low", f"{column}_high"),
                sure="sure" if column == "excess" else None,
                scale=100.0,
                middle=middle,
                reading=reading,
            )

    def _from_cls(self, one: str) -> Iterator[Measure]:
        """What [CLS] gives to each class, by head or by layer."""
        if "first" not in self.tables:
            return
        of_layers, table = one == "layer", self.tables["first"]
        prefix, where = ("layer-", " in the layer") if of_layers else ("", "")
        for kind in KINDS:
            rows = table[table["class"] == kind]
            if rows.empty:
                continue
            if of_layers:  # the mean over heads that are left
                rows = rows.groupby("layer")[["weight"]].mean().reset_index()
            yield Measure.of_column(
                rows,
                "weight",
                name=f"{prefix}from-cls-to-{kind}",
                title=f"Attention from [CLS] to {kind.plural}{where}",
                unit="attention weight",
                reading=f"High: [CLS] attends much to {kind.plural}; the most attended one counts.",
            )

    def drawings(self) -> Sequence[Drawing]:
        """The paper's Figure 7 for the final layer and over layers; a grid for each relation."""
        found = []
        for one, where in (("head", "in the last layer"), ("layer", "by layer (mean over heads)")):
            if measures := list(self._from_cls(one)):
                found.append(
                    drawings.rows(
                        f"first-{one}s",
                        measures,
                        self.about,
                        title=f"What [CLS] attends to {where}",
                        reading="The most attended token of a class counts; mean over texts that "
                        "have one.",
                        labels=[TokenClass(m.name.rpartition("-")[2]).plural for m in measures],
                    )
                )
        return [*found, *(self._grid(*one) for one in self._relations())]

    def _grid(self, relation: str, rows: pd.DataFrame) -> Drawing:
        excess, share, *_ = self._followed(relation, rows)
        # Colours are of what a head finds: against the offset nearly all heads are losers, and
        # the best would be the palest. The offset is a line in the scale.
        special = 100 * column_grid(rows, "share_with_special")
        panels = [replace(share, sure=excess.sure), replace(share, values=special)]
        offsets = share.values - excess.values
        known = bool(np.isfinite(offsets).any())  # not where there are no links
        offset = float(np.nanmean(offsets)) if known else np.nan
        reading = (
            "A link counts as followed if its target is the word that the source attends to most: "
            "left among words, right with [CLS] and [SEP] in the running."
        )
        beside = (
            f" The best fixed offset, such as the word before, finds {offset:.0f} % (line in the "
            "scale)."
        )
        return drawings.grids(
            relation.replace(":", "-"),
            panels,
            self.about,
            title=f"Heads that follow {relation} links",
            reading=f"{reading}{beside if known else ''} "
            f"{self._guessed if relation == 'noun-pronoun' else ''}".strip(),
            labels=["among words", "special tokens too"],
            sure="are surely better than the offset, and than from other words, corrected",
            level=(f"the best fixed offset, {offset:.0f} %", offset) if known else None,
            shared=True,
        )


@dataclass(frozen=True)
class TokenToToken(Tagged):
    """Do heads link verbs with their subjects and nouns with pronouns; what does [CLS] attend to?

    Method: for each link the word that a head attends to most from the source (the source itself
    excluded; once among words, once with special tokens) is compared with the target, and the
    share of hits with that of the best fixed offset (the word k to the left or right, for any k
    that occurs). The offset for one half of the examples is chosen on the other half. `selectivity`
    is the share of hits less that of finding the same target from the other words of the example:
    a head that looks there whatever the source follows no link. Claims need both. Intervals are
    over examples and hold for all heads and relations together. For [CLS], the largest weight that
    it gives to a token of each class, as in the paper's section 4.4. The caption of its Figure 7
    says "averaged over input sequences' lengths": over all tokens of a text that mean is 1 /
    length whatever [CLS] does, and over a class it grows with the number of its tokens. The column
    `total` of the table `first`, what all tokens of a class get together, is the nearest that
    tells classes apart.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.5; Clark et al. (2019) for
    offsets as a baseline. Limits: `noun-pronoun` links are guessed where a corpus has no
    coreference: the nearest noun before the pronoun. Where a corpus has no parts of speech they
    may be asked for by name, and are a tagger's, whose mistakes blur them further. Verbs and their
    subjects need annotated syntax; without it, only [CLS] is looked at by default.
    """

    version: ClassVar[int] = 5  # no correction where all of many must lie on one side
    needs: ClassVar[Needs] = MAPS_OF_TEXTS
    result_type: ClassVar[type[Result]] = TokenToTokenResult

    relations: tuple[str, ...] = parameter(
        (), "Relations such as verb-subject or obj; by default those of the paper, where annotated."
    )

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """Refuse relations and annotation that the corpus does not have."""
        from bertology.annotated.tagged_batches import added_fields

        super().check(encoder, corpus)
        if corpus is not None:
            for relation in self.relations:
                check_relation(relation, corpus, added=added_fields(corpus, self.tagger))

    def _asked(self, corpus: Corpus) -> list[str]:
        """The relations given; by default those of the paper that the corpus itself annotates."""
        found = list(self.relations)
        for relation in () if found else DEFAULT:
            with suppress(CapabilityError):
                check_relation(relation, corpus)
                found.append(relation)
        return found

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Hits of heads and offsets, and the weights that [CLS] gives, example by example."""
        import xarray as xr

        from bertology.annotated.linked_batches import Ends, followed, offset_hits, offsets_of
        from bertology.annotated.tagged_batches import annotated, classified_batches
        from bertology.model.reducers.class_attention import FirstTokenAttention, Several

        asked = self._asked(corpus)
        block, who = annotated(self.of_block(part, corpus), self.tagger)
        shape = (len(block), len(asked), encoder.shape.layers, encoder.shape.heads)
        hits, with_special, elsewhere = (np.full(shape, np.nan, np.float32) for _ in range(3))
        links: list[list[Sequence[Ends]]] = [[()] * len(block) for _ in asked]
        first, total = (
            np.full((len(block), len(KINDS), *shape[2:]), np.nan, np.float32) for _ in range(2)
        )
        for read in classified_batches(encoder, block, bins=1, batch_tokens=context.batch_tokens):
            batch, groups = read.batch, read.groups
            at = list(batch.indices)
            seen = FirstTokenAttention(groups.masks, groups.masks[:, KINDS.index(TokenClass.CLS)])
            found = {r: followed(read, r) for r in asked}
            several = Several([seen, *(f.reducer for f in found.values())])
            encoder.run(batch, reduce={"layer.*.head.*.pattern": several})
            first[at], total[at] = seen.value()
            for j, relation in enumerate(asked):
                shares = found[relation].reducer.value()
                hits[at, j], with_special[at, j] = shares.among_words, shares.among_all
                elsewhere[at, j] = shares.from_elsewhere
                for example, ends in zip(at, found[relation].links, strict=True):
                    links[j][example] = ends
            context.advance(len(batch))
        # All that occur; those of other parts find nothing here.
        offsets = sorted(offsets_of(k for of in links for ends in of for k in ends))
        near = [[offset_hits(of[i], offsets) for of in links] for i in range(len(block))]
        dims = ("example", "relation", "layer", "head")
        classes = ("example", "class", "layer", "head")
        return xr.Dataset(
            {
                "hits": (dims, hits),
                "with_special": (dims, with_special),
                "elsewhere": (dims, elsewhere),
                "linked": (
                    ("example", "relation"),
                    [[bool(of[i]) for of in links] for i in range(len(block))],
                ),
                "offsets": (
                    ("example", "relation", "offset"),
                    np.array(near, np.float32).reshape(len(block), len(asked), len(offsets)),
                ),
                "first": (classes, first),
                "total": (classes, total),
            },
            coords={"relation": asked, "offset": offsets, "class": [str(k) for k in KINDS]},
            attrs={"first": start_of(part), "tagger": who},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Shares of followed links against cross-fitted offsets, and what [CLS] attends to."""
        occur = {int(k) for part in measured.values() for k in part["offset"].to_numpy()}
        offsets = sorted(occur) or [1]
        seen = gather(
            measured,
            concatenate={
                # (example, relation, offset)
                "offsets": lambda part: (
                    part["offsets"].reindex(offset=offsets, fill_value=0.0).where(part["linked"])
                ),
                # (example, class): what [CLS] gives in the last layer, mean over heads.
                "last": lambda part: part["first"].to_numpy()[:, :, -1].mean(axis=-1),
            },
            add={  # (class, layer, head), over examples that have the class
                "sums": lambda part: np.nansum(part["first"].to_numpy(), 0, dtype=np.float64),
                "totals": lambda part: np.nansum(
                    np.where(np.isfinite(part["first"]), part["total"], np.nan), 0, dtype=np.float64
                ),
                "counts": lambda part: np.isfinite(part["first"].to_numpy()).sum(axis=0),
            },
            spool=("hits", "with_special", "elsewhere"),
        )
        tables = self._links(seen, offsets) if seen.labels("relation") else {}
        evidence = followed_evidence(tables["links"], self.level) if tables else {}
        if seen["counts"].any():
            tables["first"] = first_table(seen["sums"], seen["totals"], seen["counts"])
            evidence |= self._sep_from_cls(seen)
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons={"": _NO_CANDIDATE if "links" in tables else _NO_LINKS},
            facts={"examples": len(seen["offsets"]), "tagger": seen.facts["tagger"]},
        )

    def _links(self, seen: Gathered, offsets: Sequence[int]) -> dict[str, pd.DataFrame]:
        """How often each head and each offset finds the linked word."""
        base, shares = cross_fitted(seen["offsets"])
        hits, special, elsewhere = (
            seen.spooled[name].rows for name in ("hits", "with_special", "elsewhere")
        )
        relations = seen.labels("relation")

        def means(of: Callable[[int], NDArray[np.floating]], least: float = -1.0) -> PartialMeans:
            """A link may be hit or missed; excess and selectivity are judged together."""
            blocks = RowBlocks(partial(map, of, range(len(relations))))
            return self.means(blocks, within=(least, 1), reach=1.0, families=2)

        share = means(hits, 0.0)
        excess = means(lambda r: hits(r) - base[:, r])
        selectivity = means(lambda r: hits(r) - elsewhere(r))
        among_all = means(lambda r: special(r) - base[:, r])
        columns = {
            "n": excess.n,
            **with_bounds("share", share, p=False),
            **with_bounds("excess", excess),
            **with_bounds("selectivity", selectivity),
            "alone_high": np.minimum(excess.alone_high, selectivity.alone_high),
            "share_with_special": among_all.value + (share.value - excess.value),
            **with_bounds("excess_with_special", among_all, p=False),
        }
        shape = seen["sums"].shape[1:]
        return {
            "links": head_table(shape, columns, groups=("relation", relations)),
            "offsets": labelled_table(
                {"relation": relations, "offset": offsets}, {"share": shares}
            ),
        }

    def _sep_from_cls(self, seen: Gathered) -> dict[str, Estimate | None]:
        """By how much [SEP] leads in what [CLS] gives in the last layer."""
        there = seen["counts"].any(axis=(1, 2))
        kinds = np.array(KINDS)[there].tolist()
        if TokenClass.SEP not in kinds or len(kinds) < 2:
            return {}
        last = dict(zip(kinds, seen["last"][:, there].T, strict=True))  # class: (example,)
        sep = last.pop(TokenClass.SEP)
        leads = self.means(sep - np.stack(list(last.values())), within=(-1, 1))
        found = {
            "sep_weight_from_cls": self.means(sep[None], within=(0, 1)).estimate(0),
            # The paper counts [CLS] among the classes, so the claim does; the other is told too.
            _LEAD: leads.smallest(),
            f"{_LEAD}_but_for_itself": leads.smallest(np.array(list(last)) != TokenClass.CLS),
        }
        if TokenClass.PUNCTUATION in last:
            ahead = self.means((last[TokenClass.PUNCTUATION] - sep)[None], within=(-1, 1))
            found["punctuation_over_sep_from_cls"] = ahead.estimate(0)
        return found
