"""Structural probe: is the syntactic tree in the distances between states, after a linear map?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.arrays import Floats, Ints
from bertology.errors import DataError, ParameterError, UnknownNameError
from bertology.parameters import parameter, pooling_of
from bertology.report import drawings
from bertology.report.figures import Band, Dots, layer_profile, tree_plane
from bertology.results.answers import NOTHING_SURE, of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.probe_scores import (
    best_layer,
    controlled_gain,
    least_gain,
    middle_over_ends,
)
from bertology.studies.designs.shares import per_item
from bertology.studies.designs.tables import bounded, labelled_table, with_bounds
from bertology.studies.designs.trees import KEPT, TreesResult
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.train.probes.tree_scores import SentenceScores


INPUT = -1  # as a layer: what enters the first one
PLANE = "plane_"  # and a number: the words of a kept sentence in the probe's space
SCORES: Mapping[str, tuple[str, str, str]] = {
    "uuas": (
        "arcs found (UUAS)",
        "Annotated arcs in the tree of predicted distances",
        "High: words that hang together in the tree lie near each other.",
    ),
    "dspr": (
        "distances (DSpr.)",
        "Correlation of annotated and predicted distances",
        "High: the farther apart in the tree, the farther apart the states.",
    ),
    "root": (
        "roots found",
        "Sentences whose root has the smallest predicted depth",
        "High: the root of the sentence is told from its other words.",
    ),
    "nspr": (
        "depths (NSpr.)",
        "Correlation of annotated and predicted depths",
        "High: the deeper a word lies in the tree, the longer its state is after the map.",
    ),
}
"""Of each score its short name, its title, and how to read it."""
_SHARES = ("uuas", "root")


class StructuralFigures(TreesResult):
    """Answer, measures and figures of a structural probe."""

    strongest: ClassVar[Mapping[str, str]] = {"layers": "uuas", "scores": "gain"}

    @property
    def answer(self) -> str:
        """How many arcs the best layer's tree has, and what it gains over all baselines."""
        table = self.tables["scores"]
        row = table[table["score"] == "uuas"].iloc[0]
        value, gain = (of_row(row, (c, f"{c}_low", f"{c}_high")) for c in ("value", "gain"))
        sure = gain.low > 0
        opening = "Some of it" if sure else NOTHING_SURE
        return (
            f"{opening}: after a linear map, the states of the best layer ({int(row['layer'])}) "
            f"give {percent(value)} of the annotated arcs, {points(gain, '.0f')} against the best "
            "of a chain, a random tree, the input and shuffled weights."
        )

    def _known(self) -> list[str]:
        """The scores that enough sentences have."""
        return [str(name) for name in self.tables["scores"]["score"]]

    def measures(self) -> Sequence[Measure]:
        """The four scores by layer."""
        table = self.tables["layers"]
        rows = table[table["layer"] >= 0]
        return [
            Measure.of_column(
                rows,
                name,
                name=name,
                title=SCORES[name][1],
                unit=_unit(name),
                scale=100.0 if name in _SHARES else 1.0,
                reading=SCORES[name][2],
            )
            for name in self._known()
        ]

    def over_training(self) -> Sequence[Tracked]:
        """For each score what the best layer gains over all baselines, and the score by layer."""
        return [
            Tracked(
                f"{name}_gain",
                f"the gain of the best layer over all baselines in {SCORES[name][0]}",
                layers=name,
                scale=100.0 if name in _SHARES else 1.0,
                unit="points" if name in _SHARES else "",
                gain=True,
            )
            for name in self._known()
        ]

    def shown_tree(self) -> tuple[str, int]:
        """That of the layer which is best on all test sentences."""
        table = self.tables["scores"]
        return "undirected", int(table[table["score"] == "uuas"]["layer"].iloc[0]) + 1

    def candidate_name(self, number: int) -> str:
        """`layer 7`, or the input."""
        return f"layer {number - 1}" if number else "the input"

    def plane(self, sentence: int = 0, *, layer: int | None = None) -> Figure:
        """The words of a kept sentence in the probe's space, with annotated and found arcs."""
        kept = [str(name) for name in self.arrays.data_vars if str(name).startswith(KEPT)]
        if f"{KEPT}{sentence}" not in kept:
            raise UnknownNameError("kept sentence", str(sentence), [k.split("_")[1] for k in kept])
        of, places = self.arrays[f"{KEPT}{sentence}"], self.arrays[f"{PLANE}{sentence}"]
        number = self.shown_tree()[1] if layer is None else layer + 1
        if not 0 <= number < places.sizes["candidate"]:
            known = [str(at - 1) for at in range(places.sizes["candidate"])]
            raise UnknownNameError("layer", str(layer), known)
        name = self.candidate_name(number)
        return tree_plane(
            [str(word) for word in of.attrs["words"]],
            places.isel(candidate=number).to_numpy(),
            known=[int(h) for h in of.attrs["gold"]],
            found=[int(h) for h in of.isel(tree=0, candidate=number).to_numpy()],
            title=f"A sentence in the space of the probe of {name}\n{self.about}",
        )

    def drawings(self) -> Sequence[Drawing]:
        """Arcs by layer beside baselines, all scores, gains, and single sentences."""
        name = self.candidate_name(self.shown_tree()[1])
        planes = [
            Drawing(
                f"plane-{at}",
                partial(self.plane, at),
                f"The words of a sentence in the space of the distance probe of {name}, on the two "
                "directions in which they differ most. Grey lines are annotated arcs; blue broken "
                "ones are found and annotated, vermilion dotted ones are found only. A plane shows "
                "less than the whole space, so that words may lie nearer here than they do there.",
            )
            for at in sorted(
                int(str(n).removeprefix(PLANE))
                for n in self.arrays.data_vars
                if str(n).startswith(PLANE)
            )
        ]
        rows = self.tables["scores"]
        return [
            Drawing(
                "layers",
                self._layers,
                "Arcs of annotated trees that are in the tree of predicted distances, by layer, in "
                "per cent; beside it the same of the model with its weights in random order, of "
                "what enters the first layer, and of a chain. Bands are intervals over test "
                "sentences. Where the first line is above the others, layers tell of the tree.",
            ),
            *self.arc_drawings(),
            *planes,
            Drawing(
                "scores",
                self._scores,
                "The four scores of Hewitt and Manning by layer, from 0 to 1: arcs found (UUAS), "
                "correlation of distances (DSpr.), roots found, correlation of depths (NSpr.). "
                "Bands are intervals over test sentences.",
            ),
            drawings.dots(
                "gains",
                [
                    Dots.of_columns("score × 100", rows, "value"),
                    Dots.of_columns("gain × 100", rows, "gain", level=0.0),
                ],
                [SCORES[str(name)][0] for name in rows["score"]],
                self.about,
                title="What the best layer tells of trees",
                caption="For each score the value of its best layer, and its gain over the best of "
                "all baselines (chain, random tree, input, shuffled weights), times 100. The layer "
                "was picked on one half of the test sentences and scored on the other; intervals "
                "hold for all scores together.",
                note="Gain: over the best of a chain, a random tree, the input and shuffled "
                "weights.",
            ),
        ]

    def _layers(self) -> Figure:
        table = self.tables["layers"].set_index("layer").sort_index()
        rows = table.loc[0:]  # the first row is the input
        chain = self.tables["scores"].set_index("score")["chain"]
        bands = [
            Band.of_columns("the layer's states", rows, "uuas"),
            Band("weights shuffled", 100 * rows["shuffled_uuas"].to_numpy()),
            Band("the input", np.full(len(rows), 100 * table["uuas"].iloc[0])),
            Band("a chain", np.full(len(rows), 100 * chain.to_dict()["uuas"])),
        ]
        title = f"Annotated arcs in the trees of structural probes\n{self.about}"
        return layer_profile(bands, title=title, label="% of arcs (UUAS)")

    def _scores(self) -> Figure:
        table = self.tables["layers"]
        rows = table[table["layer"] >= 0].sort_values("layer")
        bands = [Band.of_columns(SCORES[name][0], rows, name, scale=1.0) for name in self._known()]
        title = f"Scores of structural probes\n{self.about}"
        return layer_profile(bands, title=title, label="share, or correlation")


