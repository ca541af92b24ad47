"""Loading, sites, traces, interventions: what a user meets first."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf

import bertology as bt
import planted
import tiny
from bertology.errors import BertologyError, DataError, ModelError, ParameterError, UnknownNameError
from bertology.model.encoder import Encoder
from bertology.model.reducers.statistics import AttentionStatistics

TEXT = "the good up down"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("planted-model")
    planted.model().save_pretrained(where)
    planted.tokenizer().save_pretrained(where)
    return where


@pytest.fixture
def encoder(folder: Path) -> Encoder:
    return bt.load(str(folder), head="classification")


def copy_of(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


# Loading ------------------------------------------------------------------------------------------


def test_a_misspelt_name_is_told_at_once_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's own client tried for a minute, without a word."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.delenv(name, raising=False)
    began = time.monotonic()
    with pytest.raises(ModelError, match="hub cannot be reached") as refused:
        bt.load("somebody/bertology-mni")
    assert "Did you mean 'bertology-mini'?" in str(refused.value.hint)
    assert time.monotonic() - began < 10


def test_loads_a_folder_and_knows_it_again(encoder: Encoder, folder: Path) -> None:
    assert str(encoder.shape) == "2 layers × 4 heads × 16 wide"
    assert encoder.fingerprint == bt.load(str(folder), head="classification").fingerprint
    assert encoder.fingerprint != bt.load(str(folder)).fingerprint
    again = Encoder.load(**encoder.spec or {})
    assert torch.equal(again.run(TEXT).logits, encoder.run(TEXT).logits)


def test_unknown_folder(tmp_path: Path) -> None:
    (tmp_path / "my-bert").mkdir()
    with pytest.raises(ModelError, match="no model folder") as error:
        bt.load(str(tmp_path / "my-bret"))
    assert "my-bert" in str(error.value)


def test_unknown_hub_id_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match=r"Unknown model 'nobody/nothing'.*HF_HUB_OFFLINE is set"):
        bt.load("nobody/nothing")


def test_a_file_is_no_model(folder: Path) -> None:
    with pytest.raises(ModelError, match="is a file; a model is a folder"):
        bt.load(str(folder / "config.json"))


def test_folder_without_config(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"holds no config\.json"):
        bt.load(str(tmp_path))


def test_folder_without_weights(folder: Path, tmp_path: Path) -> None:
    copy = copy_of(folder, tmp_path)
    (copy / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="but no weights"):
        bt.load(str(copy))


def test_pickle_only(folder: Path, tmp_path: Path) -> None:
    copy = copy_of(folder, tmp_path)
    (copy / "model.safetensors").unlink()
    torch.save(planted.model().state_dict(), copy / "pytorch_model.bin")
    with pytest.raises(ModelError, match="pickle only") as error:
        bt.load(str(copy), head="classification")
    assert "allow_pickle=True" in str(error.value)
    assert "no code of it runs" in str(error.value)
    trusted = bt.load(str(copy), head="classification", allow_pickle=True)
    assert trusted.run(TEXT).logits.shape == (1, 2)


def test_pickle_that_would_run_code(folder: Path, tmp_path: Path) -> None:
    copy = copy_of(folder, tmp_path)
    (copy / "model.safetensors").unlink()

    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    torch.save({"x": Evil()}, copy / "pytorch_model.bin")
    with pytest.raises(ModelError, match="holds more than tensors, so it is not read") as error:
        bt.load(str(copy), allow_pickle=True)
    assert "weights_only" not in str(error.value)  # torch advises to switch the protection off
    assert not (tmp_path / "ran").exists()


def test_a_config_that_names_no_family(folder: Path, tmp_path: Path) -> None:
    copy = copy_of(folder, tmp_path)
    config = json.loads((copy / "config.json").read_text())
    del config["model_type"]
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="does not say which family") as error:
        bt.load(str(copy))
    assert '"model_type": "bert"' in str(error.value)


def test_corrupt_weights(folder: Path, tmp_path: Path) -> None:
    copy = copy_of(folder, tmp_path)
    data = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelError, match="corrupt"):
        bt.load(str(copy))


def test_corrupt_config(folder: Path, tmp_path: Path) -> None:
    copy = copy_of(folder, tmp_path)
    (copy / "config.json").write_text("{not json")
    with pytest.raises(ModelError, match=r"config\.json, line 1: not JSON"):
        bt.load(str(copy))


def test_weights_of_another_model(folder: Path, tmp_path: Path) -> None:
    copy = copy_of(folder, tmp_path)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "model_type": "roberta"}))
    with pytest.raises(ModelError, match="almost none of the weights"):
        bt.load(str(copy))


def test_unknown_family(folder: Path, tmp_path: Path) -> None:
    copy = copy_of(folder, tmp_path)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "model_type": "llama"}))
    with pytest.raises(UnknownNameError, match=r"Unknown model family 'llama'"):
        bt.load(str(copy))


def test_missing_head(folder: Path) -> None:
    with pytest.raises(ModelError, match="no trained mlm head"):
        bt.load(str(folder), head="mlm")
    with pytest.raises(UnknownNameError, match="Did you mean 'classification'"):
        bt.load(str(folder), head="clasification")
    started = bt.load(str(folder), head="token-classification", num_labels=3)
    assert started.run(TEXT).logits.shape == (1, 6, 3)
    assert started.new_weights


def test_head_that_a_family_does_not_have(tmp_path: Path) -> None:
    tiny.model("t5").save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="T5 encoder models have no 'mlm' head"):
        bt.load(str(tmp_path), head="mlm")


@pytest.mark.parametrize(
    ("head", "kind", "shape"),
    [
        ("base", "BertModel", (2, 4, 24)),
        ("mlm", "BertForMaskedLM", (2, 4, tiny.VOCAB)),
        ("pretraining", "BertForPreTraining", (2, 4, tiny.VOCAB)),
        ("classification", "BertForSequenceClassification", (2, 2)),
        ("token-classification", "BertForTokenClassification", (2, 4, 2)),
        ("multiple-choice", "BertForMultipleChoice", (2, 3)),
    ],
)
def test_every_head_loads_and_records(
    tmp_path: Path, head: str, kind: str, shape: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    getattr(hf, kind)(tiny.config("bert")).save_pretrained(tmp_path)
    encoder = bt.load(str(tmp_path), head=head)
    ids = torch.randint(5, tiny.VOCAB, (2, 3, 4) if head == "multiple-choice" else (2, 4))
    trace = encoder.run({"input_ids": ids}, record="layer.*.head.*.pattern")
    assert trace.logits.shape == shape
    maps = trace["layer.*.head.*.pattern"]
    assert maps.shape == (3, 6 if head == "multiple-choice" else 2, 4, 4, 4)
    torch.testing.assert_close(maps.sum(-1), torch.ones_like(maps[..., 0]))


def test_regression_is_a_classification_head_with_one_output(tmp_path: Path) -> None:
    planted.model().save_pretrained(tmp_path)
    planted.tokenizer().save_pretrained(tmp_path)
    encoder = bt.load(str(tmp_path), head="classification", num_labels=1)
    assert encoder.run(TEXT).logits.shape == (1, 1)
    assert encoder.new_weights == ["classifier.bias", "classifier.weight"]


def test_device_and_dtype(folder: Path) -> None:
    with pytest.raises(ParameterError, match="'dtype'"):
        bt.load(str(folder), dtype="int3")
    with pytest.raises(ParameterError, match="'device'"):
        bt.load(str(folder), device="gpu9")
    if not torch.cuda.is_available():
        with pytest.raises(ModelError, match="no GPU"):
            bt.load(str(folder), device="cuda")


# Texts --------------------------------------------------------------------------------------------


def test_texts_of_every_form(encoder: Encoder) -> None:
    single = encoder.run(TEXT)
    assert single.tokens == [["[CLS]", "the", "good", "up", "down", "[SEP]"]]
    pair = encoder.run([("the good", "a bad"), ("up", "down")])
    assert pair.tokens[0] == ["[CLS]", "the", "good", "[SEP]", "a", "bad", "[SEP]"]
    assert pair.batch.inputs["token_type_ids"][0].tolist() == [0, 0, 0, 0, 1, 1, 1]
    raw = encoder.run({"input_ids": torch.tensor([[2, 5, 3]])})
    assert raw.logits.shape == (1, 2)


def test_bad_texts(encoder: Encoder) -> None:
    with pytest.raises(DataError, match="no text"):
        encoder.run([])
    with pytest.raises(DataError, match=r"too long: 102 tokens, and .* takes 40"):
        encoder.run("up " * 100)
    assert encoder.encode("up " * 100, too_long="truncate").truncated == 1
    batches = encoder.batches(["up", "up " * 100, "up " * 90], tokens_per_batch=1)
    assert sorted(b.truncated for b in batches) == [0, 1, 1]
    with pytest.raises(ParameterError, match="'too_long'"):
        encoder.encode("up", too_long="ignore")
    with pytest.raises(DataError, match="cannot share a batch"):
        encoder.run(["up", ("up", "down")])
    with pytest.raises(DataError, match="at least one token"):
        list(encoder.batches(["up"], tokens_per_batch=0))
    with pytest.raises(ModelError, match="without a tokenizer"):
        Encoder(planted.model()).run("up")


# Sites and traces ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("site", "problem"),
    [
        ("layer.9.residual", "no layer 9: the model has 2 layers, 0 to 1"),
        ("layer.0.head.4.pattern", "no head 4"),
        ("layer.*.head.*.patern", "Did you mean 'layer.*.head.*.pattern'"),
        ("layer.*.residuals", "Did you mean 'layer.*.residual'"),
        ("heads", "Unknown site 'heads'"),
        ("decoder.layer.0.residual", "Unknown stack 'decoder'"),
        ("layer.x.residual", "be '\\*', an index"),
    ],
)
def test_bad_sites(encoder: Encoder, site: str, problem: str) -> None:
    with pytest.raises(BertologyError, match=problem):
        encoder.run(TEXT, record=site)


def test_trace_shapes_and_choices(encoder: Encoder) -> None:
    trace = encoder.run([TEXT, "up"], record=["layer.*.head.*.pattern", "embeddings"])
    assert trace["layer.1.head.3.pattern"].shape == (2, 6, 6)
    assert trace["layer.*.head.0-2.pattern"].shape == (2, 2, 3, 6, 6)
    assert trace["layer.0.head.1,3.pattern"].shape == (2, 2, 6, 6)
    assert trace["embeddings"].shape == (2, 6, 16)
    with pytest.raises(UnknownNameError, match="recorded site"):
        trace["layer.0.residual"]
    some = encoder.run(TEXT, record=["layer.0.head.1.output", "layer.0.head.3.output"])
    assert some["layer.0.head.1,3.output"].shape == (1, 2, 6, 4)
    with pytest.raises(UnknownNameError, match="recorded site"):
        some["layer.0.head.2.output"]


def test_labelled_arrays_keep_positions(encoder: Encoder) -> None:
    trace = encoder.run(["up up up", "up"], record="layer.*.head.*.pattern")
    array = trace.to_xarray("layer.*.head.*.pattern")
    assert array.dims == ("layer", "example", "head", "query", "key")
    assert array.sel(layer=0, example=1, head=2).isnull().sum() == 25 - 9
    assert float(array.sel(layer=1, example=0, head=0, query=2).sum()) == pytest.approx(1)


def test_gradients(encoder: Encoder) -> None:
    sites = ["layer.*.head.*.pattern", "layer.1.residual", "layer.0.mlp", "embeddings"]
    trace = encoder.run([TEXT, "bad up"], record=sites, gradients=True)
    trace.backward(trace.logits[:, 1].sum())
    for site in sites:
        assert trace.gradient(site).shape == trace[site].shape
    assert trace.gradient("layer.0.head.2.pattern").abs().max() > 0
    assert trace.gradient("layer.0.head.1.pattern").abs().max() == 0
    assert all(p.grad is None for p in encoder.model.parameters())
    plain = encoder.run(TEXT, record="layer.0.head.*.pattern")
    with pytest.raises(BertologyError, match="gradients=True"):
        plain.gradient("layer.0.head.0.pattern")


def test_gradient_of_contributions(encoder: Encoder) -> None:
    trace = encoder.run(TEXT, record="layer.0.head.*.contribution", gradients=True)
    trace.backward(trace.logits[0, 1])
    slopes = trace.gradient("layer.0.head.*.contribution")
    torch.testing.assert_close(slopes[:, 0], slopes[:, 3])
    torch.testing.assert_close(trace.logits.detach(), encoder.run(TEXT).logits)


# Interventions ------------------------------------------------------------------------------------


def test_interventions_compose_and_nest(encoder: Encoder) -> None:
    intact = encoder.run(TEXT).logits
    carrier, other = bt.ZeroHead([planted.CARRIER]), bt.UniformAttention([(1, 1)])
    without = encoder.run(TEXT, do=carrier).logits
    assert (intact - without).abs().max() > 1
    with encoder.doing(other):
        with encoder.doing(carrier):
            torch.testing.assert_close(encoder.run(TEXT).logits, without)
        torch.testing.assert_close(encoder.run(TEXT).logits, intact)
        torch.testing.assert_close(encoder.run(TEXT, do=[carrier]).logits, without)
    assert torch.equal(encoder.run(TEXT).logits, intact)


def test_interventions_per_example(encoder: Encoder) -> None:
    texts = ["good up up", "bad up up", "good up down"]
    intact = encoder.run(texts).logits
    some = encoder.run(texts, do=bt.ZeroHead([planted.CARRIER], examples=[1])).logits
    assert (some[1] - intact[1]).abs().max() > 1
    torch.testing.assert_close(some[[0, 2]], intact[[0, 2]])
    with pytest.raises(ParameterError, match="positions in a batch of 3"):
        encoder.run(texts, do=bt.ZeroHead([(0, 0)], examples=[3]))


def test_patching_moves_the_answer(encoder: Encoder) -> None:
    good = encoder.run("good up", record=["layer.0.head.2.output", "layer.0.residual"])
    bad = encoder.run("bad up").logits
    patched = encoder.run(
        "bad up", do=bt.Patch("layer.0.head.2.output", good["layer.0.head.2.output"])
    ).logits
    torch.testing.assert_close(patched, good.logits)
    first = bt.Patch("layer.0.residual", good["layer.0.residual"][:, :1], positions=[0])
    torch.testing.assert_close(encoder.run("bad up", do=first).logits, good.logits)
    assert (bad - patched).abs().max() > 1
    with pytest.raises(BertologyError, match="does not fit"):
        encoder.run("bad up up", do=bt.Patch("layer.0.residual", good["layer.0.residual"]))
    with pytest.raises(BertologyError, match="recorded but not patched"):
        encoder.run("bad", do=bt.Patch("layer.0.head.0.contribution", torch.zeros(1)))


def test_weights_are_replaced_for_one_run(encoder: Encoder) -> None:
    intact = encoder.run(TEXT).logits
    zero = bt.ReplaceWeights({"classifier.weight": torch.zeros(2, 16)})
    assert encoder.run(TEXT, do=zero).logits.abs().max() == 0
    assert torch.equal(encoder.run(TEXT).logits, intact)
    with pytest.raises(UnknownNameError, match="parameter"):
        encoder.run(TEXT, do=bt.ReplaceWeights({"clasifier.weight": torch.zeros(2, 16)}))
    with pytest.raises(ParameterError, match="have shape"):
        encoder.run(TEXT, do=bt.ReplaceWeights({"classifier.weight": torch.zeros(3)}))


def test_two_encoders_of_one_config_do_not_disturb_each_other() -> None:
    model = planted.model()
    one = Encoder(model, planted.tokenizer(), head="classification")
    two = Encoder(type(model)(model.config), planted.tokenizer(), head="classification")

    class Inside:
        """Runs the other encoder in the middle of this one's run."""

        def update(self, value: torch.Tensor, place: Any) -> None:
            assert two.model.config._attn_implementation != "bertology"
            two.run(TEXT)

    one.run(TEXT, reduce={"layer.0.head.*.pattern": Inside()})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda: bt.ZeroHead([(2, 0)]), r"no head \(2, 0\)"),
        (lambda: bt.SkipLayer([5]), "no layer 5"),
        (lambda: bt.ZeroDimensions([16]), "no dimension 16"),
        (lambda: bt.GateHead(torch.ones(3, 3)), "'xi' parameter"),
        (lambda: bt.GateMLP(torch.ones(3)), "'nu' parameter"),
        (lambda: bt.KnockOutEdges([(0, 99)]), "outside an attention map"),
        (lambda: bt.ZeroLayerNorm([0], norms=["middle"]), "'norms' parameter"),
        (lambda: bt.ZeroHead([(0, 0)], stack="decoder"), "Unknown stack 'decoder'"),
    ],
)
def test_bad_interventions(encoder: Encoder, change: Any, problem: str) -> None:
    with pytest.raises(BertologyError, match=problem):
        encoder.run(TEXT, do=change())


