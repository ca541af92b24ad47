"""Repeated tokens: do heads attend to other occurrences of the same token?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import xarray as xr

from bertology.report import drawings
from bertology.results.comparison import over_rows
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.parts import gather
from bertology.studies.designs.tables import head_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

_BOUNDS = ("excess_low", "excess_high")


class RepeatedTokensResult(Result):
    """Table `heads`: the attention to other occurrences of a token, less that of even attention."""

    strongest: ClassVar[Mapping[str, str]] = {"heads": "excess"}

    def measures(self) -> Sequence[Measure]:
        return [
            Measure.of_column(
                self.tables["heads"],
                "excess",
                name="repeated-tokens",
                title="Attention to other occurrences of the same token",
                unit="share of the attention beyond even attention",
                bounds=_BOUNDS,
                middle=0.0,
                reading="Above 0: tokens look for themselves elsewhere in the text.",
            )
        ]

    def drawings(self) -> Sequence[Drawing]:
        return [drawings.grid(self.measure("repeated-tokens"), self.about, name="heads")]


@dataclass(frozen=True)
class RepeatedTokens(Resampled):
    """Do heads attend to other occurrences of the same token?

    Method: for every token that occurs again in its text, the attention that it gives to the other
    occurrences, less what even attention would give them; mean over such tokens of an example,
    then over the examples that have any. Bounds hold for all heads together.

    Source: made for the documentation of bertology. Limits: special tokens do not count; a token
    that is repeated may be a frequent word, which heads may attend to for other reasons.
    """

    needs: ClassVar[Needs] = Needs(capabilities=frozenset({"patterns"}), fields=frozenset({"text"}))
    result_type: ClassVar[type[Result]] = RepeatedTokensResult

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        site, special = "layer.*.head.*.pattern", encoder.tokenizer.all_special_ids
        block, shape = self.of_block(part, corpus), encoder.shape
        excess = np.full((len(block), shape.layers, shape.heads), np.nan)
        for batch in encoder.batches(block.texts, tokens_per_batch=context.batch_tokens):
            maps = encoder.run(batch, record=site)[site].float().cpu().numpy()  # (L, B, H, T, T)
            ids, real = (t.cpu().numpy() for t in (batch.inputs["input_ids"], batch.real))
            word = real & ~np.isin(ids, special)
            same = (ids[:, :, None] == ids[:, None]) & word[:, :, None] & word[:, None]
            same &= ~np.eye(ids.shape[1], dtype=bool)
            for row, index in enumerate(batch.indices):
                again = same[row].any(axis=1)  # the tokens that occur elsewhere, too
                if again.any():
                    given = (maps[:, row] * same[row]).sum(axis=-1)[..., again]  # (L, H, tokens)
                    even = same[row].sum(axis=1)[again] / real[row].sum()
                    excess[index] = (given - even).mean(axis=-1)
            context.advance(len(batch))
        return xr.Dataset({"excess": (("example", "layer", "head"), excess)})

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        excess = gather(measured, concatenate=["excess"])["excess"]
        examples, layers, heads = excess.shape
        means = self.means(excess.reshape(examples, -1).T, within=(-1.0, 1.0))
        table = head_table((layers, heads), with_bounds("excess", means))
        best = over_rows(
            table, lambda x: x.max(), ("excess", *_BOUNDS), n=int(means.n.min()), level=self.level
        )
        return self.result(
            provenance,
            {"heads": table},
            evidence={"best_head_excess": best},
            facts={"examples": examples},
        )
