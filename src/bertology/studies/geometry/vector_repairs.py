"""Vector repairs: do cosines agree better with people once the narrow cone is undone?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import CapabilityError, DataError, ParameterError, UnknownNameError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import of_row, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.rank_agreement import Agreement, PairLinks, together
from bertology.stats.vector_repairs import REPAIRS, Learnt
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.probes import INPUT
from bertology.studies.designs.shuffled_copies import COPIES, MODEL, ShuffledCopies
from bertology.studies.designs.tables import labelled_table
from bertology.studies.geometry.shared.pair_scores import (
    Against,
    Picked,
    Ranks,
    Turns,
    check_judged,
    dealt_texts,
    other_corpus,
    rests_on,
)
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.annotated.pair_vectors import ScoredPairs
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape


AS_IT_IS, CHANCE = "the best layer as it is", "shuffled weights at their best"


class RepairScores:
    """Cosines (repairs, layers, pairs) of the model and of its shuffled copies, as agreements.

    The first repair is none, the first layer what enters the model: of the model it is never
    picked, of copies it is, since random vectors of words tell how many words two texts share.
    """

    def __init__(
        self, own: Floats, copies: Sequence[Floats], judged: Floats, links: PairLinks
    ) -> None:
        self.own, self.copies, self.links = own, copies, links
        score, every = Ranks(judged), np.ones(len(judged), bool)
        self.turns = Turns(links, score)
        self.told = [score(rows, every) for rows in own]  # by repair, rows are layers
        self.told_by_copies = [[score(rows, every) for rows in copy] for copy in copies]
        self.picked_on = [[self.turns.picked_on(rows) for rows in some] for some in (own, *copies)]

    def best(self, repairs: slice, copy: int | None = None) -> Picked:
        """The best layer of the best of some repairs."""
        at, first = (0, 1) if copy is None else (1 + copy, 0)
        cosines = (self.own, *self.copies)[at][repairs, first:]
        told = [one[:, first:] for one in self.picked_on[at][repairs]]
        return self.turns.best(cosines.reshape(-1, cosines.shape[-1]), np.concatenate(told, axis=1))

    @cached_property
    def of_best(self) -> dict[str, tuple[Agreement, Against]]:
        """The best repair and layer: what it is set against, and the difference."""
        best, plain = self.best(slice(1, None)).told, self.best(slice(1)).told
        chance = [self.best(slice(None), copy).told for copy in range(len(self.copies))]
        return {
            AS_IT_IS: (plain, Against(best - plain)),
            CHANCE: (together(chance).mean(), Against.copies(best, chance)),
        }

    def of_mean(self, repair: int) -> dict[str, Against]:
        """One repair in the mean over layers, against none and against shuffled weights."""
        own, plain = (self.told[at][1:].mean() for at in (repair, 0))
        chance = [copy[repair][1:].mean() for copy in self.told_by_copies]
        return {"none": Against(own - plain), "shuffled": Against.copies(own, chance)}

    def best_gain(self, level: float) -> Estimate:
        """The best repair and layer, less the best layer without; beyond shuffled weights."""
        gains = {name: gain for name, (_, gain) in self.of_best.items()}
        return self._controlled(gains[AS_IT_IS], gains[CHANCE], level)

    def mean_gain(self, repair: int, level: float) -> Estimate:
        """One repair in the mean over layers, less no repair; beyond shuffled weights, too."""
        gains = self.of_mean(repair)
        return self._controlled(gains["none"], gains["shuffled"], level)

    def _controlled(self, gain: Against, beyond: Against, level: float) -> Estimate:
        control = beyond.estimate(self.links, level)
        return gain.estimate(self.links, level).with_controls({CHANCE: control})

    def comparisons(
        self, names: Sequence[str], layers: Sequence[int], level: float
    ) -> pd.DataFrame:
        """What the best repair and layer is set against: the claim rests on the first gain."""
        picked, found = self.best(slice(1, None)), self.of_best
        repair, layer = divmod(picked.row, len(layers) - 1)
        gains = [gain.estimate(self.links, level) for _, gain in found.values()]
        return labelled_table(
            {"against": list(found)},
            {
                "repair": [names[1 + repair]] * len(found),
                "layer": [layers[1 + layer]] * len(found),
                "best": [float(picked.told.value[0])] * len(found),
                "agreement": [float(other.value[0]) for other, _ in found.values()],
                "gain": [one.value for one in gains],
                "gain_low": [one.low for one in gains],
                "gain_high": [one.high for one in gains],
            },
        )

    def by_layer(
        self, names: Sequence[str], layers: Sequence[int], options: Mapping[str, Any]
    ) -> pd.DataFrame:
        """One row for each repair and layer."""
        told = together(self.told)
        gains = together([one - self.told[0] for one in self.told[1:]])
        blank = np.full(len(layers), np.nan)
        low, high, _ = self.links.bounds(told, correlation=True, **options)
        less, more, _ = self.links.bounds(gains, correlation=False, **options)
        sides = {"": gains.value, "_low": less, "_high": more}
        return labelled_table(
            {"repair": names, "layer": layers},
            {
                "agreement": told.value,
                "agreement_low": low,
                "agreement_high": high,
                **{f"over_none{end}": np.concatenate([blank, x]) for end, x in sides.items()},
                "shuffled": np.mean(
                    [[one.value for one in copy] for copy in self.told_by_copies], axis=0
                ),
                "mean_cosine": self.own.mean(axis=2),
            },
        )

    def by_repair(
        self, names: Sequence[str], layers: Sequence[int], options: Mapping[str, Any]
    ) -> pd.DataFrame:
        """Means over layers, and the best layer of each repair, cross-fitted."""
        each = [self.best(slice(at, at + 1)) for at in range(len(names))]
        chance = [
            [self.best(slice(at, at + 1), copy).told.value[0] for at in range(len(names))]
            for copy in range(len(self.copies))
        ]
        means = together([one[1:].mean() for one in self.told])
        columns: dict[str, Any] = {"title": [REPAIRS[name] for name in names]}
        columns |= self._columns("mean", means, options)
        by_chance = [[one[1:].value.mean() for one in copy] for copy in self.told_by_copies]
        columns["mean_shuffled"] = np.mean(by_chance, axis=0)
        columns["best_layer"] = [layers[1 + one.row] for one in each]
        columns |= self._columns("best", together([one.told for one in each]), options)
        columns["best_shuffled"] = np.mean(chance, axis=0)
        return labelled_table({"repair": names}, columns)

    def _columns(
        self, name: str, rows: Agreement, options: Mapping[str, Any]
    ) -> dict[str, NDArray[np.float64]]:
        """Agreements, and what they are over the first row, each with its bounds."""
        low, high, _ = self.links.bounds(rows, correlation=True, **options)
        gains = rows[1:] - Agreement(rows.value[:1], rows.influence[:1])
        less, more, _ = self.links.bounds(gains, correlation=False, **options)
        sides = {"": gains.value, "_low": less, "_high": more}
        return {
            name: rows.value,
            f"{name}_low": low,
            f"{name}_high": high,
            **{f"{name}_over_none{end}": np.append(np.nan, side) for end, side in sides.items()},
        }


_UNIT = "Spearman's correlation × 100"
_LABELS = {
    "none": "no repair",
    "centred": "centred",
    "top-removed": "top components removed",
    "standardised": "standardised",
    "dominating-removed": "dominating dimensions removed",
    "whitened": "whitened",
}


class VectorRepairsResult(Result):
    """How cosines agree with human judgements, by repair and layer.

    Table `comparisons`, which the answer and the claim `best_gain` speak of: the best repair and
    layer (`best`), picked on other pairs than it is scored on, against the best layer as it is and
    against shuffled weights at their best; the claim rests on the first gain, and the second is its
    control. Table `repairs`:
    for each repair Spearman's correlation in the mean over layers (`mean`, and over no repair at
    the same layers), at its best layer (`best`, and over the best layer without a repair;
    `best_layer` is that of all pairs), and what shuffled weights give. Table `layers`: the same
    for each layer (-1 is what enters the first one), `over_none` at the same layer, with the mean
    cosine of all pairs. Bounds in `repairs` and `layers` hold for all rows of a column together;
    pairs that share a text are not taken as independent.
    """

    strongest: ClassVar[Mapping[str, str]] = {"repairs": "best", "layers": "agreement"}

    @property
    def answer(self) -> str:
        """The best repair and layer beside the best layer as it is, and shuffled weights."""
        table = self.tables["comparisons"]
        best = table.iloc[0]
        gains = " and ".join(
            f"{points(of_row(row, ('gain', 'gain_low', 'gain_high')))} over {row['against']} "
            f"({100 * row['agreement']:.0f})"
            for _, row in table.iterrows()
        )
        return (
            f"Repaired vectors at their best ({_LABELS[str(best['repair'])]}, layer "
            f"{best['layer']}) agree with people by a correlation of {100 * best['best']:.0f} "
            f"(× 100): {gains}. {rests_on(self.evidence()['best_gain'])}."
        )

    def measures(self) -> Sequence[Measure]:
        """Agreement by layer of each repair, and its gain."""
        found, table = [], self.tables["layers"]
        for name, rows in table[table["layer"] >= 0].groupby("repair", sort=False):
            label = _LABELS[str(name)]
            found.append(
                Measure.of_column(
                    rows,
                    "agreement",
                    name=f"agreement-{name}",
                    title=f"Agreement of cosines with people: {label}",
                    unit=_UNIT,
                    scale=100.0,
                    reading="100: cosines order pairs as people do; 0: they tell nothing of it.",
                )
            )
            if name != "none":
                found.append(
                    Measure.of_column(
                        rows,
                        "over_none",
                        name=f"gain-{name}",
                        title=f"What a repair adds at the same layer: {label}",
                        unit="points of correlation",
                        scale=100.0,
                        middle=0.0,
                        reading="Above 0: repaired vectors of the layer agree better with people "
                        "than the same layer as it is.",
                    )
                )
        return found

    def over_training(self) -> Sequence[Tracked]:
        """What repairs gain, and how well vectors agree as they are."""
        return [
            Tracked(
                "best_gain",
                "the gain of repairs over the best layer as it is and shuffled weights",
                layers="agreement-none",
                scale=100.0,
                unit="points",
                gain=True,
            )
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Agreements and gains by layer; repairs beside each other."""
        by_name = {m.name: m for m in self.measures()}
        names = list(self.tables["repairs"]["repair"])
        rows = self.tables["repairs"]
        return [
            drawings.rows(
                "agreement",
                [by_name[f"agreement-{name}"] for name in names],
                self.about,
                title="How cosines agree with people",
                reading="Repairs are compared on the same pairs in the figure of gains.",
                labels=[_LABELS[name] for name in names],
            ),
            drawings.profile(
                "gains",
                [by_name[f"gain-{name}"] for name in names[1:]],
                self.about,
                title="What repairs add at the same layer",
                reading="The correlation after a repair less that without, on the same layer and "
                "pairs. "
                "Repairs are learnt on other texts than they are scored on.",
                labels=[_LABELS[name] for name in names[1:]],
            ),
            drawings.dots(
                "repairs",
                [
                    Dots.of_columns("mean over layers", rows, "mean", bars="mean_shuffled"),
                    Dots.of_columns("best layer", rows, "best", bars="best_shuffled"),
                    Dots.of_columns(
                        "best layer over the best as it is", rows, "best_over_none", level=0.0
                    ),
                ],
                [_LABELS[name] for name in rows["repair"]],
                self.about,
                title="Agreement of cosines with people (Spearman × 100)",
                caption="For each repair Spearman's correlation of cosines with human judgements, "
                "× 100: the mean over layers; the best layer (picked on other pairs than it is "
                "scored on); and what this best layer is over the best layer without a repair. "
                "Grey bars: the same model with its weights in random order, in the mean over "
                "layers and at its best layer. Intervals hold for all repairs together.",
                note="Grey bars: weights in random order.",
            ),
        ]


