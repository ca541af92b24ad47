"""Language space: where languages lie in a model, and whether translations lie together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.arrays import Bools, Floats
from bertology.data.languages import Language, languages, order_distance
from bertology.errors import CapabilityError, DataError
from bertology.parameters import parameter
from bertology.report import drawings, figures
from bertology.report.figures import Dots
from bertology.results.answers import NOTHING_SURE, points, raised
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.points import PointColumns
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.distances import in_the_plane
from bertology.stats.matrices import FEWEST, mantel, ranks_of_pairs, together
from bertology.stats.rank_agreement import Agreement
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.layer_lines import Line, line_measures
from bertology.studies.designs.probe_scores import among_copies, least_mean
from bertology.studies.designs.shuffled_copies import COPIES, MODEL, ShuffledCopies
from bertology.studies.designs.tables import bounded, with_bounds
from bertology.studies.languages.language_space.scores import Scores
from bertology.studies.languages.language_space.space import (
    HOW,
    LEXICAL,
    PROBES,
    Texts,
    apart,
    bags_of,
    centroids,
    character_triples,
    found_by_words,
    found_in,
    languages_told,
)
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

INPUT = -1  # as a layer: what enters the first one
_TYPES = ("kinship", "order")
_UNKNOWN = Language("", "", "", "unknown", "unknown", "unknown", ())
_RETRIEVAL = {
    "cosine": Line("Translations found by cosine", "as states are", "High: translations are near."),
    "centred": Line(
        "Translations found by cosine, after centring",
        "centred",
        "High: without the mean of each language, translations are near.",
    ),
    "nearest": Line(
        "Translations found by distance", "nearest", "High: translations are the nearest."
    ),
    "shifted": Line(
        "Translations found by distance, after the offset",
        "shifted by the offset",
        "High: the mean difference of two languages leads from a sentence to its translation.",
    ),
}
_IDENTITY = {
    "identity": Line("Languages told", "as states are", "High: a linear probe tells languages."),
    "identity_centred": Line(
        "Languages told, after centring", "centred", "Low: centring takes the language away."
    ),
}
_TYPOLOGY = {
    "kinship": Line("Distances go with kinship", "kinship", "High: kin languages are near."),
    "order": Line("Distances go with word order", "word order", "High: like orders are near."),
}


class LanguageSpaceResult(Result):
    """Where languages and their sentences lie after each layer.

    Table `layers`: for each layer (-1 is what enters the first one) the shares of translations that
    come first: by cosine (`cosine`, `centred`), by distance (`nearest`, `shifted` by the offset of
    the languages); the share of sentences whose language a probe tells (`identity`,
    `identity_centred`), and the rank correlations of distances of centroids with kinship and with
    orders of words. Bounds hold for all rows together. Table `summary`: the same at the layer that
    was picked on the other half of the items, beside shared pieces, shared characters and chance;
    `languages`: by language, over its pairs; `pairs`: by pair of languages (`first` is looked up
    among `second`); `places`: languages in a plane, by their distances.
    """

    @property
    def answer(self) -> str:
        """How often translations are found, and whether languages lie by kin."""
        found = self.evidence()
        told = {
            "retrieval_gain": "parallel sentences are surely found more often than by chance and "
            "by shared pieces or characters ({} over chance)",
            "centring_gain": "without the mean of each language more of them are surely found ({})",
            "kinship_correlation": "kin languages surely lie near each other (correlation {})",
        }
        said = [
            words.format(_plain(found[name]) if "correlation" in name else points(found[name]))
            for name, words in told.items()
            if name in found and found[name].surely_there
        ]
        gain = found.get("retrieval_gain")
        if said:
            return f"{raised('; '.join(said))}."
        if gain is not None and gain.low > 0:
            return (
                f"Parallel sentences are found more often than by chance, by {points(gain)}, but "
                "this may be due to shared pieces, shared characters or weights in any order."
            )
        return (
            f"{NOTHING_SURE}: translations are not surely found more often than by chance, and kin "
            "languages do not surely lie near each other."
        )

    def measures(self) -> Sequence[Measure]:
        """Translations found, languages told, and what distances go with, by layer."""
        table = self.tables["layers"]
        table = table[table["layer"] >= 0]
        found = [
            *line_measures(table, _RETRIEVAL, of="retrieval"),
            *line_measures(table, _IDENTITY, of="probe"),
        ]
        known = {name: of for name, of in _TYPOLOGY.items() if table[name].notna().all()}
        return [*found, *line_measures(table, known, of="distances", unit="correlation")]

    def drawings(self) -> Sequence[Drawing]:
        """By layer; languages in a plane, as a tree, and one by one."""
        every = self.measures()
        of = {kind: [m for m in every if m.name.startswith(kind)] for kind in _KINDS}
        found = []
        if of["retrieval"]:
            rows = self.tables["summary"].set_index("how")["share"]
            lexical = max(LEXICAL, key=lambda how: float(rows[how]))
            beside = {
                f"shared {lexical}": 100 * float(rows[lexical]),
                "chance": 100 * float(rows["chance"]),
            }
            shown = ("cosine", "centred", "shifted")
            found.append(
                drawings.profile(
                    "retrieval",
                    [m for m in of["retrieval"] if m.name.partition("-")[2] in shown],
                    self.about,
                    title="Translations found",
                    reading="A sentence of one language is looked for among those of another; "
                    f"straight lines are what shared {lexical} and chance find.",
                    labels=[_RETRIEVAL[name].label for name in shown],
                    beside=beside,
                    shaded="intervals over items",
                )
            )
        if of["probe"]:
            found.append(
                drawings.profile(
                    "identity",
                    of["probe"],
                    self.about,
                    title="Languages told by a linear probe",
                    reading="Probes learn on one half of the items and are scored on the other.",
                    labels=[line.label for line in _IDENTITY.values()],
                    shaded="intervals over items",
                )
            )
        if of["distances"]:
            found.append(
                drawings.profile(
                    "typology",
                    of["distances"],
                    self.about,
                    title="What distances of languages go with",
                    labels=[line.label for line in _TYPOLOGY.values()][: len(of["distances"])],
                    shaded="",
                    caption="Layers to the right, upwards rank correlations of the distances of "
                    "centroids: with being of another family or genus (kinship), and with the "
                    "share of orders of words that differ. The test is in the evidence.",
                )
            )
        return [*found, *self._pictures()]

    def _pictures(self) -> Sequence[Drawing]:
        rows, about = self.tables["languages"], self.about
        layer = int(self.arrays.attrs["drawn"])
        distances = self.arrays["distances"].to_numpy()[layer + 1]
        names, families = rows["name"].tolist(), rows["family"].tolist()
        found = [
            drawings.dots(
                "languages",
                [
                    Dots.of_columns("as states are (%)", rows, "cosine"),
                    Dots.of_columns("centred (%)", rows, "centred"),
                    Dots.of_columns("shared pieces (%)", rows, "pieces"),
                ],
                names,
                about,
                title="Translations found, by language",
                caption="For each language the share of its sentences whose translation comes "
                "first, and of translations of others into it, over all its pairs: at the layer "
                "picked on the other half of the items. Intervals are over items, one by one.",
                same_scale=True,
            )
        ]
        if len(rows) < 3:
            return found
        return [
            *found,
            drawings.planes(
                "plane",
                self.tables["places"],
                PointColumns("places", ("layer",), "family"),
                about,
                title="Languages in a plane",
                reading="Near points are languages whose mean states are near each other.",
                drawn=[(layer,)],
                labels=[f"after layer {layer}"],
                one="language",
                named="code",
            ),
            Drawing(
                "tree",
                partial(
                    figures.distance_tree,
                    distances,
                    names,
                    families,
                    title=f"Languages as a tree, after layer {layer}\n{about}",
                ),
                f"Languages joined by the distances of their centroids after layer {layer} "
                "(average linkage): the further to the right two are joined, the further apart "
                "they are, as a share of the largest distance. Colours are families.",
            ),
        ]


_KINDS = ("retrieval", "probe", "distances")


@dataclass(frozen=True)
class LanguageSpace(ShuffledCopies, Resampled):
    """Do translations lie together in a model of many languages, and where do languages lie?

    Method: the mean state of each sentence's pieces after every layer, of texts that say the same
    in several languages. Items are dealt into two halves; all that is learnt (the centroid of each
    language, the layer, a probe) is learnt on one half and used on the other. (1) Retrieval: of
    each pair of languages, in both directions, the share of sentences whose translation is nearest
    among all of its half: by cosine; after each language's centroid was taken off (centring); by
    distance; and by distance after the mean difference of the two languages was added (offset). It
    is set beside what shared pieces and shared characters find, chance, and ten copies of the model
    with shuffled weights. (2) Identity: the share of sentences whose language a linear probe tells,
    before and after centring. (3) Distances of centroids against kinship (same genus, same family)
    and the orders of words, by Mantel's test, which names languages anew; also with shared pieces
    and scripts taken out. What is said of a mean over languages is as sure as the wider of two
    intervals tells: over items, and over languages.

    Source: Libovický, Rosa and Fraser (2019), "How Language-Neutral is Multilingual BERT?"; Pires,
    Schlinger and Garrette (2019); Gonen et al. (2020); Singh et al. (2019).
    Limits: a dozen languages are few, and most that are studied are Indo-European. Texts are
    translations, mostly from English. Copies read fewer items (--copy-items), and the model is set
    against them on these. All vectors are held in memory: 20 MB for 1,000 sentences of a model with
    12 layers of width 384.
    """

    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "language", "item"}))
    result_type: ClassVar[type[Result]] = LanguageSpaceResult
    fewest: ClassVar[int] = 20
    copies: ClassVar[int] = COPIES
    fills_gpu: ClassVar[bool] = True

    copy_items: int = parameter(
        16, "Items of each language that copies with shuffled weights read.", minimum=10
    )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse pairs of texts, tokenizers that hide pieces, and texts that are not parallel."""
        from bertology.annotated.words import require_offsets

        super().check(encoder, corpus)
        require_offsets(encoder)
        if "text_b" in corpus.fields:
            raise CapabilityError(
                f"{corpus.name!r} has pairs of texts. Each text must be an example of its own.",
                hint="Give a corpus such as pud or tatoeba.",
            )
        if not _texts(self.shown(corpus)).pairs or not _texts(self._few(corpus)).pairs:
            raise DataError(
                f"No two languages of {corpus.name!r} share ten items.",
                hint="Texts that say the same must have the same item. Give a larger --limit.",
            )

    def _few(self, corpus: Corpus) -> Corpus:
        """What copies read."""
        return self.shown(corpus).take(self.copy_items, seed=self.seed)

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """The texts that are read."""
        return len(self.shown(corpus) if part == MODEL else self._few(corpus))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Retrieval, probes and centroids; of the model over all items and those of copies."""
        import xarray as xr

        from bertology.studies.languages.language_space.passes import sentence_means

        few = self._few(corpus)
        read = self.shown(corpus) if part == MODEL else few
        vectors, pieces = sentence_means(
            self.reader(encoder, part),
            read,
            batch_tokens=context.batch_tokens,
            advance=context.advance,
        )
        found = {}
        if part == MODEL:
            found = _measured(vectors, pieces, read, "", self.seed)
            known = {example.id for example in few}
            at = [number for number, example in enumerate(read) if example.id in known]
            vectors, pieces = vectors[:, at], [pieces[number] for number in at]
        found |= _measured(vectors, pieces, few, "_small", self.seed)
        return xr.Dataset(
            found,
            coords={
                "layer": [INPUT, *range(encoder.shape.layers)],
                "language": list(_texts(read).codes),
                "how": list(HOW),
                "lexical": list(LEXICAL),
                "probe": list(PROBES),
            },
            attrs={"empty": sum(not of for of in pieces)},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Shares by layer, language and pair; gains; what distances go with."""
        import pandas as pd
        import xarray as xr

        part, copies = measured[MODEL], self.of_copies(measured)
        scores = Scores(part)
        codes = [str(code) for code in part["language"].to_numpy()]
        known = [languages().get(code, _UNKNOWN) for code in codes]
        centres = part["centroids"].to_numpy().astype(np.float64)
        distances = np.stack([apart(of) for of in centres])
        types = _Types(known, part["piece_distances"].to_numpy())
        evidence, reasons = self._evidence(part, copies, types)
        drawn = scores.best("centred")[0]
        tables = {
            "layers": self._layers(part, scores, distances, types),
            "summary": pd.DataFrame(self._summary(scores)),
            "languages": pd.DataFrame(self._by_language(scores, codes, known)),
            "pairs": pd.DataFrame(_by_pair(scores, codes)),
        }
        if len(codes) > 2:
            tables["places"] = _places(distances, codes, known)
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons=reasons,
            facts={
                "examples": len(scores.items),
                "languages": len(codes),
                "candidates": float(np.mean(1 / scores.chance)),
                "drawn": drawn,
            },
            arrays=xr.Dataset(
                {
                    "distances": (("state", "first", "second"), distances),
                    "centroids": (("state", "first", "dimension"), centres),
                }
            ),
        )

    def _layers(
        self, part: xr.Dataset, scores: Scores, distances: Floats, types: _Types
    ) -> pd.DataFrame:
        import pandas as pd

        layers = part["layer"].to_numpy().astype(int)
        columns: dict[str, object] = {"layer": layers}
        rows = np.concatenate([scores.layers(how) for how in HOW])
        told = np.concatenate([scores.probe(which) for which in PROBES[:2]])
        for names, values in ((HOW, rows), (tuple(_IDENTITY), told)):
            means = self.means(values, within=(0, 1), reach=1.0, families=2)
            for number, name in enumerate(names):
                some = slice(number * len(layers), (number + 1) * len(layers))
                for column, of in with_bounds(name, means, p=False).items():
                    columns[column] = np.asarray(of)[some]
        for name in _TYPES:
            columns[name] = [types.correlation(of, name) for of in distances]
        return pd.DataFrame(columns)

    def _summary(self, scores: Scores) -> list[dict[str, object]]:
        """Each way to find translations, at the layer that the other half of the items picked."""
        found = []
        for how in HOW:
            layer, best = scores.best(how)
            share = scores.over(best, self.level)
            found.append({"how": how, "layer": layer, **bounded("share", share)})
        for how, rows in (*scores.lexical().items(), ("chance", scores.chance)):
            share = scores.over(rows, self.level)
            found.append({"how": how, "layer": INPUT, **bounded("share", share)})
        return [{**row, "n": len(scores.items)} for row in found]

    def _by_language(
        self, scores: Scores, codes: Sequence[str], known: Sequence[Language]
    ) -> list[dict[str, object]]:
        columns = {
            "cosine": scores.best("cosine")[1],
            "centred": scores.best("centred")[1],
            "shifted": scores.best("shifted")[1],
            **scores.lexical(),
        }
        found = []
        for number, (code, one) in enumerate(zip(codes, known, strict=True)):
            here = (scores.asked == number) | (scores.wanted == number)
            row: dict[str, object] = {
                "code": code,
                "name": one.name or code,
                "family": one.family,
                "genus": one.genus,
                "script": one.script,
            }
            for name, hits in columns.items():
                # Rows of other languages weigh nothing.
                items, at = np.unique(scores.item_of[here], return_inverse=True)
                each = np.bincount(at, hits[here]) / np.bincount(at) if here.any() else np.zeros(0)
                means = self.means(each[None], within=(0, 1), reach=1.0) if len(items) > 1 else None
                row |= bounded(name, None if means is None else means.estimate(0))
            found.append(row)
        return found

    def _evidence(
        self, part: xr.Dataset, copies: Sequence[xr.Dataset], types: _Types
    ) -> tuple[dict[str, Estimate | None], dict[str, str]]:
        found: dict[str, Estimate | None] = {}
        reasons: dict[str, str] = {}
        for name, pairs in (("retrieval_gain", None), ("across_scripts_gain", types.scripts)):
            asked = [tuple(part[rows].to_numpy()[:2]) for rows in ("rows", "rows_small")]
            if pairs is not None and not all(pairs[one].any() for one in asked):
                reasons[name] = "not judged: no two languages are written in different scripts"
                continue
            scores = Scores(part, pairs=pairs)
            best = scores.best("cosine")[1]
            small = [Scores(of, small=True, pairs=pairs) for of in (part, *copies)]
            controls = {
                f"shared {kind}": scores.over(best - rows, self.level)
                for kind, rows in scores.lexical().items()
            }
            hits = [of.best("cosine")[1] for of in small]
            controls["shuffled weights"] = small[0].beyond(small[1:], hits, self.level)
            own = scores.over(best - scores.chance, self.level)
            found[name] = own.with_controls(controls)
        scores = Scores(part)
        small = [Scores(of, small=True) for of in (part, *copies)]
        best = scores.best("cosine")[1]
        found["beyond_lexical"] = scores.over(
            best - max(scores.lexical().values(), key=lambda rows: scores.by_item(rows).mean()),
            self.level,
        )
        for name, (more, less) in {
            "centring_gain": ("centred", "cosine"),
            "offset_gain": ("shifted", "nearest"),
        }.items():
            gains = [of.best(more)[1] - of.best(less)[1] for of in (scores, *small)]
            beyond = small[0].beyond(small[1:], gains[1:], self.level)
            found[name] = scores.over(gains[0], self.level).with_controls(
                {"shuffled weights": beyond}
            )
        found |= self._identity(scores, small)
        for name in _TYPES:
            key = f"{name}_correlation"
            found[key] = types.estimate(part, copies, name, level=self.level, seed=self.seed)
            reasons[key] = (
                "not judged: fewer than five languages whose typology is known, or all alike"
            )
        return found, reasons

    def _identity(self, scores: Scores, small: Sequence[Scores]) -> dict[str, Estimate]:
        """What probes tell of languages over all layers, beyond a guess and dealt-out languages."""

        def told(of: Scores, which: str) -> Floats:
            found: Floats = of.probe(which)[1:].mean(axis=0)
            return found

        whole, dealt, without = (told(scores, which) for which in ("identity", "dealt", "centred"))
        guess = 1.0 / scores.languages
        own, *others = (told(of, "identity") for of in small)
        beyond = among_copies(
            least_mean([own - np.mean(others, axis=0)], level=self.level),
            [float(of.mean()) for of in others],
        )
        gain, over_dealt, fall = (
            least_mean([rows], level=self.level).counting("items")
            for rows in (whole - guess, whole - dealt, whole - without)
        )
        return {
            "identity_gain": gain.with_controls(
                {"languages that were dealt out": over_dealt, "shuffled weights": beyond}
            ),
            "identity_fall": fall,
        }


