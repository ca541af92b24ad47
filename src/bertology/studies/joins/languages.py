"""Languages: what do heads do where verbs stand last, or where the order of words is freer?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from scipy.special import entr

from bertology.arrays import Floats
from bertology.data.languages import language
from bertology.data.map_labels import MAP_TYPES
from bertology.errors import DataError, ParameterError
from bertology.parameters import parameter
from bertology.report.figures import Dots, interval_dots, scatter_with_rank
from bertology.report.figures.named_grid import named_grid
from bertology.results.answers import NOTHING_SURE, head_name, listed, plain, points
from bertology.results.compared import read_compared
from bertology.results.drawing import Drawing
from bertology.results.hundredths import rows_in_hundredths
from bertology.results.result import Result
from bertology.stats import Estimate, mean_interval
from bertology.stats.kinds import correlation_by_exchange, over_items, over_things
from bertology.stats.language_pairs import shared_ranks
from bertology.stats.multiplicity import holm
from bertology.studies.ablation.masked_word_ablation import (
    HEAD_COST,
    LEAST_LAYER,
    NATS,
    WORST_LAYER,
)
from bertology.studies.attention.map_types import MAPS_NAMED
from bertology.studies.attention.syntax_heads.found_links import ELSEWHERE, GAIN, OFFSET, SHARE
from bertology.studies.attention.syntax_heads.link_counts import FEWEST
from bertology.studies.attention.token_classes import ATTENTION_TO, PARTS
from bertology.studies.join import ResampledJoin

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TYPES, CLASSES, LINKS = "map-types", "token-classes", "syntax-heads"
ABLATION = "masked-word-ablation"
VERB_FINAL, FREER, OTHER = "verb-final", "freer order", "other"
_KINDS = (VERB_FINAL, FREER, OTHER)
_DIAGONAL = [MAPS_NAMED.format(name) for name in MAP_TYPES if "diagonal" in name]


class Number(NamedTuple):
    """One number of a language: what it is called, and the rows of sentences that it is made of.

    Rows of several titles are added up. A title with a place for a relation is asked of all
    relations that the languages have in common, or of `relation`; these are averaged.
    """

    study: str
    label: str
    titles: Sequence[str]
    relation: str = ""
    unit: str = "%"


NUMBERS = {
    "diagonal": Number(TYPES, "maps with a diagonal", _DIAGONAL),
    "vertical": Number(TYPES, "vertical maps", [MAPS_NAMED.format("vertical")]),
    "heterogeneous": Number(TYPES, "heterogeneous maps", [MAPS_NAMED.format("heterogeneous")]),
    **{
        f"to_{part}": Number(CLASSES, ATTENTION_TO.format(name), [ATTENTION_TO.format(name)])
        for part, name in PARTS.items()
    },
    "found": Number(LINKS, "links found by the best heads", [SHARE]),
    "gain": Number(LINKS, "links found, beyond the best offset", [GAIN]),
    "elsewhere": Number(LINKS, "links found at other offsets", [ELSEWHERE]),
    "object_gain": Number(LINKS, "objects found, beyond the best offset", [GAIN], "obj"),
    "object_offset": Number(LINKS, "offset of objects found", [OFFSET], "obj", "words"),
    "subject_gain": Number(LINKS, "subjects found, beyond the best offset", [GAIN], "nsubj"),
    "subject_offset": Number(LINKS, "offset of subjects found", [OFFSET], "nsubj", "words"),
    "head_cost": Number(ABLATION, "loss without one head", [HEAD_COST], unit=NATS),
    "layer_cost": Number(ABLATION, "loss without the layer missed most", [WORST_LAYER], unit=NATS),
    "least_layer_cost": Number(
        ABLATION, "loss without the layer missed least", [LEAST_LAYER], unit=NATS
    ),
}
_SHOWN = ("diagonal", "heterogeneous", "to_sep", "found", "gain", "elsewhere", "head_cost")
_WITH_ORDER = ("diagonal", "gain", "elsewhere")
_PANELS = 6  # relations with a panel: those that stand most differently
_SET_AGAINST = "the best fixed offset in these languages"
_CONTRASTS = (
    "One row for each number, one panel for each kind of languages: by how many points it is "
    "higher in languages of the kind than in the other ones, which are neither verb-final nor of "
    "freer order. Bars are intervals over sentences, which all languages read alike, for all rows "
    "and panels together; they are about these languages. Right of the dashed line: more."
)
_LANGUAGES = (
    "One row for each language, by kind; a panel for each number. Shares of maps and of attention "
    "are of all heads; links are means over the relations that all languages have; the loss of "
    "hidden words is what it rises by, mean over heads. "
    "Bars are intervals over sentences, of each language alone."
)
_RELATIONS = (
    "One row for each language, by kind; a panel for each relation, at most the six of which the "
    "usual offset differs most. Dots: the mean offset of the links that the best head finds, in "
    "words: right of the dashed line the head of a word stands after it. Bars are intervals over "
    "sentences. Hollow diamonds: the mean offset of all links in the treebank."
)
_ORDER = (
    "One dot for each language. To the right: how free the order of words is, the entropy of the "
    "side on which heads stand, mean over relations, in bits. Upwards: links that heads find "
    "beyond the best fixed offset, in per cent. If freer order asks more of heads, dots rise to "
    "the right."
)
_SHARED = (
    "One cell for each pair of languages: how far the heads that hidden words miss most in one are "
    "those that they miss most in the other, as a rank correlation of heads within their layers, "
    "times a hundred. The two are taken over different sentences; on the diagonal a language is "
    "compared with itself, which is as much as could be expected of others."
)


class LanguagesResult(Result):
    """Languages side by side. Tables:

    `contrasts`: languages of a kind less the others, over sentences (value, bounds and test for all
    rows together: of these languages), and over languages (`of_kind`, with the test of exchanging
    languages: of languages of that kind). `languages`: each number of each language. `order`:
    texts, pieces, unknown pieces, and how free the order is. `relations`: of each relation and
    language the offset that most links have, where links are found, and what the head that is best
    in languages of other kinds finds here (`carried_`). `ablation`: of each language, what hidden
    words lose without heads and layers. `shared_heads`: of each pair of languages whether they lose
    by the same heads. `left_out`: languages that the tokenizer does not know, and why.
    """

    lead: ClassVar[int] = 4
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "relations": {
            **dict.fromkeys(("gain", "carried"), "points"),
            **dict.fromkeys(("share", "baseline", "elsewhere", "carried_share"), "%"),
        },
        "order": {"unknown": "%"},
    }

    def in_units(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """Shares are in per cent, but offsets in words."""
        if name not in ("contrasts", "languages"):
            return super().in_units(name, table)
        columns = ["value", "of_kind"] if name == "contrasts" else ["value"]
        return rows_in_hundredths(table, table["unit"] == "%", columns)

    @property
    def answer(self) -> str:
        """What sets languages of each kind apart, in maps and in links."""
        found = self.evidence()
        told = []
        for kind, where in ((VERB_FINAL, "verb-final languages"), (FREER, "those of freer order")):
            parts = [
                f"{points(found[name])} in {what}"
                for key, what in (("diagonal", "diagonal maps"), ("gain", "links beyond an offset"))
                if (name := f"{_named(kind)}_{key}") in found
            ]
            if parts:
                told.append(f"{where} differ by {listed(parts)}")
        if told:
            return f"From the other languages, {'; '.join(told)} (these languages only)."
        if (shared := found.get("heads_shared")) is not None:
            return (
                "What hidden words lose without each head has a rank correlation of "
                f"{plain(shared, '.2f')} between two languages."
            )
        return f"{NOTHING_SURE}: {self.reasons().get('', 'no kinds could be compared')}."

    def headline(self) -> str:
        """Which languages there are of each kind."""
        table = self.tables["order"]
        of = [f"{kind}: {listed(rows['name'])}" for kind, rows in table.groupby("kind", sort=False)]
        gone = list(self.tables["left_out"]["name"]) if "left_out" in self.tables else []
        return "; ".join([*of, *([f"left out: {listed(gone)}"] if len(gone) else [])])

    def drawings(self) -> Sequence[Drawing]:
        """Kinds of languages, every language, where links are found, and the order of words."""
        known = set(self.tables["languages"]["number"])
        found = []
        if "contrasts" in self.tables and (self.tables["contrasts"]["unit"] == "%").any():
            found.append(Drawing("contrasts", self._draw_contrasts, _CONTRASTS))
        found.append(Drawing("languages", self._draw_languages, _LANGUAGES))
        if "relations" in self.tables:
            found.append(Drawing("relations", self._draw_relations, _RELATIONS))
        if "gain" in known:
            found.append(Drawing("order", self._draw_order, _ORDER))
        if "shared_heads" in self.tables:
            found.append(Drawing("shared-heads", self._draw_shared, _SHARED))
        return found

    def _draw_contrasts(self) -> Figure:
        table = self.tables["contrasts"]
        table = table[table["unit"] == "%"]
        labels = list(dict.fromkeys(table["label"]))
        panels = []
        for kind, rows in table.groupby("kind", sort=False):
            of = rows.set_index("label").reindex(labels)
            panels.append(
                Dots.of_columns(f"{kind} less other languages (points)", of, "value", level=0)
            )
        return interval_dots(
            panels, labels, title=f"Kinds of languages\n{self.about}", same_scale=True,
            note=f"Over {int(table['n'].max())} sentences; intervals for all rows together.",
        )  # fmt: skip

    def _draw_languages(self) -> Figure:
        table, order = self.tables["languages"], self.tables["order"]
        panels = []
        for key in (key for key in _SHOWN if key in set(table["number"])):
            rows = table[table["number"] == key].set_index("language").reindex(order["language"])
            label, unit = NUMBERS[key].label, NUMBERS[key].unit
            scale = 100.0 if unit == "%" else 1.0
            panels.append(Dots.of_columns(f"{label} ({unit})", rows, "value", scale=scale))
        return interval_dots(
            panels, self._rows(order), title=f"Heads in {len(order)} languages\n{self.about}"
        )

    @staticmethod
    def _rows(order: pd.DataFrame) -> list[str]:
        short = {VERB_FINAL: " (verb-final)", FREER: " (freer)", OTHER: ""}
        return [f"{row['name']}{short[row['kind']]}" for _, row in order.iterrows()]

    def _draw_relations(self) -> Figure:
        table, order = self.tables["relations"], self.tables["order"]
        spread = table.groupby("relation", sort=False)["offset"].std()
        shown = table[table["relation"].isin(spread.nlargest(_PANELS).index)]
        panels = []
        for relation, rows in shown.groupby("relation", sort=False):
            of = rows.set_index("language").reindex(order["language"])
            sides = (of[c].to_numpy(float) for c in ("found_at", "found_at_low", "found_at_high"))
            panels.append(
                Dots(f"{relation}", *sides, level=0, hollow=of["links_at"].to_numpy(float))
            )
        return interval_dots(
            panels, self._rows(order), title=f"Where heads find links (words)\n{self.about}",
            note="Hollow: the mean offset of all links in the treebank. Of each language alone.",
        )  # fmt: skip

    def _draw_order(self) -> Figure:
        table = self.tables["languages"]
        gain = table[table["number"] == "gain"].set_index("language")["value"]
        order = self.tables["order"].set_index("language")["side_entropy"].reindex(gain.index)
        return scatter_with_rank(
            order, 100 * gain, title=f"Freer order and links\n{self.about}",
            xlabel="entropy of the side of heads (bits)",
            ylabel="links found, beyond the best offset (%)",
            rank=self.evidence().get("order_gain"),
        )  # fmt: skip

    def _draw_shared(self) -> Figure:
        table, names = self.tables["shared_heads"], self.tables["order"].set_index("language")
        codes = [code for code in names.index if code in set(table["language"])]
        pairs = table.set_index(["language", "with"])["correlation"]
        titles = [str(names["name"][code]) for code in codes]
        return named_grid(
            100 * pairs.to_numpy(float).reshape(len(codes), len(codes)),
            rows=titles, columns=titles, center=0.0,
            title=f"Heads that hidden words miss\n{self.about}", label="rank correlation × 100",
            note="Of heads within their layers, over different sentences.",
        )  # fmt: skip


@dataclass(frozen=True)
class Languages(ResampledJoin):
    """Do heads behave otherwise in languages that are verb-final, or have a freer order of words?

    Combines results of `map-types`, `token-classes`, `syntax-heads` (of named relations) and
    `masked-word-ablation` of one model over the same items in several languages, one language in
    each result.

    Method: of every language shares of maps, of attention, and of links that the best heads find,
    sentence by sentence. Languages of a kind less the others are told twice. Of these languages:
    the intervals are over sentences, paired, since all languages have the same; in the table
    corrected (Bonferroni for bounds, Holm for tests) for all numbers and kinds. Of languages of
    that kind (`of_kind`): the intervals are Student's over languages, and exchanging languages
    between the two kinds in all ways decides whether there is a difference; of two languages and
    seven others the rarest way is one of 36, and of many numbers none is then sure after
    correction. Verb-final is what the World Atlas of Language Structures calls so (its chapter 81A:
    SOV); languages of freer order are named (`freer`), and how free the order is in the treebank is
    measured beside it: the entropy of the side on which the head of a word stands, mean over
    relations. Links are of the relations that all languages have. `carried`: the head that finds
    most links of a relation in languages of other kinds, and what it finds here beyond the offset
    that most links have there, and from other words; whichever is less. A head that only looks so
    many words away gains nothing here. `heads_shared`: whether hidden words miss the same heads in
    all languages of which the model knows something: the rank correlation of heads within their
    layers, over sentences that two languages do not share, mean over pairs. Its interval is over
    languages; shuffling the heads of each layer decides on which side of 0 it lies. Languages that
    the tokenizer does not know are left out: of too many unknown pieces, or whose texts take many
    more pieces than their translations.

    Source: the question that the conclusion of Revealing the Dark Secrets of BERT (EMNLP 2019)
    leaves open. Limits: one model, and its share of text of each language. Where words are cut into
    more pieces, texts are longer and diagonals other; pieces stand beside. Languages of one family
    are not independent, which the test over languages does not know. Treebanks do not all cut words
    alike. Map types are as a network names them, whose mistakes may differ by language.
    """

    version: ClassVar[int] = 2  # what hidden words lose without heads
    result_type: ClassVar[type[Result]] = LanguagesResult
    sources: ClassVar[tuple[str, ...]] = (TYPES, CLASSES, LINKS, ABLATION)
    over: ClassVar[str] = "languages"
    made_by: ClassVar[str] = (
        "`bertology reproduce dark-secrets --languages all` makes it, and `bertology join` of "
        "stored results."
    )
    lacking: ClassVar[str] = "it needs results over the same texts in several languages"

    freer: tuple[str, ...] = parameter(
        ("cs", "fi", "hu", "ru"), "Languages of freer order, by their codes."
    )
    unknown: float = parameter(
        0.1,
        "Languages with a larger share of unknown pieces are left out.",
        minimum=0.0,
        maximum=1.0,
    )
    pieces: float = parameter(
        1.5,
        "So are those whose texts take so many times the pieces of the median language.",
        minimum=1.0,
    )

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """Numbers of every language, and of kinds of languages."""
        import pandas as pd

        by_study = _by_study(results, name)
        gone = self._left_out(results)
        kept: dict[str, dict[str, Result]] = {
            study: {code: r for code, r in of.items() if code not in gone}
            for study, of in by_study.items()
        }
        codes = self._ordered({code for of in kept.values() for code in of})
        if len(codes) < 2:
            raise DataError(
                f"Languages are compared of two or more. Left are: {listed(codes)}.",
                hint="Give results over more languages that the model knows.",
            )
        links = kept.get(LINKS, {})
        rows = _Rows(kept)
        order = self._order(codes, kept, rows.relations)
        tables = {"order": order, "languages": self._languages(codes, rows)}
        contrasts, evidence = self._contrasts(codes, rows)
        if len(contrasts):
            tables["contrasts"] = contrasts
        if rows.relations:
            tables["relations"] = self._relations(codes, links, rows)
            evidence |= self._carried(tables["relations"])
            evidence |= self._with_order(order, tables["languages"])
        if ABLATION in kept:
            of_codes = {code: kept[ABLATION][code] for code in codes if code in kept[ABLATION]}
            tables["ablation"] = self._ablation(of_codes)
            shared, alike = self._shared_heads(of_codes)
            evidence |= {"heads_shared": alike}
            if len(shared):
                tables["shared_heads"] = shared
        if gone:
            tables["left_out"] = pd.DataFrame(
                [(code, language(code).name, why) for code, why in gone.items()],
                columns=["language", "name", "why"],
            )
        identities = {s: {c: r.identity for c, r in of.items()} for s, of in by_study.items()}
        return self.result(
            self.provenance(name, results[0], identities),
            {n: tables[n] for n in
             ("contrasts", "languages", "order", "relations", "ablation", "shared_heads",
              "left_out") if n in tables},
            evidence=evidence,
            reasons={
                "": "not judged: too few languages of this kind, or no results of this study"
            },
            facts={"languages": len(codes), "relations": ", ".join(rows.relations)},
        )  # fmt: skip

    def kind(self, code: str) -> str:
        """Which kind a language is of."""
        if language(code).verb_final:
            return VERB_FINAL
        return FREER if code in self.freer else OTHER

    def _ordered(self, codes: set[str]) -> list[str]:
        return sorted(codes, key=lambda c: (_KINDS.index(self.kind(c)), language(c).name))

    def _left_out(self, results: Sequence[Result]) -> dict[str, str]:
        """Languages that the tokenizer does not know, and why that is said.

        Texts are translations of each other, so that their pieces can be compared.
        """
        pieces = {_language(result): _pieces(result) for result in results}
        usual = float(np.nanmedian(list(pieces.values()))) if pieces else np.nan
        found = {}
        for code, unknown in {_language(result): _unknown(result) for result in results}.items():
            if unknown > self.unknown:
                found[code] = f"{100 * unknown:.1f} % of its pieces are unknown"
            elif pieces[code] > self.pieces * usual:
                found[code] = (
                    f"its texts take {pieces[code]:.0f} pieces, those of the median language "
                    f"{usual:.0f}: words are spelt out"
                )
        return found

    # Tables --------------------------------------------------------------------------------------

    def _languages(self, codes: Sequence[str], rows: _Rows) -> pd.DataFrame:
        import pandas as pd

        found = []
        for key, about in NUMBERS.items():
            for code in codes:
                if (of := rows.of(key, [code])) is not None:
                    e, _ = over_items(of, [1.0], level=self.level)
                    told = (e.value, e.low, e.high, e.n)
                    found.append((code, self.kind(code), key, about.label, about.unit, *told))
        return pd.DataFrame(
            found,
            columns=["language", "kind", "number", "label", "unit", "value", "low", "high", "n"],
        )

    def _contrasts(
        self, codes: Sequence[str], rows: _Rows
    ) -> tuple[pd.DataFrame, dict[str, Estimate | None]]:
        """Each kind less the others: a table, and what claims are judged on."""
        import pandas as pd

        of_kind = {kind: [c for c in codes if self.kind(c) == kind] for kind in _KINDS}
        asked = [(kind, key) for kind in (VERB_FINAL, FREER) for key in NUMBERS]
        made, evidence, tests = [], dict[str, Estimate | None](), list[float]()
        among = sum(self._sides(of_kind, rows, *one) is not None for one in asked)
        for kind, key in asked:
            if (sides := self._sides(of_kind, rows, kind, key)) is None:
                continue
            first, second = sides
            both, about = rows.of(key, [*first, *second]), NUMBERS[key]
            assert both is not None
            weights = np.repeat([1 / len(first), -1 / len(second)], [len(first), len(second)])
            alone, p = over_items(both, weights, level=self.level)
            wide, _ = over_items(both, weights, level=1 - (1 - self.level) / among)
            each = [over_items(both[i : i + 1], [1.0])[0].value for i in range(len(both))]
            kinds = over_things(each[: len(first)], each[len(first) :], level=self.level)
            name = f"{_named(kind)}_{key}"
            if key.endswith("_offset"):  # where links are found says something of found ones only
                gain = rows.of(key.replace("offset", "gain"), first)
                control = None if gain is None else _mean_of(gain, self.level)
                alone = alone.with_controls({_SET_AGAINST: control})
                kinds = kinds and kinds.with_controls({_SET_AGAINST: control})
            evidence |= {name: alone, f"{name}_of_kind": kinds}
            across = (np.nan,) * 3 if kinds is None else (kinds.low, kinds.high, _p(kinds))
            made.append(
                (kind, key, about.label, about.unit, alone.value, wide.low, wide.high, alone.n,
                 alone.value, *across, f"{len(first)} and {len(second)}")
            )  # fmt: skip
            tests.append(p)
        columns = [
            "kind", "number", "label", "unit", "value", "low", "high", "n",
            "of_kind", "of_kind_low", "of_kind_high", "of_kind_p", "languages",
        ]  # fmt: skip
        table = pd.DataFrame(made, columns=columns)
        if len(table):
            table.insert(7, "p", holm(tests))
            known = table["of_kind_p"].notna()
            table.loc[known, "of_kind_p"] = holm(table.loc[known, "of_kind_p"])
        return table, evidence

    def _sides(
        self, of_kind: Mapping[str, Sequence[str]], rows: _Rows, kind: str, key: str
    ) -> tuple[list[str], list[str]] | None:
        """Languages of the kind and the others, of which the number is known."""
        first, second = (
            [c for c in of_kind[k] if rows.of(key, [c]) is not None] for k in (kind, OTHER)
        )
        return (first, second) if first and second else None

    def _order(
        self, codes: Sequence[str], kept: Mapping[str, Mapping[str, Result]], shared: Sequence[str]
    ) -> pd.DataFrame:
        """Of each language its texts and pieces, and how free the order of words is."""
        import pandas as pd

        found = []
        for code in codes:
            result = next(of[code] for of in kept.values() if code in of)
            about = result.provenance.corpus or {}
            texts = int(about["size"])
            cut = (result.provenance.cut or {}).get("texts", 0)
            links = kept[LINKS][code].tables["found"] if code in kept.get(LINKS, {}) else None
            side, where = _freedom(links, shared)
            found.append(
                (code, language(code).name, self.kind(code), language(code).family, texts,
                 _pieces(result), _unknown(result), cut, side, where)
            )  # fmt: skip
        columns = [
            "language", "name", "kind", "family", "texts", "pieces_per_text", "unknown", "cut",
            "side_entropy", "offset_entropy",
        ]  # fmt: skip
        return pd.DataFrame(found, columns=columns)

    def _relations(
        self, codes: Sequence[str], links: Mapping[str, Result], rows: _Rows
    ) -> pd.DataFrame:
        """Where each relation's links stand and are found, and what heads of elsewhere find."""
        import pandas as pd

        known = [code for code in codes if code in links]
        shares = {code: _head_shares(links[code]) for code in known}
        found = []
        for relation in rows.relations:
            places = {c: _places(links[c].tables["found"], relation) for c in known}
            for code in known:
                own = links[code].tables["relations"].set_index("relation").loc[relation]
                at = rows.estimate(OFFSET, relation, code, self.level)
                share, gain, other = (
                    rows.estimate(title, relation, code, self.level)
                    for title in (SHARE, GAIN, ELSEWHERE)
                )
                # Of other kinds; the others are many enough to be asked of each other.
                kind = self.kind(code)
                from_ = [c for c in known if c != code and (kind == OTHER or self.kind(c) != kind)]
                found.append(
                    {
                        "relation": relation, "language": code, "kind": kind,
                        "offset": _usual([places[code]]),
                        "links_at": _mean_place(places[code]),
                        "found_at": at.value, "found_at_low": at.low, "found_at_high": at.high,
                        "direction": own["direction"], "head": f"{own['layer']}.{own['head']}",
                        "share": share.value, "share_low": share.low, "share_high": share.high,
                        "baseline": share.value - gain.value,
                        "gain": gain.value, "gain_low": gain.low, "gain_high": gain.high,
                        "elsewhere": other.value,
                        "elsewhere_low": other.low, "elsewhere_high": other.high,
                        **_carried(relation, code, from_, shares, places),
                    }
                )  # fmt: skip
        return pd.DataFrame(found)

    def _ablation(self, results: Mapping[str, Result]) -> pd.DataFrame:
        """What hidden words of each language lose without heads, and without layers."""
        import pandas as pd

        found = []
        for code, result in results.items():
            heads, layers = result.tables["heads"], result.tables["layers"]
            row: dict[str, object] = {
                "language": code, "kind": self.kind(code), "loss": result.facts["intact_loss"],
                "known": result.facts["known"], "informed": bool(result.facts["informed"]),
                "heads": len(heads), "cost": int((heads["sure"] & (heads["rise"] > 0)).sum()),
                "help": int((heads["sure"] & (heads["rise"] < 0)).sum()),
            }  # fmt: skip
            for name, table, at in (
                ("head_most", heads, heads["rise"].argmax()),
                ("layer_most", layers, layers["rise"].argmax()),
                ("layer_least", layers, layers["rise"].argmin()),
            ):
                one = table.iloc[int(at)]
                bounds = {f"{name}_rise{end}": one[f"rise{end}"] for end in ("", "_low", "_high")}
                row |= {name: head_name(one), **bounds}
            found.append(row)
        return pd.DataFrame(found)

    def _shared_heads(self, results: Mapping[str, Result]) -> tuple[pd.DataFrame, Estimate | None]:
        """Whether hidden words miss the same heads, in languages of which the model knows some."""
        import pandas as pd

        codes = [code for code, result in results.items() if result.facts["informed"]]
        columns = ["language", "with", "correlation"]
        if len(codes) < 2:
            return pd.DataFrame(columns=columns), None
        halves = np.stack([results[code].arrays["half_rises"].to_numpy() for code in codes])
        pairs, alike = shared_ranks(
            halves, level=self.level, resamples=self.resamples, seed=self.seed
        )
        rows = [
            (one, other, pairs[i, j])
            for i, one in enumerate(codes)
            for j, other in enumerate(codes)
        ]
        return pd.DataFrame(rows, columns=columns), alike

    # What claims are judged on -------------------------------------------------------------------

    def _carried(self, relations: pd.DataFrame) -> Iterator[tuple[str, Estimate]]:
        """What heads of languages of other kinds find in those of a kind, over relations."""
        for kind in (VERB_FINAL, FREER):
            rows = relations[(relations["kind"] == kind) & relations["carried"].notna()]
            each = rows.groupby("relation")["carried"].mean()
            if len(each) > 1:
                found = mean_interval(each, self.level).counting("relations")
                yield f"{_named(kind)}_carried", found

    def _with_order(
        self, order: pd.DataFrame, numbers: pd.DataFrame
    ) -> Iterator[tuple[str, Estimate]]:
        """Whether languages of freer order have more or less of a number, over languages."""
        free = order.set_index("language")["side_entropy"]
        for key in _WITH_ORDER:
            values = numbers[numbers["number"] == key].set_index("language")["value"]
            both = free.reindex(values.index).notna()
            if both.sum() > 3:
                yield (
                    f"order_{key}",
                    correlation_by_exchange(
                        free.reindex(values.index)[both], values[both], level=self.level,
                        resamples=self.resamples, seed=self.seed,
                    ),
                )  # fmt: skip


