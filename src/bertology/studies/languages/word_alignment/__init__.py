"""Word alignment: do words and their translations have states that are alike?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats, Ints
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import DataError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import NOTHING_SURE, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.layer_lines import Line, line_measures, lines_drawn
from bertology.studies.designs.probe_scores import among_copies, least_mean
from bertology.studies.designs.shuffled_copies import COPIES, MODEL, ShuffledCopies
from bertology.studies.designs.tables import bounded, with_bounds
from bertology.studies.languages.word_alignment.aligners import (
    BASELINES,
    METHODS,
    aligned,
    argmax,
    by_pieces,
    by_place,
    cosines,
    counts_of,
    error_rate,
)
from bertology.studies.languages.word_alignment.translations import HOW, Translated
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import xarray as xr
    from torch import Tensor

    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

INPUT = -1  # as a layer: what enters the first one
OPEN = frozenset({"NOUN", "VERB", "ADJ", "ADV", "PROPN", "INTJ"})
_OTHER = frozenset({"PUNCT", "SYM", "X"})  # of neither kind
CLASSES = ("open", "closed")
_AT_ONCE = 64  # pairs whose states are held
_ALIGNED = {
    "argmax": Line("Words aligned, argmax", "argmax", "High: partners choose each other."),
    "itermax": Line("Words aligned, itermax", "itermax", "High: the same, with a second round."),
    "assignment": Line("Words aligned, assignment", "assignment", "High: each word once."),
}
_TRANSLATED = {
    "nearest": Line("Words translated", "nearest", "High: the nearest word is a translation."),
    "shifted": Line(
        "Words translated, after the offset",
        "shifted by the offset",
        "High: the mean difference of two languages leads to a translation.",
    ),
}


class WordAlignmentResult(Result):
    """How well states align words with their translations.

    Table `layers`: for each layer (-1 is what enters the first one) 1 less the alignment error rate
    by three methods (`argmax`, `itermax`, `assignment`), precision and recall of argmax, and the
    share of words whose nearest word is a translation, as states are (`nearest`) and after the mean
    difference of the two languages was added (`shifted`). Bounds hold for all rows together. Table
    `summary`: the same at the layer picked on the other half of the sentences, beside alignments by
    places, and by shared pieces and places; `pairs`: by pair of languages; `classes`: the share of
    sure links found, by kind of the English word.
    """

    @property
    def answer(self) -> str:
        """How much better words are aligned than by places; whether the offset helps."""
        found = self.evidence()
        gain, offset = found.get("alignment_gain"), found.get("word_offset_gain")
        said = []
        if gain is not None and gain.low > 0:
            sure = "surely" if gain.surely_there else "perhaps for another reason"
            said.append(f"Words are aligned better than by their places, {sure}, by {points(gain)}")
        if offset is not None and offset.surely_there:
            more = f"surely more words are translated after the offset, by {points(offset)}"
            said.append(more if said else more[:1].upper() + more[1:])
        if not said:
            return (
                f"{NOTHING_SURE}: no layer surely aligns words better than their places do, or "
                "translates more of them after the offset."
            )
        return "; ".join(said) + "."

    def measures(self) -> Sequence[Measure]:
        """1 less the alignment error rate by layer, and words translated."""
        table = self.tables["layers"]
        table = table[table["layer"] >= 0]
        known = {name: of for name, of in _TRANSLATED.items() if table[name].notna().all()}
        return [
            *line_measures(table, _ALIGNED, of="aligned"),
            *line_measures(table, known, of="translated"),
        ]

    def drawings(self) -> Sequence[Drawing]:
        """By layer, and by pair of languages."""
        every, found = self.measures(), list[Drawing]()
        by_name = self.tables["summary"].set_index("name")["share"]
        if some := [m for m in every if m.name.startswith("aligned")]:
            found.append(
                drawings.profile(
                    "alignment",
                    some,
                    self.about,
                    title="Words aligned with their translations",
                    reading="Upwards: 100 % less the alignment error rate. Straight lines are what "
                    "places alone, and shared pieces with places, give.",
                    labels=[line.label for line in _ALIGNED.values()],
                    beside={name: 100 * float(by_name[name]) for name in BASELINES},
                    shaded="intervals over sentences",
                )
            )
        if some := [m for m in every if m.name.startswith("translated")]:
            found.append(
                lines_drawn(
                    some,
                    _TRANSLATED,
                    self.about,
                    title="Words whose nearest word is a translation",
                    reading="A word is the mean of its states; its neighbours are all words of the "
                    "other language in the same half of the sentences.",
                    name="translation",
                )
            )
        rows = self.tables["pairs"]
        panels = [Dots(name, 100 * rows[name].to_numpy()) for name in ("argmax", *BASELINES)]
        return [
            *found,
            drawings.dots(
                "pairs",
                panels,
                rows["pair"],
                self.about,
                title="Words aligned, by pair of languages (%)",
                caption="100 % less the alignment error rate by pair of languages: of argmax at "
                "the layer picked on the other half of the sentences, of places alone, and of "
                "shared pieces with places.",
                same_scale=True,
            ),
        ]


@dataclass(frozen=True)
class WordAlignment(ShuffledCopies, Resampled):
    """Do words and their translations have states that are alike?

    Method: both sentences of a pair are read one by one; a word's state is the mean of its pieces'.
    Words are aligned by the cosine of their states after each layer: those that choose each other
    (argmax), the same with a second round (itermax), or each word once so that the sum is the
    largest (assignment, which is optimal transport of whole words). Links are set against those
    that people made, sure or possible, by the alignment error rate; beside alignments by places
    alone, by shared pieces with places, and by ten copies of the model with shuffled weights. The
    layer is picked on the other half of the sentences. English words are told open or closed class
    by the bundled tagger. Translation by offset: a word is the mean of its states in one half of
    the sentences; its nearest word of the other language is right if people linked the two; before
    and after the mean difference of the languages, in the other half, was added.

    Source: Libovický, Rosa and Fraser (2019); Jalili Sabet et al. (2020), "SimAlign"; Cao, Kitaev
    and Klein (2020); Pires et al. (2019) and Gonen et al. (2020) for the offset.
    Limits: gold alignments know no parts of speech, and are of English and one other language; only
    English words are tagged, by a tagger that errs. The pairs of languages are those given: nothing
    is said of others. Copies read fewer sentences (--copy-sentences).
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "text_b", "words", "offsets", "alignment", "language"})
    )
    result_type: ClassVar[type[Result]] = WordAlignmentResult
    fewest: ClassVar[int] = 20
    finds_words: ClassVar[bool] = True
    copies: ClassVar[int] = COPIES

    copy_sentences: int = parameter(
        40, "Pairs of each two languages that copies with shuffled weights read.", minimum=20
    )

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The tagger that is asked."""
        from bertology.annotated.tagged_batches import tagging_ingredients

        return tagging_ingredients("bundled")

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse data without a link."""
        super().check(encoder, corpus)
        if not any(example.get(Field.ALIGNMENT) for example in self.shown(corpus)):
            raise DataError(f"{corpus.name!r} has no link between words.")

    def _few(self, corpus: Corpus) -> Corpus:
        """What copies read."""
        return self.shown(corpus).take(self.copy_sentences, seed=self.seed)

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Both texts of each pair, one by one."""
        return [text for example in self.shown(corpus) for text in example.texts]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """The texts that are read."""
        few = 2 * len(self._few(corpus))
        return 2 * len(self.shown(corpus)) + few if part == MODEL else few

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Links made by layer and method; words translated."""
        import xarray as xr

        reader, found = self.reader(encoder, part), dict[str, object]()
        wanted = {"": self.shown(corpus)} if part == MODEL else {}
        wanted["_small"] = self._few(corpus)
        for suffix, some in wanted.items():
            found |= _measured(reader, some, context, suffix, tagged=not suffix)
        return xr.Dataset(
            found,
            coords={
                "layer": [INPUT, *range(encoder.shape.layers)],
                "method": list(METHODS),
                "baseline": list(BASELINES),
                "class": list(CLASSES),
                "how": list(HOW),
            },
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Error rates and gains."""
        import pandas as pd

        part, copies = measured[MODEL], self.of_copies(measured)
        scores = Scores(part, "")
        small = [Scores(one, "_small") for one in (part, *copies)]
        layers = part["layer"].to_numpy().astype(int)
        columns: dict[str, object] = {"layer": layers}
        rows = np.concatenate([scores.quality(of) for of in scores.counts])
        means = self.means(rows, reach=1.0, families=2)
        for number, name in enumerate(METHODS):
            some = slice(number * len(layers), (number + 1) * len(layers))
            for column, of in with_bounds(name, means, p=False).items():
                columns[column] = np.asarray(of)[some]
        made = scores.counts[0].sum(axis=1)  # (layers, 4)
        columns["precision"] = made[:, 2] / np.maximum(made[:, 0], 1)
        columns["recall"] = made[:, 1] / np.maximum(made[:, 3], 1)
        if scores.translates:
            means = self.means(
                np.concatenate(scores.translated), within=(0, 1), reach=1.0, families=2
            )
            for number, name in enumerate(HOW):
                some = slice(number * len(layers), (number + 1) * len(layers))
                for column, of in with_bounds(name, means, p=False).items():
                    columns[column] = np.asarray(of)[some]
        else:
            columns |= dict.fromkeys(HOW, np.nan)
        evidence, reasons = self._evidence(scores, small)
        tables = {
            "layers": pd.DataFrame(columns),
            "summary": pd.DataFrame(self._summary(scores)),
            "pairs": pd.DataFrame(scores.by_pair()),
        }
        if len(by_class := self._classes(scores)):
            tables["classes"] = pd.DataFrame(by_class)
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons=reasons,
            facts={"examples": scores.size, "words": scores.asked},
        )

    def _summary(self, scores: Scores) -> list[dict[str, object]]:
        found = []
        for number, name in enumerate(METHODS):
            layer, counts = scores.best(number)
            found.append((name, layer, scores.quality(counts[None])[0]))
        for name, counts in zip(BASELINES, scores.baselines, strict=True):
            found.append((name, INPUT, scores.quality(counts[None])[0]))
        if scores.translates:
            found += [(how, *scores.best_translated(how)) for how in HOW]
        return [
            {"name": name, "layer": layer, **bounded("share", _mean(rows, self.level)),
             "n": len(rows)}
            for name, layer, rows in found
        ]  # fmt: skip

    def _classes(self, scores: Scores) -> list[dict[str, object]]:
        found = []
        _, hits = scores.best_classes()
        for name, of, asked in zip(CLASSES, hits.T, scores.class_counts.T, strict=True):
            if asked.sum() > 0:
                rows = scores.ratio(of, asked)
                estimate = _mean(rows, self.level)
                found.append(
                    {"class": name, "links": int(asked.sum()), **bounded("recall", estimate)}
                )
        return found

    def _evidence(
        self, scores: Scores, small: Sequence[Scores]
    ) -> tuple[dict[str, Estimate | None], dict[str, str]]:
        def best(of: Scores) -> Floats:
            found: Floats = of.quality(of.best(0)[1][None])[0]
            return found

        found: dict[str, Estimate | None] = {}
        reasons = {
            "open_less_closed": "not judged: too few sure links of English words of either kind",
            "word_offset_gain": "not judged: too few words have sure links in both halves",
        }
        own = best(scores)
        by_place, by_spelling = (scores.quality(of[None])[0] for of in scores.baselines)
        each = [best(of) for of in small]
        found["alignment_gain"] = _mean(own - by_place, self.level).with_controls(
            {
                "shared pieces and places": _mean(own - by_spelling, self.level),
                "shuffled weights": _beyond(each, self.level),
            }
        )
        if (scores.class_counts.sum(axis=0) >= 20).all():
            _, hits = scores.best_classes()
            of_open, of_closed = (
                scores.ratio(hits[:, at], scores.class_counts[:, at]) for at in (0, 1)
            )
            found["open_less_closed"] = _mean(of_open - of_closed, self.level)
        if scores.translates and all(of.translates for of in small):
            gains = [
                of.best_translated("shifted")[1] - of.best_translated("nearest")[1]
                for of in (scores, *small)
            ]
            found["word_offset_gain"] = (
                _mean(gains[0], self.level)
                .counting("words")
                .with_controls({"shuffled weights": _beyond(gains[1:], self.level)})
            )
        return found, reasons


def _mean(rows: Floats, level: float) -> Estimate:
    return least_mean([rows], level=level)


def _beyond(each: Sequence[Floats], level: float) -> Estimate:
    """The model (first) less the mean of copies over the same rows; words may differ by copy."""
    own, *others = each
    if len({len(rows) for rows in each}) == 1:
        found = _mean(own - np.mean(others, axis=0), level)
    else:
        base = float(np.mean([rows.mean() for rows in others]))
        found = _mean(own - base, level)
    return among_copies(found, [float(rows.mean()) for rows in others])


class Scores:
    """What was measured of one model over some pairs of sentences."""

    def __init__(self, part: xr.Dataset, of: str) -> None:
        self.group: Ints = part[f"group{of}"].to_numpy()
        self.names = [str(name) for name in part[f"name{of}"].to_numpy()]
        self.size = len(self.group)
        self.counts: Floats = part[f"counts{of}"].to_numpy().astype(np.float64)
        """(methods, layers, sentences, 4)"""
        self.baselines: Floats = part[f"baselines{of}"].to_numpy().astype(np.float64)
        self.classes: Floats = part[f"classes{of}"].to_numpy().astype(np.float64)
        """(layers, sentences, classes)"""
        self.class_counts: Floats = part[f"class_counts{of}"].to_numpy().astype(np.float64)
        self._word_group, self._word_half = part[f"asked{of}"].to_numpy()
        self._hits: Floats = part[f"hits{of}"].to_numpy().astype(np.float64)
        self.asked = self._hits.shape[2]
        self.translates = len(set(self._word_half.tolist())) == 2

    @property
    def half(self) -> Ints:
        """Of each sentence: 0 or 1, by turns in its pair of languages."""
        found: Ints = _turns(self.group) % 2
        return found

    def quality(self, counts: Floats) -> Floats:
        """(layers, sentences) of counts (layers, sentences, 4): values whose mean is 1 less AER.

        The rate is a ratio of sums, and so its mean over sentences one of their influences; each
        pair of languages counts alike.
        """
        return np.stack([self.ratio(of[:, 1] + of[:, 2], of[:, 0] + of[:, 3]) for of in counts])

    def ratio(self, top: Floats, bottom: Floats) -> Floats:
        """(sentences,): values whose mean is the mean over language pairs of Σ top / Σ bottom."""
        found = np.zeros(len(top))
        groups = [g for g in np.unique(self.group) if bottom[self.group == g].sum() > 0]
        for g in groups:
            here = self.group == g
            share = top[here].sum() / bottom[here].sum()
            influence = (top[here] - share * bottom[here]) / bottom[here].mean()
            found[here] = (share + influence) * len(top) / (here.sum() * len(groups))
        return found

    def best(self, method: int) -> tuple[int, Floats]:
        """The best layer on all sentences, and the counts of the one picked on the other half."""
        counts = self.counts[method, 1:]
        picked = np.empty(self.size, np.int64)
        for half in (0, 1):
            rates = [self._rate(of[self.half != half], self.half != half) for of in counts]
            picked[self.half == half] = int(np.argmin(rates))
        chosen = np.take_along_axis(counts, picked[None, :, None], axis=0)[0]
        every = np.ones(self.size, bool)
        return int(np.argmin([self._rate(of, every) for of in counts])), chosen

    def _rate(self, counts: Floats, here: NDArray[np.bool_]) -> float:
        group = self.group[here]
        return float(
            np.mean([error_rate(counts[group == g].sum(axis=0)) for g in np.unique(group)])
        )

    def best_classes(self) -> tuple[int, Floats]:
        """Sure links found (sentences, classes) by argmax at the layer that aligns best."""
        picked, _ = self.best(0)
        halves = np.empty(self.size, np.int64)
        for half in (0, 1):
            rates = [
                self._rate(of[self.half != half], self.half != half) for of in self.counts[0, 1:]
            ]
            halves[self.half == half] = int(np.argmin(rates))
        found = np.take_along_axis(self.classes[1:], halves[None, :, None], axis=0)[0]
        return picked, found

    @property
    def translated(self) -> Floats:
        """(how, layers, words): values whose mean is over language pairs."""
        _, number, size = np.unique(self._word_group, return_inverse=True, return_counts=True)
        found: Floats = self._hits * (self.asked / (len(size) * size[number]))
        return found

    def best_translated(self, how: str) -> tuple[int, Floats]:
        """The best layer, and values (words,) of the one picked on the other half."""
        rows = self.translated[HOW.index(how), 1:]
        found = np.empty(rows.shape[1])
        for half in (0, 1):
            here = self._word_half == half
            found[here] = rows[rows[:, ~here].mean(axis=1).argmax()][here]
        return int(rows.mean(axis=1).argmax()), found

    def by_pair(self) -> list[dict[str, object]]:
        """1 less the alignment error rate of each pair of languages."""
        columns = {name: self.best(number)[1] for number, name in enumerate(METHODS)}
        columns |= dict(zip(BASELINES, self.baselines, strict=True))
        found = []
        for g, name in enumerate(self.names):
            here = self.group == g
            rates = {of: 1 - float(error_rate(c[here].sum(axis=0))) for of, c in columns.items()}
            asked = self._word_group == g
            words = {
                how: float(self._hits[at, 1 + self.best_translated(how)[0], asked].mean())
                if asked.any() and self.translates
                else np.nan
                for at, how in enumerate(HOW)
            }
            found.append({"pair": name, "n": int(here.sum()), **rates, **words})
        return found


def _turns(group: Ints) -> Ints:
    """Of each: how many of its group came before."""
    found = np.zeros(len(group), np.int64)
    for g in np.unique(group):
        found[group == g] = np.arange((group == g).sum())
    return found


def _measured(
    encoder: Encoder, corpus: Corpus, context: Context, suffix: str, *, tagged: bool
) -> dict[str, object]:
    """Counts of links by sentence, and words translated."""
    pairs = [f"{e.get('language')}-{e.annotations.get('language_b', '')}" for e in corpus]
    names = sorted(set(pairs))
    group = np.array([names.index(pair) for pair in pairs], np.int64)
    half = _turns(group) % 2
    layers, size = encoder.shape.layers + 1, len(corpus)
    counts = np.zeros((len(METHODS), layers, size, 4), np.int32)
    baselines = np.zeros((len(BASELINES), size, 4), np.int32)
    classes = np.zeros((layers, size, len(CLASSES)), np.int32)
    class_counts = np.zeros((size, len(CLASSES)), np.int32)
    asked, hits = list[tuple[int, int]](), list[NDArray[np.uint8]]()
    for number in range(len(names)):
        translated = Translated()
        here = np.flatnonzero(group == number)
        for start in range(0, len(here), _AT_ONCE):
            some = here[start : start + _AT_ONCE]
            examples = [corpus[int(at)] for at in some]
            sides = [_sides(example) for example in examples]
            read = [
                _word_states(encoder, corpus, [both[side] for both in sides], context)
                for side in (0, 1)
            ]
            kinds = _kinds(examples, sides) if tagged else [None] * len(examples)
            for row, at in enumerate(some):
                (one, pieces), (other, others) = (of[row] for of in read)
                shape = len(pieces), len(others)
                sure, possible = _gold(examples[row], shape)
                links = np.zeros((layers, len(METHODS), *shape), bool)
                for layer in range(layers):
                    links[layer] = aligned(cosines(one[layer], other[layer]))
                    for method in range(len(METHODS)):
                        counts[method, layer, at] = counts_of(links[layer, method], sure, possible)
                for place, alike in enumerate((by_place(*shape), by_pieces(pieces, others))):
                    baselines[place, at] = counts_of(argmax(alike), sure, possible)
                if (kind := kinds[row]) is not None:
                    for place in range(len(CLASSES)):
                        own = sure & (kind == place)
                        class_counts[at, place] = own.sum()
                        classes[:, at, place] = (links[:, 0] & own).sum(axis=(1, 2))
                words = [
                    translated.words[half[at]][side].add(_spelt(sides[row][side]), states)
                    for side, states in ((0, one), (1, other))
                ]
                translated.linked[half[at]] |= {
                    (words[0][a], words[1][b]) for a, b in zip(*np.nonzero(sure), strict=True)
                }
        for which, _, words_asked, found in translated.asked():
            asked += [(number, which)] * len(words_asked)
            hits.append(found)
    every = np.concatenate(hits, axis=2) if hits else np.zeros((len(HOW), layers, 0), np.uint8)
    sentence, word = f"sentence{suffix}", f"word{suffix}"
    found_all = {
        "group": ((sentence,), group),
        "name": ((f"pair{suffix}",), names),
        "counts": (("method", "layer", sentence, "count"), counts),
        "baselines": (("baseline", sentence, "count"), baselines),
        "classes": (("layer", sentence, "class"), classes),
        "class_counts": ((sentence, "class"), class_counts),
        "asked": (("what", word), np.array(asked, np.int64).reshape(-1, 2).T),
        "hits": (("how", "layer", word), every),
    }
    return {f"{name}{suffix}": value for name, value in found_all.items()}


def _sides(example: Example) -> tuple[Example, Example]:
    """The two texts of a pair, each with its words."""
    beyond = len(example.text) + 1
    offsets = example.get(Field.OFFSETS)
    first = [(a, b) for a, b in offsets if a < beyond]
    second = [(a - beyond, b - beyond) for a, b in offsets if a >= beyond]
    texts = example.texts
    return tuple(  # type: ignore[return-value]
        Example(example.id, text, annotations={"words": [text[a:b] for a, b in of], "offsets": of})
        for text, of in zip(texts, (first, second), strict=True)
    )


def _spelt(example: Example) -> list[str]:
    found: list[str] = example.get(Field.WORDS)
    return found


def _word_states(
    encoder: Encoder, corpus: Corpus, examples: Sequence[Example], context: Context
) -> list[tuple[NDArray[np.float32], list[list[int]]]]:
    """States (layers, words, width) of each text, and the pieces of its words.

    A word without a piece, or that was cut off, has the state 0, which is like no other.
    """
    from bertology.annotated.words import word_batches
    from bertology.model.reducers.unit_states import UnitStates

    own = Corpus(corpus.name, examples, frozenset({Field.TEXT, Field.WORDS, Field.OFFSETS}))
    layers, width = encoder.shape.layers + 1, encoder.shape.hidden
    found: list[tuple[NDArray[np.float32], list[list[int]]]] = [
        (np.zeros((layers, len(_spelt(one)), width), np.float32), []) for one in examples
    ]

    def take(number: int, states: Tensor, *, into: NDArray[np.float32]) -> None:
        into[number] = states.float().cpu().numpy()

    for read in word_batches(encoder, own, tokens_per_batch=context.batch_tokens):
        groups: list[list[Sequence[int]]] = []
        places: list[tuple[int, int]] = []
        for at, one in zip(read.batch.indices, read.examples, strict=True):
            pieces = [one.alignment.pieces_of(word) for word in range(len(one.alignment))]
            found[at][1].extend([[one.encoding.ids[p] for p in of] for of in pieces])
            groups.append([of for of in pieces if of])
            places += [(at, word) for word, of in enumerate(pieces) if of]
        states = np.zeros((layers, len(places), width), np.float32)
        reducer = UnitStates(read.batch, groups, partial(take, into=states))
        if places:
            encoder.run(read.batch, reduce={"embeddings": reducer, "layer.*.residual": reducer})
        for number, (at, word) in enumerate(places):
            found[at][0][:, word] = states[:, number]
        context.advance(len(read.batch))
    return found


def _gold(example: Example, shape: tuple[int, int]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The sure links, and the possible ones, among which are the sure ones."""
    sure, possible = np.zeros(shape, bool), np.zeros(shape, bool)
    for a, b, kind in example.get(Field.ALIGNMENT):
        possible[a, b] = True
        sure[a, b] = kind == "sure"
    return sure, possible


def _kinds(
    examples: Sequence[Example], sides: Sequence[tuple[Example, Example]]
) -> list[NDArray[np.int64] | None]:
    """By pair of words: the kind of the English one: 0 open, 1 closed, -1 neither."""
    from bertology.annotated.tagger import find_tagger

    english = [
        0 if e.get("language") == "en" else 1 if e.annotations.get("language_b") == "en" else -1
        for e in examples
    ]
    asked = [at for at, side in enumerate(english) if side >= 0]
    tags = find_tagger("bundled").tag([_spelt(sides[at][english[at]]) for at in asked])
    found: list[NDArray[np.int64] | None] = [None] * len(examples)
    for at, one in zip(asked, tags, strict=True):
        kind = np.array([0 if t in OPEN else -1 if t in _OTHER else 1 for t in one.pos], np.int64)
        found[at] = kind[:, None] if english[at] == 0 else kind[None, :]
    return found
