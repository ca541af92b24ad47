"""Perturbed masking: is a sentence's tree in how words change the guesses at each other?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bertology.annotated.trees.extraction import PROJECTIVE, SPANNING
from bertology.parameters import drawn, parameter
from bertology.report import drawings
from bertology.results.answers import of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.parts import Gathered
from bertology.studies.designs.shares import per_item
from bertology.studies.designs.tables import labelled_table
from bertology.studies.designs.trees import (
    RIGHT,
    Baselines,
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

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.stats import Estimate

_SHOWN = "projective-rooted"  # as in the paper
_OF_LAYERS = {
    "title": "Arcs in the tree of impact on the layer's states",
    "high": "High: words change the guesses at their neighbours in the tree most.",
}


class PerturbedMaskingResult(TreesResult):
    """How much of the annotated trees is in trees of impact.

    Table `trees`: for each kind of tree the share of annotated arcs (UAS; UUAS of undirected ones)
    of the last layer's impact beside the best baseline, cross-fitted; `layers`: the same for the
    states after each layer, with bounds for all layers and trees together; `relations`: each
    relation beside its best baseline; `baselines`. Arrays `sentence_0` …: trees of single sentences
    by layer.
    """

    strongest: ClassVar[Mapping[str, str]] = {"layers": "gain", "relations": "gain"}

    @property
    def answer(self) -> str:
        """The projective tree with the root given, beside the right chain and the best baseline."""
        row = self._row(_SHOWN)
        score, gain = (of_row(row, (c, f"{c}_low", f"{c}_high")) for c in ("score", "gain"))
        chain = self.evidence()["gain_over_right_chain"]
        sure = "Some of it" if chain.low > 0 else "Surely not" if chain.high < 0 else "Not sure"
        return (
            f"{sure}: trees of impact have {percent(score)} of the annotated arcs, "
            f"{points(chain, '.0f')} against a right chain and {points(gain, '.0f')} against the "
            f"best baseline ({row['best_baseline']})."
        )

    def _row(self, tree: str) -> pd.Series:
        trees = self.tables["trees"]
        return trees[trees["tree"] == tree].iloc[0]

    def measures(self) -> Sequence[Measure]:
        """Of each kind of tree the score and the gain by layer; nothing of probabilities."""
        table, found = self.tables["layers"], []
        if self.facts["impact"] != "distance":
            return []
        sure = (table["gain_p"] < 1 - self.facts["level"]) & (table["gain"] > 0)
        for tree, rows in table.assign(sure=sure).groupby("tree", sort=False):
            found += [tree_measure(rows, str(tree), c, **_OF_LAYERS) for c in ("score", "gain")]
        return found

    def shown_tree(self) -> tuple[str, int]:
        """Projective with the root given, of the last layer."""
        return _SHOWN, -1

    def candidate_name(self, number: int) -> str:
        """`impact on layer 11`, or on probabilities."""
        if self.facts["impact"] != "distance":
            return "impact on probabilities"
        return f"impact on layer {number % int(self.facts['candidates'])}"

    def drawings(self) -> Sequence[Drawing]:
        """Arcs of a sentence, layers, relations."""
        by_name = {m.name: m for m in self.measures()}
        found = list(self.arc_drawings())
        if by_name:
            trees = ("undirected", "to-head-rooted", _SHOWN)
            found.append(
                drawings.profile(
                    "layers",
                    [by_name[f"{tree}-score"] for tree in trees],
                    self.about,
                    title="Annotated arcs in trees of impact, by the layer whose states change",
                    reading="Where lines are high, words change the guesses at those that they "
                    "belong with.",
                    labels=["undirected", "directed, root given", "projective, root given"],
                )
            )
        return [*found, *self.relation_drawings("the tree of impact", "projective")]


@dataclass(frozen=True)
class PerturbedMasking(Trees):
    """Is the syntactic tree of a sentence in how words change the model's guesses at each other?

    Method: word i is masked, then word j as well; the impact of j on i is how far the state at i
    moves (Euclidean distance, after each layer; the last one counts), or by how much the
    probability of the right word falls. Words are masked with all of their pieces, and read at
    their first. From the matrix of impacts trees are read off: projective ones (Eisner), and
    maximum spanning trees, directed (Chu–Liu/Edmonds) and undirected, with and without the
    annotated root given; a word's head is the word that changes it. The score is the share of
    annotated arcs, the root's own left out. Baselines, halves and intervals are those of
    attention-trees. No parameter is trained, so that what is found is the model's own.

    Source: Wu et al. (2020), Perturbed Masking. Limits: a sentence of n words takes n (n + 1) / 2
    passes. The authors count the root and punctuation, too. Before Eisner's algorithm their code
    exponentiates impacts and divides each column by the sum of the row of the same word, which
    makes words that others change much less likely heads; `scaling` does the same. Their
    constituents are in impact-constituents. Words change their neighbours most in any model that
    reads text from both sides, so the chain of neighbours is what must be beaten.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "words", "heads", "relations"}), head="mlm"
    )
    version: ClassVar[int] = 2  # bounds follow Student's law where many values make a mean
    result_type: ClassVar[type[Result]] = PerturbedMaskingResult
    trees: ClassVar[tuple[str, ...]] = (*SPANNING, *PROJECTIVE)
    block: ClassVar[int] = 32

    examples: int = drawn(200, "sentences")
    impact: str = parameter(
        "distance",
        "Impact as the distance between states, or as the fall of the right word's probability.",
        choices=("distance", "probability"),
    )
    scaling: str = parameter(
        "none",
        "Impacts as they are, or scaled as in the code of the paper's authors.",
        choices=("none", "published"),
    )

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Arcs found by the trees of impact, sentence by sentence."""
        from bertology.annotated.trees.extraction import all_trees
        from bertology.annotated.trees.gold import GoldTrees
        from bertology.annotated.trees.impact import scaled, word_impacts
        from bertology.annotated.words import word_batches

        block = self.of_block(part, corpus)
        candidates = encoder.shape.layers if self.impact == "distance" else 1
        found = TreeHits(len(block), self.trees, candidates, self.keep)
        for read in word_batches(encoder, block, tokens_per_batch=context.batch_tokens):
            rows, gold = GoldTrees.of(read)
            if gold is not None:
                at = [read.batch.indices[row] for row in rows]
                found.gold(at, gold, block)
                maps = word_impacts(
                    encoder,
                    [
                        (read.examples[row], words)
                        for row, words in zip(rows, gold.words, strict=True)
                    ],
                    measure=self.impact,
                    tokens_per_batch=context.batch_tokens,
                )
                scores = scaled(maps, gold.sizes) if self.scaling == "published" else maps
                trees = all_trees(scores, gold.sizes, gold.roots, self.trees)
                found.take(at, gold, trees, slice(0, candidates))
            context.advance(len(read.batch))
        data = found.part(part)
        data.attrs |= {"candidates": candidates, "impact": self.impact}
        return data

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Scores against cross-fitted baselines, for trees, layers and relations."""
        import xarray as xr

        seen = self.seen(measured)
        trees, last = seen.labels("tree"), slice(int(seen.facts["candidates"]) - 1, None)
        whole, by_relation = self.compared(seen, last), self.compared_by_relation(seen, last)
        layers = {"tree": trees, "layer": range(int(seen.facts["candidates"]))}
        tables = {
            "trees": self.compared_table(whole, ("tree",)),
            "layers": labelled_table(layers, self.scored(seen, slice(None), whole)),
            "relations": self.compared_table(by_relation, ("relation", "tree")),
            "baselines": self.baseline_table(seen),
        }
        return self.result(
            provenance,
            tables,
            evidence={
                "gain_over_right_chain": self._over_right_chain(seen, last),
                "surest_relation_gain": self.surest(tables["relations"]),
                **self.gains(tables["trees"]),
            },
            reasons={"surest_relation_gain": "not judged: no relation is in ten sentences or more"},
            facts={"examples": int(seen["arcs"].any(axis=1).sum()), **seen.facts},
            arrays=xr.Dataset(kept_sentences(measured)),
        )

    def _over_right_chain(self, seen: Gathered, last: slice) -> Estimate | None:
        """What the paper compares: projective trees with the root given, and the right chain."""
        base, tree = Baselines(seen), seen.labels("tree").index(_SHOWN)
        chain = base.hits(_SHOWN)[:, base.names(_SHOWN).index(RIGHT)]
        over = seen.spooled["hits"][tree][:, last][:, 0] - chain
        found = self.of_arcs(per_item(over[None], seen["arcs"].sum(axis=1)), least=-1.0).estimate(0)
        return None if found is None else found.counting("sentences")
