"""Self-similarity: how much do the states of one word differ from text to text, layer by layer?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.data.words.token_words import TokenWords, token_words
from bertology.errors import DataError
from bertology.parameters import parameter
from bertology.results.answers import NOTHING_SURE, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate
from bertology.stats.blocks_left_out import left_out_arms
from bertology.studies.designs.layer_lines import Line, line_measures, lines_drawn
from bertology.studies.designs.tables import labelled_table
from bertology.studies.designs.text_blocks import (
    AS_SHUFFLED,
    INPUT,
    MODEL,
    SITES,
    TextBlocks,
    WordsOfBatch,
    change,
    word_batches_of,
)
from bertology.studies.designs.word_similarities import (
    explained,
    random_matrices,
    shared_error,
    similarities,
)
from bertology.studies.study import Context

if TYPE_CHECKING:
    import pandas as pd
    import torch
    import xarray as xr

    from bertology.annotated.recurring_words import Occurrences, RecurringWords
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.reducers.word_sums import RecurringPlaces

__all__ = ["SelfSimilarity", "SelfSimilarityResult", "recurring_places", "words_of_texts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_SHOWN = 20  # words at each end of the table
_FEWEST = 20  # words
_WINDOW = 1024  # texts


class SelfSimilarityResult(Result):
    """How alike the occurrences of a word are after each layer, beyond any two words.

    Table `layers` (-1 is what enters the first one), each with bounds for all layers together: mean
    cosine of two occurrences of a word (`self`), of words of different texts (`random`), of a word
    with the mean of its sentence (`sentence`), and the share of the first principal component of a
    word's occurrences (`explained`) and of random words (`explained_random`); `self_adjusted`,
    `sentence_adjusted` and `explained_adjusted` are what is more than in random words; `shuffled`
    is `self_adjusted` of copies with shuffled weights, their mean. Table `words`: those whose
    self-similarity falls most and least from the first layer to the last (`fall`), and in how many
    texts they are.
    """

    @property
    def answer(self) -> str:
        """By how much self-similarity falls, and beside shuffled weights."""
        found = self.evidence()
        fall, beyond = found["self_similarity_fall"], found["fall_beyond_shuffled"]
        if beyond.excludes(0):
            surely = "Surely" if fall.excludes(0) else NOTHING_SURE
            rest = f"with shuffled weights by {fall.value - beyond.value:.2f}"
        else:
            surely, rest = NOTHING_SURE, "not surely other than with shuffled weights"
        return (
            f"{surely}: from the first layer to the last, adjusted self-similarity falls by "
            f"{plain(fall, '.2f')}, over {self.facts['words']:,} words; {rest}."
        )

    def measures(self) -> Sequence[Measure]:
        """Three similarities by layer, adjusted, and what is taken off."""
        table = self.tables["layers"]
        return line_measures(table[table["layer"] >= 0], _LINES, of="similarity", unit="cosine")

    def over_training(self) -> Sequence[Tracked]:
        """The fall over layers."""
        return [
            Tracked(
                "self_similarity_fall",
                "fall of self-similarity over layers",
                layers="similarity-self-adjusted",
                unit="cosine",
                gain=True,
            )
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Lines over layers: what is adjusted, and what it was adjusted for."""
        by_name = {measure.name: measure for measure in self.measures()}
        adjusted = ("self-adjusted", "shuffled", "sentence-adjusted", "explained-adjusted")
        raw = ("self", "random", "sentence", "explained", "explained-random")
        return [
            lines_drawn(
                [by_name[f"similarity-{name}"] for name in adjusted],
                _LINES,
                self.about,
                title="How much words depend on their context",
                reading="Each less what random words give. Where the line of one word is low, its "
                "states differ from text to text. Bands hold for all layers together.",
            ),
            lines_drawn(
                [by_name[f"similarity-{name}"] for name in raw],
                _LINES,
                self.about,
                name="raw",
                title="Similarities before random words are taken off",
                reading="Where random words are as alike as occurrences of one word, similarity is "
                "not of the word.",
            ),
        ]


