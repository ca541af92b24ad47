"""Promises that are easily broken in silence: identity, composition, threads, precision."""

from __future__ import annotations

import copy
import threading
from pathlib import Path

import pytest
import safetensors.torch
import torch

import bertology as bt
import planted
import tiny
from bertology.errors import BertologyError, CapabilityError, ModelError, ParameterError
from bertology.model.batch import Batch
from bertology.model.encoder import Encoder
from bertology.model.reducers.statistics import AttentionStatistics, MeanOutput
from bertology.model.sweeps.gate_gradients import first_order_effects
from bertology.model.sweeps.replay import Sweep, Variant

NORM = "bert.encoder.layer.0.output.LayerNorm.weight"


def classifier() -> Encoder:
    return Encoder(planted.model(), planted.tokenizer(), head="classification", name="planted")


# Identity -----------------------------------------------------------------------------------------


def test_the_fingerprint_knows_config_weights_and_tokenizer() -> None:
    encoder = classifier()
    before = encoder.fingerprint
    config = copy.deepcopy(encoder.model.config)
    config.num_attention_heads = 2
    fewer = type(encoder.model)(config)
    fewer.load_state_dict(encoder.model.state_dict())
    assert Encoder(fewer, encoder.tokenizer, head="classification").fingerprint != before
    shorter = planted.tokenizer()
    shorter.model_max_length = 7
    assert Encoder(encoder.model, shorter, head="classification").fingerprint != before
    list(encoder.batches(["good up " * 50]))  # leaves truncation set in the tokenizer
    again = Encoder(encoder.model, encoder.tokenizer, head="classification")
    assert again.fingerprint == before
    with torch.no_grad():
        encoder.model.classifier.weight.neg_()
    assert encoder.fingerprint != before


def test_a_study_inside_doing_is_refused(tmp_path: Path) -> None:
    encoder = classifier()
    with (
        encoder.doing(bt.ZeroHead([planted.CARRIER])),
        pytest.raises(CapabilityError, match="inside `with"),
    ):
        bt.run("head-ablation", encoder, task=planted.corpus(20), store=str(tmp_path))


def test_a_sweep_inside_doing_sees_the_change() -> None:
    encoder, texts = classifier(), planted.corpus(6).texts
    with encoder.doing(bt.ZeroHead([planted.CARRIER])):
        swept = Sweep(encoder, [Variant(((1, 0),))]).logits(texts)
        torch.testing.assert_close(swept[0], encoder.run(texts).logits)


def test_a_taken_corpus_is_shipped_only_where_it_can_be_loaded_again() -> None:
    corpus = bt.load_corpus("grammar-entailment", limit=30)
    part = corpus.take(10)
    assert part.origin == {}
    assert bt.load_corpus(**corpus.origin).fingerprint == corpus.fingerprint


def test_a_checkpoint_without_a_layer_is_refused(tmp_path: Path) -> None:
    planted.model().save_pretrained(tmp_path)
    weights = safetensors.torch.load_file(tmp_path / "model.safetensors")
    kept = {k: v for k, v in weights.items() if ".layer.1." not in k}
    safetensors.torch.save_file(kept, tmp_path / "model.safetensors", {"format": "pt"})
    for options in ({}, {"head": "classification", "num_labels": 3}):
        with pytest.raises(ModelError, match="lacks weights of the model itself"):
            bt.load(str(tmp_path), **options)


def test_answers_that_are_not_numbers_are_refused() -> None:
    encoder = classifier()
    with torch.no_grad():
        encoder.model.classifier.bias.fill_(float("nan"))
    with pytest.raises(ModelError, match="not finite"):
        Sweep(encoder, [Variant(((0, 0),))]).logits(["good up"])


def test_kept_means_are_forgotten_when_weights_change() -> None:
    encoder, texts = classifier(), planted.corpus(8).texts
    before = encoder.head_means(texts)
    assert encoder.head_means(texts) is before
    assert not torch.equal(encoder.head_means(texts[:3]), before)
    with torch.no_grad():
        encoder.model.bert.encoder.layer[0].attention.self.value.weight.mul_(2)
    torch.testing.assert_close(encoder.head_means(texts)[0], 2 * before[0])


# Composition --------------------------------------------------------------------------------------


