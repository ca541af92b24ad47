"""Importance pruning: which heads and MLPs are left when the least important ones go?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Line, lines
from bertology.results.answers import NOTHING_SURE, percent, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate, repeated
from bertology.stats.survivors import cochrans_q, fleiss_kappa
from bertology.studies.designs.prunings import Prunings, PruningsResult, by_seed
from bertology.studies.study import Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.train.iterative_pruning import Importance, Pruning, PruningJob

__all__ = ["ImportancePruning", "ImportancePruningResult"]

_LAST_OF_LAYER = (
    "not judged: importances are compared within layers (by_layer), so that the last head of a "
    "layer always has the highest and no layer goes as a whole"
)


class ImportancePruningResult(PruningsResult):
    """Which heads (table `heads`) and MLPs (table `mlps`) survive, in the mean over seeds.

    Both have the share of seeds in which it survives, the standard deviation over seeds, and the
    mean importance in the whole model. `agreement` tells for each kind Fleiss' κ with its interval
    over seeds, Cochran's Q with its p-value by the χ² distribution (`p_asymptotic`) and by random
    orders (`p`). `curve` is the score by step over seeds, `runs` and `steps` are those of each
    seed.
    """

    lead: ClassVar[int] = 10

    @property
    def answer(self) -> str:
        """How many heads go, and whether the same ones stay."""
        found = self.evidence()
        if "heads_removed" not in found:
            return f"{NOTHING_SURE}: {self.reasons().get('heads_removed', 'nothing was pruned')}."
        told = (
            f"{percent(found['heads_removed'])} of the heads can go while "
            f"{100 * float(self.facts['keep']):.0f} % of the score is kept"
        )
        if "head_kappa" in found:
            told += f"; seeds agree on which heads stay with κ {plain(found['head_kappa'])}"
        return f"{told} ({self.over_seeds})."

    def headline(self) -> str:
        """The task, what pruning did to its score, and how far seeds agree."""
        return f"{self.facts['task']}: {self.kept_text()}"

    def measures(self) -> Sequence[Measure]:
        """Of heads: survival and importance; of layers: survival of the MLP."""
        heads, mlps = self.tables["heads"], self.tables["mlps"]
        return [
            Measure.of_column(
                heads,
                "survival",
                name="head-survival",
                title="Survival of heads",
                reading="High: the head is left with most seeds. Low: it can go.",
                scale=100,
                unit="% of seeds",
            ),
            Measure.of_column(
                heads,
                "std",
                scale=100,
                name="head-spread",
                title="Spread of survival over seeds",
                unit="standard deviation, points",
                reading="High: the head is left with some seeds and gone with others.",
            ),
            Measure.of_column(
                heads,
                "importance",
                name="head-importance",
                title="Importance of heads",
                unit="mean |dL/dξ|" + (" by layer" if self.facts["by_layer"] else ""),
                reading="High: the loss of examples depends much on the head.",
            ),
            Measure.of_column(
                mlps,
                "survival",
                name="mlp-survival",
                title="Survival of MLPs",
                reading="High: the layer's MLP is left with most seeds. Low: it can go.",
                scale=100,
                unit="% of seeds",
            ),
            Measure.of_column(
                mlps,
                "std",
                scale=100,
                name="mlp-spread",
                title="Spread of the MLPs' survival over seeds",
                unit="standard deviation, points",
                reading="High: the MLP is left with some seeds and gone with others.",
            ),
        ]

    def drawings(self) -> Sequence[Drawing]:
        """The slides' picture (b), importances (their figure 3), and the score by what is left."""
        survival, spread, _, mlps, mlp_spread = self.measures()
        return [
            drawings.grids(
                "heads",
                [survival, spread],
                self.about,
                title="Heads that survive",
                labels=["survives (% of seeds)", "standard deviation over seeds"],
                reading="Left: in how many seeds a head is left. Right: how much that varies.",
                shared=False,
            ),
            drawings.rows(
                "mlps",
                [mlps, mlp_spread],
                self.about,
                title="MLPs that survive",
                labels=["survives (% of seeds)", "standard deviation"],
                reading="Above: in how many seeds a layer's MLP is left. Below: the spread.",
            ),
            self._importances(),
            self.curve("heads"),
        ]

    def _importances(self) -> Drawing:
        """All heads by their importance, for each seed: is there a step, or a slope?"""
        grid = self.arrays["importances"].to_numpy()  # (seed, layer, head)
        ranked = -np.sort(-grid.reshape(len(grid), -1), axis=1)
        whole = ranked / np.maximum(ranked.max(1, keepdims=True), 1e-30)
        places = np.arange(1, ranked.shape[1] + 1)
        drawn = [Line("a seed", places, row) for row in whole]
        drawn.append(Line("mean over seeds", places, whole.mean(0)))
        draw = partial(
            lines,
            drawn,
            title=f"Importance of heads, in their order\n{self.about}",
            xlabel="head, the most important first",
            ylabel="importance (largest: 1)",
        )
        return Drawing(
            "importances",
            draw,
            "All heads of the whole fine-tuned model, the most important first, and their "
            "importance beside that of the first. A steep line: a few heads matter. A flat one: "
            "most heads matter about equally, and which of them go first is chance.",
        )


