"""Static embeddings: how good are vectors of words that are distilled from contextual ones?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.word_contexts import spelt
from bertology.arrays import Bools, Floats
from bertology.data.corpus import Field
from bertology.errors import CapabilityError, DataError
from bertology.parameters import parameter, pooling_of
from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import of_row, points, raised
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked, dashed
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.rank_agreement import PairLinks
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.probes import INPUT
from bertology.studies.designs.shuffled_copies import COPIES, MODEL, ShuffledCopies
from bertology.studies.geometry.shared.pair_scores import (
    check_judged,
    components,
    other_corpus,
    rests_on,
)
from bertology.studies.geometry.static_embeddings.tables import Distilled
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.annotated.word_contexts import ContextSums
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape


SIMILARITY, ADD, MULTIPLY = "similarity", "analogy by sum", "analogy by product"
_SOME = 512  # analogies that are answered together
_DIGITS = 10  # of cosines: what differs by rounding alone is the same rank
_EPSILON = 0.001  # of 3CosMul, as Levy and Goldberg have it


@dataclass(frozen=True)
class WordQuestions:
    """Pairs of words that people scored, or analogies a : b = c : d, words by number."""

    words: Sequence[str]
    """As they are written."""
    items: NDArray[np.int64]  # (N, 2) or (N, 4)
    judged: Floats | None  # (N,), of pairs
    groups: Sequence[str]
    """The section of each analogy; "" for pairs."""

    @property
    def scores(self) -> tuple[str, ...]:
        """What is scored."""
        return (ADD, MULTIPLY) if self.judged is None else (SIMILARITY,)

    @property
    def links(self) -> PairLinks:
        """Pairs share words; analogies share pairs, as Athens : Greece, or a word of them.

        Pairs that hang together by a word, as Athens : Greece and Greece : Greek, are one, unless
        that would be more than a quarter of all questions.
        """
        if self.judged is not None:
            return PairLinks(self.items[:, 0], self.items[:, 1])
        one = components(self.items.reshape(-1, 2), len(self.words))
        if 4 * np.bincount(one[self.items[:, [0, 2]]].ravel()).max() > len(self.items):
            return PairLinks.of([((a, b), (c, d)) for a, b, c, d in self.items.tolist()])
        return PairLinks(one[self.items[:, 0]], one[self.items[:, 2]])

    def answered(self, vectors: Floats, there: Bools) -> Floats:
        """(scores, N): cosines, or 1 where an analogy is right, among the words that are there."""
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units = vectors / np.where(lengths > 0, lengths, 1.0)
        if self.judged is not None:
            cosines: Floats = (units[self.items[:, 0]] * units[self.items[:, 1]]).sum(axis=1)
            return np.round(cosines, _DIGITS)[None]
        found = [
            _analogies(units, there, self.items[at : at + _SOME])
            for at in range(0, len(self.items), _SOME)
        ]
        return np.concatenate(found, axis=1)


def _analogies(units: Floats, there: Bools, items: NDArray[np.int64]) -> Floats:
    """Sum and product of cosines (3CosAdd, 3CosMul); the words of a question are no answer."""
    a, b, c, d = items.T
    near_a, near_b, near_c = (units[words] @ units.T for words in (a, b, c))
    added = near_b - near_a + near_c
    shifted = [(near + 1) / 2 for near in (near_a, near_b, near_c)]
    multiplied = shifted[1] * shifted[2] / (shifted[0] + _EPSILON)
    rows, right = np.arange(len(items)), []
    for scores in (added, multiplied):
        scores[:, ~there] = -np.inf
        for words in (a, b, c):
            scores[rows, words] = -np.inf
        right.append(scores.argmax(axis=1) == d)
    return np.array(right, np.float64)


def asked_words(corpus: Corpus) -> list[list[str]]:
    """The words of each question; refuse a corpus that asks none of single words."""
    if {Field.TEXT_B, Field.LABEL} <= corpus.fields and Field.TARGETS not in corpus.fields:
        pairs = [list(one.texts) for one in corpus]
        if sum(len(word.split()) > 1 for pair in pairs for word in pair) <= len(pairs) / 10:
            return pairs
    elif Field.WORDS in corpus.fields and Field.GROUP in corpus.fields:
        found = [[str(word) for word in one.get(Field.WORDS)] for one in corpus]
        if all(len(words) == 4 for words in found):
            return found
    raise CapabilityError(
        f"Corpus {corpus.name!r} holds neither pairs of single words with a score nor analogies of "
        "four words.",
        hint="Word pairs are text, text_b and label; analogies have four words and a group. Such "
        "are grammar-word-pairs, simlex-999 and google-analogies.",
    )


def word_questions(corpus: Corpus, more: Sequence[str] = ()) -> WordQuestions:
    """The questions of a corpus; `more` words are possible answers too."""
    asked = asked_words(corpus)
    numbers: dict[str, int] = {}
    words: list[str] = []
    for word in [*(word for some in asked for word in some), *more]:
        if numbers.setdefault(spelt(word.strip(), lower=True), len(words)) == len(words):
            words.append(word.strip())
    items = [[numbers[spelt(word.strip(), lower=True)] for word in some] for some in asked]
    pairs = len(asked[0]) == 2
    return WordQuestions(
        words,
        np.array(items, np.int64),
        np.array(corpus.labels, np.float64) if pairs else None,
        [""] * len(items) if pairs else [str(one.get(Field.GROUP)) for one in corpus],
    )


_SIMILARITY = "similarity"
_METHODS = {"mean": "mean over contexts", "component": "first component"}


class StaticEmbeddingsResult(Result):
    """How good vectors of words are that were distilled from a model, by layer and method.

    Table `comparisons`, which the answer and the claim `distilled_gain` speak of: the best layer
    and method (`best`), picked on other questions than it is scored on, against the model's table
    of input embeddings, files that were given, and shuffled weights at their best; the claim rests
    on the first gain, and the last is its control. Table `vectors`: for each score the best layer
    of each method (`best_layer` is that of all questions), the input embeddings and the files, all
    scored on the same questions, and what they are over the input embeddings. Table `layers`: the
    score of each method and layer (-1 is what enters the first one), and that of shuffled weights.
    Table `coverage`: the shares of words and of questions that each of them has; only questions
    that all have are scored. Table `sections`, for analogies: right answers by section. Scores are
    Spearman's correlation (pairs), or shares of right answers (analogies, of which the first score
    is the claim's). Bounds in `vectors` and `layers` hold for all rows of a score together.
    """

    strongest: ClassVar[Mapping[str, str]] = {"vectors": "value", "layers": "value"}

    @property
    def answer(self) -> str:
        """The best distilled vectors beside the table of the model, and shuffled weights."""
        table = self.tables["comparisons"]
        best, compared = table.iloc[0], table.iloc[[0, -1]]
        gains = " and ".join(
            f"{points(of_row(row, ('gain', 'gain_low', 'gain_high')))} over {row['against']} "
            f"({100 * row['value']:.0f})"
            for _, row in compared.iterrows()
        )
        told = "".join(
            f"; {row['against']}: {100 * row['value']:.0f}" for _, row in table[1:-1].iterrows()
        )
        what = "agree with people by" if self._similarity else "find of the fourth words"
        unit = "(correlation × 100)" if self._similarity else "%"
        return (
            f"Static vectors at their best ({_METHODS[str(best['method'])]}, layer "
            f"{best['layer']}) {what} {100 * best['best']:.0f} {unit}: {gains}{told}. "
            f"{rests_on(self.evidence()['distilled_gain'])}."
        )

    @property
    def _similarity(self) -> bool:
        return bool((self.tables["layers"]["score"] == _SIMILARITY).all())

    @property
    def _unit(self) -> str:
        return "Spearman's correlation × 100" if self._similarity else "% of right answers"

    def measures(self) -> Sequence[Measure]:
        """The score of each method by layer."""
        table = self.tables["layers"]
        return [
            Measure.of_column(
                rows,
                "value",
                name=f"{dashed(str(score))}-{method}",
                title=f"Static vectors of the layer, {score}: {_METHODS[str(method)]}",
                unit=self._unit,
                scale=100.0,
                reading="High: vectors of words made of this layer's states are good ones.",
            )
            for (score, method), rows in table[table["layer"] >= 0].groupby(
                ["score", "method"], sort=False
            )
        ]

    def over_training(self) -> Sequence[Tracked]:
        """What distilled vectors gain over the table."""
        return [
            Tracked(
                "distilled_gain",
                "the gain of distilled vectors over input embeddings and shuffled weights",
                layers=self.measures()[0].name,
                scale=100.0,
                unit="points",
                gain=True,
            )
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Scores by layer; all vectors beside each other, for each score."""
        by_name, table = {m.name: m for m in self.measures()}, self.tables["layers"]
        scores = list(dict.fromkeys(table["score"]))
        methods = list(dict.fromkeys(table["method"]))
        names = [f"{dashed(score)}-{method}" for score in scores for method in methods]
        labels = [
            _METHODS[method] if len(scores) == 1 else f"{_METHODS[method]}, {score}"
            for score in scores
            for method in methods
        ]
        found = [
            drawings.profile(
                "layers",
                [by_name[name] for name in names],
                self.about,
                title="How good static vectors of a layer are",
                reading="Each word is one vector, made of its states in many contexts.",
                labels=labels,
            )
        ]
        for score in scores:
            found.append(
                Drawing(
                    f"vectors-{dashed(score)}",
                    partial(self._vectors, score),
                    f"{raised(score)}: the best layer of each method (picked on other "
                    "questions than it is scored on; grey bars: weights in random order), "
                    "the model's table of input embeddings, and files of vectors, in "
                    f"{self._unit}; and their gains over the table. Intervals hold for all rows "
                    "together.",
                )
            )
        return found

    def _vectors(self, score: str) -> Figure:
        rows = self.tables["vectors"]
        rows = rows[rows["score"] == score]
        return interval_dots(
            [
                Dots.of_columns(self._unit, rows, "value", bars="shuffled"),
                Dots.of_columns(
                    "gain over input embeddings (points)", rows, "over_input", level=0.0
                ),
            ],
            [str(name) for name in rows["vectors"]],
            title=f"Static vectors: {score}\n{self.about}",
            note="Grey bars: weights in random order.",
        )


