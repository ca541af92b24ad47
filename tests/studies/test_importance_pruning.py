"""Importance pruning: planted parts survive with every seed, and chance gives no agreement."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import planted_links
import planted_parts
from bertology.model.part_masks import PartMask
from bertology.results.result import Result
from bertology.studies.pruning.importance_pruning import ImportancePruning, ImportancePruningResult
from bertology.studies.study import Context
from bertology.train import iterative_pruning
from made_prunings import FACTS, provenance
from result_conformance import ResultConformance, claims_of

SHAPE = (4, 4)  # layers, heads


def made_up(
    chances: np.ndarray | float,
    *,
    seeds: int = 5,
    mlps: np.ndarray | float = 0.5,
    draw: int = 0,
    learnt: bool = True,
    fixed: bool = False,
    by_layer: bool = True,
) -> Result:
    """Heads and MLPs survive with chances of their own; or, `fixed`, as many of them each time."""
    rng = np.random.default_rng(draw)
    study, parts = ImportancePruning(seeds=seeds, by_layer=by_layer), {}
    chance = np.broadcast_to(chances, SHAPE)
    for k in range(seeds):
        heads = rng.random(SHAPE) < chance
        if fixed:
            kept = np.arange(heads.size) < round(float(chance.mean()) * heads.size)
            heads = rng.permutation(kept).reshape(SHAPE)
        kept_mlps = rng.random(SHAPE[0]) < np.broadcast_to(mlps, SHAPE[:1])
        reported = np.array([0.9, 0.88, 0.84, 0.6]) + rng.normal(0, 0.01, 4)
        parts[f"importance-seed-{k}"] = xr.Dataset(
            {
                "heads": (("layer", "head"), heads.astype(np.int8)),
                "mlps": ("layer", kept_mlps.astype(np.int8)),
                "head_importance": (("layer", "head"), rng.random(SHAPE)),
                "mlp_importance": ("layer", rng.random(SHAPE[0])),
                "score": ("step", reported),
                "reported": ("step", reported),
                "left_heads": ("step", [16, 14, int(heads.sum()), 0]),
                "left_mlps": ("step", [4, 3, int(kept_mlps.sum()), 0]),
                "kept_steps": 3,
                "learnt": int(learnt),
                "floor": 0.8,
            },
            attrs=FACTS,
        )
    return study.conclude(parts, provenance("importance-pruning"))


def kappa_of(chances: np.ndarray) -> float:
    """The κ of endless seeds, whose heads survive with these chances."""
    share = float(chances.mean())
    return 1 - float((chances * (1 - chances)).mean()) / (share * (1 - share))


class TestResult(ResultConformance):
    measures = frozenset({"head-survival", "head-importance", "mlp-survival"})

    @staticmethod
    def make() -> Result:
        return made_up(0.4)


def test_what_was_published_bears_the_claims_out() -> None:
    """Stable a little (κ about 0.2), few heads left, and one layer always gone."""
    rng = np.random.default_rng(0)
    chances = np.where(rng.random(SHAPE) < 0.3, 0.75, 0.15)
    chances[3] = 0.0
    mlps = np.array([0.5, 0.5, 0.5, 0.0])
    within = made_up(chances, seeds=10, mlps=mlps)
    assert "within layers" in within.reasons()["layers_removed"]
    found = claims_of(made_up(chances, seeds=10, mlps=mlps, by_layer=False))
    assert found["primer-redundancy.most-heads-can-go"] == "holds"
    assert found["primer-redundancy.whole-layers-can-go"] == "holds"
    assert found["nuggets-lottery.importance-pruning-beats-chance"] == "holds"


def test_the_same_survivors_are_not_called_unstable_and_chance_not_agreement() -> None:
    stable = np.where(np.arange(16).reshape(SHAPE) % 3 == 0, 0.97, 0.03)
    found = claims_of(made_up(stable, seeds=8))
    assert found["nuggets-lottery.importance-pruning-is-unstable"] == "fails"
    assert found["nuggets-lottery.importance-pruning-beats-chance"] == "holds"
    result = made_up(0.5, seeds=6, fixed=True)
    kappa = result.evidence()["head_kappa"]
    assert kappa.low < 0 < kappa.high
    assert claims_of(result)["nuggets-lottery.importance-pruning-beats-chance"] != "holds"


def test_a_model_that_learnt_nothing_is_not_judged() -> None:
    result = made_up(0.5, learnt=False)
    assert not result.evidence()
    assert "constant answer" in result.reasons()["head_kappa"]
    assert "Nothing is sure" in result.answer
    assert set(claims_of(result).values()) == {"not-applicable"}


def test_tables_are_those_of_the_masks() -> None:
    result = made_up(0.4, seeds=3)
    heads = result.tables["heads"]
    assert heads["survival"].isin([0, 1 / 3, 2 / 3, 1]).all()
    assert heads["std"].max() <= math.sqrt(1 / 3) + 1e-9
    row = result.tables["agreement"].set_index("kind").loc["heads"]
    assert row["things"] == 16
    assert 0 < row["p"] <= 1
    assert list(result.tables["curve"]["step"]) == [0, 1, 2, 3]


def test_planted_parts_survive_with_every_seed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        iterative_pruning, "tuned_encoder", lambda job, folder, progress: planted_parts.encoder()
    )
    monkeypatch.setattr(
        ImportancePruning, "load_train", lambda self, corpus: planted_parts.corpus(200, seed=9)
    )
    study = ImportancePruning(seeds=3, share=5 / 12, ranking=60)
    result = planted_links.ask(study, planted_parts.encoder(), planted_parts.corpus(80))
    assert isinstance(result, ImportancePruningResult)
    heads = result.tables["heads"]
    left = heads[heads["survival"] == 1]
    assert list(zip(left["layer"], left["head"], strict=True)) == [*planted_parts.HEADS]
    assert heads["survival"].sum() == len(planted_parts.HEADS)
    mlps = result.tables["mlps"]
    assert mlps.loc[mlps["survival"] == 1, "layer"].tolist() == [*planted_parts.MLPS]
    assert result.evidence()["head_kappa"].value == 1
    assert result.tables["runs"]["layers_removed"].tolist() == pytest.approx([1 / 3] * 3)
    assert result.tables["runs"]["pruned"].tolist() == [1.0] * 3
    part = study.parts(planted_parts.encoder().shape, planted_parts.corpus(80))[0]
    again = Context(trained=tmp_path)
    one, two = (
        study.measure(planted_parts.encoder(), planted_parts.corpus(80), part, again)
        for _ in range(2)
    )
    assert one.identical(two)
    assert PartMask(one["heads"].to_numpy().astype(bool), one["mlps"].to_numpy().astype(bool))
