"""Map types: which of the paper's five types are the attention maps of each head?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.map_types.examples import (
    EACH,
    LONGEST,
    SHORTEST,
    VARIABLE,
    ExampleMap,
    add_kept,
    choose,
    kept_in,
    merge,
    record,
)
from bertology.bundled import bundled_fingerprint
from bertology.data.map_labels import MAP_TYPES
from bertology.errors import CapabilityError
from bertology.parameters import parameter
from bertology.results.measures import Measure, column_grid, dashed
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate, bounded_mean_bounds, mean_interval
from bertology.studies.designs.blocks import (
    SampledStudy,
    in_order,
    need_two_examples,
    start_of,
    tokens_that_fill_a_gpu,
)
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

__all__ = ["MapTypes", "MapTypesResult"]

_FORMED = ("vertical", "diagonal", "vertical+diagonal")  # the paper's first three types
# What `model.map_measures` gives of each map: title, unit, what a high value means.
_FORMS = {
    "entropy": (
        "Relative entropy of the attention",
        "share of the largest possible",
        "1: attention is even over all tokens; 0: each token attends to a single one.",
    ),
    "near": (
        "Attention to itself and both neighbours",
        "share of the attention",
        "High: tokens attend to where they are, which makes diagonal maps.",
    ),
    "offset": (
        "Attention to the favourite relative position",
        "share of the attention",
        "High: tokens attend to, say, the previous token, whatever it is.",
    ),
    "stripes": (
        "Attention to the two most attended tokens",
        "share of the attention",
        "High: all tokens attend to the same one or two, which makes vertical maps.",
    ),
    "evenness": (
        "How evenly tokens are attended by all others",
        "0 to 1",
        "1: what attends to a token does so from everywhere, as in full stripes.",
    ),
    "blockness": (
        "Attention within the own sentence of a pair",
        "share beyond that of even attention",
        "High: tokens attend to their own sentence, which makes blocks; 0 for single sentences.",
    ),
    "distance": (
        "Mean distance of the attention",
        "tokens",
        "High: tokens attend to what is far away.",
    ),
}
Floats = NDArray[np.float64]


class MapTypesResult(Result):
    """How often each type of map occurs: in all heads, in each layer, in each head.

    Tables: `shares` (layer, type, share with its interval; layer "all" is all heads together) and
    `heads` (each head's most frequent type, the share of each type, and its mean measures). Array
    `example_map`: a few maps of each type, with tokens and recipes, where a text is short enough.
    """

    def evidence(self) -> dict[str, Estimate]:
        """Shares of all maps, with intervals over examples."""
        names = ("heterogeneous_share", "first_three_share")
        facts = self.arrays.attrs
        return {
            name: Estimate(value, low, high, int(facts["examples"]), float(facts["level"]))
            for name in names
            for value, low, high in [map(float, self.arrays[name].to_numpy())]
        }

    def headline(self) -> str:
        """The overall shares."""
        table = self.tables["shares"]
        rows = table[table["layer"] == "all"]
        parts = [f"{t} {100 * s:.0f} %" for t, s in zip(rows["type"], rows["share"], strict=True)]
        return ", ".join(parts)

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """The paper's Figure 2 for this task, by layers, each head's type, and its Figure 1."""
        found = {"layers": self._draw_layers, "heads": self._draw_heads}
        return found | ({"examples": self._draw_examples} if VARIABLE in self.arrays else {})

    def captions(self) -> Mapping[str, str]:
        """What each figure shows."""
        return {
            "layers": "One bar for all layers and one for each: the share of attention maps that "
            "are of each type, in per cent; colours are the types in the legend. Vertical maps "
            "look at one or two tokens such as [SEP], diagonal ones at neighbours, blocks within a "
            "sentence; heterogeneous maps have no such form and may depend on the words.",
            "heads": "One cell for each head, coloured by the type that most of its maps are of; "
            "the number is the share of examples in which they are, in per cent. Heads near 100 "
            "look the same way whatever they read.",
            "examples": "A row for each type that occurs, with maps of it; above each its "
            "layer.head, numbered from 0. Rows attend to columns; darker is more attention, each "
            "map scaled by its own largest weight; lines show where the second sentence of a pair "
            "begins. Stripes are tokens that all others look at, a diagonal is attention to "
            "neighbours, a square attention within a sentence. The maps are not picked by eye: "
            f"of texts of {SHORTEST} to {LONGEST} tokens they are the first {EACH} in the order of "
            "examples, layers and heads, no head twice in a row of the figure.",
        }

    def measures(self) -> Sequence[Measure]:
        """The type of each head, the share of each type, and the forms of the maps."""
        heads = self.tables["heads"]
        kinds = heads.assign(kind=[float(MAP_TYPES.index(t)) for t in heads["type"]])
        found = [
            Measure(
                "map-type",
                "Type of the attention maps",
                column_grid(kinds, "kind"),
                kinds=MAP_TYPES,
                reading="The type that most of the head's maps are of, told by a network.",
            ),
            Measure(
                "map-type-constancy",
                "How constant the map type is",
                100 * column_grid(heads, "share"),
                unit="% of examples",
                reading="High: the head's maps are of one type whatever it reads.",
            ),
        ]
        for name in MAP_TYPES:
            reading = f"High: the head's maps are {name} for most examples."
            words = (f"Share of {name} maps", 100 * column_grid(heads, name), "% of examples")
            found.append(Measure(f"share-{dashed(name)}", *words, reading=reading))
        for name, (title, unit, reading) in _FORMS.items():
            if name in heads:
                words = (title, column_grid(heads, name), unit)
                found.append(Measure(f"form-{name}", *words, reading=reading))
        return [*found, *self._layer_measures()]

    def _layer_measures(self) -> list[Measure]:
        table, found = self.tables["shares"], []
        table = table[table["layer"] != "all"]
        table = table.assign(layer=table["layer"].astype(int))
        for name in MAP_TYPES:
            rows = table[table["type"] == name]
            share, low, high = (100 * column_grid(rows, c) for c in ("share", "low", "high"))
            found.append(
                Measure(
                    f"layer-share-{dashed(name)}",
                    f"Share of {name} maps in the layer",
                    share,
                    unit="% of maps",
                    low=low,
                    high=high,
                    reading=f"High: most maps of the layer are {name}.",
                )
            )
        return found

    @property
    def _title(self) -> str:
        corpus = (self.provenance.corpus or {}).get("name")
        model = str(self.provenance.model.get("name")).rstrip("/").rsplit("/", 1)[-1]
        return f"{model} on {corpus}"

    def _draw_layers(self) -> Figure:
        from bertology.report.map_types import type_bars

        table = self.tables["shares"]
        grid = table.pivot(index="layer", columns="type", values="share")[list(MAP_TYPES)]
        order = ["all", *sorted((n for n in grid.index if n != "all"), key=int)]
        found, facts = self.evidence()["heterogeneous_share"], self.arrays.attrs
        low, high = 100 * found.low, 100 * found.high
        return type_bars(
            grid.loc[order].to_numpy(),
            types=MAP_TYPES,
            names=["all layers", *[f"layer {n}" for n in order[1:]]],
            title=f"Types of attention maps\n{self._title}",
            note=f"{facts['examples']} examples. Layers are numbered from 0. Heterogeneous in all: "
            f"{100 * found.value:.1f} % [{low:.1f}, {high:.1f}].",
        )

    def _draw_heads(self) -> Figure:
        from bertology.report.map_types import type_grid

        table = self.tables["heads"]
        kinds = table.assign(kind=[MAP_TYPES.index(t) for t in table["type"]])
        grids = [kinds.pivot(index="layer", columns="head", values=c) for c in ("kind", "share")]
        return type_grid(
            *(g.to_numpy() for g in grids),
            types=MAP_TYPES,
            title=f"The most frequent type of each head\n{self._title}",
            note="Numbers: the share of examples in which the head has this type, in per cent. "
            "Layers and heads are numbered from 0.",
        )

    def _draw_examples(self) -> Figure:
        from bertology.report.map_examples import LabelledMap, example_sheet

        rows: dict[str, list[LabelledMap]] = {}
        for one in kept_in(self.arrays):
            shown = LabelledMap(f"head {one.name}", one.weights, one.tokens, one.second)
            rows.setdefault(MAP_TYPES[one.type], []).append(shown)
        missing = [name for name in MAP_TYPES if name not in rows]
        return example_sheet(
            rows,
            title=f"Attention maps of each type\n{self._title}",
            note=f"The first of each type in texts of {SHORTEST} to {LONGEST} tokens, in the order "
            "of examples, layers and heads; no head twice in a row."
            + (f" None in such texts: {', '.join(missing)}." if missing else ""),
        )


@dataclass(frozen=True)
class MapTypes(SampledStudy[MapTypesResult]):
    """Which of five types (vertical, diagonal, both, block, heterogeneous) are the attention maps?

    Method: every example is run once, and a small convolutional network, trained on maps that were
    labelled by eye, names the type of each head's map. Maps are not kept, but for the first few of
    each type, whose texts are run once more. A share's interval is over examples: Student's for
    layers, and one that holds for any bounded values, however few, for the shares that claims rest
    on. Transparent measures of every head stand beside its types.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.1, Figures 1 and 2. Limits:
    intervals do not cover the network's own mistakes; docs/explanations/map-types.md says how
    often it agrees with the eye. What looks heterogeneous need not carry meaning.
    """

    version: ClassVar[int] = 2
    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns"}), fields=frozenset({"text"}), head="base"
    )
    result_type: ClassVar[type[Result]] = MapTypesResult
    # A GPU names the types of many maps for little more than those of few.
    block_on_gpu: ClassVar[int | None] = 512

    measures: bool = parameter(True, "Also give each head's entropy, diagonality and the like.")
    level: float = parameter(0.95, "Confidence level.", minimum=0.5, maximum=0.999)

    def ingredients(self, corpus: Corpus | None) -> dict[str, str]:
        """The network that names the types."""
        return {"map_types_network": bundled_fingerprint("map-types/model.safetensors")}

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """All heads must be there, and two examples for an interval."""
        need_two_examples(corpus)
        if encoder.numbering.removed:
            raise CapabilityError(
                f"{encoder.name!r} has heads pruned away; they have no maps to sort.",
                hint="Run the study on the model it was pruned from.",
            )

    def tokens_on_gpu(self, shape: Shape) -> int:
        """Many: little is kept of each."""
        return tokens_that_fill_a_gpu(shape)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """The type of every map in a block of examples, sums of the measures, a few maps."""
        import xarray as xr

        from bertology.annotated.map_types.reading import read_batches
        from bertology.model.reducers.map_measures import MAP_MEASURES

        block, shape = self.of_block(part, corpus), encoder.shape
        texts, lengths = block.texts, np.zeros(len(block), np.int64)
        types = np.zeros((len(texts), shape.layers, shape.heads), np.uint8)
        sums = np.zeros((len(MAP_MEASURES), shape.layers, shape.heads))
        batches = encoder.batches(texts, tokens_per_batch=context.batch_tokens)
        for reading in read_batches(encoder, batches, measures=self.measures):
            here = list(reading.batch.indices)
            types[here], lengths[here] = reading.types.numpy(), reading.batch.lengths.cpu().numpy()
            if self.measures:
                sums += reading.measures.double().sum(1).numpy()
            context.advance(len(reading.batch))
        dims, facts = ("example", "layer", "head"), {"first": start_of(part)}
        data = xr.Dataset({"type": (dims, types)}, attrs=facts)
        if self.measures:
            data["measure"] = (("name", "layer", "head"), sums)
            data = data.assign_coords(name=list(MAP_MEASURES))
        places, batch_tokens = choose(types, lengths), context.batch_tokens
        return add_kept(data, record(encoder, block, types, places, batch_tokens=batch_tokens))

    def conclude(
        self, measured: Mapping[str, xr.Dataset], provenance: Provenance
    ) -> MapTypesResult:
        """Shares and intervals over all examples."""
        import xarray as xr

        seen = _Seen.of(in_order(measured))
        everywhere = seen.by_layer.mean(1)  # (example, type)
        mixed = everywhere[:, MAP_TYPES.index("heterogeneous")]
        formed = everywhere[:, [MAP_TYPES.index(t) for t in _FORMED]].sum(-1)
        arrays = xr.Dataset(
            {
                "heterogeneous_share": ("bound", self._bounded(mixed)),
                "first_three_share": ("bound", self._bounded(formed)),
            },
            attrs={"examples": len(everywhere), "level": self.level},
        )
        heads = _heads(seen.by_head, seen.measures if self.measures else None)
        tables = {"shares": self._shares(everywhere, seen.by_layer), "heads": heads}
        return MapTypesResult(provenance, tables, add_kept(arrays, seen.kept))

    def _bounded(self, shares: Floats) -> list[float]:
        """Value, low and high; all examples being the same does not make the share certain."""
        low, high = bounded_mean_bounds(
            shares[None], None, low=0.0, high=1.0, budget=float(np.log(2 / (1 - self.level)))
        )
        return [float(shares.mean()), float(low[0]), float(high[0])]

    def _shares(self, everywhere: Floats, by_layer: Floats) -> pd.DataFrame:
        import pandas as pd

        rows: list[dict[str, Any]] = []
        layers = {"all": everywhere}
        layers |= {str(i): by_layer[:, i] for i in range(by_layer.shape[1])}
        for layer, shares in layers.items():
            for i, name in enumerate(MAP_TYPES):
                found = mean_interval(shares[:, i], self.level)
                low, high = max(found.low, 0.0), min(found.high, 1.0)
                rows.append(
                    {"layer": layer, "type": name, "share": found.value, "low": low, "high": high}
                )
        return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Seen:
    """What the examples gave, without their maps and types."""

    by_layer: Floats  # (example, layer, type): shares among the layer's heads
    by_head: Floats  # (layer, head, type): shares among examples
    measures: Any  # (name, layer, head), mean over examples; or None
    kept: Sequence[ExampleMap]  # the first maps of each type

    @classmethod
    def of(cls, parts: Iterator[xr.Dataset]) -> _Seen:
        """Go through the parts once."""
        by_layer, counts, sums = [], [], []
        kept: list[ExampleMap] = []
        for part in parts:
            types = part["type"].to_numpy()  # (example, layer, head)
            is_type = np.stack([types == i for i in range(len(MAP_TYPES))], -1)
            by_layer.append(is_type.mean(2))
            counts.append(is_type.sum(0))
            if "measure" in part:
                sums.append(part["measure"])
            kept = merge([kept, kept_in(part)])
        examples = sum(map(len, by_layer))
        measures = sum(sums) / examples if sums else None
        shares = np.sum(counts, axis=0) / examples
        return cls(np.concatenate(by_layer), shares, measures, kept)


def _heads(shares: Floats, measures: Any) -> pd.DataFrame:
    import pandas as pd

    layers, heads = np.indices(shares.shape[:2])
    top = shares.argmax(-1).ravel()
    columns: dict[str, Any] = {
        "layer": layers.ravel(),
        "head": heads.ravel(),
        "type": [MAP_TYPES[i] for i in top],
        "share": shares.max(-1).ravel(),
    }
    columns |= {name: shares[..., i].ravel() for i, name in enumerate(MAP_TYPES)}
    if measures is not None:
        names = [str(n) for n in measures["name"].to_numpy()]
        columns |= {n: measures.sel(name=n).to_numpy().ravel() for n in names}
    return pd.DataFrame(columns)
