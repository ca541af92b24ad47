"""Trees read off a model against annotated ones: what is kept of a sentence, baselines, gains.

Scores are shares of arcs, as the literature counts them, so that long sentences weigh more;
intervals are over sentences. A share of arcs is a ratio of two means, and what varies from sentence
to sentence is its distance from that ratio (`per_item`). The best of several candidates, of
baselines as of heads, is picked on one half of the sentences and scored on the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats, Ints
from bertology.errors import DataError, UnknownNameError
from bertology.parameters import parameter
from bertology.report.figures import Dots, TreeArcs, interval_dots, tree_arcs
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.best_of_many import largest_of
from bertology.stats.multiplicity import RowBlocks
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.parts import Gathered, gather, in_order, start_of
from bertology.studies.designs.shares import best_of_other_half, per_item
from bertology.studies.designs.tables import labelled_table, with_bounds

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.annotated.trees.gold import GoldTrees
    from bertology.data.corpus import Corpus
    from bertology.stats.partial_means import PartialMeans


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


KEPT = "sentence_"  # and a number: the trees of a sentence that is shown
_SHOWN = range(5, 15)  # words of such a sentence
_FEWEST = 10  # sentences with a relation, for it to be judged
_COLUMNS = (
    "n", "score", "score_low", "score_high", "best_baseline", "baseline", "gain", "gain_low",
    "gain_high", "gain_p", "gain_alone_high", "selectivity", "selectivity_low",
    "selectivity_high", "selectivity_p", "selectivity_alone_high",
)  # fmt: skip
RIGHT, LEFT, RANDOM = "right chain", "left chain", "random tree"
CHAIN, STAR = "chain to the root", "all from the root"


class TreeHits:
    """What is kept of the sentences of one part: counts of arcs, found by trees and baselines."""

    def __init__(self, examples: int, trees: Sequence[str], candidates: int, keep: int) -> None:
        from bertology.annotated.trees.gold import OFFSETS, RELATIONS

        self.trees, self._keep = tuple(trees), keep
        self.by_relation = tuple(name for name in trees if not name.endswith("rooted"))
        relations = len(RELATIONS)
        by_relation = (examples, relations)

        def zeros(*shape: int) -> NDArray[np.uint16]:
            return np.zeros(shape, np.uint16)

        of_all = (examples, len(trees), candidates)
        self._hits, self._turned = zeros(*of_all), zeros(*of_all)
        shape = (*by_relation, len(self.by_relation), candidates)
        self._found, self._elsewhere = zeros(*shape), np.zeros(shape, np.float16)
        self._arcs, self._from_root, self._chain = (zeros(*by_relation) for _ in range(3))
        self._offsets = zeros(*by_relation, len(OFFSETS))
        self._words = zeros(examples)
        self._kept: dict[int, dict[str, Any]] = {}

    def gold(self, at: Sequence[int], gold: GoldTrees, corpus: Corpus) -> None:
        """The annotated trees of the examples `at`, and what baselines find of them."""
        rows = list(at)
        self._words[rows], self._arcs[rows] = gold.sizes, gold.arcs
        self._from_root[rows], self._chain[rows] = gold.from_root, gold.by_rooted_chain()
        self._offsets[rows] = gold.by_offset().swapaxes(1, 2)
        for row, example in enumerate(rows):
            size = int(gold.sizes[row])
            if self._keep and size in _SHOWN:
                words = corpus[example].get("words")
                self._kept[example] = {
                    "words": [str(words[w]) for w in gold.words[row]],
                    "gold": gold.heads[row, :size],
                    "trees": np.full((*self._hits.shape[1:], size), -1, np.int16),
                }
        for example in sorted(self._kept)[self._keep :]:
            del self._kept[example]

    def take(
        self, at: Sequence[int], gold: GoldTrees, found: Mapping[str, Ints], candidates: slice
    ) -> None:
        """Trees (B, C, n) of some candidates, by their names."""
        rows = list(at)
        for number, name in enumerate(self.trees):
            pairs = name == "undirected"
            hits = gold.found(found[name], undirected=pairs)  # (B, C, n)
            turned = hits if pairs else gold.found(found[name], undirected=True)
            self._hits[rows, number, candidates] = hits.sum(axis=2)
            self._turned[rows, number, candidates] = turned.sum(axis=2)
            if name in self.by_relation:
                own = self.by_relation.index(name)
                others = gold.elsewhere(found[name], undirected=pairs)
                for kept, values in ((self._found, hits), (self._elsewhere, others)):
                    kept[rows, :, own, candidates] = gold.sums(values).transpose(0, 2, 1)
            for row, example in enumerate(rows):
                if example in self._kept:
                    kept = self._kept[example]["trees"]
                    kept[number, candidates] = found[name][row][:, : kept.shape[-1]]

    def part(self, part: str) -> xr.Dataset:
        """All of it, to be stored."""
        import xarray as xr

        from bertology.annotated.trees.gold import OFFSETS, RELATIONS

        by_relation = ("example", "relation")
        data = xr.Dataset(
            {
                "hits": (("example", "tree", "candidate"), self._hits),
                "turned": (("example", "tree", "candidate"), self._turned),
                "found": ((*by_relation, "kind", "candidate"), self._found),
                "elsewhere": ((*by_relation, "kind", "candidate"), self._elsewhere),
                "arcs": (by_relation, self._arcs),
                "from_root": (by_relation, self._from_root),
                "chain": (by_relation, self._chain),
                "offsets": ((*by_relation, "offset"), self._offsets),
                "words": ("example", self._words),
            },
            coords={
                "relation": list(RELATIONS),
                "tree": list(self.trees),
                "kind": list(self.by_relation),
                "offset": list(OFFSETS),
            },
            attrs={"first": start_of(part)},
        )
        if start_of(part) == 0:
            for i, kept in enumerate(self._kept[e] for e in sorted(self._kept)):
                dims = ("tree", "candidate", f"word_{i}")
                about = {"words": kept["words"], "gold": [int(h) for h in kept["gold"]]}
                data[f"{KEPT}{i}"] = xr.DataArray(kept["trees"], dims=dims, attrs=about)
        return data


class Baselines:
    """What finds arcs without a model: fixed offsets, chains, and a random tree (expected hits).

    Of all trees over n words, each equally likely, a share of 2 / n has a given pair; it is turned
    one way as often as the other, but for pairs with the root, where that is given.
    """

    def __init__(self, seen: Gathered) -> None:
        self._seen = seen
        self._offsets = [int(k) for k in seen.last["offset"].to_numpy()]

    def names(self, tree: str) -> list[str]:
        """What is compared with a tree, in the order of `hits`."""
        if tree == "undirected":
            apart = [k for k in self._offsets if k > 0]
            return ["neighbours" if k == 1 else f"{k} words apart" for k in apart] + [RANDOM]
        named = {1: RIGHT, -1: LEFT}
        sides = {
            k: named.get(k, f"{abs(k)} words to the {'right' if k > 0 else 'left'}")
            for k in self._offsets
        }
        return [*sides.values(), RANDOM, *([CHAIN, STAR] if tree.endswith("rooted") else [])]

    def hits(self, tree: str, relation: int | None = None) -> Floats:
        """(N, baselines): arcs found, of one relation or of all."""

        def of(name: str) -> Floats:
            found = self._seen[name]
            chosen = found.sum(axis=1) if relation is None else found[:, relation]
            return np.asarray(chosen, np.float64)

        words = np.maximum(self._seen["words"], 1).astype(np.float64)
        offsets, arcs = of("offsets"), of("arcs")
        if tree == "undirected":
            half = len(self._offsets) // 2
            apart = offsets[:, half:] + offsets[:, half - 1 :: -1]
            return np.column_stack([apart, 2 * arcs / words])
        if not tree.endswith("rooted"):
            return np.column_stack([offsets, arcs / words])
        random, star = (arcs + of("from_root")) / words, of("from_root")
        return np.column_stack([offsets, random, of("chain"), star])


@dataclass(frozen=True)
class Compared:
    """The cross-fitted best of some candidates and of the baselines, tree by tree; (rows, N).

    `elsewhere`: how often the best candidate finds the same words from others, where that is asked.
    """

    labels: Sequence[Any]
    best: Sequence[int]  # among the candidates, on all sentences
    base: Sequence[str]  # the best baseline, on all sentences
    score: Floats
    baseline: Floats
    elsewhere: Floats | None = None


@dataclass(frozen=True)
class Trees(Resampled):
    """Trees read off a model's scores of pairs of words, set against annotated trees."""

    block: ClassVar[int] = 128
    finds_words: ClassVar[bool] = True
    trees: ClassVar[tuple[str, ...]]
    """The names of the trees that are read off."""

    keep: int = parameter(1, "Keep the trees of so many sentences, to show.", minimum=0, maximum=20)

    def seen(self, measured: Mapping[str, xr.Dataset]) -> Gathered:
        """All parts; counts by relation are spooled, as are those by tree."""
        seen = gather(
            measured,
            concatenate=("arcs", "from_root", "chain", "offsets", "words"),
            spool=("hits", "turned", "found", "elsewhere"),
        )
        if (seen["arcs"].any(axis=1)).sum() < 2:
            raise DataError(
                "Fewer than two sentences have an annotated tree of three words or more.",
                hint="Give a corpus with dependency trees, such as ud-ewt, and longer sentences.",
            )
        return seen

    def compared(self, seen: Gathered, candidates: slice) -> Compared:
        """Whole trees: the best candidate and the best baseline of each tree."""
        arcs, base, rows = seen["arcs"].sum(axis=1), Baselines(seen), []
        for i, tree in enumerate(seen.labels("tree")):
            hits = seen.spooled["hits"][i][:, candidates]
            rows.append(
                (tree, *best_of_other_half(hits, arcs), *best_of_other_half(base.hits(tree), arcs))
            )
        labels, best, score, at, baseline = zip(*rows, strict=True)
        named = [base.names(tree)[i] for tree, i in zip(labels, at, strict=True)]
        return Compared(labels, best, named, np.array(score), np.array(baseline))

    def compared_by_relation(self, seen: Gathered, candidates: slice) -> Compared:
        """The same for each relation that occurs in ten sentences or more.

        Only of trees without a given root, which would give away what hangs from it.
        """
        base, rows = Baselines(seen), []
        for r, relation in enumerate(seen.labels("relation")):
            arcs = seen["arcs"][:, r]
            if (arcs > 0).sum() < _FEWEST:
                continue
            found, others = (seen.spooled[n][r][..., candidates] for n in ("found", "elsewhere"))
            for t, tree in enumerate(seen.labels("kind")):
                best, score = best_of_other_half(found[:, t], arcs)
                elsewhere = best_of_other_half(found[:, t], arcs, told=others[:, t])[1]
                at, baseline = best_of_other_half(base.hits(tree, r), arcs)
                name = base.names(tree)[at]
                rows.append(((relation, tree), best, name, score, baseline, elsewhere))
        if not rows:
            return Compared([], [], [], *(np.empty((0, len(seen["words"]))) for _ in range(3)))
        labels, picked, names, *values = zip(*rows, strict=True)
        return Compared(labels, picked, names, *(np.array(of) for of in values))

    def of_arcs(self, rows: Any, *, least: float = 0.0, families: int = 1) -> PartialMeans:
        """Means of `per_item` rows; an arc may be found or missed."""
        return self.means(rows, within=(least, 1.0), reach=1.0, families=families)

    def scored(self, seen: Gathered, candidates: slice, whole: Compared) -> dict[str, ArrayLike]:
        """Score and gain of each tree and candidate, with bounds for all of them together."""
        arcs, trees = seen["arcs"].sum(axis=1), range(len(whole.labels))

        def rows(tree: int, name: str = "hits") -> NDArray[np.float64]:
            return per_item(seen.spooled[name][tree][:, candidates].T, arcs)

        def gains(tree: int) -> NDArray[np.float64]:
            over: NDArray[np.float64] = rows(tree) - whole.baseline[tree]
            return over

        score = self.of_arcs(RowBlocks(partial(map, rows, trees)))
        gain = self.of_arcs(RowBlocks(partial(map, gains, trees)), least=-1.0)
        return {
            "n": gain.n,
            **with_bounds("score", score, p=False),
            "score_alone_high": score.alone_high,
            "uuas": np.concatenate([np.nanmean(rows(tree, "turned"), axis=1) for tree in trees]),
            **with_bounds("gain", gain),
            "gain_alone_high": gain.alone_high,
        }

    def compared_table(self, of: Compared, names: Sequence[str]) -> pd.DataFrame:
        """What was compared: score, baseline, and the gain with its test, for all rows together.

        `names` are those of the labels' columns.
        """
        import pandas as pd

        labels = pd.DataFrame(
            [label if isinstance(label, tuple) else (label,) for label in of.labels],
            columns=list(names),
        )
        if labels.empty:
            return labels.reindex(columns=[*names, *_COLUMNS])
        score = self.of_arcs(of.score)
        families = 1 if of.elsewhere is None else 2
        gain = self.of_arcs(of.score - of.baseline, least=-1.0, families=families)
        columns = {
            "n": gain.n,
            **with_bounds("score", score, p=False),
            "best_baseline": list(of.base),
            "baseline": np.nanmean(of.baseline, axis=1),
            **with_bounds("gain", gain),
            "gain_alone_high": gain.alone_high,
        }
        if of.elsewhere is not None:
            chosen = self.of_arcs(of.score - of.elsewhere, least=-1.0, families=2)
            columns |= with_bounds("selectivity", chosen)
            columns["selectivity_alone_high"] = chosen.alone_high
        return labels.assign(**columns)

    def largest(self, table: pd.DataFrame, column: str) -> Estimate | None:
        """The largest of a column whose bounds hold for all rows together."""
        sides = (table[name] for name in (column, f"{column}_low", f"{column}_alone_high"))
        return largest_of(*sides, n=table["n"], level=self.level, unit="sentences")

    def surest(self, relations: pd.DataFrame) -> Estimate | None:
        """The relation with the surest gain: the largest may be that of a rare one.

        It is over the best baseline, and its control is the same tree from other words; bounds
        hold for all rows and both questions, so that any row may be picked. From above no relation
        gains more than the largest bound.
        """
        if relations.empty:
            return None
        lows = relations[["gain_low", "selectivity_low"]].min(axis=1).to_numpy()
        found = beyond_elsewhere(relations.iloc[int(lows.argmax())], self.level)
        return replace(found, high=float(relations["gain_alone_high"].max()))

    def gains(self, trees: pd.DataFrame) -> dict[str, Estimate | None]:
        """The gain of each kind of tree over its best baseline, both cross-fitted."""
        found: dict[str, Estimate | None] = {}
        for _, row in trees.iterrows():
            value, low, high = (float(row[name]) for name in ("gain", "gain_low", "gain_high"))
            name = f"{str(row['tree']).replace('-', '_')}_gain"
            found[name] = Estimate(value, low, high, int(row["n"]), self.level, "sentences")
        return found

    def baseline_table(self, seen: Gathered) -> pd.DataFrame:
        """What each baseline finds of all arcs, tree by tree."""
        import pandas as pd

        arcs, base, found = seen["arcs"].sum(axis=1), Baselines(seen), []
        for tree in seen.labels("tree"):
            means = self.of_arcs(per_item(base.hits(tree).T, arcs))
            labels = {"tree": [tree], "baseline": base.names(tree)}
            found.append(labelled_table(labels, with_bounds("score", means, p=False)))
        return pd.concat(found, ignore_index=True)


def beyond_elsewhere(row: pd.Series[Any], level: float, low: str = "_low") -> Estimate:
    """The gain of a row over the best baseline; `low` names its lower bound.

    Its control is finding the same words from other words: what looks at a word wherever it looks
    from finds the links of that word, too.
    """

    def side(of: str) -> Estimate:
        value, least, high = (float(row[f"{of}{end}"]) for end in ("", low, "_alone_high"))
        return Estimate(value, least, high, int(row["n"]), level, "sentences")

    control = {"the same words found from other words": side("selectivity")}
    return side("gain").with_controls(control)


def kept_sentences(measured: Mapping[str, xr.Dataset]) -> dict[str, xr.DataArray]:
    """The trees that the first part kept to be shown."""
    first = next(in_order(measured))
    return {str(k): v for k, v in first.data_vars.items() if str(k).startswith(KEPT)}
