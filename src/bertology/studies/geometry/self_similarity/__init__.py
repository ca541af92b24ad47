"""Self-similarity: how much do the states of one word differ from text to text, layer by layer?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bertology.data.words.token_words import run_starts
from bertology.errors import DataError
from bertology.parameters import parameter
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.blocks_left_out import left_out_arms
from bertology.studies.designs.shuffled_copies import MODEL
from bertology.studies.designs.tables import labelled_table
from bertology.studies.geometry.self_similarity.results import SelfSimilarityResult
from bertology.studies.geometry.self_similarity.word_similarities import (
    explained,
    random_matrices,
    shared_error,
    similarities,
)
from bertology.studies.geometry.shared.text_blocks import (
    INPUT,
    SITES,
    TextBlocks,
    WordsOfBatch,
    change,
    word_batches_of,
    words_of_texts,
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

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_SHOWN = 20  # words at each end of the table
_FEWEST = 20  # words


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
    The fall is that of the straight line that fits all layers best, from the output of the first
    layer to that of the last. Ethayarajh counts what enters the first layer as layer 0; it knows no
    context in any model, so it is in the table (-1) and left out of the fall that is judged; the
    fall from it is given, too. A model that learnt nothing also mixes
    words with their context, more with each layer: the same is measured on copies with shuffled
    weights, and where the model is not surely other than one more of these, the claim is not
    judged. A text that is there twice is read once. Intervals are over words (Student's t; a word
    counts in what random words give, too) and over texts (one of ten blocks of texts left out at a
    time), both added as squares.

    Source: Ethayarajh (2019). Limits: the mean of a sentence has each of its words in it, so words
    of short sentences are more alike to theirs. Words that one tokenizer writes in two ways (with
    a capital) are two words. Parts of speech and senses are not told apart: a word with several
    senses is less alike for that reason, too.
    """

    version: ClassVar[int] = 3
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

        texts, blocks = corpus.texts, self.blocks(corpus)
        chosen = self.chosen_once(encoder, corpus, lambda: self.chosen(encoder, corpus))
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
                number += int((np.bincount(read.words.sentences) > 1).sum())
                sums.start(read.pooled(encoder), recurring_places(read, at, encoder.device))
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
        data["on_random"] = (("word", "layer"), np.stack([one.on_random for one in found], axis=1))
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
            for one in self.of_copies(measured)
        ]
        by_word = model["by_word"].to_numpy()
        texts, words = int(model.attrs["texts"]), len(by_word)
        on_random = model["on_random"].to_numpy()
        own = by_word - on_random  # what each word does to what is adjusted
        over = partial(_of_words, level=self.level)
        falls = -change(by_word[:, 1:])
        fall, from_input = (
            self.over_texts(-change(adjusted[:, at:]), texts, others=over(change(own[:, at:])))
            for at in (1, 0)
        )
        last = self.over_texts(adjusted[:, -1], texts, others=over(own[:, -1]))
        inside = model["sentence"].to_numpy() - model["random"].to_numpy()
        beyond, why_not = self.beyond_copies(fall, [float(-change(copy[1:])) for copy in copies])
        evidence: dict[str, Estimate | None] = {
            "context_growth": None if why_not else fall,
            "self_similarity_fall": fall,
            "fall_from_input": from_input,
            "fall_beyond_shuffled": beyond,
            "self_similarity_last": last,
            "sentence_similarity_change": self.over_texts(
                change(inside[:, 1:]), texts, others=over(change(on_random[:, 1:]))
            ),
        }
        return self.result(
            provenance,
            {
                "layers": self._layers(model, np.mean(copies, axis=0)),
                "words": _words(model, falls),
            },
            evidence=evidence,
            reasons={"context_growth": why_not} if why_not else {},
            facts={"examples": texts, "words": words, **_counts(model)},
        )

    def _layers(self, model: xr.Dataset, shuffled: Floats) -> pd.DataFrame:
        layers = model["layer"].to_numpy()
        families, own = (
            len(layers),
            {n: model[n].to_numpy() for n in ("self", "random", "sentence")},
        )
        by_word, on_random = model["by_word"].to_numpy(), model["on_random"].to_numpy()
        spread, of_random, of_both = (
            _of_words(values, self.level, families)
            for values in (by_word, on_random, by_word - on_random)
        )
        columns: dict[str, Any] = {}
        for name, values, others in (
            ("self", own["self"], spread),
            ("random", own["random"], of_random),
            ("self_adjusted", own["self"] - own["random"], of_both),
            ("sentence", own["sentence"], 0.0),
            ("sentence_adjusted", own["sentence"] - own["random"], of_random),
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


def recurring_places(read: WordsOfBatch, at: Occurrences, device: torch.device) -> RecurringPlaces:
    """What the sums must know of a batch, on the device."""
    from bertology.model.reducers.word_sums import RecurringPlaces
    from bertology.model.transfer import sent_together

    runs, sentences = run_starts(at.chosen), run_starts(read.words.sentences)
    sizes = np.diff(sentences, append=len(read.words))
    words, stored = at.chosen[runs], at.slots >= 0
    slots = at.places[stored], at.slots[stored]
    return RecurringPlaces(
        *sent_together([at.places, runs, words, sentences, sizes, *slots], device)
    )
