"""Word senses: do the states of a word's occurrences lie together by sense?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.errors import ParameterError
from bertology.parameters import drawn, parameter, pooling_of
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import NOTHING_SURE, of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.points import PointColumns
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.shuffled_copies import COPIES, MODEL, ShuffledCopies
from bertology.studies.geometry.word_senses.data import SenseData
from bertology.studies.geometry.word_senses.tables import Senses
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.annotated.sense_occurrences import Occurrence
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape


_SHARES = {
    "accuracy": (
        "Occurrences whose neighbours have their sense",
        "% of occurrences",
        "High: occurrences of the same sense lie near each other.",
    ),
    "lemma_mean": (
        "Occurrences whose neighbours have their sense, mean over lemmas",
        "% of occurrences",
        "High: the same, each lemma counting once, however frequent it is.",
    ),
}
_CLUSTERS = {
    "ari": (
        "Agreement of clusters with senses",
        "adjusted Rand index",
        "1: clusters are the senses. 0: as much as by chance.",
    ),
    "v_measure": (
        "What clusters and senses tell of each other",
        "V-measure",
        "1: clusters are the senses. With few occurrences it is above 0 by chance.",
    ),
    "silhouette": (
        "How far senses lie apart",
        "silhouette",
        "Above 0: occurrences are nearer to their own sense than to the next one.",
    ),
}
_LABELS = {
    "accuracy": "neighbours: all occurrences (%)",
    "lemma_mean": "neighbours: mean over lemmas (%)",
    "ari": "clusters: ARI × 100",
    "v_measure": "clusters: V-measure × 100",
    "silhouette": "senses: silhouette × 100",
}


_POINTS = PointColumns("occurrences", ("lemma", "layer", "method"), "sense")


class WordSensesResult(Result):
    """How far the occurrences of a word lie together by sense.

    Table `layers`: for each layer (-1 is what enters the first one) the share of occurrences of
    ambiguous lemmas whose nearest neighbours have their sense (`accuracy`) and its mean over lemmas
    (`lemma_mean`), with the number of neighbours that is best; agreement of k-means clusters with
    senses (`ari`, `v_measure`) and the silhouette of senses, means over lemmas, each beside the
    mean when senses are dealt out anew (`_dealt`) and that of shuffled weights. Bounds of
    `accuracy` hold for all layers together; those over lemmas hold for each row alone, and fewer
    than five lemmas have none. `scores`: the best layer, picked on one half and scored on the
    other, beside what it must beat (clusters: beyond dealt senses); `reachable` is the share of
    answers that neighbours can give at all, `context` that of a bag of the words around.
    `neighbours`: by number of neighbours. `senses`: clusters by number of senses (5 stands for
    more, too). `lemmas`: single lemmas at the best layer. `occurrences`: points of some words'
    occurrences in planes, by method and layer, with the text around and the place (`start`, `end`)
    of the word in it.
    """

    strongest: ClassVar[Mapping[str, str]] = {"layers": "accuracy", "scores": "gain"}

    def _score(self, name: str) -> pd.Series:
        table = self.tables["scores"]
        found: pd.Series = table[table["score"] == name].iloc[0]
        return found

    @property
    def answer(self) -> str:
        """How many senses neighbours tell, and by how much more than all that must be beaten."""
        row = self._score("accuracy")
        value, gain = (of_row(row, (c, f"{c}_low", f"{c}_high")) for c in ("value", "gain"))
        opening = "Yes" if gain.low > 0 else NOTHING_SURE
        told = (
            f"{opening}: the nearest neighbours after the best layer ({int(row['layer'])}) give "
            f"{percent(value)} of the senses, {points(gain, '.0f')} against the best of the most "
            "frequent sense, static embeddings, the input and shuffled weights"
        )
        clusters = self.evidence().get("cluster_gain")
        if clusters is None:
            return f"{told}."
        sure = "also lie" if clusters.surely_there else "do not surely lie"
        return f"{told}; senses {sure} in clusters of their own beyond them."

    def measures(self) -> Sequence[Measure]:
        """Right neighbours and clusters by layer."""
        table = self.tables["layers"]
        rows = table[table["layer"] >= 0]
        return [
            Measure.of_column(
                rows,
                column,
                name=column.replace("_", "-"),
                title=title,
                unit=unit,
                scale=100.0 if column in _SHARES else 1.0,
                reading=reading,
            )
            for column, (title, unit, reading) in (_SHARES | _CLUSTERS).items()
            if column in rows
        ]

    def over_training(self) -> Sequence[Tracked]:
        """Gains over all baselines, of neighbours and of clusters."""
        found = [
            Tracked(
                "sense_gain",
                "the gain of nearest neighbours over all baselines",
                layers="accuracy",
                scale=100.0,
                unit="points",
                gain=True,
            )
        ]
        if "cluster_gain" in self.evidence():
            found.append(
                Tracked(
                    "cluster_gain",
                    "the gain of clusters over all baselines (ARI)",
                    layers="ari",
                    gain=True,
                )
            )
        return found

    def drawings(self) -> Sequence[Drawing]:
        """Neighbours by layer beside baselines, clusters by layer and by number of senses."""
        unit, row = str(self.facts["unit"]), self._score("accuracy")
        table = self.tables["layers"].set_index("layer").sort_index()
        layers = table.loc[0:]  # the first row is the input
        found = [
            drawings.profile(
                "layers",
                [self.measure("accuracy")],
                self.about,
                title="Senses that nearest neighbours tell",
                labels=["the layer's states"],
                beside={
                    "weights shuffled": 100 * layers["shuffled_accuracy"].to_numpy(),
                    "most frequent sense": 100 * row["frequent"],
                    "static embeddings": 100 * row["static"],
                    "words around (bag)": 100 * row["context"],
                },
                caption="Occurrences of ambiguous words whose nearest neighbours have their sense, "
                "by layer, in per cent; beside it the same with shuffled weights (mean of copies), "
                "the most frequent sense, static embeddings, and neighbours by the words around, "
                f"as a bag. Bands are intervals over {unit} for all layers together. Where the "
                "first line is above the others, layers tell senses.",
            )
        ]
        if "ari" in table:
            senses = self.tables["senses"]
            names = [
                f"{n} senses{' or more' if n == 5 else ''} ({many} lemma{'' if many == 1 else 's'})"
                for n, many in senses[["senses", "lemmas"]].to_numpy()
            ]
            labels = {"ari": "ARI", "v_measure": "V-measure", "silhouette": "silhouette"}
            found += [
                drawings.profile(
                    "clusters",
                    [self.measure("ari")],
                    self.about,
                    title="Agreement of clusters with senses",
                    labels=["the layer's states"],
                    beside={
                        "weights shuffled": layers["ari_shuffled"].to_numpy(),
                        "the input": table["ari"].iloc[0],
                    },
                    caption="Agreement of k-means clusters with senses (adjusted Rand index) by "
                    "layer, mean over lemmas; beside it the input of the first layer and shuffled "
                    "weights. 1: clusters are the senses; 0: chance. Bands are intervals over "
                    "lemmas, for each layer alone.",
                ),
                drawings.dots(
                    "senses",
                    [
                        Dots.of_columns(f"{of} × 100", senses, name, level=0.0)
                        for name, of in labels.items()
                    ],
                    names,
                    self.about,
                    title="Clusters by number of senses",
                    caption="How well clusters fit the senses, by how many senses a lemma has, at "
                    "the best layer: adjusted Rand index, V-measure and silhouette, each beyond "
                    "its mean when senses are dealt out anew, times 100. Intervals are over "
                    "lemmas, for each row alone; fewer than five lemmas have none. 0: chance.",
                    note="Beyond the mean of senses that are dealt out anew; 0 is chance.",
                ),
            ]
        rows = self.tables["scores"]
        found.append(
            drawings.dots(
                "gains",
                [
                    Dots.of_columns("score × 100", rows, "value"),
                    Dots.of_columns("gain × 100", rows, "gain", level=0.0),
                ],
                [_LABELS[str(name)] for name in rows["score"]],
                self.about,
                title="What the best layer tells of senses",
                caption="The best layer by each score (clusters: beyond senses that are dealt out "
                "anew), and its gain over the best of all baselines, times 100. The layer was "
                f"picked on one half and scored on the other; intervals are over {unit} or lemmas.",
                note="Gain: over the best of all that must be beaten; right of 0, senses are told.",
            )
        )
        if "occurrences" in self.tables:
            found.append(self._planes())
        return found

    def _planes(self) -> Drawing:
        """The first word and method of the table, by layer; pages have the others, too."""
        table = self.tables["occurrences"]
        lemma, method = (str(table[column].iloc[0]) for column in ("lemma", "method"))
        own = table[(table["lemma"] == lemma) & (table["method"] == method)]
        layers = [int(layer) for layer in own["layer"].unique()]
        names = {"pca": "PCA", "t-sne": "t-SNE", "umap": "UMAP"}
        return drawings.planes(
            "occurrences",
            table,
            _POINTS,
            self.about,
            title=f"Occurrences of {lemma} in a plane ({names[method]})",
            reading="The planes were made without the senses: where marks of a kind lie together, "
            "the states tell the sense.",
            drawn=[(lemma, layer, method) for layer in layers],
            labels=["embeddings" if layer < 0 else f"layer {layer}" for layer in layers],
            one="occurrence",
        )


_CLUSTERED = 300  # lemmas whose clusters are looked at, the most frequent ones
_OCCURRENCES = 400  # occurrences of a lemma among which clusters are looked for


@dataclass(frozen=True)
class WordSenses(ShuffledCopies, Resampled):
    """Do the contextual embeddings of a word form clusters that are its senses?

    Method: every annotated occurrence of a word with several senses gets the sense that most of its
    nearest neighbours (by cosine) among other occurrences of the same lemma have, after each layer.
    Neighbours come from other texts: from another split (`train-split`), or from the other folds of
    the same texts; documents stay together where the corpus has them. Scored are the share of right
    answers, and its mean over lemmas, of ambiguous lemmas only. The best layer and number of
    neighbours are picked on one half and scored on the other. They must beat the lemma's most
    frequent sense (of equally frequent ones, one by chance), static embeddings (what words that are
    spelt alike mean most often), the input of the first layer, and copies of the model with
    shuffled weights. Clusters: k-means with as many clusters as senses, by lemma, of one occurrence
    in each text or document; adjusted Rand index and V-measure with the senses, and the silhouette
    of the senses, each beyond its mean when the senses are dealt out anew. Intervals are over texts
    or documents; those of clusters and of means over lemmas are over lemmas (Student's, corrected
    for skewness; of five or more).

    Source: Wiedemann et al. (2019). Limits: senses that only one text has cannot be told by
    neighbours and count as wrong; clusters are looked for among senses with five occurrences or
    more. The embeddings of the words around tell much of the sense by themselves (`context`, a bag
    of words), so that what is beyond them is given apart. Texts that read the same never teach each
    other. Words that were cut off are left out.
    """

    version: ClassVar[int] = 5  # bounds allow for rare answers that were not seen
    measured_version: ClassVar[int] = 2
    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "senses"}))
    finds_words: ClassVar[bool] = True
    result_type: ClassVar[type[Result]] = WordSensesResult
    fewest: ClassVar[int] = 10
    copies: ClassVar[int] = COPIES  # some tell more than others by chance
    fills_gpu: ClassVar[bool] = True

    examples: int = drawn(2000, "texts", minimum=10)
    train_split: str = parameter(
        "", "The split that neighbours come from; if not given, other folds of the same texts."
    )
    train_examples: int | None = parameter(
        None, "Take so many texts of that split, drawn at random; all if not given.", minimum=2
    )
    folds: int = parameter(5, "Folds, where neighbours come from the same texts.", minimum=2)
    k: tuple[int, ...] = parameter((1, 5, 10), "Numbers of neighbours that vote.")
    pooling: str = pooling_of("a word")
    per_sense: int = parameter(
        5, "Clusters: look at senses with so many occurrences or more.", minimum=2
    )
    deals: int = parameter(
        20, "Clusters: deal the senses out anew so many times.", minimum=1, maximum=1000
    )
    words: tuple[str, ...] = parameter(
        (), "Words to draw (bank,spring); if not given, those with many occurrences of all senses."
    )
    pictured: int = parameter(4, "Draw so many words, if none is named.", minimum=0, maximum=50)
    points: int = parameter(
        200, "Draw so many occurrences of each word, taken at random.", minimum=2, maximum=2000
    )
    planes: tuple[str, ...] = parameter(
        ("pca", "t-sne"), "How they are drawn in two dimensions: pca, t-sne, umap (if installed)."
    )
    drawn_layers: tuple[int, ...] = parameter(
        (), "Layers to draw, -1 for the input; if not given: the input, the middle one, the last."
    )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse numbers below one, methods that are not there, and unknown layers."""
        from bertology.annotated.sense_planes import METHODS, available_methods

        super().check(encoder, corpus)
        if not self.k or min(self.k) < 1:
            raise ParameterError("k", "word-senses", "be one or more, from 1", self.k)
        for method in self.planes:
            if method not in available_methods():
                must = "be of " + ", ".join(METHODS[:2]) + " (umap needs the package umap-learn)"
                raise ParameterError("planes", "word-senses", must, method)
        for layer in self.drawn_layers:
            if not -1 <= layer < encoder.shape.layers:
                must = f"be from -1 to {encoder.shape.layers - 1}"
                raise ParameterError("drawn_layers", "word-senses", must, layer)
        if self.train_split:
            self.taught(corpus)

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The texts that neighbours come from, if they are others."""
        if not self.train_split:
            return {}
        return {"training_data": self.taught(corpus).fingerprint}

    def taught(self, corpus: Corpus) -> Corpus:
        """The texts that neighbours come from."""
        from bertology.data.corpus import Field
        from bertology.data.loading import load_split

        found = load_split(corpus, self.train_split, limit=self.train_examples)
        found.require(Field.SENSES)
        return found

    def looked_at(self, corpus: Corpus) -> tuple[Corpus, int]:
        """All texts that are read, and how many of them, the first, are asked about."""
        asked = self.shown(corpus)
        if not self.train_split:
            return asked, len(asked)
        examples = [*asked, *self.taught(corpus)]
        return replace(asked, examples=examples, origin={}), len(asked)

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Those that teach, too."""
        return self.looked_at(corpus)[0].texts

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """The texts that are read; neighbours count as much again."""
        return 2 * len(self.shown(corpus))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Right answers by unit and lemma, clusters by lemma; of the model also baselines."""
        import xarray as xr

        from bertology.annotated import states as of_words
        from bertology.annotated.sense_occurrences import (
            found_spans,
            sense_occurrences,
            span_states,
            span_words,
            static_views,
        )
        from bertology.train.probes.neighbours import sense_votes

        whole, asked = self.looked_at(corpus)
        reader, own = self.reader(encoder, part), part == MODEL
        occurrences = sense_occurrences(whole)
        spans = [one.span for one in occurrences]
        words = of_words.word_states(
            reader,
            whole,
            words=span_words(whole, spans),
            pooling=self.pooling,
            folder=context.states if own else None,  # nobody asks for a copy's states again
            batch_tokens=context.batch_tokens,
        )
        context.advance(asked)
        rows = found_spans(whole, words, spans)
        there = np.array([len(at) > 0 for at in rows], bool)
        data = SenseData.of(
            whole, occurrences, there, asked=asked, folds=self.folds, seed=self.seed
        )
        states = span_states(words, [rows[at] for at in data.places])
        votes = sense_votes(states, data.asking(), self.k, device=encoder.device)
        found: dict[str, Any] = _summed(data, "", votes == data.sense_of, ("k", "layer"))
        found |= self._clusters(data, states, encoder.device)
        if own:
            views = static_views(encoder, whole, [spans[at] for at in data.places])
            found |= self._baselines(data, views, encoder.device)
            found |= self._picture(data, states, whole, occurrences)
        context.advance(asked)
        return xr.Dataset(
            found,
            attrs={
                "unit": data.unit,
                "missing": int((~there).sum()),
                "repeated": data.repeated,
                "occurrences": int(data.answered.sum()),
                "asked": int(data.asked.sum()),
            },
        )

    def _baselines(self, data: SenseData, views: Any, device: Any) -> dict[str, Any]:
        """Right answers without a layer, and how many answers there are."""
        from bertology.studies.geometry.word_senses.data import static_answers
        from bertology.train.probes.neighbours import sense_votes

        votes = sense_votes(views.around[None], data.asking(), self.k, device=device)[:, 0]
        found = _summed(data, "context_", votes == data.sense_of, ("k",))
        for name, right in static_answers(data, views).items():
            found |= _summed(data, f"{name}_", right, ())
        found |= _summed(data, "all_", np.ones(len(data), bool), ())
        found["lemma"] = ("lemma", np.array(data.lemmas))
        found["kinds"] = ("lemma", np.array([len(of) for of in data.senses], np.int64))
        return found

    def _clusters(
        self, data: SenseData, states: NDArray[np.float16], device: Any
    ) -> dict[str, Any]:
        """Cluster scores of lemmas (score, word, layer), and when senses are dealt out anew."""
        import torch

        from bertology.studies.geometry.word_senses.data import clustered_lemmas
        from bertology.train.probes.clusters import cluster_scores

        chosen = clustered_lemmas(
            data, fewest=self.per_sense, most=_CLUSTERED, points=_OCCURRENCES, seed=self.seed
        )
        own = np.zeros((3, len(chosen), len(states)))
        dealt = np.zeros_like(own)
        kinds = np.zeros(len(chosen), np.int64)
        for at, (lemma, rows) in enumerate(chosen):
            _, senses = np.unique(data.sense_of[rows], return_inverse=True)
            scores = cluster_scores(
                torch.from_numpy(states[:, rows]).to(device),
                senses.astype(np.int64),
                deals=self.deals,
                seed=self.seed + lemma,
            )
            own[:, at], dealt[:, at], kinds[at] = scores.own, scores.dealt, senses.max() + 1
        dims = ("score", "word", "layer")
        return {
            "clusters": (dims, own),
            "dealt": (dims, dealt),
            "word_lemma": ("word", np.array([lemma for lemma, _ in chosen], np.int64)),
            "word_kinds": ("word", kinds),
            "word_n": ("word", np.array([len(rows) for _, rows in chosen], np.int64)),
        }

    def _picture(
        self,
        data: SenseData,
        states: NDArray[np.float16],
        corpus: Corpus,
        occurrences: Sequence[Occurrence],
    ) -> dict[str, Any]:
        """Occurrences of some words in planes (plane, drawn, point, axis)."""
        from bertology.annotated.sense_occurrences import shown_text
        from bertology.annotated.sense_planes import plane_of
        from bertology.studies.geometry.word_senses.data import pictured_lemmas

        last = len(states) - 2
        layers = list(self.drawn_layers) or sorted({-1, last // 2, last})
        rng, by_lemma = np.random.default_rng(self.seed), data.by_lemma()
        chosen: list[NDArray[np.int64]] = []
        for lemma in pictured_lemmas(data, self.words, self.pictured):
            rows = by_lemma[lemma]
            few = len(rows) <= self.points
            chosen.append(rows if few else np.sort(rng.choice(rows, self.points, replace=False)))
        every = np.concatenate(chosen) if chosen else np.zeros(0, np.int64)
        texts = [shown_text(corpus, occurrences[at].span) for at in data.places[every]]
        senses = [occurrences[at].sense for at in data.places[every]]
        planes = np.zeros((len(self.planes), len(layers), len(every), 2), np.float32)
        for number, method in enumerate(self.planes):
            for at, layer in enumerate(layers):
                made = [
                    plane_of(states[layer + 1, rows], method, seed=self.seed) for rows in chosen
                ]
                if made:
                    planes[number, at] = np.concatenate(made)
        return {
            "plane": (("method", "drawn", "point", "axis"), planes),
            "method": ("method", np.array(self.planes)),
            "drawn": ("drawn", np.array(layers, np.int64)),
            "point_lemma": ("point", data.lemma_of[every]),
            "point_sense": ("point", np.array(senses, dtype=str)),
            "point_text": ("point", np.array([text for text, _, _ in texts], dtype=str)),
            "point_place": (
                ("point", "end"), np.array([x[1:] for x in texts], np.int64).reshape(-1, 2),
            ),
        }  # fmt: skip

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Shares by layer, the best layer beside its baselines, clusters, the picture."""
        model = measured[MODEL]
        senses = Senses(model, self.of_copies(measured), self, k=self.k, per_sense=self.per_sense)
        evidence, reasons = senses.evidence()
        return self.result(
            provenance,
            senses.tables(),
            evidence=evidence,
            reasons=reasons,
            facts={
                "examples": int(senses.told.counts.astype(bool).sum()),
                "lemmas": int((model["all_by_lemma"].to_numpy() > 0).sum()),
                **{str(name): value for name, value in model.attrs.items()},
            },
        )


def _summed(
    data: SenseData, name: str, right: NDArray[Any], dims: tuple[str, ...]
) -> dict[str, Any]:
    """Right answers (…, N) by unit and by lemma."""
    _, units = np.unique(data.units, return_inverse=True)
    lemmas = len(data.lemmas)
    return {
        f"{name}by_unit": (("unit", *dims), data.summed(right, units, int(units.max()) + 1)),
        f"{name}by_lemma": (("lemma", *dims), data.summed(right, data.lemma_of, lemmas)),
    }