@dataclass(frozen=True)
class ImportancePruning(Prunings):
    """Which heads and MLPs of a fine-tuned model are left when the least important go?

    Method: the model is fine-tuned with each seed. The importance of a head is the mean over
    examples of |dL/dξ|, of its gate ξ, and that of an MLP of |dL/dν| (Michel et al. 2019), each
    example by its absolute value, all parts in one pass over at most 2000 training examples; those
    of heads are divided by their length (ℓ2) in each layer. Step by step a tenth of all heads and
    one MLP go, the least important that are left, until the score falls below 90 % of the whole
    model's; importances are computed anew each time. What is left in the step before is the "good"
    subnetwork. The score that decides is that of training examples that were held out; the corpus
    that is given only reports. Survivors are compared over seeds by Fleiss' κ (seeds are raters; 0
    is chance), whose interval is over seeds, and by Cochran's Q: do some heads survive more often
    than others, beyond what random orders of heads would give?

    Source: Prasanna, Rogers and Rumshisky (2020), When BERT Plays the Lottery, All Tickets Are
    Winning, section 3; BERTology Nuggets, method 2. Limits: the paper decides and reports on the
    same development data. At least half of what the model gains over a constant answer must be
    kept, even where 90 % of its score is less. Gradients tell what a small change of a gate does,
    not what removing it does. With few seeds the interval of κ is wide; with two there is none.
    """

    version: ClassVar[int] = 1
    needs: ClassVar[Needs] = replace(Prunings.needs, capabilities=frozenset({"heads", "mlp"}))
    result_type: ClassVar[type[Result]] = ImportancePruningResult
    variant: ClassVar[str] = "importance"

    share: float = parameter(
        0.1, "Share of all heads that goes in a step, at least one.", minimum=0.001, maximum=0.9
    )
    mlps: int = parameter(1, "MLPs that go in a step.", minimum=0)
    by_layer: bool = parameter(
        True, "Divide importances of heads by their length (l2) in each layer."
    )
    ranking: int = parameter(
        2000, "Training examples that tell importances, at most; give more for all.", minimum=20
    )

    @property
    def method(self) -> Importance:
        """The least important heads and MLPs go."""
        from bertology.train.iterative_pruning import Importance

        return Importance(self.share, self.mlps, self.by_layer, self.ranking)

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """The model must have gates that can be held at 0."""
        from bertology.model.part_masks import PartMask, parts_gated

        super().check(encoder, corpus)
        with parts_gated(encoder, PartMask.full(encoder)):
            pass

    def describe(self, job: PruningJob, found: Pruning) -> xr.Dataset:
        """What is left, and the importances of the whole model."""
        import xarray as xr

        from bertology.model.part_masks import PartMask

        mask, important = found.mask, found.importances
        assert isinstance(mask, PartMask)
        assert important is not None
        return xr.Dataset(
            {
                "heads": (("layer", "head"), mask.heads.astype(np.int8)),
                "mlps": ("layer", mask.mlps.astype(np.int8)),
                "head_importance": (("layer", "head"), important.heads),
                "mlp_importance": ("layer", important.mlps),
            }
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Survival over seeds, and how far seeds agree beyond chance."""
        import pandas as pd
        import xarray as xr

        tables, facts, evidence, reason = self.common(measured, "heads")
        heads, mlps = (by_seed(measured, name).astype(bool) for name in ("heads", "mlps"))
        importances = by_seed(measured, "head_importance")
        layers, each = heads.shape[1:]
        places = np.indices((layers, each)).reshape(2, -1)
        kept = pd.DataFrame({"layer": places[0], "head": places[1]})
        kept = _survival(kept, heads.reshape(len(heads), -1), importances)
        of_mlps = _survival(
            pd.DataFrame({"layer": range(layers)}), mlps, by_seed(measured, "mlp_importance")
        )
        agreement, kappas = _agreement(
            {"head": heads.reshape(len(heads), -1), "mlp": mlps}, self.level
        )
        gone = ~heads.any(2) & ~mlps
        removed = {
            "heads_removed": 1 - heads.mean((1, 2)),
            "mlps_removed": 1 - mlps.mean(1),
            "layers_removed": gone.mean(1),
        }
        evidence |= {n: repeated(v, self.level, within=(0.0, 1.0)) for n, v in removed.items()}
        evidence |= kappas
        runs = tables["runs"].assign(**removed)
        known, reasons = self.judged(evidence, reason)
        if self.by_layer and known.pop("layers_removed", None) is not None:
            reasons["layers_removed"] = _LAST_OF_LAYER
        return self.result(
            provenance,
            {"heads": kept, "mlps": of_mlps, "agreement": agreement, **tables, "runs": runs},
            evidence=known,
            reasons=reasons,
            facts={**facts, "by_layer": int(self.by_layer)},
            arrays=xr.Dataset({"importances": (("seed", "layer", "head"), importances)}),
        )


def _survival(
    places: pd.DataFrame, survived: NDArray[np.bool_], importances: NDArray[np.float64]
) -> pd.DataFrame:
    spread = survived.std(0, ddof=1) if len(survived) > 1 else np.full(survived.shape[1], np.nan)
    return places.assign(
        survival=survived.mean(0),
        std=spread,
        importance=importances.reshape(len(importances), -1).mean(0),
    )


def _agreement(
    survived: Mapping[str, NDArray[np.bool_]], level: float
) -> tuple[pd.DataFrame, dict[str, Estimate]]:
    """κ and Q by kind. Where κ is above 0, the exact test says whether it surely is."""
    import pandas as pd

    rows, kappas = [], {}
    for kind, x in survived.items():
        kappa, test = fleiss_kappa(x, level), cochrans_q(x)
        if test is not None and not math.isnan(kappa.low):
            kappa = replace(kappa, tested=(0.0, min(1.0, 2 * test.p)))
        kappas[f"{kind}_kappa"] = kappa
        rows.append(
            {
                "kind": f"{kind}s",
                "things": x.shape[1],
                "kappa": kappa.value,
                "low": kappa.low,
                "high": kappa.high,
                "q": math.nan if test is None else test.q,
                "freedom": x.shape[1] - 1,
                "p_asymptotic": math.nan if test is None else test.p_asymptotic,
                "p": math.nan if test is None else test.p,
            }
        )
    return pd.DataFrame(rows), kappas