class _Rows:
    """Rows of sentences of every number and language."""

    def __init__(self, kept: Mapping[str, Mapping[str, Result]]) -> None:
        self._kept = {
            (study, code): {c.title: c.rows for c in read_compared(result.arrays)}
            for study, of in kept.items()
            for code, result in of.items()
        }
        some = next(iter(kept.get(LINKS, {}).values()), None)
        has = some is not None and "found" in some.tables
        self._named = (
            list(map(str, some.tables["found"]["relation"].unique())) if some and has else []
        )
        self.relations = self.shared(SHARE)

    def shared(self, title: str) -> list[str]:
        """The relations of which every language has enough sentences."""
        links = [kept for (study, _), kept in self._kept.items() if study == LINKS]
        return [
            name
            for name in self._named
            if all(
                (rows := kept.get(title.format(name))) is not None
                and np.isfinite(rows).sum() >= FEWEST
                for kept in links
            )
        ]

    def of(self, key: str, codes: Sequence[str]) -> Floats | None:
        """(languages, numbers, sentences); None where one of the languages lacks it."""
        about = NUMBERS[key]
        found = [self._one(about, code) for code in codes]
        if any(one is None for one in found):
            return None
        return np.stack([one for one in found if one is not None])

    def _one(self, about: Number, code: str) -> Floats | None:
        kept = self._kept.get((about.study, code), {})
        if about.study != LINKS:
            rows = [kept.get(title) for title in about.titles]
            some = [row for row in rows if row is not None]
            return np.sum(some, axis=0)[None] if len(some) == len(rows) else None
        (title,) = about.titles
        names = [about.relation] if about.relation else self.shared(title)
        rows = [kept.get(title.format(name)) for name in names]
        some = [row for row in rows if row is not None]
        return np.stack(some) if some and len(some) == len(rows) else None

    def estimate(self, title: str, relation: str, code: str, level: float) -> Estimate:
        """One number of one relation in one language."""
        rows = self._kept[LINKS, code].get(title.format(relation))
        if rows is None:
            return Estimate(np.nan, np.nan, np.nan, 0, level, "sentences")
        return over_items(rows[None, None], [1.0], level=level)[0]