_FEWEST = 20  # pairs that are scored, and vectors that a repair is learnt from
_NONE = "none"
_DIGITS = 10  # of cosines: in a narrow cone those of single precision would often be equal


@dataclass(frozen=True)
class VectorRepairs(ShuffledCopies, Resampled):
    """Do cosines agree better with human judgements once vectors are made more isotropic?

    Method: for pairs that people scored by how alike they are (sentences, words, words in their
    contexts, or any file with text, text_b and label) each text becomes one vector after every
    layer: the mean over its pieces, or over those of its target words. A word alone is read as a
    text of one word; with `contexts` its vector is the mean over its occurrences in another corpus.
    Vectors are taken as they are, and after each repair: less their mean; less their largest
    principal components (All-but-the-top); standardised by dimension; without the dimensions that
    contribute most to the mean cosine; whitened, with a covariance that is shrunk where texts are
    few. What a repair needs is learnt on other texts than it is scored on: texts are dealt into
    `folds`, and those in the folds of a pair are left out; or it is learnt from another corpus. The
    score is Spearman's correlation of cosines with judgements. Gains over no repair are paired;
    bounds of a table hold for all of its rows together; pairs that share a text or a word are not
    taken as independent. The best layer and repair are picked on other pairs than they are scored
    on, which share no text with these (texts are dealt into two sides, ten times). The same model
    with its weights in random order, six times, is a baseline: what its repaired vectors tell too
    is no knowledge. Its input counts as one of its layers: vectors of chance for words tell which
    words two texts share.

    Source: Mu and Viswanath (2018) on static vectors; Timkey and van Schijndel (2021) on contextual
    ones. Limits: a mean over tokens is a plain way to read a sentence off a model; models that were
    trained for similarity are not needed here, but may be given. All texts are held in memory, one
    vector for each layer.
    """

    version: ClassVar[int] = 4  # controls are gates, and what is stated is judged
    measured_version: ClassVar[int] = 2
    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "text_b", "label"}))
    finds_words: ClassVar[bool] = True
    result_type: ClassVar[type[Result]] = VectorRepairsResult
    fewest: ClassVar[int] = _FEWEST
    fills_gpu: ClassVar[bool] = True
    copies: ClassVar[int] = COPIES

    repairs: tuple[str, ...] = parameter((), "Which repairs (centred,whitened); all if not given.")
    components: int = parameter(
        0, "Principal components that are removed; 0: one for each 100 dimensions.", minimum=0
    )
    dimensions: int = parameter(3, "Dominating dimensions that are removed.", minimum=1)
    vector: str = parameter(
        "mean",
        "The vector of a whole text: the mean over its pieces, or the state of its first token.",
        choices=("mean", "first"),
    )
    folds: int = parameter(5, "Parts that texts are dealt into, to learn repairs.", minimum=3)
    learn_from: str = parameter(
        "", "Learn repairs from the texts of this corpus instead: name, path or hub id."
    )
    learn_split: str = parameter("validation", "Which split of it.")
    contexts: str = parameter(
        "", "For pairs of words: a corpus over whose occurrences each word is averaged."
    )
    contexts_split: str = parameter("validation", "Which split of it.")
    other_examples: int = parameter(
        5000, "Draw so many examples at most of these other corpora.", minimum=1
    )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse unknown repairs, and what cannot be averaged over contexts."""
        super().check(encoder, corpus)
        for name in self.repairs:
            if name not in REPAIRS:
                raise UnknownNameError("repair", name, REPAIRS)
        if self.repairs and set(self.repairs) == {_NONE}:
            raise ParameterError("repairs", "vector-repairs", "hold a repair", self.repairs)
        check_judged(self.shown(corpus).labels, corpus.name)
        if self.contexts and ("targets" in corpus.fields or _phrases(corpus)):
            raise CapabilityError(
                f"The texts of {corpus.name!r} are not single words, so they cannot be averaged "
                "over contexts.",
                hint="Leave out --contexts.",
            )

    def chosen(self) -> list[str]:
        """No repair first, then those asked for."""
        return [_NONE, *(n for n in REPAIRS if n != _NONE and n in (self.repairs or REPAIRS))]

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Texts are read one by one, each once."""
        from bertology.annotated.pair_vectors import scored_pairs

        return [one.text for one in scored_pairs(self.shown(corpus)).compared]

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The other corpora."""
        found = {}
        for name, split in (("learn_from", self.learn_split), ("contexts", self.contexts_split)):
            if getattr(self, name):
                found[name] = self._other(corpus, getattr(self, name), split).fingerprint
        return found

    def _other(self, corpus: Corpus, name: str, split: str) -> Corpus:
        return other_corpus(corpus, name, split=split, limit=self.other_examples, seed=self.seed)

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """Texts that are read, and layers that are repaired."""
        from bertology.annotated.pair_vectors import scored_pairs

        read = 0
        if self.contexts:
            read += len(self._other(corpus, self.contexts, self.contexts_split))
        else:
            read += len(scored_pairs(self.shown(corpus)).compared)
        if self.learn_from:
            read += len(self._other(corpus, self.learn_from, self.learn_split))
        return read + shape.layers + 1

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Cosines of all pairs by repair and layer."""
        import xarray as xr

        from bertology.annotated.pair_vectors import (
            Compared,
            compared_vectors,
            normal_text,
            scored_pairs,
        )

        encoder = self.reader(encoder, part)
        given = scored_pairs(self.shown(corpus))
        reading: dict[str, Any] = {
            "batch_tokens": context.batch_tokens,
            "advance": context.advance,
        }
        first = self.vector == "first"
        if self.contexts:
            vectors, there = self._averaged(encoder, corpus, given, reading)
        else:
            vectors, there = compared_vectors(encoder, given.compared, first=first, **reading)
        others = None
        if self.learn_from:
            scored = {normal_text(one.text) for one in given.compared}
            texts = [
                Compared(one.text)
                for one in self._other(corpus, self.learn_from, self.learn_split)
                if normal_text(one.text) not in scored
            ]
            others, known = compared_vectors(encoder, texts, first=first, **reading)
            others = others[:, known]
        kept: NDArray[np.bool_] = np.all(there[given.pairs], axis=1)
        pairs = given.pairs[kept]
        if len(pairs) < _FEWEST:
            raise DataError(
                f"Of {len(kept)} pairs {len(pairs)} have a vector for both texts; {_FEWEST} are "
                "needed.",
                hint="Give more pairs (--limit), or more texts to find the words in."
                if self.contexts
                else "Give more pairs (--limit).",
            )
        check_judged(given.judged[kept], corpus.name)
        learnt = self._learnt_on(given.units, pairs, there, others)
        cosines = np.zeros((len(self.chosen()), len(vectors), len(pairs)))
        for layer, of in enumerate(vectors):
            for fold, rows in learnt:
                known = of[rows] if others is None else others[layer]
                self._score(cosines[:, layer], of, pairs, fold, np.asarray(known, np.float64))
            context.advance(1)
        links = given.links
        return xr.Dataset(
            {
                "cosine": (("repair", "layer", "pair"), cosines),
                "judged": ("pair", given.judged[kept]),
                "first": ("pair", links.first[kept]),
                "second": ("pair", links.second[kept]),
            },
            coords={"repair": self.chosen(), "layer": [INPUT, *range(encoder.shape.layers)]},
            attrs={
                "missing": int((~kept).sum()),
                "components": self._components(encoder.shape.hidden),
                "learnt_on": min(len(rows) for _, rows in learnt)
                if others is None
                else others.shape[1],
            },
        )

    def _averaged(
        self, encoder: Encoder, corpus: Corpus, given: ScoredPairs, reading: Mapping[str, Any]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Words as means over their occurrences."""
        from bertology.annotated.word_contexts import ContextSums, add_contexts, spelt

        named = [spelt(one.text.strip(), lower=True) for one in given.compared]
        device = "cuda" if encoder.device.type == "cuda" else "cpu"  # others lack doubles
        layers = range(encoder.shape.layers + 1)
        sums = ContextSums(sorted(set(named)), layers, encoder.shape.hidden, device=device)
        other = self._other(corpus, self.contexts, self.contexts_split)
        add_contexts(encoder, list(other), sums, lower=True, **reading)
        rows = [sums.numbers[name] for name in named]
        there = (sums.counts > 0).cpu().numpy()[rows]
        return sums.vectors("mean")[:, rows].astype(np.float32), there

    def _components(self, width: int) -> int:
        return self.components or max(1, round(width / 100))

    def _learnt_on(
        self,
        units: NDArray[np.int64],
        pairs: NDArray[np.int64],
        there: NDArray[np.bool_],
        others: NDArray[np.float32] | None,
    ) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """For each fold its pairs, and the texts that repairs are learnt on: none is in it.

        Copies of a text, or the same word in other texts (`units`), are in the same fold.
        """
        if others is not None:
            if others.shape[1] < _FEWEST:
                raise DataError(f"{others.shape[1]} texts are too few to learn repairs from.")
            return [(np.arange(len(pairs)), np.arange(0))]
        texts, count, found = len(units), int(units.max()) + 1, []
        groups = dealt_texts(units[pairs], count, self.folds, seed=self.seed)[units]
        for both in sorted({tuple(sorted(groups[pair].tolist())) for pair in pairs}):
            fold = np.flatnonzero((np.sort(groups[pairs], axis=1) == both).all(axis=1))
            rows = np.flatnonzero(there & ~np.isin(groups, both))
            if len(rows) < _FEWEST:
                raise DataError(
                    f"Only {len(rows)} of {texts} texts are in another fold than those of a pair; "
                    f"repairs need {_FEWEST} to learn from.",
                    hint="Give more --folds, or other texts to learn from (--learn-from).",
                )
            found.append((fold, rows))
        return found

    def _score(
        self,
        into: Floats,
        vectors: NDArray[np.float32],
        pairs: NDArray[np.int64],
        fold: NDArray[np.int64],
        known: Floats,
    ) -> None:
        """Cosines (repairs, pairs) of one fold."""
        width = vectors.shape[1]
        one, other = (vectors[pairs[fold, side]].astype(np.float64) for side in (0, 1))
        learnt = Learnt(known, components=self._components(width), dimensions=self.dimensions)
        for at, name in enumerate(self.chosen()):
            repair = learnt.repair(name)
            into[at, fold] = _cosines(repair(one), repair(other))

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Agreement by repair and layer, gains over no repair, and the cross-fitted best."""
        model = measured[MODEL]
        links = PairLinks(model["first"].to_numpy(), model["second"].to_numpy())
        judged = model["judged"].to_numpy()
        names = [str(n) for n in model["repair"].to_numpy()]
        layers = [int(n) for n in model["layer"].to_numpy()]
        found = RepairScores(
            model["cosine"].to_numpy(),
            [part["cosine"].to_numpy() for part in self.of_copies(measured)],
            judged,
            links,
        )
        options = {"level": self.level, "resamples": self.resamples, "seed": self.seed}
        evidence: dict[str, Estimate | None] = {"best_gain": found.best_gain(self.level)}
        for at, name in enumerate(names[1:], start=1):
            evidence[f"{name.replace('-', '_')}_gain"] = found.mean_gain(at, self.level)
        return self.result(
            provenance,
            {
                "repairs": found.by_repair(names, layers, options),
                "layers": found.by_layer(names, layers, options),
                "comparisons": found.comparisons(names, layers, self.level),
            },
            evidence=evidence,
            reasons={"": "not judged: this repair was left out (--repairs)"},
            facts={
                "examples": len(judged),
                "texts": len(np.unique(np.concatenate([links.first, links.second]))),
                "shared": bool(links.shares_texts),
                **{str(name): value for name, value in model.attrs.items()},
            },
        )


def _cosines(one: Floats, other: Floats) -> Floats:
    """Of rows; 0 where a vector is nothing. What differs by rounding alone is the same rank."""
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    found: Floats = (one * other).sum(axis=1) / np.where(lengths > 0, lengths, np.inf)
    return found.round(_DIGITS)


def _phrases(corpus: Corpus) -> bool:
    """Whether more than a few texts have several words."""
    texts = [text for one in corpus for text in one.texts]
    return sum(len(text.split()) > 1 for text in texts) > len(texts) / 10