class _Types:
    """Kinship, orders of words and scripts of languages, as distances between them."""

    def __init__(self, known: Sequence[Language], pieces: Floats) -> None:
        self._known = [at for at, one in enumerate(known) if one.code]
        one = [known[at] for at in self._known]
        some = np.ix_(self._known, self._known)

        def all_pairs(distance: Callable[[Language, Language], float]) -> Floats:
            return np.array([[distance(a, b) for b in one] for a in one], np.float64)

        self.of = {
            "kinship": all_pairs(lambda a, b: (a.genus != b.genus) + (a.family != b.family)),
            "order": all_pairs(order_distance),
        }
        different = all_pairs(lambda a, b: a.script != b.script)
        self._given = (pieces[some], different)
        self.scripts: Bools = np.zeros((len(known), len(known)), bool)
        self.scripts[some] = different > 0

    def correlation(self, distances: Floats, name: str) -> float:
        """With the distances of centroids; NaN where nothing is known."""
        if len(self._known) < 3:
            return np.nan
        found = together(distances[np.ix_(self._known, self._known)], self.of[name])[0]
        return float(found.value[0]) if ranks_of_pairs(self.of[name]).any() else np.nan

    def estimate(
        self, part: xr.Dataset, copies: Sequence[xr.Dataset], name: str, *, level: float, seed: int
    ) -> Estimate | None:
        """Of distances over all layers; what shared pieces, scripts and copies leave of it."""
        if len(self._known) < FEWEST:
            return None
        own = self._over_layers(part, "centroids")
        other = self.of[name]
        found = mantel(own, other, level=level, unit="languages", seed=seed)
        if found is None:
            return None
        given = [one for one in self._given if ranks_of_pairs(one).any()]
        left = mantel(own, other, given=given, level=level, unit="languages", seed=seed)
        few, *shuffled = (self._over_layers(of, "centroids_small") for of in (part, *copies))
        first, links = together(few, other)
        rows = [together(of, other)[0] for of in shuffled]
        each = [float(row.value[0]) for row in rows]
        mean = np.mean([row.influence for row in rows], axis=0)
        less = Agreement(first.value - np.mean(each), first.influence - mean)
        beyond = among_copies(links.estimate(less, level=level, unit="languages"), each)
        return found.with_controls({"shared pieces and scripts": left, "shuffled weights": beyond})

    def _over_layers(self, part: xr.Dataset, variable: str) -> Floats:
        """Distances (K, K): the mean over layers, each as a share of its own mean."""
        each = [apart(of[self._known]) for of in part[variable].to_numpy()[1:].astype(np.float64)]
        mean: Floats = np.stack([of / max(of.mean(), 1e-12) for of in each]).mean(axis=0)
        return mean


