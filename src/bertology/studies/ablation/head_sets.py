"""Head sets: how many heads, drawn at random, can be disabled at once?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.arrays import Floats
from bertology.errors import ParameterError
from bertology.metrics import find_metric
from bertology.parameters import parameter
from bertology.report.figures import Draws, dose_curve
from bertology.results.answers import of_row, points
from bertology.results.comparison import extreme
from bertology.results.drawing import Drawing
from bertology.results.number_text import number_text
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.paired import influences, simultaneous
from bertology.studies.designs.sweeps import Answers, Disabled, HeadSweep, SweepResult
from bertology.studies.study import Context

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape


class HeadSetsResult(SweepResult):
    """Scores with random sets of heads disabled, against the intact model.

    Table `sizes`: one row per number of heads, the mean over its sets. `examples_low` and
    `examples_high` bound the difference for these very sets, over examples; `simultaneous_low` and
    `simultaneous_high` for any set of the size, over examples and sets, for all sizes together;
    `alone_low` and `alone_high` for this size alone. Table `sets`: one row per set, as in
    head-ablation.
    """

    @property
    def answer(self) -> str:
        """How many heads are surely not missed, and what so many change."""
        if self.uninformed:
            return self.uninformed
        facts, sizes = self.facts, self.tables["sizes"]
        # From few heads to many, until one number cannot be told harmless: no correction is due.
        harmless = (sizes["alone_low"] > -facts["margin"]).cumprod().astype(bool)
        row = sizes[harmless].iloc[-1] if harmless.any() else sizes.iloc[0]
        heads, of = int(row["heads"]), facts.get("heads_in_all")
        margin = number_text(100 * float(facts["margin"]), ".3g")
        margin += " point" if margin == "1" else " points"
        what = f"{heads} head{'s' * (heads > 1)} drawn at random"
        change = points(of_row(row, ("difference", "alone_low", "alone_high")))
        if not harmless.any():
            return (
                f"No number of heads is surely harmless: without {what} the {facts['metric']} "
                f"changes by {change}, and less than {margin} would be harmless."
            )
        return (
            f"Up to {heads} heads of {of} can surely be disabled for less than {margin}: "
            f"without {what} the {facts['metric']} changes by {change}."
        )

    def headline(self) -> str:
        """The intact score."""
        score = number_text(100 * float(self.facts["intact"]), ".1f")
        metric = find_metric(self.facts["metric"]).in_hundred
        return f"Intact {metric}: {score} over {self.facts['examples']} examples"

    def drawings(self) -> Sequence[Drawing]:
        """The score against the number of heads that are disabled."""
        caption = (
            "To the right: how many heads are disabled at once, doubling from mark to mark. "
            f"Upwards: {find_metric(self.facts['metric']).in_hundred} of the task. Small grey dots "
            "are single random sets, large dots their mean with its interval; as long as they stay "
            "at the line of the intact model, so many heads are not missed."
        )
        return [Drawing("sizes", self._draw, caption)]

    def _draw(self) -> Figure:
        facts, sets = self.facts, self.tables["sets"]
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
        return dose_curve(
            draws,
            title=f"Disabling random sets of heads\n{self.about}",
            xlabel=f"heads disabled at once (of {facts['heads_in_all']})",
            ylabel=find_metric(facts["metric"]).in_hundred,
            lines=lines,
            note="Small dots: one set each. Large dots: their mean; its line is the interval of "
            "the change from intact, over examples and sets, for all sizes together.",
        )


@dataclass(frozen=True)
class HeadSets(HeadSweep):
    """How many heads, drawn at random, can be disabled at once?

    Method: for each number of heads, several different sets are drawn by `seed` and disabled as in
    head-ablation; the task is scored again on the same examples. The mean difference of a size has
    two sources of error, which examples and which sets, and its bounds allow for both: over
    examples as in head-ablation, over sets by Student's t, for all sizes together.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), sections 4.6 and 5 ("both single and
    multiple heads"). Limits: heads drawn at random are no pruning method, which would choose them;
    claims are judged only where the intact model beats a constant answer.
    """

    version: ClassVar[int] = 5  # exact tests of flips; the loss has bounds and tests too
    result_type: ClassVar[type[Result]] = HeadSetsResult

    sizes: tuple[int, ...] = parameter(
        (), "Numbers of heads; 1,2,4 and so on up to half of all if not given."
    )
    sets: int = parameter(10, "Different sets of each size.", minimum=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(size < 1 for size in self.sizes) or len(set(self.sizes)) < len(self.sizes):
            raise ParameterError("sizes", "HeadSets", "be different numbers from 1", self.sizes)

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """There must be so many heads."""
        super().check(encoder, corpus)
        total = encoder.shape.layers * encoder.shape.heads
        if any(size > total for size in self.sizes):
            raise ParameterError("sizes", "HeadSets", f"be at most {total}, all heads", self.sizes)

    def variants(self, shape: Shape) -> Iterator[Disabled]:
        """Sets of each size, named by their heads: `3.5+7.1`."""
        total = shape.layers * shape.heads
        doublings = [2**i for i in range(total.bit_length()) if 2 * 2**i <= total]
        for size in sorted(self.sizes) or doublings or [1]:
            for drawn in self._draw(size, total):
                heads = tuple(divmod(head, shape.heads) for head in drawn)
                yield Disabled("+".join(f"{i}.{h}" for i, h in heads), heads, "sets")

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

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Logits of the intact model and under every set, over one block of examples."""
        shape, data = encoder.shape, super().measure(encoder, corpus, part, context)
        sizes = [0, *(len(one.heads) for one in self.variants(shape))]
        data = data.assign_coords(size=("variant", sizes))
        counts = {"heads_of_a_layer": shape.heads, "heads_in_all": shape.layers * shape.heads}
        return data.assign_attrs(counts)

    # The conclusion ----------------------------------------------------------------------------

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Differences by set, and by size over its sets."""
        answers = Answers.of(measured)
        heads = next(iter(measured.values()))["size"].to_numpy()[1:]
        sets = self.effects(answers, "sets", {"heads": heads, "set": answers.names[1:]})
        sizes, constant = self._by_size(answers, sets)
        kept = {k: answers.facts[k] for k in ("heads_of_a_layer", "heads_in_all")}
        return self.result(
            provenance,
            {"sizes": sizes, "sets": sets},
            evidence=self._evidence(answers, sizes, sets) if answers.informed else {},
            reasons=answers.reasons,
            facts={**self.facts(answers), **kept, **constant},
        )

    def _evidence(
        self, answers: Answers, sizes: pd.DataFrame, sets: pd.DataFrame
    ) -> dict[str, Estimate]:
        """Several heads at once, up to as many as a layer has."""
        n, found = len(answers.labels), dict[str, Estimate]()
        several, of_sets = sizes[sizes["heads"] > 1], sets[sets["heads"] > 1]
        few = several[several["heads"] <= answers.facts["heads_of_a_layer"]]
        if len(few):
            found["largest_loss_of_several_heads"] = extreme(
                few, n=n, level=self.level, largest=False
            )
        if len(of_sets):
            found["best_set_gain"] = extreme(of_sets, n=n, level=self.level)
        return found

    def _by_size(
        self, answers: Answers, sets: pd.DataFrame
    ) -> tuple[pd.DataFrame, dict[str, float]]:
        import pandas as pd

        metric, labels = answers.metric, answers.labels
        variants = answers.of_variants(answers.rows_of("sets"))
        psi, reach = influences(metric, answers.intact(), variants)  # (sets, N), (sets,)
        heads = sets["heads"].to_numpy()
        sizes = np.unique(heads)
        mean_psi = np.stack([psi[heads == size].mean(0) for size in sizes])
        reaches = np.array([reach[heads == size].max() for size in sizes])
        bounds = simultaneous(
            mean_psi, reaches, level=self.level, resamples=self.resamples, seed=self.seed
        )
        value = mean_psi.mean(1)
        total = int(answers.facts["heads_in_all"])
        all_sizes, alone = (
            [self._over_sets(psi[heads == s].mean(1), int(s), total, of) for s in sizes]
            for of in (len(sizes), 1)
        )
        table = pd.DataFrame(
            {
                "heads": sizes,
                "sets": [int((heads == size).sum()) for size in sizes],
                "score": [float(sets["score"][heads == size].mean()) for size in sizes],
                "difference": value,
                "examples_low": bounds.low,
                "examples_high": bounds.high,
                # Two independent sources of error: their reaches add up as squares do.
                "simultaneous_low": value - np.hypot(value - bounds.low, all_sizes),
                "simultaneous_high": value + np.hypot(bounds.high - value, all_sizes),
                "alone_low": value - np.hypot(value - bounds.alone_low, alone),
                "alone_high": value + np.hypot(bounds.alone_high - value, alone),
            }
        )
        if not answers.classes:
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