@dataclass(frozen=True)
class SelfSimilarity(TextBlocks):
    """How much do the states of one word differ from text to text, layer by layer?

    Method: words (as the tokenizer cuts texts, the mean of a word's pieces) that occur in at least
    `contexts` texts, up to `words` of them drawn at random; one occurrence from each text. For each
    layer: self-similarity, the mean cosine of all pairs of occurrences of a word; intra-sentence
    similarity, the mean cosine of the words of a sentence with their mean (it ends at . ! or ?);
    maximum explainable variance, the share of the first principal component of a word's
    occurrences, uncentred as in the paper, of exactly `contexts` occurrences of each word, since it
    falls with their number. Each is also adjusted: less the mean cosine of occurrences of different
    words in different texts, or less the share in matrices of as many random words. All pairs are
    in sums of unit vectors, so that one pass is enough and what is held does not grow with texts.
    The fall is that of a straight line from the first layer to the last; what enters the first one
    is left out, since it knows no context in any model. A model that learnt nothing also mixes
    words with their context, more with each layer: the same is measured on copies with shuffled
    weights, and where the model is not surely other than these, the claim is not judged.
    Intervals are over words (Student's t) and over texts (one of ten blocks of texts left out at a
    time), both added as squares.

    Source: Ethayarajh (2019). Limits: words that one tokenizer writes in two ways (with a capital)
    are two words. Parts of speech and senses are not told apart: a word with several senses is less
    alike for that reason, too.
    """

    result_type: ClassVar[type[Result]] = SelfSimilarityResult

    contexts: int = parameter(5, "A word must be in so many texts.", minimum=3, maximum=100)
    words: int = parameter(
        1000, "Look at so many words, drawn at random; all if fewer.", minimum=20, maximum=20000
    )

    def one_pass(
        self, encoder: Encoder, corpus: Corpus, context: Context, *, whole: bool
    ) -> xr.Dataset:
        """Sums by word and block, then similarities by layer."""
        import torch
        import xarray as xr

        from bertology.annotated.recurring_words import occurrences
        from bertology.model.reducers.word_sums import RecurringSums

        texts, blocks, chosen = corpus.texts, self.blocks(corpus), self.chosen(encoder, corpus)
        sums = RecurringSums(
            encoder.shape.layers,
            len(chosen.names),
            encoder.shape.hidden,
            encoder.device,
            slots=chosen.stored.size if whole else 0,
        )
        units, within, counts, sentences = [], [], [], []
        for block in blocks:
            counted, number = np.zeros(len(chosen.names), np.int64), 0
            for read in word_batches_of(encoder, texts, block, tokens=context.batch_tokens):
                at = occurrences(read.words, read.texts, chosen, seed=self.seed)
                counted += np.bincount(at.chosen, minlength=len(counted))
                places = recurring_places(read, at, encoder.device)
                number += int((places.sizes > 1).sum())
                sums.start(read.pooled(encoder), places)
                encoder.run(read.batch, reduce=dict.fromkeys(SITES, sums))
                context.advance(len(read.batch))
            of_words, of_sentences = sums.taken()
            units.append(of_words)
            within.append(of_sentences.double().numpy())
            counts.append(counted)
            sentences.append(number)
        by_block = np.array(counts)
        # A word whose texts are nearly all in one block says nothing when that is left out.
        kept = (by_block.sum(axis=0) - by_block >= 2).all(axis=0)
        found = [
            similarities(
                torch.stack([one[layer] for one in units]).double().numpy()[:, kept],
                by_block[:, kept],
            )
            for layer in range(encoder.shape.layers + 1)
        ]
        data = xr.Dataset(
            {
                "self": (("left", "layer"), np.stack([one.mean for one in found], axis=1)),
                "random": (("left", "layer"), np.stack([one.random for one in found], axis=1)),
            },
            coords={"layer": [INPUT, *range(encoder.shape.layers)]},
        )
        if not whole:
            return data
        left = np.array(sentences).sum() - np.array([0, *sentences])
        inside = (sum(within) - np.concatenate([np.zeros_like(within[:1]), within])) / left[:, None]
        matrices = random_matrices(chosen.stored, self.seed)
        rows = sums.rows.double().cpu().numpy()  # (L + 1, words × contexts, width)
        width = rows.shape[-1]
        own = explained(rows.reshape(len(rows), *chosen.stored.shape, width))
        data["sentence"] = (("left", "layer"), inside)
        data["explained"] = (("every", "layer"), own.T)
        data["explained_random"] = (("matrix", "layer"), explained(rows[:, matrices]).T)
        data["texts"] = (("every", "context"), chosen.stored)
        data["random_texts"] = (("matrix", "context"), chosen.stored.ravel()[matrices])
        data["by_word"] = (("word", "layer"), np.stack([one.by_word[0] for one in found], axis=1))
        data["in_texts"] = ("word", chosen.texts[kept])
        data = data.assign_coords(word=np.array(chosen.names)[kept])
        data.attrs = {
            "texts": len(texts),
            "known": chosen.known,
            "tokens": chosen.tokens,
            "occurring": chosen.occurring,
            "occurrences": int(by_block[:, kept].sum()),
            "sentences": int(sum(sentences)),
        }
        return data

    def chosen(self, encoder: Encoder, corpus: Corpus) -> RecurringWords:
        """The words, found by reading all texts once without the model."""
        from bertology.annotated.recurring_words import recurring_words

        seen = words_of_texts(encoder, corpus.texts)
        found = recurring_words(
            encoder, seen, contexts=self.contexts, most=self.words, seed=self.seed
        )
        if len(found.names) < max(_FEWEST, self.contexts):
            raise DataError(
                f"{len(found.names)} words occur in {self.contexts} texts or more; "
                f"{max(_FEWEST, self.contexts)} are needed.",
                hint="Give more text with --limit, or ask for fewer --contexts.",
            )
        return found

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Similarities by layer, raw and adjusted; the fall over layers, beyond copies."""
        model = measured[MODEL]
        adjusted = model["self"].to_numpy() - model["random"].to_numpy()  # (left, layer)
        copies = [
            (one["self"].to_numpy() - one["random"].to_numpy())[0]
            for part, one in measured.items()
            if part != MODEL
        ]
        by_word = model["by_word"].to_numpy()
        texts, words = int(model.attrs["texts"]), len(by_word)
        falls = -change(by_word[:, 1:])
        fall = self.over_texts(-change(adjusted[:, 1:]), texts, others=_of_words(falls, self.level))
        last = self.over_texts(adjusted[:, -1], texts, others=_of_words(by_word[:, -1], self.level))
        inside = model["sentence"].to_numpy() - model["random"].to_numpy()
        beyond = self.beyond_copies(fall, [float(-change(copy[1:])) for copy in copies])
        evidence: dict[str, Estimate | None] = {
            "context_growth": fall if beyond.excludes(0) else None,
            "self_similarity_fall": fall,
            "fall_beyond_shuffled": beyond,
            "self_similarity_last": last,
            "sentence_similarity_change": self.over_texts(change(inside[:, 1:]), texts),
        }
        return self.result(
            provenance,
            {
                "layers": self._layers(model, np.mean(copies, axis=0)),
                "words": _words(model, falls),
            },
            evidence=evidence,
            reasons={"": AS_SHUFFLED},
            facts={"examples": texts, "words": words, **_counts(model)},
        )

    def _layers(self, model: xr.Dataset, shuffled: Floats) -> pd.DataFrame:
        layers = model["layer"].to_numpy()
        families, own = (
            len(layers),
            {n: model[n].to_numpy() for n in ("self", "random", "sentence")},
        )
        spread = _of_words(model["by_word"].to_numpy(), self.level, families)
        columns: dict[str, Any] = {}
        for name, values, others in (
            ("self", own["self"], spread),
            ("random", own["random"], 0.0),
            ("self_adjusted", own["self"] - own["random"], spread),
            ("sentence", own["sentence"], 0.0),
            ("sentence_adjusted", own["sentence"] - own["random"], 0.0),
        ):
            arm = left_out_arms(values[1:], level=self.level, others=others, families=families)
            columns |= _bounded(name, values[0], arm)
        columns["shuffled"] = shuffled
        quantile = 1 - (1 - self.level) / 2 / families
        parts, rows = [], []
        for name, of in (("explained", "texts"), ("explained_random", "random_texts")):
            values = model[name].to_numpy()
            parts.append((values - values.mean(axis=0)) / len(values))
            rows.append(model[of].to_numpy())
            arm = stdtrit(len(values) - 1, quantile) * shared_error(parts[-1], rows[-1])
            columns |= _bounded(name, values.mean(axis=0), arm)
        both = shared_error(np.concatenate([parts[0], -parts[1]]), np.concatenate(rows))
        gap = columns["explained"] - columns["explained_random"]
        arm = stdtrit(len(parts[1]) - 1, quantile) * both
        columns |= _bounded("explained_adjusted", gap, arm)
        return labelled_table({"layer": layers}, columns)


def _bounded(name: str, value: Floats, arm: Floats) -> dict[str, Floats]:
    return {name: value, f"{name}_low": value - arm, f"{name}_high": value + arm}


def _of_words(values: Floats, level: float, families: int = 1) -> Any:
    """The arm of Student's interval over words (words, …)."""
    n = len(values)
    quantile = stdtrit(n - 1, 1 - (1 - level) / 2 / families)
    return quantile * values.std(axis=0, ddof=1) / np.sqrt(n)