def _unit(name: str) -> str:
    return {"uuas": "% of arcs", "root": "% of sentences"}.get(name, "Spearman's correlation")


MODEL, SHUFFLED = "model", "shuffled"
_FEWEST = 10  # test sentences with a score, for it to be judged
_SHOWN = range(5, 15)  # words of a sentence that is shown
_LENGTHS = range(5, 51)  # words of sentences whose distances are scored, as in the paper


class StructuralProbeResult(StructuralFigures):
    """How much of the annotated trees lies in the states after each layer.

    Table `layers`: for each layer (-1 is what enters the first one) the share of annotated arcs in
    the tree of predicted distances (`uuas`), Spearman's correlation of annotated and predicted
    distances (`dspr`, and `dspr_by_length` as the paper averages it), the share of sentences whose
    root is found (`root`), and the correlation of depths (`nspr`), on sentences that did not train;
    `shuffled_uuas` is that of the same model with its weights in random order. `scores`: the best
    layer, picked on one half of the test sentences and scored on the other, and its gain over all
    baselines. `ranks`: losses on held-out sentences, and the rank that was chosen. Arrays:
    `projection` (kind, layer, dimension, column), which maps a state to the probe's space;
    `sentence_0` … trees of single sentences by candidate (the input, then layers), `plane_0` …
    their words in a plane.
    """


