"""Prompts: which wording of a relation, or which of them together, gets the most facts out?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import points
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.cloze.facts.asked import FactBook, Facts, is_plain, relation_of
from bertology.studies.designs.parts import in_order
from bertology.studies.designs.tables import bounded
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus, Example
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape


FIRST = "first wording"
_TIE = 1e-3  # of the mean reciprocal rank, which decides among wordings that get as many right


def kinds_of(facts: Iterable[Example]) -> set[str]:
    """The kinds of all wordings; none where the corpus does not tell."""
    of_relations = {tuple(fact.annotations.get("wording_kinds") or ()) for fact in facts}
    return {kind for kinds in of_relations for of in kinds for kind in of.split()}


def halves_of(subjects: Sequence[str]) -> NDArray[np.int64]:
    """0 or 1 for each fact; the subjects take turns, and facts about one stay together."""
    turn = {subject: i % 2 for i, subject in enumerate(dict.fromkeys(subjects))}
    return np.array([turn[subject] for subject in subjects], np.int64)


@dataclass(frozen=True)
class Asked:
    """The facts (N) of one relation in its wordings (W), as log-probabilities of objects (O)."""

    book: FactBook
    facts: Sequence[Example]
    templates: tuple[str, ...]
    kinds: tuple[str, ...]
    ranks: Floats  # (N, W) of the right answer among the objects
    scores_of: NDArray[np.float32]  # (N, W, O)

    @classmethod
    def of(cls, book: FactBook, facts: Sequence[Example], most: int, batch_tokens: int) -> Asked:
        """Every fact in its first wordings, `most` at most."""
        if not facts:
            return cls(book, facts, (), (), np.empty((0, 0)), np.empty((0, 0, 0), np.float32))
        templates = tuple(str(t) for t in facts[0].get("wordings"))[:most]
        kinds = tuple(facts[0].annotations.get("wording_kinds") or ("",) * len(templates))[:most]
        ranks = np.empty((len(facts), len(templates)))
        scores = np.empty((*ranks.shape, len(book.objects(facts[0]))), np.float32)
        said = book.ask(facts, wordings=len(templates), tokens_per_batch=batch_tokens)
        for i, of_fact in enumerate(said):
            for w, one in enumerate(of_fact):
                ranks[i, w], scores[i, w] = one.restricted, one.objects
        return cls(book, facts, templates, kinds, ranks, scores)

    def scores(self) -> Floats:
        """What each wording gets right, of all facts."""
        if not self.templates:
            return np.empty(0)
        found: Floats = (self.ranks <= 1).mean(axis=0)
        return found

    def of_kind(self, kind: str) -> list[int]:
        """The wordings of a kind; "": all."""
        return [w for w, of in enumerate(self.kinds) if not kind or kind in of.split()]

    def alone(self, wording: int) -> tuple[Floats, Floats]:
        """Ranks (N) with one wording, and hits beyond chance."""
        return self.joined([wording])

    def joined(self, wordings: Sequence[int]) -> tuple[Floats, Floats]:
        """The same with the mean of several wordings' log-probabilities; NaN without any."""
        rank, excess = np.full((2, len(self.facts)), np.nan)
        if not wordings or not self.facts:
            return rank, excess
        together = self.scores_of[:, list(wordings)].mean(axis=1, dtype=np.float64)
        for i, (fact, scores) in enumerate(zip(self.facts, together, strict=True)):
            rank[i] = self.book.rank_among(fact, scores)
            said = self.book.objects(fact)[int(scores.argmax())]
            excess[i] = (said in self.book.right(fact)) - self.book.by_chance(fact, said)
        return rank, excess

    def picked(
        self, chosen: Sequence[Sequence[int]], halves: NDArray[np.int64]
    ) -> tuple[Floats, Floats]:
        """The same, each half with the wordings that were chosen for it."""
        ways = [self.joined(wordings) for wordings in chosen]
        rank, excess = (
            np.where(halves == 0, first, second) for first, second in zip(*ways, strict=True)
        )
        return rank, excess

    def any_of(self, wordings: Sequence[int]) -> tuple[Floats, Floats]:
        """The best rank in any of the wordings: an upper bound, to which chance adds much."""
        nothing = np.full(len(self.facts), np.nan)
        return (self.ranks[:, list(wordings)].min(axis=1) if wordings else nothing), nothing


def best_and_together(
    asked: Asked, wordings: Sequence[int], halves: NDArray[np.int64], few: int
) -> tuple[list[list[int]], list[list[int]]]:
    """For each half the best wording, and the best few, by the facts of the other half."""
    best, several = [], []
    for half in (0, 1):
        dev = asked.ranks[halves != half][:, list(wordings)]
        if not len(dev):  # one subject has no other half, and the first wording stands
            order = list(range(len(wordings)))
        else:
            order = list(np.argsort(-(dev <= 1).mean(0) - _TIE * (1 / dev).mean(0), kind="stable"))
        best.append([wordings[i] for i in order[:1]])
        several.append([wordings[i] for i in order[:few]])
    return best, several


