"""Words in context: are the states of a word in two texts nearer if it means the same in both?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Example, Field, text_key
from bertology.data.words.piece_words import known_words
from bertology.errors import CapabilityError, DataError
from bertology.parameters import drawn, parameter, pooling_of
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import NOTHING_SURE, of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked, column_grid
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.skewed_means import FEWEST
from bertology.studies.designs.shares import per_item
from bertology.studies.designs.shuffled_copies import COPIES, MODEL, ShuffledCopies
from bertology.studies.designs.tables import bounded, labelled_table
from bertology.studies.geometry.word_senses.scores import Told, word_means
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import xarray as xr

    from bertology.annotated.sense_occurrences import Span
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape


KINDS = {"cosine": "a threshold of the cosine", "probe": "a linear probe"}


class WordsInContextResult(Result):
    """Whether states tell that a word means the same in two texts.

    Table `layers`: for each layer (-1 is what enters the first one) the share of right answers by a
    threshold of the cosine (`cosine`) and by a linear probe (`probe`), the same with shuffled
    weights, and the mean cosine of pairs that mean the same (`same_mean`) and that differ
    (`different_mean`). Bounds are over words and hold for each layer alone. `scores`: the best
    layer, picked on one half of the words and scored on the other, beside the most frequent answer,
    static embeddings (by a threshold), the input and shuffled weights, and its gain over the best
    of these.
    """

    strongest: ClassVar[Mapping[str, str]] = {"layers": "cosine", "scores": "gain"}

    @property
    def answer(self) -> str:
        """How many answers the better way gives right, and what it gains over all baselines."""
        row = self.shown("scores").iloc[0]
        value, gain = (of_row(row, (c, f"{c}_low", f"{c}_high")) for c in ("value", "gain"))
        if known := self.evidence().get(f"{row['kind']}_gain"):
            # The better of two ways was picked after looking: its bounds must hold for both.
            gain = known.at_level(1 - (1 - known.level) / len(KINDS)).beyond_all()
        opening = "Yes" if gain.low > 0 else NOTHING_SURE
        return (
            f"{opening}: by {KINDS[str(row['kind'])]} the states of the best layer "
            f"({int(row['layer'])}) give {percent(value)} right answers, {points(gain, '.0f')} "
            "against the best of the most frequent answer, static embeddings, the input and "
            "shuffled weights."
        )

    def measures(self) -> Sequence[Measure]:
        """Right answers by layer, both ways."""
        table = self.tables["layers"]
        rows = table[table["layer"] >= 0]
        return [
            Measure.of_column(
                rows,
                name,
                name=f"same-sense-{name}",
                title=f"Pairs told right by {way}",
                unit="% of pairs",
                scale=100.0,
                reading="High: the states of a word tell whether it means the same.",
            )
            for name, way in KINDS.items()
        ]

    def over_training(self) -> Sequence[Tracked]:
        """The gains of both ways."""
        return [
            Tracked(
                f"{name}_gain",
                f"the gain of {way} over all baselines",
                layers=f"same-sense-{name}",
                scale=100.0,
                unit="points",
                gain=True,
            )
            for name, way in KINDS.items()
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Right answers by layer beside baselines, and gains."""
        layers, rows = self.tables["layers"], self.tables["scores"]
        return [
            drawings.profile(
                "layers",
                self.measures(),
                self.about,
                title="Does a word mean the same in two texts?",
                labels=list(KINDS.values()),
                beside={
                    "cosine, weights shuffled": 100
                    * column_grid(layers[layers["layer"] >= 0], "cosine_shuffled"),
                    "static embeddings": 100 * rows["static"].iloc[0],
                    "most frequent answer": 100 * rows["frequent"].iloc[0],
                },
                caption="Pairs of texts of which it is told right whether a word means the same in "
                "both, by layer, in per cent: by a threshold of the cosine and by a linear probe; "
                "beside them the threshold with shuffled weights (mean of copies), on static "
                "embeddings, and the most frequent answer. Bands are intervals over words, for "
                "each layer alone.",
            ),
            drawings.dots(
                "gains",
                [
                    Dots.of_columns("right answers (%)", rows, "value"),
                    Dots.of_columns("gain (points)", rows, "gain", level=0.0),
                ],
                [KINDS[str(kind)] for kind in rows["kind"]],
                self.about,
                title="What the best layer tells of pairs",
                caption="Right answers of the best layer both ways, and the gain over the best of "
                "all baselines, in per cent of pairs. The layer was picked on one half of the "
                "words and scored on the other; intervals are over words.",
                note="Gain: over the best of all that must be beaten; right of 0, it is told.",
            ),
        ]


