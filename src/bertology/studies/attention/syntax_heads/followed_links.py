"""How often heads find linked words: the best head of a relation, the best relation of a head.

Shares are of links, as the literature counts words, and intervals are over sentences (`per_item`).
The best of many heads, directions and relations is picked on one half of the sentences and scored
on the other. The offset that they are set against is the best of all sentences. That flatters the
offset a little and never the head: where two offsets are nearly as good, halves disagree on which
is better, each half is given what is worse on it, and a head that is nothing but an offset would
seem to gain ten points and more. A head that looks at one word whatever the source follows no link:
it must also find the target more often than from other words (`selectivity`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats
from bertology.stats import Estimate
from bertology.stats.best_of_many import largest_of
from bertology.stats.multiplicity import RowBlocks
from bertology.stats.partial_means import PartialMeans, means_with_tests, partial_means
from bertology.studies.attention.syntax_heads.link_counts import (
    ALL,
    FEWEST,
    PUNCTUATION,
    Counts,
    LinkCounts,
    Question,
    quantity_of,
)
from bertology.studies.designs.blocks import Tagged
from bertology.studies.designs.shares import best_of_other_half, per_item
from bertology.studies.designs.tables import head_table, with_bounds
from bertology.studies.designs.trees import beyond_elsewhere

if TYPE_CHECKING:
    import pandas as pd

_OFFSETS = 20  # of each relation and direction, the best ones are told
_HELD = 24  # heads whose values of all sentences are in memory together
_MARGIN = 0.05  # points that a head must gain to count as one that follows a relation


@dataclass
class _Picked:
    """The cross-fitted best of some candidates in each row, and what it is set against; (N,)."""

    examples: int
    best: list[int] = field(default_factory=list)
    columns: dict[str, list[Any]] = field(default_factory=dict)
    values: dict[str, list[Floats]] = field(default_factory=dict)

    def add(self, counts: Counts, directions: slice, **labels: Any) -> None:
        """One question, in one direction or in both."""
        n, links = len(counts.links), counts.links

        def flat(values: NDArray[Any]) -> NDArray[Any]:
            return values[:, directions].reshape(n, -1)

        columns = {"links": int(links.sum()), **labels}
        if n:
            hits = flat(counts.hits)
            best, score = best_of_other_half(hits, links)
            found = {
                "share": score,
                "elsewhere": best_of_other_half(hits, links, told=flat(counts.elsewhere))[1],
                "special": best_of_other_half(flat(counts.with_special), links)[1],
                "baseline": _baseline(flat(counts.offsets), links),
            }
        else:
            best, found = (
                0,
                dict.fromkeys(("share", "elsewhere", "special", "baseline"), np.empty(0)),
            )
        self.best.append(best)
        for name, value in columns.items():
            self.columns.setdefault(name, []).append(value)
        for name, of in found.items():
            row = np.full(self.examples, np.nan)
            row[counts.examples] = of
            self.values.setdefault(name, []).append(row)


@dataclass(frozen=True)
class FollowedLinks(Tagged):
    """Links between words, and which heads find one end from the other."""

    def looked_through(
        self,
        counts: LinkCounts,
        questions: Sequence[Question],
        shape: tuple[int, int],
        *,
        named: bool,
    ) -> dict[str, pd.DataFrame]:
        """All tables; `shape` is the number of layers and of heads.

        `relations`: the best head and direction of each relation; `heads`: the relation that each
        head follows best; `directions`: as `relations`, of each direction; `links`: every head,
        with bounds where relations are `named`.
        """
        import pandas as pd

        size = counts.examples
        best, each, links = _Picked(size), _Picked(size), list[Any]()
        surest = np.empty((3, len(questions), 2, shape[0] * shape[1]))
        offsets = []
        among = surest[0].size  # relations, directions and heads
        for i, question in enumerate(questions):
            of = counts.of(question.names)
            best.add(of, slice(0, 2), relation=question.relation, offset=_best_offset(of, question))
            for d, direction in enumerate(question.directions):
                one = slice(d, d + 1)
                each.add(of, one, relation=question.relation, direction=direction)
                offsets.append(_offset_table(of, d, question))
            links.append(self._links(of, question, shape, among, named=named))
            surest[:, i] = [_surest(of, parity) for parity in (0, 1, None)]
        relations = self._picked_table(best, shape)
        at = np.array(best.best) // (shape[0] * shape[1])
        names = [q.directions[d] for q, d in zip(questions, at, strict=True)]
        relations.insert(1, "direction", names)
        return {
            "relations": relations,
            "heads": self._heads(counts, questions, surest, shape),
            "directions": self._picked_table(each, shape),
            "links": pd.concat(links, ignore_index=True),
            "offsets": pd.concat(offsets, ignore_index=True),
        }

    def _of_links(
        self, rows: Floats | RowBlocks, *, least: float, families: int = 2
    ) -> PartialMeans:
        """Means over sentences; gain and selectivity are judged together."""
        return self.means(rows, within=(least, 1.0), reach=1.0, families=families)

    def _picked_table(self, picked: _Picked, shape: tuple[int, int]) -> pd.DataFrame:
        """What was picked, with bounds for all rows together."""
        import pandas as pd

        rows = {name: np.array(values) for name, values in picked.values.items()}
        share = self._of_links(rows["share"], least=0.0, families=1)
        gains = rows["share"] - rows["baseline"], rows["share"] - rows["elsewhere"]
        gain, chosen = (self._of_links(of, least=-1.0) for of in gains)
        # A claim names one relation before looking, and both questions must be surely answered.
        alone = [
            partial_means(of, reach=1.0, within=(-1.0, 1.0), level=self.level, among=1)
            for of in gains
        ]
        heads = np.array(picked.best) % (shape[0] * shape[1])
        first, rest = dict[str, Any](), dict[str, Any]()
        for name, column in picked.columns.items():
            (first if name in ("relation", "direction") else rest)[name] = column
        columns: dict[str, ArrayLike] = {
            **first,
            "layer": heads // shape[1],
            "head": heads % shape[1],
            "n": gain.n,
            **rest,
            **with_bounds("share", share, p=False),
            "share_with_special": _means(rows["special"]),
            "baseline": _means(rows["baseline"]),
            **with_bounds("gain", gain),
            "gain_alone_low": alone[0].alone_low,
            "gain_alone_high": gain.alone_high,
            **with_bounds("selectivity", chosen),
            "selectivity_alone_low": alone[1].alone_low,
            "selectivity_alone_high": chosen.alone_high,
        }
        return pd.DataFrame(columns)

    def _links(
        self, of: Counts, question: Question, shape: tuple[int, int], among: int, *, named: bool
    ) -> pd.DataFrame:
        """Every head in both directions, tested among so many; bounds where relations are named."""
        import pandas as pd

        heads, found = shape[0] * shape[1], []
        for d, direction in enumerate(question.directions):
            base = _baseline(of.offsets[:, d], of.links) if len(of.links) else np.zeros(1)
            make, pieces = self._bounded if named else self._tested, []
            for at in range(0, heads, _HELD):
                some = slice(at, min(at + _HELD, heads))
                hits, special, elsewhere = (
                    per_item(side[:, d, some].T, of.links)
                    if len(of.links)
                    else np.full((some.stop - at, 1), np.nan)
                    for side in (of.hits, of.with_special, of.elsewhere)
                )
                pieces.append(make(hits, special, base, elsewhere, among))
            columns = {n: np.concatenate([np.asarray(p[n]) for p in pieces]) for n in pieces[0]}
            table = head_table(shape, columns, groups=("direction", [direction]))
            table.insert(0, "relation", question.relation)
            found.append(table)
        return pd.concat(found, ignore_index=True)

    @property
    def _half(self) -> float:
        """The level at which excess and selectivity are judged together."""
        return 1 - (1 - self.level) / 2

    def _tested(
        self, hits: Floats, special: Floats, base: Floats, elsewhere: Floats, among: int
    ) -> dict[str, ArrayLike]:
        """Columns of `links` with p-values, corrected for all relations, directions and heads."""
        test = partial(means_with_tests, reach=1.0, level=self._half, among=among)
        (excess, excess_p, n), (chosen, chosen_p, _) = test(hits - base), test(hits - elsewhere)
        return {
            "n": n,
            "share": _means(hits),
            "excess": excess,
            "excess_p": excess_p,
            "selectivity": chosen,
            "selectivity_p": chosen_p,
            "share_with_special": _means(special),
        }

    def _bounded(
        self, hits: Floats, special: Floats, base: Floats, elsewhere: Floats, among: int
    ) -> dict[str, ArrayLike]:
        """The same with bounds."""
        means = partial(partial_means, reach=1.0, level=self._half, among=among)
        share = means(hits, within=(0, 1))
        excess, chosen, among_all = (
            means(rows, within=(-1, 1)) for rows in (hits - base, hits - elsewhere, special - base)
        )
        return {
            "n": excess.n,
            **with_bounds("share", share, p=False),
            **with_bounds("excess", excess),
            **with_bounds("selectivity", chosen),
            "alone_high": np.minimum(excess.alone_high, chosen.alone_high),
            "share_with_special": _means(special),
            **with_bounds("excess_with_special", among_all, p=False),
        }

    def _heads(
        self,
        counts: LinkCounts,
        questions: Sequence[Question],
        surest: Floats,
        shape: tuple[int, int],
    ) -> pd.DataFrame:
        """The relation that each head follows best, picked on the other half of the sentences.

        `surest` is (halves and all, questions, 2, heads): how surely each gains.
        """
        heads = shape[0] * shape[1]
        used = np.array([q.relation not in (ALL, PUNCTUATION) for q in questions])
        if not used.any():
            used[:] = True  # it was asked for
        flat = np.where(used[:, None, None], surest, -np.inf).reshape(3, -1, heads)
        picked = flat.argmax(axis=1)  # (3, heads): question and direction
        size = counts.examples
        gains, chosen = (np.zeros((heads, size), np.float32) for _ in range(2))
        links = np.zeros((heads, size), np.int16)
        for i in np.unique(picked[:2] // 2):
            of = counts.of(questions[i].names)
            for half in (0, 1):
                some = of.examples % 2 == half
                for d in (0, 1):
                    who = np.flatnonzero(picked[1 - half] == 2 * i + d)
                    over, beyond = _differences(of, d, who)
                    at = np.ix_(who, of.examples[some])
                    links[at] = of.links[some]
                    gains[at], chosen[at] = over[some].T, beyond[some].T
        links[counts.gone] = 0

        def few(x: NDArray[Any]) -> RowBlocks:
            starts = range(0, heads, _HELD)
            return RowBlocks(
                lambda: (per_item(x[at : at + _HELD], links[at : at + _HELD]) for at in starts)
            )

        gain, chose = (self._of_links(few(x), least=-1.0) for x in (gains, chosen))
        best = [divmod(int(at), 2) for at in picked[2]]
        columns: dict[str, ArrayLike] = {
            "relation": np.array([questions[i].relation for i, _ in best]),
            "direction": np.array([questions[i].directions[d] for i, d in best]),
            "n": gain.n,
            **with_bounds("gain", gain),
            "gain_alone_high": gain.alone_high,
            **with_bounds("selectivity", chose),
            "selectivity_alone_high": chose.alone_high,
        }
        return head_table(shape, columns)

    def gains(
        self, rows: pd.DataFrame, *, by_direction: bool = False
    ) -> Iterator[tuple[str, Estimate]]:
        """Of each row its gain over the offset; its control is finding it from other words."""
        for _, row in rows[rows["n"] > 1].iterrows():
            direction = f"_{quantity_of(str(row['direction']))}" if by_direction else ""
            name = f"{quantity_of(str(row['relation']))}{direction}_gain"
            yield name, beyond_elsewhere(row, self.level, low="_alone_low")  # for its own relation

    def following(self, heads: pd.DataFrame) -> Estimate | None:
        """The share of heads that gain five points or more on some relation.

        The interval counts those that surely do, and those of which it is not excluded.
        """
        known = heads[heads["n"] > 1]
        if known.empty:
            return None
        value, low, high = (
            float((known[[f"gain{b}", f"selectivity{b}"]].min(axis=1) > _MARGIN).mean())
            for b in ("", "_low", "_alone_high")
        )
        n = int(known["n"].max())
        return Estimate(value, low, high, n, self.level, "sentences", counted=True)


def _means(rows: Floats) -> Floats:
    """Of each row the mean of what is there; NaN without any."""
    there = np.isfinite(rows)
    found = np.where(there, rows, 0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    return np.asarray(np.where(there.any(axis=1), found, np.nan), np.float64)


def _best_of(offsets: NDArray[Any]) -> NDArray[Any]:
    """(n,): links that the best of offsets (n, O) finds; it is the best of all sentences."""
    if not offsets.size:
        return np.zeros(len(offsets), np.float32)
    return np.asarray(offsets[:, int(offsets.sum(axis=0).argmax())])


def _baseline(offsets: NDArray[Any], links: NDArray[Any]) -> Floats:
    """The same as values of sentences whose mean is the share of links."""
    return per_item(_best_of(offsets), links)


def _differences(
    of: Counts, direction: int, heads: Any = slice(None)
) -> tuple[NDArray[Any], NDArray[Any]]:
    """(n, C): hits beyond those of the best offset, and beyond those from other words."""
    hits = of.hits[:, direction][:, heads]
    return (
        hits - _best_of(of.offsets[:, direction])[:, None],
        hits - of.elsewhere[:, direction][:, heads],
    )


def _surest(of: Counts, parity: int | None) -> Floats:
    """(2, C): how surely heads gain in a half of the sentences, in standard errors.

    The largest gain may be that of a rare relation. Without five sentences nothing is sure.
    """
    some = slice(None) if parity is None else of.examples % 2 == parity
    if len(of.examples[some]) < FEWEST // 2:
        return np.full(of.hits.shape[1:], -1e9)
    found = []
    for direction in (0, 1):
        sides = [side[some] for side in _differences(of, direction)]
        sizes = [np.sqrt((side**2).sum(axis=0, dtype=np.float64)) for side in sides]
        surest = [
            x.sum(axis=0, dtype=np.float64) / np.maximum(s, 1e-12)
            for x, s in zip(sides, sizes, strict=True)
        ]
        found.append(np.nan_to_num(np.minimum(*surest), nan=-1e9))
    return np.array(found)


def _best_offset(of: Counts, question: Question) -> int:
    """Of all sentences; where the head stands as seen from the dependent, in a tree."""
    shares = of.offsets[:, 1 if question.of_trees else 0].sum(axis=0)
    return int(of.distances[int(shares.argmax())]) if shares.size else 0


def _offset_table(of: Counts, direction: int, question: Question) -> pd.DataFrame:
    """The share of links that the best offsets find."""
    import pandas as pd

    shares = of.offsets[:, direction].sum(axis=0) / max(int(of.links.sum()), 1)
    best = np.argsort(-shares, kind="stable")[: min(_OFFSETS, int((shares > 0).sum()))]
    best = np.sort(best)
    columns = {"offset": of.distances[best], "share": shares[best].astype(np.float64)}
    told = pd.DataFrame(columns)
    told.insert(0, "direction", question.directions[direction])
    told.insert(0, "relation", question.relation)
    return told


def followed_evidence(links: pd.DataFrame, level: float) -> dict[str, Estimate | None]:
    """Of each relation, the best head's gain over the offset and over itself from elsewhere.

    From sources to targets. Whichever is less: what is said is said of heads that follow links, and
    one that finds the same words from elsewhere follows none. As a candidate's only where some head
    does follow the links. From above the largest gain is bounded by the heads' own bounds: that of
    the truly best must hold, no other.
    """
    found: dict[str, Estimate | None] = {}
    known = links["excess_low"].notna() & links["direction"].isin(("forward", "to-dependent"))
    for relation, rows in links[known].groupby("relation", sort=False):
        value, low = (rows[[f"excess{b}", f"selectivity{b}"]].min(axis=1) for b in ("", "_low"))
        best = largest_of(
            value, low, rows["alone_high"], n=rows["n"], level=level, unit="sentences"
        )
        name = quantity_of(str(relation))
        found[f"{name}_excess"] = best
        # Where no head surely comes near the offset, there is no candidate to speak of.
        if (rows["share_low"] > 0.75 * (rows["share"] - rows["excess"])).any():
            found[f"{name}_candidate_excess"] = best
    return found
