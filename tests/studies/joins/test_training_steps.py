"""Training steps: a sink that appears at a known step is found there, and no step is done twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import xarray as xr
from typer.testing import CliRunner

import planted_links as planted
from bertology.annotated.tagger import Tags
from bertology.cli.main import app
from bertology.errors import DataError, ModelError, ParameterError, UnknownNameError
from bertology.results.evidence import evidence_array
from bertology.results.measures import Measure, Tracked
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.store import Store
from bertology.run.api import make_session
from bertology.run.loading import ModelSource
from bertology.run.over_steps import over_steps, steps_of
from bertology.stats import Estimate
from bertology.studies.attention.token_classes import TokenClasses
from bertology.studies.joins.training_steps import TrainingSteps
from result_conformance import ResultConformance

STEPS = (0, 10, 100, 1000, 10000, 100000)
APPEARS = 1000  # the first step at which [SEP] is attended to


def made(step: int, value: float, *, corpus: str = "c", study: str = "token-classes") -> Result:
    model = {"name": f"run@{step}", "fingerprint": str(step)}
    provenance = Provenance(study, 1, {}, model, {"name": "c", "fingerprint": corpus})
    arrays = evidence_array({"sep_weight": Estimate(value, value - 0.02, value + 0.02, 50)})
    arrays["weights"] = (("layer", "head"), [[value, value], [value, 2 * value]])
    arrays.attrs |= {"level": 0.95, "examples": 50}
    return Made(provenance, {"heads": pd.DataFrame({"layer": [0], "head": [0]})}, arrays)


class Made(Result):
    def measures(self) -> list[Measure]:
        grid = self.arrays["weights"].to_numpy()
        words = {"title": "Weight", "unit": "share", "reading": "High: much."}
        return [Measure("head-weight", values=grid, low=grid - 0.01, high=grid + 0.01, **words)]


def joined(values: dict[int, float], **how: Any) -> Result:
    how = {"measure": "sep_weight", "resamples": 500} | how
    return TrainingSteps(**how).join([made(s, v) for s, v in values.items()])


RISE = dict(zip(STEPS, (0.1, 0.1, 0.11, 0.5, 0.5, 0.52), strict=True))


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return joined(RISE)


def test_results_are_put_in_the_order_of_their_steps() -> None:
    result = joined(dict(sorted(RISE.items(), reverse=True)))
    assert list(result.table()["step"]) == list(STEPS)
    at = result.evidence()["emerges_at"]
    assert (at.low, at.high) == (100, 1000)
    assert "In this run it emerges between step 100 and step 1,000, by more" in result.answer
    assert result.provenance.model["name"] == "run@100000"


def test_a_flat_curve_says_why_it_does_not_emerge() -> None:
    result = joined(dict.fromkeys(STEPS, 0.3))
    assert "emerges_at" not in result.evidence()
    assert "It does not emerge: the first and the last" in result.answer
    assert result.plot("steps").axes


def test_what_may_be_drift_is_said_of_this_run_only() -> None:
    """A random walk looked like emergence, and no word said that another run may not show it."""
    walk = dict(zip(STEPS, (0.1, 0.2, 0.15, 0.35, 0.3, 0.5), strict=True))
    told = joined(walk).answer
    assert "In this run it emerges between" in told
    assert "drifts by chance may change as much (p = " in told
    few = joined({step: RISE[step] for step in STEPS[2:5]}).answer
    assert "fewer than 4 steps cannot tell a change from drift" in few


def test_measures_of_heads_are_read_at_a_place() -> None:
    name = "head-weight"
    top, one, first = (
        joined(RISE, measure=name, at=at).table()["value"] for at in ("max", "1.1", "0.0")
    )
    assert list(top) == list(one) == list(2 * first)
    for at in ("", "7.7", "x", "1", "-1.0"):
        with pytest.raises(ParameterError, match="be a head such as"):
            joined(RISE, measure=name, at=at)
    with pytest.raises(UnknownNameError, match="sep_weight"):
        joined(RISE, measure="sep_wait")


class Followed(Made):
    def measures(self) -> list[Measure]:
        row = 100 * self.arrays["weights"].to_numpy()[:, 0]
        words = {"title": "Told by layers", "unit": "%", "reading": "High: much."}
        return [Measure("told", values=row, **words)]

    def over_training(self) -> list[Tracked]:
        return [Tracked("sep_weight", "the gain", "told", scale=100.0, unit="points", gain=True)]


def test_what_a_study_follows_has_units_and_all_layers() -> None:
    values = dict(zip(STEPS, (-0.1, -0.1, 0.01, 0.5, 0.5, 0.52), strict=True))
    results = [made(step, value) for step, value in values.items()]
    for result in results:
        result.__class__ = Followed
    result = TrainingSteps(measure="sep_weight", resamples=500).join(results)
    assert result.answer.startswith(
        "Over training, the gain changes by 62 [59.2, 64.8] points; it is surely above 0 at steps "
        "1,000, 10,000 and 100,000. In this run it emerges between step 100 and step 1,000"
    )
    layers = result.table("layers")
    assert len(layers) == 2 * len(STEPS)
    assert layers["value"].iloc[-1] == pytest.approx(52)
    assert set(result.figures()) == {"steps", "layers"}
    assert result.plot("layers").axes
    low = TrainingSteps(measure="sep_weight").join(results[:3])
    assert "surely above 0 at no step" in low.answer


def test_parameters_of_the_study_may_be_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        "bertology.run.over_steps.over_steps",
        lambda name, study, *_, **__: asked.append(study) or [],
    )
    ask = ["steps", "bertology-mini", "--study", "edge-probes", "--corpus", "grammar", "--limit"]
    found = CliRunner().invoke(app, [*ask, "50", "--set", "tasks=pos,relation,level=0.9"])
    assert found.exit_code == 0, found.output
    assert (asked[0].tasks, asked[0].level) == (("pos", "relation"), 0.9)
    found = CliRunner().invoke(app, [*ask, "50", "--set", "level=0.9,relation"])
    assert found.exit_code == 2


def test_what_differs_in_more_than_the_step_is_refused() -> None:
    ask = TrainingSteps(measure="sep_weight")
    with pytest.raises(ParameterError, match="one corpus"):
        ask.join([made(0, 0.1), made(1, 0.2, corpus="other")])
    with pytest.raises(ParameterError, match="one study"):
        ask.join([made(0, 0.1), made(1, 0.2, study="map-types")])
    bare = made(0, 0.1)
    bare.provenance.model["name"] = "model"
    with pytest.raises(DataError, match="which training step"):
        ask.join([bare, made(1, 0.2)])
    with pytest.raises(ParameterError, match="name 2 steps"):
        TrainingSteps(measure="sep_weight", steps=(1,)).join([bare, made(1, 0.2)])


# The real thing, tiny ----------------------------------------------------------------------------


class Dull:
    name = "all nouns"

    def tag(self, sentences: list[list[str]]) -> list[Tags]:
        return [Tags(("NOUN",) * len(s), ("",) * len(s)) for s in sentences]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A training run whose model begins to attend to [SEP] at a known step."""
    monkeypatch.setattr("bertology.annotated.tagger.find_tagger", lambda name: Dull())
    folder = tmp_path / "run"
    for step in STEPS:
        heads = (planted.SEPARATOR,) if step >= APPEARS else ()
        place = folder / "checkpoints" / f"step-{step:08d}"
        made = planted.model(*heads)
        with torch.no_grad():  # every step is another model, also where it behaves alike
            made.embeddings.position_embeddings.weight[-1] = step * 1e-6
        made.save_pretrained(place)
        planted.tokenizer().save_pretrained(place)
    return folder


