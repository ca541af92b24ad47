"""Magnitude pruning: which weights are left when the smallest go as long as the score is kept?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.parameters import parameter
from bertology.report.figures import row_grid
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate, repeated
from bertology.stats.survivors import jackknifed_pairs, overlap, pairs_of, spread_over_runs
from bertology.studies.pruning.shared import (
    Prunings,
    PruningsResult,
    bits_by_seed,
    by_step,
    joined_planes,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.train.iterative_pruning import Magnitude, Pruning, PruningJob

STARTS = ("fine-tuned", "rewound")
_READING = "A high share: this matrix has many weights that are large beside those of others."


class MagnitudePruningResult(PruningsResult):
    """Shares of surviving weights by layer and kind of matrix (table `matrices`), over seeds.

    `matrices` has the mean over seeds, their standard deviation, and Student's interval; layer -1
    is what is in no layer. `overlaps` compares the masks of every two seeds with chance: `jaccard`
    and `kappa` (0 as by chance, 1 the same weights). All of these are of the deepest step that all
    seeds kept (fact `compared_step`; `compared_left` is the share of weights that is left there).
    `curve` is the score by step over seeds, `runs` and `steps` are those of each seed: how far each
    went, and what it tried.
    """

    lead: ClassVar[int] = 8
    pruned: ClassVar[str] = "weights"
    agreement: ClassVar[tuple[str, str]] = ("mask_kappa", "weights")

    def _grid(self, column: str) -> tuple[list[str], NDArray[np.float64]]:
        """Kinds of matrices in layers, and a column of theirs: kinds × layers, in per cent."""
        table = self.tables["matrices"]
        inside = table[table["layer"] >= 0]
        kinds = list(dict.fromkeys(inside["kind"]))
        grid = inside.pivot(index="kind", columns="layer", values=column).loc[kinds]
        return kinds, 100 * grid.to_numpy(float)

    def measures(self) -> Sequence[Measure]:
        """By layer, all its matrices together."""
        table = self.tables["layers"]
        if not len(table):
            return []
        return [
            Measure.of_column(
                table,
                "mean",
                bounds=("low", "high"),
                scale=100,
                name="weights-left",
                title="Weights that are left after magnitude pruning",
                unit="% of weights",
                reading="Much is left where weights are large beside those of other layers.",
            )
        ]

    def drawings(self) -> Sequence[Drawing]:
        """The slides' picture (a), as means and as spreads, and the score by what is left."""
        kinds, mean = self._grid("mean")
        _, spread = self._grid("std")
        draw = partial(row_grid, names=kinds, xlabel="layer")
        seeds = self.facts["seeds"]
        return [
            Drawing(
                "survival",
                partial(
                    draw, mean, title=f"Weights that survive\n{self.about}", label="% of weights"
                ),
                "One row for each kind of matrix, one column for each layer: the share of its "
                f"weights that are left, in per cent, the mean over {seeds} seeds. Darker is more. "
                f"{_READING}",
            ),
            Drawing(
                "spread",
                partial(
                    draw,
                    spread,
                    title=f"How much survival varies over seeds\n{self.about}",
                    label="standard deviation, points",
                ),
                "One row for each kind of matrix, one column for each layer: the standard "
                f"deviation over {seeds} seeds of the share of weights that are left, in points. "
                "Pale everywhere: every seed prunes matrices alike.",
            ),
            self.curve("weights"),
        ]