class PromptsResult(Result):
    """What ways of asking get out of a model.

    Table `ways`: for each kind of wordings and for all, the best one, the best few together, all
    together, and an upper bound; P@1 among the relation's objects, its gain over the first
    wording, and the gain beyond chance. `templates`: every wording, with what it scores and
    whether it was chosen. `relations`: the first wording, the best and the best few by relation.
    """

    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "ways": {"p_at_1": "%"},
        "relations": {"p_at_1": "%"},
        "templates": {"p_at_1": "%"},
    }

    @property
    def answer(self) -> str:
        """What the choice of a wording is worth."""
        found = self.evidence()
        gain = found["choice_gain"]
        sure = (
            "Surely more" if gain.low > 0 else "Surely less" if gain.high < 0 else "Not surely more"
        )
        return (
            f"{sure} is told with a chosen wording: against the first wording, and beyond chance, "
            f"the best one of each relation changes right answers by {points(gain)} of facts, the "
            f"best few together by {points(found['ensemble_gain'])}."
        )

    def drawings(self) -> Sequence[Drawing]:
        """Ways, and relations."""
        ways, gain = self.tables["ways"], "more than the first wording, beyond chance (points)"
        rows, right = self.tables["relations"], "right answer first (%)"
        return [
            drawings.dots(
                "ways",
                [
                    Dots.of_columns("right answer first (%)", ways, "p_at_1"),
                    Dots.of_columns(gain, ways, "beyond", level=0.0),
                ],
                ways["way"],
                self.about,
                title="Ways of asking",
                caption="One row for each way of asking. Left: per cent of facts whose answer "
                "comes first among the objects of its relation, with an interval over subjects. "
                "Right: how many more are right beyond chance than with the first wording. What is "
                "chosen is chosen for each relation on the other half of its subjects; the upper "
                "bound is right where any wording is.",
            ),
            drawings.dots(
                "relations",
                [Dots.of_columns(right, rows, "p_at_1", bars="first", hollow="together")],
                rows["relation"],
                self.about,
                title="The best wording of each relation",
                caption="One row for each relation: per cent of facts that are right with the "
                "wording that was chosen on the other half of the subjects, with an interval for "
                "all relations together. Grey bar: the first wording. Hollow diamond: the best few "
                "together.",
                note="Grey bar: the first wording. Diamond: the best few together.",
            ),
        ]