def test_a_planted_sink_is_found_at_its_step_and_no_step_is_measured_twice(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = TokenClasses(resamples=100, examples=20)
    measured: list[str] = []
    real = TokenClasses.measure

    def counting(self: TokenClasses, encoder: Any, *rest: Any) -> xr.Dataset:
        measured.append(encoder.name)
        return real(self, encoder, *rest)

    monkeypatch.setattr(TokenClasses, "measure", counting)
    session = make_session(str(tmp_path / "store"), progress=False)

    def ask(**how: Any) -> Result:
        join = TrainingSteps(measure="sep_weight", resamples=500, **how)
        source = ModelSource(str(run), device="cpu")
        corpus = planted.corpus(20)
        (found,) = over_steps(
            "token-classes", study, session, model=source, corpus=corpus, join=join
        )
        return found

    few = ask(steps=(0, 100))
    assert len(measured) == 2
    assert "do not surely differ" in few.reasons()["emerges_at"]
    result = ask()
    assert len(measured) == len(STEPS)
    at = result.evidence()["emerges_at"]
    assert (at.low, at.high) == (100, APPEARS)
    assert Store(str(tmp_path / "store")).load(result.identity).equals(result)
    with pytest.raises(ParameterError, match="be of 0, 10"):
        ask(steps=(0, 7))


def test_a_model_without_steps_is_refused(tmp_path: Path) -> None:
    planted.model().save_pretrained(tmp_path / "model")
    with pytest.raises(ModelError, match="0 training steps"):
        steps_of(str(tmp_path / "model"))
    assert list(steps_of("bertology-mini"))[-1] > max(
        int(name.partition("@")[2]) for name in steps_of("bertology-mini").values() if "@" in name
    )


def test_the_command_tells_what_is_wrong(tmp_path: Path) -> None:
    ask = ["steps", "bertology-mini", "--study", "outlier-dimensions", "--store", str(tmp_path)]
    ask += ["--corpus", "grammar", "--limit", "4", "--set", "draws=0"]
    invoke = CliRunner().invoke
    found = invoke(app, [*ask, "--measure", "largest_sigma", "--set", "nothing"])
    assert found.exit_code == 2
    found = invoke(app, [*ask, "--measure", "largest_sigma", "--set", "tagger=x"])
    assert found.exit_code == 2
    silent = ["--study", "minimal-pairs", "--corpus", "grammar-agreement", "--limit", "4"]
    found = invoke(app, [*ask[:2], *silent, "--store", str(tmp_path)])
    assert found.exit_code == 2
    assert "name what minimal-pairs measured: pair_accuracy" in " ".join(found.output.split())
    found = invoke(app, [*ask, "--measure", "largest"])
    assert found.exit_code == 2
    assert "largest_sigma" in found.output
    two = ",".join(map(str, list(steps_of("bertology-mini"))[:2]))
    found = invoke(app, [*ask, "--measure", "largest_sigma", "--steps", two])
    assert found.exit_code == 0, found.output
    assert "distance of the farthest weight changes by" in found.output
