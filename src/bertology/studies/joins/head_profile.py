"""Head profile: are heads that stand out in one study those that another study finds?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.errors import DataError, ParameterError
from bertology.report.figures import Dots, interval_dots, scatter_with_rank
from bertology.results.comparison import extreme
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, column_grid
from bertology.results.result import Result
from bertology.stats import Estimate, holm
from bertology.stats.contrasts import group_contrast
from bertology.studies.join import Join

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["HeadProfile", "HeadProfileResult"]

ABLATION, RELATIONS, TYPES = "head-ablation", "relation-heads", "map-types"
FRAMES = "frame"  # the relation that the paper looks for heads of
RELATION_GROUP, HETEROGENEOUS = "relation heads", "heterogeneous"
# What is taken of each study: its column, and the name it has here.
_COLUMNS: Mapping[str, Mapping[str, str]] = {
    ABLATION: {
        "difference": "effect",
        "simultaneous_low": "effect_low",
        "simultaneous_high": "effect_high",
        "p_adjusted": "effect_p",
    },
    RELATIONS: {"weight": "relation_weight", "excess": "relation_excess"},
    TYPES: {"type": "map_type"},
    "attention-change": {"cosine": "cosine_with_before", "divergence": "divergence_from_before"},
    "attention-maps": {
        n: n for n in ("previous", "self", "next", "first", "last", "entropy", "distance")
    },
}

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class HeadProfileResult(Result):
    """One row per head in `heads`; `groups` tests whether some heads matter more than the rest.

    `effect` is the change of the score without the head. A group's `contrast` is the mean effect
    of its heads less that of the others; its interval and p-value allow for other examples and for
    other heads. `crosstab` has the means by map type; `sources` says where each study's row is
    from.
    """

    def measures(self) -> Sequence[Measure]:
        """What only the combined table says; the rest is told by the results it was made of."""
        heads, found = self.tables["heads"], []
        if "effect_low" in heads:
            role = np.where(heads["effect_high"] < 0, 1, np.where(heads["effect_low"] > 0, 2, 0))
            found.append(
                Measure(
                    "role-in-task",
                    "Does the task miss the head?",
                    column_grid(heads.assign(role=role), "role").astype(float),
                    kinds=("cannot be told", "surely missed", "surely in the way"),
                    reading="By the interval of the change of the score when it is disabled, "
                    "corrected for all heads.",
                )
            )
        if "relation_head" in heads:
            found.append(
                Measure(
                    "relation-head",
                    f"Does the head attend along {self.facts.get('relation', FRAMES)} links?",
                    column_grid(heads, "relation_head").astype(float),
                    kinds=("no", "yes"),
                    reading="Yes: it is among the highest by the paper's rule, and surely gives "
                    "linked words more attention than others.",
                )
            )
        return found

    def drawings(self) -> Sequence[Drawing]:
        """Groups of heads against the rest, and relation scores against effects."""
        found = []
        if "groups" in self.tables:
            found.append(
                Drawing(
                    "groups",
                    self._draw_groups,
                    "One row for each group of heads, its size in brackets. To the right: the mean "
                    "change of the score, in points, when a head of the group is disabled, less "
                    "that of all other heads, with its interval. A group whose interval lies left "
                    "of 0 is missed more than the rest.",
                )
            )
        if {"effect", "relation_excess"} <= set(self.tables["heads"].columns):
            found.append(
                Drawing(
                    "relations",
                    self._draw_relations,
                    "One dot for each head. To the right: how much more attention it gives to "
                    "linked words than to others; upwards: the change of the score without it, in "
                    "points. Dots that fall to the right would mean that the task misses heads "
                    "which follow links.",
                )
            )
        return found

    def _draw_groups(self) -> Figure:
        groups = self.tables["groups"]
        values, low, high = (100 * groups[c].to_numpy() for c in ("contrast", "low", "high"))
        names = [f"{g} ({n})" for g, n in zip(groups["group"], groups["heads"], strict=True)]
        label = "effect of disabling a head, less that of the others, in points"
        return interval_dots(
            [Dots(label, values, low, high)],
            names,
            title=f"Which heads does the task miss?\n{self.about}",
            note="Below 0: missed more than other heads. In brackets: how many heads.",
        )

    def _draw_relations(self) -> Figure:
        heads = self.tables["heads"].dropna(subset=["effect", "relation_excess"])
        return scatter_with_rank(
            heads["relation_excess"],
            100 * heads["effect"],
            title=f"Does the task miss heads that follow relations?\n{self.about}",
            xlabel="attention to related words beyond others",
            ylabel="change of the score without the head, in points",
        )


@dataclass(frozen=True)
class HeadProfile(Join):
    """Are heads that stand out in one study those that another study finds?

    Combines the `heads` tables of results of different studies, and tests what needs two of them.
    They may be of different models of one build: relations are looked for in a pre-trained model
    and heads are disabled in a fine-tuned one. Any of the studies may be left out.

    Method: one row for each head. The mean effect of disabling a head of a group (relation heads,
    heads of a map type) less that of all others. Interval and p-value allow for two sources of
    error: other examples, over which the effects of heads vary together, and other heads, by
    giving the group's name to as many heads at random. P-values are corrected for the number of
    groups (Holm).

    Limits: the intervals of groups are not corrected for their number. Heads of one layer may have
    like effects whatever their type is: a group that sits in few layers may differ for that reason.
    """

    version: ClassVar[int] = 3  # contrasts of groups allow for other examples too
    result_type: ClassVar[type[Result]] = HeadProfileResult
    sources: ClassVar[tuple[str, ...]] = tuple(_COLUMNS)

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """One row for each head, and tests of groups of heads."""
        by_study = {r.provenance.study: r for r in results}
        if len(by_study) < len(results):
            must = "hold one result of a study"
            raise ParameterError("results", name, must, [r.provenance.study for r in results])
        identities = {study: r.identity for study, r in sorted(by_study.items())}
        heads = _joined(by_study)
        groups = self._groups(heads, by_study.get(ABLATION))
        tables = {"heads": heads} if groups is None else {"heads": heads, "groups": groups}
        if "map_type" in heads:
            tables["crosstab"] = _crosstab(heads)
        tables["sources"] = _sources(by_study)
        ablation, facts = by_study.get(ABLATION), dict[str, object]()
        if ablation is not None:
            facts |= {k: ablation.facts[k] for k in ("informed", "examples")}
        if RELATIONS in by_study:
            facts["relation"] = by_study[RELATIONS].facts.get("relation", FRAMES)
        why = _why_not(facts, heads)
        return self.result(
            self.provenance(name, ablation or results[0], identities),
            tables,
            evidence=dict(self._evidence(facts, heads, groups)) if facts.get("informed") else {},
            reasons={"": why} if why else {},
            facts=facts,
        )

    def _evidence(
        self, facts: Mapping[str, object], heads: pd.DataFrame, groups: pd.DataFrame | None
    ) -> Iterator[tuple[str, Estimate]]:
        """What claims about two studies at once are judged on."""
        # The claims are about frames; a result about another relation says nothing of them.
        frames = facts.get("relation", FRAMES) == FRAMES
        judged = (RELATION_GROUP, HETEROGENEOUS) if frames else (HETEROGENEOUS,)
        for row in [] if groups is None else groups.to_dict("records"):
            if row["group"] in judged:
                kind = str(row["group"]).replace(" heads", "").replace(" ", "_")
                bounds = (row["contrast"], row["low"], row["high"])
                n = int(str(facts["examples"]))
                yield f"{kind}_heads_effect", Estimate(*bounds, n=n, level=self.level)
        if frames and "relation_head" in heads and heads["relation_head"].any():
            new = {"effect": "difference", "effect_low": "simultaneous_low"}
            new["effect_high"] = "simultaneous_high"
            rows = heads[heads["relation_head"]].rename(columns=new)
            loss = extreme(rows, n=int(str(facts["examples"])), level=self.level, largest=False)
            yield "largest_loss_of_relation_heads", loss

    def _groups(self, heads: pd.DataFrame, ablation: Result | None) -> pd.DataFrame | None:
        """Whether relation heads, and heads of each map type, have another effect than the rest."""
        import pandas as pd

        groups: dict[str, Mask] = {}
        if "relation_head" in heads:
            groups[RELATION_GROUP] = heads["relation_head"].to_numpy(dtype=bool)
        if "map_type" in heads:
            kinds = heads["map_type"].to_numpy()
            groups |= {str(k): np.asarray(kinds == k) for k in np.unique(kinds)}
        groups = {name: g for name, g in groups.items() if 0 < g.sum() < len(heads)}
        if ablation is None or not groups:
            return None
        effect, rows = heads["effect"].to_numpy(dtype=float), []
        covariance, n = _covariance(ablation), int(ablation.facts["examples"])
        for name, group in groups.items():
            found, p = group_contrast(
                effect,
                group,
                covariance,
                n=n,
                resamples=self.resamples,
                level=self.level,
                seed=self.seed,
            )
            bounds = [found.value, found.low, found.high, p]
            rows.append([name, int(group.sum()), float(effect[group].mean()), *bounds])
        columns = ["group", "heads", "effect", "contrast", "low", "high", "p"]
        table = pd.DataFrame(rows, columns=columns)
        table["p_adjusted"] = holm(table["p"].to_numpy(dtype=float))
        return table


def _covariance(ablation: Result) -> Floats:
    """How the effects of heads vary together over examples, in the order of layers and heads."""
    if "effect_covariance" not in ablation.arrays:
        raise DataError(
            f"The result {ablation.identity} of {ABLATION!r} does not say how effects of heads "
            "vary together.",
            hint="It is of an older version: run the study again.",
        )
    heads = ablation.tables["heads"]
    order = np.lexsort((heads["head"], heads["layer"]))
    found = ablation.arrays["effect_covariance"].to_numpy().astype(float)
    return np.asarray(found[np.ix_(order, order)])


def _why_not(facts: Mapping[str, object], heads: pd.DataFrame) -> str:
    """Claims need a model that has learned its task, and the ablation of its heads."""
    if "informed" not in facts:
        return "not judged: no result of head-ablation is among those combined"
    if not facts["informed"]:
        return "not judged: the intact model does not surely beat a constant answer"
    relation = facts.get("relation", FRAMES)
    if relation != FRAMES:
        return f"not judged: the relation heads are of {relation}, and not of {FRAMES}"
    if "relation_head" not in heads or not heads["relation_head"].any():
        return f"not judged: no head with the highest weights surely attends along {relation}"
    return ""


def _joined(by_study: Mapping[str, Result]) -> pd.DataFrame:
    """One row per head, with the columns of every study."""
    joined: pd.DataFrame | None = None
    for study, result in sorted(by_study.items(), key=lambda item: list(_COLUMNS).index(item[0])):
        if "heads" not in result.tables:
            raise DataError(
                f"The result {result.identity} of {study!r} has no table of heads.",
                hint="Run the study again with its heads.",
            )
        given = result.tables["heads"]
        columns = {c: new for c, new in _COLUMNS[study].items() if c in given}
        table = given[["layer", "head", *columns]].rename(columns=columns)
        if study == RELATIONS:  # above the paper's percentile, and surely
            table["relation_head"] = given["above_percentile"] & given["sure"]
        if joined is None:
            joined = table
        elif set(zip(joined["layer"], joined["head"], strict=True)) != set(
            zip(table["layer"], table["head"], strict=True)
        ):
            raise DataError(
                f"The result {result.identity} of {study!r} is of other heads than the rest.",
                hint="Join results of models that have the same layers and heads.",
            )
        else:
            joined = joined.merge(table, on=["layer", "head"])
    assert joined is not None
    return joined.sort_values(["layer", "head"], ignore_index=True)


def _crosstab(heads: pd.DataFrame) -> pd.DataFrame:
    """Map type against effect and relation: means by class, and how many heads are of each kind."""
    import pandas as pd

    by_type = heads.groupby("map_type", sort=True)
    table = pd.DataFrame({"heads": by_type.size()})
    for column in ("effect", "relation_excess", "cosine_with_before"):
        if column in heads:
            table[f"mean_{column}"] = by_type[column].mean()
    if "relation_head" in heads:
        table["relation_heads"] = by_type["relation_head"].sum()
    if "effect_low" in heads:
        table["surely_missed"] = (heads["effect_high"] < 0).groupby(heads["map_type"]).sum()
        table["surely_harmful"] = (heads["effect_low"] > 0).groupby(heads["map_type"]).sum()
    return table.reset_index()


def _sources(by_study: Mapping[str, Result]) -> pd.DataFrame:
    import pandas as pd

    rows = [
        (name, r.identity, r.provenance.model.get("name"), (r.provenance.corpus or {}).get("name"))
        for name, r in by_study.items()
    ]
    return pd.DataFrame(rows, columns=["study", "identity", "model", "corpus"])
