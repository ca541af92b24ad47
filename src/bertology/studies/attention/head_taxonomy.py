"""Head taxonomy: of which classes of the literature is each head, and which heads are alike?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats
from bertology.bundled import bundled_fingerprint
from bertology.data.map_labels import MAP_TYPES
from bertology.parameters import drawn, parameter
from bertology.report import drawings
from bertology.report.figures import KindPanel, kind_grids, kind_plane
from bertology.results.answers import NOTHING_SURE, listed, percent
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, dashed
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.agreement import cohens_kappa
from bertology.stats.best_of_many import picked_on_other_half
from bertology.stats.distances import in_the_plane, nearer_within
from bertology.stats.layer_orders import first_less_second_half, mirrored
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.parts import Gathered, gather
from bertology.studies.designs.tables import head_table, labelled_table, with_bounds
from bertology.studies.study import MAPS_OF_TEXTS, Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder
    from bertology.model.reducers.class_attention import Several
    from bertology.stats.partial_means import PartialMeans


SPECIAL = "special"
"""Measured beside the classes of Clark et al.: [CLS], [SEP] and punctuation together."""

COARSE = ("position", "token", "other")
"""What all three tell apart: where a token stands, which token it is, or neither."""
_POSITION, _TOKEN, _OTHER = COARSE
_GREY = "#d9d9d9"


@dataclass(frozen=True)
class Sorted:
    """The kind of each head (K,), an index into the names of a taxonomy, and where it is sure."""

    kinds: NDArray[np.int64]
    sure: NDArray[np.bool_]


@dataclass(frozen=True)
class Taxonomy:
    """Classes of heads. A head is of a class where its share there is above a limit."""

    name: str
    title: str
    classes: tuple[str, ...]
    """What is measured: keys."""
    names: tuple[str, ...]
    """The same for readers, then what heads of no class are called, if there can be any."""
    colours: tuple[str, ...]
    coarse: tuple[str, ...]
    """What each name amounts to in `COARSE`."""

    def sort(self, value: Floats, low: Floats, high: Floats, limits: Floats) -> Sorted:
        """From shares (classes, K) with bounds that hold for all of them, and limits (classes,).

        A head is of the class that is farthest above its limit. It is surely so if the lower bound
        is above, and surely of no class if all upper bounds are below.
        """
        above = value - limits[:, None]
        kinds = above.argmax(0)
        sure = np.take_along_axis(low - limits[:, None], kinds[None], axis=0)[0] > 0
        if len(self.names) > len(self.classes):
            none = ~(above > 0).any(0)
            kinds = np.where(none, len(self.classes), kinds)
            sure = np.where(none, (high < limits[:, None]).all(0), sure)
        return Sorted(kinds.astype(np.int64), sure)


CLARK = Taxonomy(
    "clark",
    "Clark et al.",
    ("previous", "next", "self", "cls", "sep", "punctuation", "entropy"),
    ("previous", "next", "self", "[CLS]", "[SEP]", "punctuation", "broad", "other"),
    ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#f0e442", "#cc79a7", _GREY),
    (_POSITION,) * 3 + (_TOKEN,) * 3 + (_OTHER,) * 2,
)
RAGANATO = Taxonomy(
    "raganato",
    "Raganato and Tiedemann",
    ("self", "previous", "next", "end"),
    ("itself", "previous", "next", "end of sentence", "mixed"),
    ("#009e73", "#0072b2", "#56b4e9", "#d55e00", _GREY),
    (_POSITION,) * 3 + (_TOKEN, _OTHER),
)
MAPS = Taxonomy(
    "map_type",
    "map types",
    MAP_TYPES,
    MAP_TYPES,
    ("#d55e00", "#0072b2", "#6b6b6b", "#f0e442", _GREY),
    (_TOKEN, _POSITION, _OTHER, _OTHER, _OTHER),
)
TAXONOMIES = (CLARK, RAGANATO, MAPS)


def class_table(
    found: Mapping[Taxonomy, Sorted], places: Floats, shape: tuple[int, int]
) -> pd.DataFrame:
    """The class of each head by each taxonomy, and its place in the plane."""
    columns: dict[str, ArrayLike] = {}
    for taxonomy, of in found.items():
        columns[taxonomy.name] = np.array(taxonomy.names)[of.kinds]
        columns[f"{taxonomy.name}_sure"] = of.sure
    return head_table(shape, columns | {"x": places[:, 0], "y": places[:, 1]})


def share_table(by_name: Mapping[Taxonomy, PartialMeans], shape: tuple[int, int]) -> pd.DataFrame:
    """What classes rest on, one row for each of them and each head."""
    import pandas as pd

    tables = []
    for taxonomy, means in by_name.items():
        classes = [*taxonomy.classes, SPECIAL][: means.value.size // (shape[0] * shape[1])]
        columns: dict[str, ArrayLike] = {
            "share": means.value,
            "low": means.simultaneous_low,
            "high": means.simultaneous_high,
            "n": means.n,
        }
        table = head_table(shape, columns, groups=("class", classes))
        table.insert(0, "taxonomy", taxonomy.name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def crossed_table(found: Mapping[Taxonomy, Sorted]) -> pd.DataFrame:
    """How many heads have which three classes, the most first."""
    import pandas as pd

    named = {t.name: np.array(t.names)[of.kinds] for t, of in found.items()}
    counts = pd.DataFrame(named).value_counts().rename("heads").reset_index()
    order = ["heads", *named]
    found_rows: pd.DataFrame = counts.sort_values(
        order, ascending=[False, *(True for _ in named)], ignore_index=True
    )
    return found_rows


def agreement_table(found: Mapping[Taxonomy, Sorted], *, level: float, seed: int) -> pd.DataFrame:
    """Of each two taxonomies, on whether a head attends to places, to tokens, or neither."""
    import pandas as pd

    rows = []
    for one, other in combinations(found, 2):
        first, second = ([t.coarse[k] for k in found[t].kinds] for t in (one, other))
        agreed = cohens_kappa(first, second, COARSE, level=level, seed=seed)
        kappa = agreed.kappa
        ends = (np.nan,) * 3 if kappa is None else (kappa.value, kappa.low, kappa.high)
        rows.append((one.title, other.title, agreed.same, *ends, agreed.n))
    columns = ["one", "other", "same", "kappa", "kappa_low", "kappa_high", "heads"]
    return pd.DataFrame(rows, columns=columns)


_NOT_ALIKE = (
    "not judged: layers differ so much in how broadly they attend that no head has its like in "
    "another layer"
)
_SORTED = (
    "Three grids, one cell for each head, coloured by the class that the head is of: Clark et al. "
    "by shares of its attention and by entropy, Raganato and Tiedemann by what most tokens attend "
    "to most, and types of maps as a network names them. Small cells are not sure, corrected for "
    "all heads and classes. Blue and green are places, red and yellow are tokens, grey is neither."
)
_PLANE = (
    "One point for each head; the nearer two points, the more alike is what the heads attend to "
    "(Jensen–Shannon divergence, mean over tokens). Left coloured by layer: darker is deeper. "
    "Right by the class of Clark et al.; open points are not sure. Points of one colour that lie "
    "together are heads that do the same."
)


class HeadTaxonomyResult(Result):
    """The class of each head by three taxonomies, and how far heads are apart.

    Table `heads`: the class by each taxonomy, whether it is sure, and the head's place in the
    plane; `shares`: what the classes rest on, with bounds for all heads and classes of a taxonomy;
    `agreement`: how far the taxonomies agree on position, token or neither; `crossed`: how many
    heads have which three classes; `layers`: distances within each layer and to others. Array
    `distance`: of all pairs of heads, in nats.
    """

    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "shares": {"share": "%"},
        "agreement": {"same": "%"},
    }

    @property
    def answer(self) -> str:
        """How many heads have a class, which ones, and whether heads of a layer are alike."""
        heads = self.tables["heads"]
        sure = heads[heads["clark_sure"] & (heads["clark"] != CLARK.names[-1])]["clark"]
        common = [f"{n} {kind}" for kind, n in Counter(sure).most_common(4)]
        named = f" ({listed(common)})" if common else ""
        opening = (
            f"{len(sure)} of {len(heads)} heads surely ha{'s' if len(sure) == 1 else 've'} a "
            f"class of Clark and others{named}"
        )
        near = self.evidence().get("layer_nearness")
        if near is None:
            return f"{opening}. {NOTHING_SURE} of layers: their heads have no like elsewhere."
        surely = "surely" if near.low > 0 or near.high < 0 else "not surely"
        way = "nearer to" if near.value > 0 else "farther from"
        size = near if near.value > 0 else mirrored(near)
        return (
            f"{opening}. Heads of one layer are {surely} {way} each other than heads as broad of "
            f"other layers, by {percent(size)}."
        )

    def measures(self) -> Sequence[Measure]:
        """The classes of each head, the shares that they rest on, and distances by layer."""
        return [*self._kinds(), *self._shares(), *self._of_layers()]

    def _kinds(self) -> Iterator[Measure]:
        heads = self.tables["heads"]
        for taxonomy in TAXONOMIES:
            numbers = heads[taxonomy.name].map(taxonomy.names.index).astype(float)
            yield Measure.of_column(
                heads.assign(kind=numbers),
                "kind",
                name=f"class-{dashed(taxonomy.name)}",
                title=f"Class of the head: {taxonomy.title}",
                kinds=taxonomy.names,
                sure=f"{taxonomy.name}_sure",
                reading="The class that the head is farthest inside of.",
            )

    def _shares(self) -> Iterator[Measure]:
        table = self.tables["shares"]
        limits = {CLARK: self.facts["half"], RAGANATO: self.facts["half"]}
        for taxonomy, limit in limits.items():
            rows = table[table["taxonomy"] == taxonomy.name]
            for key, shown in zip(taxonomy.classes, taxonomy.names, strict=False):
                own = rows[rows["class"] == key]
                if own["low"].isna().all():  # no text has such a token
                    continue
                at = self.facts["broad"] if key == "entropy" else limit
                title, reading = _words(taxonomy, key, shown)
                yield Measure.of_column(
                    own.assign(sure=own["low"] > at),
                    "share",
                    name=f"{taxonomy.name}-{key}",
                    title=title,
                    unit="%",
                    bounds=("low", "high"),
                    sure="sure",
                    scale=100.0,
                    reading=reading,
                )

    def _of_layers(self) -> Iterator[Measure]:
        told = {
            "within": ("Distance of the layer's heads from each other", "High: they differ."),
            "between": (
                "Distance of the layer's heads from those of other layers",
                "High: the layer does something else than other layers.",
            ),
        }
        for name, (title, reading) in told.items():
            if not self.tables["layers"][name].isna().any():
                yield Measure.of_column(
                    self.tables["layers"],
                    name,
                    name=f"layer-{name}",
                    title=title,
                    unit="nats",
                    reading=reading,
                )

    def _panel(self, taxonomy: Taxonomy) -> KindPanel:
        shown = self.measure(f"class-{dashed(taxonomy.name)}")
        return KindPanel(taxonomy.title, shown.values, taxonomy.names, taxonomy.colours, shown.sure)

    def drawings(self) -> Sequence[Drawing]:
        """The three taxonomies, heads in the plane, shares by class, distances by layer."""
        found = [
            Drawing("taxonomies", self._draw_sorted, _SORTED),
            Drawing("clusters", self._draw_plane, _PLANE),
        ]
        shares = [m for m in self._shares() if m.name.startswith(CLARK.name)]
        found.append(
            drawings.grids(
                "shares",
                shares,
                self.about,
                title="What heads attend to: the classes of Clark et al.",
                reading="The last grid is the entropy, as a share of the largest possible.",
                labels=[m.title for m in shares],
                sure="are surely above the limit of their class, corrected for all heads",
            )
        )
        layers = list(self._of_layers())
        if len(layers) == 2:
            found.append(
                drawings.profile(
                    "layers",
                    layers,
                    self.about,
                    title="Distances between heads",
                    reading="Where the first line is far below the second, the layer's heads do "
                    "much the same, which other layers do not; broad heads are near each other.",
                    labels=["within the layer", "to other layers"],
                )
            )
        return found

    def _draw_sorted(self) -> Figure:
        return kind_grids(
            [self._panel(taxonomy) for taxonomy in TAXONOMIES],
            title=f"Classes of heads by three taxonomies\n{self.about}",
            note=f"Small cells are not sure, over {self.facts['examples']} texts. Numbers: heads "
            "of each class, sure or not.",
        )

    def _draw_plane(self) -> Figure:
        return kind_plane(
            self.tables["heads"][["x", "y"]].to_numpy(),
            self._panel(CLARK),
            title=f"Heads by how alike their attention is\n{self.about}",
            note="The nearer, the more alike (Jensen–Shannon divergence, scaled to two dimensions; "
            f"stress {self.facts['stress']:.2f}). Open points: the class is not sure.",
        )


@dataclass(frozen=True)
class HeadTaxonomy(Resampled):
    """Of which classes of the literature is each head, and which heads are alike?

    Method: in one pass over the texts, of each head: the share of its attention to the previous,
    the next and the same token, to [CLS], [SEP] and punctuation, and its entropy as a share of the
    largest possible. A head is of a class of Clark et al. where the share is above `half` (as
    theirs), or the entropy above `broad` (ours: their broad heads give at most a tenth to any
    token, in texts of 128). Raganato and Tiedemann sorted maps by eye, which sees the darkest cell
    of a row; here their classes are those of what most tokens attend to most: the token itself,
    the previous, the next, or the end of the sentence (the last token, and a full stop before it).
    Third, the map types of this project, named by its network. A head is surely of a class where
    bounds over texts, corrected for all heads and classes, lie above the limit. Distances between
    heads are Jensen–Shannon divergences of their distributions, mean over tokens and texts, of all
    pairs; they are drawn in a plane by metric scaling. Heads of one layer count as alike if they
    are nearer to each other than after exchanges with heads that are as broad: broad heads are all
    near each other, and in random models, too, layers differ in how broad they are. Where early
    layers are said to have more, they have it over texts and more than in most random orders of the
    layers.

    Source: Clark et al. (2019), What Does BERT Look At, sections 3 and 6; Raganato and Tiedemann
    (2018), as A Primer in BERTology (section 5.1) tells their classes; Revealing the Dark Secrets
    of BERT (2019). Limits: limits are round numbers, and heads near them are of a class by little;
    what a head attends to is not yet what it does.
    """

    version: ClassVar[int] = 2  # trends are over texts, and not over layers
    needs: ClassVar[Needs] = MAPS_OF_TEXTS
    result_type: ClassVar[type[Result]] = HeadTaxonomyResult
    block: ClassVar[int] = 64
    all_heads: ClassVar[bool] = True

    examples: int = drawn(400)
    half: float = parameter(
        0.5,
        "A head is of a class if it gives more than this share to it.",
        minimum=0.1,
        maximum=0.9,
        concludes=True,
    )
    broad: float = parameter(
        0.8,
        "A head is broad if its entropy is above this share of the largest possible.",
        minimum=0.5,
        maximum=0.99,
        concludes=True,
    )

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The network that names types of maps."""
        return {"map_types_network": bundled_fingerprint("map-types/model.safetensors")}

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Classes of tokens are told by the tokenizer."""
        super().check(encoder, corpus)
        encoder.require_tokenizer()

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Shares, types and distances within layers by text; distances of all pairs, summed."""
        import xarray as xr

        from bertology.annotated.map_types.reading import read_batches
        from bertology.annotated.plain_classes import role_masks
        from bertology.model.reducers.class_attention import Several
        from bertology.model.reducers.head_distances import HeadDistances
        from bertology.model.reducers.head_roles import HITS, SHARES, HeadRoles
        from bertology.model.reducers.held_maps import held_together

        texts, shape = self.of_block(part, corpus).texts, encoder.shape
        of_heads = (shape.layers, shape.heads)
        shares = np.full((len(texts), len(SHARES), *of_heads), np.nan, np.float32)
        hits = np.full((len(texts), len(HITS), *of_heads), np.nan, np.float32)
        types = np.zeros((len(texts), *of_heads), np.uint8)
        within, between = (np.full((len(texts), shape.layers), np.nan) for _ in range(2))
        total = np.zeros((shape.layers * shape.heads,) * 2)
        reducers = []  # of batches in the order of their readings

        def beside(batch: Batch) -> Several:
            reducers.append((HeadRoles(*role_masks(encoder, batch)), HeadDistances(shape)))
            return Several(reducers[-1])

        batches = encoder.batches(texts, tokens_per_batch=context.batch_tokens)
        pieces = (piece for batch in batches for piece in held_together(batch, shape))
        for reading in read_batches(encoder, pieces, beside=beside):
            at, (roles, distances) = list(reading.batch.indices), reducers.pop(0)
            types[at] = reading.types.numpy()
            found, apart = roles.value(), distances.value()
            shares[at], hits[at] = found.shares, found.hits
            within[at], between[at] = apart.within, apart.between
            total += apart.total
            context.advance(len(at))
        places, by_layer = ("example", "class", "layer", "head"), ("example", "layer")
        return xr.Dataset(
            {
                "share": (places, shares),
                "hit": (("example", "goal", "layer", "head"), hits),
                "type": (("example", "layer", "head"), types),
                "within": (by_layer, within),
                "between": (by_layer, between),
                "total": (("one", "other"), total),
            },
            coords={"class": list(SHARES), "goal": list(HITS)},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Classes with bounds over texts; agreement, distances, the plane."""
        import xarray as xr

        seen = gather(
            measured, concatenate=("share", "hit", "type", "within", "between"), add=("total",)
        )
        n, layers, heads = seen["type"].shape
        by_name = {
            CLARK: self._means(seen["share"], seen.labels("class"), (*CLARK.classes, SPECIAL)),
            RAGANATO: self._means(seen["hit"], seen.labels("goal"), RAGANATO.classes),
            MAPS: self._means(_is_type(seen["type"]), MAP_TYPES, MAPS.classes, reach=1.0),
        }
        found = {t: self._sorted(t, means, layers * heads) for t, means in by_name.items()}
        distance = seen["total"] / n
        places, stress = in_the_plane(distance)
        tables = {
            "heads": class_table(found, places, (layers, heads)),
            "shares": share_table(by_name, (layers, heads)),
            "agreement": agreement_table(found, level=self.level, seed=self.seed),
            "crossed": crossed_table(found),
            "layers": self._layers(seen, layers),
        }
        return self.result(
            provenance,
            tables,
            evidence=self._evidence(seen, by_name[CLARK], distance),
            reasons={"layer_nearness": _NOT_ALIKE},
            facts={"examples": n, "half": self.half, "broad": self.broad, "stress": stress},
            arrays=xr.Dataset({"distance": (("one", "other"), distance.astype(np.float32))}),
        )

    def _means(
        self, values: Floats, labels: Sequence[str], wanted: Sequence[str], reach: float = 0.0
    ) -> PartialMeans:
        """Rows are classes, then heads; bounds hold for all of them and all three taxonomies."""
        chosen = values[:, [list(labels).index(name) for name in wanted]]
        rows = chosen.reshape(len(values), -1).T
        return self.means(rows, within=(0.0, 1.0), reach=reach, families=len(TAXONOMIES))

    def _sorted(self, taxonomy: Taxonomy, means: PartialMeans, heads: int) -> Sorted:
        sides = (means.value, means.simultaneous_low, means.simultaneous_high)
        # A class of which no text has a token has no head.
        value, low, high = (
            np.nan_to_num(side.reshape(-1, heads)[: len(taxonomy.classes)]) for side in sides
        )
        broad = [self.broad if c == "entropy" else self.half for c in taxonomy.classes]
        return taxonomy.sort(value, low, high, np.array(broad))

    def _layers(self, seen: Gathered, layers: int) -> pd.DataFrame:
        columns: dict[str, ArrayLike] = {}
        for name in ("within", "between"):
            means = self.means(seen[name].T, within=(0.0, float(np.log(2))), families=2)
            columns |= with_bounds(name, means, p=False)
        return labelled_table({"layer": range(layers)}, columns)

    def _evidence(
        self, seen: Gathered, means: PartialMeans, distance: Floats
    ) -> dict[str, Estimate | None]:
        """Trends and the number of heads are over texts, nearness over heads."""
        n, layers, heads = seen["type"].shape
        sides = (means.value, means.simultaneous_low, means.simultaneous_high)
        value, low, high = (side.reshape(-1, layers, heads) for side in sides)
        entropy = value[CLARK.classes.index("entropy")]
        shares = dict(zip(seen.labels("class"), np.moveaxis(seen["share"], 1, 0), strict=True))
        # (text, layer, class and head): the head of a layer that gives most to a neighbour
        near = np.concatenate([shares[name] for name in CLARK.classes[:2]], axis=-1)
        positional = np.take_along_axis(near, picked_on_other_half(near)[..., None], axis=-1)
        share, sure, at_most = (float((side[-1] > self.half).mean()) for side in (value, low, high))
        return {
            "special_heads": Estimate(share, sure, at_most, n, self.level, counted=True),
            "positional_early": self.by_depth(
                positional[..., 0], first_less_second_half, within=(-1, 1)
            ),
            "broad_early": self.by_depth(
                shares["entropy"].mean(-1), first_less_second_half, within=(-1, 1)
            ),
            "layer_nearness": nearer_within(
                distance,
                np.repeat(np.arange(layers), heads),
                entropy.ravel(),
                size=heads,
                level=self.level,
                resamples=self.resamples,
                seed=self.seed,
                unit="heads",
            ),
        }


def _is_type(types: NDArray[np.generic]) -> Floats:
    """(example, type, layer, head): 1 where a map is of the type."""
    found: Floats = (types[:, None] == np.arange(len(MAP_TYPES))[:, None, None]).astype(np.float64)
    return found


def _words(taxonomy: Taxonomy, key: str, shown: str) -> tuple[str, str]:
    """Title and reading of what a class rests on."""
    if key == "entropy":
        return "Entropy of the attention", "High: the head attends broadly, to many tokens."
    near = {"previous": "the previous token", "next": "the next token", "self": "the token itself"}
    goal = near.get(key, shown if key != "end" else "the end of the sentence")
    if taxonomy is CLARK:
        return f"Attention to {goal}", f"High: much of the attention goes to {goal}."
    return f"Tokens that attend most to {goal}", f"High: most tokens attend most to {goal}."