# Streaming ----------------------------------------------------------------------------------------


def test_streamed_statistics_equal_those_of_whole_maps() -> None:
    encoder = Encoder(tiny.model("bert"))
    statistics = AttentionStatistics(encoder.shape)
    expected = []
    for seed in range(3):
        inputs = tiny.inputs(seed=seed)
        trace = encoder.run(
            inputs, reduce={"layer.*.head.*.pattern": statistics}, record="layer.*.head.*.pattern"
        )
        maps = trace["layer.*.head.*.pattern"]  # (L, B, H, T, T)
        for b, length in enumerate(inputs["attention_mask"].sum(-1).tolist()):
            m = maps[:, b, :, :length, :length].double()
            where = torch.arange(length, dtype=torch.float64)
            far = (where[:, None] - where).abs()
            expected.append(
                torch.stack(
                    [
                        m.diagonal(-1, -2, -1).sum(-1) / length,
                        m.diagonal(0, -2, -1).mean(-1),
                        m.diagonal(1, -2, -1).sum(-1) / length,
                        m[..., 0].mean(-1),
                        m[..., -1].mean(-1),
                        -(m * m.log()).sum(-1).mean(-1),
                        (m * far).sum(-1).mean(-1),
                    ]
                )
            )
    together = torch.stack(expected)  # (N, statistics, L, H)
    torch.testing.assert_close(statistics.mean, together.mean(0), rtol=1e-4, atol=1e-6)
    error = together.std(0) / len(together) ** 0.5
    torch.testing.assert_close(statistics.standard_error, error, rtol=1e-3, atol=1e-5)
