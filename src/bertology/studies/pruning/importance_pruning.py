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
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate, repeated
from bertology.stats.survivors import cochrans_q, fleiss_kappa
from bertology.studies.pruning.shared import Prunings, PruningsResult, by_seed, by_step
from bertology.studies.study import Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.train.iterative_pruning import Importance, Pruning, PruningJob

_LAST_OF_LAYER = (
    "not judged: importances are compared within layers (by_layer), so that the last head of a "
    "layer always has the highest and no layer goes as a whole"
)


class ImportancePruningResult(PruningsResult):
    """Which heads (table `heads`) and MLPs (table `mlps`) survive, in the mean over seeds.

    Both have the share of seeds in which it survives, the standard deviation over seeds, and the
    mean importance in the whole model. Survivors are those of the deepest step that all seeds kept
    (fact `compared_step`; `compared_left` is the share of heads that are left there). `agreement`
    tells for each kind Fleiss' κ with its interval over seeds, Cochran's Q with its p-value by the
    χ² distribution (`p_asymptotic`) and by random orders (`p`); `heads in layers` leaves out what
    seeds agree on by how many heads each layer keeps. `curve` is the score by step over seeds,
    `runs` and `steps` are those of each seed: how far each went, and what it tried.

    Arrays: `heads_left` (seed, step, layer, head) and `mlps_left` (seed, step, layer) tell what is
    left in each step, `kept_steps` (seed) how many of these kept the score, the whole model first.
    """

    lead: ClassVar[int] = 10
    pruned: ClassVar[str] = "heads"
    agreement: ClassVar[tuple[str, str]] = ("head_kappa_in_layers", "heads of a layer")

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
    that is given only reports. As many parts go in each step whatever the seed; so survivors are
    compared at the deepest step that all seeds kept, where as much is left with every seed, and how
    far each seed went is told apart from that. Fleiss' κ tells how far seeds agree (they are
    raters; 0 is chance), with an interval over seeds; Cochran's Q tells whether some heads survive
    more often than others, beyond what random orders of heads would give. Both also within layers:
    chance then keeps as many heads of each layer as that seed does, so that agreement on layers
    alone counts for nothing. Claims rest on the latter. Intervals of how much goes are over seeds
    and over draws of the examples that decide; two steps beyond the one that fell are tried for
    that.

    Source: Prasanna, Rogers and Rumshisky (2020), When BERT Plays the Lottery, All Tickets Are
    Winning, section 3; BERTology Nuggets, method 2. Limits: the paper decides and reports on the
    same development data. At least half of what the model gains over a constant answer must be
    kept, even where 90 % of its score is less. Gradients tell what a small change of a gate does,
    not what removing it does. With few seeds the interval of κ is wide; with two there is none.
    """

    version: ClassVar[int] = 2  # survivors are compared at one step, and within layers
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

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """The model must have gates that can be held at 0."""
        from bertology.model.part_masks import PartMask, parts_gated

        super().check(encoder, corpus)
        with parts_gated(encoder, PartMask.full(encoder)):
            pass

    def describe(self, job: PruningJob, found: Pruning) -> xr.Dataset:
        """What is left, and the importances of the whole model."""
        import xarray as xr

        from bertology.model.nested_masks import NestedParts

        masks, important = found.masks, found.importances
        assert isinstance(masks, NestedParts)
        assert important is not None
        return xr.Dataset(
            {
                "heads": (("step", "layer", "head"), masks.heads.astype(np.int8)),
                "mlps": (("step", "layer"), masks.mlps.astype(np.int8)),
                "head_importance": (("layer", "head"), important.heads),
                "mlp_importance": ("layer", important.mlps),
            }
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Survival over seeds, and how far seeds agree beyond chance."""
        import pandas as pd
        import xarray as xr

        tables, facts, evidence, reason = self.common(measured, "heads")
        heads, mlps = (by_step(measured, name).astype(bool) for name in ("heads", "mlps"))
        steps = by_seed(measured, "kept_steps")
        at = int(facts["compared_step"])
        there = heads[0, 0], mlps[0, 0]  # a model that was cut before has fewer
        importances, of_layers = (by_seed(measured, f"{x}_importance") for x in ("head", "mlp"))
        places = np.indices(there[0].shape).reshape(2, -1)
        kept = pd.DataFrame({"layer": places[0], "head": places[1]})
        kept = _survival(kept, heads[:, at], importances, there[0])
        kept_mlps = pd.DataFrame({"layer": range(len(there[1]))})
        kept_mlps = _survival(kept_mlps, mlps[:, at], of_layers, there[1])
        agreement, kappas = _agreement(
            {
                "head": (heads[:, at, there[0]], None),
                "head_in_layers": (heads[:, at, there[0]], np.nonzero(there[0])[0]),
                "mlp": (mlps[:, at, there[1]], None),
            },
            self.level,
        )
        seeds = np.arange(len(steps))
        last_heads, last_mlps = heads[seeds, steps - 1], mlps[seeds, steps - 1]
        gone = ~last_heads.any(2) & ~last_mlps
        removed = {
            "heads_removed": 1 - last_heads.sum((1, 2)) / there[0].sum(),
            "mlps_removed": 1 - last_mlps.sum(1) / there[1].sum(),
            "layers_removed": gone.mean(1),
        }
        evidence |= {f"{kind}_removed": self.removed(measured, kind) for kind in ("heads", "mlps")}
        evidence["layers_removed"] = repeated(
            removed["layers_removed"], self.level, within=(0.0, 1.0), grain=1 / len(there[1])
        )
        evidence |= kappas
        runs = tables["runs"].assign(**removed)
        known, reasons = self.judged(evidence, reason)
        if self.by_layer and known.pop("layers_removed", None) is not None:
            reasons["layers_removed"] = _LAST_OF_LAYER
        return self.result(
            provenance,
            {"heads": kept, "mlps": kept_mlps, "agreement": agreement, **tables, "runs": runs},
            evidence=known,
            reasons=reasons,
            facts={**facts, "by_layer": int(self.by_layer)},
            arrays=xr.Dataset(
                {
                    "importances": (("seed", "layer", "head"), importances),
                    "heads_left": (("seed", "step", "layer", "head"), heads),
                    "mlps_left": (("seed", "step", "layer"), mlps),
                    "kept_steps": ("seed", steps),
                }
            ),
        )