_FEWEST = 20  # pairs that are answered
_FEWEST_TAUGHT = 3  # words: of one that is asked, one that teaches, one that chooses the penalty


@dataclass(frozen=True)
class WordsInContext(ShuffledCopies):
    """Does the contextual embedding of a word tell whether it means the same in two texts?

    Method: each text is read alone. After each layer the two states of the word are compared: by
    their cosine, with the threshold that gives most right answers on other pairs; and by a linear
    probe (ridge regression) of the difference and product of their numbers, learnt on other pairs.
    Other pairs are those of other folds, of the same pairs or of another split (`train-split`);
    pairs of one word, and of words with a text in common, stay in one fold. The best layer is
    picked on one half of the words and scored on the other. It must beat the most frequent answer,
    static embeddings (which know whether the word is spelt alike), the input of the first layer,
    and copies of the model with shuffled weights. Intervals are over words (Student's, corrected
    for skewness; of five words or more).

    Source: Wiedemann et al. (2019) on senses; pairs as in Pilehvar and Camacho-Collados (2019).
    Limits: a threshold for all words cannot know that some words' states are nearer than others'.
    Pairs whose word was cut off are left out.
    """

    version: ClassVar[int] = 3  # controls are gates, and what is stated is judged
    measured_version: ClassVar[int] = 2
    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "text_b", "targets", "label"}), task=True
    )
    finds_words: ClassVar[bool] = True
    result_type: ClassVar[type[Result]] = WordsInContextResult
    fewest: ClassVar[int] = _FEWEST
    copies: ClassVar[int] = COPIES
    fills_gpu: ClassVar[bool] = True

    examples: int = drawn(2000, "pairs", minimum=_FEWEST)
    train_split: str = parameter(
        "", "The split to learn from, of other words; if not given, other folds of the same pairs."
    )
    train_examples: int | None = parameter(
        None, "Learn from so many pairs of that split, drawn at random.", minimum=2
    )
    folds: int = parameter(5, "Folds of the words.", minimum=3)
    pooling: str = pooling_of("a word")

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse labels other than two classes."""
        super().check(encoder, corpus)
        task = corpus.task
        if task is None or task.kind != "classification" or len(task.labels) != 2:
            raise CapabilityError(
                f"{corpus.name!r} does not say of pairs whether a word means the same.",
                hint="Two labels are needed, false and true, as in grammar-sense-pairs.",
            )
        if self.train_split:
            self.taught(corpus)

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The pairs that are learnt from, if they are others."""
        if not self.train_split:
            return {}
        return {"training_data": self.taught(corpus).fingerprint}

    def taught(self, corpus: Corpus) -> Corpus:
        """The pairs that are learnt from."""
        from bertology.data.loading import load_split

        found = load_split(corpus, self.train_split, limit=self.train_examples)
        found.require(Field.TARGETS, Field.LABEL)
        return found

    def looked_at(self, corpus: Corpus) -> tuple[Corpus, int]:
        """All pairs, and how many of them, the first, are asked about; none of these teaches."""
        asked = self.shown(corpus)
        if not self.train_split:
            return asked, len(asked)
        own = {text_key(text) for example in asked for text in example.texts}
        rest = [e for e in self.taught(corpus) if not own.intersection(map(text_key, e.texts))]
        return replace(asked, examples=[*asked, *rest], origin={}), len(asked)

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Each text alone."""
        return [text for example in self.looked_at(corpus)[0] for text in example.texts]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """The pairs that are read; comparing counts as much again."""
        return 2 * len(self.shown(corpus))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Right answers by word, way of comparing and layer; of the model also baselines."""
        import xarray as xr

        from bertology.annotated import states as of_words
        from bertology.annotated.sense_occurrences import (
            found_spans,
            span_states,
            span_words,
            static_views,
        )
        from bertology.train.probes.ridge import cosines, probe_answers, threshold_answers

        whole, asked = self.looked_at(corpus)
        reader, own = self.reader(encoder, part), part == MODEL
        texts, spans = target_texts(whole)
        words = of_words.word_states(
            reader,
            texts,
            words=span_words(texts, spans),
            pooling=self.pooling,
            folder=context.states if own else None,  # nobody asks for a copy's states again
            batch_tokens=context.batch_tokens,
        )
        context.advance(asked)
        rows = found_spans(texts, words, spans)
        there = np.array([len(at) > 0 for at in rows], bool).reshape(-1, 2).all(axis=1)
        pairs = _Pairs.of(whole, np.flatnonzero(there), asked, self.folds, self.seed)
        kept = [rows[2 * at + side] for at in pairs.places for side in (0, 1)]
        states = span_states(words, kept)
        first, second = states[:, 0::2], states[:, 1::2]
        near = cosines(first, second)
        right = np.stack(
            [
                threshold_answers(near, pairs.same, pairs.parts()),
                probe_answers(
                    first, second, pairs.same, pairs.folds, pairs.taught, device=encoder.device
                ),
            ]
        )
        found: dict[str, Any] = {"hits": (("unit", "kind", "layer"), pairs.summed(right))}
        if own:
            some = [spans[2 * at + side] for at in pairs.places for side in (0, 1)]
            views = static_views(encoder, texts, some)
            vectors = views.vectors[views.forms]
            alike = cosines(vectors[0::2], vectors[1::2])[None].round(6)  # of one form: exactly 1
            for name, of in (("static", alike), ("frequent", np.zeros_like(alike))):
                answers = threshold_answers(of, pairs.same, pairs.parts())[0]
                found[name] = ("unit", pairs.summed(answers))
            found["counts"] = ("unit", pairs.summed(np.ones_like(pairs.same)))
            means = _means(near[:, pairs.asked], pairs.same[pairs.asked])
            found["cosines"] = (("same", "layer"), means)
        context.advance(asked)
        return xr.Dataset(
            found, attrs={"missing": int((~there).sum()), "pairs": int(pairs.asked.sum())}
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Shares by layer, and the best layer beside its baselines."""
        import pandas as pd

        model = measured[MODEL]
        copies = self.of_copies(measured)
        counts = model["counts"].to_numpy()
        there = counts > 0
        layers = [-1, *range(model.sizes["layer"] - 1)]
        columns: dict[str, Any] = {}
        rows = []
        evidence: dict[str, Estimate | None] = {}
        reasons: dict[str, str] = {}
        for at, name in enumerate(KINDS):

            def hits(part: xr.Dataset, at: int = at) -> NDArray[np.int64]:
                return np.asarray(part["hits"].to_numpy()[there][:, at : at + 1])

            own = hits(model)
            plain = [model[base].to_numpy()[there] for base in ("frequent", "static")]
            told = Told(
                own, counts[there], plain, [own[:, :, 0]], [hits(c) for c in copies], "words"
            )
            values = per_item(own[:, 0].T.astype(np.float64), told.counts)
            columns |= self._means(name, values)
            shares = [copy[:, 0].sum(axis=0) / told.counts.sum() for copy in told.copies]
            columns[f"{name}_shuffled"] = np.mean(shares, axis=0)
            gain = told.gain(level=self.level)
            if len(told.counts) >= FEWEST:
                evidence[f"{name}_gain"] = gain
            else:
                reasons[f"{name}_gain"] = (
                    f"no interval over words: the pairs are of {len(told.counts)}, and {FEWEST} "
                    "are needed"
                )
            layer, _, best = told.best()
            least = gain.beyond_all()
            value = self._means("value", per_item(best, told.counts)[None])
            total = told.counts.sum()
            rows.append(
                {
                    "kind": name,
                    "n": len(told.counts),
                    "layer": layer,
                    **{side: float(of[0]) for side, of in value.items()},
                    "frequent": plain[0].sum() / total,
                    "static": plain[1].sum() / total,
                    "input": own[:, 0, 0].sum() / total,
                    "shuffled": np.mean([of.sum() for of in told.of_copies()]) / total,
                    **bounded("gain", least),
                }
            )
        means_of = model["cosines"].to_numpy()
        columns |= {"different_mean": means_of[0], "same_mean": means_of[1]}
        return self.result(
            provenance,
            {"layers": labelled_table({"layer": layers}, columns), "scores": pd.DataFrame(rows)},
            evidence=evidence,
            reasons=reasons,
            facts={
                "examples": int(counts.sum()),
                **{str(name): value for name, value in model.attrs.items()},
            },
        )

    def _means(self, name: str, rows: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Columns of shares of rows (V, words), whose bounds hold for each row alone."""
        sides = word_means(rows, level=self.level)
        return dict(zip((name, f"{name}_low", f"{name}_high"), sides, strict=True))


@dataclass(frozen=True)
class _Pairs:
    """Pairs that have two states: which are asked, their fold and word."""

    places: NDArray[np.int64]
    same: NDArray[np.bool_]
    units: NDArray[np.int64]
    folds: NDArray[np.int64]
    asked: NDArray[np.bool_]
    taught: NDArray[np.bool_]

    @classmethod
    def of(
        cls, corpus: Corpus, places: NDArray[np.int64], asked: int, folds: int, seed: int
    ) -> _Pairs:
        """In folds by word, of all pairs: also where others teach, these are of other words."""
        some = [corpus[int(at)] for at in places]
        units = _units(some)
        asks = places < asked
        if asks.sum() < _FEWEST:
            raise DataError(
                f"{int(asks.sum())} pairs have a state of the word in both texts; {_FEWEST} are "
                "needed.",
                hint="Give more pairs with --limit.",
            )
        teach = ~asks if asked < len(corpus) else np.ones(len(places), bool)
        teachers = np.unique(units[teach])
        if len(teachers) < _FEWEST_TAUGHT:
            raise DataError(
                f"The pairs to learn from are of {len(teachers)} words (those with a text in "
                f"common are one); {_FEWEST_TAUGHT} are needed.",
                hint="Give more pairs with --limit or --train-examples.",
            )
        mixed = np.random.default_rng(seed).permutation(int(units.max()) + 1)
        mixed = mixed[np.argsort(~np.isin(mixed, teachers), kind="stable")]  # some in every fold
        parts = np.empty_like(mixed)
        parts[mixed] = np.arange(len(mixed)) % min(folds, len(teachers))
        same = np.array([bool(e.get("label")) for e in some], bool)
        return cls(places, same, units, parts[units], asks, teach)

    def parts(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """What is asked and what teaches, fold by fold."""
        found = []
        for fold in np.unique(self.folds[self.asked]).tolist():
            inside = self.folds == fold
            found.append(
                (np.flatnonzero(inside & self.asked), np.flatnonzero(~inside & self.taught))
            )
        return found

    def summed(self, right: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(units, …): right answers (…, N) to what is asked, by word."""
        counted = np.moveaxis(right & self.asked, -1, 0).astype(np.int64)
        found = np.zeros((int(self.units.max()) + 1, *counted.shape[1:]), np.int64)
        np.add.at(found, self.units, counted)
        return found


def target_texts(corpus: Corpus) -> tuple[Corpus, Sequence[Span]]:
    """Texts one by one, so that none sees the other, and the target's words in each.

    They are twice as many examples: first and second texts in turn.
    """
    examples, spans = list[Example](), list[tuple[int, int, int]]()
    for example in corpus:
        words = known_words(example)
        for text, own, (first, last) in zip(
            example.texts, words, example.get("targets"), strict=True
        ):
            spans.append((len(examples), int(first), int(last)))
            about = {"offsets": [list(span) for span in own]}
            examples.append(Example(f"{example.id}-{len(spans) % 2}", text, annotations=about))
    fields = frozenset({Field.TEXT, Field.OFFSETS})
    return replace(corpus, examples=examples, fields=fields, task=None, origin={}), spans


def _units(pairs: Sequence[Example]) -> NDArray[np.int64]:
    """The number of each pair's word; words that have a text in common are one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    words, texts = dict[str, int](), dict[str, int]()
    links = []
    for pair in pairs:
        keys = [text_key(text) for text in pair.texts]
        name = str(pair.annotations.get("group") or " ".join(keys))
        word = words.setdefault(name, len(words))
        links += [(word, texts.setdefault(key, len(texts))) for key in keys]
    ends = np.array(links, np.int64).reshape(-1, 2)
    size = len(words) + len(texts)
    sides = (ends[:, 0], len(words) + ends[:, 1])
    joined = connected_components(
        coo_array((np.ones(len(ends)), sides), shape=(size, size)), directed=False
    )[1]
    return np.asarray(joined[ends[::2, 0]], np.int64)


def _means(near: NDArray[np.float64], same: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(2, layers): the mean cosine of pairs that differ, and of those that are the same."""
    sides = [near[:, side] for side in (~same, same)]
    return np.stack([of.mean(axis=1) if of.size else np.full(len(near), np.nan) for of in sides])
