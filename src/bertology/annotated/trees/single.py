"""The tree of one sentence of yours, and its arcs as a figure, for those who need no study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.annotated.trees.extraction import PROJECTIVE, SPANNING, all_trees
from bertology.annotated.trees.gold import GoldTrees, words_without_punctuation
from bertology.annotated.trees.impact import word_impacts
from bertology.annotated.words import WordBatch, word_batches
from bertology.data.corpus import Example
from bertology.errors import DataError, ParameterError, UnknownNameError
from bertology.model.encoder import Encoder
from bertology.model.masked_lm.impact import IMPACTS
from bertology.model.reducers.word_maps import WordMaps
from bertology.report.figures import TreeArcs, tree_arcs

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from torch import Tensor


@dataclass(frozen=True)
class SentenceTree:
    """The words of a sentence, and the head of each: its number among them, -1 for none."""

    words: tuple[str, ...]
    heads: tuple[int, ...]
    source: str
    """What it was read off: `head 3.1`."""
    model: str
    directed: bool = True
    annotated: tuple[int, ...] | None = None
    """The heads of the annotated tree, where there is one."""

    def plot(self) -> Figure:
        """The arcs below the words; those of the annotated tree above."""
        known = None if self.annotated is None else TreeArcs("annotated", self.annotated)
        return tree_arcs(
            self.words,
            above=known,
            below=TreeArcs(self.source, self.heads, directed=self.directed),
            title=f"The tree of {self.source} of {self.model}",
        )


def sentence_tree(
    encoder: Encoder,
    sentence: str | Example,
    *,
    by: tuple[int, int] | int | str = "all",
    tree: str = "undirected",
    root: int | None = None,
) -> SentenceTree:
    """The tree that a model has of a sentence, or of an example of a corpus.

    `by`: a head as (layer, head), a layer (the mean of its heads), "all" (that of all heads), or
    the impact of words on each other, as "distance" or "probability" (with head="mlm"). `tree`: as
    in the study attention-trees, or "projective". `root`: the number of the root among the words,
    for trees whose names end in "-rooted"; of an example, the annotated one. Words of a text are
    what white space separates; punctuation is left out of annotated examples.
    """
    names = (*SPANNING, *PROJECTIVE)
    if tree not in names:
        raise UnknownNameError("tree", tree, names)
    example = sentence if isinstance(sentence, Example) else Example("0", sentence)
    (read,) = word_batches(encoder, [example])
    words, annotated, known = _words(read)
    root = known if root is None else root
    if tree.endswith("-rooted") and (root is None or not 0 <= root < len(words)):
        must = f"be the number of a word, from 0 to {len(words) - 1}, for {tree!r}"
        raise ParameterError("root", "sentence_tree", must, root)
    maps, source = _maps(encoder, read, words, by)
    sizes, roots = np.array([len(words)]), np.array([root or 0])
    heads = all_trees(maps[None, None], sizes, roots, [tree])[tree][0, 0]
    spans = read.examples[0].alignment.word_spans
    return SentenceTree(
        words=tuple(example.text[slice(*spans[word])] for word in words),
        heads=tuple(int(head) for head in heads),
        source=source,
        model=encoder.name,
        directed=tree != "undirected",
        annotated=annotated,
    )


def _words(read: WordBatch) -> tuple[Sequence[int], tuple[int, ...] | None, int | None]:
    """The numbers of the words that are looked at, their annotated heads, and the root."""
    one = read.examples[0]
    if {"heads", "relations"} <= set(one.example.annotations):
        _, gold = GoldTrees.of(read)
        if gold is not None:
            return gold.words[0], tuple(int(h) for h in gold.heads[0]), int(gold.roots[0])
        words = words_without_punctuation(one)
    else:
        words = [w for w in range(len(one.alignment)) if one.alignment.pieces_of(w)]
    if len(words) < 2:
        raise DataError("A tree needs two words or more.", hint="Give a sentence.")
    return words, None, None


def _maps(
    encoder: Encoder, read: WordBatch, words: Sequence[int], by: tuple[int, int] | int | str
) -> tuple[NDArray[np.float64], str]:
    """Scores between the words (n, n), rows attending to columns, and what they are of."""
    one, shape = read.examples[0], encoder.shape
    if by in IMPACTS:
        found = word_impacts(encoder, [(one, words)], measure=str(by))[0, -1]
        return found.astype(np.float64), f"impact ({by})"
    layers: dict[int, Tensor] = {}
    taken = WordMaps(read.batch, [[one.alignment.pieces_of(w) for w in words]], layers.__setitem__)
    encoder.run(read.batch, reduce={"layer.*.head.*.pattern": taken})
    if by == "all":
        return taken.mean[0].double().cpu().numpy(), "the mean of all heads"
    place = by if isinstance(by, tuple) else (by, 0)
    inside = all(isinstance(at, int) for at in place) and len(place) == 2
    if not inside or not (0 <= int(place[0]) < shape.layers and 0 <= int(place[1]) < shape.heads):
        must = (
            f"be a head as (layer, head) of {shape.layers} × {shape.heads}, a layer, 'all', "
            f"{' or '.join(map(repr, IMPACTS))}"
        )
        raise ParameterError("by", "sentence_tree", must, by)
    layer = layers[int(place[0])][0]  # (H, n, n)
    if isinstance(by, tuple):
        return layer[by[1]].double().cpu().numpy(), f"head {by[0]}.{by[1]}"
    return layer.mean(0).double().cpu().numpy(), f"the mean of layer {by}"