def _texts(corpus: Corpus) -> Texts:
    return Texts.of([e.get("language") for e in corpus], [e.get("item") for e in corpus])


def _measured(
    vectors: object, pieces: Sequence[Sequence[int]], corpus: Corpus, of: str, seed: int
) -> dict[str, object]:
    """All that is kept of the vectors of some texts."""
    texts = _texts(corpus)
    layers = np.asarray(vectors)
    bags = bags_of(pieces)
    by_characters = bags_of([character_triples(example.text) for example in corpus])
    found = {
        "rows": (("what", "row"), np.stack(texts.rows)),
        "hits": (("how", "layer", "row"), np.stack([found_in(x, texts) for x in layers], axis=1)),
        "words": (
            ("lexical", "row"),
            np.stack([found_by_words(one, texts) for one in (bags, by_characters)]),
        ),
        "texts": (("which", "text"), np.stack([texts.language, texts.item])),
        "told": (
            ("probe", "layer", "text"),
            np.stack([languages_told(x, texts, seed=seed) for x in layers], axis=1),
        ),
        "centroids": (
            ("layer", "language", "dimension"),
            np.stack([centroids(x, texts) for x in layers]),
        ),
    }
    shared = {"layer", "how", "lexical", "probe", "language", "what", "which", "dimension"}
    named: dict[str, object] = {
        f"{name}{of}": (tuple(d if d in shared else f"{d}{of}" for d in dims), values)
        for name, (dims, values) in found.items()
    }
    if not of:
        member = np.eye(len(texts.codes))[texts.language]
        used = np.asarray((bags.T @ member).T)
        used = used / np.maximum(np.linalg.norm(used, axis=1), 1e-12)[:, None]
        named["piece_distances"] = (("language", "language_b"), 1 - used @ used.T)
    return named


def _by_pair(scores: Scores, codes: Sequence[str]) -> list[dict[str, object]]:
    columns = {
        **{how: scores.best(how)[1] for how in HOW},
        **scores.lexical(),
        "chance": scores.chance,
    }
    found = []
    for a, b in np.unique(np.stack([scores.asked, scores.wanted]), axis=1).T:
        here = (scores.asked == a) & (scores.wanted == b)
        shares = {name: float(rows[here].mean()) for name, rows in columns.items()}
        found.append({"first": codes[a], "second": codes[b], "n": int(here.sum()), **shares})
    return found


def _places(distances: Floats, codes: Sequence[str], known: Sequence[Language]) -> pd.DataFrame:
    """Each language in a plane, after each layer."""
    import pandas as pd

    rows = []
    for layer, of in enumerate(distances[1:]):
        places, stress = in_the_plane(of / max(of.max(), 1e-12))
        for code, one, (x, y) in zip(codes, known, places, strict=True):
            about = {"layer": layer, "code": code, "text": one.name or code, "start": 0, "end": 0}
            rows.append({**about, "family": one.family, "x": x, "y": y, "stress": stress})
    return pd.DataFrame(rows)


def _plain(found: Estimate) -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
