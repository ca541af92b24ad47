"""Attention trees: is the syntactic tree of a sentence in what heads attend to?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.annotated.trees.extraction import SPANNING
from bertology.report import drawings
from bertology.results.answers import NOTHING_SURE, head_name, listed, of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.tables import head_table, labelled_table
from bertology.studies.designs.trees import (
    TREE_WORDS,
    TreeHits,
    Trees,
    TreesResult,
    kept_sentences,
    tree_measure,
)
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from torch import Tensor

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.stats import Estimate

_OF_HEADS = {
    "title": "Arcs of the head's tree that are annotated",
    "high": "High: the head attends along the syntactic tree.",
}


class AttentionTreesResult(TreesResult):
    """How much of the annotated trees is in the trees of each head, layer, and all heads.

    Table `trees`: for each kind of tree the best head, cross-fitted, beside the best baseline;
    `heads`: the share of arcs that each head's tree has (`score`: directed arcs, UAS, where the
    tree is directed; `uuas`: whichever way they point) and the gain over the best baseline, with
    bounds for all heads and trees together; `maps`: the same for the mean of each layer's heads and
    of all; `relations`: the best head of each relation, cross-fitted, beside its best baseline;
    `baselines`. Arrays `sentence_0` …: trees of single sentences by candidate (heads layer by
    layer, then the means of layers, then that of all).
    """

    strongest: ClassVar[Mapping[str, str]] = {"heads": "gain", "relations": "gain", "maps": "gain"}

    @property
    def answer(self) -> str:
        """The best head's undirected tree beside neighbours, then the relations that gain."""
        row = self._undirected()
        score, gain = (of_row(row, (c, f"{c}_low", f"{c}_high")) for c in ("score", "gain"))
        sure = bool(self.sure_heads().any())
        opening = "Some of it" if sure else f"{NOTHING_SURE}"
        gained = self._gained()
        found = f"single relations such as {listed(gained[:3])} are found" if gained else ""
        also = f"; {found} surely better than by offsets" if found else ""
        return (
            f"{opening}: the tree of the best head, {head_name(row)}, has {percent(score)} of the "
            f"annotated arcs, {points(gain, '.0f')} against the best baseline "
            f"({row['best_baseline']}){also}."
        )

    def _undirected(self) -> pd.Series:
        trees = self.tables["trees"]
        return trees[trees["tree"] == "undirected"].iloc[0]

    def _gained(self) -> list[str]:
        """Relations that some head surely finds better than offsets do, the largest gain first."""
        rows = self.with_sure("relations")
        better = rows[rows["sure"]].sort_values("gain", ascending=False)
        return list(dict.fromkeys(map(str, better["relation"])))

    def with_sure(self, name: str) -> pd.DataFrame:
        """Heads by their tests; relations that are found beyond offsets and from their source."""
        table = self.tables[name]
        if name == "relations":
            return table.assign(sure=(table["gain_low"] > 0) & (table["selectivity_low"] > 0))
        return table.assign(sure=self.sure_heads()) if name == "heads" else table

    def sure_heads(self) -> pd.Series:
        """Rows of `heads` that are surely better than the best baseline, corrected for all."""
        heads = self.tables["heads"]
        found: pd.Series = (heads["gain_p"] < 1 - self.facts["level"]) & (heads["gain"] > 0)
        return found

    def measures(self) -> Sequence[Measure]:
        """Of each kind of tree the gain and the score by head; the scores of layers' means."""
        heads = self.with_sure("heads")
        found = []
        for tree, rows in heads.groupby("tree", sort=False):
            found += [tree_measure(rows, str(tree), c, **_OF_HEADS) for c in ("score", "gain")]
        maps = self.tables["maps"]
        for tree, rows in maps[maps["layer"] >= 0].groupby("tree", sort=False):
            found.append(
                Measure.of_column(
                    rows,
                    "score",
                    name=f"layer-{tree}-score",
                    title=f"Arcs in the tree of the layer's mean ({TREE_WORDS[str(tree)]})",
                    unit="% of arcs",
                    scale=100.0,
                    reading="High: the mean of the layer's heads attends along the syntactic tree.",
                )
            )
        return found

    def shown_tree(self) -> tuple[str, int]:
        """Undirected, of the head that is best on all sentences."""
        row = self._undirected()
        return "undirected", int(row["layer"]) * int(self.facts["heads"]) + int(row["head"])

    def candidate_name(self, number: int) -> str:
        """`head 3.5`, `the mean of layer 3`, `the mean of all heads`."""
        layers, heads = int(self.facts["layers"]), int(self.facts["heads"])
        if number < layers * heads:
            return f"head {number // heads}.{number % heads}"
        layer = number - layers * heads
        return f"the mean of layer {layer}" if layer < layers else "the mean of all heads"

    def drawings(self) -> Sequence[Drawing]:
        """Arcs of a sentence, heads by their undirected and directed trees, layers, relations."""
        by_name = {m.name: m for m in self.measures()}
        panels = [by_name[f"{tree}-score"] for tree in ("undirected", "to-head", "to-dependent")]
        sure = [by_name[m.name.replace("score", "gain")].sure for m in panels]
        heads = drawings.grids(
            "heads",
            [replace(m, sure=s) for m, s in zip(panels, sure, strict=True)],
            self.about,
            title="Annotated arcs in the trees of single heads",
            reading="Left whichever way arcs point, then where words attend to their head, then "
            "where they attend to what hangs from them.",
            labels=["undirected", "to the head", "to dependents"],
            sure="are surely better than the best baseline, corrected for all heads",
        )
        layers = [by_name[f"layer-{tree}-score"] for tree in ("undirected", "to-head-rooted")]
        profile = drawings.profile(
            "layers",
            layers,
            self.about,
            title="Annotated arcs in the trees of layers' mean attention",
            reading="Where lines are high, heads of the layer together attend along the tree.",
            labels=["undirected", "to the head, root given"],
        )
        return [
            *self.arc_drawings(),
            heads,
            profile,
            *self.relation_drawings("the best head", "undirected"),
        ]