def _named(kind: str) -> str:
    """The kind in the names of quantities."""
    return {VERB_FINAL: "verb_final", FREER: "freer"}[kind]


def _p(found: Estimate) -> float:
    return np.nan if found.tested is None else found.tested[1]


def _mean_of(rows: Floats, level: float) -> Estimate:
    return over_items(rows, np.full(len(rows), 1 / len(rows)), level=level)[0]


def _language(result: Result) -> str:
    """The one language of its texts."""
    found = (result.provenance.corpus or {}).get("languages", [])
    if len(found) != 1:
        raise DataError(
            f"A result of {result.provenance.study!r} is over texts in {listed(found)} languages."
            if found
            else f"A result of {result.provenance.study!r} does not say which language it is over.",
            hint="Give results over one language each, as of --corpus pud --columns languages=de.",
        )
    return str(found[0])


def _unknown(result: Result) -> float:
    """The share of pieces that the tokenizer does not know."""
    unknown = result.provenance.unknown or {}
    return float(unknown.get("pieces", 0)) / max(float(unknown.get("of", 1)), 1)


def _pieces(result: Result) -> float:
    """How many pieces a text takes; NaN where nobody counted."""
    texts = (result.provenance.corpus or {}).get("size")
    of = (result.provenance.unknown or {}).get("of")
    return np.nan if of is None or texts is None else float(of) / float(texts)