TABLE = "input embeddings"
_FEWEST = 20
_NOTHING_TOLD = (
    "not judged: vectors of no layer are surely better than the input embeddings and than those of "
    "shuffled weights"
)
_NO_FILE = "not judged: no file of word vectors was given (--vectors)"


@dataclass(frozen=True)
class StaticEmbeddings(ShuffledCopies, Resampled):
    """How good are static vectors of words that are distilled from a model's contextual ones?

    Method: each word becomes one vector for every layer, from its occurrences in `contexts`: their
    mean, or their first principal component (the line through zero nearest to them, by power
    iterations that read the corpus again). They are scored on pairs of words by Spearman's
    correlation of cosines with human judgements, or on analogies by the share of fourth words that
    are found, by the sum (3CosAdd) and by the product (3CosMul) of cosines, among all words of the
    questions and the most frequent words of the contexts. Beside them: the model's own table of
    input embeddings, files of word vectors that you give (word2vec, GloVe), and distilled vectors
    of the same model with its weights in random order. Only questions whose words all of these have
    are scored, and only words that all have are possible answers; the table `coverage` says how
    many. A word that the tokenizer cannot spell has no input embedding. The best layer and method
    are picked on other questions than they are scored on, which share no word with these; questions
    that share one (analogies: a pair, or one that hangs together with it by a word) are not taken
    as independent.

    Source: Ethayarajh (2019); Bommasani et al. (2020). Limits: few contexts make poor vectors, so
    that numbers are to be compared over the same contexts. Case is ignored in finding words.
    `bertology distil-static` writes such vectors of all words to a file.
    """

    version: ClassVar[int] = 4  # controls are gates; lower layers ask for the order
    measured_version: ClassVar[int] = 2
    needs: ClassVar[Needs] = Needs(fields=frozenset({"text"}))
    finds_words: ClassVar[bool] = True
    result_type: ClassVar[type[Result]] = StaticEmbeddingsResult
    fewest: ClassVar[int] = _FEWEST
    fills_gpu: ClassVar[bool] = True
    copies: ClassVar[int] = COPIES

    contexts: str = parameter(
        "grammar", "The corpus in which words are looked for: name, path or hub id."
    )
    contexts_split: str = parameter("validation", "Which split of it.")
    contexts_examples: int = parameter(2000, "Draw so many of its examples at most.", minimum=1)
    pooling: str = pooling_of("one occurrence")
    steps_of_component: int = parameter(
        2, "Power iterations for the first component; 0: means alone.", minimum=0, maximum=20
    )
    min_count: int = parameter(1, "Words that occur less often have no vector.", minimum=1)
    vectors: tuple[str, ...] = parameter(
        (), "Files of word vectors to compare with (word2vec or GloVe format)."
    )
    candidates: int = parameter(
        5000, "The most frequent words of the contexts, as answers to analogies.", minimum=0
    )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse corpora that ask nothing of single words, and files that are not there."""
        from bertology.data.static_vectors import fingerprint_of

        super().check(encoder, corpus)
        for name in self.vectors:
            fingerprint_of(name)
        asked = asked_words(corpus)
        if len(asked[0]) == 2:
            check_judged(self.shown(corpus).labels, corpus.name)

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The contexts, and the files."""
        from bertology.data.static_vectors import fingerprint_of

        found = {f"vectors-{at}": fingerprint_of(name) for at, name in enumerate(self.vectors)}
        found["contexts"] = self._contexts(corpus).fingerprint
        return found

    def _contexts(self, corpus: Corpus) -> Corpus:
        return other_corpus(
            corpus,
            self.contexts,
            split=self.contexts_split,
            limit=self.contexts_examples,
            seed=self.seed,
        )

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """The contexts: words are not read alone."""
        return self._contexts(corpus).texts

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """Contexts, as often as they are read."""
        passes = 1 + self.steps_of_component
        return passes * len(self._contexts(corpus))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Answers of the vectors of all layers, and of what they are compared with."""
        import xarray as xr

        found = self._questions(corpus)
        sums = self._summed(self.reader(encoder, part), corpus, found, context)
        counts = sums.counts.cpu().numpy()
        own = counts >= self.min_count
        methods = {"mean": sums.vectors("mean")}
        if self.steps_of_component:
            methods["component"] = sums.vectors("component")
        others = _others(encoder, found, self.vectors)
        both = own & np.all([there for _, there in others.values()], axis=0)
        kept = both[found.items].all(axis=1)
        if kept.sum() < _FEWEST:
            raise DataError(
                f"Of {len(kept)} questions {int(kept.sum())} have only words that occur in the "
                f"contexts and are in all files; {_FEWEST} are needed.",
                hint="Give more contexts (--contexts-examples), others (--contexts), or files that "
                "hold more words.",
            )
        if found.judged is not None:
            check_judged(found.judged[kept], corpus.name)
        scored = {
            name: np.stack([found.answered(layer, both)[:, kept] for layer in of], axis=1)
            for name, of in methods.items()
        }  # (score, layer, item) each; the same words are possible answers everywhere
        bases = {name: found.answered(of, both)[:, kept] for name, (of, _) in others.items()}
        links = found.links
        return xr.Dataset(
            {
                "answers": (
                    ("method", "score", "layer", "item"),
                    np.stack(list(scored.values())),
                ),
                "beside": (
                    ("base", "score", "item"),
                    np.stack(list(bases.values())),
                ),
                "judged": ("item", np.zeros(kept.sum()) if found.judged is None
                           else found.judged[kept]),
                "group": ("item", np.array(found.groups)[kept]),
                "first": ("item", links.first[kept]),
                "second": ("item", links.second[kept]),
                "words_known": ("source", _known(found, own, others)),
                "items_known": ("source", [
                    float(there[found.items].all(axis=1).mean())
                    for there in (own, *(there for _, there in others.values()))
                ]),
            },
            coords={
                "method": list(methods),
                "score": list(found.scores),
                "layer": [INPUT, *range(encoder.shape.layers)],
                "base": list(others),
                "source": ["distilled", *others],
            },
            attrs={
                "occurrences": int(counts.sum()),
                "moved": sums.moved,
                "asked": len(kept),
                "words": len(found.words),
            },
        )  # fmt: skip

    def _questions(self, corpus: Corpus) -> WordQuestions:
        from bertology.annotated.word_contexts import count_words

        shown = self.shown(corpus)
        more: list[str] = []
        if len(asked_words(shown)[0]) == 4 and self.candidates:
            counts, _ = count_words(self._contexts(corpus), lower=True)
            more = [word for word, _ in counts.most_common(self.candidates)]
        return word_questions(shown, more)

    def _summed(
        self,
        encoder: Encoder,
        corpus: Corpus,
        found: WordQuestions,
        context: Context,
    ) -> ContextSums:
        from bertology.annotated.word_contexts import ContextSums, add_contexts, spelt

        device = "cuda" if encoder.device.type == "cuda" else "cpu"  # others lack doubles
        words = [spelt(word, lower=True) for word in found.words]
        layers = range(encoder.shape.layers + 1)
        sums = ContextSums(words, layers, encoder.shape.hidden, device=device)
        passes = 1 + self.steps_of_component
        examples = list(self._contexts(corpus))
        for number in range(passes):
            add_contexts(
                encoder,
                examples,
                sums,
                pooling=self.pooling,
                lower=True,
                batch_tokens=context.batch_tokens,
                advance=context.advance,
            )
            if number < passes - 1 or number:
                sums.end_pass()
        return sums

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Scores by layer and method, the cross-fitted best beside the others."""
        model = measured[MODEL]
        found = Distilled(
            model,
            [part["answers"].to_numpy() for part in self.of_copies(measured)],
            PairLinks(model["first"].to_numpy(), model["second"].to_numpy()),
            options={"level": self.level, "resamples": self.resamples, "seed": self.seed},
        )
        evidence, reasons = self._evidence(found)
        tables = {
            "vectors": found.by_vectors(),
            "layers": found.by_layer(),
            "coverage": found.coverage(),
            "comparisons": found.comparisons(),
        }
        if found.judged is None:
            tables["sections"] = found.by_section()
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons=reasons,
            facts={
                "examples": found.items,
                "contexts": Path(self.contexts).name,
                **{str(name): value for name, value in model.attrs.items()},
            },
        )

    def _evidence(self, found: Distilled) -> tuple[dict[str, Estimate | None], dict[str, str]]:
        gain = found.distilled_gain()
        evidence: dict[str, Estimate | None] = {
            "distilled_gain": gain,
            "over_given": found.over_given(),
            "component_gain": found.component_gain(),
        }
        if gain.surely_there:  # where layers tell anything of words that the input does not
            evidence["lower_over_upper"] = found.lower_over_upper()
        reasons = {"over_given": _NO_FILE, "lower_over_upper": _NOTHING_TOLD}
        return evidence, {name: why for name, why in reasons.items() if evidence.get(name) is None}


