"""The tree of a head over the words of the shown text, and the annotated one where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Example
from bertology.data.words.piece_words import PieceWords
from bertology.errors import BertologyError
from bertology.server.map_answers import mean_of
from bertology.server.reading import ModelReader, Reading
from bertology.server.sentences import Sentence, encode
from bertology.server.task_examples import TaskExamples
from bertology.server.views import TreeQuestion

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.results.result import Result
    from bertology.server.reading import ModelReader
    from bertology.server.shown import Shown

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


# Trees by the matrices of a structural probe that was trained before and lies in a store.
#
# The page does not train: a probe takes a minute, and a text that is typed should take none.

STRUCTURAL = "structural"
_STUDY = "structural-probe"


@dataclass(frozen=True)
class StructuralTree:
    """The head of each word, undirected, and what it was read off, in words."""

    heads: list[int]
    source: str


class StructuralTrees:
    """The distance probes of all layers, out of a result of `structural-probe`."""

    def __init__(self, result: Result) -> None:
        table = result.tables["layers"]
        shares = zip(table["layer"].to_numpy(), table["uuas"].to_numpy(), strict=True)
        self._found = {int(layer): float(share) for layer, share in shares}
        layers = [layer for layer in self._found if layer >= 0]
        self.best = max(layers, key=lambda layer: self._found[layer])
        matrices = result.arrays["projection"].sel(kind="distance")
        self._matrices = {
            int(layer): matrices.sel(layer=layer).to_numpy().astype(np.float64)
            for layer in matrices["layer"].to_numpy()
        }
        self._pooling = str(result.provenance.parameters["pooling"])
        self.corpus = result.provenance.corpus_name

    @property
    def about(self) -> dict[str, object]:
        """What the page is told."""
        return {"corpus": self.corpus, "best": self.best}

    def of(
        self,
        reader: ModelReader,
        shown: Shown,
        pieces: Sequence[Sequence[int]],
        layer: int | None,
    ) -> StructuralTree:
        """The tree over words that are spelled by `pieces`."""
        from bertology.annotated.trees.spanning import undirected_trees

        at = self.best if layer is None else layer
        states = reader.worker.do(lambda: _states(reader, shown, at))
        points = _pooled(states, pieces, self._pooling) @ self._matrices[at]
        apart = ((points[:, None] - points) ** 2).sum(axis=-1)
        heads = undirected_trees(-apart[None])[0]
        source = (
            f"a structural probe of layer {at}, trained on {self.corpus}, where it finds "
            f"{100 * self._found[at]:.0f} % of the arcs of other sentences"
            + ("" if at == self.best else f"; layer {self.best} finds most")
        )
        return StructuralTree([int(head) for head in heads], source)


def needed(probe: StructuralTrees | None, model: str) -> StructuralTrees:
    """The probe, or an error that says how to get one."""
    if probe is None:
        raise BertologyError(
            "There is no structural probe of this model in the store.",
            hint=f"Train one: bertology run {_STUDY} --model {model} --corpus grammar, or with a "
            "treebank such as ud-ewt. Then start the explorer again, with the same --store.",
        )
    return probe


def find_probe(store: str, encoder: Encoder) -> StructuralTrees | None:
    """The newest structural probe of this very model in a store, if there is one."""
    from bertology.model.loading.fingerprint import states_fingerprint
    from bertology.results.store import Store

    place, own = Store(store), ""
    for about in place.list(_STUDY):
        if about.model.get("shape", {}).get("hidden") != encoder.shape.hidden:
            continue
        result = place.load(about)
        own = own or states_fingerprint(encoder.base, encoder.tokenizer)
        if result.facts.get("weights") == own:
            return StructuralTrees(result)
    return None


def _states(reader: ModelReader, shown: Shown, layer: int) -> NDArray[np.float64]:
    """(pieces, dimensions) after one layer, with what is off."""
    _, batch = encode(reader.encoder, shown)
    site = f"layer.{layer}.residual"
    trace = reader.encoder.run(batch, record=[site], do=reader.interventions(shown.changes))
    found: NDArray[np.float64] = trace[site][0].double().cpu().numpy()
    return found


def _pooled(
    states: NDArray[np.float64], pieces: Sequence[Sequence[int]], pooling: str
) -> NDArray[np.float64]:
    """(words, dimensions): of the first piece of each word, the last, or the mean."""
    some = {"first": slice(0, 1), "last": slice(-1, None)}.get(pooling, slice(None))
    return np.stack([states[list(own)[some]].mean(axis=0) for own in pieces])