@dataclass(frozen=True)
class StructuralProbe(Resampled):
    """Is the syntactic tree of a sentence in the distances between the states of its words?

    Method: for each layer a matrix B is learnt such that the squared distance ‖B(h_i − h_j)‖²
    between the states of two words is the number of arcs between them in the annotated tree, and
    another such that the squared length ‖B h_i‖² is the number of arcs to the root. Probes of all
    layers, ranks and both kinds are trained together, each with its own rate and end on held-out
    sentences, which also choose the rank of each layer. Of every ten texts seven train, one is held
    out and two are scored. The tree of a sentence is the minimum spanning tree of predicted
    distances, punctuation left out; its root is the word of smallest predicted depth. Baselines: a
    chain (each word hangs from the one before it), a random tree, the input of the first layer, and
    the same model with its weights in random order; the best layer counts only if it beats all of
    them. Intervals are over sentences.

    Source: Hewitt and Manning (2019). Limits: what a matrix finds need not be used by the model.
    Correlations of distances are averaged over sentences of 5 to 50 words, each counting once; the
    paper averages over lengths first, which leaves lengths with one sentence without an interval.
    Words that are cut off or have no piece of their own are left out, and so are sentences of fewer
    than three words, or whose annotation is no tree; all are counted.
    """

    version: ClassVar[int] = 4  # bounds allow for rare answers that were not seen
    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "words", "heads", "relations"}))
    finds_words: ClassVar[bool] = True
    result_type: ClassVar[type[Result]] = StructuralProbeResult
    fewest: ClassVar[int] = 20

    ranks: tuple[int, ...] = parameter((8, 32, 64), "Ranks to choose from, for each layer.")
    pooling: str = pooling_of("a word")
    keep: int = parameter(1, "Keep the trees of so many sentences, to show.", minimum=0, maximum=20)

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse ranks below one, and tokenizers that do not say which pieces make a word."""
        super().check(encoder, corpus)
        if not self.ranks or min(self.ranks) < 1:
            raise ParameterError("ranks", "structural-probe", "be one or more, from 1", self.ranks)

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """The model, and its shuffled weights."""
        return [MODEL, SHUFFLED]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """The examples that are read; training counts as much again."""
        return 2 * len(self.shown(corpus))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Scores of test sentences by layer, of the ranks that are best on held-out ones."""
        from bertology.annotated.states import word_states
        from bertology.annotated.trees.distances import tree_sentences
        from bertology.model.weight_noise import shuffled_copy
        from bertology.train.probes.structural import KINDS
        from bertology.train.probes.tree_scores import chain_scores, fitted, scored_sentences
        from bertology.train.probes.tree_streams import TreeStream

        shown = self.shown(corpus)
        states = word_states(
            shuffled_copy(encoder, seed=self.seed) if part == SHUFFLED else encoder,
            shown,
            pooling=self.pooling,
            folder=context.states,
            batch_tokens=context.batch_tokens,
            advance=context.advance,
        )
        trees = tree_sentences(shown, states)
        rows = trees.of_part(2)
        if min(len(trees.of_part(part)) for part in range(3)) == 0 or len(rows) < _FEWEST:
            raise DataError(
                f"{len(rows)} test sentences have a tree of three words or more; "
                f"{_FEWEST} are needed.",
                hint="Give more text with --limit; two sentences of ten are scored.",
            )
        told = 0

        def advance(done: int, of: int) -> None:
            nonlocal told
            before, told = told, len(shown) * done // of
            context.advance(told - before)

        stream = TreeStream(states, trees.sentences, device=encoder.device)
        width = encoder.shape.hidden
        ranks = sorted({min(rank, width) for rank in self.ranks})
        probes = fitted(stream, trees, ranks, seed=self.seed, advance=advance)
        scores = scored_sentences(stream, trees, probes, rows)
        chains = [chain_scores(row, trees.sentences[row]) for row in rows]
        data = _part(scores, chains)
        some = [trees.sentences[row] for row in rows]
        data["arcs"] = ("example", np.array([one.arcs.sum() for one in some]))
        data["words"] = ("example", np.array([len(one) for one in some]))
        data["counted"] = ("example", np.array([one.counted.sum() for one in some]))
        data["losses"] = (("kind", "rank", "layer"), probes.losses)
        data = data.assign_coords(
            layer=[INPUT, *range(encoder.shape.layers)], kind=list(KINDS), rank=list(ranks)
        )
        data.attrs = {
            "missing": states.missing,
            "short": trees.short,
            "broken": trees.broken,
            "trained": len(trees.of_part(0)),
            "held": len(trees.of_part(1)),
        }
        if part == MODEL:
            from bertology.model.loading.fingerprint import states_fingerprint

            data.attrs["weights"] = states_fingerprint(encoder.base, encoder.tokenizer)
            dims = ("kind", "layer", "dimension", "column")
            data["projection"] = (dims, np.stack([probes.matrices[kind] for kind in KINDS]))
            data = data.assign(self._kept(shown, some, scores))
        return data

    def _kept(
        self, corpus: Corpus, some: Sequence[Any], scores: Sequence[SentenceScores]
    ) -> dict[str, Any]:
        """The trees of the first sentences that can be shown, and their words in a plane."""
        import xarray as xr

        short = [i for i, one in enumerate(some) if one.counted.sum() in _SHOWN]
        found: dict[str, Any] = {}
        for number, at in enumerate(short[: self.keep]):
            one, own = some[at], np.flatnonzero(some[at].counted)
            place = np.full(len(one), -1)
            place[own] = np.arange(len(own))
            words = corpus[one.example].get("words")
            about = {
                "words": [str(words[word]) for word in one.words[own]],
                "gold": [int(place[h]) if h >= 0 else -1 for h in one.heads[own]],
            }
            word = f"word_{number}"
            found[f"{KEPT}{number}"] = xr.DataArray(
                scores[at].heads[None].astype(np.int16),
                dims=("tree", "candidate", word),
                coords={"tree": ["undirected"]},
                attrs=about,
            )
            found[f"{PLANE}{number}"] = (("candidate", word, "axis"), scores[at].plane)
        return found

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Scores by layer, the best layer's gains over all baselines, ranks."""
        import pandas as pd

        model, shuffled = measured[MODEL], measured[SHUFFLED]
        layers = [int(layer) for layer in model["layer"].to_numpy()]
        every = {name: _Scores.of(name, model, shuffled) for name in SCORES}
        scores = [one for one in every.values() if (one.counts > 0).sum() >= _FEWEST]
        columns: dict[str, Any] = {"n": (every["uuas"].counts > 0).sum().repeat(len(layers))}
        for name, one in every.items():
            if one in scores:
                rows = per_item(one.hits.T, one.counts)
                means = self.means(rows, within=one.within, reach=1.0, families=len(scores))
                columns |= with_bounds(name, means, p=False)
            else:
                columns |= {f"{name}{end}": np.full(len(layers), np.nan) for end in _ENDS}
        columns["dspr_by_length"] = _by_length(model["dspr"].to_numpy(), model["words"].to_numpy())
        columns["shuffled_uuas"] = every["uuas"].share(every["uuas"].shuffled)
        chosen = model["losses"].to_numpy().argmin(axis=1)  # (kinds, layers)
        ranks = model["rank"].to_numpy()
        for at, kind in enumerate(model["kind"].to_numpy()):
            columns[f"{kind}_rank"] = ranks[chosen[at]]
        losses = labelled_table(
            {"kind": model["kind"].to_numpy(), "rank": ranks, "layer": layers},
            {
                "loss": model["losses"].to_numpy(),
                "chosen": np.arange(len(ranks))[None, :, None] == chosen[:, None],
            },
        )
        evidence: dict[str, Estimate | None] = {
            f"{one.name}_gain": one.gain(self.level) for one in scores
        }
        for name, of in (("uuas", "middle_over_ends"), ("nspr", "depths_middle_over_ends")):
            one, gain = every[name], evidence.get(f"{name}_gain")
            # Where trees are told at all.
            if gain is not None and gain.surely_there:
                evidence[of] = middle_over_ends(one.hits[:, 1:], one.counts, level=self.level)
        kept = [n for n in model.data_vars if str(n).startswith((KEPT, PLANE, "projection"))]
        about = {str(name): value for name, value in model.attrs.items()}
        return self.result(
            provenance,
            {
                "layers": labelled_table({"layer": layers}, columns),
                "scores": pd.DataFrame([self._score(one, layers, len(scores)) for one in scores]),
                "ranks": losses,
            },
            evidence=evidence,
            reasons={
                "": "not judged: too few test sentences have this score, or no layer surely beats "
                "all baselines"
            },
            facts={"examples": int((every["uuas"].counts > 0).sum()), **about},
            arrays=model[kept],
        )

    def _score(self, one: _Scores, layers: Sequence[int], families: int) -> dict[str, object]:
        """The best layer of a score, cross-fitted, beside its baselines."""
        best, picked = best_layer(one.hits[:, 1:], one.counts)
        rows = per_item(picked, one.counts)[None]
        score = self.means(rows, within=one.within, reach=1.0, families=families)
        gain = one.least_gain(self.level, families=families)
        bases = {name: one.share(base[:, None])[0] for name, base in one.baselines().items()}
        return {
            "score": one.name,
            "n": int(score.n[0]),
            "layer": layers[best + 1],
            "value": score.value[0],
            "value_low": score.simultaneous_low[0],
            "value_high": score.simultaneous_high[0],
            **{name: bases.get(name, np.nan) for name in _BASELINES},
            **bounded("gain", gain),
        }