def _by_study(results: Sequence[Result], name: str) -> dict[str, dict[str, Result]]:
    """Results by study and language; they must be of one model, asked alike, on the same items."""
    found: dict[str, dict[str, Result]] = {}
    for result in results:
        of, code = found.setdefault(result.provenance.study, {}), _language(result)
        if code in of:
            must = "hold one result of a study and language"
            raise ParameterError("results", name, must, f"{result.provenance.study}, {code}")
        of[code] = result
    alike: dict[str, Callable[[Result], object]] = {
        "model": lambda r: (r.provenance.model_name, r.provenance.model.get("shape")),
        "items": lambda r: (r.provenance.corpus or {}).get("items"),
    }
    for what, told in alike.items():
        if len({str(told(result)) for result in results}) > 1:
            raise DataError(
                f"The results are not all of the same {what}.",
                hint="Languages are paired by their items: give results of one model over the same "
                "number of parallel texts.",
            )
    # With its head for words a model has another fingerprint than without.
    prints: dict[str, set[str]] = {}
    for about in (result.provenance.model for result in results):
        prints.setdefault(str(about.get("head")), set()).add(str(about["fingerprint"]))
    if any(len(of_head) > 1 for of_head in prints.values()):
        raise DataError("The results are not all of the same model.")
    for study, of in found.items():
        asked = {str((r.provenance.study_version, r.provenance.parameters)) for r in of.values()}
        if len(asked) > 1:
            raise DataError(f"Results of {study!r} have different parameters.")
    return found