def _counts(model: xr.Dataset) -> dict[str, int]:
    names = ("known", "tokens", "occurring", "occurrences", "sentences")
    return {name: int(model.attrs[name]) for name in names}


def _words(model: xr.Dataset, falls: Floats) -> pd.DataFrame:
    """Those at both ends, the largest fall first."""
    import pandas as pd

    order = np.argsort(-falls, kind="stable")
    ends = order if len(order) <= 2 * _SHOWN else np.concatenate([order[:_SHOWN], order[-_SHOWN:]])
    by_word = model["by_word"].to_numpy()[ends]
    return pd.DataFrame(
        {
            "word": model["word"].to_numpy()[ends].astype(str),
            "texts": model["in_texts"].to_numpy()[ends],
            "fall": falls[ends],
            "first": by_word[:, 1],
            "last": by_word[:, -1],
        }
    )


def words_of_texts(encoder: Encoder, texts: Any) -> Iterator[tuple[TokenWords, Ints]]:
    """The words of all texts, a window at a time, and the number of each text."""
    for start in range(0, len(texts), _WINDOW):
        some = texts[start : start + _WINDOW]
        cut = encoder.tokenize(list(some)).encodings or ()
        yield token_words(cut), np.arange(start, start + len(some))


def recurring_places(read: WordsOfBatch, at: Occurrences, device: torch.device) -> RecurringPlaces:
    """What the sums must know of a batch, on the device."""
    import torch

    from bertology.model.reducers.word_sums import RecurringPlaces

    stored, sentences = at.slots >= 0, read.words.sentences
    sizes = np.bincount(sentences)
    arrays = (at.places, at.chosen, sentences, sizes, at.places[stored], at.slots[stored])
    return RecurringPlaces(*(torch.as_tensor(one, device=device) for one in arrays))


