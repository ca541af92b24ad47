"""Earlier training steps: how they are kept, what they are called, and that they are told apart."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

import bertology as bt
import tiny
from bertology.cli.main import app
from bertology.errors import MissingExtraError, ModelError, ParameterError, UnknownNameError
from bertology.model.loading.names import Location, locate
from bertology.model.loading.steps import compress, restore, save_step
from bertology.run.over_steps import steps_of
from bertology.studies import STUDIES
from toy.making import ToyWorld
from toy.study import ToyLengths

ROOT = Path(__file__).resolve().parents[2]
WORDS = "the a key keys to cabinet are is here .".split()
TEXT = "the keys to the cabinet are here ."


def network(seed: int, **changes: Any) -> Any:
    """A tiny BERT with both heads of pre-training."""
    config = tiny.config("bert")
    config.update(changes)
    torch.manual_seed(seed)
    made = hf.BertForPreTraining(config).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # no vector is all zeros or ones
    return made


def save(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder)
    tiny.tokenizer(WORDS).save_pretrained(folder)
    return folder


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundled model in float16 with steps 0 and 1000."""
    monkeypatch.setattr("bertology.model.loading.names.CHECKPOINTS", tmp_path / "checkpoints")
    folder = save(network(2).half(), tmp_path / "checkpoints" / "bertology-mini")
    save_step(folder, network(1), 1000)
    save_step(folder, network(0), 0)
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A pre-training run with steps 10 and 200, the first without a tokenizer."""
    folder = tmp_path / "my-run"
    save(network(2), folder / "model")
    save(network(1), folder / "checkpoints" / "step-00000200")
    network(0).save_pretrained(folder / "checkpoints" / "step-00000010")
    (folder / "checkpoints" / "step-00000300").mkdir()  # nothing in it: no step
    return folder


# Compressing --------------------------------------------------------------------------------------


def test_no_entry_is_off_by_more_than_half_a_level(tmp_path: Path) -> None:
    model = network(0)
    folder = save(model, tmp_path)
    back = restore(save_step(folder, model, 5))
    weights = model.state_dict()
    assert set(back) == set(weights) - {
        "cls.predictions.decoder.weight",  # tied to the word embeddings
        "cls.predictions.decoder.bias",
    }
    for name, tensor in back.items():
        assert tensor.dtype == torch.float32
        error = (tensor - weights[name]).abs()
        if tensor.dim() > 1:
            bound = weights[name].abs().amax(-1, keepdim=True) / 254
            assert (error <= 1.001 * bound).all(), name
            assert error.any(), name  # it was compressed
        else:
            assert torch.equal(tensor, weights[name].half().float())


def test_a_matrix_takes_a_byte_an_entry() -> None:
    small = compress({"w": torch.randn(7, 300), "b": torch.randn(300), "n": torch.arange(3)})
    assert {name: str(t.dtype) for name, t in small.items()} == {
        "w": "torch.int8",
        "scale:w": "torch.float32",
        "b": "torch.float16",
        "n": "torch.int64",
    }
    assert small["scale:w"].shape == (7, 1)


def test_rows_of_zeros_and_large_vectors_come_back(tmp_path: Path) -> None:
    weights = {"w": torch.tensor([[0.0, 0.0], [1e-9, -2e-9]]), "b": torch.tensor([1e6, 1.0])}
    save_file(compress(weights), tmp_path / "s.safetensors")
    back = restore(tmp_path / "s.safetensors")
    assert back["w"][0].tolist() == [0, 0]
    assert torch.allclose(back["w"][1], weights["w"][1], rtol=0.01, atol=0)
    assert torch.equal(back["b"], weights["b"])  # float16 would not hold it


def test_what_cannot_be_a_step(bundled: Path) -> None:
    with pytest.raises(ModelError, match="'w' are not finite"):
        compress({"w": torch.tensor([[1.0, float("nan")]])})
    with pytest.raises(ParameterError, match="at least 0"):
        save_step(bundled, network(0), -1)
    with pytest.raises(ModelError, match="must be a bert model, not roberta"):
        save_step(bundled, tiny.model("roberta"), 1)


# Names --------------------------------------------------------------------------------------------


def test_steps_of_a_bundled_model(bundled: Path) -> None:
    assert bt.steps("bertology-mini") == [0, 1000]
    early = bt.load("bertology-mini@1000", head="pretraining")
    expected = restore(bundled / "steps" / "step-00001000.safetensors")
    weights = early.model.state_dict()
    assert all(torch.equal(weights[name], tensor) for name, tensor in expected.items())
    tied = weights["cls.predictions.decoder.weight"]
    assert tied.data_ptr() == weights["bert.embeddings.word_embeddings.weight"].data_ptr()
    assert not early.new_weights
    assert early.name == "bertology-mini@1000"
    again = bt.Encoder.load(**early.spec or {})  # as a worker process loads it
    assert again.fingerprint == early.fingerprint


@pytest.mark.parametrize("head", ["base", "mlm", "pretraining"])
def test_every_step_has_a_fingerprint_of_its_own(bundled: Path, head: str) -> None:
    names = ["bertology-mini", *(f"bertology-mini@{s}" for s in bt.steps("bertology-mini"))]
    encoders = [bt.load(name, head=head) for name in names]
    assert len({e.fingerprint for e in encoders}) == 3
    residuals = [e.run(TEXT, record="layer.1.residual")["layer.1.residual"] for e in encoders]
    assert not torch.allclose(residuals[0], residuals[1])
    assert not torch.allclose(residuals[1], residuals[2])


def test_float16_weights_are_loaded_in_float32(bundled: Path) -> None:
    stored = load_file(bundled / "model.safetensors")
    loaded = bt.load("bertology-mini", head="pretraining").model.state_dict()
    for name, tensor in stored.items():
        assert tensor.dtype == torch.float16
        assert loaded[name].dtype == torch.float32
        assert torch.equal(loaded[name], tensor.float())
    assert bt.load("bertology-mini@0", dtype="bfloat16").model.dtype == torch.bfloat16


def test_installed_steps_are_a_package_of_their_own(
    bundled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = bt.load("bertology-mini@1000").fingerprint
    apart = bundled.parents[1] / "installed"
    shutil.copytree(bundled / "steps", apart / "bertology_steps" / "bertology-mini")
    shutil.rmtree(bundled / "steps")
    for ask in (bt.steps, steps_of):
        with pytest.raises(MissingExtraError, match="step of 'bertology-mini'") as caught:
            ask("bertology-mini")
        assert caught.value.hint == "Install it with: pip install 'bertology[steps]'"
    with pytest.raises(MissingExtraError):
        bt.load("bertology-mini@1000")
    wide = {"COLUMNS": "200"}
    assert "in the extra `steps`" in CliRunner().invoke(app, ["models"], env=wide).output
    monkeypatch.syspath_prepend(str(apart))
    assert bt.steps() == [0, 1000]
    assert bt.load("bertology-mini@1000").fingerprint == beside
    other = shutil.copytree(bundled, bundled.parents[1] / "bertology-mini")
    assert bt.steps(str(other)) == []  # a copy is not the bundled model


def test_steps_of_a_run(run: Path) -> None:
    assert bt.steps(str(run / "model")) == bt.steps(str(run)) == [10, 200]
    expected = network(1).state_dict()["bert.embeddings.word_embeddings.weight"]
    for name in (f"{run}/model@200", f"{run}@200"):
        found = bt.load(name).model.state_dict()["embeddings.word_embeddings.weight"]
        assert torch.equal(found, expected)
    bare = bt.load(f"{run}/model@10")
    assert bare.run(TEXT).output is not None  # with the tokenizer of the model it belongs to


def test_a_run_without_its_model_yet(run: Path) -> None:
    with pytest.raises(ModelError, match=r"Give the folder: .*model$"):
        bt.load(str(run))
    shutil.rmtree(run / "model")
    assert bt.load(f"{run}@200").tokenizer is not None


def test_the_folder_of_seeds_is_taken_for_no_model(run: Path) -> None:
    """Fine-tuning makes a model for each seed, and people name the folder above."""
    place = run.parent / "tuned"
    shutil.copytree(run / "model", place / "seed-0")
    with pytest.raises(ModelError, match=r"Give the folder: .*seed-0$"):
        bt.load(str(place))
    with pytest.raises(ModelError, match=r"Did you mean '.*seed-0'"):
        bt.load(f"{place}/seed-9")


def test_steps_are_only_those_of_the_model_itself(run: Path) -> None:
    other = save(network(4), run / "other")
    assert bt.steps(str(other)) == []


def test_a_step_may_have_had_fewer_layers(bundled: Path) -> None:
    save_step(bundled, network(3, num_hidden_layers=1), 7)
    assert bt.load("bertology-mini@7").shape.layers == 1
    assert bt.load("bertology-mini@0").shape.layers == 3


def test_a_folder_with_the_mark_in_its_name(tmp_path: Path) -> None:
    folder = save(network(0), tmp_path / "v@2")
    assert locate(str(folder)) == Location(str(folder))
    with pytest.raises(ModelError, match=r"There is no model folder '.*v@2/none'"):
        locate(f"{folder}/none")


def test_revisions_of_hub_ids() -> None:
    assert locate("owner/model@step-3") == Location("owner/model", revision="step-3")
    assert locate("owner/model@refs/pr/1") == Location("owner/model", revision="refs/pr/1")
    assert locate("owner/model") == Location("owner/model")


# Errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["999", "first", ""])
def test_an_unknown_step_lists_those_there_are(bundled: Path, tag: str) -> None:
    with pytest.raises(ModelError, match=r"no training step(?s:.*)Its steps: 0, 1000\."):
        bt.load(f"bertology-mini@{tag}")


def test_a_model_without_steps(run: Path) -> None:
    folder = save(network(4), run / "other")
    with pytest.raises(ModelError, match="has no earlier steps"):
        bt.load(f"{folder}@3")


def test_misspelt_and_unknown_models(bundled: Path, tmp_path: Path) -> None:
    for ask in (bt.load, bt.steps):
        with pytest.raises(UnknownNameError, match="Did you mean 'bertology-mini'"):
            ask("bertology-mni" + ("@0" if ask is bt.load else ""))
    with pytest.raises(ModelError, match="There is no model folder"):
        bt.steps(str(tmp_path / "nothing"))
    with pytest.raises(ModelError, match="owner/model@revision"):
        bt.steps("owner/model")


def test_broken_steps(bundled: Path) -> None:
    path = bundled / "steps" / "step-00001000.safetensors"
    save_file(load_file(path), path)  # without its metadata
    with pytest.raises(ModelError, match="no training step of version 1"):
        bt.load("bertology-mini@1000")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ModelError, match="corrupt"):
        bt.load("bertology-mini@1000")


# The command and the bundle -----------------------------------------------------------------------


def test_models_are_listed(bundled: Path, run: Path) -> None:
    shown = CliRunner().invoke(app, ["models", str(run / "model")], env={"COLUMNS": "200"}).output
    ours, theirs = (line for line in shown.splitlines() if "BERT" in line)
    count = sum(p.numel() for p in network(0).parameters())
    assert "bertology-mini" in ours
    assert f"3 layers × 4 heads × 24 wide   {count:,}" in ours
    assert ours.rstrip().endswith("0, 1000")
    assert theirs.rstrip().endswith("10, 200")


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bundle", ROOT / "benchmarks" / "bundle.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_run_becomes_a_bundle(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(network(2), run / "checkpoints" / "step-00000400")  # the last one is the model itself
    (run / "model" / "README.md").write_text("a card", encoding="utf-8")
    lines = [json.dumps({"step": i, "scores": {"mlm": 1} if i == 5 else None}) for i in range(2501)]
    (run / "log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    to = tmp_path / "bundle"
    script().bundle(run, to)
    assert bt.steps(str(to)) == [10, 200]
    assert (to / "README.md").read_text(encoding="utf-8") == "a card"
    kept = [json.loads(line)["step"] for line in (to / "log.jsonl").read_text().splitlines()]
    assert kept[:4] == [0, 3, 5, 6]
    assert kept[-1] == 2500
    assert len(kept) < 1002
    printed = capsys.readouterr().out
    assert "step 400 is the model itself" in printed
    assert "the run has no bertology.json" in printed
    whole = network(2).state_dict()["bert.pooler.dense.weight"]
    loaded = bt.load(str(to)).model.state_dict()["pooler.dense.weight"]
    assert torch.equal(loaded, whole.half().float())
    with pytest.raises(SystemExit, match="there already"):
        script().bundle(run, to)
    with pytest.raises(SystemExit, match="has no steps"):
        script().bundle(run, tmp_path / "other", [11])


def test_the_provenance_names_the_step(
    bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_DIARY", str(tmp_path / "diary"))
    monkeypatch.setitem(STUDIES._loaded, "toy-lengths", ToyLengths)
    corpus, store = ToyWorld(tmp_path / "world").corpus, tmp_path / "store"
    results = [
        bt.run("toy-lengths", bt.load(f"bertology-mini@{step}"), task=corpus, store=str(store))
        for step in (0, 1000)
    ]
    names = [r.provenance.model["name"] for r in results]
    assert names == ["bertology-mini@0", "bertology-mini@1000"]
    assert results[0].identity != results[1].identity
