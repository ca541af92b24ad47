"""The tree of a head over the words of the shown text, and the annotated one where there is one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Example
from bertology.data.words.piece_words import PieceWords
from bertology.errors import BertologyError
from bertology.server.map_answers import mean_of
from bertology.server.reading import ModelReader, Reading
from bertology.server.sentences import Sentence
from bertology.server.structural_trees import STRUCTURAL, StructuralTrees, needed
from bertology.server.task_examples import TaskExamples
from bertology.server.views import TreeQuestion

_FEWEST = 2  # words


def answer_tree(
    reader: ModelReader,
    examples: TaskExamples,
    question: TreeQuestion,
    probe: StructuralTrees | None = None,
) -> dict[str, object]:
    """The tree that is asked for; `by`: who annotated the other, `source`: what it was read off."""
    shown, layer, head = question.view.shown, question.layer, question.head
    reader.check_head(layer or 0, head or 0)
    reading = reader.read(shown)
    corpus, example = examples.find(shown.text, shown.pair) or (None, None)
    words, pieces, gold = _words_of(reading, example)
    if question.tree == STRUCTURAL:
        found = needed(probe, reader.encoder.name).of(reader, shown, pieces, layer)
        heads, source = found.heads, found.source
    else:
        weights = mean_of(reader.maps(reading), layer, head)
        heads, source = _heads(weights, pieces, question.tree), None
    by = None if corpus is None or gold is None else corpus.name
    directed = question.tree not in ("undirected", STRUCTURAL)
    told = {"words": words, "heads": heads, "gold": gold, "directed": directed}
    return {**told, "by": by, "source": source}


def _words_of(reading: Reading, known: Example | None) -> _Found:
    """The words of the text; `known`: it as an example of a corpus. Punctuation is left out."""
    sentence = reading.sentence
    if len(sentence.texts) > 1:
        raise BertologyError("A tree is of one text.", hint="Remove the second text.")
    assert sentence.units  # raises an error if no words are known
    found = _annotated(sentence, known) or _written(sentence)
    if len(found[0]) < _FEWEST:
        raise BertologyError("A tree needs two words or more.", hint="Write a sentence.")
    return found


_Found = tuple[list[str], list[tuple[int, ...]], list[int] | None]
"""The words, the pieces of each, and the annotated head of each."""


def _annotated(sentence: Sentence, known: Example | None) -> _Found | None:
    from bertology.annotated.trees.gold import words_without_punctuation

    about = {} if known is None else known.annotations
    if known is None or sentence.encoding is None or not {"heads", "relations"} <= set(about):
        return None
    one = PieceWords.of(known, sentence.encoding)
    kept = words_without_punctuation(one)
    number = {word: i for i, word in enumerate(kept)}
    all_heads: Sequence[int] = known.get("heads")
    spans = one.alignment.word_spans
    return (
        [known.text[slice(*spans[word])] for word in kept],
        [tuple(one.alignment.pieces_of(word)) for word in kept],
        [number.get(int(all_heads[word]), -1) for word in kept],
    )


def _written(sentence: Sentence) -> _Found:
    """The words as treebanks cut them; those without a letter or digit are punctuation."""
    alignment = sentence.alignment
    assert alignment is not None
    text = sentence.texts[0]
    written = [text[slice(*span)] for span in alignment.word_spans]
    kept = [
        word
        for word, letters in enumerate(written)
        if alignment.pieces_of(word) and any(c.isalnum() for c in letters)
    ]
    return [written[w] for w in kept], [tuple(alignment.pieces_of(w)) for w in kept], None


def _heads(weights: NDArray[np.floating], pieces: Sequence[Sequence[int]], tree: str) -> list[int]:
    """Attention between words: the sum over the pieces attended to, the mean over the others."""
    from bertology.annotated.trees.extraction import all_trees

    of_words = np.zeros((len(pieces), weights.shape[-1]))
    for word, own in enumerate(pieces):
        of_words[word, list(own)] = 1.0
    between = (of_words / of_words.sum(axis=1, keepdims=True)) @ weights @ of_words.T
    size = np.array([len(pieces)])
    found = all_trees(between[None, None], size, np.zeros(1, np.int64), [tree])[tree]
    return [int(head) for head in found[0, 0]]
