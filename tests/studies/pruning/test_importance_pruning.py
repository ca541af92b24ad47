"""Importance pruning: planted parts survive with every seed, and chance gives no agreement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import planted_links
import planted_parts
from bertology.results.result import Result
from bertology.studies.pruning.importance_pruning import ImportancePruning, ImportancePruningResult
from bertology.studies.study import Context
from bertology.train import iterative_pruning
from made_prunings import FACTS, deciding, provenance
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
    stops: Sequence[int] | None = None,
    same_path: bool = False,
) -> Result:
    """Heads and MLPs survive with chances of their own; or, `fixed`, as many of them each time.

    They go in a random order, in three steps, and one more that falls below. Seeds that are named
    in `stops` keep that many steps only (3 for all of them, the whole model counted). With
    `same_path`, the first of those that go are the same with every seed.
    """
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
        parts[f"importance-seed-{k}"] = part_of(
            rng,
            [_half_gone(None if same_path else rng, heads), heads],
            [_half_gone(rng, kept_mlps), kept_mlps],
        ).assign(
            {
                "score": ("step", reported),
                "reported": ("step", reported),
                "learnt": int(learnt),
                "floor": 0.8,
                **deciding(3 if stops is None else stops[k]),
            }
        )
    return study.conclude(parts, provenance("importance-pruning"))


def part_of(
    rng: np.random.Generator, heads: Sequence[np.ndarray], mlps: Sequence[np.ndarray]
) -> xr.Dataset:
    """The masks of a part: all of it first, then those given, and nothing at the end."""
    steps = [
        np.stack([np.ones_like(of[0]), *of, np.zeros_like(of[0])]).astype(np.int8)
        for of in (heads, mlps)
    ]
    return xr.Dataset(
        {
            "heads": (("step", "layer", "head"), steps[0]),
            "mlps": (("step", "layer"), steps[1]),
            "head_importance": (("layer", "head"), rng.random(steps[0].shape[1:])),
            "mlp_importance": ("layer", rng.random(steps[1].shape[1:])),
            "left_heads": ("step", steps[0].sum((1, 2))),
            "left_mlps": ("step", steps[1].sum(1)),
        },
        attrs=FACTS,
    )


def _half_gone(rng: np.random.Generator | None, last: np.ndarray) -> np.ndarray:
    """Between all and the last: half of what goes is gone, at random or the first of it."""
    gone = np.flatnonzero(~last.ravel())
    found = np.ones(last.size, bool)
    found[(gone if rng is None else rng.permutation(gone))[: len(gone) // 2]] = False
    return found.reshape(last.shape)


def kappa_of(chances: np.ndarray) -> float:
    """The κ within layers of endless seeds, whose heads survive with these chances."""
    share = chances.mean(1)
    return float(chances.var(1).sum() / (share * (1 - share)).sum())


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
    for kappa in (result.evidence()[n] for n in ("head_kappa", "head_kappa_in_layers")):
        assert kappa.low < 0 < kappa.high
    assert claims_of(result)["nuggets-lottery.importance-pruning-beats-chance"] != "holds"


def test_seeds_that_stop_at_other_steps_are_compared_where_as_much_is_left() -> None:
    """All keep the same heads at every step; two go on to steps where the others are not."""
    heads = [(np.arange(16) * 5 % 16).reshape(SHAPE) < left for left in (12, 6)]
    mlps = [np.arange(4) < left for left in (3, 1)]
    rng, parts = np.random.default_rng(0), {}
    for seed, stop in enumerate((2, 3, 3, 2, 2)):
        reported = np.array([0.9, 0.88, 0.84, 0.6])
        parts[f"importance-seed-{seed}"] = part_of(rng, heads, mlps).assign(
            score=("step", reported), reported=("step", reported), learnt=1, floor=0.8,
            **deciding(stop),
        )  # fmt: skip
    result = ImportancePruning(seeds=5).conclude(parts, provenance("importance-pruning"))
    assert result.facts["compared_step"] == 1
    assert result.facts["compared_left"] == 0.75
    assert result.tables["agreement"]["kappa"].tolist() == [1, 1, 1]
    assert result.tables["heads"]["std"].max() == 0
    assert result.tables["runs"]["heads_removed"].tolist() == [0.25, 0.625, 0.625, 0.25, 0.25]
    assert result.arrays["kept_steps"].to_numpy().tolist() == [2, 3, 3, 2, 2]
    assert claims_of(result)["nuggets-lottery.importance-pruning-is-unstable"] != "holds"


def test_seeds_that_end_with_the_same_step_have_an_interval() -> None:
    """Each seed removes 62.5 % of the heads; a step is 37.5 %, so that is not known any better."""
    result = made_up(0.375, fixed=True, by_layer=False, mlps=0.0)
    found = result.evidence()["heads_removed"]
    half = 2.776 * 0.375 / math.sqrt(12) / math.sqrt(5)
    assert result.tables["runs"]["heads_removed"].tolist() == [0.625] * 5
    assert (found.value, found.low) == pytest.approx((0.625, 0.625 - half), abs=1e-3)
    assert claims_of(result)["primer-redundancy.most-heads-can-go"] == "inconclusive"


def test_where_a_seed_keeps_no_step_nothing_is_compared() -> None:
    result = made_up(0.4, stops=(3, 3, 1, 3, 3))
    assert "no step was kept" in result.reasons()["head_kappa_in_layers"]
    assert "heads_removed" in result.evidence()


def random_in_layers(counts: Sequence[int], *, seeds: int = 5, draw: int = 0) -> Result:
    """So many heads of each layer are left with every seed; which ones is chance."""
    rng, parts = np.random.default_rng(draw), {}
    reported = np.array([0.9, 0.88, 0.6])
    for seed in range(seeds):
        kept = np.stack([rng.permutation(np.arange(SHAPE[1]) < n) for n in counts])
        parts[f"importance-seed-{seed}"] = part_of(rng, [kept], [np.arange(4) < 3]).assign(
            score=("step", reported), reported=("step", reported), learnt=1, floor=0.8,
            **deciding(2, 3),
        )  # fmt: skip
    return ImportancePruning(seeds=seeds).conclude(parts, provenance("importance-pruning"))


def test_agreement_on_layers_alone_is_none_on_heads() -> None:
    """Nearly all heads of two layers go, few of the others; which ones of a layer is chance."""
    results = [random_in_layers((1, 3, 3, 1), draw=draw) for draw in range(20)]
    plain = [result.evidence()["head_kappa"].value for result in results]
    assert np.mean(plain) > 0.15  # what seeds agree on is layers
    found = [claims_of(r)["nuggets-lottery.importance-pruning-beats-chance"] for r in results]
    assert found.count("holds") <= 3


def test_a_model_that_learnt_nothing_is_not_judged() -> None:
    result = made_up(0.5, learnt=False)
    assert not result.evidence()
    assert "constant answer" in result.reasons()["head_kappa_in_layers"]
    assert "Nothing is sure" in result.answer
    assert "not judged" not in result.answer
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
    assert one["heads"].dims == ("step", "layer", "head")
    assert len(one["heads"]) == len(one["score"]) == len(one["decided"])
    left = result.arrays["heads_left"]
    last = left.to_numpy()[0, int(result.arrays["kept_steps"][0]) - 1]
    assert left.dtype == bool
    assert [tuple(map(int, p)) for p in np.argwhere(last)] == [*planted_parts.HEADS]