def test_weight_edits_add_up() -> None:
    encoder = classifier()
    both = [bt.ZeroLayerNorm([1], bias=False), bt.ZeroLayerNorm([2], bias=False)]
    trace = encoder.run("good up", do=both, record="layer.1.residual")
    assert trace["layer.1.residual"][..., 1:3].abs().max() == 0
    triple = 3 * encoder.model.get_parameter(NORM).detach()
    seen = []

    class Spy(bt.ZeroLayerNorm):
        def weights(self, encoder: Encoder) -> dict[str, torch.Tensor]:
            seen.append(encoder.model.get_parameter(NORM).detach().clone())
            return super().weights(encoder)

    encoder.run("up", do=[bt.ReplaceWeights({NORM: triple}), Spy([0])])
    assert torch.equal(seen[0], triple)


def test_a_query_cut_from_all_its_keys_attends_to_nothing() -> None:
    encoder = Encoder(tiny.model("bert"))
    cut = bt.KnockOutEdges([(0, k) for k in range(5)], examples=[2])  # example 2 has five tokens
    row = encoder.run(tiny.inputs(), do=cut, record="layer.0.head.0.pattern")
    assert row["layer.0.head.0.pattern"][2, 0].abs().max() == 0
    causal = Encoder(tiny.model("gpt2"))
    first = causal.run(
        tiny.inputs(), do=bt.KnockOutEdges([(0, 0)]), record="layer.0.head.0.pattern"
    )
    assert first["layer.0.head.0.pattern"][:, 0].abs().max() == 0


def test_a_head_named_twice_is_disabled_once() -> None:
    encoder, texts = classifier(), planted.corpus(6).texts
    once, twice = Variant((planted.CARRIER,)), Variant((planted.CARRIER, planted.CARRIER))
    logits = Sweep(encoder, [once, twice]).logits(texts)
    torch.testing.assert_close(logits[1], logits[2])


def test_cross_attention_has_no_stream_of_its_own() -> None:
    encoder = Encoder(tiny.model("bart"))
    for how in ({"record": "cross.layer.0.residual"}, {"do": bt.SkipLayer([0], stack="cross")}):
        with pytest.raises(CapabilityError, match="no site 'residual' in its cross stack"):
            encoder.run(tiny.inputs(), **how)


def test_a_patch_goes_to_the_stack_it_names() -> None:
    encoder, inputs = Encoder(tiny.model("bart")), tiny.inputs()
    zero = torch.zeros(3, 9, 6)
    names = ["layer.0.head.0.output", "decoder.layer.0.head.0.output"]
    for patch in (bt.Patch(names[1], zero), bt.Patch(names[0], zero, stack="decoder")):
        trace = encoder.run(inputs, do=patch, record=names)
        assert trace[names[0]].abs().max() > 0
        assert trace[names[1]].abs().max() == 0


def test_the_decoder_has_a_mask_of_its_own() -> None:
    encoder, inputs = Encoder(tiny.model("bart")), tiny.inputs()
    site = "decoder.layer.0.head.1.output"
    true = encoder.run(inputs, record=site)[site].mean((0, 1))
    meant = bt.MeanHead([(0, 1)], stack="decoder")
    used = encoder.run(inputs, do=meant, record=site)[site][0, 0]
    torch.testing.assert_close(used, true)


def test_shared_norms_are_not_changed_in_one_layer_only() -> None:
    encoder = Encoder(tiny.model("albert"))
    with pytest.raises(CapabilityError, match="same norms in several layers"):
        encoder.run(tiny.inputs(), do=bt.ZeroLayerNorm([0], layers=[0]))


def test_gates_must_fit_the_batch() -> None:
    encoder = classifier()
    for gate in (bt.GateHead(torch.ones(2, 2, 4)), bt.GateMLP(torch.ones(2, 2))):
        with pytest.raises(ParameterError, match="one row for each of the 1 examples"):
            encoder.run("good", do=gate)


def test_patches_without_a_batch_axis_are_refused() -> None:
    encoder = classifier()
    with pytest.raises(BertologyError, match="does not fit"):
        encoder.run("up up", do=bt.Patch("layer.0.head.*.pattern", torch.ones(4, 4)))


