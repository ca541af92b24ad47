"""Head profile: are heads that stand out in one study those that another study finds?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import DataError, ParameterError
from bertology.report import drawings
from bertology.report.figures import Dots, scatter_with_rank
from bertology.results.answers import NOTHING_SURE, of_row, points
from bertology.results.comparison import extreme
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, column_grid
from bertology.results.ranking import Ranking
from bertology.results.result import Result
from bertology.stats import Estimate, holm
from bertology.stats.contrasts import group_contrast
from bertology.studies.join import ResampledJoin

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ABLATION, RELATIONS, TYPES = "head-ablation", "relation-heads", "map-types"
FRAMES = "frame"  # the relation that the paper looks for heads of
RELATION_GROUP, HETEROGENEOUS = "relation heads", "heterogeneous"
_KINDS = {RELATION_GROUP: "relation_heads", HETEROGENEOUS: "heterogeneous_heads"}
# What is taken of each study: its column, and the name it has here.
_COLUMNS: Mapping[str, Mapping[str, str]] = {
    ABLATION: {
        "difference": "effect",
        "simultaneous_low": "effect_low",
        "simultaneous_high": "effect_high",
        "alone_low": "effect_alone_low",
        "alone_high": "effect_alone_high",
        "p_adjusted": "effect_p",
        "loss_balance": "share_worse",
        "loss_balance_low": "share_worse_low",
        "loss_balance_high": "share_worse_high",
        "loss_alone_low": "share_worse_alone_low",
        "loss_alone_high": "share_worse_alone_high",
        "loss_p_adjusted": "share_worse_p",
    },
    RELATIONS: {"weight": "relation_weight", "excess": "relation_excess"},
    TYPES: {"type": "map_type"},
    "attention-change": {"cosine": "cosine_with_before", "divergence": "divergence_from_before"},
    "attention-maps": {
        n: n for n in ("previous", "self", "next", "first", "last", "entropy", "distance")
    },
}

Mask = NDArray[np.bool_]


class Effect(NamedTuple):
    """What the task loses without a head, in one of two ways."""

    column: str
    """Of the table of heads."""
    covariance: str
    """The array of head-ablation that says how it varies over examples."""
    prefix: str
    """Of the columns of groups."""
    label: str


_EFFECTS = (
    Effect(
        "effect",
        "effect_covariance",
        "",
        "change of the score without a head,\nless that of the others, in points",
    ),
    Effect(
        "share_worse",
        "loss_covariance",
        "loss_",
        "net share of examples whose loss rises,\nless that of the others, in %",
    ),
)


# The answer of each effect: what disabling a head of a group does beyond what others do.
_TOLD = {
    "effect": "the change of the score without a head of the group “{group}” differs by {change} "
    "from that without another head",
    "share_worse": "the net share of examples whose loss rises without a head of the group "
    "“{group}” differs by {change} from that without another head",
}


class HeadProfileResult(Result):
    """One row per head in `heads`; `groups` tests whether some heads matter more than the rest.

    `effect` is the change of the score without the head, `share_worse` the share of examples whose
    loss rises less the share whose loss falls. A group's `contrast` is the mean effect of its heads
    less that of the others, `loss_contrast` the same of `share_worse`; intervals and p-values
    allow for other examples and for other heads. `crosstab` has the means by map type; `sources`
    says where each study's row is from.
    """

    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "heads": {"effect": "points", "share_worse": "%"},
        "groups": {
            **dict.fromkeys(("contrast", "loss_contrast", "effect"), "points"),
            "share_worse": "%",
        },
        "crosstab": {"mean_effect": "points", "mean_share_worse": "%"},
    }

    @property
    def answer(self) -> str:
        """The group of heads whose effect differs most surely from that of the others."""
        if "groups" not in self.tables:
            why = self.reasons().get("", "there are no two groups of heads to compare")
            return f"{NOTHING_SURE}: {why.removeprefix('not judged: ')}."
        found = self._surest()
        if found is None:
            return f"{NOTHING_SURE}: no group of heads could be compared with the others."
        effect, row = found
        columns = tuple(f"{effect.prefix}{name}" for name in ("contrast", "low", "high"))
        told = _TOLD[effect.column].format(
            group=row["group"], change=points(of_row(row, (columns[0], columns[1], columns[2])))
        )
        return f"{'Surely' if self._is_sure(effect, row) else NOTHING_SURE}: {told}."

    def ranking(self, name: str) -> Ranking | None:
        """Groups by the test that the answer tells of."""
        if name == "groups" and (found := self._surest()) is not None:
            return f"-{found[0].prefix}p_adjusted"
        return super().ranking(name)

    def _surest(self) -> tuple[Effect, pd.Series[Any]] | None:
        """The group that differs most surely, by the first effect by which one surely does."""
        groups = self.tables["groups"]
        rows = [
            (effect, groups.sort_values(f"{effect.prefix}p_adjusted", kind="stable").iloc[0])
            for effect in _EFFECTS
            if (name := f"{effect.prefix}contrast") in groups and groups[name].notna().any()
        ]
        return next((one for one in rows if self._is_sure(*one)), rows[0] if rows else None)

    def _is_sure(self, effect: Effect, row: pd.Series[Any]) -> bool:
        return bool(row[f"{effect.prefix}p_adjusted"] < 1 - float(self.facts["level"]))

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
            found.append(self._draw_groups())
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

    def _draw_groups(self) -> Drawing:
        groups = self.tables["groups"]
        names = [f"{g} ({n})" for g, n in zip(groups["group"], groups["heads"], strict=True)]
        panels = []
        for _, _, prefix, label in _EFFECTS:
            columns = [f"{prefix}{c}" for c in ("contrast", "low", "high")]
            if {*columns} <= {*groups.columns}:  # older results have no loss
                values = (100 * groups[c].to_numpy() for c in columns)
                panels.append(Dots(label, *values, level=0))
        return drawings.dots(
            "groups",
            panels,
            names,
            self.about,
            title="Which heads does the task miss?",
            caption="One row for each group of heads, its size in brackets. Left panel: the mean "
            "change of the score, in points, when a head of the group is disabled, less "
            "that of all other heads, with its interval; left of 0, the group is missed "
            "more than the rest. Right panel: the same of the share of examples whose "
            "loss rises less the share whose loss falls; there, right of 0.",
            note="Missed more than other heads: left of 0 by the score, right of 0 by the loss. "
            "In brackets: how many heads.",
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
class HeadProfile(ResampledJoin):
    """Are heads that stand out in one study those that another study finds?

    Combines the `heads` tables of results of different studies, and tests what needs two of them.
    They may be of different models of one build: relations are looked for in a pre-trained model
    and heads are disabled in a fine-tuned one. Any of the studies may be left out.

    Method: one row for each head. The mean effect of disabling a head of a group (relation heads,
    heads of a map type) less that of all others: on the score, and on the loss, as the share of
    examples whose loss rises less the share whose loss falls. Interval and p-value allow for two
    sources of error: other examples, over which the effects of heads vary together, and other
    heads, by giving the group's name to as many heads at random. P-values are corrected for the
    number of groups (Holm).

    Limits: the intervals of groups are not corrected for their number. Heads of one layer may have
    like effects whatever their type is: a group that sits in few layers may differ for that reason.
    """

    version: ClassVar[int] = 5  # relation heads' own upper bounds, without correction
    result_type: ClassVar[type[Result]] = HeadProfileResult
    sources: ClassVar[tuple[str, ...]] = tuple(_COLUMNS)

    def combine(self, results: Sequence[Result], name: str) -> Result:
        """One row for each head, and tests of groups of heads."""
        given = {r.provenance.study: r for r in results}
        if len(given) < len(results):
            must = "hold one result of a study"
            raise ParameterError("results", name, must, [r.provenance.study for r in results])
        by_study = {study: given[study] for study in self.sources if study in given}
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
        return self.result(
            self.provenance(name, ablation or next(iter(by_study.values())), identities),
            tables,
            evidence=dict(self._evidence(facts, heads, groups)) if facts.get("informed") else {},
            reasons={quantity: f"not judged: {why}" for quantity, why in _reasons(facts, heads)},
            facts=facts,
        )

    def _evidence(
        self, facts: Mapping[str, object], heads: pd.DataFrame, groups: pd.DataFrame | None
    ) -> Iterator[tuple[str, Estimate]]:
        """What claims about two studies at once are judged on."""
        # The claims are about frames; a result about another relation says nothing of them.
        frames, n = facts.get("relation", FRAMES) == FRAMES, int(str(facts["examples"]))
        judged = (RELATION_GROUP, HETEROGENEOUS) if frames else (HETEROGENEOUS,)
        for row in [] if groups is None else groups.to_dict("records"):
            if row["group"] in judged:
                for kind in _EFFECTS:
                    value, low, high = (
                        float(row[f"{kind.prefix}{c}"]) for c in ("contrast", "low", "high")
                    )
                    found = Estimate(value, low, high, n, self.level)
                    yield f"{_KINDS[str(row['group'])]}_{kind.column}", found
        if frames and "relation_head" in heads and heads["relation_head"].any():
            # Under the names that head-ablation has for them. Another study chose the heads, so the
            # largest loss is bounded from above by their own bounds, with no correction.
            back = {new: old for old, new in _COLUMNS[ABLATION].items()}
            rows = heads[heads["relation_head"]].rename(columns=back)
            of_rows = partial(extreme, rows, n=n, level=self.level)
            yield "largest_loss_of_relation_heads", of_rows(largest=False)
            yield "largest_share_worse_of_relation_heads", of_rows(loss=True)

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
        table = pd.DataFrame(
            {"group": list(groups), "heads": [int(group.sum()) for group in groups.values()]}
        )
        n = int(ablation.facts["examples"])
        for column, covariance, prefix, _ in _EFFECTS:
            effect, together = (
                heads[column].to_numpy(dtype=float),
                _covariance(ablation, covariance),
            )
            contrast = partial(
                group_contrast,
                effect,
                covariance=together,
                n=n,
                resamples=self.resamples,
                level=self.level,
                seed=self.seed,
            )
            found = [contrast(group) for group in groups.values()]
            table[column] = [float(effect[group].mean()) for group in groups.values()]
            table[f"{prefix}contrast"] = [one.value for one, _ in found]
            table[f"{prefix}low"] = [one.low for one, _ in found]
            table[f"{prefix}high"] = [one.high for one, _ in found]
            table[f"{prefix}p"] = [p for _, p in found]
            table[f"{prefix}p_adjusted"] = holm([p for _, p in found])
        return table


def _covariance(ablation: Result, name: str) -> Floats:
    """How the effects of heads vary together over examples, in the order of layers and heads."""
    if name not in ablation.arrays:
        raise DataError(
            f"The result {ablation.identity} of {ABLATION!r} does not say how effects of heads "
            "vary together.",
            hint="It is of an older version: run the study again.",
        )
    heads = ablation.tables["heads"]
    order = np.lexsort((heads["head"], heads["layer"]))
    found = ablation.arrays[name].to_numpy().astype(float)
    return np.asarray(found[np.ix_(order, order)])


def _reasons(facts: Mapping[str, object], heads: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Why a quantity has no estimate, quantity by quantity; "" is for all of them."""
    if "informed" not in facts:
        yield "", "no result of head-ablation is among those combined"
        return
    if not facts["informed"]:
        yield "", "the intact model does not surely beat a constant answer, so no head can matter"
        return
    chosen = heads["relation_head"].to_numpy(bool) if "relation_head" in heads else None
    relation = facts.get("relation", FRAMES)
    none = (
        f"no head is surely a relation head: above the percentile of weights along {relation} "
        "links, and surely giving them more attention than other pairs"
    )
    why = ""
    if chosen is None:
        why = "no result of relation-heads is among those combined"
    elif relation != FRAMES:
        why = f"the relation heads are of {relation}; the claims are about {FRAMES}"
    elif not chosen.any():
        why = none
    if why:
        yield from ((f"largest_{of}_of_relation_heads", why) for of in ("loss", "share_worse"))
    if not why and chosen is not None and chosen.all():
        why = "all heads are relation heads, and there are no others to compare them with"
    if why:
        yield from ((f"{_KINDS[RELATION_GROUP]}_{e.column}", why) for e in _EFFECTS)
    why = ""
    if "map_type" not in heads:
        why = "no result of map-types is among those combined"
    else:
        share = float((heads["map_type"] == HETEROGENEOUS).mean())
        if share in (0, 1):
            some = "no head has" if share == 0 else "all heads have"
            why = f"{some} mostly {HETEROGENEOUS} maps, so there are no two groups to compare"
    if why:
        yield from ((f"{_KINDS[HETEROGENEOUS]}_{e.column}", why) for e in _EFFECTS)


def _joined(by_study: Mapping[str, Result]) -> pd.DataFrame:
    """One row per head, with the columns of every study."""
    joined: pd.DataFrame | None = None
    for study, result in by_study.items():
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
    for column in ("effect", "share_worse", "relation_excess", "cosine_with_before"):
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
