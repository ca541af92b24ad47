"""Attention change: which heads look elsewhere than they did before training?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.errors import CapabilityError, ParameterError
from bertology.parameters import parameter
from bertology.results.measures import Measure, column_grid
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate, mean_interval
from bertology.stats.partial_means import PartialMeans, partial_means
from bertology.stats.row_blocks import RowBlocks
from bertology.studies.designs.blocks import SampledStudy, in_order, need_two_examples, start_of
from bertology.studies.designs.spooled import Spooled
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

__all__ = ["AttentionChange", "AttentionChangeResult"]

LAST = 2  # the layers that the claim is about
Floats = NDArray[np.float64]
Rows = NDArray[Any] | RowBlocks  # by examples
_MEASURES = ("change", "divergence", "neighbour")
_LABELS = {
    "change": "1 − cosine similarity of the maps\n(darker: greater difference)",
    "divergence": "Jensen–Shannon divergence in nats\n(darker: greater difference)",
}


class AttentionChangeResult(Result):
    """How far each head's maps moved between two models.

    Tables `heads` and `layers`: `cosine` of the maps, `change` (1 - cosine) and `divergence`
    (Jensen-Shannon, nats), each with its interval over examples; simultaneous bounds of `change`
    hold for all rows together. Arrays: what the claim is judged on, as (value, low, high).
    """

    def evidence(self) -> dict[str, Estimate]:
        """Quantities for claims; none where the two models have nothing in common."""
        facts = self.arrays.attrs
        if not facts["related"] or self._same:
            return {}
        n, level = int(facts["examples"]), float(facts["level"])
        found = {}
        for name, bounds in self.arrays.data_vars.items():
            value, low, high = map(float, bounds.values)
            found[str(name)] = Estimate(value, low, high, n, level)
        return found

    def why_not(self) -> str | None:
        """Claims are about a model and what became of it."""
        if self._same:
            return "not judged: this is the same model twice"
        if self.arrays.attrs["related"]:
            return None
        return "not judged: heads of the same number are no more alike than others"

    def headline(self) -> str:
        """How alike the two are over all heads."""
        cosine = float(self.tables["heads"]["cosine"].mean())
        examples = self.arrays.attrs["examples"]
        return f"Mean cosine with the maps of {self._before}: {cosine:.4g} over {examples} examples"

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """The paper's Figure 5, its profile over layers, and the same by divergence."""
        return {
            "heads": partial(self._grid, "change"),
            "layers": self._profile,
            "divergence": partial(self._grid, "divergence"),
        }

    def captions(self) -> Mapping[str, str]:
        """What each figure shows."""
        models = f"this model and {self._before}"
        return {
            "heads": f"One cell for each head: how far its attention maps lie apart in {models}, "
            "as 1 − cosine similarity, mean over examples. 0 means the same maps; darker heads "
            "look elsewhere than before.",
            "layers": f"One bar for each layer: how far the maps of its heads lie apart in "
            f"{models}, as 1 − cosine similarity, with intervals that hold for all layers "
            "together. Bars that grow to the right mean that later layers changed more.",
            "divergence": "The same by another measure, the Jensen–Shannon divergence of what each "
            "token attends to, in nats: 0 means the same attention, 0.69 (ln 2) nothing in common.",
        }

    def measures(self) -> Sequence[Measure]:
        """How far each head and each layer moved."""
        found = []
        for name, prefix, one in (("heads", "", "head"), ("layers", "layer-", "layer")):
            table = self.tables[name]
            found += [
                Measure(
                    f"{prefix}change",
                    f"How far the {one}'s attention moved from {self._before}",
                    column_grid(table, "change"),
                    unit="1 − cosine similarity",
                    low=column_grid(table, "simultaneous_low"),
                    high=column_grid(table, "simultaneous_high"),
                    reading=f"0: the same maps as before; high: the {one} looks elsewhere.",
                ),
                Measure(
                    f"{prefix}divergence",
                    f"Divergence of the {one}'s attention from {self._before}",
                    column_grid(table, "divergence"),
                    unit="nats",
                    low=column_grid(table, "divergence_low"),
                    high=column_grid(table, "divergence_high"),
                    reading="0: the same attention as before; 0.69 (ln 2): nothing in common.",
                ),
            ]
        return sorted(found, key=lambda m: not m.of_heads)

    @property
    def _same(self) -> bool:
        before, own = self.provenance.others.get("before", {}), self.provenance.model
        return bool(before.get("fingerprint", "") == own.get("fingerprint"))

    @property
    def _before(self) -> str:
        return _short(self.provenance.others["before"]["name"])

    @property
    def _title(self) -> str:
        corpus = (self.provenance.corpus or {}).get("name")
        return f"{_short(self.provenance.model.get('name'))} against {self._before} on {corpus}"

    def _grid(self, measure: str) -> Figure:
        from bertology.report.figures import head_grid

        grid = self.tables["heads"].pivot(index="layer", columns="head", values=measure)
        return head_grid(
            grid.to_numpy(),
            title=f"How far each head's attention moved\n{self._title}",
            label=_LABELS[measure],
        )

    def _profile(self) -> Figure:
        from bertology.report.figures import layer_bars

        rows = self.tables["layers"]
        return layer_bars(
            *(rows[c].to_numpy() for c in ("change", "simultaneous_low", "simultaneous_high")),
            title=f"How far the attention of each layer moved\n{self._title}",
            label="1 − cosine of the maps,\nmean over heads",
        )


