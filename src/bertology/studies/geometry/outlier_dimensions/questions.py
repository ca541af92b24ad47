"""What `outlier-dimensions` asks a model, and how well it could be answered by frequency alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.plain_classes import plain_classes, word_pieces
from bertology.arrays import Floats

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder
    from bertology.model.label_guesses import LabelGuesses, OnlyStates
    from bertology.model.masked_lm.hidden_words import HiddenWords

    Asked = HiddenWords | LabelGuesses | OnlyStates


TOGETHER, SINGLE, DRAW, LONE = "together", "single", "draw", "lone draw"
SINGLES = 8  # of the chosen dimensions, the farthest, are disabled one by one


@dataclass(frozen=True)
class DimensionSet:
    """Dimensions that are disabled at once, and in which of the weights."""

    name: str
    kind: str
    dimensions: tuple[int, ...]
    scale: bool = True
    bias: bool = True

    @property
    def watched(self) -> bool:
        """Whether attention and predictions are looked at as well."""
        return self.kind in (TOGETHER, DRAW) and self.scale and self.bias


def dimension_sets(
    chosen: Sequence[int], width: int, *, draws: int, seed: int
) -> list[DimensionSet]:
    """All of `chosen`, in scale, in bias and in both; each alone; as many random ones, `draws` of
    them; and as often a single random one.

    Random sets have no dimension in common with the chosen ones or with each other. So if the
    choice meant nothing, all sets would be cut out of one shuffled row of dimensions, and the
    chosen one would be the largest as often as any other, also where a single dimension rules. With
    sets that overlap it would be so in k of `width` cases, since no draw could hold what it holds.
    There are fewer than `draws` where the dimensions do not suffice, and none where more than half
    of them are chosen.
    """
    if not chosen:
        return []
    every = tuple(chosen)
    found = [
        DimensionSet("outliers", TOGETHER, every),
        DimensionSet("outliers, scale only", TOGETHER, every, bias=False),
        DimensionSet("outliers, bias only", TOGETHER, every, scale=False),
    ]
    found += [DimensionSet(f"dimension {d}", SINGLE, (d,)) for d in every[:SINGLES]]
    rng = np.random.default_rng([seed, 1])
    others = np.setdiff1d(np.arange(width), every)
    for kind, size in ((DRAW, len(every)), (LONE, 1)):
        if kind == LONE and len(every) == 1:
            continue  # draws of one are there already
        order = rng.permutation(others)
        for i in range(min(draws, len(order) // size)):
            drawn = np.sort(order[i * size : (i + 1) * size])
            found.append(DimensionSet(f"{kind} {i}", kind, tuple(map(int, drawn))))
    return found


COUNTED = 20_000  # texts whose tokens are counted


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
