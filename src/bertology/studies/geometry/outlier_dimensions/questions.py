"""What `outlier-dimensions` asks a model, and how well it could be answered by frequency alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.plain_classes import plain_classes, word_pieces

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder
    from bertology.model.label_guesses import LabelGuesses, OnlyStates
    from bertology.model.masked_lm.hidden_words import HiddenWords

    Asked = HiddenWords | LabelGuesses | OnlyStates

COUNTED = 20_000  # texts whose tokens are counted

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Uninformed:
    """What it costs to guess answers by how frequent they are, and by nothing else.

    Nobody knows the true frequencies, so there are two costs. At the least: the frequencies are
    those of all answers that could be asked for in the judged texts themselves. No model that only
    knows frequencies does better on average, whatever text it has learned them from. At the most:
    they are counted on other texts, and answers that are not there share what Witten and Bell leave
    for them. With more texts the two come together.
    """

    own: Floats  # (answers,) weight of each in the judged texts
    others: Floats  # (answers,) weight of each in other texts
    possible: NDArray[np.bool_]  # (answers,) which can be asked for at all

    def losses(self, wanted: NDArray[np.int64]) -> Floats:
        """(…, 2) in nats, at the least and at the most."""
        own = self.own / max(self.own.sum(), 1e-300)
        kinds = max(1.0, float((self.others > 0).sum()))
        spare = kinds / max(1, int(self.possible.sum()))  # evenly to all that can be asked for
        others = (self.others + spare) / (self.others.sum() + kinds)
        odds = np.stack([own, others], axis=-1)[wanted]
        return np.asarray(-np.log(np.maximum(odds, 1e-300)))


def uninformed(encoder: Encoder, judged: Corpus, others: Corpus) -> Uninformed:
    """Of the words that can be hidden, or of the labels of a classifier's task."""
    if not predicts_words(encoder) and classifies(encoder, judged):
        size = max(1, len(judged.task.labels)) if judged.task is not None else 1
        own, other = (
            np.bincount([int(e.label or 0) for e in some], minlength=size).astype(np.float64)
            for some in (judged, others)
        )
        return Uninformed(own, other, np.ones(size, bool))
    size = _vocabulary(encoder)
    known = min(size, len(encoder.tokenizer))
    possible = np.zeros(size, bool)
    possible[:known] = word_pieces(encoder.tokenizer, np.arange(known))
    own, other = (
        _evenly(_rows(encoder, some), possible, skip=int(encoder.family.causal))
        for some in (judged, others[:COUNTED])
    )
    return Uninformed(own, other, possible)


def _evenly(rows: Iterable[Sequence[int]], possible: NDArray[np.bool_], *, skip: int) -> Floats:
    """How often each possible piece occurs, where every text counts as much as any other.

    So it is in losses: they are means over the words of a text first, then over texts.
    """
    found, words, texts = np.zeros(len(possible)), 0, 0
    for row in rows:
        ids = np.asarray(row[skip:], dtype=np.int64)
        kept = ids[possible[ids]]
        if len(kept):
            np.add.at(found, kept, 1 / len(kept))
            words, texts = words + len(kept), texts + 1
    return found * (words / max(texts, 1))


def piece_counts(encoder: Encoder, corpus: Corpus) -> Floats:
    """How often each piece of the vocabulary occurs in the texts; special ones never."""
    ids = np.fromiter((i for row in _rows(encoder, corpus[:COUNTED]) for i in row), np.int64)
    counts = np.bincount(ids, minlength=_vocabulary(encoder)).astype(np.float64)
    counts[list(encoder.tokenizer.all_special_ids)] = 0
    return counts


def asked_of(
    encoder: Encoder, batch: Batch, block: Corpus, *, start: int, hidden: float, seed: int
) -> Asked:
    """What the model is to predict in a batch: hidden words, labels, or nothing.

    `block` are the texts that the batch was made of, and `start` is the number of the first.
    """
    from bertology.model.label_guesses import LabelGuesses, OnlyStates
    from bertology.model.masked_lm.hidden_words import HiddenWords, draw_hidden
    from bertology.studies.designs.sweeps import class_order

    if predicts_words(encoder):
        words = plain_classes(encoder, batch)[:, -1]
        if encoder.family.causal:
            words = words.copy()
            words[:, 0] = False  # nothing comes before it
        numbers = [start + i for i in batch.indices]
        return HiddenWords(encoder, batch, *draw_hidden(words, numbers, share=hidden, seed=seed))
    if classifies(encoder, block):
        labels = np.array([int(block.examples[i].label or 0) for i in batch.indices])
        return LabelGuesses(encoder, batch, labels, class_order(encoder, block.task))
    return OnlyStates(encoder, batch)


def predicts_words(encoder: Encoder) -> bool:
    """Whether it can be asked for words: hidden ones, or the next one."""
    if encoder.family.causal:
        return encoder.head == "causal"
    return "masked-lm" in encoder.capabilities and encoder.tokenizer.mask_token_id is not None


def classifies(encoder: Encoder, corpus: Corpus) -> bool:
    """Whether it can be asked for the labels of these texts."""
    task = corpus.task
    return encoder.head == "classification" and task is not None and task.kind != "regression"


def _vocabulary(encoder: Encoder) -> int:
    return max(len(encoder.tokenizer), int(encoder.config.vocab_size))


def _rows(encoder: Encoder, corpus: Corpus) -> Any:
    return encoder.tokenize(corpus.texts).rows["input_ids"] if len(corpus) else []
