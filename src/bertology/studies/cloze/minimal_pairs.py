"""Minimal pairs: does the model find the grammatical sentence likelier than the other?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import percent
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate, bounded_mean_bounds
from bertology.studies.designs.blocks import Sampled
from bertology.studies.designs.parts import in_order
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

ALL = "all"


class MinimalPairsResult(Result):
    """Table `groups`: the share of pairs that were told right, in all and by group."""

    lead: ClassVar[int] = 1
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {"groups": {"accuracy": "%"}}

    @property
    def answer(self) -> str:
        """The accuracy over all pairs, beside chance."""
        found = self.evidence()["pair_accuracy"]
        sure = "Surely yes" if found.low > 0.5 else "Surely not" if found.high < 0.5 else "Not sure"
        return (
            f"{sure}: the grammatical sentence is likelier in "
            f"{percent(found, '.1f', limits=(0.5,))} of {found.n:,} pairs; chance would be 50 %."
        )

    def drawings(self) -> Sequence[Drawing]:
        """Accuracy by group."""
        caption = (
            "One row for each group of pairs, the first for all of them: the per cent of pairs of "
            "which the model finds the grammatical sentence likelier, with its interval. Chance "
            "would be 50."
        )
        rows = self.tables["groups"]
        return [
            drawings.dots(
                "groups",
                [Dots.of_columns("pairs told right (%)", rows, "accuracy", level=50)],
                rows["group"],
                self.about,
                title="Minimal pairs",
                caption=caption,
                note="Dashed: chance, 50 %. Intervals of groups hold for all groups together.",
            )
        ]


@dataclass(frozen=True)
class MinimalPairs(Sampled):
    """Does the model find the grammatical sentence of a pair likelier than the other?

    Method: each sentence is scored by its pseudo-log-likelihood, every token being masked in turn
    (the later pieces of its word too). A pair is told right if the grammatical sentence has the
    higher score; equal scores count half. The accuracy is the share of such pairs, with an interval
    over pairs; those of groups (paradigms of BLiMP, say) hold for all groups together.

    Source: Warstadt et al. (2020) for the pairs, Salazar et al. (2020) for the scores, Kauf and
    Ivanova (2023) for the masking. Limits: pairs of a group are alike in their words and syntax, so
    an interval is about more pairs of the same kinds, not about other constructions.
    """

    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "contrast"}), head="mlm")
    result_type: ClassVar[type[Result]] = MinimalPairsResult

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """How much likelier each grammatical sentence is."""
        import xarray as xr

        from bertology.model.masked_lm.scoring import compare_pairs

        block = self.of_block(part, corpus)
        better = compare_pairs(
            encoder,
            [e.text for e in block],
            [str(e.get("contrast")) for e in block],
            tokens_per_batch=context.batch_tokens,
        )
        context.advance(len(block))
        grouped = "group" in corpus.fields
        groups = [str(e.get("group")) if grouped else "" for e in block]
        return xr.Dataset({"better": ("example", better), "group": ("example", groups)})

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Accuracy in all, and by group."""
        parts = list(in_order(measured))
        better = np.concatenate([part["better"].to_numpy() for part in parts])
        groups = np.concatenate([part["group"].to_numpy().astype(str) for part in parts])
        right = (better > 0) + 0.5 * (better == 0)
        everywhere = self._accuracy(right, families=1)
        return self.result(
            provenance,
            {"groups": self._by_group(right, groups, everywhere)},
            evidence={"pair_accuracy": everywhere},
            facts={"examples": len(right)},
        )

    def _by_group(
        self, right: NDArray[np.float64], groups: NDArray[np.str_], everywhere: Estimate
    ) -> pd.DataFrame:
        import pandas as pd

        found, names = {ALL: everywhere}, [str(name) for name in np.unique(groups) if name]
        for name in names:
            found[name] = self._accuracy(right[groups == name], families=len(names))
        rows = [(name, e.n, e.value, e.low, e.high) for name, e in found.items()]
        return pd.DataFrame(rows, columns=["group", "n", "accuracy", "low", "high"])

    def _accuracy(self, right: NDArray[np.float64], *, families: int) -> Estimate:
        """Pairs that are all right do not make the accuracy certain."""
        budget = float(np.log(2 * families / (1 - self.level)))
        low, high = bounded_mean_bounds(right[None], None, low=0.0, high=1.0, budget=budget)
        return Estimate(right.mean(), low[0], high[0], len(right), self.level, "pairs")
