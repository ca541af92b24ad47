"""Map types: which of the paper's five types are the attention maps of each head?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.annotated.map_types.examples import (
    EACH,
    LONGEST,
    SHORTEST,
    VARIABLE,
    add_kept,
    choose,
    kept_in,
    merge,
    record,
)
from bertology.annotated.map_types.mistakes import MISTAKES, bundled_mistakes
from bertology.arrays import Floats
from bertology.bundled import bundled_fingerprint
from bertology.data.map_labels import MAP_TYPES
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import TitledMap, example_sheet, type_bars
from bertology.results.answers import of_row, percent
from bertology.results.compared import row_mean
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, dashed
from bertology.results.number_text import number_text
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats.named_shares import NamedShares
from bertology.studies.designs.blocks import Sampled
from bertology.studies.designs.parts import gather, in_order, start_of
from bertology.studies.designs.tables import head_table, labelled_table
from bertology.studies.study import MAPS_OF_TEXTS, Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

HETEROGENEOUS = MAP_TYPES.index("heterogeneous")
MAPS_NAMED = "maps named {}"
_FORMED = [MAP_TYPES.index(t) for t in ("vertical", "diagonal", "vertical+diagonal")]
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
_LAYERS = (
    "One bar for all layers and one for each: the share of attention maps of each type, in per "
    "cent, corrected for the mistakes of the network that names them; colours are the types in the "
    "legend. Vertical maps look at one or two tokens such as "
    "[SEP], diagonal ones at neighbours, blocks within a sentence; heterogeneous maps have no such "
    "form and may depend on the words."
)
_CHOICE = (
    f"of texts of {SHORTEST} to {LONGEST} tokens the first {EACH} in the order of examples, layers "
    "and heads; no head twice in a row"
)
_EXAMPLES = (
    "A row for each type that occurs, with maps of it; above each its layer.head, numbered from 0. "
    "Rows attend to columns; darker is more, each map on its own scale; lines show where the "
    "second sentence of a pair begins. Stripes are tokens that all others look at, a diagonal is "
    "attention to neighbours, a square attention within a sentence; “across” marks maps with a "
    "diagonal between the sentences, from words to their counterparts. The maps are not picked by "
    f"eye: they are {_CHOICE}."
)


class MapTypesResult(Result):
    """How often each type of map occurs: in all heads, in each layer, in each head.

    Tables: `shares` (layer, type, share with its interval, and `named`, the share that the network
    names; layer "all" is all heads together) and `heads` (each head's most frequent type, the share
    of each type as the network names them, and its mean measures). Array
    `example_map`: a few maps of each type, with tokens and recipes, where a text is short enough.
    """

    lead: ClassVar[int] = 5
    place: ClassVar[int] = 1
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "shares": dict.fromkeys(("share", "named"), "%"),
        "heads": dict.fromkeys(("share", *MAP_TYPES), "%"),
    }

    @property
    def answer(self) -> str:
        """The commonest type, and how many maps have no form."""
        rows = self.tables["shares"].query("layer == 'all'").set_index("type")
        most, mixed = str(rows["share"].idxmax()), MAP_TYPES[HETEROGENEOUS]
        shown = {t: percent(of_row(r, ("share", "low", "high"))) for t, r in rows.iterrows()}
        opening = (
            f"Most maps are {most}" if rows["low"][most] > 0.5 else f"{most} maps are commonest"
        )
        also = "" if most == mixed else f"; {mixed} ones, without such a form, are {shown[mixed]}"
        return f"{opening[:1].upper()}{opening[1:]}: {shown[most]}{also}."

    def headline(self) -> str:
        """The overall shares."""
        return ", ".join(
            f"{t} {number_text(100 * s, '.0f')} %"
            for t, s in zip(MAP_TYPES, self._bars()[0], strict=True)
        )

    def measures(self) -> Sequence[Measure]:
        """The type of each head, the share of each type, and the forms of the maps."""
        return [*self._of_heads(), *self._of_layers()]

    def _of_heads(self) -> Iterator[Measure]:
        heads = self.tables["heads"]
        yield Measure.of_column(
            heads.assign(type=heads["type"].map(MAP_TYPES.index).astype(float)),
            "type",
            name="map-type",
            title="Type of the attention maps",
            kinds=MAP_TYPES,
            reading="The type that most of the head's maps are of, told by a network.",
        )
        yield Measure.of_column(
            heads,
            "share",
            name="map-type-constancy",
            title="How constant the map type is",
            unit="% of examples",
            scale=100.0,
            reading="High: the head's maps are of one type whatever it reads.",
        )
        for kind in MAP_TYPES:
            yield Measure.of_column(
                heads,
                kind,
                name=f"share-{dashed(kind)}",
                title=f"Share of {kind} maps",
                unit="% of examples",
                scale=100.0,
                reading=f"High: the head's maps are {kind} for most examples.",
            )
        for name, (title, unit, reading) in _FORMS.items():
            if name in heads:
                yield Measure.of_column(
                    heads, name, name=f"form-{name}", title=title, unit=unit, reading=reading
                )

    def _of_layers(self) -> Iterator[Measure]:
        table = self.tables["shares"]
        table = table[table["layer"] != "all"].astype({"layer": int})
        for kind in MAP_TYPES:
            yield Measure.of_column(
                table[table["type"] == kind],
                "share",
                name=f"layer-share-{dashed(kind)}",
                title=f"Share of {kind} maps in the layer",
                unit="% of maps",
                bounds=("low", "high"),
                scale=100.0,
                reading=f"High: most maps of the layer are {kind}.",
            )

    def drawings(self) -> Sequence[Drawing]:
        """The paper's Figure 2 for this task, by layers, each head's type, and its Figure 1."""
        kinds, constancy, *_ = self._of_heads()
        found = [
            Drawing("layers", self._draw_layers, _LAYERS),
            drawings.type_grid(kinds, constancy, self.about, name="heads"),
        ]
        if VARIABLE in self.arrays:
            found.append(Drawing("examples", self._draw_examples, _EXAMPLES))
        return found

    def _bars(self) -> Floats:
        """(all layers and each, types): the table's rows are in this order."""
        found: Floats = self.tables["shares"]["share"].to_numpy().reshape(-1, len(MAP_TYPES))
        return found

    def _draw_layers(self) -> Figure:
        bars, mixed = self._bars(), self.evidence()["heterogeneous_share"]
        low, high = 100 * mixed.low, 100 * mixed.high
        return type_bars(
            bars,
            types=MAP_TYPES,
            names=["all layers", *(f"layer {i}" for i in range(len(bars) - 1))],
            title=f"Types of attention maps\n{self.about}",
            note=f"{self.facts['examples']} examples. Layers are numbered from 0. Heterogeneous in "
            f"all: {100 * mixed.value:.1f} % [{low:.1f}, {high:.1f}].",
        )

    def _draw_examples(self) -> Figure:
        rows: dict[str, list[TitledMap]] = {}
        for one in kept_in(self.arrays):
            title = f"head {one.name}" + ", across" * one.crosses
            shown = TitledMap(title, one.weights, one.tokens, one.second)
            rows.setdefault(MAP_TYPES[one.type], []).append(shown)
        missing = [name for name in MAP_TYPES if name not in rows]
        return example_sheet(
            rows,
            title=f"Attention maps of each type\n{self.about}",
            note=f"They are {_CHOICE}."
            + (f" None in such texts: {', '.join(missing)}." if missing else ""),
        )