@dataclass(frozen=True)
class AttentionChange(SampledStudy[AttentionChangeResult]):
    """Which heads look elsewhere than they did before training?

    Method: the model and the one `before` it (of the same build and tokenizer) read the same
    texts. For every head and example, the two L × L maps are flattened and their cosine is taken;
    beside it the Jensen-Shannon divergence of each query's two distributions, averaged over
    queries. Padding enters neither. Means are over at most `examples` examples, drawn by
    `seed`; intervals are Student's, the simultaneous ones hold for all rows and skewed changes.

    Claims are judged only where the two models are related: where heads of the same number are
    surely more alike than a head and the other model's next one.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.3, Figure 5. Limits: a layer
    whose input has changed looks elsewhere even with its old weights, so change adds up towards
    the top; and intervals are over texts: the same training once more may move other heads.
    """

    version: ClassVar[int] = 1
    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns"}), fields=frozenset({"text"}), head="base"
    )
    help_options: ClassVar[tuple[str, str]] = (
        "--before bertology-mini@2000",
        "--before user/the-same-before",
    )
    result_type: ClassVar[type[Result]] = AttentionChangeResult

    before: str = parameter("", "The model to compare with, as it was before.", model=True)
    resamples: int = parameter(2000, "Draws behind simultaneous bounds.", minimum=100)
    level: float = parameter(0.95, "Confidence level.", minimum=0.5, maximum=0.999)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.before:
            raise ParameterError(
                "before",
                "AttentionChange",
                "name the model to compare with, such as the one that this one was trained from "
                "(--before MODEL on the command line)",
                self.before,
            )

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """All heads must be there, and two examples for an interval."""
        if encoder.numbering.removed:
            raise CapabilityError(
                f"{encoder.name!r} has heads pruned away; they have no maps to compare.",
                hint="Run the study on the model it was pruned from.",
            )
        need_two_examples(corpus)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """The measures of every example and head in one block."""
        import xarray as xr

        from bertology.model.reducers.map_comparison import compare_maps

        start, texts = start_of(part), self.of_block(part, corpus).texts
        found = compare_maps(
            encoder,
            context.others["before"],
            texts,
            tokens_per_batch=context.batch_tokens,
            done=context.advance,
        )
        measures = (found.cosine_distance, found.divergence, found.distance_to_neighbour)
        dims = ("example", "layer", "head")
        return xr.Dataset(
            {n: (dims, m.numpy()) for n, m in zip(_MEASURES, measures, strict=True)},
            coords={"example": np.arange(start, start + len(texts))},
        )

    def conclude(
        self, measured: Mapping[str, xr.Dataset], provenance: Provenance
    ) -> AttentionChangeResult:
        """Means over examples by head and by layer, and the test of the last two layers."""
        import xarray as xr

        seen = _Seen.of(in_order(measured))
        examples, layers = seen.by_layer["change"].shape
        where = np.indices((layers, seen.nearer.size // layers)).reshape(2, -1)
        of_heads = {
            name: RowBlocks(partial(map, spooled.rows, range(layers)))
            for name, spooled in seen.by_head.items()
        }
        of_layers = {name: values.T for name, values in seen.by_layer.items()}
        tables = {
            "heads": self._table({"layer": where[0], "head": where[1]}, **of_heads),
            "layers": self._table({"layer": np.arange(layers)}, **of_layers),
        }
        last = self._last_layers(seen.by_layer["change"])
        arrays = xr.Dataset({name: ("bound", bounds) for name, bounds in last.items()})
        # Over heads and not examples: unrelated models are as (un)like on every example.
        related = seen.nearer.size > 1 and mean_interval(seen.nearer, self.level).low > 0
        arrays.attrs = {"examples": examples, "level": self.level, "related": int(related)}
        return AttentionChangeResult(provenance, tables, arrays)

    def _table(self, names: Mapping[str, Any], change: Rows, divergence: Rows) -> pd.DataFrame:
        """One row for each of those that changed."""
        import pandas as pd

        moved, apart = (self._means(values) for values in (change, divergence))
        return pd.DataFrame(
            {
                **names,
                "cosine": 1 - moved.value,
                "cosine_low": 1 - moved.high,
                "cosine_high": 1 - moved.low,
                "change": moved.value,
                "simultaneous_low": moved.simultaneous_low,
                "simultaneous_high": moved.simultaneous_high,
                "divergence": apart.value,
                "divergence_low": apart.low,
                "divergence_high": apart.high,
            }
        )

    def _last_layers(self, change: Floats) -> dict[str, list[float]]:
        """What the last two layers changed beyond the others: (value, low, high) each.

        `change` is (examples, layers). Against the largest other layer, the bounds hold for all
        comparisons together, so the smallest of each covers the smallest true difference.
        """
        if change.shape[1] <= LAST:
            return {}
        last, others = change[:, -LAST:], change[:, :-LAST]
        mean = mean_interval(last.mean(1) - others.mean(1), self.level)
        over = self._means((last.mean(1, keepdims=True) - others).T)
        each = self._means((last[:, :, None] - others[:, None]).reshape(len(change), -1).T)
        found = {"last_two_over_mean": [mean.value, mean.low, mean.high]}
        for name, m in (("last_two_over_largest", over), ("each_of_last_two_over_largest", each)):
            bounds = (m.value, m.simultaneous_low, m.simultaneous_high)
            found[name] = [float(b.min()) for b in bounds]
        return found

    def _means(self, rows: Rows) -> PartialMeans:
        return partial_means(rows, level=self.level, resamples=self.resamples, seed=self.seed)


@dataclass(frozen=True)
class _Seen:
    """What the examples gave: measures of each head on disk, those of each layer at hand."""

    by_head: dict[str, Spooled]  # (example, layer, head) of each measure
    by_layer: dict[str, Floats]  # (example, layer), mean over heads
    nearer: Floats  # (heads,): how much more alike heads of the same number are than neighbours

    @classmethod
    def of(cls, parts: Iterator[xr.Dataset]) -> _Seen:
        """Go through the parts once."""
        names = _MEASURES[:2]
        by_head = {name: Spooled() for name in names}
        by_layer: dict[str, list[Floats]] = {name: [] for name in names}
        nearer, examples = 0.0, 0
        for part in parts:
            change, divergence, neighbour = (part[m].to_numpy().astype(float) for m in _MEASURES)
            for name, values in zip(names, (change, divergence), strict=True):
                by_head[name].append(values)
                by_layer[name].append(values.mean(2))
            nearer, examples = nearer + (neighbour - change).sum(0), examples + len(change)
        joined = {name: np.concatenate(values) for name, values in by_layer.items()}
        return cls(by_head, joined, np.ravel(nearer / examples))


def _short(name: Any) -> str:
    return str(name).rstrip("/").rsplit("/", 1)[-1]
