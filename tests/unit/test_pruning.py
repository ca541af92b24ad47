"""Pruned models: equal to the gated ones, smaller, saved and loaded, spoken of in old numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

import tiny
from bertology.errors import BertologyError, CapabilityError, ModelError
from bertology.model.encoder import Encoder
from bertology.model.families import Capability, family_of
from bertology.model.interventions import GateHead, MeanHead, UniformAttention, ZeroHead
from bertology.model.loading.pruning import load_pruned, prune_heads
from bertology.model.reducers.statistics import AttentionStatistics

FAMILIES = [
    n for n in tiny.ROWS if Capability.PRUNING in family_of(tiny.config(n).model_type).capabilities
]
OTHERS = [n for n in tiny.ROWS if n not in FAMILIES]
HEADS = [(0, 1), (1, 0), (1, 2), (2, 0), (2, 1), (2, 2), (2, 3)]  # the last layer loses all
CUT = [(0, 1), (1, 0), (1, 2)]


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def gated(model: Any, heads: list[tuple[int, int]], stack: str | None = None) -> Tensor:
    return logits(model, do=ZeroHead(heads, stack=stack))


def logits(model: Any, **how: Any) -> Tensor:
    """The output at real tokens; what implementations give at padding differs."""
    inputs = tiny.inputs()
    return Encoder(model).run(inputs, **how).logits[inputs["attention_mask"].bool()]


def test_the_families_that_prune() -> None:
    assert set(FAMILIES) == {
        "bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "mobilebert",
        "modernbert", "bart",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "implementation"),
    [*((n, "sdpa") for n in FAMILIES), ("bert", "eager"), ("modernbert", "eager")],
)
def test_a_pruned_model_gives_what_the_gated_one_gives(name: str, implementation: str) -> None:
    model = tiny.model(name)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    expected = gated(model, HEADS)
    assert (expected - logits(model)).abs().max() > 1e-3
    smaller = prune_heads(model, HEADS)
    smaller.set_attn_implementation(implementation)
    close(logits(smaller), expected)
    assert smaller.num_parameters() < model.num_parameters()
    assert "bertology_pruned_heads" not in model.config.to_dict()
    for n, p in model.named_parameters():
        assert torch.equal(p, before[n])


@pytest.mark.parametrize("name", FAMILIES)
def test_a_pruned_model_saves_and_loads(name: str, tmp_path: Path) -> None:
    smaller = prune_heads(tiny.model(name, "mlm"), HEADS)
    smaller.save_pretrained(tmp_path)
    again = load_pruned(tmp_path, transformers.AutoModelForMaskedLM)
    assert type(again) is type(smaller)
    close(logits(again.eval()), logits(smaller))
    encoder = Encoder.load(str(tmp_path), head="mlm", device="cpu")
    close(logits(encoder.model), logits(smaller))
    assert encoder.new_weights == []
    base = Encoder.load(str(tmp_path), device="cpu")
    assert base.numbering.removed == Encoder(smaller).numbering.removed
    encoder.model.save_pretrained(tmp_path / "again")
    close(logits(load_pruned(tmp_path / "again", type(smaller)).eval()), logits(smaller))


def test_a_new_head_on_a_pruned_model_can_be_trained(tmp_path: Path) -> None:
    prune_heads(tiny.model("bert"), HEADS).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="no trained classification head"):
        Encoder.load(str(tmp_path), head="classification", device="cpu")
    model = Encoder.load(str(tmp_path), head="classification", num_labels=2, device="cpu").model
    model(**tiny.inputs(), labels=torch.tensor([0, 1, 0])).loss.backward()
    query = model.bert.encoder.layer[1].attention.self.query
    assert query.weight.grad.shape == (12, 24)
    assert query.weight.grad.abs().max() > 0


def test_transformers_alone_refuses_a_pruned_folder(tmp_path: Path) -> None:
    prune_heads(tiny.model("bert"), HEADS).save_pretrained(tmp_path)
    with pytest.raises(RuntimeError, match="mismatch"):
        transformers.AutoModel.from_pretrained(tmp_path)


def test_load_pruned_takes_models_that_are_whole(tmp_path: Path) -> None:
    model = tiny.model("bert")
    model.save_pretrained(tmp_path)
    close(logits(load_pruned(tmp_path, transformers.AutoModel).eval()), logits(model))


@pytest.mark.parametrize("stack", ["encoder", "decoder", "cross"])
def test_every_stack_of_bart(stack: str, tmp_path: Path) -> None:
    model = tiny.model("bart")
    heads = [(0, 1), (1, 0), (1, 1), (1, 2), (1, 3)]
    smaller = prune_heads(model, heads, stack=stack)
    close(logits(smaller), gated(model, heads, stack))
    smaller.save_pretrained(tmp_path)
    again = load_pruned(tmp_path, transformers.AutoModel).eval()
    close(logits(again), logits(smaller))
    ids = tiny.inputs()["input_ids"]
    close(again(input_ids=ids).last_hidden_state, again(input_ids=ids, use_cache=False)[0])


# Pruning again, and head numbers -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["bert", "modernbert"])
def test_pruning_again_counts_as_the_original_did(name: str, tmp_path: Path) -> None:
    model = tiny.model(name)
    once = prune_heads(model, [(0, 0), (1, 2)])
    once.save_pretrained(tmp_path)
    loaded = Encoder.load(str(tmp_path), device="cpu")
    twice = prune_heads(loaded, [(0, 3), (2, 1)])
    close(logits(twice), gated(model, [(0, 0), (1, 2), (0, 3), (2, 1)]))
    assert twice.config.bertology_pruned_heads == {"0": [0, 3], "1": [2], "2": [1]}
    with pytest.raises(BertologyError, match=r"Head \(0, 0\) .* was pruned"):
        prune_heads(once, [(0, 0)])


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_recorded_of_the_heads_that_are_left(name: str) -> None:
    model = tiny.model(name)
    whole, pruned = Encoder(model), Encoder(prune_heads(model, CUT))
    sites = [f"layer.*.head.*.{k}" for k in ("pattern", "query", "output", "contribution")]
    before = whole.run(tiny.inputs(), do=ZeroHead(CUT), record=sites)
    after = pruned.run(tiny.inputs(), record=sites)
    close(after.logits, before.logits)
    for kind in ("output", "contribution"):
        close(after[f"layer.*.head.*.{kind}"], before[f"layer.*.head.*.{kind}"])
    for kind in ("pattern", "query"):
        ours, theirs = after[f"layer.*.head.*.{kind}"], before[f"layer.*.head.*.{kind}"]
        gone = torch.zeros(ours.shape[0], ours.shape[2], dtype=torch.bool)
        for layer, head in CUT:
            gone[layer, head] = True
        ours, theirs = ours.transpose(1, 2), theirs.transpose(1, 2)  # (layer, head, example, …)
        assert ours[gone].isnan().all()
        close(ours[~gone], theirs[~gone])


def test_a_layer_without_heads_can_be_recorded() -> None:
    pruned = Encoder(prune_heads(tiny.model("bert"), HEADS))
    trace = pruned.run(tiny.inputs(), record=["layer.2.head.*.pattern", "layer.2.attention"])
    assert trace["layer.2.head.*.pattern"].isnan().all()
    bias = pruned.model.encoder.layer[2].attention.output.dense.bias
    close(trace["layer.2.attention"], bias.expand_as(trace["layer.2.attention"]))


def test_interventions_on_the_heads_that_are_left() -> None:
    model = tiny.model("bert")
    whole, pruned = Encoder(model), Encoder(prune_heads(model, CUT))
    xi = torch.rand(3, 4)
    means = whole.run(tiny.inputs(), record="layer.*.head.*.output")
    means_given = means["layer.*.head.*.output"].mean((1, 3))
    for change in (
        UniformAttention([(0, 3), (1, 3)]),
        MeanHead([(1, 1)], means_given),
        GateHead(xi),
        GateHead(xi, toward="uniform"),
    ):
        expected = whole.run(tiny.inputs(), do=[change, ZeroHead(CUT)]).logits
        close(pruned.run(tiny.inputs(), do=change).logits, expected)


def test_gradients_at_the_heads_that_are_left() -> None:
    model = tiny.model("bert")
    site = "layer.*.head.*.output"
    found = []
    for encoder, do in ((Encoder(model), [ZeroHead(CUT)]), (Encoder(prune_heads(model, CUT)), [])):
        trace = encoder.run(tiny.inputs(), record=site, do=do, gradients=True)
        trace.backward(trace.logits.square().sum())
        found.append(trace.gradient(site))
    kept = torch.ones(3, 4, dtype=torch.bool)
    for layer, head in CUT:
        kept[layer, head] = False
        assert found[1][layer, :, head].abs().max() == 0
    theirs, ours = (g.transpose(1, 2)[kept] for g in found)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_statistics_of_a_pruned_model_leave_out_what_is_gone() -> None:
    pruned = Encoder(prune_heads(tiny.model("bert"), CUT))
    statistics = AttentionStatistics(pruned.shape)
    pruned.run(tiny.inputs(), reduce={"layer.*.head.*.pattern": statistics})
    gone = statistics.mean.isnan().any(0)
    assert sorted(map(tuple, gone.nonzero().tolist())) == sorted(CUT)


@pytest.mark.parametrize("do", [ZeroHead([(1, 2)]), MeanHead([(1, 2)]), UniformAttention([(1, 2)])])
def test_a_head_that_is_gone_cannot_be_changed(do: Any) -> None:
    pruned = Encoder(prune_heads(tiny.model("bert"), CUT))
    with pytest.raises(BertologyError, match=r"Head \(1, 2\) .* was pruned"):
        pruned.run(tiny.inputs(), do=do)


def test_a_head_that_is_gone_cannot_be_recorded() -> None:
    pruned = Encoder(prune_heads(tiny.model("bert"), CUT))
    with pytest.raises(BertologyError, match=r"still has heads \[1, 3\]"):
        pruned.run(tiny.inputs(), record="layer.1.head.2.pattern")


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [(3, 0), (0, 4), (-1, 0), (0, -1)])
def test_heads_the_model_does_not_have(pair: tuple[int, int]) -> None:
    with pytest.raises(BertologyError, match="3 layers of 4 heads"):
        prune_heads(tiny.model("bert"), [pair])


def test_heads_that_are_no_pairs() -> None:
    with pytest.raises(BertologyError, match=r"\(layer, head\) pairs"):
        prune_heads(tiny.model("bert"), [3, 4])  # type: ignore[list-item]


@pytest.mark.parametrize("name", OTHERS)
def test_families_that_cannot_be_pruned_say_so(name: str) -> None:
    with pytest.raises(CapabilityError, match="cannot give pruning"):
        prune_heads(tiny.model(name), [(0, 0)])


def test_no_heads_to_prune_give_a_copy() -> None:
    model = tiny.model("bert")
    same = prune_heads(model, [])
    assert same is not model
    close(logits(same), logits(model))
    assert Encoder(same).numbering.removed == {}


@pytest.mark.parametrize("written", [{"9": [0]}, {"0": [7]}, {"x": [0]}, [1, 2], {"0": 3}])
def test_a_config_that_does_not_fit(written: Any, tmp_path: Path) -> None:
    model = tiny.model("bert")
    model.config = type(model.config)(**model.config.to_dict(), bertology_pruned_heads=written)
    model.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="bertology_pruned_heads"):
        Encoder.load(str(tmp_path), device="cpu")


def test_weights_that_do_not_fit_the_pruned_config(tmp_path: Path) -> None:
    smaller = prune_heads(tiny.model("bert"), [(0, 0)])
    smaller.config.bertology_pruned_heads = {"0": [0, 1]}
    smaller.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="do not fit"):
        Encoder.load(str(tmp_path), device="cpu")


def test_a_pruned_model_does_not_promise_replay() -> None:
    assert Capability.FAST_REPLAY in Encoder(tiny.model("bert")).capabilities
    pruned = Encoder(prune_heads(tiny.model("bert"), CUT))
    assert Capability.FAST_REPLAY not in pruned.capabilities