@dataclass(frozen=True)
class AttentionTrees(Trees):
    """Is the syntactic tree of a sentence in what single heads attend to?

    Method: attention between words (the sum over the pieces attended to, the mean over those that
    attend; special tokens and punctuation left out) is taken as scores of arcs, and the maximum
    spanning tree is read off: undirected (both directions added), and directed by Chu–Liu/Edmonds,
    where words attend to their head or to their dependents, each with and without the annotated
    root given. That is done for each head, for the mean of each layer's heads and for the mean of
    all. The score is the share of annotated arcs that the tree has (UAS; UUAS of undirected trees),
    the root's own left out. Baselines: chains to the right and to the left, the word so many words
    away (up to ten), a random tree; where the root is given, a chain towards it and all words
    hanging from it. The best head and the best baseline are
    picked on one half of the sentences and scored on the other, for whole trees and for each
    relation. A tree in which all words hang from one finds relations with that word, too: so a
    relation counts as found only if it is also found more than from other words (`selectivity`).
    Intervals are over sentences and hold for all heads and trees together.

    Source: Htut et al. (2019), where words attend to their dependents and the root is given;
    Raganato and Tiedemann (2018), where they attend to their head; Clark et al. (2019) for words.
    Limits: attention to the right word is not yet use of it. Annotation decides what the head of a
    word is: that of Universal Dependencies prefers content words. Words that have no piece of their
    own are left out, and so are sentences of fewer than three words.
    """

    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns"}),
        fields=frozenset({"text", "words", "heads", "relations"}),
    )
    version: ClassVar[int] = 2  # bounds follow Student's law where many values make a mean
    result_type: ClassVar[type[Result]] = AttentionTreesResult
    all_heads: ClassVar[bool] = True
    trees: ClassVar[tuple[str, ...]] = SPANNING

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Arcs found by the trees of every head, layer and all, sentence by sentence."""
        from bertology.annotated.trees.extraction import spanning_trees
        from bertology.annotated.trees.gold import GoldTrees
        from bertology.annotated.words import word_batches
        from bertology.model.reducers.word_maps import WordMaps

        block = self.of_block(part, corpus)
        layers, heads = encoder.shape.layers, encoder.shape.heads
        found = TreeHits(len(block), self.trees, layers * heads + layers + 1, self.keep)

        def take(layer: int, maps: Tensor, *, at: Sequence[int], gold: GoldTrees) -> None:
            """One layer: its heads, and their mean; or the mean of all, as layer -1."""
            means = layers * heads + layer if layer >= 0 else layers * heads + layers
            both = [(maps.mean(1, keepdim=True), slice(means, means + 1))]
            if layer >= 0:
                both.append((maps, slice(layer * heads, (layer + 1) * heads)))
            for some, candidates in both:
                trees = spanning_trees(some.cpu().numpy(), gold.sizes, gold.roots, self.trees)
                found.take(at, gold, trees, candidates)

        for read in word_batches(encoder, block, tokens_per_batch=context.batch_tokens):
            rows, gold = GoldTrees.of(read)
            if gold is not None:
                batch = read.batch.only(rows)
                at, spelled = list(batch.indices), [
                    [read.examples[row].alignment.pieces_of(word) for word in words]
                    for row, words in zip(rows, gold.words, strict=True)
                ]  # fmt: skip
                found.gold(at, gold, block)
                maps = WordMaps(batch, spelled, partial(take, at=at, gold=gold))
                encoder.run(batch, reduce={"layer.*.head.*.pattern": maps})
                take(-1, maps.mean[:, None], at=at, gold=gold)
            context.advance(len(read.batch))
        data = found.part(part)
        data.attrs |= {"layers": layers, "heads": heads}
        return data

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Scores against cross-fitted baselines, for heads, means, best heads and relations."""
        import xarray as xr

        seen = self.seen(measured)
        layers, heads = int(seen.facts["layers"]), int(seen.facts["heads"])
        trees, single = seen.labels("tree"), slice(0, layers * heads)
        whole, by_relation = self.compared(seen, single), self.compared_by_relation(seen, single)
        of_heads = self.scored(seen, single, whole)
        means = self.scored(seen, slice(layers * heads, None), whole)
        tables = {
            "trees": _with_heads(self.compared_table(whole, ("tree",)), whole.best, heads),
            "heads": head_table((layers, heads), of_heads, groups=("tree", trees)),
            "maps": labelled_table({"tree": trees, "layer": [*range(layers), -1]}, means),
            "relations": _with_heads(
                self.compared_table(by_relation, ("relation", "tree")), by_relation.best, heads
            ),
            "baselines": self.baseline_table(seen),
        }
        return self.result(
            provenance,
            tables,
            evidence=self._evidence(tables),
            reasons={"surest_relation_gain": "not judged: no relation is in ten sentences or more"},
            facts={"examples": int(seen["arcs"].any(axis=1).sum()), **seen.facts},
            arrays=xr.Dataset(kept_sentences(measured)),
        )

    def _evidence(self, tables: Mapping[str, pd.DataFrame]) -> dict[str, Estimate | None]:
        """The best head of all trees, of undirected ones, and of all relations.

        Heads of random weights hold no tree. That no head does says something only of a model of
        which some head surely finds some relation: the positive control of what is negative.
        """
        heads, relation = tables["heads"], self.surest(tables["relations"])
        control = {_NO_RELATION: relation and relation.beyond_all()}
        negative = {
            "best_head_gain": self.largest(heads, "gain"),
            "best_head_undirected": self.largest(heads[heads["tree"] == "undirected"], "score"),
        }
        return {
            **{name: found and found.with_controls(control) for name, found in negative.items()},
            "surest_relation_gain": relation,
            **self.gains(tables["trees"]),
        }


_NO_RELATION = "a model in which no head finds a relation"


def _with_heads(table: pd.DataFrame, best: Sequence[int], heads: int) -> pd.DataFrame:
    """The head that is best on all sentences, in front of the numbers."""
    places = [divmod(at, heads) for at in best]
    after = list(table.columns).index("n")
    for name, one in (("head", 1), ("layer", 0)):
        table.insert(after, name, np.array([place[one] for place in places], np.int64))
    return table
