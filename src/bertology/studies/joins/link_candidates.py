"""Link candidates: are heads that find linked words those with diagonal maps?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import entr

from bertology.data.map_labels import MAP_TYPES
from bertology.errors import DataError, ParameterError
from bertology.report.figures import scatter_with_rank
from bertology.results.answers import NOTHING_SURE, percent
from bertology.results.drawing import Drawing
from bertology.results.result import Result
from bertology.stats import Estimate, bounded_mean_bounds
from bertology.studies.join import Join

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LINKS, TYPES = "syntax-heads", "map-types"
DIAGONAL = tuple(name for name in MAP_TYPES if "diagonal" in name)
NEAR = 0.75  # of what the best fixed offset finds: as syntax-heads has it
_CHANCE = (
    "of so few candidates as many may be diagonal by chance: more texts would not settle it, but "
    "other models may"
)
_NO_CANDIDATE = "not judged: no head surely comes near the best fixed offset"


class LinkCandidatesResult(Result):
    """Table `heads`: a row for each relation and head, with what it finds and how its maps look.

    `candidate`: it surely finds nearly as many linked words as the best fixed offset. `diagonal` is
    the share of its maps that are diagonal, alone or with vertical lines, with bounds that hold for
    all heads together.
    """

    strongest: ClassVar[Mapping[str, str]] = {"heads": "share"}
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "heads": {"share": "%", "diagonal": "%"}
    }

    @property
    def answer(self) -> str:
        """Of the candidates for each relation, how many are diagonal."""
        found, told = self.evidence(), []
        for relation, rows in self.tables["heads"].groupby("relation", sort=False):
            chosen = rows[rows["candidate"].astype(bool)]
            name = str(relation).replace("-", "_").replace(":", "_")
            share = found.get(f"{name}_candidates_diagonal")
            if share is None:
                told.append(f"no head is surely a candidate for {relation} links")
                continue
            diagonal = int((chosen["diagonal"] > 0.5).sum())
            sure = "surely " if share.low > 0.5 or share.high < 0.5 else "not surely "
            told.append(
                f"{diagonal} of {len(chosen)} candidates for {relation} links are diagonal, "
                f"{percent(share, limits=(0.5,))}, {sure}{'most' if share.value > 0.5 else 'few'}"
            )
        if not found:
            return f"{NOTHING_SURE}: {told[0]}."
        text = "; ".join(told)
        return f"{text[:1].upper()}{text[1:]}."

    def drawings(self) -> Sequence[Drawing]:
        """Linked words found against diagonal maps, for each relation."""
        caption = (
            "One dot for each head. To the right: the share of its maps that are diagonal, in per "
            "cent; upwards: the share of {} links of which it attends most to the linked word. If "
            "the highest dots lie to the right, heads that find linked words are those that look "
            "at a neighbour."
        )
        return [
            Drawing(
                str(relation).replace(":", "-"),
                partial(self._draw, str(relation), rows),
                caption.format(relation),
            )
            for relation, rows in self.tables["heads"].groupby("relation", sort=False)
        ]

    def _draw(self, relation: str, rows: pd.DataFrame) -> Figure:
        return scatter_with_rank(
            100 * rows["diagonal"],
            100 * rows["share"],
            title=f"Do diagonal heads find {relation} links?\n{self.about}",
            xlabel="diagonal maps (%)",
            ylabel="links found (%)",
        )


@dataclass(frozen=True)
class LinkCandidates(Join):
    """Are heads that find linked words those with diagonal maps?

    Combines `syntax-heads` and `map-types` of one model on one corpus.

    Method: a candidate for a relation is a head that surely finds at least three quarters of the
    linked words that the best fixed offset finds. It is diagonal if more than half of its maps are,
    alone or with vertical lines. The quantity is the share of candidates that are: its interval
    counts those for which it is sure, and those for which it is not excluded, by bounds over
    examples that hold for all heads together. Of a few candidates most may be diagonal by chance.
    So the lower bound exceeds a half only where as many diagonal ones would rarely be among as many
    heads drawn at random (Fisher's exact test).

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.5. Limits: map types are a
    network's, whose mistakes are not part of the interval. A model most of whose heads are diagonal
    has diagonal candidates too: `diagonal_others` says how many of the other heads are.
    """

    version: ClassVar[int] = 4  # shares are of links, of all sentences together
    result_type: ClassVar[type[Result]] = LinkCandidatesResult
    sources: ClassVar[tuple[str, ...]] = (LINKS, TYPES)
    lacking: ClassVar[str] = "it needs syntax-heads and map-types on the same sentences"

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """One row for each relation and head."""
        by_study = {result.provenance.study: result for result in results}
        if len(by_study) < len(results) or set(by_study) != set(self.sources):
            must = "hold one result of syntax-heads and one of map-types"
            raise ParameterError("results", name, must, [r.provenance.study for r in results])
        identities = {study: r.identity for study, r in sorted(by_study.items())}
        heads = self._heads(by_study[LINKS], by_study[TYPES])
        evidence = dict(self._evidence(heads, by_study[TYPES]))
        return self.result(
            self.provenance(name, by_study[LINKS], identities),
            {"heads": heads},
            evidence=evidence,
            reasons={"": _NO_CANDIDATE},
            facts={"examples": int(by_study[TYPES].facts["examples"])},
        )

    def _heads(self, links: Result, types: Result) -> pd.DataFrame:
        forms = types.tables["heads"]
        share = forms[list(DIAGONAL)].sum(axis=1).clip(0, 1).to_numpy(dtype=float)
        low, high = self._bounds(share, int(types.facts["examples"]))
        looks = forms[["layer", "head"]].assign(
            diagonal=share, diagonal_low=low, diagonal_high=high
        )
        found = links.tables["links"]
        towards = found["direction"].isin(("forward", "to-dependent"))  # from source to target
        found = found[towards & found["share"].notna()]
        near = found["share_low"] > NEAR * (found["share"] - found["excess"])
        table = found[["relation", "layer", "head", "share"]].assign(candidate=near)
        merged = table.merge(looks, on=["layer", "head"])
        if len(merged) < len(table):
            raise DataError(
                "The two results are of models with different heads.",
                hint="Combine results of one model.",
            )
        return merged

    def _bounds(self, share: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Shares of `n` maps each: bounds for all heads together."""
        values = np.tile([0.0, 1.0], (len(share), 1))
        counts = n * np.stack([1 - share, share], axis=1)
        budget = float(np.log(2 * len(share) / (1 - self.level)))
        return bounded_mean_bounds(values, counts, low=0.0, high=1.0, budget=budget)

    def _evidence(self, heads: pd.DataFrame, types: Result) -> Iterator[tuple[str, Estimate]]:
        columns = ("diagonal", "diagonal_low", "diagonal_high")
        n, in_all = int(types.facts["examples"]), len(types.tables["heads"])
        for relation, rows in heads.groupby("relation", sort=False):
            name = str(relation).replace("-", "_").replace(":", "_")
            for quantity, some in (
                (f"{name}_candidates_diagonal", rows[rows["candidate"]]),
                (f"{name}_diagonal_others", rows[~rows["candidate"].astype(bool)]),
            ):
                if len(some):
                    value, low, high = (float((some[c] > 0.5).mean()) for c in columns)
                    share, most = some["diagonal"].to_numpy(dtype=float), value > 0.5
                    needed, p = self._told(share, n, in_all, most=most)
                    # The heads are all there are: what the bounds are over is texts.
                    found = Estimate(value, low, high, n, self.level, needed=needed)
                    found = replace(found, tested=(0.5, p), counted=True)
                    if most and quantity.endswith("_candidates_diagonal"):
                        found = self._beyond_chance(found, _by_chance(rows))
                    yield quantity, found

    def _beyond_chance(self, found: Estimate, p: float) -> Estimate:
        """Most are diagonal only where that is told by texts and is no chance: both tests must."""
        assert found.tested is not None
        if p < 1 - self.level:
            return replace(found, tested=(0.5, max(p, found.tested[1])))
        # No test of texts is kept, since more texts would not make it surer.
        low = min(found.low, 0.5)
        return replace(found, low=low, needed=None, tested=None, remedy=_CHANCE)

    def _told(
        self, share: np.ndarray, n: int, in_all: int, *, most: bool
    ) -> tuple[int | None, float]:
        """How many texts would tell whether most are diagonal, and the p-value of these `n`.

        It is told once enough of them are on one side for sure, by the budget of `_bounds`: more
        than half for most, half for not most.
        """
        nats = np.log(2) - entr(share) - entr(1 - share)  # of one text, against one half
        side = np.sort(np.where((share > 0.5) == most, nats, 0.0))[::-1]
        enough = float(side[len(share) // 2 if most else (len(share) - 1) // 2])
        p = min(1.0, 2 * in_all * float(np.exp(-n * enough)))
        budget = float(np.log(2 * in_all / (1 - self.level)))
        return (int(np.ceil(budget / enough)) if enough > 1e-9 else None), p


def _by_chance(rows: pd.DataFrame) -> float:
    """The p-value, two-sided as all are, of as many diagonal heads among as many drawn at random.

    `rows` are all heads of one relation.
    """
    from scipy.stats import hypergeom  # here, because it is slow to import

    diagonal, candidate = rows["diagonal"] > 0.5, rows["candidate"].astype(bool)
    both = int((diagonal & candidate).sum())
    tail = hypergeom.sf(both - 1, len(rows), int(diagonal.sum()), int(candidate.sum()))
    return min(1.0, 2 * float(tail))