def _places(found: pd.DataFrame, relation: str) -> pd.Series[float]:
    """How many links of a relation stand at each offset."""
    rows = found[found["relation"] == relation]
    return rows.set_index("offset")["links"].astype(float)


def _usual(places: Sequence[pd.Series[float]]) -> int:
    """The offset of most links; each language counts the same."""
    import pandas as pd

    shares = pd.concat([one / one.sum() for one in places]).groupby(level=0).sum()
    return int(shares.index.to_numpy()[int(shares.to_numpy().argmax())])


def _mean_place(places: pd.Series[float]) -> float:
    return float((places.index.to_numpy(float) * places).sum() / places.sum())


def _freedom(found: pd.DataFrame | None, shared: Sequence[str]) -> tuple[float, float]:
    """Entropy, in bits, of the side of heads and of their offset: means over relations."""
    if found is None or not shared:
        return np.nan, np.nan
    sides, offsets = [], []
    for relation in shared:
        places = _places(found, relation)
        shares = (places / places.sum()).to_numpy()
        left = float(shares[places.index.to_numpy() < 0].sum())
        sides.append(entr([left, 1 - left]).sum() / np.log(2))
        offsets.append(entr(shares).sum() / np.log(2))
    return float(np.mean(sides)), float(np.mean(offsets))


