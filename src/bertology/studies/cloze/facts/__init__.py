"""Facts: does the model fill the blanks of sentences that state facts?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import percent, points
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.cloze.facts.asked import (
    UNKNOWING,
    FactBook,
    agreeing_pairs,
    is_plain,
    named_in_entity,
    relation_of,
)
from bertology.studies.cloze.facts.asked import Facts as FactStudy
from bertology.studies.designs.parts import in_order
from bertology.studies.designs.tables import bounded
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

_FEWEST = 10  # facts that are known, to ask what becomes of them


class FactsResult(Result):
    """What is known, beside what a guess gives.

    Table `scores`: the model in the whole vocabulary and among the relation's objects, and two
    baselines, with intervals over facts and over relations (`macro`); `relations` and
    `cardinalities`: the same of each; `wordings`: whether it depends on the wording; `versions`:
    what negation and a misleading word change.
    """

    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "scores": {"p_at_1": "%"},
        "relations": {"p_at_1": "%"},
        "cardinalities": {"p_at_1": "%"},
        "wordings": {"p_at_1": "%"},
        "versions": {"share": "%"},
    }

    @property
    def answer(self) -> str:
        """P@1 beside the most frequent object."""
        found = self.evidence()
        gain = found["gain_over_frequency"]
        sure = (
            "Surely more" if gain.low > 0 else "Surely less" if gain.high < 0 else "Not surely more"
        )
        return (
            f"{sure} than by frequency: the right answer comes first for "
            f"{percent(found['p_at_1'], '.1f')} of {found['p_at_1'].n:,} facts; {points(gain)} "
            f"against the most frequent object, {_over(gain)}."
        )

    def drawings(self) -> Sequence[Drawing]:
        """Relations; and wordings and versions where there are any."""
        rows, label = self.tables["relations"], "right answer first (%)"
        found = [
            drawings.dots(
                "relations",
                [Dots.of_columns(label, rows, "p_at_1", bars="frequent", hollow="in_name")],
                [
                    f"{r.relation!s} ({r.cardinality!s})" if r.cardinality else r.relation
                    for r in rows.itertuples()
                ],
                self.about,
                title="Facts by relation",
                caption="One row for each relation: the per cent of facts whose answer comes first "
                "in the whole vocabulary, with an interval that holds for all relations together. "
                "Grey bar: the most frequent object of other facts. Hollow diamond: facts whose "
                "answer is in the subject's name.",
                note="Grey bar: most frequent object. Diamond: the answer is in the name.",
            )
        ]
        if "wordings" in self.tables:
            found.append(
                self._dots(
                    "wordings",
                    "way",
                    "p_at_1",
                    "facts, or pairs of wordings (%)",
                    "Whether it depends on the wording: the per cent of facts whose answer comes "
                    "first among the objects of the relation in the first wording, in some and in "
                    "every one, and of pairs of wordings that get the same answer, with an "
                    "interval.",
                )
            )
        if "versions" in self.tables:
            found.append(
                self._dots(
                    "versions",
                    "what",
                    "share",
                    "share of facts (%)",
                    "What becomes of facts whose sentence is negated or comes after a misleading "
                    "word: per cent of facts with an interval. A model that understands both "
                    "would not repeat its answer after a not, and lose nothing by a word.",
                )
            )
        return found

    def _dots(self, name: str, of: str, column: str, label: str, caption: str) -> Drawing:
        rows = self.tables[name]
        shown = [Dots.of_columns(label, rows, column)]
        title = f"Facts: {name}"
        return drawings.dots(name, shown, rows[of], self.about, title=title, caption=caption)


@dataclass(frozen=True)
class Facts(FactStudy):
    """Does the model fill the blank of a sentence that states a fact?

    Method: the blank is asked in the whole vocabulary and among the objects that the relation has
    in the corpus; P@k is the share of facts whose answer is among the first k, other right answers
    left out. Beside it the most frequent object of the relation, taken from the half of the facts
    that the fact is not in, and facts whose answer is in the subject's name. With several wordings
    of a fact: how often two get the same answer; the best of them are the study `prompts`. With
    negated and misprimed versions: how often a "not" leaves the answer as it was, and what a
    misleading word costs.

    Source: Petroni et al. (2019); Elazar et al. (2021) for consistency, Kassner and Schütze (2020)
    for negation and mispriming. Limits: only answers of one piece of the vocabulary are asked for;
    how many are left out is told. What a text says so often that it is learnt, a small model
    trained on little text cannot know. Questions on consistency, negation and mispriming are judged
    only where answers surely depend on the subject. Where there are five relations or more, what
    claims are judged on are means over relations with intervals over them, else over facts.
    """

    version: ClassVar[int] = 5  # controls are gates, and what is stated is judged
    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "answer", "group"}), head="mlm")
    result_type: ClassVar[type[Result]] = FactsResult

    wordings: int = parameter(
        10, "Ask so many wordings of each fact at most, the first ones.", minimum=1, maximum=100
    )

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """What the model says to each fact, and what a guess would."""
        import xarray as xr

        book, block = FactBook(encoder, corpus), self.of_block(part, corpus)
        asked = [i for i, e in enumerate(block) if book.right(e) and book.knows(e)]
        n, w = len(block), self.wordings
        by_wording = {
            name: np.full((n, w), np.nan) for name in ("rank", "restricted", "best", "first")
        }
        single = {name: np.full(n, np.nan) for name in ("chance", "prime")}
        top = np.full((n, 10), -1)
        answers = book.ask(
            [block[i] for i in asked], wordings=w, tokens_per_batch=context.batch_tokens
        )
        for i, said in zip(asked, answers, strict=True):
            example = block[i]
            for name, values in (
                ("rank", [s.rank for s in said]),
                ("restricted", [s.restricted for s in said]),
                ("best", [s.best for s in said]),
                ("first", [s.top[0] for s in said]),
            ):
                by_wording[name][i, : len(said)] = values
            guess = said[0].top[0]
            single["chance"][i] = (guess in book.right(example)) - book.by_chance(example, guess)
            top[i, : len(said[0].top)] = said[0].top
            if "prime" in example.annotations:
                single["prime"][i] = guess == book.piece(str(example.get("prime")))
        context.advance(n)
        texts = {
            "relation": [relation_of(e) for e in block],
            "cardinality": [str(e.annotations.get("cardinality") or "") for e in block],
            "item": [str(e.annotations.get("item") or "") for e in block],
            "condition": [str(e.annotations.get("condition") or "plain") for e in block],
        }
        guesses = {
            "frequent": [float(is_plain(e) and book.frequent(e)) for e in block],
            "in_name": [float(named_in_entity(e)) for e in block],
        }
        return xr.Dataset(
            {name: (("example", "wording"), v) for name, v in by_wording.items()}
            | {name: ("example", v) for name, v in (texts | guesses | single).items()}
            | {"top": (("example", "place"), top)}
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Scores with intervals over facts and over relations."""
        import xarray as xr

        whole = xr.concat(list(in_order(measured)), "example")
        said = {str(name): v.to_numpy() for name, v in whole.items()}
        plain = said["condition"].astype(str) == "plain"
        asked = plain & np.isfinite(said["rank"][:, 0])
        of = {name: v[asked] for name, v in said.items()}
        hits = (of["rank"][:, 0] <= 1).astype(float)
        gate = self.subject_gain(of["chance"], of["in_name"])
        knows = gate is not None and gate.low > 0
        evidence: dict[str, Estimate | None] = {
            "p_at_1": self.share(hits),
            "gain_over_frequency": self.share_of_relations(
                hits - of["frequent"], of["relation"].astype(str), least=-1.0
            ),
            "gain_over_guessing": self.gain_over_guessing(
                hits - of["frequent"], of["chance"], of["relation"].astype(str)
            ),
            "subject_gain": gate,
        }
        tables = {
            "scores": self._scores(of),
            "relations": self._by(of, "relation", said, plain),
        }
        if (of["cardinality"].astype(str) != "").any():
            tables["cardinalities"] = self._by(of, "cardinality", said, plain)
        told: list[tuple[str, Estimate]] = []
        wordings = self._wordings(of)
        reasons = {}
        if wordings is None:
            reasons["inconsistency"] = "No fact of this corpus has several wordings."
        else:
            tables["wordings"], inconsistency = wordings
            evidence["inconsistency"] = inconsistency
        negated = self._versions(said, "negated")
        if negated is None:
            reasons["negation_repeats"] = "The corpus has no negated questions."
        else:
            told += negated
            known = [e for name, e in negated if name.startswith("known facts")]
            evidence["negation_repeats"] = known[0] if known else None
            if not known:
                reasons["negation_repeats"] = f"Fewer than {_FEWEST} facts are known."
        primed = self._versions(said, "misprimed")
        if primed is None:
            reasons["mispriming_drop"] = "The corpus has no misprimed questions."
        else:
            told += primed
            evidence["mispriming_drop"] = dict(primed)["lost by a misleading word"]
        if told:
            tables["versions"] = _table(told, "what", "share")
        for name in ("inconsistency", "negation_repeats", "mispriming_drop"):
            if not knows and evidence.pop(name, None) is not None:
                reasons[name] = UNKNOWING
        left = int((plain & ~np.isfinite(said["rank"][:, 0])).sum())
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons=reasons,
            facts={"examples": int(asked.sum()), "left_out": left},
        )

    # Tables --------------------------------------------------------------------------------------

    def _scores(self, of: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
        import pandas as pd

        relations, rows = of["relation"].astype(str), []
        ranks = {"model": of["rank"][:, 0], "model, relation's objects": of["restricted"][:, 0]}
        for way, rank in ranks.items():
            rows.append({"way": way, **self._score(rank <= 1, relations), **_depths(rank)})
        for way, column in (("most frequent object", "frequent"), ("answer in name", "in_name")):
            rows.append({"way": way, **self._score(of[column], relations)})
        return pd.DataFrame(rows)

    def _score(self, hits: NDArray[Any], relations: NDArray[np.str_]) -> dict[str, float]:
        over_facts, over_relations = self.share(hits), self.macro(hits.astype(float), relations)
        return {
            "n": over_facts.n,
            "p_at_1": over_facts.value,
            "low": over_facts.low,
            "high": over_facts.high,
            **bounded("macro", over_relations),
        }

    def _by(
        self,
        of: Mapping[str, NDArray[Any]],
        column: str,
        said: Mapping[str, NDArray[Any]],
        plain: NDArray[np.bool_],
    ) -> pd.DataFrame:
        """Scores of each relation, or of each kind of relation."""
        import pandas as pd

        groups, rows = of[column].astype(str), []
        names = [str(name) for name in np.unique(groups)]
        for name in names:
            some = {key: v[groups == name] for key, v in of.items()}
            rank = some["rank"][:, 0]
            found = self.share(rank <= 1, families=len(names))
            all_of = int((plain & (said[column].astype(str) == name)).sum())
            kinds = np.unique(some["cardinality"].astype(str))
            rows.append(
                {
                    column: name,
                    **({"cardinality": kinds[0]} if column == "relation" else {}),
                    "n": found.n,
                    "left_out": all_of - found.n,
                    "p_at_1": found.value,
                    "low": found.low,
                    "high": found.high,
                    **_depths(rank),
                    "restricted": float((some["restricted"][:, 0] <= 1).mean()),
                    "frequent": float(some["frequent"].mean()),
                    "in_name": float(some["in_name"].mean()),
                }
            )
        return pd.DataFrame(rows)

    def _wordings(self, of: Mapping[str, NDArray[Any]]) -> tuple[pd.DataFrame, Estimate] | None:
        """What wordings change, and the share of pairs of them that get different answers."""
        several = np.isfinite(of["restricted"]).sum(axis=1) > 1
        if several.sum() < 2:
            return None
        some = {name: v[several] for name, v in of.items()}
        right = np.where(np.isfinite(some["restricted"]), some["restricted"] <= 1, np.nan)
        agree = [agreeing_pairs(row[np.isfinite(row)].astype(int)) for row in some["best"]]
        everywhere = np.nan_to_num(right, nan=1.0).min(axis=1)
        rows = [
            ("first wording", self.share(right[:, 0])),
            ("right in some wording", self.share(np.nanmax(right, axis=1))),
            ("right in every wording", self.share(everywhere)),
            ("same answer in two wordings", self.share(np.array(agree))),
        ]
        relations = some["relation"].astype(str)
        return (
            _table(rows, "way", "p_at_1"),
            self.share_of_relations(1 - np.array(agree), relations),
        )

    def _versions(
        self, said: Mapping[str, NDArray[Any]], condition: str
    ) -> list[tuple[str, Estimate]] | None:
        """What another version of the question changes, over facts that have both."""
        conditions = said["condition"].astype(str)
        there = np.isfinite(said["rank"][:, 0])
        at = {
            version: {
                str(said["item"][i]): i for i in np.flatnonzero(there & (conditions == version))
            }
            for version in ("plain", condition)
        }
        both = [name for name in at["plain"] if name in at[condition]]
        if len(both) < 2:
            return None
        one, other = ([at[v][name] for name in both] for v in ("plain", condition))
        first, second = said["first"][one, 0], said["first"][other, 0]
        right, still = (said["rank"][rows, 0] <= 1 for rows in (one, other))
        relations = said["relation"][one].astype(str)
        share = partial(self.share_of_relations, relations=relations)
        if condition == "misprimed":
            lost = right.astype(float) - still
            return [
                ("right, plain", share(right)),
                ("right after a misleading word", share(still)),
                ("lost by a misleading word", share(lost, least=-1.0)),
                ("the misleading word is the answer", share(said["prime"][other])),
            ]
        tops = zip(said["top"][one], said["top"][other], strict=True)
        overlap = np.array([len(set(a) & set(b)) / len(set(a)) for a, b in tops])
        found = [
            ("all facts: a not leaves the answer", share(first == second)),
            ("all facts: ten best answers in common", share(overlap)),
        ]
        if right.sum() >= _FEWEST:
            known = self.share_of_relations((first == second)[right], relations[right])
            found.append(("known facts: a not leaves the answer", known))
        return found


def _over(found: Estimate) -> str:
    return f"mean over {found.n} relations" if found.unit == "relations" else "over all facts"


def _depths(rank: Floats) -> dict[str, float]:
    return {
        "p_at_10": float((rank <= 10).mean()),
        "p_at_100": float((rank <= 100).mean()),
        "mrr": float((1 / rank).mean()),
    }


def _table(rows: Sequence[tuple[str, Estimate]], label: str, column: str) -> pd.DataFrame:
    import pandas as pd

    values = [(name, e.n, e.unit, e.value, e.low, e.high) for name, e in rows]
    return pd.DataFrame(values, columns=[label, "n", "over", column, "low", "high"])