@dataclass(frozen=True)
class MapTypes(Sampled):
    """Which of five types (vertical, diagonal, both, block, heterogeneous) are the attention maps?

    Method: every example is run once, and a small convolutional network, trained on maps that were
    labelled by eye, names the type of each head's map. Maps are not kept, but for the first few of
    each type, whose texts are run once more. Shares of all heads and of layers are corrected for
    the mistakes that the network makes on models it did not learn from (520 labelled maps, drawn by
    chance), and their intervals cover both examples and what is known of these mistakes.
    Transparent measures of every head stand beside its types.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.1, Figures 1 and 2. Limits:
    on models of another kind the network may make other mistakes than on the three that were
    checked; docs/explanations/map-types.md says how often it agrees with the eye. The types of
    single heads are not corrected. What looks heterogeneous need not carry meaning.
    """

    version: ClassVar[int] = 5  # bounds follow Student's law where many values make a mean
    needs: ClassVar[Needs] = MAPS_OF_TEXTS
    result_type: ClassVar[type[Result]] = MapTypesResult
    standard: ClassVar[bool] = True
    all_heads: ClassVar[bool] = True
    fills_gpu: ClassVar[bool] = True
    # A GPU names the types of many maps for little more than those of few.
    block_on_gpu: ClassVar[int | None] = 512

    measures: bool = parameter(True, "Also give each head's entropy, diagonality and the like.")

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The network that names the types, and what is known of its mistakes."""
        return {
            "map_types_network": bundled_fingerprint("map-types/model.safetensors"),
            "map_types_mistakes": bundled_fingerprint(MISTAKES),
        }

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

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Shares and intervals over all examples."""
        import xarray as xr

        seen = gather(
            measured,
            concatenate={"by layer": lambda part: _is_type(part).mean(2)},  # (example, layer, type)
            add={
                "by head": lambda part: _is_type(part).sum(0),  # (layer, head, type)
                **({"measure": lambda part: part["measure"]} if self.measures else {}),
            },
        )
        by_layer = seen["by layer"]
        everywhere = by_layer.mean(1)  # (example, type)
        n = len(everywhere)
        forms = (
            dict(zip(seen.labels("name"), seen["measure"] / n, strict=True))
            if self.measures
            else {}
        )
        kept = merge(kept_in(part) for part in in_order(measured))
        whole = NamedShares(everywhere, bundled_mistakes(), level=self.level)
        return self.result(
            provenance,
            {
                "shares": self._shares(everywhere, by_layer),
                "heads": _heads(seen["by head"] / n, forms),
            },
            evidence={
                "heterogeneous_share": whole.of(HETEROGENEOUS),
                "first_three_share": whole.of(*_FORMED),
            },
            facts={"examples": n},
            arrays=add_kept(xr.Dataset(), kept),
            # As they are named: what the network mistakes it mistakes in both of two models.
            compared=[
                row_mean(MAPS_NAMED.format(kind), everywhere[:, i], level=self.level)
                for i, kind in enumerate(MAP_TYPES)
            ],
        )

    def _shares(self, everywhere: Floats, by_layer: Floats) -> pd.DataFrame:
        """One row for each layer and type, the same numbers as the evidence has."""
        groups = [everywhere, *np.moveaxis(by_layer, 1, 0)]
        found = [NamedShares(named, bundled_mistakes(), level=self.level) for named in groups]
        rows = [[group.of(kind) for kind in range(len(MAP_TYPES))] for group in found]
        return labelled_table(
            {"layer": ["all", *map(str, range(by_layer.shape[1]))], "type": MAP_TYPES},
            {
                "share": np.array([[e.value for e in row] for row in rows]),
                "low": np.array([[e.low for e in row] for row in rows]),
                "high": np.array([[e.high for e in row] for row in rows]),
                "named": np.array([named.mean(0) for named in groups]),
            },
        )


def _is_type(part: xr.Dataset) -> NDArray[np.bool_]:
    """(example, layer, head, type)."""
    found: NDArray[np.bool_] = part["type"].to_numpy()[..., None] == np.arange(len(MAP_TYPES))
    return found


def _heads(shares: Floats, forms: Mapping[str, ArrayLike]) -> pd.DataFrame:
    """The most frequent type of each head, the shares of all, and the form of its maps."""
    columns = {
        "type": np.array(MAP_TYPES)[shares.argmax(-1)],
        "share": shares.max(-1),
        **dict(zip(MAP_TYPES, np.moveaxis(shares, -1, 0), strict=True)),
        **forms,
    }
    return head_table(shares.shape[:2], columns)
