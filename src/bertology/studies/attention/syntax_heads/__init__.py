"""Syntax heads: is there a head for each relation between words, and a relation for each head?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.data.corpus import Field
from bertology.data.words.classes import BY_CORPUS
from bertology.data.words.links import OWN, PLAIN, check_relation
from bertology.errors import CapabilityError, DataError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots, interval_dots
from bertology.results.answers import head_name, listed, of_row, percent, points
from bertology.results.compared import Compared
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, column_grid, dashed
from bertology.results.number_text import number_text
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.attention.syntax_heads.followed_links import FollowedLinks, followed_evidence
from bertology.studies.attention.syntax_heads.found_links import found_links
from bertology.studies.attention.syntax_heads.link_counts import (
    ALL,
    LinkCounts,
    LinkParts,
    questions_of,
)
from bertology.studies.study import MAPS_OF_TEXTS, Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder


# The best heads of BERT-base by Clark et al. (2019), Table 1, under the names of our relations.
#
# They used Stanford Dependencies on the Penn Treebank's Wall Street Journal. Where Universal
# Dependencies has another name, that is what stands here; where it has another analysis, the pairs
# of words that come nearest:
#
# - `pobj` leads from a preposition to its noun. That is `case` turned round, which also holds the
#   possessive 's of nouns.
# - `prep` leads from a word to a preposition that depends on it. Here it is put together: from what
#   the noun of a preposition hangs from to the preposition.
# - `aux` has the "to" of infinitives, which is `mark` in Universal Dependencies. So both differ.


@dataclass(frozen=True)
class Published:
    """A row of the table; shares are of words, and layers and heads are counted from one there."""

    name: str
    head: str
    share: float
    baseline: float
    offset: int  # where the head stands, seen from the dependent


PUBLISHED = {
    "all": Published("All", "7-6", 0.345, 0.263, 1),
    "prep": Published("prep", "7-4", 0.667, 0.618, -1),
    "case": Published("pobj", "9-6", 0.763, 0.346, 2),  # -2 from the noun, where it depends
    "det": Published("det", "8-11", 0.943, 0.517, 1),
    f"compound:{PLAIN}": Published("nn", "4-10", 0.704, 0.702, 1),
    f"nsubj:{PLAIN}": Published("nsubj", "8-2", 0.585, 0.455, 1),
    "amod": Published("amod", "4-10", 0.756, 0.683, 1),
    "obj": Published("dobj", "8-10", 0.868, 0.400, -2),
    "advmod": Published("advmod", "7-6", 0.488, 0.402, 1),
    f"aux:{PLAIN}": Published("aux", "4-10", 0.811, 0.715, 1),
    "nmod:poss": Published("poss", "7-6", 0.805, 0.477, 1),
    "aux:pass": Published("auxpass", "4-10", 0.825, 0.405, 1),
    "ccomp": Published("ccomp", "8-1", 0.488, 0.124, -2),
    "mark": Published("mark", "8-2", 0.507, 0.145, 2),
    "compound:prt": Published("prt", "6-7", 0.991, 0.914, -1),
}
"""By the name of a relation."""


def published(relation: str, among: Collection[str]) -> Published | None:
    """The row for a relation; without subtypes in the data, `aux` is what is called `aux` there."""
    plain = f"{relation}:{PLAIN}"
    return PUBLISHED.get(relation) or (None if plain in among else PUBLISHED.get(plain))


# Column of `links`: title with a place for the links, where colours part, reading.
FOLLOWED = {
    "excess": (
        "{} followed, beyond the best fixed offset",
        0.0,
        "Above 0: the head finds the linked word better than always looking so many words away.",
    ),
    "share": (
        "{} followed",
        None,
        "High: the word that the source attends to most is the linked one.",
    ),
    "selectivity": (
        "{} followed, beyond from other words",
        0.0,
        "Above 0: the head finds the word from its source more than from any other word.",
    ),
    "excess_with_special": (
        "{} followed, [CLS] and [SEP] in the running, beyond the best fixed offset",
        0.0,
        "Above 0: the linked word gets more than special tokens, too, and the offset is beaten.",
    ),
}
_WORDS = {
    "to-head": "{} links from words to their heads",
    "to-dependent": "{} links from words to what depends on them",
    "forward": "{} links",
    "backward": "{} links, turned round,",
}


class LinksResult(Result):
    """Its table `links` has a row for each relation, direction and head."""

    @property
    def guessed(self) -> str:
        """Says so where a tagger decided what is linked."""
        who = self.facts["tagger"]
        if who == BY_CORPUS or "noun-pronoun" not in set(self.tables["relations"]["relation"]):
            return ""
        return f"Nouns and pronouns: {who}; which belong together is guessed."

    def judged(self, rows: pd.DataFrame, gain: str) -> pd.DataFrame:
        """Sure: better than the offset and than from other words, corrected for both questions."""
        tests = rows[[f"{gain}_p", "selectivity_p"]].max(axis=1)
        gains = rows[[gain, "selectivity"]].min(axis=1)
        return rows.assign(sure=(tests < (1 - self.facts["level"]) / 2) & (gains > 0))

    def by_direction(self) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
        """Relation, direction and their rows of `links`."""
        groups = self.tables["links"].groupby(["relation", "direction"], sort=False)
        return (((str(r), str(d)), rows) for (r, d), rows in groups)

    def followed(self, relation: str, direction: str, rows: pd.DataFrame, column: str) -> Measure:
        """A column of `links` as a measure of heads."""
        title, middle, reading = FOLLOWED[column]
        infix = "" if direction == "forward" else f"{direction}-"
        return Measure.of_column(
            self.judged(rows, "excess"),
            column,
            name=f"{dashed(relation)}-{infix}{dashed(column)}",
            title=title.format(_WORDS[direction].format(relation)),
            unit="% of links" if column == "share" else "points (% of links)",
            sure="sure" if column == "excess" else None,
            scale=100.0,
            middle=middle,
            reading=reading,
        )

    def grid_of(self, relation: str, direction: str, rows: pd.DataFrame) -> Drawing:
        """The heads that follow a relation, among words and with special tokens."""
        excess, share = (self.followed(relation, direction, rows, c) for c in ("excess", "share"))
        # Colours are of what a head finds: against the offset nearly all heads are losers, and
        # the best would be the palest. The offset is a line in the scale.
        special = 100 * column_grid(rows, "share_with_special")
        panels = [replace(share, sure=excess.sure), replace(share, values=special)]
        offsets = share.values - excess.values
        known = bool(np.isfinite(offsets).any())  # not where there are no links
        offset = float(np.nanmean(offsets)) if known else np.nan
        reading = (
            "A link counts as followed if its target is the word that the source attends to most: "
            "left among words, right with [CLS] and [SEP] in the running."
        )
        beside = (
            f" The best fixed offset, such as the word before, finds {offset:.0f} % (line in the "
            "scale)."
        )
        return drawings.grids(
            dashed(relation),
            panels,
            self.about,
            title=f"Heads that follow {_WORDS[direction].format(relation).rstrip(',')}",
            reading=f"{reading}{beside if known else ''} "
            f"{self.guessed if relation == 'noun-pronoun' else ''}".strip(),
            labels=["among words", "special tokens too"],
            sure="are surely better than the offset, and than from other words, corrected",
            level=(f"the best fixed offset, {offset:.0f} %", offset) if known else None,
            shared=True,
        )


_DEPENDENCIES = frozenset({Field.HEADS, Field.RELATIONS})
_GRIDS = 6  # relations whose heads are shown where all were looked at
_NOT_ASKED = "not judged: this relation was not asked for, or is in too few sentences"
_NONE_FOLLOWS = (
    "not judged: no head of this model surely follows a relation, so that what heads do not do "
    "says nothing"
)
MOST = 0.5  # of the words, as in the claim
_NO_CANDIDATE = "not judged: too few such links, or no head surely comes near the best fixed offset"
_RELATIONS = (
    "One row for each relation. Left: of how many words the best head attends most to the linked "
    "one, in per cent (dots, with intervals for all relations together), the best fixed offset "
    "(grey bars){}. Right: the gain over the offset, where its interval is narrower than a hundred "
    "points. Head and direction were picked on one half of the sentences and scored on the other."
)


class SyntaxHeadsResult(LinksResult):
    """How often each head's most attended word is the linked one, relation by relation.

    Table `relations`: the best head and direction of each relation, cross-fitted, beside the best
    fixed offset (`offset`: where the head of a word stands, seen from the word) and what Clark et
    al. published of BERT-base (layers and heads counted from one there); `heads`: the relation that
    each head follows best, cross-fitted; `directions`: as `relations`, for each direction; `links`:
    every head, with tests for all relations, directions and heads together, and where relations
    were named with bounds and `alone_high`, what this head at most gains, alone; `offsets`: what
    fixed offsets find; `found`, where relations were named: how many links there are at each offset
    (where the head of a word stands, seen from the word), and how many of them are found.
    """

    lead: ClassVar[int] = 4
    strongest: ClassVar[Mapping[str, str]] = {
        "relations": "gain",
        "heads": "gain",
        "directions": "gain",
        "links": "excess",
    }
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        **{
            name: {
                **dict.fromkeys(("gain", "selectivity"), "points"),
                **dict.fromkeys(
                    ("share", "share_with_special", "baseline", "published", "published_baseline"),
                    "%",
                ),
            }
            for name in ("relations", "heads", "directions")
        },
        "links": {
            **dict.fromkeys(("excess", "selectivity", "excess_with_special"), "points"),
            **dict.fromkeys(("share", "share_with_special"), "%"),
        },
        "offsets": {"share": "%"},
    }

    def with_sure(self, name: str) -> pd.DataFrame:
        """Rows that beat the offset and other words, where heads are told."""
        table = self.tables[name]
        gain = "excess" if name == "links" else "gain"
        return self.judged(table, gain) if f"{gain}_p" in table else table

    @property
    def answer(self) -> str:
        """How many relations have a head, and the strongest of them beside the best offset."""
        rows = self.relations()
        sure = rows[rows["sure"]]
        row = (sure if len(sure) else rows).sort_values("gain", ascending=False).iloc[0]
        if not len(sure):
            return f"No head surely does: {self._told(row)}."
        how_many = f" for {len(sure)} of {len(rows)} relations" if len(rows) > 1 else ""
        return f"Surely yes{how_many}: {self._told(row)}."

    def _told(self, row: pd.Series) -> str:
        """What the best head of a relation finds."""
        share, gain = (of_row(row, (c, f"{c}_low", f"{c}_high")) for c in ("share", "gain"))
        relation, direction = str(row["relation"]), str(row["direction"])
        source, _, target = relation.partition("-")
        if direction in ("to-head", "to-dependent"):
            links = f"points {'up' if direction == 'to-head' else 'down'} {relation} arcs"
        elif target:
            ends = (source, target) if direction == "forward" else (target, source)
            links = f"points from the {ends[0]} to its {ends[1]}"
        else:
            links = f"follows {relation}"
        side = "above" if gain.value >= 0 else "beyond"
        return (
            f"{head_name(row)} {links} in {percent(share)} of links, "
            f"{points(gain, '.0f')} {side} the best fixed offset"
        )

    def headline(self) -> str:
        """The relations with a head, and how many heads follow one."""
        rows = self.relations()
        sure = rows[rows["sure"]].sort_values("gain", ascending=False)
        told = [
            f"{row['relation']} {int(row['layer'])}.{int(row['head'])} "
            f"({number_text(100 * row['share'], '.0f')} %, offset "
            f"{number_text(100 * row['baseline'], '.0f')} %)"
            for _, row in sure.iterrows()
        ]
        none = [str(r) for r in self.tables["relations"].query("n == 0")["relation"]]
        heads = self.tables["heads"]
        following = int(self.sure_heads().sum())
        return " ".join(
            text
            for text in (
                f"Relations with a head that surely beats the offset: {listed(told)}.",
                f"{following} of {len(heads)} heads surely follow some relation.",
                f"No links: {listed(none)}." if none else "",
                self.guessed,
            )
            if text
        )

    def relations(self) -> pd.DataFrame:
        """The relations that have links, and of which it is `sure` that a head follows them."""
        return self.judged(self.tables["relations"].query("n > 1"), "gain")

    def sure_heads(self) -> pd.Series:
        """Rows of `heads` that surely follow a relation."""
        return self.judged(self.tables["heads"], "gain")["sure"]

    def measures(self) -> Sequence[Measure]:
        """The best relation of each head, then how well heads follow each relation.

        Where all relations were looked at, those of the published table.
        """
        heads = self.tables["heads"].assign(sure=self.sure_heads())
        kinds = sorted(set(heads["relation"]))
        by_name = {name: at for at, name in enumerate(kinds)}
        best = Measure.of_column(
            heads,
            "gain",
            name="best-relation-gain",
            title="Links of the head's best relation, beyond the best fixed offset",
            unit="points (% of links)",
            sure="sure",
            scale=100.0,
            middle=0.0,
            reading="Above 0: the head finds words of one relation better than an offset does.",
        )
        which = Measure.of_column(
            heads.assign(kind=[by_name[name] for name in heads["relation"]]),
            "kind",
            name="best-relation",
            title="The relation that the head follows best",
            kinds=tuple(kinds),
            reading="Picked among all relations; whether it is sure is told by its gain.",
        )
        found = [best, which]
        asked, names = bool(self.facts["asked"]), set(self.tables["relations"]["relation"])
        for (relation, direction), rows in self.by_direction():
            if asked or published(relation, names):
                columns = list(FOLLOWED) if asked else ["excess"]
                found += [self.followed(relation, direction, rows, c) for c in columns]
        return found

    def drawings(self) -> Sequence[Drawing]:
        """Relations beside offsets and what was published; heads; the heads of some relations."""
        rows = self.relations().sort_values("gain", ascending=False, kind="stable")
        told = rows[rows["gain_high"] - rows["gain_low"] < 1]  # wider ones tell nothing
        rows = told if len(told) else rows
        known = rows["published"].notna().any()
        also = ", and what was published of BERT-base (hollow diamonds)" if known else ""
        best, *_ = self.measures()
        found = [
            Drawing("relations", partial(self._relations, rows), _RELATIONS.format(also)),
            drawings.grid(best, self.about, name="heads"),
        ]
        shown = rows if self.facts["asked"] else rows[rows["sure"]].head(_GRIDS)
        chosen = dict(zip(shown["relation"], shown["direction"], strict=True))
        if self.facts["asked"]:  # as they were asked for, from the source to the target
            directions = self.tables["directions"].groupby("relation", sort=False)["direction"]
            chosen = {str(name): str(of.iloc[0]) for name, of in directions}
        by_direction = dict(self.by_direction())
        return [*found, *(self.grid_of(r, d, by_direction[r, d]) for r, d in chosen.items())]

    def _relations(self, rows: pd.DataFrame) -> Figure:
        names = [
            f"{row['relation']}  {int(row['layer'])}.{int(row['head'])}"
            for _, row in rows.iterrows()
        ]
        known = bool(rows["published"].notna().any())
        return interval_dots(
            [
                Dots.of_columns(
                    "words found (%)", rows, "share", bars="baseline", hollow="published"
                ),
                Dots.of_columns("gain over the offset (points)", rows, "gain", level=0.0),
            ],
            names,
            title=f"Relations and their best heads\n{self.about}",
            note="Grey bars: the best fixed offset."
            + (" Hollow diamonds: Clark et al. (2019), BERT-base." if known else ""),
        )


@dataclass(frozen=True)
class SyntaxHeads(FollowedLinks):
    """Is there a head for each syntactic relation, and a relation for each head?

    Method: from each word the word that a head attends to most is taken (attention to a word is
    the sum over its pieces, attention from a word the mean over them; the word itself does not
    count; once among words, once with special tokens in the running). For each dependency relation
    and each direction (words attend to their head; heads attend to what depends on them) the share
    of links whose other end is that word is compared with that of the best fixed offset (so many
    words to the left or right, for any number). Head and direction are picked on one half of the
    sentences and scored on the other; the offset is the best of all sentences, which flatters it a
    little and never the head. `selectivity` is the share of hits less that of finding the same word
    from the other words of the sentence: a head that looks there whatever the source follows no
    link. Claims need both. Intervals are over sentences and hold for all relations together; a
    claim about one relation, named before looking, has one for that relation alone. The other way
    round, each head's surest relation is picked on one half and scored on the other.
    Relations are those of the corpus: with their subtypes (`aux`), subtypes (`aux:pass`), those
    without (`aux:plain`), `all` but punctuation, and `prep`, from a word to the preposition of what
    depends on it. Others may be named: `verb-subject`, `noun-pronoun`, `frame`, your own `links`.

    Source: Clark et al. (2019), section 4.2, Table 1; Revealing the Dark Secrets of BERT (EMNLP
    2019), section 4.5, for verbs and subjects, nouns and pronouns. Limits: attention to the right
    word is not yet use of it. Where heads attend to dependents, a word with several of one
    relation can be right for one of them only; Clark et al. ask which word attends most to the
    dependent instead. `noun-pronoun` links are guessed where a corpus has no coreference: the
    nearest noun before the pronoun. Where it has no parts of speech, they are a tagger's.
    """

    needs: ClassVar[Needs] = MAPS_OF_TEXTS
    finds_words: ClassVar[bool] = True
    version: ClassVar[int] = 3  # of named relations, at which offsets links are found
    result_type: ClassVar[type[Result]] = SyntaxHeadsResult
    # Little is kept of a sentence. Of 128 sentences some are long and many short, and half of what
    # a model computes would be padding.
    block: ClassVar[int] = 1024
    block_on_gpu: ClassVar[int | None] = 4096

    relations: tuple[str, ...] = parameter(
        (), "Relations such as obj or verb-subject; by default all dependencies of the corpus."
    )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse relations and annotation that the corpus does not have."""
        from bertology.annotated.tagged_batches import added_fields

        super().check(encoder, corpus)
        for relation in self.relations:
            check_relation(relation, corpus, added=added_fields(corpus, self.tagger))
        if not self.relations and not (
            corpus.fields >= _DEPENDENCIES or Field.LINKS in corpus.fields
        ):
            raise CapabilityError(
                f"The corpus {corpus.name!r} annotates no links between words.",
                hint="Give one with dependency trees (a .conllu file, grammar) or with links of "
                "your own; noun-pronoun links can be guessed: --relations noun-pronoun. What [CLS] "
                "attends to needs none: bertology run cls-attention",
            )

    def _asked(self, corpus: Corpus) -> tuple[str, ...]:
        """The relations given; none for all dependencies; else the corpus's own links."""
        return self.relations or (() if corpus.fields >= _DEPENDENCIES else (OWN,))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """The word that each word attends to most, by head, and the links between words."""
        from bertology.annotated.linked_batches import LinkedExample
        from bertology.annotated.tagged_batches import annotated
        from bertology.annotated.words import word_batches
        from bertology.model.reducers.most_attended import MostAttendedWords

        asked, block = self._asked(corpus), self.of_block(part, corpus)
        who = BY_CORPUS
        if "noun-pronoun" in asked:
            block, who = annotated(block, self.tagger)
        found = LinkParts(len(block))
        for read in word_batches(encoder, block, tokens_per_batch=context.batch_tokens):
            linked = [LinkedExample.of(one, asked) for one in read.examples]
            rows = [row for row, one in enumerate(linked) if one.links]
            if rows:
                batch, some = read.batch.only(rows), [linked[row] for row in rows]
                most = MostAttendedWords(
                    batch, [one.pieces for one in some], [one.phrases for one in some]
                )
                encoder.run(batch, reduce={"layer.*.head.*.pattern": most})
                found.take(batch.indices, some, most.value())
            context.advance(len(read.batch))
        data = found.part(part, (encoder.shape.layers, encoder.shape.heads))
        data.attrs |= {"tagger": who, "own": int(asked == (OWN,))}
        return data

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Shares of followed links against offsets, for the best of each relation and head."""
        counts = LinkCounts(measured)
        asked = self.relations or ((OWN,) if counts.facts["own"] else ())
        questions = questions_of(counts, asked)
        if counts.sentences(counts.names) < 2:
            raise DataError(
                "Fewer than two sentences have such links.",
                hint="Give more sentences, or relations that are in them (--relations).",
            )
        some = next(iter(measured.values()))
        shape = some.sizes["layer"], some.sizes["head"]
        tables = self.looked_through(counts, questions, shape, named=bool(asked))
        _with_published(tables["relations"])
        compared: list[Compared | None] = []
        if asked and any(question.of_trees for question in questions):
            tables["found"], compared = found_links(measured, counts, questions, level=self.level)
        evidence: dict[str, Estimate | None] = dict(self.gains(tables["relations"]))
        evidence |= self.gains(tables["directions"], by_direction=True)
        if asked:
            evidence |= followed_evidence(tables["links"], self.level)
        else:
            following, whole = self.following(tables["heads"]), self._all(tables["relations"])
            # What heads do not do says something only of a model of which some head does something.
            follow = following is not None and following.low > 0
            evidence["following_heads"] = following if follow else None
            evidence["all_share"] = whole if follow or whole.low > MOST else None
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons={
                "": _NOT_ASKED,
                **({} if asked else dict.fromkeys(("following_heads", "all_share"), _NONE_FOLLOWS)),
                **{
                    f"{name}_candidate_excess": _NO_CANDIDATE
                    for name in ("verb_subject", "noun_pronoun")
                    if f"{name}_excess" in evidence
                },
            },
            facts={
                "examples": counts.sentences(counts.names),
                "tagger": counts.facts["tagger"],
                "asked": int(bool(asked)),
            },
            compared=compared,
        )

    def _all(self, relations: pd.DataFrame) -> Estimate:
        """What the best head finds of all relations together."""
        row = relations[relations["relation"] == ALL].iloc[0]
        value, low, high = (float(row[f"share{end}"]) for end in ("", "_low", "_high"))
        return Estimate(value, low, high, int(row["n"]), self.level, "sentences")


def _with_published(relations: pd.DataFrame) -> None:
    """Beside each relation what Clark et al. (2019) have in their table."""
    names = list(relations["relation"])
    found = [published(str(name), names) for name in names]
    for column, missing in (
        ("name", ""),
        ("share", np.nan),
        ("head", ""),
        ("baseline", np.nan),
        ("offset", np.nan),
    ):
        title = "published" if column == "share" else f"published_{column}"
        relations[title] = [missing if one is None else getattr(one, column) for one in found]
