"""Studies of sums over all words: one pass over blocks of texts, and over shuffled weights.

Intervals are over texts, by leaving out one block at a time. A model that learnt nothing has a
geometry too, and it changes with layers: attention of any weights mixes words with their context.
So the same is measured on copies of the model with the weights of each matrix in random order, and
a claim that there is much of something holds only where the model surely has more of it than they
have: where it lies above the interval that predicts one more copy (Student's, at 99 %: a model of
random weights truly has a cone, so that this gate alone keeps false verdicts rare). That is valid
with any number of copies, since a model of random weights is one more; few of them make the
interval wide. The null is shuffled weights and not a fresh start: it is by the size of weights that
attention mixes words and that biases move them, and shuffled weights have the sizes that training
gave, while those of a fresh start are small and hardly change what enters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import ndtri, stdtrit

from bertology.arrays import Floats, Ints
from bertology.data.words.piece_words import ENDS, TokenWords, token_words
from bertology.errors import CapabilityError
from bertology.parameters import parameter
from bertology.stats import Estimate
from bertology.stats.blocks_left_out import left_out_estimate
from bertology.studies.designs.shuffled_copies import MODEL, ShuffledCopies
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import xarray as xr

    from bertology.data.corpus import Corpus, Example
    from bertology.model.batch import Batch, Text
    from bertology.model.encoder import Encoder
    from bertology.model.reducers.word_sums import Pooled
    from bertology.model.shape import Shape

Chosen = TypeVar("Chosen")
BLOCKS = 10  # of texts
INPUT = -1  # as a layer: what enters the first one
SITES = ("embeddings", "layer.*.residual")
CHANCE = "shuffled weights"  # as the name of a control
_COPIES = "copies with shuffled weights"
_MOST_COPIES = 50
_GATE = 0.99  # level at which a model must lie outside of its copies
_CHOSEN: WeakKeyDictionary[Any, tuple[Any, Any]] = WeakKeyDictionary()  # the last by tokenizer
_ENDS_OF: WeakKeyDictionary[Any, list[int]] = WeakKeyDictionary()  # by tokenizer
_WINDOW = 1024  # texts whose tokens are held at a time


@dataclass(frozen=True)
class WordsOfBatch:
    """A batch, the words that the tokenizer finds in it, and the number of each of its texts."""

    batch: Batch
    words: TokenWords
    texts: Ints

    def pooled(self, encoder: Encoder) -> Pooled:
        """Where the pieces of each word are."""
        from bertology.model.reducers.word_sums import Pooled
        from bertology.model.transfer import sent_together

        width = self.batch.inputs["input_ids"].shape[-1]
        left = getattr(encoder.tokenizer, "padding_side", "right") == "left"
        rows = self.words.rows(width, left=left)
        return Pooled(*sent_together([rows, self.words.starts], encoder.device))


def word_batches_of(
    encoder: Encoder, texts: Sequence[Text], chosen: Sequence[int] | Ints, *, tokens: int
) -> Iterator[WordsOfBatch]:
    """Some of the texts in batches of similar length, a window at a time."""
    ends = sentence_ends(encoder)
    for start in range(0, len(chosen), _WINDOW):
        some = [int(i) for i in chosen[start : start + _WINDOW]]
        for batch in encoder.batches([texts[i] for i in some], tokens_per_batch=tokens):
            words = token_words(batch.encodings or (), ends)
            if len(words):
                yield WordsOfBatch(batch, words, np.array(some)[list(batch.indices)])


def words_of_texts(encoder: Encoder, texts: Sequence[Text]) -> Iterator[tuple[TokenWords, Ints]]:
    """The words of all texts, a window at a time, and the number of each text."""
    for start in range(0, len(texts), _WINDOW):
        some = texts[start : start + _WINDOW]
        cut = encoder.tokenize(list(some)).encodings or ()
        yield token_words(cut), np.arange(start, start + len(some))


def sentence_ends(encoder: Encoder) -> list[int]:
    """The pieces that end a sentence, in the ways tokenizers spell them."""
    found = _ENDS_OF.get(encoder.tokenizer)
    if found is None:  # a vocabulary is a copy of tens of thousands of pieces at every call
        known: dict[str, int] = encoder.tokenizer.get_vocab()
        spelt = [before + end for end in ENDS for before in ("", "##", "Ġ", "▁")]
        found = _ENDS_OF[encoder.tokenizer] = [known[one] for one in spelt if one in known]
    return found


def change(by_layer: Floats) -> Floats:
    """From the first layer to the last (…, L), on the line that fits all of them best."""
    layers = by_layer.shape[-1]
    place = np.arange(layers) - (layers - 1) / 2
    found: Floats = by_layer @ place / (place @ place) * (layers - 1)
    return found


@dataclass(frozen=True)
class TextBlocks(ShuffledCopies):
    """One pass for the model and one for each copy with shuffled weights; blocks of texts."""

    needs: ClassVar[Needs] = Needs(capabilities=frozenset({"residual"}), fields=frozenset({"text"}))
    finds_words: ClassVar[bool] = True
    fewest: ClassVar[int] = BLOCKS
    fills_gpu: ClassVar[bool] = True

    copies: int = parameter(
        10,
        "Copies of the model with shuffled weights, than which it must surely have more; few of "
        "them leave more unjudged.",
        minimum=3,
        maximum=_MOST_COPIES,
    )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse a single layer, and tokenizers that do not say which pieces make a word."""
        super().check(encoder, corpus)
        if encoder.shape.layers < 2:
            raise CapabilityError(
                f"{encoder.name!r} has one layer. What changes over layers needs two or more."
            )

    def shown(self, corpus: Corpus) -> Corpus:
        """As many as asked for, each text once: a word has no other context in the same text."""
        once: dict[Text, Example] = {}
        for example in corpus:
            once.setdefault(example.given, example)
        if len(once) == len(corpus):
            return super().shown(corpus)
        return super().shown(replace(corpus, examples=list(once.values())))

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """One step for each text."""
        return len(self.shown(corpus))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """One pass; of copies only what trends are judged on."""
        reader = self.reader(encoder, part)
        return self.one_pass(reader, self.shown(corpus), context, whole=part == MODEL)

    def one_pass(
        self, encoder: Encoder, corpus: Corpus, context: Context, *, whole: bool
    ) -> xr.Dataset:
        """What is measured of the texts; `whole`: all of it."""
        raise NotImplementedError

    def blocks(self, corpus: Corpus) -> list[Ints]:
        """Texts in blocks of about as many words: dealt out by length, in a random order."""
        texts = [text if isinstance(text, str) else " ".join(text) for text in corpus.texts]
        rng = np.random.default_rng(self.seed)
        order = np.argsort([-len(text) for text in texts], kind="stable")
        block = np.empty(len(texts), np.int64)
        for start in range(0, len(texts), BLOCKS):
            dealt = order[start : start + BLOCKS]
            block[dealt] = rng.permutation(BLOCKS)[: len(dealt)]
        return [np.flatnonzero(block == number) for number in range(BLOCKS)]

    def chosen_once(self, encoder: Encoder, corpus: Corpus, choose: Callable[[], Chosen]) -> Chosen:
        """Words to look at: copies read the same texts as the model, so they are chosen once."""
        known = _CHOSEN.get(encoder.tokenizer)
        if known is None or known[0] != (self, corpus.fingerprint):
            known = ((self, corpus.fingerprint), choose())
            _CHOSEN[encoder.tokenizer] = known
        found: Chosen = known[1]
        return found

    def beyond_copies(self, own: Estimate, copies: Sequence[float]) -> Estimate:
        """What the model has more than one more copy may have; the control of what it has."""
        value = own.value - float(np.mean(copies))
        arm = max(own.high - own.value, own.value - own.low)
        arm *= float(ndtri((1 + _GATE) / 2) / ndtri((1 + own.level) / 2))
        count = np.arange(len(copies), _MOST_COPIES + 1)
        reach = _reach(count, copies, arm)
        return Estimate(
            value,
            value - reach[0],
            value + reach[0],
            len(copies),
            _GATE,
            _COPIES,
            foreseen=tuple(zip(count[1:], value - reach[1:], value + reach[1:], strict=True)),
        )

    def over_texts(
        self, values: Floats, n: int, *, others: float = 0.0, sign: float = 1.0
    ) -> Estimate:
        """A statistic, whole and then without each block (1 + blocks,), with its interval."""
        found: Any = sign * values
        return left_out_estimate(float(found[0]), found[1:], n=n, level=self.level, others=others)


def _reach(count: Ints, copies: Sequence[float], own: float) -> Floats:
    """How far from the mean of so many copies one more may lie, if they scatter as these do."""
    spread = float(np.std(copies, ddof=1)) * np.sqrt(1 + 1 / count)
    found: Floats = np.hypot(own, spread * stdtrit(count - 1, (1 + _GATE) / 2))
    return found