def test_examples_of_multiple_choice_are_whole() -> None:
    import transformers as hf

    torch.manual_seed(0)
    encoder = Encoder(hf.BertForMultipleChoice(tiny.config("bert")).eval(), head="multiple-choice")
    inputs = {"input_ids": torch.randint(5, tiny.VOCAB, (2, 3, 6))}
    site = "layer.0.head.0.output"
    trace = encoder.run(inputs, do=bt.ZeroHead([(0, 0)], examples=[1]), record=site)
    changed = trace[site].abs().amax((1, 2)) == 0
    assert changed.tolist() == [False] * 3 + [True] * 3
    assert len(trace.tokens) == 6


# Threads ------------------------------------------------------------------------------------------


def test_threads_do_not_disturb_each_other() -> None:
    model = planted.model()
    one, two = (Encoder(model, planted.tokenizer(), head="classification") for _ in range(2))
    batch = one.encode("good up down")
    double = bt.ReplaceWeights({"classifier.weight": 2 * model.classifier.weight.detach()})
    silent = bt.ZeroLayerNorm([1])
    expected = {
        "double": one.run(batch, do=double).logits,
        "silent": two.run(batch, do=silent).logits,
    }
    plain = one.run(batch).logits
    wrong: list[str] = []

    def work(encoder: Encoder, change: object, name: str) -> None:
        for _ in range(25):
            if not torch.equal(encoder.run(batch, do=change).logits, expected[name]):
                wrong.append(name)

    threads = [
        threading.Thread(target=work, args=(one, double, "double")),
        threading.Thread(target=work, args=(two, silent, "silent")),
    ]
    with one.doing(bt.ZeroHead([planted.CARRIER])):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert torch.equal(two.run(batch).logits, plain)
    assert model.config._attn_implementation != "bertology"


# Precision and padding ----------------------------------------------------------------------------


def test_half_precision_sweeps_and_estimates() -> None:
    encoder = classifier()
    encoder.model.to(torch.float16)  # not every CPU has bfloat16
    batch = encoder.encode(planted.corpus(4).texts)
    effects = first_order_effects(encoder, batch, torch.tensor([0, 1, 0, 1]))
    assert effects.isfinite().all()
    assert Sweep(encoder, [Variant((planted.CARRIER,))]).run(batch).isfinite().all()
    encoder.run(batch, do=bt.GateMLP(torch.ones(2)))


def test_reducers_count_right_in_half_precision_and_left_padding() -> None:
    encoder = Encoder(tiny.model("bert"))
    wide = tiny.inputs(length=39)
    exact = AttentionStatistics(encoder.shape)
    encoder.run(wide, reduce={"layer.*.head.*.pattern": exact})
    narrow = Encoder(copy.deepcopy(encoder.model).to(torch.float16))
    rough, mean = AttentionStatistics(narrow.shape), MeanOutput(narrow.shape)
    narrow.run(wide, reduce={"layer.*.head.*.pattern": rough, "layer.*.head.*.output": mean})
    torch.testing.assert_close(rough.mean, exact.mean, rtol=0.1, atol=0.02)
    assert mean.value.isfinite().all()
    ids, length = wide["input_ids"][:1, :6], 6
    left = {
        "input_ids": torch.cat([torch.zeros(1, 4, dtype=torch.long), ids], 1),
        "attention_mask": torch.tensor([[0] * 4 + [1] * length]),
        "position_ids": torch.tensor([[0] * 4 + list(range(length))]),
    }
    alone, shifted = AttentionStatistics(encoder.shape), AttentionStatistics(encoder.shape)
    encoder.run({"input_ids": ids}, reduce={"layer.*.head.*.pattern": alone})
    encoder.run(Batch(left, [0]), reduce={"layer.*.head.*.pattern": shifted})
    torch.testing.assert_close(shifted.mean, alone.mean, rtol=1e-3, atol=1e-4)


def test_reducers_of_some_layers_and_some_heads() -> None:
    encoder, inputs = Encoder(tiny.model("bert")), tiny.inputs()
    whole, some = AttentionStatistics(encoder.shape), AttentionStatistics(encoder.shape)
    encoder.run(inputs, reduce={"layer.*.head.*.pattern": whole})
    encoder.run(inputs, reduce={"layer.1-2.head.*.pattern": some})
    torch.testing.assert_close(some.mean[:, 1:], whole.mean[:, 1:])
    assert some.mean[:, 0].isnan().all()
    with pytest.raises(CapabilityError, match="needs all 4 heads"):
        encoder.run(inputs, reduce={"layer.*.head.2.pattern": whole})
