"""Self-similarity: how much do the states of one word differ from text to text, layer by layer?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import stdtrit

from bertology.arrays import Floats, Ints
from bertology.data.words.piece_words import run_starts
from bertology.errors import DataError
from bertology.parameters import parameter
from bertology.results.answers import NOTHING_SURE, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.blocks_left_out import left_out_arms
from bertology.stats.layer_orders import in_this_order, mirrored
from bertology.studies.designs.layer_lines import Line, line_measures, lines_drawn
from bertology.studies.designs.shuffled_copies import MODEL
from bertology.studies.designs.tables import labelled_table
from bertology.studies.geometry.shared.text_blocks import (
    BLOCKS,
    CHANCE,
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


@dataclass(frozen=True)
class Similarities:
    """Of one layer; the first of 1 + blocks is of all texts, then each block is left out."""

    by_word: Floats
    """(1 + blocks, words): the mean cosine of all pairs of occurrences of a word."""
    random: Floats
    """(1 + blocks,): the mean cosine of occurrences of different words in different blocks."""
    on_random: Floats
    """(words,): what each word does to `random` of all texts; 0 on the mean."""

    @property
    def mean(self) -> Floats:
        """(1 + blocks,): each word counts once."""
        found: Floats = self.by_word.mean(axis=1)
        return found


def similarities(units: Floats, counts: Ints) -> Similarities:
    """From sums of unit vectors (blocks, words, width) and numbers of occurrences (blocks, words).

    |Σ u|² holds the cosine of every pair of occurrences twice, and each with itself once.
    """
    blocks = len(units)
    whole, number = units.sum(axis=0), counts.sum(axis=0)
    by_word, random = [], []
    on_random = np.zeros(units.shape[1])
    for left in (None, *range(blocks)):
        rest = whole if left is None else whole - units[left]
        n = number if left is None else number - counts[left]
        kept = [block for block in range(blocks) if block != left]
        squares = (rest**2).sum(axis=1)
        by_word.append((squares - n) / (n * (n - 1.0)))
        total, pairs = _random(units[kept] / n[:, None], counts[kept] / n)
        random.append(float(total.sum() / pairs.sum()))
        if left is None:
            # A word stands on either side of a pair, so it moves the mean twice as far.
            on_random = 2 * (total - random[0] * pairs) / pairs.mean()
    return Similarities(np.array(by_word), np.array(random), on_random)


def _random(means: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """(words,) sums of cosines with all others in other blocks, and weights; a word counts once."""
    whole, by_block = means.sum(axis=0), means.sum(axis=1)
    of_block = shares.sum(axis=1)
    same = np.einsum("bwd,bwd->w", means, by_block[:, None] - means)
    total = np.einsum("wd,wd->w", whole, whole.sum(axis=0) - whole) - same
    pairs = len(whole) - 1 - (shares * (of_block[:, None] - shares)).sum(axis=0)
    return total, pairs


def explained(rows: Floats) -> Floats:
    """The share of the first principal component of matrices (…, occurrences, width), uncentred.

    Ethayarajh's maximum explainable variance: the squares of singular values, without their mean
    taken off. Those of the small matrix of products are the same.
    """
    products = rows @ rows.swapaxes(-1, -2)
    values = np.linalg.eigvalsh(products)
    found: Floats = values[..., -1] / np.maximum(values.sum(axis=-1), 1e-300)
    return found


def random_matrices(texts: Ints, seed: int) -> Ints:
    """As many matrices of stored occurrences (words, contexts): of different words and texts.

    A row is a place among all stored occurrences. Those for which no draw gave different texts
    are left out.
    """
    words, contexts = texts.shape
    rng, found = np.random.default_rng(seed), []
    for _ in range(words):
        for _ in range(20):
            chosen = rng.choice(words, contexts, replace=False)
            slots = rng.integers(contexts, size=contexts)
            if len(np.unique(texts[chosen, slots])) == contexts:
                found.append(chosen * contexts + slots)
                break
    return np.array(found, np.int64).reshape(-1, contexts)


def shared_error(values: Floats, texts: Ints) -> Floats:
    """The standard error of sums of `values` (rows, …), mean taken off, that share texts (rows, k).

    Rows that have a text in common count as dependent: the products of all such pairs are added.
    It is never less than if all rows were independent.
    """
    _, number = np.unique(texts, return_inverse=True)
    belongs = np.zeros((len(texts), int(number.max()) + 1), np.float32)
    belongs[np.arange(len(texts))[:, None], number.reshape(texts.shape)] = 1
    together = (belongs @ belongs.T > 0).astype(np.float64)
    paired = np.einsum("i...,i...->...", values, np.tensordot(together, values, axes=1))
    found: Floats = np.sqrt(np.maximum(paired, (values**2).sum(axis=0)))
    return found


class SelfSimilarityResult(Result):
    """How alike the occurrences of a word are after each layer, beyond any two words.

    Table `layers` (its first row, -1, is what enters the first layer: layer 0 of Ethayarajh 2019),
    each with bounds for all layers together: mean cosine of two occurrences of a word (`self`), of
    words of different texts (`random`), of a word with the mean of its sentence (`sentence`), and
    the share of the first principal component of a word's occurrences (`explained`) and of random
    words (`explained_random`); `self_adjusted`, `sentence_adjusted` and `explained_adjusted` are
    what is more than in random words; `shuffled` is `self_adjusted` of copies with shuffled
    weights, their mean. Table `words`: those whose self-similarity falls most and least from the
    first layer to the last (`fall`), and in how many texts they are.
    """

    @property
    def answer(self) -> str:
        """By how much self-similarity falls, and beside shuffled weights."""
        found = self.evidence()
        fall, beyond = found["self_similarity_fall"], found["fall_beyond_shuffled"]
        if beyond.excludes(0):
            surely = "Surely" if fall.excludes(0) else NOTHING_SURE
            shuffled = fall.value - beyond.value
            rest = f"with shuffled weights it {_way(shuffled)} by {abs(shuffled):.2f}"
        else:
            surely, rest = NOTHING_SURE, "not surely other than with shuffled weights"
        return (
            f"{surely}: from the output of the first layer to that of the last, adjusted "
            f"self-similarity {_moved(fall)}, over {self.facts['words']:,} words; {rest}. Counted "
            f"from the input (layer 0 of Ethayarajh 2019) it {_moved(found['fall_from_input'])}."
        )

    def notes(self, model: str | None = None) -> list[str]:
        """Also which words tell nothing of the fall, and why."""
        found, lost = super().notes(model), int(self.facts.get("left_out", 0))
        if lost:
            found.append(
                f"{lost} of {lost + int(self.facts['words'])} words are left out of similarities: "
                f"nearly all texts that they were taken from lie in one of the {BLOCKS} blocks of "
                "texts that intervals leave out in turn, and without it they have no pair."
            )
        return found

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


def _way(fall: float) -> str:
    return "rises" if fall < 0 else "falls"


def _moved(fall: Estimate) -> str:
    """`falls by 0.10 [0.05, 0.15]`, or `rises by …` where it falls by less than nothing."""
    if fall.value >= 0:
        return f"falls by {plain(fall, '.2f')}"
    return f"rises by {plain(mirrored(fall), '.2f')}"


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
    weights, and only a fall that is surely larger than that of one more copy bears out the claim.
    A text that is there twice is read once. A word of which fewer than two texts are left when one
    block of texts is left out has no similarity there: it is left out, and a note counts such
    words. Intervals are over words (Student's t; a word
    counts in what random words give, too) and over texts (one of ten blocks of texts left out at a
    time), both added as squares.

    Source: Ethayarajh (2019). Limits: the mean of a sentence has each of its words in it, so words
    of short sentences are more alike to theirs. Words that one tokenizer writes in two ways (with
    a capital) are two words. Parts of speech and senses are not told apart: a word with several
    senses is less alike for that reason, too.
    """

    version: ClassVar[int] = 4  # controls are gates; a fall asks for the order of layers
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
        beyond = self.beyond_copies(fall, [float(-change(copy[1:])) for copy in copies])
        evidence: dict[str, Estimate | None] = {
            "context_growth": in_this_order(fall, -adjusted[0, 1:], change).with_controls(
                {CHANCE: beyond}
            ),
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
            facts={
                "examples": texts,
                "words": words,
                "left_out": model.sizes["every"] - words,
                **_counts(model),
            },
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
