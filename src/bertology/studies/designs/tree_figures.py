"""What results of trees share: a sentence with its arcs, and the gains of each relation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from bertology.errors import UnknownNameError
from bertology.report.figures import Dots, TreeArcs, interval_dots, tree_arcs
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.result import Result
from bertology.studies.designs.trees import KEPT

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TREE_WORDS = {
    "to-head": "directed, words point to their head",
    "to-head-rooted": "directed, words point to their head, root given",
    "to-dependent": "directed, words point to their dependents",
    "to-dependent-rooted": "directed, words point to their dependents, root given",
    "undirected": "undirected",
    "projective": "projective, words are changed by their head",
    "projective-rooted": "projective, words are changed by their head, root given",
}
"""The trees in words, for figures and captions."""
_ARCS = (
    "A sentence with its annotated tree above and the tree of {} below ({}). Arcs run from a head "
    "to what hangs from it. Blue arcs are annotated, too; vermilion broken ones are not. "
    "Punctuation is left out."
)
_RELATIONS = (
    "One row for each relation: the share of its arcs that {} finds, and what it gains over the "
    "best baseline, in per cent and points, with intervals for all relations together. Both were "
    "picked on one half of the sentences and scored on the other. Trees are {}."
)


def tree_measure(rows: pd.DataFrame, tree: str, column: str, *, title: str, high: str) -> Measure:
    """The `score` of a kind of tree by head or layer, or its `gain` over the best baseline.

    `high` says what a high score means; what a high gain means is the same for all.
    """
    gain = column == "gain"
    beyond = ", beyond the best baseline" if gain else ""
    return Measure.of_column(
        rows,
        column,
        name=f"{tree}-{column}",
        title=f"{title}{beyond} ({TREE_WORDS[tree]})",
        unit="points (% of arcs)" if gain else "% of arcs",
        bounds=(f"{column}_low", f"{column}_high"),
        sure="sure" if gain else None,
        scale=100.0,
        middle=0.0 if gain else None,
        reading="Above 0: the tree is better than chains, offsets and random trees."
        if gain
        else high,
    )


class TreesResult(Result):
    """Trees of a model and annotated ones; `shown_tree` says which is shown, and of what."""

    def shown_tree(self) -> tuple[str, int]:
        """The tree that figures show, and its candidate's number."""
        raise NotImplementedError

    def candidate_name(self, number: int) -> str:
        """Of what a tree was read off, such as `head 3.5`."""
        raise NotImplementedError

    def arcs(
        self, sentence: int = 0, *, tree: str | None = None, candidate: int | None = None
    ) -> Figure:
        """A kept sentence with its annotated tree above and one that was found below.

        `candidate` numbers heads layer by layer; the one that is best on all sentences if not
        given. More sentences are kept by the parameter `keep`; other sentences, also such without
        annotation, are drawn by `bertology.sentence_tree`.
        """
        kept = [str(name) for name in self.arrays.data_vars if str(name).startswith(KEPT)]
        if f"{KEPT}{sentence}" not in kept:
            raise UnknownNameError("kept sentence", str(sentence), [k.split("_")[1] for k in kept])
        of = self.arrays[f"{KEPT}{sentence}"]
        known = [str(t) for t in of["tree"].to_numpy()]
        best, number = self.shown_tree()
        tree = best if tree is None else tree
        if tree not in known:
            raise UnknownNameError("tree", tree, known)
        number = number if candidate is None else candidate
        heads = of.sel(tree=tree).isel(candidate=number).to_numpy()
        name = self.candidate_name(number)
        return tree_arcs(
            [str(word) for word in of.attrs["words"]],
            above=TreeArcs("annotated", [int(h) for h in of.attrs["gold"]]),
            below=TreeArcs(name, [int(h) for h in heads], directed=tree != "undirected"),
            title=f"The annotated tree and that of {name}\n{self.about}",
            note=f"Trees are {self.words_of(tree)}.",
        )

    @staticmethod
    def words_of(tree: str) -> str:
        """What kind of tree it is."""
        return TREE_WORDS[tree]

    def arc_drawings(self) -> Iterator[Drawing]:
        """One for each sentence that was kept."""
        tree, number = self.shown_tree()
        caption = _ARCS.format(self.candidate_name(number), self.words_of(tree))
        for name in map(str, self.arrays.data_vars):
            if name.startswith(KEPT):
                at = int(name.removeprefix(KEPT))
                yield Drawing(f"sentence-{at}", partial(self.arcs, at), caption)

    def relation_drawings(self, what: str, tree: str) -> Iterator[Drawing]:
        """What is found of each relation by one kind of tree."""
        rows = self.tables["relations"]
        rows = rows[rows["tree"] == tree].sort_values("gain", ascending=False)
        if len(rows):
            caption = _RELATIONS.format(what, self.words_of(tree))
            yield Drawing("relations", partial(self._relations, rows, what), caption)

    def _relations(self, rows: pd.DataFrame, what: str) -> Figure:
        return interval_dots(
            [
                Dots.of_columns("arcs found (%)", rows, "score"),
                Dots.of_columns("gain", rows, "gain", level=0.0),
            ],
            [str(name) for name in rows["relation"]],
            title=f"Relations that {what} finds\n{self.about}",
            note="Gain: points over the relation's best baseline. Intervals hold for all of them.",
        )
