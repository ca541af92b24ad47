"""Studies that name another model: its weights count, its name does not; strangers are refused."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

import bertology as bt
import tiny
from bertology.errors import BertologyError, CapabilityError, ModelError, ParameterError
from bertology.parameters import parameter
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.store import Store
from bertology.run.engine import JobOutcome
from bertology.run.plan import Job
from bertology.run.ray import _on_given_gpu
from bertology.run.worker import attempt
from bertology.studies import STUDIES
from bertology.studies.study import Context, Needs, Study
from toy.making import WORDS, ToyWorld


@dataclass(frozen=True)
class Distance(Study):
    """How far apart are the embeddings of two models?"""

    needs: ClassVar[Needs] = Needs(fields=frozenset({"text"}))
    result_type: ClassVar[type[Result]] = Result

    other: str = parameter("", "The other model.", model=True)

    def measure(self, encoder: Any, corpus: Any, part: str, context: Context) -> Any:
        import xarray as xr

        two = context.others.get("other", encoder)
        weights = [e.model.embeddings.word_embeddings.weight.detach() for e in (encoder, two)]
        return xr.Dataset({"gap": float((weights[0] - weights[1]).abs().sum())})

    def conclude(self, measured: Mapping[str, Any], provenance: Provenance) -> Result:
        import pandas as pd

        return Result(provenance, {"gap": pd.DataFrame({"gap": [float(measured["all"]["gap"])]})})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> ToyWorld:
    return ToyWorld(tmp_path_factory.mktemp("world"))


@pytest.fixture
def other(world: ToyWorld, tmp_path: Path) -> Path:
    return Path(shutil.copytree(world.model, tmp_path / "other"))


def alter(folder: Path) -> None:
    model = tiny.model("bert", "classification")
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[0, 0] += 1
    model.save_pretrained(folder)


def gap(world: ToyWorld, store: Path, other: Any = "", **how: Any) -> Result:
    return bt.run(Distance, world.model, corpus=world.corpus, store=str(store), other=other, **how)


def test_the_weights_of_the_other_model_count_and_its_name_does_not(
    world: ToyWorld, other: Path, tmp_path: Path
) -> None:
    store = tmp_path / "results"
    same = gap(world, store, str(other))
    assert same.table()["gap"][0] == 0
    described = same.provenance.others["other"]
    assert described["name"] == same.provenance.parameters["other"] == str(other)
    moved = other.rename(other.with_name("elsewhere"))
    assert gap(world, store, moved).identity == same.identity
    assert gap(world, store, bt.load(str(moved))).identity == same.identity
    assert gap(world, store).identity != same.identity
    alter(moved)
    changed = gap(world, store, moved)
    assert changed.identity != same.identity
    assert changed.table()["gap"][0] == pytest.approx(1)
    assert Store(str(store)).load(changed.identity).provenance == changed.provenance


def test_a_model_that_is_not_there_is_refused_before_any_work(
    world: ToyWorld, tmp_path: Path
) -> None:
    with pytest.raises(ParameterError, match="a model's name or an encoder"):
        gap(world, tmp_path / "results", 3)
    with pytest.raises(ModelError, match="no model folder"):
        gap(world, tmp_path / "results", str(tmp_path / "nowhere"))
    assert not (tmp_path / "results").exists()


def test_models_of_another_build_or_tokenizer_are_refused(world: ToyWorld, tmp_path: Path) -> None:
    config = tiny.config("bert")
    config.num_hidden_layers = 2
    shallow = bt.Encoder(tiny.hf.BertModel(config), tiny.tokenizer(WORDS), name="shallow")
    stranger = bt.Encoder(tiny.model("bert"), tiny.tokenizer(WORDS[::-1]), name="stranger")
    cased = bt.Encoder(tiny.model("bert"), tiny.tokenizer(WORDS), name="cased")
    cased.tokenizer.backend_tokenizer.post_processor = None
    short = bt.Encoder(tiny.model("bert"), tiny.tokenizer(WORDS, max_length=12), name="short")
    mute = bt.Encoder(tiny.model("bert"), name="mute")
    for model, complaint in (
        (shallow, "layers and heads must be the same"),
        (bt.Encoder(tiny.model("electra"), tiny.tokenizer(WORDS)), "layers and heads"),
        (stranger, "another tokenizer"),
        (cased, "another tokenizer"),
        (short, "reads at most 12 tokens"),
        (mute, "without a tokenizer"),
    ):
        with pytest.raises(BertologyError, match=complaint):
            gap(world, tmp_path / "results", model)
    assert not (tmp_path / "results").exists()


def test_the_other_model_is_loaded_by_workers(world: ToyWorld, other: Path, tmp_path: Path) -> None:
    """As a worker process would: from the job's text alone."""
    alter(other)
    seen: list[Job] = []

    class Posted:
        def run(self, jobs: Any, materials: Any, advance: Any) -> Any:
            for job in jobs:
                seen.append(job)
                job.check_shippable()
                assert job.resources.memory is not None
                yield JobOutcome.from_message(job, attempt(Job.from_json(job.to_json()), advance))

    result = gap(world, tmp_path / "results", str(other), engine=Posted())
    assert result.table()["gap"][0] == pytest.approx(1)
    (job,) = seen
    assert job.others["other"]["model"]["name"] == str(other)
    meant = {"other": {**job.others["other"], "model_fingerprint": "0"}}
    elsewhere = replace(job, others=meant, measurement="0000000000000000")
    assert elsewhere.identity != job.identity
    assert "has changed since this run was planned" in attempt(elsewhere, print)["error"]


def test_a_model_in_memory_does_not_leave_the_process(
    world: ToyWorld, other: Path, tmp_path: Path
) -> None:
    made = bt.Encoder(tiny.model("bert"), tiny.tokenizer(WORDS), name="made")
    with pytest.raises(CapabilityError, match="The model of 'other' was made in memory"):
        gap(world, tmp_path / "results", made, workers=2)


def test_ray_gives_both_models_its_gpu() -> None:
    job = Job(
        "s", "m:S", 1, {}, "all", "0", {"name": "a", "device": "cuda:3"}, "1", None, None, None,
        others={"other": {"model": {"name": "b", "device": "cuda:3"}, "model_fingerprint": "2"}},
    )  # fmt: skip
    here = _on_given_gpu(job)
    assert here.model == {"name": "a", "device": "cuda"}
    assert here.others["other"]["model"] == {"name": "b", "device": "cuda"}


def test_the_command_line_has_it_as_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from bertology.cli.main import app

    monkeypatch.setitem(STUDIES._loaded, "distance", Distance)
    shown = CliRunner().invoke(app, ["run", "distance", "--help"], env={"COLUMNS": "120"})
    assert shown.exit_code == 0, shown.output
    assert "--other" in shown.output
    assert "MODEL" in shown.output