@dataclass(frozen=True)
class MagnitudePruning(Prunings):
    """Which weights of a fine-tuned model are left when the smallest go?

    Method: the model is fine-tuned with each seed. Then, step by step, a tenth of the remaining
    weights goes, the smallest by their size, over all matrices of the model, its head included, but
    the embeddings (biases and LayerNorms stay): until the score falls below 90 % of the whole
    model's. The mask of the step before is the "good" subnetwork. The score that decides is that of
    training examples that were held out; the corpus that is given only reports. `threshold matrix`
    takes the same share from each matrix. `start rewound` trains again after each step, from the
    pre-trained weights without those that are gone (the lottery ticket with rewinding to the
    start), and ranks the weights of that training. Survivors are compared over seeds at the deepest
    step that all seeds kept, where as many weights are left with every seed: the standard deviation
    of the share that is left of each matrix, and the overlap of masks of two seeds against masks of
    the same sizes drawn at random. How far each seed went is told apart from that; the interval of
    how much goes is over seeds and over draws of the examples that decide (two steps beyond the one
    that fell are tried for that, but not with `start rewound`).

    Source: Prasanna, Rogers and Rumshisky (2020), When BERT Plays the Lottery, All Tickets Are
    Winning, section 3, after Chen et al. (2020) and Frankle and Carbin (2019); BERTology Nuggets,
    method 1. Limits: the paper decides and reports on the same development data. Where most
    examples have one label, 90 % of a score may be less than a constant answer scores; so at least
    half of what the model gains over a constant answer must be kept. Seeds share the pre-trained
    weights, and fine-tuning moves few of them far: agreement over seeds is that of pre-training
    first of all.
    """

    version: ClassVar[int] = 2  # survivors are compared at one step
    result_type: ClassVar[type[Result]] = MagnitudePruningResult
    variant: ClassVar[str] = "magnitude"

    # A spread of 0.01 is surely below 0.02 with five seeds in 25 of 100 cases, with ten in 71.
    seeds: int = parameter(
        10, "Runs, each with another seed; one gives no verdicts, two no agreement.", minimum=1
    )
    threshold: str = parameter(
        "global",
        "The smallest weights of the whole model go, or of each matrix the same share.",
        choices=("global", "matrix"),
    )
    start: str = parameter(
        "fine-tuned",
        "Prune the fine-tuned weights as they are; or train again after each step, from the "
        "pre-trained weights without those that are gone (one fine-tuning for each step).",
        choices=STARTS,
    )
    share: float = parameter(
        0.1, "Share of the remaining weights that goes in a step.", minimum=0.001, maximum=0.9
    )

    @property
    def method(self) -> Magnitude:
        """The smallest weights go."""
        from bertology.train.iterative_pruning import Magnitude

        return Magnitude(self.share, self.threshold, rewound=self.start == "rewound")

    def describe(self, job: PruningJob, found: Pruning) -> xr.Dataset:
        """Bits of the mask, and what is left by layer and kind of matrix."""
        import xarray as xr

        from bertology.model.encoder import Encoder
        from bertology.model.nested_masks import NestedWeights
        from bertology.model.weight_masks import survival
        from bertology.train.encoded import task_of
        from bertology.train.starts import begin

        masks, tuning = found.masks, job.tuning
        assert isinstance(masks, NestedWeights)
        model = begin(tuning.encoder, task_of(tuning.train), tuning.start, seed=0)
        whole = Encoder(model, tuning.encoder.tokenizer, head="classification")
        steps = [survival(whole, masks.at(step)) for step in range(masks.steps)]
        return xr.Dataset(
            {
                "planes": (("plane", "byte"), joined_planes(masks)),
                "kept": (("step", "matrix"), [[row.kept for row in rows] for rows in steps]),
                "size": ("matrix", [row.size for row in steps[0]]),
                "layer": ("matrix", [row.layer for row in steps[0]]),
                "kind": ("matrix", [row.kind for row in steps[0]]),
            },
            attrs={"mask": masks.whole.fingerprint},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Shares by matrix over seeds, and the overlap of every two seeds."""
        import pandas as pd

        tables, facts, evidence, reason = self.common(measured, "weights")
        first, at = next(iter(measured.values())), int(facts["compared_step"])
        kept, size = by_step(measured, "kept")[:, at], first["size"].to_numpy()
        layer, kind = first["layer"].to_numpy(), first["kind"].to_numpy()
        shares = kept / size
        matrices = pd.DataFrame({"layer": layer, "kind": kind, "weights": size})
        matrices = pd.concat([matrices, _over_seeds(shares, self.level)], axis=1)
        numbers = sorted(n for n in set(layer.tolist()) if n >= 0)
        whole = np.stack(
            [kept[:, layer == n].sum(1) / size[layer == n].sum() for n in numbers], axis=1
        )
        layers = pd.concat(
            [pd.DataFrame({"layer": numbers}), _over_seeds(whole, self.level)], axis=1
        )
        overlaps, kappa = _overlaps(
            bits_by_seed(measured, "planes", at), int(size.sum()), self.level
        )
        spread = spread_over_runs(shares[:, layer >= 0], self.level)
        if not at:  # all is left, with every seed
            spread = replace(spread, value=math.nan)
        evidence |= {
            "weights_removed": self.removed(measured, "weights"),
            "survival_spread": spread,
            "mask_kappa": kappa,
        }
        known, reasons = self.judged(evidence, reason)
        return self.result(
            provenance,
            {"matrices": matrices, "layers": layers, "overlaps": overlaps, **tables},
            evidence=known,
            reasons=reasons,
            facts=facts,
        )


def _over_seeds(shares: NDArray[np.float64], level: float) -> pd.DataFrame:
    """Mean, standard deviation and interval of each column."""
    import pandas as pd

    rows = []
    for column in shares.T:
        mean = repeated(column, level, within=(0.0, 1.0))
        spread = float(np.std(column, ddof=1)) if len(column) > 1 else math.nan
        rows.append({"mean": mean.value, "std": spread, "low": mean.low, "high": mean.high})
    return pd.DataFrame(rows, columns=["mean", "std", "low", "high"])


def _overlaps(
    bits: Sequence[NDArray[np.uint8]], size: int, level: float
) -> tuple[pd.DataFrame, Estimate]:
    """Of every two seeds, and their mean agreement beyond chance."""
    import pandas as pd

    rows, between = [], np.full((len(bits), len(bits)), np.nan)
    for a, b in pairs_of(len(bits)):
        found = overlap(bits[a], bits[b], size)
        between[a, b] = between[b, a] = found.kappa
        rows.append(
            {"seed": a, "other": b, "jaccard": found.jaccard, "chance": found.chance,
             "kappa": found.kappa}
        )  # fmt: skip
    columns = ["seed", "other", "jaccard", "chance", "kappa"]
    return pd.DataFrame(rows, columns=columns), jackknifed_pairs(between, level)
