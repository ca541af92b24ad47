"""Head profile: what several stored results say about the same heads, side by side. No model.

Not a study of its own, since nothing is measured: a table that joins the `heads` tables of other
studies, and tests of statements that need two of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.errors import DataError, ParameterError
from bertology.results.comparison import extreme
from bertology.results.measures import Measure, column_grid
from bertology.results.result import Provenance, Result
from bertology.stats import Estimate, holm

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["JOINED", "HeadProfileResult", "head_profile"]

ABLATION, RELATIONS, TYPES = "head-ablation", "relation-heads", "map-types"
HETEROGENEOUS = "heterogeneous"
FRAMES = "frame"  # the relation that the paper looks for heads of
RELATION_GROUP = "relation heads"
_CLASSES = ("vertical", "diagonal", "vertical+diagonal", "block", HETEROGENEOUS)
_NAMES_OF_TYPE = ("majority", "class", "type")
_TOP = 1.0  # percent of heads, where a result does not say which heads follow the relation

JOINED: Mapping[str, Mapping[str, str]] = {
    ABLATION: {
        "difference": "effect",
        "simultaneous_low": "effect_low",
        "simultaneous_high": "effect_high",
        "p_adjusted": "effect_p",
    },
    RELATIONS: {"weight": "relation_weight", "excess": "relation_excess"},
    TYPES: {},
    "attention-change": {"cosine": "cosine_with_before", "divergence": "divergence_from_before"},
    "attention-maps": {
        n: n for n in ("previous", "self", "next", "first", "last", "entropy", "distance")
    },
}
"""Studies that are joined, and what each gives: its column and the name it has here."""

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class HeadProfileResult(Result):
    """One row per head in `heads`; `groups` tests whether some heads matter more than the rest.

    `effect` is the change of the score without the head. A group's `contrast` is the mean effect
    of its heads less that of the others; its interval and p-value come from exchanging heads at
    random. `crosstab` has the means by map type; `sources` says where each study's row is from.
    """

    def evidence(self) -> dict[str, Estimate]:
        """What claims about two studies at once are judged on."""
        facts, heads = self.arrays.attrs, self.tables["heads"]
        if not facts.get("informed", 0):
            return {}
        level, found = float(facts["level"]), {}
        groups = self.tables["groups"].to_dict("records") if "groups" in self.tables else []
        # The claims are about frames; a result about another relation says nothing of them.
        frames = str(facts.get("relation", FRAMES)) == FRAMES
        judged = (RELATION_GROUP, HETEROGENEOUS) if frames else (HETEROGENEOUS,)
        for row in groups:
            if row["group"] in judged:
                name = f"{row['group'].replace(' heads', '')}_heads_effect".replace(" ", "_")
                bounds = (row["contrast"], row["low"], row["high"])
                found[name] = Estimate(*bounds, n=len(heads), level=level)
        if frames and "relation_head" in heads and heads["relation_head"].any():
            new = {"effect": "difference", "effect_low": "simultaneous_low"}
            new["effect_high"] = "simultaneous_high"
            rows = heads[heads["relation_head"]].rename(columns=new)
            found["largest_loss_of_relation_heads"] = extreme(
                rows, n=int(facts["examples"]), level=level, largest=False
            )
        return found

    def why_not(self) -> str | None:
        """Claims need a model that has learned its task, and the ablation of its heads."""
        if "informed" not in self.arrays.attrs:
            return "not judged: no result of head-ablation is among those joined"
        if not self.arrays.attrs["informed"]:
            return "not judged: the intact model does not surely beat a constant answer"
        relation = self.arrays.attrs.get("relation", FRAMES)
        if relation != FRAMES:
            return f"not judged: the relation heads are of {relation}, and not of {FRAMES}"
        heads = self.tables["heads"]
        if "relation_head" not in heads or not heads["relation_head"].any():
            return f"not judged: no head with the highest weights surely attends along {relation}"
        return None

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """Groups of heads against the rest, and relation scores against effects."""
        drawings: dict[str, Callable[[], Figure]] = {}
        if "groups" in self.tables:
            drawings["groups"] = self._draw_groups
        if {"effect", "relation_excess"} <= set(self.tables["heads"].columns):
            drawings["relations"] = self._draw_relations
        return drawings

    def captions(self) -> Mapping[str, str]:
        """What each figure shows."""
        texts = {
            "groups": "One row for each group of heads, its size in brackets. To the right: the "
            "mean change of the score, in points, when a head of the group is disabled, less that "
            "of all other heads, with its interval. A group whose interval lies left of 0 is "
            "missed more than the rest.",
            "relations": "One dot for each head. To the right: how much more attention it gives to "
            "linked words than to others; upwards: the change of the score without it, in points. "
            "Dots that fall to the right would mean that the task misses heads which follow links.",
        }
        return {name: texts[name] for name in self.figures()}

    def measures(self) -> Sequence[Measure]:
        """What only the joined table says; the rest is told by the results it was joined from."""
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
            relation = self.arrays.attrs.get("relation", FRAMES)
            found.append(
                Measure(
                    "relation-head",
                    f"Does the head attend along {relation} links?",
                    column_grid(heads, "relation_head").astype(float),
                    kinds=("no", "yes"),
                    reading="Yes: it is among the highest by the paper's rule, and surely gives "
                    "linked words more attention than others.",
                )
            )
        return found

    @property
    def _title(self) -> str:
        corpus = (self.provenance.corpus or {}).get("name")
        model = str(self.provenance.model.get("name")).rstrip("/").rsplit("/", 1)[-1]
        return f"{model} on {corpus}"

    def _draw_groups(self) -> Figure:
        from bertology.report.figures import Dots, interval_dots

        groups = self.tables["groups"]
        values, low, high = (100 * groups[c].to_numpy() for c in ("contrast", "low", "high"))
        names = [f"{g} ({n})" for g, n in zip(groups["group"], groups["heads"], strict=True)]
        label = "effect of disabling a head, less that of the others, in points"
        return interval_dots(
            [Dots(label, values, low, high)],
            names,
            title=f"Which heads does the task miss?\n{self._title}",
            note="Below 0: missed more than other heads. In brackets: how many heads.",
        )

    def _draw_relations(self) -> Figure:
        from bertology.report.figures import scatter_with_rank

        heads = self.tables["heads"].dropna(subset=["effect", "relation_excess"])
        return scatter_with_rank(
            heads["relation_excess"],
            100 * heads["effect"],
            title=f"Does the task miss heads that follow relations?\n{self._title}",
            xlabel="attention to related words beyond others",
            ylabel="change of the score without the head, in points",
        )


def head_profile(
    results: Sequence[Result], *, resamples: int = 10_000, level: float = 0.95, seed: int = 0
) -> HeadProfileResult:
    """Are heads that stand out in one study those that another study finds?

    Joins the `heads` tables of results of different studies, and tests what needs two of them. Any
    of the studies in `JOINED` may be left out. They may be of different models of one build:
    relations are looked for in a pre-trained model and heads disabled in a fine-tuned one.

    Method: one row for each head. The mean effect of disabling a head of a group (relation heads,
    heads of a map type) less that of all others; interval and p-value come from exchanging heads at
    random, and p-values are corrected for the number of groups (Holm).

    Limits: the intervals of groups are not corrected for their number. Heads are exchanged as if
    they did not depend on each other.
    """
    import xarray as xr

    by_study = _by_study(results)
    main = by_study.get(ABLATION, results[0])
    asked = {"results": {name: r.identity for name, r in sorted(by_study.items())}}
    provenance = Provenance(
        study="head-profile",
        study_version=1,
        parameters={**asked, "resamples": resamples, "level": level, "seed": seed},
        model=main.provenance.model,
        corpus=main.provenance.corpus,
        seed=seed,
    )
    heads = _joined(by_study)
    groups = _groups(heads, resamples, level, seed)
    tables = {"heads": heads} if groups is None else {"heads": heads, "groups": groups}
    if "map_type" in heads:
        tables["crosstab"] = _crosstab(heads)
    tables["sources"] = _sources(by_study)
    facts: dict[str, Any] = {"level": level}
    if ABLATION in by_study:
        facts |= {k: by_study[ABLATION].arrays.attrs[k] for k in ("informed", "examples")}
    if RELATIONS in by_study:
        facts["relation"] = by_study[RELATIONS].arrays.attrs.get("relation", FRAMES)
    return HeadProfileResult(provenance, tables, xr.Dataset(attrs=facts))


def _by_study(results: Sequence[Result]) -> dict[str, Result]:
    if not results:
        raise ParameterError("results", "head_profile", "hold at least one result", 0)
    found: dict[str, Result] = {}
    for result in results:
        study = result.provenance.study
        if study not in JOINED:
            must = f"be of {', '.join(JOINED)}"
            raise ParameterError("results", "head_profile", must, study)
        if study in found:
            raise ParameterError("results", "head_profile", "hold one result of a study", study)
        found[study] = result
    return found


def _joined(by_study: Mapping[str, Result]) -> pd.DataFrame:
    """One row per head, with the columns of every study."""
    joined: pd.DataFrame | None = None
    for study, result in sorted(by_study.items(), key=lambda item: list(JOINED).index(item[0])):
        if "heads" not in result.tables:
            raise DataError(
                f"The result {result.identity} of {study!r} has no table of heads.",
                hint="Run the study again with its heads.",
            )
        given = result.tables["heads"]
        columns = {c: new for c, new in JOINED[study].items() if c in given}
        table = given[["layer", "head", *columns]].rename(columns=columns)
        if study == RELATIONS:
            table["relation_head"] = _relation_heads(given)
        if study == TYPES:
            table["map_type"] = _map_types(given)
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


def _relation_heads(given: pd.DataFrame) -> Mask:
    """Those above the paper's percentile that are sure, as far as the table says either."""
    said = [given[c].to_numpy(dtype=bool) for c in ("above_percentile", "sure") if c in given]
    if said:
        return np.asarray(np.logical_and.reduce(said), dtype=bool)
    score = given["excess" if "excess" in given else "weight"].to_numpy()
    return np.asarray(score > np.percentile(score, 100 - _TOP))


