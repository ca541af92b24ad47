"""Attention maps: where does every head of every layer look?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.parameters import parameter
from bertology.results.measures import Measure, column_grid
from bertology.results.result import Provenance, Result
from bertology.studies.designs.blocks import BlockStudy, in_order, start_of, tokens_that_fill_a_gpu
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

__all__ = ["AttentionMaps", "AttentionMapsResult"]

LABELS = {
    "previous": "attention to the previous token",
    "self": "attention to the token itself",
    "next": "attention to the next token",
    "first": "attention to the first token ([CLS] in BERT)",
    "last": "attention to the last token ([SEP] in BERT)",
    "entropy": "entropy of the attention (nats)",
    "distance": "mean distance of the attention (tokens)",
}
_SHARE = ("share of the attention", "High: much of the head's attention goes there.")
_READINGS = {
    "entropy": ("nats", "High: attention is spread over many tokens; 0: each attends to one."),
    "distance": ("tokens", "High: tokens attend to what is far away; low: to what is near."),
}
MEAN_MAP, CELLS = "mean_map", 16
_MEAN_DIMS = ("layer", "head", "from", "to")


class AttentionMapsResult(Result):
    """Statistics of every head, its mean map, and the whole maps of a few examples.

    Table `heads`: one row per head, with every statistic and its interval over examples. Arrays:
    `mean_map` as (layer, head, from, to) on a grid of relative positions; `map_0`, `map_1` … as
    (layer, head, query, key), with the tokens as coordinates.
    """

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """The mean maps, one sheet for each kept example, then a grid for each statistic."""
        kept = [str(n) for n in self.arrays.data_vars if str(n).startswith("map_")]
        sheets = {n.replace("_", "-"): partial(self._sheet, n) for n in kept}
        mean = {"mean-maps": self._mean_sheet} if MEAN_MAP in self.arrays else {}
        return mean | sheets | {name: partial(self._grid, name) for name in LABELS}

    def captions(self) -> Mapping[str, str]:
        """What each figure shows."""
        grid = (
            "One cell for each head: its {}, mean over the tokens of a text, then over texts; "
            "darker is more."
        )
        texts = {name: grid.format(label) for name, label in LABELS.items()}
        sheet = (
            "All attention maps of one text, layers downwards, heads to the right. In each map "
            "rows are the tokens that attend, columns those attended to; darker is more, each map "
            "on its own scale. Stripes are tokens that all others look at, diagonals neighbours."
        )
        texts["mean-maps"] = (
            "The mean map of each head over all texts. In each map rows are places in the text "
            "that attend, columns places attended to, both from the start of the text to its end; "
            "darker is more, each map on its own scale. A diagonal attends to neighbours, a "
            "stripe at the left edge to [CLS], one at the right edge to the last [SEP]."
        )
        return {name: texts.get(name, sheet) for name in self.figures()}

    def measures(self) -> Sequence[Measure]:
        """Every statistic by head with its interval, and its mean by layer."""
        table = self.tables["heads"]
        of_heads, of_layers = [], []
        for name, label in LABELS.items():
            if name not in table:
                continue
            title = label[0].upper() + label[1:].partition(" (")[0]
            values = column_grid(table, name)
            low, high = (column_grid(table, f"{name}_{bound}") for bound in ("low", "high"))
            unit, reading = _READINGS.get(name, _SHARE)
            measure = Measure(
                f"attention-{name}", title, values, unit, low=low, high=high, reading=reading
            )
            of_heads.append(measure)
            of_layers.append(
                Measure(
                    f"layer-attention-{name}",
                    f"{title}, mean over the layer's heads",
                    values.mean(axis=1),
                    unit,
                    reading=reading,
                )
            )
        return [*of_heads, *of_layers]

    @property
    def _model(self) -> str:
        return str(self.provenance.model.get("name")).rstrip("/").rsplit("/", 1)[-1]

    def _mean_sheet(self) -> Figure:
        from bertology.report.figures import map_sheet

        return map_sheet(
            self.arrays[MEAN_MAP].to_numpy(),
            title=f"Mean self-attention of {self._model}",
            note="In each map rows attend to columns; darker is more. Both run from the start of "
            f"the text to its end; mean over {self.arrays.attrs['examples']} examples.",
        )

    def _sheet(self, name: str) -> Figure:
        from bertology.report.figures import map_sheet

        maps = self.arrays[name]
        tokens = " ".join(str(t) for t in maps.attrs["tokens"])
        return map_sheet(
            maps.to_numpy(),
            title=f"Self-attention of {self._model}",
            note=f"In each map rows attend to columns; darker is more. {tokens}",
        )

    def _grid(self, name: str) -> Figure:
        from bertology.report.figures import head_grid

        grid = self.tables["heads"].pivot(index="layer", columns="head", values=name)
        corpus = (self.provenance.corpus or {}).get("name")
        title = LABELS[name][0].upper() + LABELS[name][1:]
        return head_grid(grid.to_numpy(), title=f"{title}\nmean over {corpus}", label=LABELS[name])


@dataclass(frozen=True)
class AttentionMaps(BlockStudy[AttentionMapsResult]):
    """Where does every head of every layer look?

    Method: every example is run once; each head's attention to the previous, same and next token,
    to the first and last token, its entropy and its mean distance are averaged over the real
    queries of an example, then over examples, without keeping the maps. The mean map of a head is
    over all examples, laid on 16 × 16 cells of relative positions. The maps of the first few
    examples are kept whole. Intervals are normal ones over examples.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 3; Clark et al. (2019) for
    the statistics. Limits: attention to a token is not yet use of what it carries.
    """

    version: ClassVar[int] = 3
    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns"}), fields=frozenset({"text"}), head="base"
    )
    result_type: ClassVar[type[Result]] = AttentionMapsResult
    block: ClassVar[int] = 256
    block_on_gpu: ClassVar[int | None] = 512

    keep: int = parameter(2, "Keep the whole maps of so many examples.", minimum=0, maximum=64)
    level: float = parameter(0.95, "Confidence level.", minimum=0.5, maximum=0.999)

    def tokens_on_gpu(self, shape: Shape) -> int:
        """Many: little is kept of each."""
        return tokens_that_fill_a_gpu(shape)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Sums and sums of squares of every statistic; the first part also keeps maps."""
        import xarray as xr

        from bertology.model.reducers.class_attention import Several
        from bertology.model.reducers.mean_maps import RelativeMaps
        from bertology.model.reducers.statistics import AttentionStatistics

        start, texts = start_of(part), self.of_block(part, corpus).texts
        statistics, maps = AttentionStatistics(encoder.shape), RelativeMaps(encoder.shape, CELLS)
        both = Several([statistics, maps])
        for batch in encoder.batches(texts, tokens_per_batch=context.batch_tokens):
            encoder.run(batch, reduce={"layer.*.head.*.pattern": both})
            context.advance(len(batch))
        sums, squares, examples = statistics.sums()
        dims = ("statistic", "layer", "head")
        data = xr.Dataset(
            {
                "sum": (dims, sums.numpy()),
                "square": (dims, squares.numpy()),
                MEAN_MAP: (_MEAN_DIMS, maps.sums()[0].numpy()),
            },
            coords={"statistic": list(AttentionStatistics.NAMES)},
            attrs={"examples": examples, "first": start},
        )
        for i, text in enumerate(texts[: self.keep] if start == 0 else []):
            data[f"map_{i}"] = _whole_map(encoder, text, i)
        return data

    def conclude(
        self, measured: Mapping[str, xr.Dataset], provenance: Provenance
    ) -> AttentionMapsResult:
        """Means and intervals over all examples."""
        import pandas as pd
        import xarray as xr
        from scipy.special import stdtrit

        n, names, totals = 0, list[str](), list[Any]([0.0, 0.0, 0.0])
        kept: dict[Any, Any] = {}
        for part in in_order(measured):
            n += int(part.attrs["examples"])
            sums = (part[v].to_numpy() for v in ("sum", "square", MEAN_MAP))
            totals = [total + new for total, new in zip(totals, sums, strict=True)]
            kept |= {k: v for k, v in part.data_vars.items() if str(k).startswith("map_")}
            names = [str(s) for s in part["statistic"].to_numpy()]
        mean, square, maps = (total / n for total in totals)
        spread = np.sqrt(np.maximum(square - mean**2, 0) / max(n - 1, 1))
        # Student's; of a single example there is no interval.
        reach = float(stdtrit(n - 1, 0.5 + self.level / 2)) * spread if n > 1 else spread + np.nan
        layers, heads = np.indices(mean.shape[1:])
        columns: dict[str, Any] = {"layer": layers.ravel(), "head": heads.ravel()}
        for i, name in enumerate(names):
            columns[name] = mean[i].ravel()
            columns[f"{name}_low"] = (mean[i] - reach[i]).ravel()
            columns[f"{name}_high"] = (mean[i] + reach[i]).ravel()
        kept = {MEAN_MAP: xr.DataArray(maps.astype(np.float32), dims=_MEAN_DIMS), **kept}
        arrays = xr.Dataset(kept, attrs={"examples": n, "level": self.level})
        return AttentionMapsResult(provenance, {"heads": pd.DataFrame(columns)}, arrays)


def _whole_map(encoder: Encoder, text: Any, index: int) -> xr.DataArray:
    """All maps of one example: (layer, head, query, key)."""
    import xarray as xr

    batch = encoder.encode(text, too_long="truncate")
    trace = encoder.run(batch, record="layer.*.head.*.pattern")
    maps = trace["layer.*.head.*.pattern"][:, 0].float().cpu().numpy()
    dims = ("layer", "head", f"query_{index}", f"key_{index}")
    return xr.DataArray(maps, dims=dims, attrs={"tokens": trace.tokens[0]})
