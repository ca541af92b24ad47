"""`bertology export-model`: one file that gives what the model gives, wherever it is run."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import replace
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
    input_ranges,
    low_rank,
    quantised,
    shared_layers,
    sixteen_bit,
)
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import prune_heads, prune_mlps
from bertology.train.exporting import Exported, export_to

TEXTS = ["the up down good up up", "up", "down good down the the the up good", "good up"]


def call(*words: Any) -> tuple[int, str]:
    done = CliRunner().invoke(
        app, ["export-model", *(str(w) for w in words)], prog_name="bertology"
    )
    assert "Traceback" not in done.output
    assert "This is a bug" not in done.output
    return done.exit_code, done.output


def of_one_layer(name: str, layers: str, *, number: int = 1, **more: Any) -> Any:
    """A tiny classifier; each layer takes a second to export, and all have the same code."""
    kind, arguments = tiny.ROWS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tiny.ROWS, name, (kind, arguments | more | {layers: number}))
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


def _in_onnx(encoder: Encoder, folder: Path, name: str = "model.onnx") -> tuple[Any, Path]:
    pytest.importorskip("onnxscript", reason="needs the extra: pip install 'bertology[onnx]'")
    pytest.importorskip("onnxruntime")
    path = folder / name
    exported.export_file(encoder, tiny.inputs(), path, format="onnx")
    return exported.open_file(path), path


def _logits(encoder: Encoder, inputs: Any) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = encoder.model(**inputs).logits
    return found


def _batches() -> list[dict[str, torch.Tensor]]:
    """One text of two tokens, and texts of different lengths."""
    ids = torch.randint(5, tiny.VOCAB, (1, 2), generator=torch.Generator().manual_seed(0))
    return [{"input_ids": ids, "attention_mask": torch.ones_like(ids)}, tiny.inputs(batch=4)]


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        # One export takes some seconds; that of a BERT is looked at in other tests.
        pytest.param("albert", "num_hidden_layers", marks=pytest.mark.slow),
        pytest.param("mpnet", "num_hidden_layers", marks=pytest.mark.slow),
        pytest.param("roberta", "num_hidden_layers", marks=pytest.mark.slow),
        pytest.param("electra", "num_hidden_layers", marks=pytest.mark.slow),
        pytest.param("distilbert", "n_layers", marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_onnx_gives_the_logits_of_the_families_that_are_named(
    name: str, layers: str, tmp_path: Path
) -> None:
    encoder = Encoder(of_one_layer(name, layers), head="classification")
    runs, _ = _in_onnx(encoder, tmp_path)
    for inputs in _batches():
        torch.testing.assert_close(runs(inputs), _logits(encoder, inputs), atol=1e-4, rtol=0)


_WIDE = 400  # of an MLP, whose maps are then too large for the exporter to compute with


def _wide(*, layers: int = 1) -> Any:
    return of_one_layer("bert", "num_hidden_layers", number=layers, intermediate_size=_WIDE)


def _many_forms() -> Any:
    """Shared layers of low rank in whole numbers, tables of four bits, and all else in sixteen.

    Maps of attention have stored ranges of inputs, others those of each batch.
    """
    model = shared_layers.share(_wide(layers=2), groups=1)
    model = low_rank.factorise(model, 23, maps="layers")
    watched = input_ranges.watched_ranges(model, _batches(), maps="layers")
    ranges = {name: one for name, one in watched.items() if "attention" in name}
    assert 0 < len(ranges) < len(watched)
    model = quantised.quantise(model, 8, maps="layers", activations=8, ranges=ranges)
    model = quantised.quantise(model, 4, scheme="groups", groups=4, maps="embeddings")
    return sixteen_bit.store(model)


def _few_bits() -> Any:
    """Maps of four bits, whose inputs are rounded, and tables by a dictionary."""
    ranges = input_ranges.watched_ranges(model := _wide(), _batches(), maps="layers")
    model = quantised.quantise(
        model, 4, scheme="groups", groups=4, maps="layers", activations=8, ranges=ranges
    )
    return quantised.quantise(model, 3, scheme="dictionary", groups="tensor")


def _own_ranges() -> Any:
    """Ranges of inputs are those of each batch."""
    return quantised.quantise(_wide(), 8, activations=8)


@pytest.mark.parametrize(
    ("make", "operations"),
    [
        (_many_forms, {"QuantizeLinear", "MatMulInteger"}),
        pytest.param(_few_bits, {"QuantizeLinear"}, marks=pytest.mark.slow),
        pytest.param(_own_ranges, {"MatMulInteger"}, marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_onnx_gives_the_logits_of_every_form_and_holds_whole_numbers(
    make: Any, operations: set[str], tmp_path: Path
) -> None:
    make().save_pretrained(tmp_path)
    encoder = Encoder.load(str(tmp_path), head="classification", device="cpu")
    runs, path = _in_onnx(encoder, tmp_path)
    for inputs in _batches():
        torch.testing.assert_close(runs(inputs), _logits(encoder, inputs), atol=1e-4, rtol=0)
    import onnx

    graph = onnx.load(path).graph
    assert operations <= {node.op_type for node in graph.node}
    large = {one.data_type for one in graph.initializer if math.prod(one.dims) > 9000}
    assert large
    assert large <= {onnx.TensorProto.INT8, onnx.TensorProto.UINT8}
    maps = (m for m in encoder.model.modules() if isinstance(m, quantised.Quantised))
    assert not any("forward" in vars(m) for m in maps)


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_onnx_gives_the_logits_of_a_bilstm(pairs: bool, tmp_path: Path) -> None:
    vectors = torch.randn(tiny.VOCAB, 4, generator=torch.Generator().manual_seed(1))
    model = bilstm.make(
        vectors, labels=3, hidden=5, layers=2, pair_tokens=(2, 3) if pairs else None
    )
    encoder = Encoder(model, head="classification")
    runs, _ = _in_onnx(encoder, tmp_path)
    for inputs in [tiny.inputs(batch=4), tiny.inputs(batch=1, length=7, seed=3)]:
        if pairs:
            inputs["input_ids"][:, 0] = 2
            inputs["input_ids"][:, 2] = 3
        torch.testing.assert_close(runs(inputs), _logits(encoder, inputs), atol=1e-5, rtol=1e-5)


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
    with pytest.raises(CapabilityError, match=f"as pt2: with {why}, the texts of a batch decide"):
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


@pytest.mark.parametrize(
    ("made", "away", "equal"),
    [
        ("plain", 0.5, False),
        ("plain", 5e-4, False),
        ("plain", 1e-5, True),
        ("number", 5e-4, False),
        ("number", 1e-5, True),
        ("rounded", 5e-4, True),
        ("rounded", 0.5, False),
    ],
)
def test_a_file_that_differs_is_not_kept(
    made: str, away: float, equal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a model whose inputs are rounded, some inputs may become the next number."""
    from bertology.train import exporting

    model = planted.model()
    model.config.id2label = dict(enumerate(planted.TASK.labels))
    if made == "number":
        model.classifier = torch.nn.Linear(model.config.hidden_size, 1)
        model.config.num_labels = 1
    if made == "rounded":
        quantised.quantise(model, activations=8)
    encoder = Encoder(model, planted.tokenizer(), head="classification", name="planted")
    # What is tested is the comparison: no file need be made for it.
    monkeypatch.setattr(exporting, "export_file", lambda e, i, path, **_: path.write_bytes(b""))
    monkeypatch.setattr(exporting, "open_file", lambda path: lambda i: _logits(encoder, i) + away)
    corpus = planted.corpus(8, seed=1)
    if equal:
        found = export_to(tmp_path / "x", encoder, corpus)
        assert found.same_answers == found.compared == 8
        card = (found.folder / "README.md").read_text()
        assert ("rounds inputs" in card) == (made == "rounded")
        assert "The file has 0.0 MB" in card
    else:
        with pytest.raises(JobError, match=f"differs by {away:.1g}".replace("0.5", r"0\.5")):
            export_to(tmp_path / "x", encoder, corpus)
        assert not (tmp_path / "x").exists()


def test_the_size_of_a_file_is_told_beside_that_of_the_model() -> None:
    small = Exported(Path("x"), "m", "pt2", 0.0, 1, 1, 28.7, 8.9, True, True, (), 1, False)
    assert "28.7 MB" in small.size_text
    assert "8.9 MB" in small.size_text
    assert "have 32 bits, whatever they had" in small.size_text
    assert "32 bits" not in replace(small, megabytes=9.3).size_text
    assert "32 bits" not in replace(small, packed=False).size_text
    assert "take 8 in an ONNX file" in replace(small, format="onnx").size_text