def _head_shares(result: Result) -> dict[str, pd.DataFrame]:
    """Of each relation what every head finds, and how much more than from other words."""
    table = result.tables["links"].sort_values(["relation", "direction", "layer", "head"])
    columns = ["layer", "head", "share", "selectivity"]
    return {str(name): rows[columns] for name, rows in table.groupby("relation", sort=False)}


def _carried(
    relation: str,
    code: str,
    others: Sequence[str],
    shares: Mapping[str, Mapping[str, pd.DataFrame]],
    places: Mapping[str, pd.Series[float]],
) -> dict[str, object]:
    """What the head that is best in other languages finds here, beyond where they have links."""
    if not others:
        return {"carried_head": "", "carried_share": np.nan, "carried": np.nan}
    found = [shares[c][relation]["share"].fillna(0.0).to_numpy(float) for c in others]
    here = shares[code][relation].iloc[int(np.argmax(np.sum(found, axis=0)))]
    share, selectivity = float(here["share"]), float(here["selectivity"])
    there = _usual([places[c] for c in others])
    by_offset = float(places[code].get(there, 0.0) / places[code].sum())
    return {
        "carried_head": f"{here['layer']:.0f}.{here['head']:.0f}",
        "carried_share": share,
        "carried": min(share - by_offset, selectivity),
    }
