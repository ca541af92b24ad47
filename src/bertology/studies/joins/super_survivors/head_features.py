"""What other studies know of heads, as columns beside what a join found of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertology.data.map_labels import MAP_TYPES
from bertology.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from bertology.results.result import Result

MEASURED_ON = ("the pre-trained model", "a fine-tuned model", "another model")
# What is taken of each study: its column, and the name that it has here.
FEATURES: Mapping[str, Mapping[str, str]] = {
    "map-types": {name: name for name in MAP_TYPES},
    "head-taxonomy": {"clark": "clark_class"},
    "syntax-heads": {"relation": "best_relation", "gain": "relation_gain"},
    "relation-heads": {"excess": "relation_excess"},
    "head-ablation": {"difference": "effect", "loss_balance": "share_worse"},
}


def head_features(heads: pd.DataFrame, results: Sequence[Result]) -> pd.DataFrame:
    """One row per head of `heads` with what the results say; several of one study are averaged.

    Of words, such as the relation a head follows best, the first result's are taken. `linguistic`:
    it surely follows a relation (`syntax-heads`), or surely is a relation head above the paper's
    percentile (`relation-heads`), in any of the results.
    """
    places = heads.set_index(["layer", "head"]).index
    found = heads.copy()
    for study, columns in FEATURES.items():
        tables = [_ordered(r, places) for r in results if _tells(r, study)]
        for column, name in columns.items():
            known = [table[column] for table in tables if column in table]
            if known and known[0].dtype.kind in "fiu":
                found[name] = np.mean([one.to_numpy(float) for one in known], axis=0)
            elif known:
                found[name] = known[0].to_numpy()
    if set(MAP_TYPES) <= set(found):
        shares = found[list(MAP_TYPES)].to_numpy()
        found["map_type"] = np.array(MAP_TYPES)[shares.argmax(1)]
    sure = [s for r in results if (s := _linguistic(r, places)) is not None]
    if sure:
        found["linguistic"] = np.any(sure, axis=0)
    return found


def measured_on(result: Result, pruned: str) -> str:
    """On which model, beside the one with the fingerprint `pruned` that was fine-tuned."""
    model = result.provenance.model
    same, tuned = model["fingerprint"] == pruned, bool(model.get("tuned_from"))
    return MEASURED_ON[0 if same else 1 if tuned else 2]


def _tells(result: Result, study: str) -> bool:
    """Whether it is of the study; where the model knows nothing, no head has an effect."""
    return result.provenance.study == study and bool(result.facts.get("informed", True))


def _ordered(result: Result, places: pd.Index) -> pd.DataFrame:
    study = result.provenance.study
    if "heads" not in result.tables:
        raise DataError(
            f"The result {result.identity} of {study!r} has no table of heads.",
            hint="Run the study again with its heads.",
        )
    table = result.tables["heads"].set_index(["layer", "head"])
    if len(table) != len(places) or not table.index.isin(places).all():
        raise DataError(
            f"The result {result.identity} of {study!r} is of other heads than the rest.",
            hint="Join results of models that have the same layers and heads.",
        )
    return table.loc[places]


def _linguistic(result: Result, places: pd.Index) -> np.ndarray | None:
    """Heads that surely follow a relation, all corrections made; None of other studies."""
    study = result.provenance.study
    if study not in ("syntax-heads", "relation-heads"):
        return None
    table = _ordered(result, places)
    if study == "relation-heads":
        return (table["above_percentile"] & table["sure"]).to_numpy(bool)
    tests, gains = table[["gain_p", "selectivity_p"]], table[["gain", "selectivity"]]
    half = (1 - float(result.facts.get("level", 0.95))) / 2  # both questions together
    return ((tests.max(axis=1) < half) & (gains.min(axis=1) > 0)).to_numpy(bool)
