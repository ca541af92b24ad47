"""Relation heads: does a head attend from a word to the words it is linked with?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.data.words.link_moves import (
    COMPARISONS,
    DIRECTIONS,
    LinkedSentence,
    LinkLimits,
    end_words,
)
from bertology.data.words.links import check_relation, is_own
from bertology.errors import DataError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import link_map
from bertology.results.answers import head_name, listed, of_row, plain
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, dashed
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate, mean_intervals
from bertology.stats.best_of_many import Extreme, largest_of, leading, smallest_of
from bertology.stats.least_means import LeastMeans, fewest_observations, least_means
from bertology.studies.attention.attention_maps import whole_map
from bertology.studies.designs.blocks import Blocks
from bertology.studies.designs.parts import gather, in_order, start_of
from bertology.studies.designs.tables import head_table
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape


Words = NDArray[np.str_]
EXCESS = ("excess", "simultaneous_low", "simultaneous_high")
"""Columns of the table of heads: what linked words get beyond all comparisons, and its bounds."""
_DISTANCES = 5  # how many distances are tried, from the one that was asked for


@dataclass(frozen=True)
class LinkExcess:
    """What linked pairs get beyond all comparisons, head by head."""

    margin: float
    level: float

    def of(self, compared: Floats, words: Words) -> LeastMeans:
        """The smallest excess of each head over comparisons, by both ends of links.

        `compared` is (sentence, pairs, layer, head), linked pairs first; `words` (sentence, 2).
        `he` ends a fifth of the links, and what a head does with one word is not a relation: every
        word counts once.
        """
        excess = (compared[:, :1] - compared[:, 1:]).reshape(len(compared), -1)  # (N, kinds × V)
        rows = [each_word_once(excess, words[:, end]) for end in range(2)]
        by_kind = [one for of in rows for one in of.T.reshape(len(COMPARISONS), -1, len(of))]
        return least_means(by_kind, margin=self.margin, level=self.level)

    def by_distance(
        self, compared: Floats, words: Words, distance: Floats, first: int
    ) -> pd.DataFrame:
        """What the head with the largest excess is, the farther apart linked words must be.

        A sentence counts where its nearest linked words are so far apart.
        """
        import pandas as pd

        rows = []
        for least in range(first, first + _DISTANCES):
            there = distance >= least
            if min(_different(words[there])) < 2:
                break
            found = self.of(compared[there], words[there])
            best = int(found.value.argmax())
            layer, head = divmod(best, compared.shape[-1])
            rows.append(
                {
                    "min_distance": least,
                    "sentences": int(there.sum()),
                    "layer": layer,
                    "head": head,
                    "excess": found.value[best],
                    "excess_low": found.low[best],
                    "excess_high": found.high[best],
                    "sure_heads": int((found.p_adjusted < 1 - self.level).sum()),
                }
            )
        return pd.DataFrame(rows)

    def evidence(self, heads: pd.DataFrame, relation: str) -> dict[str, Estimate | None]:
        """Bounds hold for all heads together; they are over words, each of which counts once.

        Names open with the relation (`frame_best_excess`): a claim about one relation says nothing
        about another.
        """
        chosen = heads[heads["above_percentile"]]
        words = int(heads["words"].min())

        def counted(value: float, low: float, high: float) -> Estimate:
            found = Estimate(value, low, high, words, self.level, "words", counted=True)
            return replace(found, remedy="more linked words would narrow it")

        def of(extreme: Extreme, rows: pd.DataFrame) -> Estimate | None:
            bounds = (rows[column] for column in EXCESS)
            return extreme(*bounds, n=rows["words"], level=self.level, unit="words")

        found = {
            "heads_above_percentile": counted(*3 * [float(len(chosen))]),
            "best_excess": of(largest_of, heads),
            "least_excess_above_percentile": of(smallest_of, chosen),
        }
        if heads["sure"].any():  # or any share would be small, also that of a random model
            shares = [float((heads[column] > self.margin).mean()) for column in EXCESS]
            found["share_of_heads"] = counted(*shares)
        opening = relation.replace("-", "_").replace(":", "_")
        return {f"{opening}_{name}": estimate for name, estimate in found.items()}


def _different(words: Words) -> list[int]:
    """How many different words stand at each end (sentence, 2)."""
    return [np.unique(side).size for side in words.T]


def require_words(words: Words) -> None:
    """Refuse links that all start from one word, or all end in one: intervals are over words."""
    for end, different in zip(("start from", "end in"), _different(words), strict=True):
        if different < 2:
            raise DataError(
                f"All links that can be compared {end} the same word, "
                f"{str(words[0, int(end == 'end in')])!r}. What a head does with one word is no "
                "relation, so at least 2 different words are needed at each end.",
                hint="Give sentences in which links have other words too. syntax-heads counts "
                "how many links each head follows, whatever the words are.",
            )


def accuracy_columns(hits: Floats, links: Floats, level: float) -> dict[str, Floats]:
    """The share of all links that each head follows, and by how much it lies behind the first.

    `hits` are shares of each sentence's links (sentence, layer, head). Intervals and tests are over
    sentences.
    """
    weights = (links / links.mean())[:, None, None]  # every link counts once
    counted = hits * weights
    share = counted.mean(axis=0)
    # How many links a sentence has is drawn with it: what varies is the distance from the share.
    mean, low, high = (s.ravel() for s in mean_intervals(share + (hits - share) * weights, level))
    lead = leading(counted.reshape(len(hits), -1).T)
    return {
        "accuracy": mean,
        "accuracy_low": low.clip(0, 1),
        "accuracy_high": high.clip(0, 1),
        "behind_first": lead.behind,
        "behind_first_p": lead.p_adjusted,
    }


def each_word_once(values: Floats, words: Words) -> Floats:
    """Means over the rows of `values` (N, V) that have the same words: (W, V)."""
    _, which = np.unique(words, return_inverse=True)
    sums = np.zeros((which.max() + 1, values.shape[1]))
    np.add.at(sums, which, values)
    return sums / np.bincount(which)[:, None]


_CLAIMED = "frame"  # the relation that claims are about
_KEPT = ("weight", "words", "distance", "hits", "links")
_FITS, _COMPARED = "linked words are whole in the model's input", "all comparisons are possible"
_AGAINST = {
    "distance": "pairs that are as far apart",
    "key": "what other words give the same word",
    "query": "what the same word gives others",
    "place": "the same places of other sentences",
}


class RelationHeadsResult(Result):
    """What each head gives to linked words, and how much more that is than to others.

    Table `heads`: one row per head; `weight` is the paper's score, `excess` the least of the four
    `excess_…`. Table `sentences`: how many are left after each limit; `distances`: what is found
    where linked words must be farther apart. Arrays: `map`, all heads of the first sentence, as
    (layer, head, query, key).
    """

    lead: ClassVar[int] = 6
    strongest: ClassVar[Mapping[str, str]] = {"heads": "excess"}
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "heads": {"accuracy": "%", "behind_first": "points"}
    }

    @property
    def answer(self) -> str:
        """The head that gives linked words most beyond all comparisons, and how many do."""
        heads, links = self.tables["heads"], f"linked words ({self.facts['relation']})"
        sure = heads[heads["sure"]]
        row = (sure if len(sure) else heads).nlargest(1, "excess").iloc[0]
        more = f"{plain(of_row(row, EXCESS))} more attention"
        if not len(sure):
            return (
                f"No head surely does ({self._none_is_sure()}): the first, {head_name(row)}, gives "
                f"{links} {more} than others."
            )
        also = (
            f" {len(sure) - 1} more of {len(heads)} heads surely do too." if len(sure) > 1 else ""
        )
        return f"Surely yes: {head_name(row)} gives {links} {more} than any comparison.{also}"

    def headline(self) -> str:
        """How many sentences, and what the two ways of judging a head find."""
        facts, heads = self.facts, self.tables["heads"]
        names = heads["layer"].astype(str) + "." + heads["head"].astype(str)
        above, sure = (names[heads[c]] for c in ("above_percentile", "sure"))
        told = listed(sure) if len(sure) else self._none_is_sure()
        return (
            f"{facts['relation']}: {facts['sentences']} sentences; heads above percentile "
            f"{facts['percentile']:g} of the weight: {listed(above)}; surely more than "
            f"{facts['margin']:g} above every comparison: {told}. "
            f"{self._leader(names)}"
        )

    def _none_is_sure(self) -> str:
        """None, and whether any could have been."""
        heads = self.tables["heads"]
        words, fewest = (
            int(heads["words"].min()),
            fewest_observations(len(heads), self.facts["level"]),
        )
        if words >= fewest:
            return "none"
        return (
            f"none could be ({words} different words at one end of the links; with {len(heads)} "
            f"heads it takes {fewest} or more)"
        )

    def _leader(self, names: pd.Series[str]) -> str:
        """Which head follows most links, and whether it is surely better than the next."""
        ranked = self.tables["heads"].sort_values("accuracy", ascending=False, kind="stable")
        if len(ranked) < 2:
            return ""
        first, second = ranked.iloc[0], ranked.iloc[1]
        sure = second["behind_first_p"] < 1 - self.facts["level"]
        return (
            f"Of {self.facts['links']} links, head {names[ranked.index[0]]} follows "
            f"{100 * first['accuracy']:.0f} %, {'surely' if sure else 'not surely'} more than the "
            f"next ({names[ranked.index[1]]}, {100 * second['accuracy']:.0f} %)"
        )

    def measures(self) -> Sequence[Measure]:
        """What each head gives to linked words, and how much more that is than to others."""
        relation, weight = self.facts["relation"], "attention weight"
        name, along = dashed(relation), f"Attention along {relation} links"
        of_column = partial(Measure.of_column, self.tables["heads"])
        found = [
            of_column(
                "excess",
                name=f"{name}-excess",
                title=f"{along} beyond other words",
                unit=weight,
                bounds=EXCESS[1:],
                sure="sure",
                middle=0.0,
                reading="Above 0: linked words get more than any comparison; below 0: the head "
                "looks elsewhere.",
            ),
            of_column(
                "weight",
                name=f"{name}-weight",
                title=along,
                unit=weight,
                bounds=("weight_low", "weight_high"),
                reading="High: linked words attend to each other, though perhaps as all words do.",
            ),
            of_column(
                "accuracy",
                name=f"{name}-accuracy",
                title=f"{relation} links followed",
                unit="% of links",
                bounds=("accuracy_low", "accuracy_high"),
                scale=100.0,
                reading="High: the word that is attended to most is the linked one.",
            ),
            of_column(
                "above_percentile",
                name=f"{name}-named",
                title=f"Named for {relation} by the paper's rule",
                kinds=("no", "yes"),
                reading=f"Yes: above percentile {self.facts['percentile']:g} of all heads' "
                "weights, as some heads of any model are.",
            ),
        ]
        for kind, against in _AGAINST.items():
            found.append(
                of_column(
                    f"excess_{kind}",
                    name=f"{name}-excess-{kind}",
                    title=f"{along} beyond {against}",
                    unit=weight,
                    middle=0.0,
                    reading=f"Above 0: linked words get more than {against}.",
                )
            )
        return found

    def drawings(self) -> Sequence[Drawing]:
        """The paper's Figure 3, what is left of it beside the comparisons, and one sentence."""
        excess, weight, *_ = self.measures()
        # Below 0 a head only looks elsewhere: no colours are spent on how much.
        above = replace(
            excess,
            values=np.maximum(excess.values, 0.0),
            middle=None,
            reading="It is 0 where linked words get no more than in some comparison.",
        )
        return [
            drawings.grid(weight, self.about, name="weights"),
            drawings.grid(above, self.about, name="excess"),
            Drawing(
                "example",
                self._draw_example,
                "The attention map of the head with the largest excess, on one sentence: rows "
                f"attend to columns, darker is more. Pairs that {self.facts['relation']} links "
                "connect are framed; dark framed cells are links that the head follows.",
            ),
        ]

    def _draw_example(self) -> Figure:
        heads, maps = self.tables["heads"], self.arrays["map"]
        best = heads.iloc[int(heads["excess"].argmax())]
        layer, head = int(best["layer"]), int(best["head"])
        flat = [int(i) for i in maps.attrs["pairs"]]
        return link_map(
            maps.to_numpy()[layer, head],
            [str(t) for t in maps.attrs["tokens"]],
            list(zip(flat[::2], flat[1::2], strict=True)),
            title=f"Head {layer}.{head} of {self.provenance.model_name}",
            note=f"The head with the largest excess for {self.facts['relation']}, on the first "
            "sentence. Layers and heads are numbered from 0.",
        )