_LINES = {
    "self_adjusted": Line(
        "Self-similarity beyond random words",
        "one word, adjusted",
        "High: a word has much the same state in every text.",
    ),
    "shuffled": Line(
        "Self-similarity beyond random words, with shuffled weights",
        "one word, shuffled weights",
        "What the same weights give without their order.",
    ),
    "sentence_adjusted": Line(
        "Similarity of a word to its sentence, beyond random words",
        "word and sentence, adjusted",
        "High: the words of a sentence have states that are alike.",
    ),
    "explained_adjusted": Line(
        "Share of the first component of a word's states, beyond random words",
        "first component, adjusted",
        "High: one vector could stand for a word in all texts.",
    ),
    "self": Line(
        "Self-similarity", "one word", "High: a word has much the same state in every text."
    ),
    "random": Line(
        "Similarity of random words",
        "random words",
        "High: any two words are alike, so that similarity says little.",
    ),
    "sentence": Line(
        "Similarity of a word to its sentence",
        "word and sentence",
        "High: the words of a sentence have states that are alike.",
    ),
    "explained": Line(
        "Share of the first component of a word's states",
        "first component",
        "High: one vector could stand for a word in all texts.",
    ),
    "explained_random": Line(
        "Share of the first component of random words' states",
        "first component, random words",
        "High: one vector could stand for any words.",
    ),
}