_ENDS = ("", "_low", "_high")
_BASELINES = ("chain", "random", "input", "shuffled")


@dataclass(frozen=True)
class _Scores:
    """One score by test sentence; layer 0 of `hits` and `shuffled` (N, L + 1) is the input."""

    name: str
    hits: Floats
    shuffled: Floats
    counts: Ints  # (N,): arcs, or 1 where the sentence has the score
    plain: Mapping[str, Floats]  # what needs no model

    @classmethod
    def of(cls, name: str, model: xr.Dataset, shuffled: xr.Dataset) -> _Scores:
        """Read off the two parts."""
        hits, chance = (np.asarray(part[name].to_numpy(), np.float64) for part in (model, shuffled))
        chain = np.asarray(model[f"chain_{name}"].to_numpy(), np.float64)
        if name == "uuas":
            arcs = model["arcs"].to_numpy().astype(np.int64)
            # Of all trees over n words, each equally likely, a share of 2 / n has a given arc.
            random = 2 * arcs / model["counted"].to_numpy()
            return cls(name, hits, chance, arcs, {"chain": chain, "random": random})
        there = np.asarray(np.isfinite(hits).all(axis=1))
        if name == "dspr":
            there &= np.isin(model["words"].to_numpy(), _LENGTHS)
        plain = {"chain": np.where(there, chain, 0.0)}
        if name == "root":
            plain["random"] = np.where(there, 1 / model["counted"].to_numpy(), 0.0)
        own, other = (np.where(there[:, None], of, 0.0) for of in (hits, chance))
        return cls(name, own, other, there.astype(np.int64), plain)

    @property
    def within(self) -> tuple[float, float]:
        return (0.0, 1.0) if self.name in ("uuas", "root") else (-1.0, 1.0)

    def share(self, hits: Floats) -> Floats:
        """Of all arcs, or the mean over sentences: (L,)."""
        found: Floats = hits.sum(axis=0) / max(self.counts.sum(), 1)
        return found

    def baselines(self) -> dict[str, Floats]:
        """What the best layer must beat: (N,) each."""
        _, chance = best_layer(self.shuffled[:, 1:], self.counts)
        return {**self.plain, "input": self.hits[:, 0], "shuffled": chance}

    def gains(self) -> dict[str, Floats]:
        """The cross-fitted best layer less each baseline."""
        _, picked = best_layer(self.hits[:, 1:], self.counts)
        return {name: picked - base for name, base in self.baselines().items()}

    def gain(self, level: float) -> Estimate:
        """Over the best tree that needs no model, which is what claims state; with controls."""
        gains = self.gains()
        by_kind = {
            "trees that need no model": [gains[name] for name in self.plain],
            "the input": [gains["input"]],
            "shuffled weights": [gains["shuffled"]],
        }
        return controlled_gain(by_kind, self.counts, level=level)

    def least_gain(self, level: float, *, families: int = 1) -> Estimate:
        """The smallest of all gains, as the table shows it."""
        rows = list(self.gains().values())
        return least_gain(rows, self.counts, level=level, families=families)


def _part(scores: Sequence[SentenceScores], chains: Sequence[SentenceScores]) -> xr.Dataset:
    """Scores by sentence and layer, and those of a chain, under the names of the field."""
    import xarray as xr

    names = {"uuas": "hits", "dspr": "distance", "root": "root", "nspr": "depth"}
    found: dict[str, Any] = {}
    for name, of in names.items():
        by_layer = np.stack([getattr(one, of) for one in scores]).astype(np.float32)
        chain = np.array([getattr(one, of)[0] for one in chains], np.float32)
        found[name] = (("example", "layer"), by_layer)
        found[f"chain_{name}"] = ("example", chain)
    return xr.Dataset(found)


def _by_length(values: Floats, words: Ints) -> Floats:
    """Means over sentences of each length from 5 to 50, then over lengths, as the paper has it."""
    means = [values[words == n].mean(axis=0) for n in _LENGTHS if (words == n).any()]
    found: Floats = np.mean(means, axis=0) if means else np.full(values.shape[1], np.nan)
    return found