@dataclass(frozen=True)
class RelationHeads(Blocks):
    """Does a head attend from a word to the words it is linked with?

    Method: for every sentence and head, the largest attention weight among the pairs of pieces
    that a link of the relation connects (`weight`, averaged over sentences); heads above the 99th
    percentile of all heads are those the paper names. That many heads lie above it in any model,
    whatever they do. So each link is also compared with unlinked pairs: as far apart elsewhere in
    the sentence, of the same attended word, of the same attending word, and at the same places of
    other sentences. Each difference is averaged so that every word counts once, by the words that
    links start from and by those they end in: what a head does with one frequent word is no
    relation. `excess` is the smallest of these averages. A head carries the relation if it surely
    exceeds `margin`: all comparisons must, each at the full level (an intersection–union test),
    with Holm's correction for the number of heads. Intervals are over words; they allow for words
    that are farther from the mean than any seen. Sentences for which a comparison is impossible
    are left out of it and counted.

    `accuracy` is the share of all links whose other end is the word that the head attends to most,
    and `behind_first_p` tests, link for link, whether the first head is better than this one,
    corrected for their number.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.2 and Figure 3. Limits: an
    excess says that a head tells linked from unlinked words, not that the model uses it. With few
    words no head can be sure (fewer than 13 at either end of the links, for 144 heads), and large
    losses at words so rare that none of them was seen are not allowed for.
    """

    version: ClassVar[int] = 5  # bounds allow for rare answers that were not seen
    block: ClassVar[int] = 2048  # those within the limits are compared with each other
    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns"}), fields=frozenset({"text", "words"}), head="base"
    )
    finds_words: ClassVar[bool] = True
    help_options: ClassVar[tuple[str, str]] = ("--no-every", "--no-every")
    result_type: ClassVar[type[Result]] = RelationHeadsResult

    relation: str = parameter(
        "frame",
        "frame, role:NAME, coreference, verb-subject, nsubj, …; your own: links, links:NAME",
    )
    direction: str = parameter(
        "both", "Which end attends; forward is from the first to the second.", choices=DIRECTIONS
    )
    max_element: int = parameter(
        -1, "Tokens of a linked element at most; 0: any; -1: 3, any for your own links.", minimum=-1
    )
    max_tokens: int = parameter(
        -1, "Tokens of a sentence at most; 0: any; -1: 12, any for your own links.", minimum=-1
    )
    min_distance: int = parameter(
        0, "Distance of linked words; neighbours have 1; 0: 2, 1 for your own links.", minimum=0
    )
    every: bool = parameter(
        True, "Leave out sentences with any link outside the limits (but for your own links)."
    )
    percentile: float = parameter(
        99.0, "The paper's threshold.", minimum=0.0, maximum=100.0, concludes=True
    )
    draws: int = parameter(10, "Unlinked pairs of each kind for a sentence.", minimum=1)
    margin: float = parameter(
        0.01, "An excess up to this counts as none.", minimum=0.0, concludes=True
    )
    seed: int = parameter(0, "Seed of the choice of unlinked pairs.", minimum=0)

    @property
    def limits(self) -> LinkLimits:
        """Which sentences are looked at: the paper's limits, and none for links of one's own."""
        own = is_own(self.relation)
        return LinkLimits(
            self.relation,
            max_element=self.max_element if self.max_element >= 0 else 0 if own else 3,
            max_tokens=self.max_tokens if self.max_tokens >= 0 else 0 if own else 12,
            min_distance=self.min_distance or (1 if own else 2),
            every=self.every and not own,
        )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """The relation must be annotated, and sentences with different words be in the limits."""
        super().check(encoder, corpus)
        check_relation(self.relation, corpus)
        sentences, left = self.limits.passing(corpus)
        if len(sentences) < 2:
            counted = zip(self.limits.stages, left, strict=True)
            raise DataError(
                f"{len(sentences)} sentences of {corpus.name!r} are within the limits; at least 2 "
                "are needed.",
                hint="Left after each limit: " + ", ".join(f"{s}: {n}" for s, n in counted) + ".",
            )
        require_words(np.array([end_words(sentence) for sentence in sentences]))

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Those of the sentences within the limits."""
        within = [sentence.example for sentence in self.limits.passing(corpus)[0]]
        return replace(corpus, examples=within).texts if within else []

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """One step for each sentence within the limits."""
        return len(self._block(corpus, part)[0])

    def _block(self, corpus: Corpus, part: str) -> tuple[list[LinkedSentence], list[int]]:
        return self.limits.passing(self.of_block(part, corpus), first=start_of(part))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Weights of linked and of unlinked pairs, for each sentence of a block within the limits.

        Per sentence and head there is one number for the links and one for each comparison.
        """
        import xarray as xr

        from bertology.annotated.linked_pairs import in_pieces, pair_weights

        found, left = self._block(corpus, part)
        sentences = in_pieces(encoder, found, self.direction)
        weights, hits = pair_weights(
            encoder,
            sentences,
            draws=self.draws,
            seed=self.seed,
            batch_tokens=context.batch_tokens,
            done=context.advance,
        )
        context.advance(len(found) - len(sentences))
        # The words that links start from and end in.
        words = np.array([s.words for s in sentences], dtype=object).reshape(-1, 2)
        apart = {s.example.id: min(link.distance for link in s.links) for s in found}
        data = xr.Dataset(
            {
                "weight": (("sentence", "pairs", "layer", "head"), weights),
                "hits": (("sentence", "layer", "head"), hits),
                "links": ("sentence", [len(s.asked) for s in sentences]),
                "words": (("sentence", "end"), words),
                "distance": ("sentence", np.array([apart[s.id] for s in sentences], np.int64)),
                "left": ("stage", [*left, len(sentences)]),
            },
            coords={"pairs": ["linked", *COMPARISONS], "stage": [*self.limits.stages, _FITS]},
        )
        if sentences:
            linked = [int(i) for pair in sentences[0].pairs for i in pair]
            data["map"] = whole_map(encoder, sentences[0].text).assign_attrs(pairs=linked)
        return data

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Mean weights, the paper's threshold, and differences that hold for all heads."""
        import pandas as pd

        seen = gather(measured, concatenate=_KEPT, add=("left",))
        weights = seen["weight"].astype(np.float64)  # (sentence, pairs, layer, head)
        compared = ~np.isnan(weights).any(axis=(1, 2, 3))
        n = int(compared.sum())
        possible = (~np.isnan(weights[:, 1:, 0, 0])).sum(axis=0)  # by kind
        if n < 2:
            counted = ", ".join(
                f"{kind} ({_AGAINST[kind]}): {int(count)}"
                for kind, count in zip(COMPARISONS, possible, strict=True)
            )
            raise DataError(
                f"{n} sentences can be compared with unlinked pairs; at least 2 are needed.",
                hint=f"Sentences for which each comparison is possible: {counted}. Take more "
                "sentences, or such in which links stand at other places.",
            )
        stages = [
            *seen.labels("stage"),
            *(f"a comparison by {k} is possible" for k in COMPARISONS),
        ]
        left = [*seen["left"].tolist(), *possible.tolist(), n]
        words = seen["words"][compared].astype(str)
        require_words(words)
        heads = self._heads(weights, weights[compared], words).assign(
            **accuracy_columns(seen["hits"].astype(np.float64), seen["links"], self.level)
        )
        why = f"this result is about {self.relation}"
        if self.relation == _CLAIMED and not heads["sure"].any():
            why = f"no head surely attends along {self.relation}"
        own = ("relation", "percentile", "margin")
        return self.result(
            provenance,
            {
                "heads": heads,
                "sentences": pd.DataFrame({"limit": [*stages, _COMPARED], "sentences": left}),
                "distances": self._excess.by_distance(
                    weights[compared], words, seen["distance"][compared], self.limits.min_distance
                ),
            },
            evidence=self._excess.evidence(heads, self.relation),
            reasons={"": f"not judged: {why}"},
            facts={
                "sentences": len(weights),
                "links": int(seen["links"].sum()),
                "compared": n,
                **{name: getattr(self, name) for name in own},
            },
            arrays=next(part[["map"]] for part in in_order(measured) if "map" in part),
        )

    @property
    def _excess(self) -> LinkExcess:
        return LinkExcess(self.margin, self.level)

    def _heads(self, weights: Floats, compared: Floats, words: Words) -> pd.DataFrame:
        mean, low, high = mean_intervals(weights[:, 0], self.level)
        least = self._excess.of(compared, words)
        of_kind = least.means.reshape(2, len(COMPARISONS), -1).min(axis=0)
        bounds = (least.value, least.low, least.high)
        return head_table(
            weights.shape[2:],
            {
                "weight": mean,
                "weight_low": low,
                "weight_high": high,
                "above_percentile": mean > np.percentile(mean, self.percentile),
                **{f"excess_{kind}": of_kind[i] for i, kind in enumerate(COMPARISONS)},
                **dict(zip(EXCESS, bounds, strict=True)),
                "p_adjusted": least.p_adjusted,
                "nearest": np.array(COMPARISONS)[of_kind.argmin(axis=0)],
                "words": least.n,
                "sure": least.p_adjusted < 1 - self.level,
            },
        )