Vectors = tuple[NDArray[np.float64], NDArray[np.bool_]]


def _others(encoder: Encoder, found: WordQuestions, files: Sequence[str]) -> dict[str, Vectors]:
    """Rows of the model's table, and those of files: vectors of all words, and which are there."""
    from bertology.data.static_vectors import read_word_vectors
    from bertology.model.batch import unknown_id

    unknown = unknown_id(encoder.tokenizer)
    table = encoder.model.get_input_embeddings().weight.detach()
    rows, there = np.zeros((len(found.words), table.shape[1])), np.zeros(len(found.words), bool)
    for at, word in enumerate(found.words):
        # After a space, as words stand in a text: some tokenizers tell the difference.
        ids = encoder.tokenizer(f" {word}", add_special_tokens=False)["input_ids"]
        if any(token != unknown for token in ids):
            rows[at], there[at] = table[list(ids)].double().mean(0).cpu().numpy(), True
    others: dict[str, Vectors] = {TABLE: (rows, there)}
    for name in files:
        read = read_word_vectors(name, found.words)
        each = [read.find(word) for word in found.words]
        known = np.array([one is not None for one in each])
        held = np.array([np.zeros(read.width) if one is None else one for one in each])
        short = Path(name).name
        others[name if short in others else short] = (held.astype(np.float64), known)
    return others


def _known(
    found: WordQuestions, own: NDArray[np.bool_], others: Mapping[str, Vectors]
) -> list[float]:
    """The share of the questions' words that each source has."""
    asked = np.unique(found.items)
    sources: list[Any] = [own, *(there for _, there in others.values())]
    return [float(there[asked].mean()) for there in sources]
