"""Head sets: how many heads, drawn at random, can be disabled at once?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.errors import ParameterError
from bertology.metrics import find_metric
from bertology.parameters import parameter
from bertology.results.comparison import extreme
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate
from bertology.stats.paired import influences, simultaneous
from bertology.studies.ablation.head_ablation import HeadAblation
from bertology.studies.designs.answered import Answered
from bertology.studies.designs.blocks import in_order
from bertology.studies.study import Context, Needs, Study

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

__all__ = ["HeadSets", "HeadSetsResult"]

Floats = NDArray[np.float64]


class HeadSetsResult(Result):
    """Scores with random sets of heads disabled, against the intact model.

    Table `sizes`: one row per number of heads, the mean over its sets. `examples_low` and
    `examples_high` bound the difference for these very sets, over examples; `simultaneous_low` and
    `simultaneous_high` for any set of the size, over examples and sets, for all sizes together.
    Table `sets`: one row per set, as in head-ablation.
    """

    def evidence(self) -> dict[str, Estimate]:
        """Quantities for claims; none where the intact model is no better than a constant."""
        facts = self.arrays.attrs
        if not facts["informed"]:
            return {}
        n, level = int(facts["examples"]), float(facts["level"])
        sizes, sets = (t[t["heads"] > 1] for t in (self.tables["sizes"], self.tables["sets"]))
        few = sizes[sizes["heads"] <= facts["heads_of_a_layer"]]
        found = {}
        if len(few):
            found["largest_loss_of_several_heads"] = extreme(few, n=n, level=level, largest=False)
        if len(sets):
            found["best_set_gain"] = extreme(sets, n=n, level=level)
        return found

    def headline(self) -> str:
        """The intact score, and how many heads are surely not missed."""
        facts, sizes = self.arrays.attrs, self.tables["sizes"]
        harmless = (sizes["simultaneous_low"] > -facts["margin"]).cumprod().astype(bool)
        most = sizes["heads"][harmless].max() if harmless.any() else 0
        return (
            f"Intact {facts['metric']}: {facts['intact']:.4g} over {facts['examples']} examples. "
            f"Sets that surely cost less than {facts['margin']:g}: up to {most} heads"
        )

    def why_not(self) -> str | None:
        """Claims are about models that have learned their task."""
        if self.arrays.attrs["informed"]:
            return None
        return "not judged: the intact model does not surely beat a constant answer"

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """The score against the number of heads that are disabled."""
        return {"sizes": self._draw}

    def captions(self) -> Mapping[str, str]:
        """What the figure shows."""
        return {
            "sizes": "To the right: how many heads are disabled at once, doubling from mark to "
            f"mark. Upwards: the {self.arrays.attrs['metric']} of the task in points. Small grey "
            "dots are single random sets, large dots their mean with its interval; as long as they "
            "stay at the line of the intact model, so many heads are not missed."
        }

    def _draw(self) -> Figure:
        from bertology.report.curves import Draws, dose_curve

        facts, sets = self.arrays.attrs, self.tables["sets"]
        intact = float(facts["intact"])
        draws = [
            Draws(
                int(row["heads"]),
                100 * sets["score"][sets["heads"] == row["heads"]],
                100 * row["score"],
                100 * (intact + row["simultaneous_low"]),
                100 * (intact + row["simultaneous_high"]),
            )
            for row in self.tables["sizes"].to_dict("records")
        ]
        lines = {"intact": 100 * intact}
        if "constant" in facts:
            lines["constant\n answer"] = 100 * float(facts["constant"])
        corpus = (self.provenance.corpus or {}).get("name")
        model = str(self.provenance.model.get("name")).rstrip("/").rsplit("/", 1)[-1]
        return dose_curve(
            draws,
            title=f"Disabling random sets of heads\n{model} on {corpus}",
            xlabel=f"heads disabled at once (of {facts['heads_in_all']})",
            ylabel=f"{facts['metric']} in points",
            lines=lines,
            note="Small dots: one set each. Large dots: their mean; its line is the interval of "
            "the change from intact, over examples and sets, for all sizes together.",
        )


@dataclass(frozen=True)
class HeadSets(Study[HeadSetsResult]):
    """How many heads, drawn at random, can be disabled at once?

    Method: for each number of heads, several different sets are drawn by `seed` and disabled as in
    head-ablation; the task is scored again on the same examples. The mean difference of a size has
    two sources of error, which examples and which sets, and its bounds allow for both: over
    examples as in head-ablation, over sets by Student's t, for all sizes together.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), sections 4.6 and 5 ("both single and
    multiple heads"). Limits: heads drawn at random are no pruning method, which would choose them;
    claims are judged only where the intact model beats a constant answer.
    """

    version: ClassVar[int] = 3  # two classes by Matthews' correlation
    needs: ClassVar[Needs] = HeadAblation.needs
    result_type: ClassVar[type[Result]] = HeadSetsResult

    sizes: tuple[int, ...] = parameter(
        (), "Numbers of heads; 1,2,4 and so on up to half of all if not given."
    )
    sets: int = parameter(10, "Different sets of each size.", minimum=2)
    method: str = parameter(
        "uniform", "What a disabled head gives.", choices=("uniform", "zero", "mean")
    )
    metric: str | None = parameter(None, "Score to use; the task's main one if not given.")
    margin: float = parameter(
        0.01, "Losses of the score smaller than this count as harmless.", minimum=0.0
    )
    resamples: int = parameter(2000, "Bootstrap resamples.", minimum=100)
    level: float = parameter(0.95, "Confidence level.", minimum=0.5, maximum=0.999)
    seed: int = parameter(0, "Seed of the sets and of the resampling.", minimum=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric is not None:
            find_metric(self.metric)
        if any(size < 1 for size in self.sizes) or len(set(self.sizes)) < len(self.sizes):
            raise ParameterError("sizes", "HeadSets", "be different numbers from 1", self.sizes)

    # The work ----------------------------------------------------------------------------------

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """There must be so many heads; the rest is as in head-ablation."""
        shape = encoder.shape
        total = shape.layers * shape.heads
        if any(size > total for size in self.sizes):
            raise ParameterError("sizes", "HeadSets", f"be at most {total}, all heads", self.sizes)
        self._ablation(shape).check(encoder, corpus)

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """Blocks of examples."""
        return self._ablation(shape).parts(shape, corpus)

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """One step for each example."""
        return self._ablation(shape).steps(part, shape, corpus)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Logits of the intact model and under every set, over one block of examples."""
        shape = encoder.shape
        data = self._ablation(shape).measure(encoder, corpus, part, context)
        counts = {"heads_of_a_layer": shape.heads, "heads_in_all": shape.layers * shape.heads}
        return data.assign_attrs(counts)

    def _ablation(self, shape: Shape) -> HeadAblation:
        """The sweep over all sets."""
        total = shape.layers * shape.heads
        doublings = [2**i for i in range(total.bit_length()) if 2 * 2**i <= total]
        drawn = [
            "+".join(f"{head // shape.heads}.{head % shape.heads}" for head in heads)
            for size in sorted(self.sizes) or doublings or [1]
            for heads in self._draw(size, total)
        ]
        return self._sweep(drawn)

    def _sweep(self, sets: Sequence[str]) -> HeadAblation:
        return HeadAblation(
            method=self.method, heads=False, layers=False, sets=tuple(sets), metric=self.metric,
            first_order=False, margin=self.margin, resamples=self.resamples, level=self.level,
            seed=self.seed,
        )  # fmt: skip

    def _draw(self, size: int, total: int) -> Iterator[tuple[int, ...]]:
        """Different sets of `size` heads: all of them where there are no more than asked for."""
        if comb(total, size) <= self.sets:
            yield from combinations(range(total), size)
            return
        rng, seen = np.random.default_rng([self.seed, size]), set[tuple[int, ...]]()
        while len(seen) < self.sets:
            heads = tuple(sorted(rng.choice(total, size, replace=False).tolist()))
            if heads not in seen:
                seen.add(heads)
                yield heads

    # The conclusion ----------------------------------------------------------------------------

    def conclude(
        self, measured: Mapping[str, xr.Dataset], provenance: Provenance
    ) -> HeadSetsResult:
        """Differences by set, and by size over its sets."""
        import xarray as xr

        answered = Answered.of(in_order(measured))
        names = [name.removeprefix("set ") for name in answered.names[1:]]
        tables, compared = self._sweep(names).compared(answered)
        sets = tables["sets"]
        sets.insert(0, "heads", [name.count("+") + 1 for name in sets["set"]])
        sizes, constant = self._by_size(answered, sets)
        kept = {k: answered.facts[k] for k in ("heads_of_a_layer", "heads_in_all")}
        arrays = xr.Dataset(attrs={**compared.attrs, **kept, **constant})
        return HeadSetsResult(provenance, {"sizes": sizes, "sets": sets}, arrays)

    def _by_size(
        self, answered: Answered, sets: pd.DataFrame
    ) -> tuple[pd.DataFrame, dict[str, float]]:
        import pandas as pd

        metric, labels = answered.metric, answered.labels
        variants = answered.of_variants(range(1, len(answered.names)))
        psi, reach = influences(metric, answered.intact(), variants)  # (sets, N), (sets,)
        heads = sets["heads"].to_numpy()
        sizes = np.unique(heads)
        mean_psi = np.stack([psi[heads == size].mean(0) for size in sizes])
        reaches = np.array([reach[heads == size].max() for size in sizes])
        bounds = simultaneous(
            mean_psi, reaches, level=self.level, resamples=self.resamples, seed=self.seed
        )
        value = mean_psi.mean(1)
        total = int(answered.facts["heads_in_all"])
        among = [self._over_sets(psi[heads == s].mean(1), int(s), total, len(sizes)) for s in sizes]
        table = pd.DataFrame(
            {
                "heads": sizes,
                "sets": [int((heads == size).sum()) for size in sizes],
                "score": [float(sets["score"][heads == size].mean()) for size in sizes],
                "difference": value,
                "examples_low": bounds.low,
                "examples_high": bounds.high,
                # Two independent sources of error: their reaches add up as squares do.
                "simultaneous_low": value - np.hypot(value - bounds.low, among),
                "simultaneous_high": value + np.hypot(bounds.high - value, among),
            }
        )
        if not answered.classes:
            return table, {}
        kinds, counts = np.unique(labels, return_counts=True)
        always = metric.statistics(np.full(labels.shape, kinds[counts.argmax()]), labels)
        return table, {"constant": float(metric.finish(always.sum(axis=0)))}

    def _over_sets(self, means: Floats, size: int, total: int, sizes: int) -> float:
        """How far the mean over sets may lie from that over all sets of the size."""
        from scipy.special import stdtrit

        drawn, possible = means.size, comb(total, size)
        if drawn >= possible:
            return 0.0
        error = means.std(ddof=1) * np.sqrt((1 - drawn / possible) / drawn)
        tail = (1 - self.level) / 2 / sizes  # Bonferroni: for all sizes together
        return float(stdtrit(drawn - 1, 1 - tail) * error)
