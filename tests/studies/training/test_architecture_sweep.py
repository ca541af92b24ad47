"""The sweep: planted effects of shape and training are found, noise is not, a tiny one runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom

import bertology as bt
import tiny
from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.errors import ParameterError, UnknownNameError
from bertology.model.encoder import Encoder
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.rules import Outcome
from bertology.results.store import Store
from bertology.studies.training.architecture_sweep import (
    ArchitectureSweep,
    ArchitectureSweepResult,
    Shape3,
)
from bertology.train.pretrain.cost import Curve, body_flops, body_parameters
from bertology.train.vocabulary import wordpieces
from result_conformance import ResultConformance, told

AT = np.linspace(0.04, 1, 25)  # shares of the run at which it is evaluated


BASELINES = {"baseline": 0.4, "mlm_baseline": 0.1, "metric": "accuracy"}


def planted(
    effect: float,
    *,
    seeds: int = 4,
    noise: float = 0.002,
    draw: int = 0,
    saved: float = 0.25,
    otherwise: float = 0.0,
    collapsed: Sequence[str] = (),
) -> Result:
    """Made-up measurements: layers and width add `effect` at each doubling, heads nothing.

    Other ways to train add `otherwise`.
    """
    rng = np.random.default_rng(draw)
    study = ArchitectureSweep(seeds=seeds, updates=100)
    parts = {}
    for seed in range(seeds):
        luck = rng.normal(0, 0.05)
        for name in study.variants:
            shape = study.shapes().get(name, study.shapes()["base"])
            gain = effect * (np.log2(shape.layers / 4) + np.log2(shape.hidden / 128))
            gain += effect if name == "large-batch" else 0.0
            gain += otherwise if name in ("large-batch", "stacked") else 0.0
            numbers: dict[str, Any] = {
                m: 0.7 + gain + luck + rng.normal(0, noise)
                for m in ("mlm_accuracy", "pair_accuracy", "task_score")
            }
            if name in collapsed:
                numbers |= {"mlm_accuracy": 0.05, "task_score": 0.4}
            numbers |= {"mlm_loss": 2.0, "layers": shape.layers, "heads": shape.heads}
            if name == "base":
                numbers["task_normalised"] = 0.7 + luck + effect + rng.normal(0, noise)
            quick = 1 - (saved + rng.normal(0, noise)) if name == "stacked" else 1.0
            # Half of the layers for half of the updates, and an output layer of a fifth of it all.
            numbers["flops_per_token"] = 0.8 if name == "stacked" else 1.0
            numbers |= {
                "curve_step": ("evaluation", 100 * AT),
                "curve_seconds": ("evaluation", 60 * AT * quick),
                "curve_loss": ("evaluation", 4 - 2 * AT),
            }
            parts[f"{name}-seed-{seed}"] = xr.Dataset(numbers, attrs=BASELINES)
    return study.conclude(parts, provenance())


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return planted(0.02, seeds=2)


def provenance() -> Provenance:
    return Provenance(
        study="architecture-sweep",
        study_version=1,
        parameters={},
        model={"name": "m", "fingerprint": "f"},
        corpus={"name": "made-up", "fingerprint": "c"},
    )


def outcomes(result: Result) -> dict[str, Outcome]:
    return {v.claim.id.partition(".")[2]: told(v) for v in result.verdicts()}


def test_planted_effects_bear_the_claims_out() -> None:
    result = planted(0.03)
    found = outcomes(result)
    assert len(found) == 9
    assert set(found.values()) == {Outcome.HOLDS}
    evidence = result.evidence()
    assert evidence["width_gain_task"].value == pytest.approx(0.03, abs=0.003)
    assert evidence["stacking_time_saved"].value == pytest.approx(0.25, abs=0.01)
    table = result.table("stacking")
    # The end of the base is reached at the end: half of the layers for half of the steps.
    assert table["flops_saved"].to_numpy() == pytest.approx(0.2)
    assert result.plot("variants").axes
    assert result.plot("stacking").axes


def test_the_opposite_makes_them_fail() -> None:
    found = outcomes(planted(-0.03, saved=-0.2))
    failed = {
        "width-improves-mlm",
        "width-improves-tasks",
        "large-batches-improve-mlm",
        "large-batches-do-not-lower-scores",
    }
    failed |= {"normalised-cls-improves-tasks", "stacking-saves-time"}
    assert {name for name, outcome in found.items() if outcome is Outcome.FAILS} == failed


def test_noise_is_not_taken_for_an_effect() -> None:
    """Every claim where it just does not hold: each may be wrong in 2.5 % of all cases."""
    held, draws = 0, 20
    for draw in range(draws):
        found = outcomes(planted(0, noise=0.03, draw=draw, saved=0, otherwise=-0.01))
        held += list(found.values()).count(Outcome.HOLDS)
    assert held <= binom.ppf(0.999, draws * 9, 0.025)


def test_a_shape_that_collapsed_decides_nothing() -> None:
    """Eight layers whose training diverged would make layers matter most."""
    result = planted(0.03, collapsed=("layers-8", "stacked"))
    found = outcomes(result)
    unjudged = {name for name, outcome in found.items() if outcome is Outcome.NOT_APPLICABLE}
    assert unjudged == {
        "layers-matter-more-than-heads-in-mlm",
        "layers-matter-more-than-heads-in-tasks",
        "stacking-saves-time",
        "stacked-models-are-as-good",
    }
    assert "layers-8 does not surely beat" in result.reasons()["layers_over_heads_mlm"]


def test_one_seed_decides_nothing() -> None:
    assert set(outcomes(planted(0.03, seeds=1)).values()) == {Outcome.INCONCLUSIVE}


def test_a_stacked_run_that_never_gets_there_saves_nothing_known() -> None:
    study = ArchitectureSweep(updates=100)
    base = Curve(100 * AT, 60 * AT, 4 - 2 * AT)
    worse = Curve(100 * AT, 40 * AT, 4.1 - 2 * AT)
    never = study._saved(base, worse, 0.5)
    assert np.isnan([never["time_saved"], never["flops_saved"]]).all()
    better = Curve(100 * AT, 60 * AT, 3 - 2 * AT)  # where the base ends after half of its time
    found = study._saved(base, better, 0.5)
    assert found["time_saved"] == pytest.approx(0.5)
    assert found["flops_saved"] == pytest.approx(0.75)
    at_once = Curve(100 * AT, 60 * AT, 1 - 0 * AT)
    assert study._saved(base, at_once, 0.5)["time_saved"] == pytest.approx(0.96)


@pytest.mark.parametrize("match", ["parameters", "flops"])
def test_widths_are_matched_by_formula(match: str) -> None:
    study = ArchitectureSweep(match=match, vary_layers=(1, 2, 8), vary_heads=(3, 8), length=64)

    def cost(shape: Shape3) -> int:
        if match == "parameters":
            return body_parameters(shape.layers, shape.hidden)
        return body_flops(shape.layers, shape.hidden, 64)

    shapes = {name: study.matched(shape) for name, shape in study.shapes().items()}
    wanted = cost(shapes["base"])
    assert shapes["base"] == Shape3(4, 4, 128)
    assert shapes["heads-8"] == Shape3(4, 8, 128)
    for name in ("layers-1", "layers-2", "layers-8", "heads-3"):
        shape = shapes[name]
        assert shape.hidden % shape.heads == 0
        for step in (-shape.heads, shape.heads):
            other = Shape3(shape.layers, shape.heads, shape.hidden + step)
            assert abs(cost(shape) - wanted) <= abs(cost(other) - wanted)
        assert cost(shape) == pytest.approx(wanted, rel=0.05)
    assert shapes["width-256"].hidden == 256  # width is what is matched with


def test_a_grid_has_all_combinations_once() -> None:
    study = ArchitectureSweep(
        grid=True, vary_layers=(2,), vary_heads=(2, 8), vary_hidden=(64,), extras=()
    )
    shapes = study.shapes()
    assert len(shapes) == len(set(shapes.values())) == 2 * 3 * 2
    assert "2x8x64" in shapes
    assert list(shapes)[:3] == ["base", "layers-2", "heads-2"]


def test_recipes_differ_in_what_they_should() -> None:
    study = ArchitectureSweep(updates=100, update_tokens=1024)
    base, large, stacked = (
        study.recipe(v, 1, vocab_size=99) for v in ("base", "large-batch", "stacked")
    )
    assert base.seed == large.seed == stacked.seed == 1
    assert large.steps * large.batch_tokens == base.steps * base.batch_tokens
    assert large.learning_rate == pytest.approx(2 * base.learning_rate)
    assert [p.layers for p in stacked.phases] == [2, None]
    assert stacked.evaluate_every == base.evaluate_every == 4
    assert study.recipe("layers-8", 0, vocab_size=99).model.layers == 8
    assert "normalised" not in study.variants  # the base's own run does it


def test_refuses_before_any_work() -> None:
    with pytest.raises(UnknownNameError, match="way to train"):
        ArchitectureSweep(extras=("larger-batch",))
    with pytest.raises(ParameterError, match="be even to be stacked"):
        ArchitectureSweep(layers=3)
    with pytest.raises(ParameterError, match="where nothing is matched"):
        ArchitectureSweep(vary_heads=(3,))
    with pytest.raises(ParameterError, match="at least 1 each"):
        ArchitectureSweep(vary_layers=(0,))
    with pytest.raises(ParameterError, match="'match' parameter"):
        ArchitectureSweep(match="seconds")


def test_a_tiny_sweep_runs_to_its_end(tmp_path: Path) -> None:
    text: Corpus = load_corpus("grammar", split="train", limit=300)
    lines = [str(t) for t in text.texts]
    pieces = wordpieces(lambda: lines, vocab_size=500, max_length=64)
    encoder = Encoder(tiny.model("bert"), pieces, name="vocabulary")
    result = bt.run(
        "architecture-sweep", encoder, corpus=text, store=str(tmp_path), progress=False,
        layers=2, heads=2, hidden=16, vary_layers=(1,), vary_heads=(4,), vary_hidden=(8,),
        match="parameters", updates=12, update_tokens=256, length=32, seeds=1, pair_examples=6,
        finetune_examples=16, finetune_epochs=1, batch_factor=2,
    )  # fmt: skip
    assert isinstance(result, ArchitectureSweepResult)
    runs = result.table("runs").set_index("variant")
    assert list(runs.index) == [
        "base", "layers-1", "heads-4", "width-8", "large-batch", "stacked",
    ]  # fmt: skip
    assert runs.loc["layers-1", "hidden"] > 16
    assert runs.loc["stacked", "parameters"] == runs.loc["base", "parameters"]
    assert runs.loc["stacked", "flops_per_token"] < runs.loc["base", "flops_per_token"]
    assert np.isfinite(runs["mlm_loss"]).all()
    assert np.isfinite(runs.loc["base", ["task_score", "task_normalised"]].to_numpy(float)).all()
    assert result.arrays.sizes["base_evaluation"] == 12
    again = Store(str(tmp_path)).load(result.identity)
    assert again.equals(result)
    for name in again.figures():
        assert again.plot(name).axes
    assert set(outcomes(result).values()) <= {Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE}