def _survival(
    places: pd.DataFrame,
    survived: NDArray[np.bool_],
    importances: NDArray[np.float64],
    there: NDArray[np.bool_],
) -> pd.DataFrame:
    """By place; what the whole model does not have (it was cut before) has no numbers."""
    spread = survived.std(0, ddof=1) if len(survived) > 1 else np.full(survived.shape[1:], np.nan)
    found = {"survival": survived.mean(0), "std": spread, "importance": importances.mean(0)}
    return places.assign(**{n: np.where(there, v, np.nan).ravel() for n, v in found.items()})


def _agreement(
    survived: Mapping[str, tuple[NDArray[np.bool_], NDArray[np.intp] | None]], level: float
) -> tuple[pd.DataFrame, dict[str, Estimate]]:
    """κ and Q by kind. Where κ is above 0, the exact test says whether it surely is."""
    import pandas as pd

    rows, kappas = [], {}
    for kind, (x, strata) in survived.items():
        kappa = fleiss_kappa(x, level, strata=strata)
        test = cochrans_q(x, strata=strata)
        if test is not None and not math.isnan(kappa.low):
            kappa = replace(kappa, tested=(0.0, min(1.0, 2 * test.p)))
        thing, _, where = kind.partition("_")
        kappas["_".join(filter(None, (thing, "kappa", where)))] = kappa
        rows.append(
            {
                "kind": " ".join(filter(None, (f"{thing}s", where.replace("_", " ")))),
                "things": x.shape[1],
                "left": float(x.mean()),
                "kappa": kappa.value,
                "low": kappa.low,
                "high": kappa.high,
                "q": math.nan if test is None else test.q,
                "freedom": math.nan if test is None else test.freedom,
                "p_asymptotic": math.nan if test is None else test.p_asymptotic,
                "p": math.nan if test is None else test.p,
            }
        )
    return pd.DataFrame(rows), kappas
