"""Attention maps: where does every head of every layer look?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import map_sheet
from bertology.results.answers import Found, plain, strongest
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.ranking import Ranking
from bertology.results.result import Result
from bertology.studies.designs.blocks import Blocks
from bertology.studies.designs.parts import gather, in_order, start_of
from bertology.studies.designs.tables import head_table
from bertology.studies.study import MAPS_OF_TEXTS, Context, Needs

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.batch import Text
    from bertology.model.encoder import Encoder


_PATTERNS = "layer.*.head.*.pattern"


def whole_map(encoder: Encoder, text: Text, *, suffix: str = "") -> xr.DataArray:
    """All maps of one text: (layer, head, query, key), with its tokens.

    `suffix` is added to the last two names, where maps of several sizes are kept together.
    """
    import xarray as xr

    trace = encoder.run(encoder.encode(text, too_long="truncate"), record=_PATTERNS)
    maps = trace[_PATTERNS][:, 0].float().cpu().numpy()
    dims = ("layer", "head", f"query{suffix}", f"key{suffix}")
    return xr.DataArray(maps, dims=dims, attrs={"tokens": trace.tokens[0]})


_SHARE = ("share of the attention", "High: much of the head's attention goes there.")
# Statistic: title of the measure, unit, what a high value means.
_STATISTICS = {
    "previous": ("Attention to the previous token", *_SHARE),
    "self": ("Attention to the token itself", *_SHARE),
    "next": ("Attention to the next token", *_SHARE),
    "first": ("Attention to the first token, [CLS] in BERT", *_SHARE),
    "last": ("Attention to the last token, [SEP] in BERT", *_SHARE),
    "entropy": (
        "Entropy of the attention",
        "nats",
        "High: attention is spread over many tokens; 0: each attends to one.",
    ),
    "distance": (
        "Mean distance of the attention",
        "tokens",
        "High: tokens attend to what is far away; low: to what is near.",
    ),
}
_NEARBY = {"previous": "the token before", "self": "the token itself", "next": "the next token"}
MEAN_MAP, CELLS = "mean_map", 16
_MEAN_DIMS = ("layer", "head", "from", "to")
_MEAN_CAPTION = (
    "The mean map of each head over all texts. In each map rows are places in the text that "
    "attend, columns places attended to, both from the start of the text to its end; darker is "
    "more, each map on its own scale. A diagonal attends to neighbours, a stripe at the left edge "
    "to [CLS], one at the right edge to the last [SEP]."
)
_SHEET_CAPTION = (
    "All attention maps of one text, layers downwards, heads to the right. In each map rows are "
    "the tokens that attend, columns those attended to; darker is more, each map on its own scale. "
    "Stripes are tokens that all others look at, diagonals neighbours. Below, with their tokens, "
    "the heads that give most to the first and last token, to neighbours, and to tokens farther "
    "away."
)

_ENDS = ("first", "last")


class AttentionMapsResult(Result):
    """Statistics of every head, its mean map, and the whole maps of a few examples.

    Table `heads`: one row per head, with every statistic and its interval over examples. Arrays:
    `mean_map` as (layer, head, from, to) on a grid of relative positions; `map_0`, `map_1` … as
    (layer, head, query, key), with the tokens as coordinates.
    """

    lead: ClassVar[int] = 8
    place: ClassVar[int] = 2

    @property
    def answer(self) -> str:
        """The head that gives most to one end of the text, and the one that gives most nearby."""
        (place, end), (near, by) = map(self._most_of, (_ENDS, ("previous", "self", "next")))
        return (
            f"Of all heads, {end.name} attends most to the {place} token, with "
            f"{plain(end.estimate, '.2f')} of its attention; {by.name} attends most to "
            f"{_NEARBY[near]}, with {plain(by.estimate, '.2f')}."
        )

    def ranking(self, name: str) -> Ranking | None:
        """Heads by what they give to that end of the text of which the answer speaks."""
        return self._most_of(_ENDS)[0] if name == "heads" else super().ranking(name)

    def _most_of(self, names: Sequence[str]) -> tuple[str, Found]:
        return max(((n, self._most(n)) for n in names), key=lambda one: one[1].estimate.value)

    def _most(self, name: str) -> Found:
        n, level = int(self.facts["examples"]), float(self.facts["level"])
        return strongest(self._of_heads(name), n=n, level=level, together=False)

    def measures(self) -> Sequence[Measure]:
        """Every statistic by head with its interval, and its mean by layer."""
        of_heads = {name: self._of_heads(name) for name in _STATISTICS}
        return [*of_heads.values(), *(_of_layers(name, m) for name, m in of_heads.items())]

    def _of_heads(self, name: str) -> Measure:
        title, unit, reading = _STATISTICS[name]
        return Measure.of_column(
            self.tables["heads"],
            name,
            name=f"attention-{name}",
            title=title,
            unit=unit,
            reading=reading,
        )

    def drawings(self) -> Sequence[Drawing]:
        """The mean maps, one sheet for each kept example, then a grid for each statistic."""
        found = [Drawing("mean-maps", self._draw_mean_maps, _MEAN_CAPTION)]
        for name in (str(n) for n in self.arrays.data_vars if str(n).startswith("map_")):
            sheet = partial(self._draw_maps, name)
            found.append(Drawing(name.replace("_", "-"), sheet, _SHEET_CAPTION))
        for name in _STATISTICS:
            found.append(drawings.grid(self._of_heads(name), self.about, name=name))
        return found

    def _draw_mean_maps(self) -> Figure:
        return map_sheet(
            self.arrays[MEAN_MAP].to_numpy(),
            title=f"Mean self-attention\n{self.about}",
            note="In each map rows attend to columns; darker is more. Both run from the start of "
            f"the text to its end; mean over {self.facts['examples']} examples.",
        )

    def _draw_maps(self, name: str) -> Figure:
        maps = self.arrays[name]
        tokens = [str(t) for t in maps.attrs["tokens"]]
        return map_sheet(
            maps.to_numpy(),
            title=f"Self-attention of {self.provenance.model_name}",
            note=f"In each map rows attend to columns; darker is more. {' '.join(tokens)}",
            tokens=tokens,
        )


def _of_layers(name: str, of_heads: Measure) -> Measure:
    return Measure(
        f"layer-attention-{name}",
        f"{of_heads.title}, mean over the layer's heads",
        of_heads.values.mean(axis=1),
        of_heads.unit,
        reading=of_heads.reading,
    )


@dataclass(frozen=True)
class AttentionMaps(Blocks):
    """Where does every head of every layer look?

    Method: every example is run once; each head's attention to the previous, same and next token,
    to the first and last token, its entropy and its mean distance are averaged over the real
    queries of an example, then over examples, without keeping the maps. The mean map of a head is
    over all examples, laid on 16 × 16 cells of relative positions. The maps of the first few
    examples are kept whole. Intervals are Student's, over examples.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 3; Clark et al. (2019) for
    the statistics. Limits: attention to a token is not yet use of what it carries.
    """

    version: ClassVar[int] = 3
    needs: ClassVar[Needs] = MAPS_OF_TEXTS
    result_type: ClassVar[type[Result]] = AttentionMapsResult
    block: ClassVar[int] = 256
    block_on_gpu: ClassVar[int | None] = 512
    fills_gpu: ClassVar[bool] = True
    standard: ClassVar[bool] = True

    keep: int = parameter(2, "Keep the whole maps of so many examples.", minimum=0, maximum=64)

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
            data[f"map_{i}"] = whole_map(encoder, text, suffix=f"_{i}")
        return data

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Means and intervals over all examples."""
        import xarray as xr
        from scipy.special import stdtrit

        counted = {"n": lambda part: part.attrs["examples"]}
        sums = {v: (lambda part, v=v: part[v].to_numpy()) for v in ("sum", "square", MEAN_MAP)}
        seen = gather(measured, add=counted | sums)
        n = int(seen["n"])
        mean, square, maps = (seen[v] / n for v in ("sum", "square", MEAN_MAP))
        spread = np.sqrt(np.maximum(square - mean**2, 0) / max(n - 1, 1))
        # Of a single example there is no interval.
        reach = float(stdtrit(n - 1, 0.5 + self.level / 2)) * spread if n > 1 else spread + np.nan
        columns = {}
        for i, name in enumerate(seen.labels("statistic")):
            columns[name] = mean[i]
            columns[f"{name}_low"], columns[f"{name}_high"] = mean[i] - reach[i], mean[i] + reach[i]
        kept = dict(_kept_maps(measured))
        kept = {MEAN_MAP: xr.DataArray(maps.astype(np.float32), dims=_MEAN_DIMS), **kept}
        return self.result(
            provenance,
            {"heads": head_table(mean.shape[1:], columns)},
            facts={"examples": n},
            arrays=xr.Dataset(kept),
        )


def _kept_maps(measured: Mapping[str, xr.Dataset]) -> Iterator[tuple[str, xr.DataArray]]:
    """The whole maps that the first part kept."""
    first = next(in_order(measured))
    yield from ((str(k), v) for k, v in first.data_vars.items() if str(k).startswith("map_"))