def _map_types(given: pd.DataFrame) -> list[str]:
    """Each head's class: as named in the table, or that of the largest share."""
    for name in _NAMES_OF_TYPE:
        if name in given:
            return [str(t) for t in given[name]]
    shares = [c for c in _CLASSES if c in given]
    if not shares:
        raise DataError(
            "The table of map types names no class of a head.",
            hint=f"It needs a column {_NAMES_OF_TYPE[0]!r}, or shares named as the classes are.",
        )
    return [shares[i] for i in given[shares].to_numpy().argmax(axis=1)]


def _groups(heads: pd.DataFrame, resamples: int, level: float, seed: int) -> pd.DataFrame | None:
    """Whether relation heads, and heads of each map type, have another effect than the rest."""
    import pandas as pd

    groups: dict[str, Mask] = {}
    if "relation_head" in heads:
        groups[RELATION_GROUP] = heads["relation_head"].to_numpy(dtype=bool)
    if "map_type" in heads:
        kinds = heads["map_type"].to_numpy()
        groups |= {str(k): np.asarray(kinds == k) for k in np.unique(kinds)}
    groups = {name: g for name, g in groups.items() if 0 < g.sum() < len(heads)}
    columns = ["group", "heads", "effect", "contrast", "low", "high", "p"]
    if "effect" not in heads or not groups:
        return None
    effect = heads["effect"].to_numpy(dtype=float)
    rows = [
        [name, int(g.sum()), float(effect[g].mean()), *_contrast(effect, g, resamples, level, seed)]
        for name, g in groups.items()
    ]
    table = pd.DataFrame(rows, columns=columns)
    table["p_adjusted"] = holm(table["p"].to_numpy(dtype=float))
    return table


def _contrast(
    effect: Floats, group: Mask, resamples: int, level: float, seed: int
) -> tuple[float, float, float, float]:
    """Mean effect in the group less that outside: value, low, high and two-sided p.

    The null is drawn by giving the group's name to as many heads at random; the interval holds the
    shifts that such a draw would not contradict.
    """
    rng, size = np.random.default_rng(seed), int(group.sum())
    drawn = rng.permuted(np.tile(effect, (resamples, 1)), axis=1)
    null = drawn[:, :size].mean(axis=1) - drawn[:, size:].mean(axis=1)
    value = float(effect[group].mean() - effect[~group].mean())
    tail = (1 - level) / 2
    low, high = np.quantile(null, [tail, 1 - tail])
    as_large = np.abs(null) >= abs(value) * (1 - 1e-9)  # equal sums may differ by rounding
    return value, value - high, value - low, float((1 + as_large.sum()) / (1 + resamples))


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
