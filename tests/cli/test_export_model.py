"""`bertology export-model`: one file that gives what the model gives, wherever it is run."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import bertology as bt
import planted
import tiny
from bertology.cli.main import app
from bertology.errors import CapabilityError, JobError, MissingExtraError, UnknownNameError
from bertology.model import exported
from bertology.model.compressed import (
    bilstm,
    early_exit,
    eliminated_tokens,
    low_rank,
    quantised,
    shared_layers,
    sixteen_bit,
)
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import prune_heads, prune_mlps
from bertology.train.exporting import export_to

TEXTS = ["the up down good up up", "up", "down good down the the the up good", "good up"]


def call(*words: Any) -> tuple[int, str]:
    done = CliRunner().invoke(
        app, ["export-model", *(str(w) for w in words)], prog_name="bertology"
    )
    assert "Traceback" not in done.output
    assert "This is a bug" not in done.output
    return done.exit_code, done.output


def of_one_layer(name: str, layers: str, *, number: int = 1) -> Any:
    """A tiny classifier; each layer takes a second to export, and all have the same code."""
    kind, arguments = tiny.ROWS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tiny.ROWS, name, (kind, arguments | {layers: number}))
        return tiny.model(name, "classification")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A pruned model: layers of different sizes, one without any head, one without an MLP."""
    model = prune_heads(planted.model(), [(0, 1), *((1, h) for h in range(4))])
    model = prune_mlps(model, [0])
    model.config.id2label = dict(enumerate(planted.TASK.labels))
    folder = tmp_path / "small"
    model.save_pretrained(folder)
    planted.tokenizer().save_pretrained(folder)
    return folder


def logits_by_card(folder: Path) -> Any:
    """Run what the card says, from the folder above, on these texts."""
    card = (folder / "README.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    code = code.replace('["A text.", "Another one."]', repr(TEXTS))
    names: dict[str, Any] = {}
    before = Path.cwd()
    os.chdir(folder.parent)
    try:
        exec(code, names)
    finally:
        os.chdir(before)
    return torch.as_tensor(names["logits"])


@pytest.mark.parametrize("format", exported.FORMATS)
@pytest.mark.filterwarnings("ignore")  # of the libraries that run the file
def test_the_file_of_a_pruned_model_gives_its_logits(
    small: Path, tmp_path: Path, format: str
) -> None:
    if format == "onnx":
        pytest.importorskip("onnxscript", reason="needs the extra: pip install 'bertology[onnx]'")
        pytest.importorskip("onnxruntime")
    to = tmp_path / "deploy"
    code, said = call(small, "--format", format, "--to", to)
    assert code == 0, said
    assert "gives the same answer" in said
    assert "64 of 64 texts" in said.replace("\n", " ")
    assert "32 in one call" in said
    record = json.loads((to / "bertology.json").read_text())
    assert record["method"] == "export"
    assert record["export"]["difference"] < 1e-4
    assert json.loads((to / "config.json").read_text())["id2label"] == dict(
        zip("01", planted.TASK.labels, strict=True)
    )
    encoder = bt.load(str(small), head="classification", device="cpu")
    inputs = encoder.tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = encoder.model(**inputs).logits
    torch.testing.assert_close(logits_by_card(to), expected, atol=1e-5, rtol=1e-5)
    code, said = call(small, "--to", to)
    assert code == 2
    assert "is not empty" in said


def test_one_text_and_the_longest_one(tmp_path: Path) -> None:
    encoder = Encoder(of_one_layer("distilbert", "n_layers"), head="classification")
    path = tmp_path / "model.pt2"
    exported.export_file(encoder, tiny.inputs(), path, format="pt2")
    runs, longest = exported.open_file(path), encoder.max_length
    assert longest is not None
    for size, length in ((1, 2), (1, longest), (7, 5)):
        ids = torch.randint(5, tiny.VOCAB, (size, length))
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with torch.no_grad():
            torch.testing.assert_close(runs(inputs), encoder.model(**inputs).logits)


def _many_forms() -> Any:
    """Shared layers of low rank, tables of four bits, and all else in sixteen."""
    model = of_one_layer("bert", "num_hidden_layers", number=2)
    model = shared_layers.share(model, groups=1)
    model = low_rank.factorise(model, 6, maps="layers")
    model = quantised.quantise(model, 4, scheme="groups", groups=4, maps="embeddings")
    return sixteen_bit.store(model)


def _products_of_whole_numbers() -> Any:
    return quantised.quantise(of_one_layer("bert", "num_hidden_layers"), 8, activations=8)


@pytest.mark.parametrize("make", [_many_forms, _products_of_whole_numbers])
@pytest.mark.filterwarnings("ignore")
def test_onnx_gives_the_logits_of_every_form_that_is_one_computation(
    make: Any, tmp_path: Path
) -> None:
    pytest.importorskip("onnxscript", reason="needs the extra: pip install 'bertology[onnx]'")
    pytest.importorskip("onnxruntime")
    make().save_pretrained(tmp_path)
    encoder = Encoder.load(str(tmp_path), head="classification", device="cpu")
    path = tmp_path / "model.onnx"
    exported.export_file(encoder, tiny.inputs(), path, format="onnx")
    runs = exported.open_file(path)
    for size, length in ((1, 2), (4, 9)):
        ids = torch.randint(5, tiny.VOCAB, (size, length))
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with torch.no_grad():
            expected = encoder.model(**inputs).logits
        torch.testing.assert_close(runs(inputs), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: early_exit.add_exits(tiny.model("bert", "classification"), [0]), "early exit"),
        (
            lambda: eliminated_tokens.eliminate(tiny.model("bert", "classification"), [4, 4, 2]),
            "eliminated tokens",
        ),
        (lambda: bilstm.make(torch.randn(tiny.VOCAB, 4), labels=2), "a BiLSTM"),
    ],
)
def test_what_depends_on_the_batch_is_not_exported(make: Any, why: str, tmp_path: Path) -> None:
    encoder = Encoder(make(), head="classification")
    with pytest.raises(CapabilityError, match=f"with {why}, the texts of a batch decide"):
        exported.export_file(encoder, tiny.inputs(), tmp_path / "m.pt2", format="pt2")


def test_refusals(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = call("bertology-mini", "--to", tmp_path / "x")
    assert code == 2
    assert "no trained classification head" in said
    with pytest.raises(UnknownNameError, match="coreml"):
        bt.export_model(str(small), tmp_path / "x", format="coreml")
    monkeypatch.setattr(exported, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bertology\[onnx\]'"):
        bt.export_model(str(small), tmp_path / "x", format="onnx")
    encoder = Encoder(of_one_layer("xlnet", "n_layer"), head="classification")
    with pytest.raises(CapabilityError, match="XLNet models cannot be exported as pt2"):
        exported.export_file(encoder, tiny.inputs(), tmp_path / "m.pt2", format="pt2")
    assert not (tmp_path / "x").exists()


def test_a_file_that_differs_is_not_kept(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bertology.train import exporting

    encoder = bt.load(str(small), head="classification", device="cpu")
    # What is tested is the comparison: no file need be made for it.
    monkeypatch.setattr(exporting, "export_file", lambda e, i, path, **_: path.write_bytes(b""))
    monkeypatch.setattr(
        exporting, "open_file", lambda path: lambda i: encoder.model(**i).logits.detach() + 0.5
    )
    with pytest.raises(JobError, match=r"differs by 0\.5"):
        export_to(tmp_path / "x", encoder, planted.corpus(8, seed=1))
    assert not (tmp_path / "x").exists()
