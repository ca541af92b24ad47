"""CLS attention: which tokens does [CLS] attend to?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.arrays import Floats
from bertology.data.words.classes import Specials, TokenClass
from bertology.errors import CapabilityError
from bertology.report import drawings
from bertology.results.answers import NOTHING_SURE, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.blocks import Tagged
from bertology.studies.designs.parts import Gathered, gather, start_of
from bertology.studies.designs.tables import head_table
from bertology.studies.study import MAPS_OF_TEXTS, Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

KINDS = list(TokenClass)
_LEAD = "sep_lead_from_cls"


class ClsAttentionResult(Result):
    """What [CLS] gives to each class of tokens, by head.

    Table `classes`: the weight of the token of a class that gets most (`weight`), and of all of
    them together (`total`).
    """

    lead: ClassVar[int] = 3
    strongest: ClassVar[Mapping[str, str]] = {"classes": "weight"}

    @property
    def answer(self) -> str:
        """What [SEP] gets from [CLS] in the last layer, and by how much it leads."""
        found = self.evidence()
        weight, lead = found.get("sep_weight_from_cls"), found.get(_LEAD)
        if weight is None:
            return f"{NOTHING_SURE}: these texts have no [SEP] that [CLS] could attend to."
        text = f"In the last layer [CLS] gives {plain(weight, '.2f')} of its attention to one [SEP]"
        if lead is None:
            return f"{text}."
        sure = "surely " if lead.low > 0 or lead.high < 0 else "not surely "
        which = "more" if lead.value > 0 else "less"
        return f"{text}, {sure}{which} than to a token of any other class."

    def measures(self) -> Sequence[Measure]:
        """What each head, and each layer, gives from [CLS] to classes."""
        return [*self._from_cls("head"), *self._from_cls("layer")]

    def _from_cls(self, one: str) -> Iterator[Measure]:
        """What [CLS] gives to each class, by head or by layer."""
        of_layers, table = one == "layer", self.tables["classes"]
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
        """The paper's Figure 7 for the final layer, and over layers."""
        found = []
        for one, where in (("head", "in the last layer"), ("layer", "by layer (mean over heads)")):
            measures = list(self._from_cls(one))
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
        return found


@dataclass(frozen=True)
class ClsAttention(Tagged):
    """Which tokens does [CLS] attend to?

    Method: for each head and each class of tokens ([CLS], [SEP], punctuation, nouns, pronouns and
    so on) the largest weight that [CLS] gives to a token of the class, mean over texts that have
    one. Claims are judged on the last layer, mean over its heads; intervals are over texts.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.5, Figure 7. Its caption says
    "averaged over input sequences' lengths": over all tokens of a text that mean is 1 / length
    whatever [CLS] does, and over a class it grows with the number of its tokens. The column
    `total`, what all tokens of a class get together, is the nearest that tells classes apart.
    Limits: where a corpus has no parts of speech they are a tagger's, which makes mistakes.
    """

    needs: ClassVar[Needs] = MAPS_OF_TEXTS
    version: ClassVar[int] = 2  # bounds follow Student's law where many values make a mean
    result_type: ClassVar[type[Result]] = ClsAttentionResult

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse models whose texts begin with no token of their own."""
        super().check(encoder, corpus)
        encoder.require_tokenizer()
        if not Specials.of(encoder.tokenizer).first:
            raise CapabilityError(
                f"Texts of {encoder.name!r} begin with no [CLS] or token like it.",
                hint="Give a model whose tokenizer puts one first, such as BERT.",
            )

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """The weights that [CLS] gives, example by example."""
        import xarray as xr

        from bertology.annotated.tagged_batches import annotated, classified_batches
        from bertology.model.reducers.class_attention import FirstTokenAttention

        block, who = annotated(self.of_block(part, corpus), self.tagger)
        shape = (len(block), len(KINDS), encoder.shape.layers, encoder.shape.heads)
        most, total = (np.full(shape, np.nan, np.float32) for _ in range(2))
        for read in classified_batches(encoder, block, bins=1, batch_tokens=context.batch_tokens):
            batch, groups = read.batch, read.groups
            seen = FirstTokenAttention(groups.masks, groups.masks[:, KINDS.index(TokenClass.CLS)])
            encoder.run(batch, reduce={"layer.*.head.*.pattern": seen})
            at = list(batch.indices)
            most[at], total[at] = seen.value()
            context.advance(len(batch))
        dims = ("example", "class", "layer", "head")
        return xr.Dataset(
            {"most": (dims, most), "total": (dims, total)},
            coords={"class": [str(k) for k in KINDS]},
            attrs={"first": start_of(part), "tagger": who},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Means over texts, and by how much [SEP] leads in the last layer."""
        seen = gather(
            measured,
            # (example, class): what [CLS] gives in the last layer, mean over heads.
            concatenate={"last": lambda part: part["most"].to_numpy()[:, :, -1].mean(axis=-1)},
            add={  # (class, layer, head), over examples that have the class
                "sums": lambda part: np.nansum(part["most"].to_numpy(), 0, dtype=np.float64),
                "totals": lambda part: np.nansum(
                    np.where(np.isfinite(part["most"]), part["total"], np.nan), 0, dtype=np.float64
                ),
                "counts": lambda part: np.isfinite(part["most"].to_numpy()).sum(axis=0),
            },
        )
        return self.result(
            provenance,
            {"classes": _class_table(seen["sums"], seen["totals"], seen["counts"])},
            evidence=self._sep_from_cls(seen),
            reasons={"": "not judged: these texts have no such tokens"},
            facts={"examples": len(seen["last"]), "tagger": seen.facts["tagger"]},
        )

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


def _class_table(sums: Floats, totals: Floats, counts: Floats) -> pd.DataFrame:
    """What [CLS] gives to each class that occurs; nothing where a head is gone."""
    texts = counts.max(axis=(1, 2))  # of each class
    there = texts > 0
    means, all_of_it = (
        np.where(counts > 0, of / np.maximum(counts, 1), np.nan)[there] for of in (sums, totals)
    )
    columns = {
        "n": np.broadcast_to(texts[there, None, None], means.shape),
        "weight": means,
        "total": all_of_it,
    }
    kinds = [str(k) for k, occurs in zip(KINDS, there, strict=True) if occurs]
    return head_table(means.shape[1:], columns, groups=("class", kinds))
