"""Words with distractors as a model reads them: their pieces, and its guess at the hidden word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.data.words.alignment import align
from bertology.data.words.dependencies import wrong_span
from bertology.data.words.piece_words import word_spans

if TYPE_CHECKING:
    from bertology.annotated.words import WordBatch
    from bertology.data.corpus import Corpus
    from bertology.data.words.dependencies import Dependency
    from bertology.model.encoder import Encoder
    from bertology.model.reducers.candidate_attention import Candidates

Span = tuple[int, int]


def candidates_of(read: WordBatch, row: int, known: Dependency) -> Candidates | None:
    """The pieces of the word and of all nouns, the right one first; None if one has no piece."""
    from bertology.model.reducers.candidate_attention import Candidates

    pieces = read.examples[row].alignment.pieces_of
    word, choices = pieces(known.word), [pieces(p) for p in (known.target, *known.distractors)]
    if not word or not all(choices):
        return None
    taken = {known.word, known.target, *known.distractors}
    count = len(read.examples[row].example.annotations["words"])
    others = [pieces(p) for p in range(count) if p not in taken]
    return Candidates(word, choices, [p for p in others if p])


def span_of(read: WordBatch, row: int, known: Dependency) -> Span:
    """The characters of the word."""
    start, end = word_spans(read.examples[row].example)[0][known.word]
    return start, end


def right_over_wrong(
    encoder: Encoder, block: Corpus, spans: Sequence[Span | None], tokens: int
) -> Floats:
    """By how much the right form is likelier than the wrong one; NaN where it can not be told."""
    found, rows, good, bad = np.full(len(block), np.nan), [], [], []
    for i, (example, span) in enumerate(zip(block, spans, strict=True)):
        contrast = str(example.get("contrast"))
        wrong = None if span is None else wrong_span(example.text, contrast, span)
        if span is not None and wrong is not None:
            rows.append(i)
            good.append((example.text, span))
            bad.append((contrast, wrong))
    if rows:
        scores = []
        for some in (good, bad):
            texts, places = zip(*some, strict=True)
            scores.append(form_scores(encoder, texts, places, tokens_per_batch=tokens))
        found[rows] = scores[0] - scores[1]
    return found


def form_scores(
    encoder: Encoder, texts: Sequence[str], spans: Sequence[Span], *, tokens_per_batch: int = 4096
) -> NDArray[np.float64]:
    """Log-probability of the word at `spans` (characters) of each text, in nats.

    The sum over its pieces; NaN where the word has no piece, since the text was cut before it.
    """
    from bertology.model.masked_lm.hidden_words import HiddenWords

    found = np.full(len(texts), np.nan)
    for batch in encoder.batches(list(texts), tokens_per_batch=tokens_per_batch):
        real, hidden = batch.real.cpu().numpy(), []
        for row, (i, encoding) in enumerate(zip(batch.indices, batch.encodings or (), strict=True)):
            pieces = align(encoding, texts[i], words=[[spans[i]]]).pieces_of(0)
            hidden.append(np.flatnonzero(real[row])[list(pieces)])
        most = max(1, *(len(places) for places in hidden))
        places = np.zeros((len(hidden), most), np.int64)
        there = np.zeros((len(hidden), most), bool)
        for row, own in enumerate(hidden):
            places[row, : len(own)], there[row, : len(own)] = own, True
        losses = HiddenWords(encoder, batch, places, there).predict().losses
        found[list(batch.indices)] = -losses * there.sum(1)  # losses are means over pieces
    return found