@dataclass(frozen=True)
class Prompts(Facts):
    """Which wording of a relation, or which of them together, gets the most facts out of the model?

    Method: every fact is asked in all wordings of its relation, among the objects that the relation
    has in the corpus. The subjects of each relation fall into two halves. On one half the best
    wording is chosen, and the best few, whose log-probabilities are averaged; they are scored on
    the other half, and the other way round. So for all wordings, and for each kind where the corpus
    tells them apart (manual, mined, paraphrased). A fact that is right in any wording counts for
    the upper bound, which no choice reaches. A choice may only find the wording that says the most
    frequent answer: gains are therefore also given beyond chance, less what the same answers would
    get right for other subjects of the relation, and claims rest on these.

    Source: Jiang et al. (2020). Limits: only answers of one piece are asked for; ensembles weigh
    their members alike, and their size is given. With few facts of a relation the choice is poor.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "answer", "group", "entity", "wordings"}), head="mlm"
    )
    version: ClassVar[int] = 2  # bounds follow Student's law where many values make a mean
    result_type: ClassVar[type[Result]] = PromptsResult

    wordings: int = parameter(
        100, "Ask so many wordings of each relation at most, the first ones.", minimum=2
    )
    together: int = parameter(
        5, "So many of the best wordings are asked together.", minimum=2, maximum=100
    )

    def shown(self, corpus: Corpus) -> Corpus:
        """The facts that are drawn, relation by relation."""
        drawn = super().shown(corpus)
        kept = sorted(filter(is_plain, drawn), key=relation_of)
        return replace(drawn, examples=kept, origin={}, drawn_from=len(corpus))

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse corpora in which there is nothing to choose."""
        super().check(encoder, corpus)
        if all(len(e.get("wordings")) < 2 for e in corpus):
            raise DataError(
                f"No relation of {corpus.name!r} has two wordings to choose from.",
                hint="Give templates with several for each relation, or use the study facts.",
            )

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """One for each relation: what is chosen is chosen for all of it."""
        relations = [relation_of(e) for e in self.shown(corpus)]
        starts = [i for i, r in enumerate(relations) if i == 0 or r != relations[i - 1]]
        ends = [*starts[1:], len(relations)]
        return [f"examples-{a:06d}-{b:06d}" for a, b in zip(starts, ends, strict=True)]

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """The ranks of right answers in each way of asking, of one relation."""
        import xarray as xr

        block = self.of_block(part, corpus)
        relation = relation_of(block[0])
        # The book of a relation is made of its facts alone, and there may be many relations.
        own = [e for e in corpus if relation_of(e) == relation]
        book = FactBook(encoder, replace(corpus, examples=own, origin={}))
        facts = [e for e in block if book.right(e) and book.knows(e)]
        kinds = sorted(kinds_of(corpus))
        asked = Asked.of(book, facts, self.wordings, context.batch_tokens)
        halves = halves_of([str(e.get("entity")) for e in facts])
        ways: dict[str, tuple[Floats, Floats]] = {FIRST: asked.alone(0)}
        chosen = np.zeros(len(asked.templates))
        for kind in ["", *kinds] if len(kinds) > 1 else [""]:
            label = f"{kind}: " if kind else ""
            of = asked.of_kind(kind)
            best, several = best_and_together(asked, of, halves, self.together)
            ways[f"{label}best wording"] = asked.picked(best, halves)
            ways[f"{label}best few together"] = asked.picked(several, halves)
            ways[f"{label}all together"] = asked.joined(of)
            ways[f"{label}upper bound: any wording"] = asked.any_of(of)
            if not kind:
                np.add.at(chosen, [i for one in best for i in one], 1)
        context.advance(len(block))
        return xr.Dataset(
            {
                "rank": (("way", "example"), np.array([rank for rank, _ in ways.values()])),
                "excess": (("way", "example"), np.array([excess for _, excess in ways.values()])),
                "subject": ("example", np.array([str(e.get("entity")) for e in facts], str)),
                "template": ("wording", np.array(asked.templates, str)),
                "kind": ("wording", np.array(asked.kinds, str)),
                "score": ("wording", asked.scores()),
                "chosen": ("wording", chosen),
            },
            coords={"way": list(ways)},
            attrs={"relation": relation, "left_out": len(block) - len(facts)},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Ways of asking beside the first wording, with intervals over subjects."""
        import pandas as pd

        every = list(in_order(measured))
        parts = [p for p in every if p.sizes["example"]]
        names = [str(way) for way in parts[0]["way"].to_numpy()]
        rank, excess = (np.concatenate([p[n].to_numpy() for p in parts], 1) for n in _BY_FACT)
        subjects = np.concatenate([p["subject"].to_numpy().astype(str) for p in parts])
        relations = np.repeat(
            [str(p.attrs["relation"]) for p in parts], [p.sizes["example"] for p in parts]
        )
        rows, gains = [], dict[str, Estimate]()
        for way, ranks, beyond in zip(names, rank, excess, strict=True):
            there = np.isfinite(ranks)
            if not there.any():
                continue
            hits, of = (ranks <= 1).astype(float)[there], subjects[there]
            found = self.share(hits, subjects=of)
            over = self.macro(hits, relations[there])
            row: dict[str, object] = {"way": way, "n": int(there.sum()), "p_at_1": found.value}
            row |= {"low": found.low, "high": found.high, **bounded("macro", over)}
            row["mrr"] = float((1 / ranks[there]).mean())
            if way != FIRST:
                plain = self.share(hits - (rank[0] <= 1)[there], least=-1.0, subjects=of)
                row |= bounded("gain", plain)
            if way != FIRST and np.isfinite(beyond[there]).all():
                gain = self._beyond((beyond - excess[0])[there], of)
                row |= bounded("beyond", gain)
                gains[way] = gain
            rows.append(row)
        evidence: dict[str, Estimate | None] = {
            "choice_gain": gains["best wording"],
            "ensemble_gain": gains["best few together"],
            "first_p_at_1": self.share((rank[0] <= 1).astype(float), subjects=subjects),
        }
        tables = {
            "ways": pd.DataFrame(rows),
            "relations": self._relations(parts, names),
            "templates": pd.concat([_templates(p) for p in parts], ignore_index=True),
        }
        left = sum(int(p.attrs["left_out"]) for p in every)
        facts = {"examples": len(subjects), "left_out": left}
        return self.result(provenance, tables, evidence=evidence, facts=facts)

    def _beyond(self, values: Floats, subjects: Any) -> Estimate:
        """A mean of differences of two values between -1 and 1."""
        half = self.share(values / 2, least=-1.0, subjects=subjects)
        return replace(half, value=2 * half.value, low=2 * half.low, high=2 * half.high)

    def _relations(self, parts: Sequence[xr.Dataset], names: Sequence[str]) -> pd.DataFrame:
        import pandas as pd

        rows = []
        for part in parts:
            hits = dict(zip(names, part["rank"].to_numpy() <= 1, strict=True))
            subjects = part["subject"].to_numpy().astype(str)
            best = self.share(hits["best wording"], families=len(parts), subjects=subjects)
            rows.append(
                {
                    "relation": str(part.attrs["relation"]),
                    "n": len(subjects),
                    "wordings": part.sizes["wording"],
                    "first": float(hits[FIRST].mean()),
                    "p_at_1": best.value,
                    "low": best.low,
                    "high": best.high,
                    "together": float(hits["best few together"].mean()),
                    "any": float(hits["upper bound: any wording"].mean()),
                }
            )
        return pd.DataFrame(rows)


_BY_FACT = ("rank", "excess")


def _templates(part: xr.Dataset) -> pd.DataFrame:
    import pandas as pd

    columns = {name: part[name].to_numpy() for name in ("template", "kind", "score", "chosen")}
    found = pd.DataFrame({"relation": str(part.attrs["relation"]), **columns})
    return found.rename(columns={"score": "p_at_1"}).astype({"chosen": int})
