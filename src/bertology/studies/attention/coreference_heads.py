"""Coreference heads: do words attend most to what they refer back to?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from bertology.annotated.coreference import READINGS
from bertology.arrays import Floats
from bertology.data.corpus import Field
from bertology.data.words.antecedents import BASELINES, SIMPLE, MentionKind, baseline_hits
from bertology.errors import CapabilityError, DataError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import NOTHING_SURE, head_name, of_row, percent, points, raised
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.multiplicity import RowBlocks
from bertology.studies.designs.blocks import Tagged
from bertology.studies.designs.parts import Gathered, gather, start_of
from bertology.studies.designs.shares import best_of_other_half, per_item
from bertology.studies.designs.tables import head_table, labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.stats.partial_means import PartialMeans


_MATCHING = "head match or nearest"
_TOGETHER = 8  # neighbours in one half: twins, or texts of one source; fewer where there are few


@dataclass(frozen=True)
class BestHead:
    """The cross-fitted best head of a kind and the baselines, as values of documents."""

    best: int  # on all documents
    score: Floats
    sieve: Floats
    matching: Floats  # head match, else nearest
    alone: Floats  # head match, else nothing
    simple: Floats  # the best of nearest, first, random, cross-fitted
    name: str  # which of these it is, on all documents
    bar: Floats  # the best of simple choices and of matching, cross-fitted


def best_head(seen: Gathered, kind: int, reading: int) -> BestHead:
    """`kind` counts from 0, all mentions; `reading` as in READINGS."""
    counts, base = seen["mentions"][:, kind], seen["base"][:, kind]
    hits = seen.spooled["hits"][kind][:, reading].reshape(len(counts), -1)
    picked = partial(
        best_of_other_half,
        items=counts,
        together=min(_TOGETHER, max(1, len(counts) // _TOGETHER)),
    )
    best, score = picked(hits)

    def some(*names: str) -> tuple[int, Floats]:
        return picked(base[:, [BASELINES.index(name) for name in names]])

    at, simple = some(*SIMPLE)
    return BestHead(
        best=best,
        score=score,
        sieve=some("sieve")[1],
        matching=some(_MATCHING)[1],
        alone=some("head match")[1],
        simple=simple,
        name=SIMPLE[at],
        bar=some(*SIMPLE, "string match or nearest", _MATCHING)[1],
    )


ALL = "all"
KINDS = (ALL, *map(str, MentionKind))
KIND_WORDS = {
    ALL: "all mentions",
    "pronoun": "pronouns",
    "proper": "proper names",
    "nominal": "other nouns",
}
PAR = 0.05  # points to the sieve that still count as on par; Clark et al. call 4 points close
_STAGES = ("with an antecedent", "with an antecedent in the window", "asked")
_UNIT = "documents"
_PART = 8000  # words in one part of the work
_FEWEST = 10  # documents with a kind of mention, for it to be judged
_METHODS = (
    "One panel for each kind of mention: the share of mentions for which the best head attends "
    "most to an antecedent, beside simple ways to choose one, in per cent with intervals over "
    "documents. The head was picked on one half of the documents and scored on the other."
)


class CoreferenceHeadsResult(Result):
    """How often each head attends most to an antecedent, by kind of mention, beside baselines.

    Table `kinds`: for each kind of mention, among earlier mentions and among all earlier words, the
    best head, cross-fitted, and its gains over the rule-based sieve, over matching head words, and
    over the best of nearest, first and random; `heads`: the share of mentions that each head
    resolves, and the gain over `baseline`, the best of what knows no grammar; `baselines`: what
    each finds; `losses`: how many mentions are left when documents are cut into windows.
    """

    strongest: ClassVar[Mapping[str, str]] = {"heads": "gain"}
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "heads": {"share": "%", "share_of_words": "%", "gain": "points"},
        "kinds": {
            "score": "%",
            **dict.fromkeys(("over_sieve", "over_matching", "over_simple"), "points"),
        },
        "baselines": {"score": "%"},
    }

    @property
    def answer(self) -> str:
        """The best head among mentions, beside the sieve and the best simple choice."""
        row = self.tables["kinds"].iloc[0]
        score, sieve, simple = (
            of_row(row, (c, f"{c}_low", f"{c}_high"))
            for c in ("score", "over_sieve", "over_simple")
        )
        opening = "" if simple.low > 0 else f"{NOTHING_SURE}: "
        return (
            f"{opening}{head_name(row) if opening else raised(head_name(row))} attends most "
            f"to an antecedent for {percent(score)} of mentions, {points(sieve, '.0f')} against "
            f"the rule-based sieve and {points(simple, '.0f')} against the best simple choice "
            f"({row['simple']})."
        )

    def with_sure(self, name: str) -> pd.DataFrame:
        """Heads by their tests."""
        table = self.tables[name]
        return table.assign(sure=self.sure_heads()) if name == "heads" else table

    def sure_heads(self) -> pd.Series:
        """Rows of `heads` that are surely better than the baseline, corrected for all."""
        heads = self.tables["heads"]
        found: pd.Series = (heads["gain_p"] < 1 - self.facts["level"]) & (heads["gain"] > 0)
        return found

    def _kinds(self) -> Iterator[tuple[str, pd.DataFrame]]:
        heads = self.with_sure("heads")
        return ((str(kind), rows) for kind, rows in heads.groupby("kind", sort=False))

    def measures(self) -> Sequence[Measure]:
        """Share and gain by head for each kind of mention; of all, also the share of words."""
        found = []
        for kind, rows in self._kinds():
            words = KIND_WORDS[kind]
            found += [
                Measure.of_column(
                    rows,
                    "gain",
                    name=f"{kind}-gain",
                    title=f"Antecedents of {words}, beyond matching head words",
                    unit="points (% of mentions)",
                    sure="sure",
                    scale=100.0,
                    middle=0.0,
                    reading="Above 0: the head finds antecedents better than equal head words, or "
                    "else the nearest mention, do.",
                ),
                Measure.of_column(
                    rows,
                    "share",
                    name=f"{kind}-share",
                    title=f"Antecedents of {words}",
                    unit="% of mentions",
                    scale=100.0,
                    reading="High: among earlier mentions the head attends most to an antecedent.",
                ),
            ]
            if kind == ALL:
                found.append(
                    Measure.of_column(
                        rows,
                        "share_of_words",
                        name="all-share-of-words",
                        title="Antecedents among all earlier words",
                        unit="% of mentions",
                        scale=100.0,
                        reading="High: among all earlier words the head attends most to that of "
                        "an antecedent.",
                    )
                )
        return found

    def drawings(self) -> Sequence[Drawing]:
        """Heads by kind of mention, and the best of them beside simple ways to choose."""
        by_name = {m.name: m for m in self.measures()}
        kinds = [kind for kind, _ in self._kinds()]
        panels = [
            replace(by_name[f"{kind}-share"], sure=by_name[f"{kind}-gain"].sure) for kind in kinds
        ]
        heads = drawings.grids(
            "heads",
            panels,
            self.about,
            title="Mentions whose most attended mention is an antecedent",
            reading="Among the head words of earlier mentions, the one that the mention's head "
            "word attends to most must be that of an antecedent.",
            labels=[KIND_WORDS[kind] for kind in kinds],
            sure="are surely better than matching head words, or else the nearest mention",
            shared=True,
        )
        return [Drawing("methods", partial(self._methods, kinds), _METHODS), heads]

    def _methods(self, kinds: Sequence[str]) -> Figure:
        best, base = self.tables["kinds"], self.tables["baselines"]
        best = best[best["reading"] == READINGS[0]]
        panels = []
        for kind in kinds:
            sides = [
                100 * np.concatenate([of.loc[of["kind"] == kind, c] for of in (base, best)])
                for c in ("score", "score_low", "score_high")
            ]
            panels.append(Dots(f"{KIND_WORDS[kind]} (%)", *sides))
        return interval_dots(
            panels,
            [*BASELINES, "best head"],
            title=f"Antecedents found\n{self.about}",
            reference="best head",
            note="Intervals hold for all baselines together, and for all best heads together.",
        )


@dataclass(frozen=True)
class CoreferenceHeads(Tagged):
    """Do words that refer back attend most to what they refer to?

    Method: documents are cut into windows of whole sentences. For every mention the attention from
    its head word to the head words of the mentions before it is compared (the sum over the pieces
    attended to, the mean over those that attend); the mention is resolved where the largest is that
    of a mention in its cluster. The same among all words before the mention. A mention counts if
    some mention before it in its window corefers with it and some other does not. Baselines: the
    nearest mention before, the first, one at random; the nearest with the same words or the same
    head word; and a rule-based sieve: the nearest that has the same words, else the same head word,
    else agrees in number, gender and person, else the nearest. The best head is picked on one half
    of the documents and scored on the other; neighbours, which may be twins (the two sentences of a
    Winograd schema), stay in one half. Intervals are over documents.

    Source: Clark et al. (2019), section 4.3 and Table 2, who take documents of 128 tokens. Limits:
    antecedents in earlier windows are lost; the table `losses` counts them. Where a corpus has no
    trees, heads of mentions are found by a rule; where it has no tags, those of a tagger are used.
    What nouns agree in is known of common words only. A corpus that annotates few mentions (GAP,
    Winograd schemas) leaves two or three to choose from.
    """

    block: ClassVar[int] = 128
    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns"}), fields=frozenset({"text", "words", "coreference"})
    )
    finds_words: ClassVar[bool] = True
    version: ClassVar[int] = 2  # bounds follow Student's law where many values make a mean
    result_type: ClassVar[type[Result]] = CoreferenceHeadsResult

    window: int = parameter(
        128, "Tokens that are read at once; documents are cut at ends of sentences.", minimum=16
    )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse pairs of texts, and tokenizers that do not say which pieces make a word."""
        super().check(encoder, corpus)
        if Field.TEXT_B in corpus.fields:
            raise CapabilityError(
                f"The corpus {corpus.name!r} has pairs of texts.",
                hint="Mentions of one text are compared; give single texts.",
            )

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Sentences: documents are cut into windows, so that only a long sentence can be cut."""
        from bertology.data.words.windows import sentence_texts

        return [text for example in self.shown(corpus) for text in sentence_texts(example)]

    def _blocks(self, corpus: Corpus, size: int) -> list[str]:
        """Documents differ in length: a part ends with so many examples, or so many words."""
        ends, words, first = [0], 0, 0
        for at, example in enumerate(self.shown(corpus)):
            words += len(example.get(Field.WORDS))
            if words >= _PART or at + 1 - first >= size:
                first, words = at + 1, 0
                ends.append(first)
        ends = sorted({*ends, len(self.shown(corpus))})
        return [f"examples-{a:06d}-{b:06d}" for a, b in pairwise(ends)]

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Mentions resolved by every head and baseline, document by document."""
        import xarray as xr

        from bertology.annotated.coreference import asked_batches, cut_documents, linked

        block = self.of_block(part, corpus)
        windows = cut_documents(encoder, block, self.window, self.tagger)
        size, shape = len(block), (encoder.shape.layers, encoder.shape.heads)
        hits = np.zeros((size, len(KINDS), len(READINGS), *shape), np.uint16)
        base = np.zeros((size, len(KINDS), len(BASELINES)), np.float32)
        mentions = np.zeros((size, len(KINDS)), np.uint16)
        inside = np.zeros(size, np.int64)
        np.add.at(inside, windows.documents, [linked(w) for w in windows.corpus])
        left = Counter(range(size))
        for asked in asked_batches(encoder, windows, tokens_per_batch=context.batch_tokens):
            encoder.run(asked.batch, reduce={"layer.*.head.*.pattern": asked.reducer})
            found = asked.reducer.value()  # (readings, B, layers, H, K)
            for row, document in enumerate(asked.documents):
                questions = asked.questions[row]
                chosen = baseline_hits(asked.examples[row], questions)
                for k, (question, picks) in enumerate(zip(questions, chosen, strict=True)):
                    of = [0, KINDS.index(str(question.mention.kind))]
                    mentions[document, of] += 1
                    hits[document, of] += found[:, row, ..., k]
                    base[document, of] += [picks[name] for name in BASELINES]
                context.advance(left.pop(document, 0))
        context.advance(sum(left.values()))
        stages = [[linked(e) for e in block], inside, mentions[:, 0]]
        return xr.Dataset(
            {
                "hits": (("example", "kind", "reading", "layer", "head"), hits),
                "base": (("example", "kind", "baseline"), base),
                "mentions": (("example", "kind"), mentions),
                "stages": (("example", "stage"), np.array(stages, np.int64).T),
            },
            coords={"kind": list(KINDS), "reading": list(READINGS), "baseline": list(BASELINES)},
            attrs={"first": start_of(part), "tagger": windows.tagger},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Shares of mentions resolved, of heads and baselines, and the best head's gains."""
        seen = gather(
            measured,
            concatenate=("mentions", "base"),
            add={"stages": lambda part: part["stages"].to_numpy().sum(axis=0)},
            spool=("hits",),
        )
        present = (seen["mentions"] > 0).sum(axis=0)
        if present[0] < 2:
            raise DataError(
                "Fewer than two texts have a mention with an antecedent and another mention "
                "before it.",
                hint="Give documents with coreference, such as ontogum; `--corpus grammar` needs "
                "--limit 300 or so.",
            )
        kinds = [k for k in range(len(KINDS)) if k == 0 or present[k] >= _FEWEST]
        shape = (seen.last.sizes["layer"], seen.last.sizes["head"])
        tables = {
            "kinds": self._kinds(seen, kinds, shape[1]),
            "heads": self._heads(seen, kinds, shape),
            "baselines": self._baselines(seen, kinds),
            "losses": labelled_table({"stage": _STAGES}, {"mentions": seen["stages"]}),
        }
        return self.result(
            provenance,
            tables,
            evidence=self._evidence(seen, tables["kinds"]),
            facts={"examples": int(present[0]), "tagger": seen.facts["tagger"]},
        )

    def _shares(
        self, seen: Gathered, rows: Floats | RowBlocks, *, least: float = 0.0, families: int = 1
    ) -> PartialMeans:
        """Means of `per_item` rows.

        One mention is resolved or missed; a document of many is hardly ever all of either.
        """
        counts = seen["mentions"][:, 0]
        reach = 1 / np.sqrt(counts[counts > 0].mean())
        return self.means(rows, within=(least, 1.0), reach=reach, families=families)

    def _kinds(self, seen: Gathered, kinds: Sequence[int], heads: int) -> pd.DataFrame:
        """The cross-fitted best head of each kind, in both readings, and its gains."""
        compared = [best_head(seen, kind, r) for r in range(len(READINGS)) for kind in kinds]
        score = self._shares(seen, np.array([c.score for c in compared]))
        columns: dict[str, ArrayLike] = {
            "n": score.n,
            "mentions": [int(seen["mentions"][:, k].sum()) for k in kinds] * len(READINGS),
            "layer": [c.best // heads for c in compared],
            "head": [c.best % heads for c in compared],
            **with_bounds("score", score, p=False),
            "simple": [c.name for c in compared],
        }
        for name in ("sieve", "matching", "simple"):
            gains = np.array([c.score - getattr(c, name) for c in compared])
            over = self._shares(seen, gains, least=-1.0, families=3)
            columns |= with_bounds(f"over_{name}", over)
        labels = {"reading": READINGS, "kind": [KINDS[k] for k in kinds]}
        return labelled_table(labels, columns)

    def _heads(self, seen: Gathered, kinds: Sequence[int], shape: tuple[int, int]) -> pd.DataFrame:
        """What every head resolves of each kind, with bounds for all of them together."""

        def rows(kind: int, reading: int = 0) -> Floats:
            found = seen.spooled["hits"][kind][:, reading].reshape(len(seen["mentions"]), -1)
            return per_item(found.T, seen["mentions"][:, kind])

        def gains(kind: int) -> Floats:
            over: Floats = rows(kind) - best_head(seen, kind, 0).bar
            return over

        share = self._shares(seen, RowBlocks(partial(map, rows, kinds)))
        gain = self._shares(seen, RowBlocks(partial(map, gains, kinds)), least=-1.0)
        columns = {
            "n": gain.n,
            **with_bounds("share", share, p=False),
            "share_of_words": np.concatenate([np.nanmean(rows(k, 1), axis=1) for k in kinds]),
            **with_bounds("gain", gain),
        }
        return head_table(shape, columns, groups=("kind", [KINDS[k] for k in kinds]))

    def _baselines(self, seen: Gathered, kinds: Sequence[int]) -> pd.DataFrame:
        counts = seen["mentions"]
        rows = [per_item(seen["base"][:, k].T, counts[:, k]) for k in kinds]
        means = self._shares(seen, np.concatenate(rows))
        labels = {"kind": [KINDS[k] for k in kinds], "baseline": BASELINES}
        return labelled_table(labels, {"n": means.n, **with_bounds("score", means, p=False)})

    def _evidence(self, seen: Gathered, kinds: pd.DataFrame) -> dict[str, Estimate | None]:
        """Of all mentions, among mentions: one head, picked on the other half, so no correction."""
        of = best_head(seen, 0, 0)
        rows = {
            "best_head_score": of.score,
            "best_head_less_sieve": of.score - of.sieve,
            "best_head_less_head_match": of.score - of.alone,
            "best_head_less_matching": of.score - of.matching,
            "best_head_less_simple": of.score - of.simple,
        }
        found: dict[str, Estimate | None] = {}
        for name, values in rows.items():
            least = 0.0 if name == "best_head_score" else -1.0
            one = self._shares(seen, values[None], least=least).estimate(0)
            found[name] = None if one is None else one.counting(_UNIT)
        sieve, match, simple = (
            found[f"best_head_less_{name}"] for name in ("sieve", "head_match", "simple")
        )
        if sieve is not None and match is not None and simple is not None:
            near = replace(
                sieve, value=sieve.value + PAR, low=sieve.low + PAR, high=sieve.high + PAR
            )
            control = {"the best of nearest, first and random mention": simple}
            found["on_par_with_sieve"] = near.with_controls(control)
            found["beyond_head_match"] = match.with_controls(control)
        for _, row in kinds[kinds["reading"] == READINGS[0]].iloc[1:].iterrows():
            value, low, high = (float(row[f"over_sieve{end}"]) for end in ("", "_low", "_high"))
            name = f"{row['kind']}_less_sieve"
            found[name] = Estimate(value, low, high, int(row["n"]), self.level, _UNIT)
        return found
